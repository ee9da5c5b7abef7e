//! Installs Debian packages, where that is allowed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::error::StepError;
use super::machine::Machine;
use super::process::run;
use super::progress::Progress;
use super::version::Version;

/// A package manager that this process may use.
pub(super) struct Apt {
    apt_get: PathBuf,
    apt_cache: PathBuf,
}

impl Apt {
    /// The machine's apt; the error says why packages cannot be installed.
    pub fn new(machine: &Machine) -> Result<Self, String> {
        let tool = |name| {
            machine
                .find(name)
                .ok_or_else(|| format!("this system has no {name}"))
        };
        let (apt_get, apt_cache) = (tool("apt-get")?, tool("apt-cache")?);
        if !machine.is_root {
            return Err("Debian packages need root, and this user is not root".to_string());
        }
        Ok(Self { apt_get, apt_cache })
    }

    /// Fetches the package lists. A failure is not the end: the lists at hand may do, and if not, the installation
    /// says so.
    pub fn update(&self) {
        let progress = Progress::start("Debian packages", 1);
        progress.step("apt-get update");
        let _ = run(self.apt_get().arg("update"));
    }

    /// The version that would be installed.
    pub fn candidate(&self, package: &str) -> Option<Version> {
        let policy = run(Command::new(&self.apt_cache)
            .env("LC_ALL", "C")
            .args(["policy", package]))
        .ok()?;
        Version::after("Candidate:", &policy)
    }

    /// Installs packages, never at the price of removing others.
    pub fn install(&self, step: &str, packages: &[String]) -> Result<()> {
        let list = packages.join(" ");
        let progress = Progress::start("Debian packages", 1);
        progress.step(&format!("apt-get install {list}"));
        run(self
            .apt_get()
            .args(["install", "-y", "--no-install-recommends", "--no-remove"])
            .args(packages))
        .map_err(|failure| {
            let by_hand = format!("apt-get update && apt-get install {list}");
            let fix = failure.fix(Path::new("/"), by_hand);
            StepError::new(step, failure.cause(), fix)
        })?;
        Ok(())
    }

    fn apt_get(&self) -> Command {
        let mut command = Command::new(&self.apt_get);
        command
            .env("DEBIAN_FRONTEND", "noninteractive")
            .env("LC_ALL", "C")
            .args(["-q", "-o", "DPkg::Lock::Timeout=300"]);
        command
    }
}
