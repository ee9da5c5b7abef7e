//! compute-sanitizer around child processes, on request.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use clap::ValueEnum;

/// The exit code of compute-sanitizer when it has found something.
pub(super) const FOUND: i32 = 86;

/// How many times as long as without it a job may take; the first launch of a kernel takes longest.
pub const SLOWDOWN: u32 = 5;

/// Where it lies in a CUDA toolkit.
const IN_TOOLKIT: [&str; 2] = ["bin", "compute-sanitizer"];

/// A tool of compute-sanitizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Tool {
    /// Accesses out of bounds or misaligned.
    Memcheck,
    /// Races in shared memory.
    Racecheck,
    /// Reads of global memory that nothing was written to.
    Initcheck,
    /// Barriers that not all threads reach.
    Synccheck,
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Memcheck => "memcheck",
            Self::Racecheck => "racecheck",
            Self::Initcheck => "initcheck",
            Self::Synccheck => "synccheck",
        })
    }
}

/// compute-sanitizer with one of its tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sanitizer {
    program: PathBuf,
    tool: Tool,
    log: Option<PathBuf>,
    reports: u32,
}

impl Sanitizer {
    /// This compute-sanitizer.
    #[must_use]
    pub fn at(program: impl Into<PathBuf>, tool: Tool) -> Self {
        Self {
            program: program.into(),
            tool,
            log: None,
            reports: 3,
        }
    }

    /// Looks for it on `PATH`, and in the toolkits of `CUDA_HOME`, `CUDA_PATH` and `/usr/local/cuda`.
    ///
    /// # Errors
    /// It is in none of them.
    pub fn find(tool: Tool) -> Result<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let toolkits = ["CUDA_HOME", "CUDA_PATH"].map(std::env::var_os);
        let toolkits = toolkits
            .into_iter()
            .flatten()
            .map(PathBuf::from)
            .chain([PathBuf::from("/usr/local/cuda")]);
        Self::find_in(tool, &path, toolkits).context(
            "compute-sanitizer is not on PATH, nor in CUDA_HOME, CUDA_PATH or /usr/local/cuda; \
             it comes with the CUDA toolkit",
        )
    }

    fn find_in(
        tool: Tool,
        path: &OsStr,
        toolkits: impl IntoIterator<Item = PathBuf>,
    ) -> Option<Self> {
        let folders = toolkits
            .into_iter()
            .flat_map(|toolkit| IN_TOOLKIT.map(|folder| toolkit.join(folder)));
        std::env::split_paths(path)
            .chain(folders)
            .map(|folder| folder.join("compute-sanitizer"))
            .find(|program| program.is_file())
            .map(|program| Self::at(program, tool))
    }

    /// The tool.
    #[must_use]
    pub fn tool(&self) -> Tool {
        self.tool
    }

    /// The same, writing its words to a file, `reports` reports at most.
    #[must_use]
    pub fn log(&self, file: impl Into<PathBuf>, reports: u32) -> Self {
        Self {
            log: Some(file.into()),
            reports,
            ..self.clone()
        }
    }

    /// What `--version` says, the line with the number.
    ///
    /// # Errors
    /// If it does not start.
    pub fn version(&self) -> Result<String> {
        let output = Command::new(&self.program)
            .arg("--version")
            .output()
            .with_context(|| format!("cannot run {}", self.program.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().find(|line| line.starts_with("Version "));
        Ok(line.unwrap_or(text.trim()).to_owned())
    }

    /// Starts `program` under it. Errors of API calls are left to the program, which knows those it wants.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg("--tool")
            .arg(self.tool.to_string())
            .arg("--error-exitcode")
            .arg(FOUND.to_string())
            .args(["--report-api-errors", "no"])
            .arg("--print-limit")
            .arg(self.reports.to_string());
        match &self.log {
            None => command.args(["--show-backtrace", "no"]),
            // The functions between the kernel and the place say which kernel it is.
            Some(log) => command
                .args(["--show-backtrace", "device", "--log-file"])
                .arg(log),
        };
        command.arg(program);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_found_in_a_toolkit_and_given_the_program() {
        let toolkit = tempfile::tempdir().unwrap();
        let find = || {
            Sanitizer::find_in(
                Tool::Racecheck,
                OsStr::new("/nowhere"),
                [toolkit.path().into()],
            )
        };
        assert_eq!(find(), None);
        let folder = toolkit.path().join("compute-sanitizer");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("compute-sanitizer"), "").unwrap();
        let command = find().unwrap().command(Path::new("/bin/true"));
        assert_eq!(command.get_program(), folder.join("compute-sanitizer"));
        let arguments = Vec::from_iter(command.get_args());
        assert!(arguments.starts_with(&["--tool", "racecheck"].map(OsStr::new)));
        assert_eq!(arguments.last(), Some(&OsStr::new("/bin/true")));
    }
}
