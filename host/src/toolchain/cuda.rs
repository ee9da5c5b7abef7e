//! Finds the CUDA tools: the environment's, the project's own, an installed toolkit's, else PyPI wheels.
//!
//! An installed toolkit is used when it is complete and fits the pinned set: for [`CudaSet::Assembler`] toolkit and
//! CCCL at least as new as pinned, for [`CudaSet::Driver13_0`] the same CUDA release. Otherwise the pinned wheels are
//! installed, and one line says why.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::debian::Apt;
use super::error::{StepError, environment_error};
use super::machine::{Machine, is_executable};
use super::pinned::{self, PINNED};
use super::process::run;
use super::progress::note;
use super::report::Origin;
use super::version::Version;
use super::wheels;

const TOOLS: [&str; 4] = ["nvcc", "ptxas", "nvdisasm", "cuobjdump"];

/// The pinned sets of CUDA tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CudaSet {
    /// The newest: assembles every target.
    Assembler,
    /// Writes PTX that a CUDA 13.0 driver loads.
    Driver13_0,
}

impl CudaSet {
    /// The set's name in `toolchain.toml`.
    fn name(self) -> &'static str {
        match self {
            Self::Assembler => "assembler",
            Self::Driver13_0 => "driver-13.0",
        }
    }

    /// The set's pinned versions.
    pub(super) fn pinned(self) -> &'static pinned::Cuda {
        PINNED
            .cuda
            .get(self.name())
            .unwrap_or_else(|| panic!("toolchain.toml has no [cuda.\"{}\"]", self.name()))
    }

    /// Why a toolkit does not serve as this set, if it does not.
    fn objection(self, toolkit: &Toolkit) -> Option<String> {
        let pinned = self.pinned();
        let (found, wanted) = (toolkit.version.release(), pinned.version.release());
        match self {
            Self::Assembler if found < wanted => Some(format!(
                "it is CUDA {}, older than {}",
                toolkit.version, pinned.version
            )),
            Self::Driver13_0 if found != wanted => Some(format!(
                "it is CUDA {}, not {}.{}",
                toolkit.version, wanted.0, wanted.1
            )),
            _ if toolkit.cccl_version.release() < pinned.cccl.release() => Some(format!(
                "its CCCL is {}, older than {}",
                toolkit.cccl_version, pinned.cccl
            )),
            _ => None,
        }
    }
}

/// The CUDA tools of one toolkit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CudaTools {
    /// The toolkit's root: the folder that holds `bin`.
    pub root: PathBuf,
    /// The compiler driver.
    pub nvcc: PathBuf,
    /// The PTX assembler.
    pub ptxas: PathBuf,
    /// The SASS disassembler.
    pub nvdisasm: PathBuf,
    /// The reader of cubins and fat binaries.
    pub cuobjdump: PathBuf,
    /// The include folder that holds `cuda/ptx`.
    pub cccl_include: PathBuf,
    /// Version of the toolkit, as `13.5.37`.
    pub version: String,
    /// Version of CCCL, as `3.5.0`.
    pub cccl_version: String,
    /// Where the tools came from.
    pub origin: Origin,
}

/// A complete toolkit, its versions still to be judged.
#[derive(Debug)]
pub(super) struct Toolkit {
    root: PathBuf,
    cccl_include: PathBuf,
    version: Version,
    cccl_version: Version,
}

impl Toolkit {
    /// Looks for a complete toolkit at `root`; the error says what is missing.
    pub fn at(root: &Path) -> Result<Self, String> {
        let bin = root.join("bin");
        let missing: Vec<_> = TOOLS
            .iter()
            .filter(|tool| !is_executable(&bin.join(tool)))
            .map(|tool| format!("bin/{tool}"))
            .collect();
        if !missing.is_empty() {
            return Err(format!("{} has no {}", root.display(), missing.join(", ")));
        }
        let cccl_include = ["include/cccl", "include"]
            .map(|dir| root.join(dir))
            .into_iter()
            .find(|dir| dir.join("cuda/ptx").exists())
            .ok_or_else(|| {
                format!(
                    "{} has no CCCL headers with cuda/ptx under include",
                    root.display()
                )
            })?;
        Ok(Self {
            version: nvcc_version(&bin.join("nvcc"))?,
            cccl_version: cccl_version(&cccl_include)?,
            root: root.to_path_buf(),
            cccl_include,
        })
    }

