//! Compiles the stand-ins for the CUDA driver's entry points (`libcuda/entries.c`).

use std::env;
use std::path::Path;

fn main() {
    println!("cargo:rerun-if-changed=libcuda");
    let gpu = env::var_os("CARGO_FEATURE_GPU").is_some();
    if !gpu || env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        return;
    }
    // Whole, because a static linker reads left to right and cust, which needs the symbols, comes later.
    cc::Build::new()
        .file("libcuda/entries.c")
        .link_lib_modifier("+whole-archive")
        .compile("cuda_entries");
    // cust_raw asks for `-lcuda`: let it find the empty linker script, whatever CUDA_LIBRARY_PATH names.
    let manifest = env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let script = Path::new(&manifest).join("libcuda/lib64");
    println!("cargo:rustc-link-search=native={}", script.display());
}
