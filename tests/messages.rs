//! What the compiler says about a call that is wrong, and that a right one compiles, on the host target.

use std::process::Command;
use std::sync::{Mutex, PoisonError};

use cuda_ptx_host::toolchain;

/// Builds a function with this body; returns what the compiler says if it fails.
fn compile(body: &str) -> Result<(), String> {
    // Cargo takes all these crates for one, and rebuilds it only if its source is newer.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let manifest = format!(
        "[package]\nname = \"messages\"\nedition = \"2024\"\n\n[dependencies]\ncuda-ptx = {{ path = {:?} }}\n",
        toolchain::workspace_root()
    );
    let source = format!(
        "#![no_std]\nuse cuda_ptx::*;\n\
         pub unsafe fn call(bar: *mut u64, x: *mut f32, map: *const TensorMap) {{\n\
         let _ = (bar, x, map);\nunsafe {{\n{body}\n}}\n}}\n"
    );
    std::fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    std::fs::write(folder.path().join("src/lib.rs"), source).unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["build", "--quiet"])
        .current_dir(folder.path())
        .env("CARGO_TARGET_DIR", toolchain::target_dir().join("messages"))
        .output()
        .unwrap();
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

#[track_caller]
fn fails(body: &str, expected: &[&str]) {
    // How rustc names the path to a type depends on what else is called so.
    let short = |text: &str| text.replace("cuda_ptx::", "");
    let message = short(&compile(body).expect_err(body));
    for words in expected {
        assert!(
            message.contains(&short(words)),
            "`{body}` without `{words}`:\n{message}"
        );
    }
}

#[test]
fn right_calls_compile() {
    compile(
        "let state = mbarrier_arrive_sem_scope_space(sem_release, scope_cta, space_shared, bar);
         let () = mbarrier_arrive_sem_scope_space(sem_relaxed, scope_cluster, space_cluster, bar);
         while !mbarrier_try_wait(bar, state) {}
         let value: f32 = ld(space_global, x.cast_const());
         st(space_global, x.cast::<u128>(), 1_u128);
         let tripled: i32 = shr(-8, 1);
         cp_async_bulk_tensor_bar(space_shared, space_global, x, map, [0, 0], bar);
         cp_async_bulk_tensor_im2col(space_cluster, space_global, x, map, [0, 0, 0, 0], bar, [1, 1]);
         let policy = createpolicy_fractional_L2_evict_first(1.0);
         cp_async_bulk_tensor_L2_cache_hint_bar(space_shared, space_global, x, map, [0, 0], bar, policy);
         cp_reduce_async_bulk_L2_cache_hint(space_global, space_shared, op_add, x, x.cast_const(), 16, policy);
         multimem_cp_reduce_async_bulk_sem_scope(
             sem_relaxed, scope_sys, space_global, space_shared, op_add, x, x.cast_const(), 16,
         );
         cp_async_bulk_wait_group(n32::<0>);
         red_async(op_add, x.cast::<u64>(), 1, bar);
         red_async(op_and_op, x.cast::<i32>(), 1, bar);
         let mut fragment = [0_f32; 4];
         tcgen05_ld_32x32b(&mut fragment, 0);
         tcgen05_st_32x32b(0, [value, 0.0]);
         let _ = tripled;",
    )
    .unwrap();
}

#[test]
fn a_macro_takes_every_argument_list_of_the_cpp_name() {
    compile(
        "let _: u64 = mbarrier_arrive!(bar);
         let _: u64 = mbarrier_arrive!(bar, 2);
         let _: u64 = mbarrier_arrive!(sem_release, scope_cta, space_shared, bar);
         mbarrier_arrive!(sem_release, scope_cluster, space_cluster, bar, 2);
         cp_async_bulk!(space_global, space_shared, x, x.cast_const(), 16);
         cp_async_bulk!(space_cluster, space_global, x, x.cast_const(), 16, bar);
         cp_async_bulk!(space_cluster, space_global, x, x.cast_const(), 16, bar, 3);
         cp_async_bulk!(space_shared, space_global, mbarrier_report_valid_per_element_ff, x, x.cast_const(), 16, bar);
         st_async!(x, 1.0, bar);
         st_async!(x, [1.0, 2.0], bar);
         st_async!(x, [1.0, 2.0, 3.0, 4.0], bar);
         let mut seen = false;
         let mut value = 0_u8;
         let _ = mbarrier_try_wait!(mbarrier_phase_primary, sem_acquire, scope_cta, &mut seen, bar, 7, 100);
         let _ = mbarrier_try_wait!(mbarrier_phase_primary, sem_acquire, scope_cta, &mut seen, &mut value, bar, 7);
         tcgen05_mma!(kind_f16, cta_group_2, 0, 0, 0, 0, [0; 8], true);
         tcgen05_mma!(kind_f16, cta_group_2, 0, 0, 0, 0, true, n32::<15>);",
    )
    .unwrap();
}

#[test]
fn a_wrong_tag_lists_the_right_ones() {
    fails(
        "fence(sem_weak, scope_cta)",
        &[
            "`fence` has no form for",
            "sem_sc | sem_acq_rel",
            "scope_cta | scope_cluster | scope_gpu | scope_sys",
        ],
    );
    // Where the other tags leave one choice, it is a type that does not match.
    fails(
        "mbarrier_arrive_sem_scope_space(sem_release, scope_cta, space_cluster, bar);",
        &["expected `space_shared`, found `space_cluster`"],
    );
    fails(
        "mbarrier_arrive_sem_scope_space(sem_acquire, scope_cta, space_shared, bar);",
        &[
            "`mbarrier_arrive_sem_scope_space` has no form for",
            "there is: sem_release | sem_relaxed, scope_cluster, space_cluster",
        ],
    );
    fails(
        "barrier_cluster_wait_sem(sem_release)",
        &["expected `sem_acquire`, found `sem_release`"],
    );
}

