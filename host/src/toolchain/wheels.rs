//! The pinned CUDA wheels from PyPI, unpacked into a folder of their own.
//!
//! An installation is built beside its final place and renamed into it, so what lies there is complete. A stamp file
//! in it lists the wheels; a folder whose stamp does not match the pinned versions is replaced.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::cuda::{CudaSet, CudaTools, Toolkit};
use super::error::StepError;
use super::lock::Lock;
use super::machine::Machine;
use super::process::{disk_full_fix, run};
use super::progress::Progress;
use super::report::Origin;

/// Where the wheels of CUDA 13 put their files.
const TOOLKIT: &str = "nvidia/cu13";
const STAMP: &str = "wheels.txt";

/// The tools of a set that is already installed.
pub(super) fn installed(machine: &Machine, set: CudaSet) -> Option<CudaTools> {
    let home = Install::new(machine, set).home;
    let stamp = fs::read_to_string(home.join(STAMP)).ok()?;
    let toolkit = (stamp == stamp_of(set)).then(|| Toolkit::at(&home.join(TOOLKIT)))?;
    Some(toolkit.ok()?.tools(Origin::Wheels))
}

/// Downloads and unpacks the wheels of a set, unless another process has just done so.
pub(super) fn install(machine: &Machine, set: CudaSet) -> Result<CudaTools> {
    let install = Install::new(machine, set);
    let _lock = Lock::wait(&machine.toolchains, &install.name)
        .map_err(|error| install.io_error("make the folder of the tools", error))?;
    if let Some(tools) = installed(machine, set) {
        return Ok(tools);
    }
    install.remove_leftovers();
    let pip = Pip::find(machine, &install)?;
    let partial = tempfile::Builder::new()
        .prefix(&install.partial_prefix())
        .tempdir_in(&machine.toolchains)
        .map_err(|error| install.io_error("make a folder to unpack in", error))?;
    install.fill(&pip, partial.path())?;
    install
        .move_into_place(partial.path())
        .map_err(|error| install.io_error("move the tools into place", error))?;
    Toolkit::at(&install.home.join(TOOLKIT))
        .map(|toolkit| toolkit.tools(Origin::Wheels))
        .map_err(|reason| install.error("use the unpacked tools", reason).into())
}

fn stamp_of(set: CudaSet) -> String {
    set.pinned().requirements().join("\n") + "\n"
}

/// One set's installation.
struct Install {
    set: CudaSet,
    /// `cuda-VERSION`.
    name: String,
    home: PathBuf,
}

impl Install {
    fn new(machine: &Machine, set: CudaSet) -> Self {
        let name = format!("cuda-{}", set.pinned().version);
        let home = machine.toolchains.join(&name);
        Self { set, name, home }
    }

    fn partial_prefix(&self) -> String {
        format!(".{}.partial-", self.name)
    }