    /// The tools, once the toolkit is chosen.
    pub fn tools(self, origin: Origin) -> CudaTools {
        let bin = self.root.join("bin");
        let [nvcc, ptxas, nvdisasm, cuobjdump] = TOOLS.map(|tool| bin.join(tool));
        CudaTools {
            root: self.root,
            nvcc,
            ptxas,
            nvdisasm,
            cuobjdump,
            cccl_include: self.cccl_include,
            version: self.version.to_string(),
            cccl_version: self.cccl_version.to_string(),
            origin,
        }
    }
}

/// The CUDA tools of a set, and the host compiler that nvcc needs.
pub(super) fn find_or_install(machine: &Machine, set: CudaSet) -> Result<CudaTools> {
    let tools = tools(machine, set)?;
    require_host_compiler(machine)?;
    Ok(tools)
}

fn tools(machine: &Machine, set: CudaSet) -> Result<CudaTools> {
    if let Some(tools) = from_environment(machine, set)? {
        return Ok(tools);
    }
    if let Some(tools) = wheels::installed(machine, set) {
        return Ok(tools);
    }
    match from_toolkit(machine, set) {
        Ok(tools) => Ok(tools),
        Err(reasons) => {
            for reason in reasons {
                note(&reason);
            }
            wheels::install(machine, set)
        }
    }
}

/// The toolkit of `CUDA_PTX_CUDA_ROOT`. It is taken as it is, but does not stand in for another CUDA release than
/// its own.
fn from_environment(machine: &Machine, set: CudaSet) -> Result<Option<CudaTools>> {
    let Some(root) = machine.named_path("CUDA_PTX_CUDA_ROOT") else {
        return Ok(None);
    };
    let toolkit = Toolkit::at(&root).map_err(|reason| {
        environment_error(
            "CUDA_PTX_CUDA_ROOT",
            reason,
            "a folder that holds bin/nvcc, bin/ptxas, bin/nvdisasm, bin/cuobjdump and the CCCL headers",
        )
    })?;
    let serves = set == CudaSet::Assembler || set.objection(&toolkit).is_none();
    Ok(serves.then(|| toolkit.tools(Origin::Environment)))
}

/// An installed toolkit that fits; the error says why each one found does not.
fn from_toolkit(machine: &Machine, set: CudaSet) -> Result<CudaTools, Vec<String>> {
    let mut reasons = Vec::new();
    for root in toolkit_roots(machine) {
        let objection = match Toolkit::at(&root) {
            Ok(toolkit) => match set.objection(&toolkit) {
                None => return Ok(toolkit.tools(Origin::Installed)),
                Some(objection) => objection,
            },
            Err(missing) => missing,
        };
        reasons.push(format!(
            "the CUDA toolkit at {} is not used: {objection}",
            root.display()
        ));
    }
    Err(reasons)
}

/// Roots of installed toolkits: the one whose nvcc is on `PATH`, then the usual place.
fn toolkit_roots(machine: &Machine) -> Vec<PathBuf> {
    let on_path = machine.find("nvcc");
    let usual = machine.system("usr/local/cuda/bin/nvcc");
    let mut roots: Vec<PathBuf> = Vec::new();
    for nvcc in on_path.into_iter().chain(Some(usual)) {
        let root = fs::canonicalize(nvcc)
            .ok()
            .and_then(|nvcc| Some(nvcc.parent()?.parent()?.to_path_buf()));
        roots.extend(root.filter(|root| !roots.contains(root)));
    }
    roots
}

fn nvcc_version(nvcc: &Path) -> Result<Version, String> {
    let output = run(Command::new(nvcc).arg("--version")).map_err(|failure| failure.cause())?;
    Version::after(", V", &output)
        .ok_or_else(|| format!("{} --version names no version", nvcc.display()))
}

fn cccl_version(include: &Path) -> Result<Version, String> {
    let header = include.join("cuda/std/__cccl/version.h");
    let text = fs::read_to_string(&header)
        .map_err(|error| format!("cannot read {}: {error}", header.display()))?;
    text.lines()
        .find_map(|line| line.strip_prefix("#define CCCL_VERSION "))
        .and_then(|number| number.trim().parse().ok())
        .map(Version::from_cccl)
        .ok_or_else(|| format!("{} defines no CCCL_VERSION", header.display()))
}

