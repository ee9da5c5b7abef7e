//! A kernel crate that is not ours: written after the README, built by the harness, and built wrongly.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use cuda_ptx_host::build::{self, Arch, Isa, KernelCrate};
use cuda_ptx_host::{inspect, toolchain};
use tempfile::TempDir;

/// A library crate that depends on cuda-ptx, with this source.
struct UserCrate {
    folder: TempDir,
}

impl UserCrate {
    fn new(source: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let cuda_ptx = toolchain::workspace_root();
        let manifest = format!(
            "[package]\nname = \"kernels\"\nedition = \"2024\"\n\n[dependencies]\ncuda-ptx = {{ path = {cuda_ptx:?} }}\n"
        );
        std::fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
        std::fs::create_dir(folder.path().join("src")).unwrap();
        std::fs::write(folder.path().join("src/lib.rs"), source).unwrap();
        Self { folder }
    }

    /// A crate with one kernel of this body; its parameter is `barrier: *mut u64`.
    fn with_body(body: &str) -> Self {
        Self::new(&format!(
            "#![no_std]\n#![feature(abi_ptx)]\nuse cuda_ptx::*;\npanic_trap!();\n\
             kernel! {{ pub fn kernel(barrier: *mut u64) {{ unsafe {{ {body} }} }} }}\n"
        ))
    }

    /// The crate as the harness builds it; a test is not its own linker.
    fn kernels(&self) -> KernelCrate {
        KernelCrate::new(self.manifest(), Arch::SM_90A).linker(env!("CARGO_BIN_EXE_cuda-ptx-link"))
    }

    fn manifest(&self) -> PathBuf {
        self.folder.path().join("Cargo.toml")
    }

    /// `cargo xtask build` with these arguments.
    fn xtask_build(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_xtask"))
            .args(["build", "--manifest-path"])
            .arg(self.manifest())
            .args(arguments)
            .current_dir(self.folder.path())
            .output()
            .unwrap()
    }

