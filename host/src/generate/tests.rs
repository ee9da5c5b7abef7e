use super::*;

#[test]
fn the_committed_sources_are_those_of_the_spec() {
    run(true).unwrap();
}

#[test]
fn generating_twice_gives_the_same_text() {
    let spec = spec::load().unwrap();
    assert_eq!(outputs(&spec).unwrap(), outputs(&spec).unwrap());
}