/// nvcc preprocesses and compiles the host half of a `.cu` file with g++, even when only a cubin is asked for.
fn require_host_compiler(machine: &Machine) -> Result<()> {
    if machine.var("NVCC_CCBIN").is_some() || machine.find("g++").is_some() {
        return Ok(());
    }
    let step = "give nvcc a host C++ compiler";
    let apt = Apt::new(machine).map_err(|reason| {
        StepError::new(
            step,
            format!("g++ is not on PATH, and it cannot be installed here: {reason}"),
            "install it (Debian: sudo apt-get install g++), or set NVCC_CCBIN to a C++ compiler that nvcc supports",
        )
    })?;
    apt.update();
    apt.install(step, &["g++".to_string()])
}

#[cfg(test)]
mod tests {
    use super::super::fake::Fake;
    use super::*;

    #[test]
    fn the_environment_comes_first() {
        let fake = Fake::new();
        fake.toolkit("usr/local/cuda", "13.9.1", "3.9.0");
        let root = fake.toolkit("opt/mine", "12.1.2", "2.8.0");
        let machine = fake.machine(&[("CUDA_PTX_CUDA_ROOT", root.to_str().unwrap())]);
        let tools = find_or_install(&machine, CudaSet::Assembler).unwrap();
        assert_eq!(tools.root, root);
        assert_eq!(tools.version, "12.1.2");
        assert_eq!(tools.cccl_version, "2.8.0");
        assert_eq!(tools.origin, Origin::Environment);
    }

    #[test]
    fn an_environment_root_without_nvcc_is_an_error_that_says_so() {
        let fake = Fake::new();
        let root = fake.toolkit("opt/mine", "13.5.37", "3.5.0");
        fs::remove_file(root.join("bin/nvcc")).unwrap();
        let machine = fake.machine(&[("CUDA_PTX_CUDA_ROOT", root.to_str().unwrap())]);
        let error = find_or_install(&machine, CudaSet::Assembler).unwrap_err();
        let error = error.downcast_ref::<StepError>().unwrap();
        assert_eq!(error.cause, format!("{} has no bin/nvcc", root.display()));
        assert!(error.fix.contains("unset it"), "{error}");
    }

    #[test]
    fn a_new_enough_toolkit_is_used_as_installed() {
        let fake = Fake::new();
        let root = fake.toolkit("usr/local/cuda", "13.6.1", "3.6.0");
        let tools = find_or_install(&fake.machine(&[]), CudaSet::Assembler).unwrap();
        assert_eq!(tools.root, fs::canonicalize(root).unwrap());
        assert_eq!(tools.origin, Origin::Installed);
    }

    #[test]
    fn a_toolkit_that_does_not_fit_is_left_with_its_reason() {
        let fake = Fake::new();
        let machine = fake.machine(&[]);
        for (version, cccl, reason) in [
            ("13.4.92", "3.5.0", "it is CUDA 13.4.92, older than 13.5.37"),
            ("13.5.37", "3.4.9", "its CCCL is 3.4.9, older than 3.5.0"),
        ] {
            fake.toolkit("usr/local/cuda", version, cccl);
            let reasons = from_toolkit(&machine, CudaSet::Assembler).unwrap_err();
            assert_eq!(reasons.len(), 1);
            assert!(reasons[0].contains(reason), "{reasons:?}");
        }
    }

    #[test]
    fn a_newer_toolkit_does_not_stand_in_for_the_driver_set() {
        let fake = Fake::new();
        fake.toolkit("usr/local/cuda", "13.6.1", "3.6.0");
        let reasons = from_toolkit(&fake.machine(&[]), CudaSet::Driver13_0).unwrap_err();
        assert!(
            reasons[0].contains("it is CUDA 13.6.1, not 13.0"),
            "{reasons:?}"
        );
    }

    #[test]
    fn a_toolkit_without_ptx_headers_is_incomplete() {
        let fake = Fake::new();
        let root = fake.toolkit("usr/local/cuda", "13.6.1", "3.6.0");
        fs::remove_file(root.join("include/cccl/cuda/ptx")).unwrap();
        assert!(Toolkit::at(&root).unwrap_err().contains("cuda/ptx"));
    }

    #[test]
    fn without_gxx_and_without_rights_the_fix_names_the_package() {
        let fake = Fake::new();
        fake.toolkit("usr/local/cuda", "13.6.1", "3.6.0");
        fs::remove_file(fake.path("usr/bin/g++")).unwrap();
        fake.apt("1.96.0");
        let error = find_or_install(&fake.machine(&[]), CudaSet::Assembler).unwrap_err();
        let error = error.downcast_ref::<StepError>().unwrap();
        assert!(error.cause.contains("not root"), "{error}");
        assert!(error.fix.contains("apt-get install g++"), "{error}");
    }
}
