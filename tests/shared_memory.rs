//! Shared memory across crates: statics of every alignment, in a dependency, behind helpers, as
//! `static mut`, and carved out of dynamic shared memory.

use std::path::Path;

use cuda_ptx_host::build::{self, Arch, KernelCrate};
use cuda_ptx_host::inspect::{resources, sass};
use cuda_ptx_host::toolchain;
use tempfile::{NamedTempFile, TempDir};

/// Writes a crate `name` with this source into `folder/name`.
fn write_crate(folder: &Path, name: &str, dependencies: &str, source: &str) {
    let cuda_ptx = toolchain::workspace_root();
    let manifest = format!(
        "[package]\nname = \"{name}\"\nedition = \"2024\"\n\n[dependencies]\ncuda-ptx = {{ path = {cuda_ptx:?} }}\n{dependencies}"
    );
    std::fs::create_dir_all(folder.join(name).join("src")).unwrap();
    std::fs::write(folder.join(name).join("Cargo.toml"), manifest).unwrap();
    std::fs::write(folder.join(name).join("src/lib.rs"), source).unwrap();
}

/// The PTX of a kernel crate, and its cubin in a file.
fn build(folder: &TempDir) -> (String, NamedTempFile) {
    let kernels = KernelCrate::new(folder.path().join("kernels/Cargo.toml"), Arch::SM_90A)
        .linker(env!("CARGO_BIN_EXE_cuda-ptx-link"));
    let ptx = kernels.ptx().unwrap();
    let cubin = NamedTempFile::new().unwrap();
    build::cubin(&ptx, Arch::SM_90A, cubin.path()).unwrap();
    (std::fs::read_to_string(ptx).unwrap(), cubin)
}

fn kernels(source: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let head =
        "#![no_std]\n#![feature(abi_ptx, stdarch_nvptx)]\nuse cuda_ptx::*;\npanic_trap!();\n";
    write_crate(folder.path(), "kernels", "", &format!("{head}{source}"));
    folder
}

/// Bytes of static shared memory that a kernel of the cubin has.
fn shared_bytes(cubin: &Path, kernel: &str) -> u64 {
    let cuobjdump = toolchain::cuda().unwrap().cuobjdump;
    u64::from(resources::of_cubin(&cuobjdump, cubin).unwrap()[kernel].shared)
}

fn assert_no_generic_access(cubin: &Path) {
    for function in sass::disassemble(&toolchain::cuda().unwrap().nvdisasm, cubin).unwrap() {
        let generic: Vec<String> = sass::generic_accesses(&function)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert!(generic.is_empty(), "{}: {generic:?}", function.name);
    }
}

#[test]
fn statics_of_two_crates_are_all_shared_and_distinct() {
    let folder = tempfile::tempdir().unwrap();
    write_crate(
        folder.path(),
        "library",
        "",
        "#![no_std]\nuse cuda_ptx::*;\n\
         shared! { pub static TABLE: [u32; 64]; static HIDDEN: [u32; 32]; }\n\
         /// Only this function reaches HIDDEN.\n\
         #[inline(never)]\n\
         pub unsafe fn hidden(i: usize) -> *mut u32 { unsafe { HIDDEN.as_mut_ptr().cast::<u32>().add(i) } }\n",
    );
    write_crate(
        folder.path(),
        "kernels",
        "library = { path = \"../library\" }\n",
        "#![no_std]\n#![feature(abi_ptx, stdarch_nvptx)]\nuse cuda_ptx::*;\npanic_trap!();\n\
         shared! { static TABLE: [u32; 16]; }\n\
         kernel! { pub fn kernel(out: *mut u32) { unsafe {\n\
             let i = get_sreg_tid_x() as usize;\n\
             *library::TABLE.as_mut_ptr().cast::<u32>().add(i) = 1;\n\
             *TABLE.as_mut_ptr().cast::<u32>().add(i) = 2;\n\
             *library::hidden(i) = 3;\n\
             core::arch::nvptx::_syncthreads();\n\
             let j = i ^ 1;\n\
             *out.add(i) = *library::TABLE.as_mut_ptr().cast::<u32>().add(j) + *TABLE.as_mut_ptr().cast::<u32>().add(j) + *library::hidden(j);\n\
         } } }\n",
    );
    let (ptx, cubin) = build(&folder);
    for size in [256, 128, 64] {
        assert_eq!(
            ptx.matches(&format!("[{size}];")).count(),
            1,
            "one object of {size} bytes in:\n{ptx}"
        );
    }
    assert!(shared_bytes(cubin.path(), "kernel") >= 256 + 128 + 64);
}