    /// Fails to build with these arguments, says all of `expected`, and leaves no output.
    fn fails(&self, arguments: &[&str], expected: &[&str]) {
        let output = self.xtask_build(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{stderr}");
        for words in expected {
            assert!(stderr.contains(words), "expected `{words}` in:\n{stderr}");
        }
        assert!(
            !self.folder.path().join("k.cubin").exists()
                && !self.folder.path().join("k.ptx").exists()
        );
    }
}

const CUBIN: [&str; 4] = ["--arch", "sm_90a", "--out", "k.cubin"];

/// The first `rust` code block of the README that defines a kernel.
fn readme_kernel() -> String {
    let readme = std::fs::read_to_string(toolchain::workspace_root().join("README.md")).unwrap();
    let block = readme
        .split("```rust\n")
        .find(|block| block.contains("kernel! {"))
        .unwrap();
    block.split("```").next().unwrap().to_owned()
}

#[test]
fn the_readme_s_kernel_builds_and_loads_from_shared_memory() {
    let user = UserCrate::new(&readme_kernel());
    let cubin = user.folder.path().join("k.cubin");
    build::build(&user.kernels(), &cubin).unwrap();
    let nvdisasm = toolchain::cuda().unwrap().nvdisasm;
    let functions = inspect::sass::disassemble(&nvdisasm, &cubin).unwrap();
    let opcodes: Vec<&str> = functions[0].instructions.iter().map(|i| i.base()).collect();
    assert_eq!(functions[0].name, "double");
    for opcode in ["LDS", "UBLKCP", "SYNCS"] {
        assert!(opcodes.contains(&opcode), "no {opcode} in {opcodes:?}");
    }
}

#[test]
fn a_build_that_bypasses_the_link_stage_says_so() {
    let user = UserCrate::with_body("mbarrier_init(barrier, 1)");
    let tools = toolchain::device().unwrap();
    let output = Command::new(&tools.cargo)
        .args([
            "check",
            "-Zbuild-std=core",
            "--target",
            "nvptx64-nvidia-cuda",
        ])
        .current_dir(user.folder.path())
        .env("RUSTC", &tools.rustc)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", "-Ctarget-cpu=sm_90a")
        .env(
            "CARGO_TARGET_DIR",
            toolchain::target_dir().join("device/bypass"),
        )
        .env_remove("RUSTUP_TOOLCHAIN")
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{stderr}");
    assert!(
        stderr.contains("cuda-ptx must be built through its link stage"),
        "{stderr}"
    );
}

#[test]
fn an_architecture_too_old_for_a_form_is_a_compile_error() {
    let user =
        UserCrate::with_body("fence_mbarrier_init(sem_release, scope_cluster); let _ = barrier;");
    user.fails(
        &["--arch", "sm_80", "--out", "k.cubin"],
        &["this instruction needs", "sm_90"],
    );
}

#[test]
fn an_isa_version_too_old_for_a_form_or_the_architecture_is_an_error() {
    let user = UserCrate::with_body("mbarrier_init_layout(layout_v1, barrier, 1)");
    user.fails(&CUBIN, &["this instruction needs", "ptx_94"]);
    let error = user.kernels().isa("7.8".parse::<Isa>().unwrap()).ptx();
    let error = error.unwrap_err().to_string();
    assert!(error.contains("sm_90a exists since PTX ISA 8.0"), "{error}");
}

#[test]
fn forms_and_architectures_newer_than_llvm_get_their_header() {
    let user = UserCrate::with_body("mbarrier_init_layout(layout_v1, barrier, 1)");
    let output = user.xtask_build(&["--arch", "sm_107a", "--isa", "9.4", "--out", "k.ptx"]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let ptx = user.folder.path().join("k.ptx");
    let text = std::fs::read_to_string(&ptx).unwrap();
    assert!(text.contains(".version 9.4\n.target sm_107a\n"), "{text}");
    let arch: Arch = "sm_107a".parse().unwrap();
    build::cubin(&ptx, arch, user.folder.path().join("k.cubin")).unwrap();
}

#[test]
fn a_crate_that_does_not_compile_shows_the_compiler_s_words() {
    let user = UserCrate::with_body("mbarrier_init(barrier)");
    user.fails(
        &CUBIN,
        &[
            "this function takes 2 arguments",
            "cannot build the kernel crate",
        ],
    );
}

#[test]
fn ptx_that_ptxas_rejects_shows_its_words() {
    let user = UserCrate::with_body("core::arch::asm!(\"nonsense.b32;\"); let _ = barrier;");
    let source = user.folder.path().join("src/lib.rs");
    let text = std::fs::read_to_string(&source).unwrap();
    std::fs::write(
        &source,
        text.replace(
            "feature(abi_ptx)",
            "feature(abi_ptx, asm_experimental_arch)",
        ),
    )
    .unwrap();
    user.fails(&CUBIN, &["ptxas rejects", "nonsense"]);
}

#[test]
fn crates_of_one_name_do_not_get_each_other_s_ptx() {
    let one = UserCrate::with_body("mbarrier_init(barrier, 1)");
    let other = UserCrate::with_body("mbarrier_inval(barrier)");
    for _ in 0..2 {
        let ptx =
            |user: &UserCrate| std::fs::read_to_string(user.kernels().ptx().unwrap()).unwrap();
        assert!(ptx(&one).contains("mbarrier.init"));
        assert!(ptx(&other).contains("mbarrier.inval"));
    }
}

#[test]
fn wrong_arguments_are_explained() {
    let user = UserCrate::with_body("let _ = barrier;");
    user.fails(
        &["--arch", "sm_42", "--out", "k.cubin"],
        &["`sm_42` is not an architecture", "sm_90a"],
    );
    user.fails(
        &["--arch", "sm_90a", "--out", "k.elf"],
        &["must end in .ptx or .cubin"],
    );
    std::fs::remove_file(user.manifest()).unwrap();
    user.fails(&CUBIN, &["there is no manifest"]);
}

#[test]
fn an_initialised_shared_static_is_refused() {
    let user = UserCrate::new(
        "#![no_std]\n#![feature(abi_ptx)]\nuse cuda_ptx::*;\npanic_trap!();\n\
         #[unsafe(link_section = \".shared\")] static mut COUNT: u32 = 1;\n\
         kernel! { pub fn kernel(out: *mut u32) { unsafe { *out = COUNT; COUNT += 1; } } }\n",
    );
    user.fails(&CUBIN, &["COUNT", "shared memory cannot be initialised"]);
}

#[test]
fn kernels_keep_their_launch_attributes_and_grid_constants() {
    let user = UserCrate::new(
        "#![no_std]\n#![feature(abi_ptx)]\nuse cuda_ptx::*;\npanic_trap!();\n\
         const THREADS: u32 = 128;\n\
         kernel! {\n\
             #[launch_bounds(THREADS, 2)] #[cluster_dim(2, 1, 1)] #[maxnreg(64)]\n\
             pub fn bounded(n: u32, map: GridConstant<TensorMap>, out: *mut u64) {\n\
                 unsafe { *out = map.as_ptr() as u64 + n as u64 }\n\
             }\n\
             #[block_size(32, 4, 1)]\n\
             pub fn sized() {}\n\
         }\n",
    );
    let ptx = user.folder.path().join("k.ptx");
    build::build(&user.kernels(), &ptx).unwrap();
    let text = std::fs::read_to_string(ptx).unwrap();
    let (sized, bounded) = text
        .split_once(".entry sized")
        .map_or(("", ""), |(bounded, sized)| (sized, bounded));
    for directive in [
        ".maxntid 128",
        ".minnctapersm 2",
        ".maxnreg 64",
        ".reqnctapercluster 2, 1, 1",
        ".param .align 64 .b8 bounded_param_1[128]",
    ] {
        assert!(bounded.contains(directive), "no `{directive}` in:\n{text}");
    }
    assert!(
        sized.contains(".reqntid 32, 4, 1") && !sized.contains(".maxntid"),
        "{text}"
    );
    assert!(
        !text.contains("ld.param.b8"),
        "the grid constant was copied:\n{text}"
    );
}

#[test]
fn debug_builds_check_arguments_and_release_builds_pay_nothing() {
    let user = UserCrate::with_body("mbarrier_init(barrier, 1)");
    let ptx = |kernels: KernelCrate| std::fs::read_to_string(kernels.ptx().unwrap()).unwrap();
    let is_checked = |ptx: &str| ptx.contains("panic");
    assert!(is_checked(&ptx(user.kernels().profile("dev"))));
    let release = ptx(user.kernels());
    assert!(
        !is_checked(&release) && !release.contains("setp"),
        "{release}"
    );
}

#[test]
fn line_tables_survive() {
    let user = UserCrate::with_body("mbarrier_init(barrier, 1)");
    let manifest = std::fs::read_to_string(user.manifest()).unwrap();
    let profile = "\n[profile.lines]\ninherits = \"release\"\ndebug = \"line-tables-only\"\n";
    std::fs::write(user.manifest(), manifest + profile).unwrap();
    let ptx = user.folder.path().join("k.ptx");
    build::build(&user.kernels().profile("lines"), &ptx).unwrap();
    let text = std::fs::read_to_string(&ptx).unwrap();
    assert!(
        text.contains("src/lib.rs") && text.contains("\t.loc\t"),
        "{text}"
    );
    build::cubin(
        &ptx,
        Arch::SM_90A,
        Path::new(&user.folder.path().join("k.cubin")),
    )
    .unwrap();
}

#[test]
fn a_program_that_cannot_be_the_linker_is_told_so() {
    let user = UserCrate::with_body("let _ = barrier;");
    let error = KernelCrate::new(user.manifest(), Arch::SM_90A).ptx();
    let error = format!("{:#}", error.unwrap_err());
    assert!(error.contains("link::run_as_linker"), "{error}");
}

/// The kernel of the README beside a program whose build script, as in the README, builds it.
#[test]
fn a_build_script_as_in_the_readme_builds_the_kernels() {
    let readme = std::fs::read_to_string(toolchain::workspace_root().join("README.md")).unwrap();
    let script = readme
        .split("```rust\n")
        .find(|block| block.contains("OUT_DIR"))
        .unwrap();
    let script = script.split("```").next().unwrap();
    let program = tempfile::tempdir().unwrap();
    let kernels = UserCrate::new(&readme_kernel());
    let host = toolchain::workspace_root().join("host");
    let manifest = format!(
        "[package]\nname = \"program\"\nedition = \"2024\"\n\n[build-dependencies]\n\
         cuda-ptx-host = {{ path = {host:?}, default-features = false }}\n"
    );
    std::fs::write(program.path().join("Cargo.toml"), manifest).unwrap();
    std::fs::write(program.path().join("build.rs"), script).unwrap();
    std::fs::create_dir(program.path().join("src")).unwrap();
    std::fs::write(
        program.path().join("src/main.rs"),
        "fn main() { print!(\"{}\", include_bytes!(concat!(env!(\"OUT_DIR\"), \"/kernels.cubin\")).len()) }",
    )
    .unwrap();
    std::os::unix::fs::symlink(kernels.folder.path(), program.path().join("kernels")).unwrap();
    let output = Command::new(toolchain::device().unwrap().cargo)
        .args(["run", "--quiet"])
        .current_dir(program.path())
        .env(
            "CARGO_TARGET_DIR",
            toolchain::target_dir().join("user-program"),
        )
        .env("CUDA_PTX_ROOT", toolchain::workspace_root())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let bytes: usize = String::from_utf8_lossy(&output.stdout).parse().unwrap();
    assert!(bytes > 1000, "a cubin of {bytes} bytes");
}

/// With the `nvptx64` section of our `.cargo/config.toml` and `cuda-ptx-link` on the path.
#[test]
fn plain_cargo_with_the_documented_configuration_writes_ptx() {
    let user = UserCrate::new(&readme_kernel());
    let manifest = std::fs::read_to_string(user.manifest()).unwrap();
    std::fs::write(
        user.manifest(),
        manifest + "[lib]\ncrate-type = [\"cdylib\"]\n",
    )
    .unwrap();
    let linker = Path::new(env!("CARGO_BIN_EXE_cuda-ptx-link"))
        .parent()
        .unwrap();
    let path = std::env::var("PATH").unwrap();
    let tools = toolchain::device().unwrap();
    let target_dir = toolchain::target_dir().join("device/plain");
    let output = Command::new(&tools.cargo)
        .args([
            "build",
            "--release",
            "-Zbuild-std=core",
            "--target",
            "nvptx64-nvidia-cuda",
            "--config",
        ])
        .arg(toolchain::workspace_root().join(".cargo/config.toml"))
        .current_dir(user.folder.path())
        .env("RUSTC", &tools.rustc)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_TARGET_DIR", &target_dir)
        .env("PATH", format!("{}:{path}", linker.display()))
        .env_remove("RUSTUP_TOOLCHAIN")
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let ptx = std::fs::read_to_string(target_dir.join("nvptx64-nvidia-cuda/release/kernels.ptx"))
        .unwrap();
    assert!(
        ptx.contains(".entry double") && ptx.contains("ld.shared"),
        "{ptx}"
    );
}
