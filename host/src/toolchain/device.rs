//! Finds the device toolchain: a rustc that carries its sources (for `-Zbuild-std=core`), and LLVM tools that read
//! what it writes. The environment's, else a rustup toolchain, else the distribution's; Debian's can be installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::debian::Apt;
use super::error::{StepError, environment_error};
use super::llvm::{self, Llvm, LlvmTools};
use super::lock::Lock;
use super::machine::{Machine, is_executable};
use super::pinned::PINNED;
use super::process::run;
use super::progress::Progress;
use super::report::Origin;
use super::version::Version;

/// What builds device code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceToolchain {
    /// The cargo to run, with `RUSTC` set to [`rustc`](Self::rustc).
    pub cargo: PathBuf,
    /// A compiler whose sysroot holds the sources of `core`.
    pub rustc: PathBuf,
    /// Whether `RUSTC_BOOTSTRAP=1` is needed for unstable features.
    pub bootstrap: bool,
    /// The tools of the link stage.
    pub llvm: LlvmTools,
    /// Version of rustc, as `1.96.0`.
    pub rustc_version: String,
    /// Version of the LLVM tools, as `22.1.8`.
    pub llvm_version: String,
    /// Where rustc came from.
    pub rustc_origin: Origin,
    /// Where the LLVM tools came from.
    pub llvm_origin: Origin,
}

/// A rustc that is there, before anything is asked of it.
struct Candidate {
    rustc: PathBuf,
    sysroot: PathBuf,
    origin: Origin,
}

/// A rustc that qualifies.
#[derive(Debug)]
pub(super) struct Compiler {
    rustc: PathBuf,
    pub sysroot: PathBuf,
    pub origin: Origin,
    version: Version,
    nightly: bool,
    pub host: String,
    /// The version of its LLVM.
    pub llvm: Version,
}

/// The device toolchain of a machine.
pub(super) fn find_or_install(machine: &Machine) -> Result<DeviceToolchain> {
    let llvm = llvm::from_environment(machine)?;
    if let Some(rustc) = machine.named_path("CUDA_PTX_RUSTC") {
        let found =
            from_environment(rustc).and_then(|candidate| candidate.qualify(machine, llvm.as_ref()));
        return found.map_err(|reason| {
            environment_error("CUDA_PTX_RUSTC", reason, "a rustc with its sources").into()
        });
    }
    match find(machine, llvm.as_ref()) {
        Ok(found) => Ok(found),
        // Nothing that could be installed would make these tools fit.
        Err(reasons) if llvm.is_some() => {
            let what = "the bin folder of an LLVM that reads rustc's bitcode";
            Err(environment_error("CUDA_PTX_LLVM_BIN", reasons.join("\n"), what).into())
        }
        Err(_) => install(machine),
    }
}

/// The first toolchain that qualifies; the error says why each one found does not.
fn find(machine: &Machine, llvm: Option<&Llvm>) -> Result<DeviceToolchain, Vec<String>> {
    let mut reasons = Vec::new();
    for candidate in candidates(machine) {
        let rustc = candidate.rustc.display().to_string();
        match candidate.qualify(machine, llvm) {
            Ok(found) => return Ok(found),
            Err(reason) => reasons.push(format!("{rustc}: {reason}")),
        }
    }
    Err(reasons)
}

fn from_environment(rustc: PathBuf) -> Result<Candidate, String> {
    let sysroot = run(Command::new(&rustc).args(["--print", "sysroot"]))
        .map_err(|failure| failure.cause())?;
    Ok(Candidate {
        rustc,
        sysroot: PathBuf::from(sysroot.trim()),
        origin: Origin::Environment,
    })
}

/// Every rustc that is there, in the order of preference.
fn candidates(machine: &Machine) -> Vec<Candidate> {
    let distribution = match machine.system("etc/debian_version").exists() {
        true => Origin::Debian,
        false => Origin::Installed,
    };
    rustup_toolchains(machine)
        .into_iter()
        .map(|sysroot| (sysroot, Origin::Rustup))
        .chain([(machine.system("usr"), distribution)])
        .map(|(sysroot, origin)| Candidate {
            rustc: sysroot.join("bin/rustc"),
            sysroot,
            origin,
        })
        .filter(|candidate| is_executable(&candidate.rustc))
        .collect()
}