#[test]
fn a_wrong_type_says_what_there_is() {
    fails(
        "red_async(op_add, x, 1.0, bar)",
        &[
            "`red_async` has no form for `cuda_ptx::op_add`, `f32`",
            "*mut u32 | *mut i32 | *mut u64",
        ],
    );
    fails(
        "red_async(op_inc, x, 1.0, bar)",
        &["expected `*mut u32`, found `*mut f32`"],
    );
    fails(
        "let _ = ld(space_global, core::ptr::null::<[u8; 3]>());",
        &["`[u8; 3]` is not a value of 8, 16, 32, 64, 128 or 256 bits"],
    );
    fails(
        "let mut out = [0_u32; 3]; tcgen05_ld_16x64b(&mut out, 0);",
        &["has no form for", "[u32; 4]"],
    );
}

#[test]
fn accesses_that_there_are_not_say_what_there_is() {
    compile(
        "let _: u64 = atom_add(sem_relaxed, scope_cta, space_shared, bar, 1);
         let _: i64 = atom_add(sem_acq_rel, scope_sys, space_generic, bar.cast::<i64>(), -1);
         let _: f32 = atom_exch(sem_release, scope_cluster, space_cluster, x, 1.0);
         let _: u128 = atom_cas(sem_acquire, scope_gpu, space_global, x.cast::<u128>(), 1, 2);
         red_add_L2_cache_hint(sem_release, scope_gpu, space_global, x.cast::<[f32; 4]>(), [1.0; 4], 7);
         let _: [f16; 8] = atom_min(sem_relaxed, scope_gpu, space_global, x.cast(), [f16::from_bits(0); 8]);
         let _: [u8; 4] = ld_sem_scope(sem_acquire, scope_gpu, space_global, x.cast_const().cast());
         st_weak(space_cluster, x.cast(), [1_u16, 2]);
         st_mmio(sem_relaxed, scope_sys, space_global, x.cast(), 1_u8);
         let _ = isspacep(space_local, x);",
    )
    .unwrap();
    fails(
        "atom_inc(sem_relaxed, scope_gpu, space_global, x, 1.0);",
        &[
            "there is no atomic operation `cuda_ptx::op_inc` on `f32`",
            "inc, dec: u32",
        ],
    );
    fails(
        "atom_min(sem_relaxed, scope_gpu, space_global, x, 1.0);",
        &["there is no atomic operation `cuda_ptx::op_min` on `f32`"],
    );
    fails(
        "red_add(sem_acquire, scope_gpu, space_global, x, 1.0);",
        &[
            "`red` does not have the semantics `cuda_ptx::sem_acquire`",
            "there is: sem_relaxed | sem_release",
        ],
    );
    fails(
        "st_sem_scope(sem_acquire, scope_gpu, space_global, x, 1.0);",
        &["`st` does not have the semantics `cuda_ptx::sem_acquire`"],
    );
    fails(
        "ld_sem_scope(sem_weak, scope_gpu, space_global, x);",
        &[
            "`ld` does not have the semantics `cuda_ptx::sem_weak`",
            "`ld_weak`",
        ],
    );
    fails(
        "ld_weak(space_global, x.cast::<[f64; 8]>());",
        &["`ld` and `st` do not move `[f64; 8]` at once"],
    );
    fails(
        "red_add(sem_relaxed, scope_gpu, space_shared, x.cast(), [1.0_f32, 2.0]);",
        &["this form is of global memory, not of `cuda_ptx::space_shared`"],
    );
    fails(
        "ld_mmio(sem_relaxed, scope_sys, space_global, x.cast::<[f32; 2]>());",
        &["`.mmio` accesses are of one scalar, not of `[f32; 2]`"],
    );
}

#[test]
fn a_missing_argument_is_shown() {
    fails(
        "mbarrier_init(bar)",
        &[
            "this function takes 2 arguments but 1 argument was supplied",
            "argument #2 of type `u32` is missing",
        ],
    );
}

#[test]
fn an_immediate_out_of_range_says_the_range() {
    fails(
        "setmaxnreg_inc(n32::<30>)",
        &["must be from 24 to 256 in steps of 8"],
    );
    fails(
        "cp_async_bulk_wait_group(n32::<{ -1 }>)",
        &["must be at least 0"],
    );
    fails(
        "tensormap_cp_fenceproxy(sem_release, scope_gpu, x, x.cast_const(), n32::<64>)",
        &["`size` must be 128"],
    );
}

#[test]
fn a_copy_that_does_not_exist_says_what_does() {
    fails(
        "cp_async_bulk_tensor_im2col(space_shared, space_global, x, map, [0, 0], bar, []);",
        &[
            "`cp.async.bulk.tensor` in the mode",
            "Im2col` does not take the coordinates `[i32; 2]`",
            "im2col modes 3 to 5",
        ],
    );
    fails(
        "cp_async_bulk_tensor_im2col(space_shared, space_global, x, map, [0, 0, 0], bar, [0, 0]);",
        &["expected an array with a size of 1, found one with a size of 2"],
    );
    fails(
        "cp_async_bulk_tensor_L2_cache_hint_bar_cta_mask(space_shared, space_global, x, map, [0], bar, 3, 0);",
        &[
            "a multicast does not go to `space_shared`",
            "it goes to `space_cluster`",
        ],
    );
    fails(
        "cp_reduce_async_bulk_L2_cache_hint(space_global, space_shared, op_min, x, x.cast_const(), 16, 0);",
        &[
            "a bulk reduction has no `(cuda_ptx::op_min, f32)`",
            "op_min and op_max u32",
        ],
    );
}
