//! A barrier of one word that atomic operations change: for scopes that no mbarrier object serves.
//!
//! | bits | what |
//! |---|---|
//! | 63 | parity of the phase |
//! | 62…32 | 2³¹ minus the arrivals that the phase lacks |
//! | 31…0 | 2³¹ minus the arrivals that the next phase expects |
//!
//! So an arrival is an addition, and the last one carries into the parity. It leaves a count of zero,
//! and whoever made it adds what the next phase starts with. Arrivals may come in between, because
//! additions commute.
//!
//! The C++ class makes that second addition once and does not look at what it gave. If the thread
//! that completed the phase has dropped out, all arrivals of the next phase can have come before it,
//! and then it is the second addition that carries: nobody starts the phase after that one, and all
//! its waits last for ever. Here whoever carries starts the next phase, however often.

/// The bit that holds the parity of the phase.
pub const PHASE: u64 = 1 << 63;
/// One arrival.
const ARRIVAL: u64 = 1 << 32;
/// One arrival fewer to expect.
const DROP: u64 = 1;
/// The bits that say how many arrivals the next phase expects.
const EXPECTED: u64 = ARRIVAL - 1;
/// Those bits when nobody is left.
const NOBODY: u64 = 1 << 31;

/// The most arrivals that a phase can expect.
pub const MAX_COUNT: u32 = (1 << 31) - 1;

/// The word of a barrier in its first phase.
pub const fn initial(expected: u32) -> u64 {
    let missing = NOBODY - expected as u64;
    missing << 32 | missing
}

/// Arrives `count` times, given what adds to the word and returns its value before. Returns the
/// state.
#[inline(always)]
pub fn arrive(count: u32, fetch_add: impl FnMut(u64) -> u64) -> u64 {
    add(ARRIVAL * u64::from(count), fetch_add)
}

/// Arrives once and for the last time.
#[inline(always)]
pub fn arrive_and_drop(fetch_add: impl FnMut(u64) -> u64) -> u64 {
    add(ARRIVAL + DROP, fetch_add)
}

/// Adds `change`, and begins the next phase as long as that completes one.
#[inline(always)]
fn add(mut change: u64, mut fetch_add: impl FnMut(u64) -> u64) -> u64 {
    let before = fetch_add(change);
    let mut word = before;
    while (word ^ word.wrapping_add(change)) & PHASE != 0 {
        let expected = word.wrapping_add(change) & EXPECTED;
        if expected == NOBODY {
            break;
        }
        change = expected << 32;
        word = fetch_add(change);
    }
    before
}

/// Whether the phase of a state or of a parity is complete, given the word now.
#[inline(always)]
pub const fn is_complete(word: u64, phase: u64) -> bool {
    (word ^ phase) & PHASE != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A word without threads.
    struct Word(u64);

    impl Word {
        fn new(expected: u32) -> Self {
            Self(initial(expected))
        }

        fn fetch_add(&mut self) -> impl FnMut(u64) -> u64 {
            |change| {
                let before = self.0;
                self.0 = before.wrapping_add(change);
                before
            }
        }

        fn arrive(&mut self, count: u32) -> u64 {
            arrive(count, self.fetch_add())
        }

        fn drop_out(&mut self) -> u64 {
            arrive_and_drop(self.fetch_add())
        }

        fn lacking(&self) -> u64 {
            NOBODY - (self.0 & !PHASE) / ARRIVAL
        }
    }

    #[test]
    fn the_last_arrival_completes_the_phase_and_begins_the_next() {
        for expected in [1, 2, 3, 1000, MAX_COUNT] {
            let mut word = Word::new(expected);
            for phase in 0..5 {
                assert_eq!(word.0 / PHASE, phase % 2);
                assert_eq!(word.lacking(), u64::from(expected));
                let mut token = word.0;
                if expected > 1 {
                    token = word.arrive(expected - 1);
                    assert_eq!(word.lacking(), 1);
                    assert!(!is_complete(word.0, token));
                }
                word.arrive(1);
                assert!(is_complete(word.0, token));
            }
        }
    }

    #[test]
    fn who_drops_out_is_not_expected_again() {
        let mut word = Word::new(3);
        word.drop_out();
        assert_eq!(word.lacking(), 2);
        let token = word.arrive(1);
        word.drop_out();
        assert!(is_complete(word.0, token));
        assert_eq!(word.lacking(), 1);
        let token = word.arrive(1);
        assert!(is_complete(word.0, token));
        assert_eq!(word.lacking(), 1);
    }

    #[test]
    fn when_the_last_one_drops_out_nothing_begins() {
        let mut word = Word::new(2);
        word.drop_out();
        let token = word.drop_out();
        assert!(is_complete(word.0, token));
    }

    /// The phase completes by the arrival of a thread that drops out. Before it begins the next
    /// phase, the other thread arrives there, and again in the one after that.
    #[test]
    fn a_phase_that_completes_before_it_has_begun_is_followed_by_another() {
        let mut word = Word::new(2);
        let first = word.arrive(1);
        let mut late = None;
        let mut additions = 0;
        let last = arrive_and_drop(|change| {
            if additions == 1 {
                assert!(is_complete(word.0, first));
                let second = word.arrive(1);
                assert!(!is_complete(word.0, second));
                late = Some(second);
            }
            additions += 1;
            word.fetch_add()(change)
        });
        assert!(
            !is_complete(word.0, last),
            "two phases on, the parity is back"
        );
        assert!(is_complete(word.0, late.unwrap()));
        assert_eq!(additions, 3);
        assert_eq!(word.lacking(), 1);
        let third = word.arrive(1);
        assert!(is_complete(word.0, third));
    }
}