    /// Removes what killed processes left; the lock is held, so no one is using it.
    fn remove_leftovers(&self) {
        let Ok(entries) = fs::read_dir(self.toolchains()) else {
            return;
        };
        let prefix = self.partial_prefix();
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().starts_with(&prefix) {
                // A leftover that cannot be removed costs room and nothing else.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    fn toolchains(&self) -> &Path {
        self.home
            .parent()
            .expect("the set's folder is a child of the toolchains'")
    }

    /// Downloads and unpacks every wheel into `dir`, and stamps it.
    fn fill(&self, pip: &Pip, dir: &Path) -> Result<()> {
        let requirements = self.set.pinned().requirements();
        let title = format!("CUDA {} from PyPI", self.set.pinned().version);
        let progress = Progress::start(&title, requirements.len());
        for requirement in &requirements {
            progress.step(requirement);
            let wheel = self.download(pip, requirement, dir)?;
            self.unpack(pip, requirement, &wheel, dir)?;
            progress.done();
        }
        self.finish(dir)
            .map_err(|error| self.io_error("prepare the unpacked tools", error).into())
    }

    /// Has pip put one wheel into `dir`, and returns its path.
    fn download(&self, pip: &Pip, requirement: &str, dir: &Path) -> Result<PathBuf> {
        let step = format!("download {requirement}");
        let see_all = format!(
            "run `python3 -m pip download --no-deps {requirement}` to see all that pip says"
        );
        run(pip
            .command()
            .args(["download", "--no-deps", "--only-binary=:all:", "--no-input"])
            .args(["--retries", "2", "--progress-bar", "off"])
            .arg("--dest")
            .arg(dir)
            .arg(requirement)
            // pip unpacks there; the system's folder for temporary files may be small.
            .env("TMPDIR", dir))
        .map_err(|failure| {
            let otherwise = format!("{see_all}\nor: {}", self.own_toolkit_fix());
            let fix = failure.fix(self.toolchains(), otherwise);
            self.step_error(&step, failure.cause(), fix)
        })?;
        let wheel = fs::read_dir(dir)
            .map_err(|error| self.io_error(&step, error))?
            .flatten()
            .map(|entry| entry.path())
            .find(|path| path.extension().is_some_and(|ending| ending == "whl"));
        Ok(wheel.ok_or_else(|| {
            self.error(&step, "pip reported success but left no wheel".to_string())
        })?)
    }

    /// Unpacks one wheel into `dir` and removes it.
    fn unpack(&self, pip: &Pip, requirement: &str, wheel: &Path, dir: &Path) -> Result<()> {
        let step = format!("unpack {requirement}");
        run(Command::new(&pip.python)
            .args(["-m", "zipfile", "-e"])
            .arg(wheel)
            .arg(dir))
        .map_err(|failure| {
            let fix = failure.fix(self.toolchains(), self.own_toolkit_fix());
            self.step_error(&step, failure.cause(), fix)
        })?;
        fs::remove_file(wheel).map_err(|error| self.io_error(&step, error).into())
    }

    /// Sets the run bits, which zip files unpacked by Python lose, opens the folder to other users, and stamps it.
    fn finish(&self, dir: &Path) -> io::Result<()> {
        for bin in ["bin", "nvvm/bin"] {
            for entry in fs::read_dir(dir.join(TOOLKIT).join(bin))? {
                let entry = entry?;
                if entry.file_type()?.is_file() {
                    fs::set_permissions(entry.path(), fs::Permissions::from_mode(0o755))?;
                }
            }
        }
        fs::set_permissions(dir, fs::Permissions::from_mode(0o755))?;
        fs::write(dir.join(STAMP), stamp_of(self.set))
    }

    /// Replaces an installation of other wheels, if there is one.
    fn move_into_place(&self, dir: &Path) -> io::Result<()> {
        match fs::remove_dir_all(&self.home) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        fs::rename(dir, &self.home)
    }

    fn step_error(&self, step: &str, cause: String, fix: String) -> StepError {
        let version = self.set.pinned().version;
        StepError::new(format!("set up CUDA {version}: {step}"), cause, fix)
    }

    fn error(&self, step: &str, cause: String) -> StepError {
        self.step_error(step, cause, self.own_toolkit_fix())
    }

    fn io_error(&self, step: &str, error: io::Error) -> StepError {
        let dir = self.toolchains();
        let fix = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => disk_full_fix(dir),
            _ => format!(
                "make {} writable, or set CARGO_TARGET_DIR to a folder that is",
                dir.display()
            ),
        };
        self.step_error(step, error.to_string(), fix)
    }

    fn own_toolkit_fix(&self) -> String {
        let version = self.set.pinned().version;
        let or_newer = match self.set {
            CudaSet::Assembler => " or newer",
            CudaSet::Driver13_0 => "",
        };
        format!(
            "install CUDA {}.{}{or_newer} yourself and set CUDA_PTX_CUDA_ROOT to its root",
            version.major, version.minor
        )
    }
}

/// Python with pip.
struct Pip {
    python: PathBuf,
}

impl Pip {
    fn find(machine: &Machine, install: &Install) -> Result<Self> {
        let step = "find Python's pip, which downloads the wheels";
        let fix = || {
            let apt = match machine.find("apt-get") {
                Some(_) => "sudo apt-get install python3-pip",
                None => "install Python 3 with pip (python3 -m ensurepip)",
            };
            format!("{apt}\nor: {}", install.own_toolkit_fix())
        };
        let python = machine
            .find("python3")
            .or_else(|| machine.find("python"))
            .ok_or_else(|| install.step_error(step, "python3 is not on PATH".to_string(), fix()))?;
        let pip = Self { python };
        run(pip.command().arg("--version"))
            .map_err(|failure| install.step_error(step, failure.cause(), fix()))?;
        Ok(pip)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.python);
        command.args(["-m", "pip", "--disable-pip-version-check"]);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake::Fake;
    use super::*;