#[test]
fn every_alignment_up_to_1024_is_kept() {
    let mut source = String::from("shared! {\n");
    let alignments: Vec<u32> = (0..=10).map(|n| 1 << n).collect();
    for align in &alignments {
        source += &format!("#[align({align})] static A{align}: [u8; 3];\n");
    }
    source += "}\nkernel! { pub fn kernel(out: *mut u32) { unsafe {\n";
    for align in &alignments {
        source += &format!("*out.add({align}) = address::as_ptr_smem(A{align}.as_mut_ptr());\n");
    }
    source += "} } }\n";
    let (ptx, _) = build(&kernels(&source));
    for align in alignments {
        let declaration = format!(".shared .align {align} .b8 ");
        assert_eq!(
            ptx.matches(&declaration).count(),
            1,
            "`{declaration}` in:\n{ptx}"
        );
    }
}

#[test]
fn structs_and_static_mut_are_shared_memory_too() {
    let (ptx, cubin) = build(&kernels(
        "use core::mem::MaybeUninit;\n\
         #[repr(C, align(64))] #[derive(Clone, Copy)] struct Pair { a: u64, b: u32 }\n\
         shared! { static PAIRS: [Pair; 4]; }\n\
         #[unsafe(link_section = \".shared\")] static mut RAW: MaybeUninit<[f32; 8]> = MaybeUninit::uninit();\n\
         kernel! { pub fn kernel(out: *mut f32, i: u32) { unsafe {\n\
             let pair = PAIRS.as_mut_ptr().cast::<Pair>().add(i as usize);\n\
             (*pair).b = i;\n\
             let raw = (&raw mut RAW).cast::<f32>();\n\
             *raw.add(i as usize) = 1.0;\n\
             core::arch::nvptx::_syncthreads();\n\
             *out = *raw.add((i ^ 1) as usize) + (*PAIRS.as_mut_ptr().cast::<Pair>().add((i ^ 1) as usize)).b as f32;\n\
         } } }\n",
    ));
    assert!(
        ptx.contains(".align 64 .b8") && ptx.contains("[256];") && ptx.contains("[32];"),
        "{ptx}"
    );
    assert_no_generic_access(cubin.path());
}

#[test]
fn dynamic_shared_memory_is_carved_into_typed_parts() {
    let (ptx, cubin) = build(&kernels(
        "extern_shared! { #[align(128)] static BYTES: [u8]; static WORDS: [u32]; }\n\
         kernel! { pub fn kernel(out: *mut f32, n: u32) { unsafe {\n\
             let i = get_sreg_tid_x() as usize;\n\
             let floats = BYTES.as_mut_ptr().cast::<f32>();\n\
             let words = WORDS.as_mut_ptr().add(n as usize);\n\
             *floats.add(i) = i as f32;\n\
             *words.add(i) = i as u32;\n\
             core::arch::nvptx::_syncthreads();\n\
             *out.add(i) = *floats.add(i ^ 1) + *words.add(i ^ 1) as f32;\n\
         } } }\n",
    ));
    assert_eq!(
        ptx.matches(".extern .shared .align 128 .b8").count(),
        1,
        "{ptx}"
    );
    assert_no_generic_access(cubin.path());
}

#[test]
fn a_shared_object_without_a_size_does_not_compile() {
    let folder = kernels(
        "shared! { static NOTHING: [u32; 0]; }\n\
         kernel! { pub fn kernel(out: *mut u32) { unsafe { *out = address::as_ptr_smem(NOTHING.as_mut_ptr()) } } }\n",
    );
    let kernels = KernelCrate::new(folder.path().join("kernels/Cargo.toml"), Arch::SM_90A)
        .linker(env!("CARGO_BIN_EXE_cuda-ptx-link"));
    assert!(kernels.ptx().is_err());
}
