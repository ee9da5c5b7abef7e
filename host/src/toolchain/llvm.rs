//! Finds the LLVM tools of the link stage. They must read the bitcode that rustc writes, so their major version is at
//! least that of rustc's LLVM; the same one is preferred.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::device::Compiler;
use super::error::{StepError, environment_error};
use super::machine::{Machine, is_executable};
use super::process::run;
use super::report::Origin;
use super::version::Version;

/// The LLVM tools that the link stage runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LlvmTools {
    /// Links bitcode modules.
    pub llvm_link: PathBuf,
    /// Optimises a module.
    pub opt: PathBuf,
    /// Writes PTX.
    pub llc: PathBuf,
}

impl LlvmTools {
    /// The tools of a folder, if all are in it.
    fn in_dir(dir: &Path) -> Option<Self> {
        let tool = |name| Some(dir.join(name)).filter(|path| is_executable(path));
        Some(Self {
            llvm_link: tool("llvm-link")?,
            opt: tool("opt")?,
            llc: tool("llc")?,
        })
    }
}

/// LLVM tools with what is known of them.
#[derive(Debug, Clone)]
pub(super) struct Llvm {
    pub tools: LlvmTools,
    pub version: Version,
    pub origin: Origin,
}

impl Llvm {
    /// The tools of a folder; the error says what is missing.
    pub fn at(dir: &Path, origin: Origin) -> Result<Self, String> {
        let tools = LlvmTools::in_dir(dir)
            .ok_or_else(|| format!("{} does not hold llvm-link, opt and llc", dir.display()))?;
        let said =
            run(Command::new(&tools.llc).arg("--version")).map_err(|failure| failure.cause())?;
        let version = Version::after("LLVM version", &said)
            .ok_or_else(|| format!("{} --version names no version", tools.llc.display()))?;
        if !said.contains("nvptx64") {
            return Err(format!(
                "{} is built without the nvptx64 target",
                tools.llc.display()
            ));
        }
        Ok(Self {
            tools,
            version,
            origin,
        })
    }

    /// The tools, if they read the bitcode of `compiler`.
    pub fn reading(self, compiler: &Compiler) -> Result<Self, String> {
        if self.version.major >= compiler.llvm.major {
            return Ok(self);
        }
        Err(format!(
            "its LLVM is {}, and the LLVM tools in {} are {}: they must be LLVM {} or newer to read its bitcode",
            compiler.llvm,
            self.tools.llc.parent().unwrap_or(Path::new("")).display(),
            self.version,
            compiler.llvm.major
        ))
    }
}

/// The LLVM tools of `CUDA_PTX_LLVM_BIN`, if it is set.
pub(super) fn from_environment(machine: &Machine) -> Result<Option<Llvm>, StepError> {
    let Some(dir) = machine.named_path("CUDA_PTX_LLVM_BIN") else {
        return Ok(None);
    };
    Llvm::at(&dir, Origin::Environment)
        .map(Some)
        .map_err(|reason| {
            environment_error("CUDA_PTX_LLVM_BIN", reason, "the bin folder of an LLVM")
        })
}

/// LLVM tools for a compiler: those of its own toolchain, else the system's nearest.
pub(super) fn find(machine: &Machine, compiler: &Compiler) -> Result<Llvm, String> {
    let own = compiler
        .sysroot
        .join("lib/rustlib")
        .join(&compiler.host)
        .join("bin");
    let own = (own, compiler.origin);
    let mut rejected = None;
    for (dir, origin) in [own]
        .into_iter()
        .chain(system(machine, compiler.llvm.major))
    {
        if LlvmTools::in_dir(&dir).is_none() {
            continue;
        }
        match Llvm::at(&dir, origin).and_then(|llvm| llvm.reading(compiler)) {
            Ok(llvm) => return Ok(llvm),
            Err(reason) => rejected = rejected.or(Some(reason)),
        }
    }
    Err(rejected.unwrap_or_else(|| {
        format!(
            "its LLVM is {}, and there is no llvm-link, opt and llc of LLVM {} or newer",
            compiler.llvm, compiler.llvm.major
        )
    }))
}

/// Folders of the system's LLVMs: those that name a fitting major version, nearest first, then `PATH`.
fn system(machine: &Machine, major: u32) -> Vec<(PathBuf, Origin)> {
    let debian = machine.system("etc/debian_version").exists();
    let packaged = match debian {
        true => Origin::Debian,
        false => Origin::Installed,
    };
    let mut named: Vec<(u32, PathBuf)> = [("usr/lib", "llvm-"), ("usr/lib64", "llvm")]
        .into_iter()
        .flat_map(|(parent, prefix)| {
            let entries = fs::read_dir(machine.system(parent)).into_iter().flatten();
            entries.flatten().filter_map(move |entry| {
                let name = entry.file_name().into_string().ok()?;
                let major = name.strip_prefix(prefix)?.parse().ok()?;
                Some((major, entry.path().join("bin")))
            })
        })
        .filter(|&(found, _)| found >= major)
        .collect();
    named.sort();
    let named = named.into_iter().map(|(_, dir)| (dir, packaged));
    let path = machine
        .path()
        .into_iter()
        .map(|dir| (dir, Origin::Installed));
    named.chain(path).collect()
}
