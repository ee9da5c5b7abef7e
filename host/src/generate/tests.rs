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

#[test]
fn every_variant_has_a_kernel_of_its_own_name_in_both_languages() {
    let spec = spec::load().unwrap();
    let kernels = kernels::all(&spec);
    assert_eq!(kernels.len(), spec.variants().count());
    let (rust, cpp) = (kernels::rust(&kernels), kernels::cpp(&kernels));
    for kernel in &kernels {
        let calls = format!("{}(", kernel.name);
        assert_eq!(rust.matches(&format!("fn {calls}")).count(), 1, "{calls}");
        assert_eq!(cpp.matches(&format!("void {calls}")).count(), 1, "{calls}");
    }
}

#[test]
fn the_kernels_of_a_variant_do_the_same_around_it() {
    let spec = spec::load().unwrap();
    let kernels = kernels::all(&spec);
    let kernel = kernels
        .iter()
        .find(|kernel| kernel.name == "k_mbarrier_try_wait_sem_scope__acquire__cta")
        .unwrap();
    let of = |text: String, start: &str| text[text.find(start).unwrap()..].to_string();
    assert_eq!(
        of(kernels::rust(std::slice::from_ref(kernel)), "kernel!"),
        "kernel! {\n\
         pub fn k_mbarrier_try_wait_sem_scope__acquire__cta(state: u64, result_out: *mut u32) {\n\
         shared! { #[align(1024)] static SMEM: [u8; 1024]; }\n\
         unsafe {\n\
         let result = mbarrier_try_wait_sem_scope(sem_acquire, scope_cta, \
         SMEM.as_mut_ptr().byte_add(0).cast::<u64>(), state);\n\
         result_out.add(0).write(result as u32);\n\
         }\n}\n}\n"
    );
    assert_eq!(
        of(kernels::cpp(std::slice::from_ref(kernel)), "extern"),
        "extern \"C\" __global__ void k_mbarrier_try_wait_sem_scope__acquire__cta(uint64_t state, uint32_t* result_out) {\n\
         __shared__ alignas(1024) unsigned char smem[1024];\n\
         auto result = ptx::mbarrier_try_wait(ptx::sem_acquire, ptx::scope_cta, (uint64_t*)(smem + 0), state);\n\
         result_out[0] = result;\n\
         }\n"
    );
}