/// Folders of rustup's toolchains: the active one, nightlies, the others.
fn rustup_toolchains(machine: &Machine) -> Vec<PathBuf> {
    let Some(home) = machine
        .var("RUSTUP_HOME")
        .or_else(|| Some(machine.var("HOME")?.join(".rustup")))
    else {
        return Vec::new();
    };
    let active = machine.var("RUSTUP_TOOLCHAIN");
    let rank = |dir: &PathBuf| {
        let name = dir.file_name().unwrap_or_default();
        let is_active = active.as_deref().is_some_and(|active| active == name);
        let is_nightly = name.to_string_lossy().starts_with("nightly");
        (!is_active, !is_nightly)
    };
    let mut dirs: Vec<PathBuf> = fs::read_dir(home.join("toolchains"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    dirs.sort();
    dirs.sort_by_key(rank);
    dirs
}

impl Candidate {
    /// Checks sources, versions and LLVM tools, the cheapest first; the error says what is wrong.
    fn qualify(self, machine: &Machine, llvm: Option<&Llvm>) -> Result<DeviceToolchain, String> {
        let compiler = self.identify()?;
        let llvm = match llvm {
            Some(llvm) => llvm.clone().reading(&compiler)?,
            None => llvm::find(machine, &compiler)?,
        };
        let own_cargo = Some(compiler.sysroot.join("bin/cargo"))
            .filter(|cargo| compiler.origin == Origin::Rustup && is_executable(cargo));
        let bootstrap = !(compiler.nightly && own_cargo.is_some());
        let cargo = own_cargo
            .or_else(|| machine.var("CARGO"))
            .unwrap_or_else(|| PathBuf::from("cargo"));
        Ok(DeviceToolchain {
            cargo,
            rustc: compiler.rustc,
            bootstrap,
            llvm: llvm.tools,
            rustc_version: compiler.version.to_string(),
            llvm_version: llvm.version.to_string(),
            rustc_origin: compiler.origin,
            llvm_origin: llvm.origin,
        })
    }

    fn identify(self) -> Result<Compiler, String> {
        if !sources(&self.sysroot).is_file() {
            return Err(format!(
                "no sources of core under {} (rust-src)",
                self.sysroot.display()
            ));
        }
        let said = run(Command::new(&self.rustc).arg("-vV")).map_err(|failure| failure.cause())?;
        let number = |label| {
            Version::after(label, &said).ok_or_else(|| format!("rustc -vV has no line `{label}`"))
        };
        let version = number("release:")?;
        if version < PINNED.rust.minimum {
            return Err(format!(
                "it is {version}, older than {}",
                PINNED.rust.minimum
            ));
        }
        let host = said.lines().find_map(|line| line.strip_prefix("host: "));
        Ok(Compiler {
            version,
            nightly: said
                .lines()
                .any(|line| line.starts_with("release:") && line.contains("nightly")),
            host: host.unwrap_or_default().to_string(),
            llvm: number("LLVM version:")?,
            rustc: self.rustc,
            sysroot: self.sysroot,
            origin: self.origin,
        })
    }
}

/// The file that is there when the sources of the library are.
fn sources(sysroot: &Path) -> PathBuf {
    sysroot.join("lib/rustlib/src/rust/library/core/src/lib.rs")
}

const STEP: &str = "set up the device toolchain";

/// Installs Debian's packages where that is possible, else rustup's components.
fn install(machine: &Machine) -> Result<DeviceToolchain> {
    let _lock = Lock::wait(&machine.toolchains, "the device toolchain").map_err(|error| {
        let dir = machine.toolchains.display();
        StepError::new(
            STEP,
            format!("cannot lock {dir}: {error}"),
            format!("make {dir} writable, or set CARGO_TARGET_DIR to a folder that is"),
        )
    })?;
    let mut reasons = match find(machine, None) {
        Ok(found) => return Ok(found),
        Err(reasons) => reasons,
    };
    match packages(machine) {
        Ok(apt) => apt.install(STEP, &PINNED.rust.debian)?,
        Err(no_packages) => {
            reasons.push(no_packages);
            if let Err(no_components) = add_components(machine) {
                reasons.push(no_components);
                return Err(missing(machine, reasons).into());
            }
        }
    }
    find(machine, None).map_err(|reasons| missing(machine, reasons).into())
}

/// An apt that offers a new enough rustc; the error says why there is none.
fn packages(machine: &Machine) -> Result<Apt, String> {
    let apt = Apt::new(machine)?;
    apt.update();
    let package = &PINNED.rust.debian[0];
    match apt.candidate(package) {
        Some(version) if version >= PINNED.rust.minimum => Ok(apt),
        Some(version) => Err(format!(
            "Debian's {package} is {version} here, older than {}",
            PINNED.rust.minimum
        )),
        None => Err(format!("this system's package lists have no {package}")),
    }
}

/// Has rustup add the components to a nightly; the error says why that was not possible.
fn add_components(machine: &Machine) -> Result<(), String> {
    let rustup = machine
        .find("rustup")
        .ok_or("this system has no rustup".to_string())?;
    let progress = Progress::start("rustup", 1);
    progress.step(&format!(
        "component add {}",
        PINNED.rust.components.join(" ")
    ));
    run(Command::new(rustup)
        .args(["component", "add", "--toolchain", "nightly"])
        .args(&PINNED.rust.components))
    .map(drop)
    .map_err(|failure| failure.cause())
}

fn missing(machine: &Machine, reasons: Vec<String>) -> StepError {
    let rust = &*PINNED.rust.debian;
    let mut fixes = Vec::new();
    if machine.find("apt-get").is_some() {
        let packages = rust.join(" ");
        fixes.push(format!(
            "sudo apt-get update && sudo apt-get install {packages}"
        ));
    }
    fixes.push(format!(
        "rustup component add --toolchain nightly {}",
        PINNED.rust.components.join(" ")
    ));
    fixes.push("set CUDA_PTX_RUSTC and CUDA_PTX_LLVM_BIN to ones you have".to_string());
    let wanted = format!(
        "needed: a rustc of at least {} with its sources, and llvm-link, opt and llc of its LLVM's major version",
        PINNED.rust.minimum
    );
    let cause = [wanted].into_iter().chain(reasons).collect::<Vec<_>>();
    StepError::new(STEP, cause.join("\n"), fixes.join("\nor: "))
}

#[cfg(test)]
mod tests {
    use super::super::fake::Fake;
    use super::*;

    const NIGHTLY: &str = "home/.rustup/toolchains/nightly-x86_64-unknown-linux-gnu";
    const STABLE: &str = "home/.rustup/toolchains/1.98.0-x86_64-unknown-linux-gnu";

    fn step_error(result: Result<DeviceToolchain>) -> StepError {
        result.unwrap_err().downcast::<StepError>().unwrap()
    }

    #[test]
    fn a_nightly_with_sources_and_tools_comes_before_stable_and_debian() {
        let fake = Fake::new();
        fake.rustc(STABLE, "1.98.0", "22.1.4");
        let nightly = fake.rustc(NIGHTLY, "1.99.0-nightly", "23.1.0");
        fake.rustc("usr", "1.96.0", "22.1.8");
        fake.llvm("usr/lib/llvm-22/bin", "22.1.8");
        let own = format!("{NIGHTLY}/lib/rustlib/x86_64-unknown-linux-gnu/bin");
        let own = fake.llvm(&own, "23.1.0");
        fake.tool(&format!("{NIGHTLY}/bin/cargo"), "");
        let found = find_or_install(&fake.machine(&[])).unwrap();
        assert_eq!(found.rustc, nightly.join("bin/rustc"));
        assert_eq!(found.cargo, nightly.join("bin/cargo"));
        assert_eq!(found.llvm.opt, own.join("opt"));
        assert!(!found.bootstrap);
        assert_eq!(found.llvm_version, "23.1.0");
        assert_eq!(
            (found.rustc_origin, found.llvm_origin),
            (Origin::Rustup, Origin::Rustup)
        );
    }

    #[test]
    fn a_nightly_whose_llvm_is_newer_than_every_tool_yields_to_debian() {
        let fake = Fake::new();
        fake.rustc(NIGHTLY, "1.99.0-nightly", "23.1.0");
        let debian = fake.rustc("usr", "1.96.0", "22.1.8");
        fake.llvm("usr/lib/llvm-14/bin", "14.0.6");
        let llvm = fake.llvm("usr/lib/llvm-22/bin", "22.1.8");
        let found = find_or_install(&fake.machine(&[("CARGO", "/some/cargo")])).unwrap();
        assert_eq!(found.rustc, debian.join("bin/rustc"));
        assert_eq!(found.cargo, Path::new("/some/cargo"));
        assert_eq!(found.llvm.llvm_link, llvm.join("llvm-link"));
        assert!(found.bootstrap);
        assert_eq!(
            (found.rustc_origin, found.llvm_origin),
            (Origin::Debian, Origin::Debian)
        );
    }

    #[test]
    fn the_nearest_llvm_that_is_new_enough_is_taken() {
        let fake = Fake::new();
        fake.rustc("usr", "1.96.0", "22.1.8");
        for major in ["100", "21", "23", "24"] {
            fake.llvm(
                &format!("usr/lib/llvm-{major}/bin"),
                &format!("{major}.1.0"),
            );
        }
        let found = find_or_install(&fake.machine(&[])).unwrap();
        assert_eq!(found.llvm_version, "23.1.0");
    }

    #[test]
    fn without_sources_without_rights_the_message_lists_what_was_found_and_the_commands() {
        let fake = Fake::new();
        let nightly = fake.rustc(NIGHTLY, "1.99.0-nightly", "22.1.4");
        fs::remove_file(sources(&nightly)).unwrap();
        fake.rustc("usr", "1.95.0", "22.1.8");
        fake.tool("usr/bin/apt-get", "exit 1");
        fake.tool("usr/bin/apt-cache", "exit 1");
        let error = step_error(find_or_install(&fake.machine(&[])));
        assert_eq!(error.step, STEP);
        assert!(error.cause.contains("no sources of core"), "{error}");
        assert!(
            error.cause.contains("it is 1.95.0, older than 1.96.0"),
            "{error}"
        );
        assert!(error.cause.contains("not root"), "{error}");
        assert!(error.cause.contains("no rustup"), "{error}");
        assert!(
            error
                .fix
                .contains("apt-get install rustc-web rust-web-src llvm-22"),
            "{error}"
        );
        assert!(error.fix.contains("rustup component add"), "{error}");
    }

    #[test]
    fn debian_packages_are_installed_by_root() {
        let fake = Fake::new();
        fake.apt("1.96.0+dfsg1-1~deb12u2");
        fake.rustc("packages", "1.96.0", "22.1.8");
        fake.llvm("packages/lib/llvm-22/bin", "22.1.8");
        let mut machine = fake.machine(&[]);
        machine.is_root = true;
        let found = find_or_install(&machine).unwrap();
        assert_eq!(found.rustc, fake.path("usr/bin/rustc"));
        assert_eq!(fake.calls("apt-install"), 1);
        assert_eq!(find_or_install(&machine).unwrap(), found);
        assert_eq!(fake.calls("apt-install"), 1);
    }

    #[test]
    fn a_debian_with_an_older_rustc_is_not_touched() {
        let fake = Fake::new();
        fake.apt("1.85.0+dfsg3-1~deb12u3");
        let mut machine = fake.machine(&[]);
        machine.is_root = true;
        let error = step_error(find_or_install(&machine));
        assert!(
            error
                .cause
                .contains("rustc-web is 1.85.0 here, older than 1.96.0"),
            "{error}"
        );
        assert_eq!(fake.calls("apt-install"), 0);
    }

    #[test]
    fn llvm_tools_of_the_environment_that_are_too_old_are_an_error_with_both_versions() {
        let fake = Fake::new();
        fake.rustc("usr", "1.96.0", "22.1.8");
        fake.llvm("usr/lib/llvm-22/bin", "22.1.8");
        let old = fake.llvm("opt/llvm/bin", "14.0.6");
        let machine = fake.machine(&[("CUDA_PTX_LLVM_BIN", old.to_str().unwrap())]);
        let error = step_error(find_or_install(&machine));
        assert!(error.cause.contains("its LLVM is 22.1.8"), "{error}");
        assert!(error.cause.contains("are 14.0.6"), "{error}");
    }

    #[test]
    fn the_environments_rustc_is_used_or_refused_but_never_replaced() {
        let fake = Fake::new();
        fake.rustc("usr", "1.96.0", "22.1.8");
        fake.llvm("usr/lib/llvm-22/bin", "22.1.8");
        let mine = fake.rustc("opt/rust", "1.97.0", "22.1.4");
        let rustc = mine.join("bin/rustc");
        let machine = fake.machine(&[("CUDA_PTX_RUSTC", rustc.to_str().unwrap())]);
        let found = find_or_install(&machine).unwrap();
        assert_eq!(found.rustc, rustc);
        assert_eq!(found.rustc_origin, Origin::Environment);

        fs::remove_file(sources(&mine)).unwrap();
        let error = step_error(find_or_install(&machine));
        assert!(error.step.contains("CUDA_PTX_RUSTC"), "{error}");
        assert!(error.cause.contains("no sources of core"), "{error}");
    }

    #[test]
    fn an_llc_without_nvptx_is_refused() {
        let fake = Fake::new();
        fake.rustc("usr", "1.96.0", "22.1.8");
        let dir = fake.llvm("usr/lib/llvm-22/bin", "22.1.8");
        fake.tool("usr/lib/llvm-22/bin/llc", "echo 'LLVM version 22.1.8'");
        let reasons = find(&fake.machine(&[]), None).unwrap_err();
        let refused = format!("{} is built without", dir.join("llc").display());
        assert!(reasons[0].contains(&refused), "{reasons:?}");
    }
}
