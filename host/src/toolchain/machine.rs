//! What the machine offers, gathered in one place so that a test can put a different one together.

use std::collections::HashMap;
use std::env;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Environment, search path, privileges and folders of the machine that is set up.
pub(super) struct Machine {
    /// Environment variables.
    pub vars: HashMap<OsString, OsString>,
    /// Root of the file system; system folders are looked up under it.
    pub system: PathBuf,
    /// Whether packages may be installed.
    pub is_root: bool,
    /// Where the project keeps what it installs.
    pub toolchains: PathBuf,
}

impl Machine {
    /// The machine this process runs on.
    pub fn this() -> Self {
        Self {
            vars: env::vars_os().collect(),
            system: PathBuf::from("/"),
            // SAFETY: geteuid takes nothing, touches no memory and cannot fail.
            is_root: unsafe { libc::geteuid() } == 0,
            toolchains: super::target_dir().join("toolchain"),
        }
    }

    /// An environment variable as a path; an empty one counts as not set.
    pub fn var(&self, name: &str) -> Option<PathBuf> {
        let value = self.vars.get(&OsString::from(name))?;
        (!value.is_empty()).then(|| PathBuf::from(value))
    }

    /// The path that one of the project's own variables names, made absolute: tools run in other folders.
    pub fn named_path(&self, name: &str) -> Option<PathBuf> {
        let path = self.var(name)?;
        Some(std::path::absolute(&path).unwrap_or(path))
    }

    /// The folders of `PATH`.
    pub fn path(&self) -> Vec<PathBuf> {
        self.var("PATH")
            .map(|path| env::split_paths(&path).collect())
            .unwrap_or_default()
    }

    /// The executable that `PATH` gives for a name.
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        self.path()
            .into_iter()
            .map(|dir| dir.join(name))
            .find(|file| is_executable(file))
    }

    /// A path under the root of the file system, given without its leading slash.
    pub fn system(&self, path: &str) -> PathBuf {
        self.system.join(path)
    }
}

/// Whether a path names a file with a run bit.
pub(super) fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}