    /// Visible names in the folder of the toolchains, and hidden ones that are no lock.
    fn left(machine: &Machine) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(&machine.toolchains)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.file_name().into_string().unwrap())
            .filter(|name| !name.ends_with(".lock"))
            .collect();
        names.sort();
        names
    }

    fn step_error(result: Result<CudaTools>) -> StepError {
        result.unwrap_err().downcast::<StepError>().unwrap()
    }

    #[test]
    fn an_installation_is_complete_stamped_and_found_again() {
        let fake = Fake::new();
        fake.python();
        let machine = fake.machine(&[]);
        assert_eq!(installed(&machine, CudaSet::Assembler), None);
        let tools = install(&machine, CudaSet::Assembler).unwrap();
        assert_eq!(tools.origin, Origin::Wheels);
        assert_eq!(left(&machine), ["cuda-13.5.37"]);
        assert_eq!(
            fake.calls("pip-download"),
            CudaSet::Assembler.pinned().wheels.len()
        );

        assert_eq!(installed(&machine, CudaSet::Assembler), Some(tools.clone()));
        assert_eq!(install(&machine, CudaSet::Assembler).unwrap(), tools);
        assert_eq!(
            fake.calls("pip-download"),
            CudaSet::Assembler.pinned().wheels.len()
        );
    }

    #[test]
    fn a_failing_pip_leaves_nothing_and_its_last_lines_are_the_cause() {
        let fake = Fake::new();
        fake.failing_pip("ERROR: NewConnectionError: Temporary failure in name resolution");
        let machine = fake.machine(&[]);
        let error = step_error(install(&machine, CudaSet::Assembler));
        assert!(left(&machine).is_empty(), "{:?}", left(&machine));
        assert!(
            error.step.starts_with("set up CUDA 13.5.37: download "),
            "{error}"
        );
        assert!(error.cause.starts_with("no network: "), "{error}");
        assert!(error.cause.contains("name resolution"), "{error}");
        assert!(error.fix.contains("HTTPS_PROXY"), "{error}");
        assert!(error.fix.contains("CUDA_PTX_CUDA_ROOT"), "{error}");
    }

    #[test]
    fn an_unknown_failure_of_pip_gives_the_command_to_run_by_hand() {
        let fake = Fake::new();
        fake.failing_pip("ERROR: No matching distribution found");
        let error = step_error(install(&fake.machine(&[]), CudaSet::Driver13_0));
        assert!(error.cause.contains("No matching distribution"), "{error}");
        let by_hand = "python3 -m pip download --no-deps nvidia-cuda-cccl==13.3.5.0.6";
        assert!(error.fix.contains(by_hand), "{error}");
        assert!(error.fix.contains("install CUDA 13.0 yourself"), "{error}");
    }

    #[test]
    fn a_missing_pip_names_the_command_that_installs_it() {
        let fake = Fake::new();
        fake.tool(
            "usr/bin/python3",
            "echo '/usr/bin/python3: No module named pip' >&2; exit 1",
        );
        fake.tool("usr/bin/apt-get", "exit 1");
        let error = step_error(install(&fake.machine(&[]), CudaSet::Assembler));
        assert!(
            error.step.ends_with("which downloads the wheels"),
            "{error}"
        );
        assert!(error.cause.contains("No module named pip"), "{error}");
        assert!(
            error.fix.starts_with("sudo apt-get install python3-pip"),
            "{error}"
        );
    }

    #[test]
    fn a_missing_python_is_named() {
        let error = step_error(install(&Fake::new().machine(&[]), CudaSet::Assembler));
        assert_eq!(error.cause, "python3 is not on PATH");
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_a_stale_stamp_is_replaced() {
        let fake = Fake::new();
        fake.python();
        let machine = fake.machine(&[]);
        fs::create_dir_all(machine.toolchains.join(".cuda-13.5.37.partial-dead")).unwrap();
        let stale = machine.toolchains.join("cuda-13.5.37");
        fs::create_dir_all(&stale).unwrap();
        fs::write(stale.join(STAMP), "nvidia-cuda-nvcc==13.5.36\n").unwrap();
        assert_eq!(installed(&machine, CudaSet::Assembler), None);
        install(&machine, CudaSet::Assembler).unwrap();
        assert_eq!(left(&machine), ["cuda-13.5.37"]);
    }

    #[test]
    fn two_at_once_install_once() {
        let fake = Fake::new();
        fake.python();
        let machine = fake.machine(&[]);
        std::thread::scope(|scope| {
            let both = [(); 2].map(|()| scope.spawn(|| install(&machine, CudaSet::Assembler)));
            let [a, b] = both.map(|thread| thread.join().unwrap().unwrap());
            assert_eq!(a, b);
        });
        assert_eq!(
            fake.calls("pip-download"),
            CudaSet::Assembler.pinned().wheels.len()
        );
    }
}
