//! `cargo xtask test`: everything that CI runs, from a fresh machine.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use cuda_ptx_host::driver::Driver;
use cuda_ptx_host::exec::On;
use cuda_ptx_host::toolchain;

/// One thing that must hold: a cargo command of the workspace, or of that of the examples, which finds in
/// the target folder what is already built.
struct Step {
    what: &'static str,
    arguments: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
    kernels: Kernels,
}

/// What a step runs on a GPU if there is one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kernels {
    Nothing,
    /// Tests that are ignored without a GPU.
    InTests,
    /// The demonstration, which takes `--on` itself.
    InDemo,
}

const STEPS: [Step; 13] = [
    Step {
        what: "the sources are formatted",
        arguments: &["fmt", "--all", "--check"],
        environment: &[],
        kernels: Kernels::Nothing,
    },
    Step {
        what: "the generated sources are those of spec/",
        arguments: &["xtask", "gen", "--check"],
        environment: &[],
        kernels: Kernels::Nothing,
    },
    Step {
        what: "the device crate builds for the host without warnings",
        arguments: &[
            "clippy",
            "--package",
            "cuda-ptx",
            "--all-targets",
            "--",
            "-Dwarnings",
        ],
        environment: &[],
        kernels: Kernels::Nothing,
    },
    Step {
        what: "the harness builds without warnings",
        arguments: &[
            "clippy",
            "--package",
            "cuda-ptx-host",
            "--all-targets",
            "--",
            "-Dwarnings",
        ],
        environment: &[],
        kernels: Kernels::Nothing,
    },
    Step {
        what: "the documentation builds without warnings",
        arguments: &["doc", "--workspace", "--no-deps"],
        environment: &[("RUSTDOCFLAGS", "-Dwarnings")],
        kernels: Kernels::Nothing,
    },
    Step {
        what: "the device crate's tests pass",
        arguments: &["test", "--package", "cuda-ptx"],
        environment: &[],
        kernels: Kernels::Nothing,
    },
    Step {
        what: "the harness's tests pass",
        arguments: &["test", "--package", "cuda-ptx-host", "--no-fail-fast"],
        environment: &[],
        kernels: Kernels::InTests,
    },
    Step {
        what: "every form of cuda::ptx has an equal mirror",
        arguments: &["xtask", "parity"],
        environment: &[],
        kernels: Kernels::Nothing,
    },
    Step {
        what: "forms that cuda::ptx lacks are what C++ has for them",
        arguments: &["xtask", "parity", "--beyond"],
        environment: &[],
        kernels: Kernels::Nothing,
    },
    Step {
        what: "the examples are formatted",
        arguments: &[
            "fmt",
            "--all",
            "--check",
            "--manifest-path",
            "examples/Cargo.toml",
        ],
        environment: &[],
        kernels: Kernels::Nothing,
    },
    Step {
        what: "the examples build without warnings",
        arguments: &[
            "clippy",
            "--manifest-path",
            "examples/Cargo.toml",
            "--target-dir",
            "target",
            "--workspace",
            "--all-targets",
            "--",
            "-Dwarnings",
        ],
        environment: &[],
        kernels: Kernels::Nothing,
    },
    Step {
        what: "the examples' tests pass",
        arguments: &[
            "test",
            "--manifest-path",
            "examples/Cargo.toml",
            "--target-dir",
            "target",
            "--workspace",
        ],
        environment: &[],
        kernels: Kernels::Nothing,
    },
    Step {
        what: "the demonstration holds",
        arguments: &["xtask", "demo"],
        environment: &[],
        kernels: Kernels::InDemo,
    },
];

/// What the test runners counted.
#[derive(Default, Clone, Copy)]
struct Count {
    passed: u32,
    failed: u32,
    skipped: u32,
}

impl Count {
    /// Reads a summary line of `cargo test`.
    fn of_line(line: &str) -> Option<Self> {
        let counts = line.strip_prefix("test result: ")?.split_once(". ")?.1;
        let number = |label: &str| {
            let part = counts.split("; ").find(|part| part.ends_with(label))?;
            part.split(' ').next()?.parse().ok()
        };
        Some(Self {
            passed: number("passed")?,
            failed: number("failed")?,
            skipped: number("ignored")?,
        })
    }

    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

/// Runs all steps, also behind one that fails, and ends with the sum of all tests.
pub fn run(on: On) -> Result<()> {
    // Set-up first and alone: the tests then find everything in place.
    toolchain::device()?;
    toolchain::cuda()?;

    let mut total = Count::default();
    let mut broken = Vec::new();
    // Tests that need a GPU are `#[ignore]`d: counted and named where there is none.
    let gpu = match (on, Driver::open()) {
        (On::Cpu, _) => {
            eprintln!("tests that need a GPU do not run: everything was to run on the CPU");
            false
        }
        (_, Ok(_)) => true,
        (On::Gpu, Err(reason)) => bail!("the tests were to run on a GPU: {reason}"),
        (On::Auto, Err(reason)) => {
            eprintln!("tests that need a GPU do not run: {reason}");
            false
        }
    };
    for step in &STEPS {
        eprintln!("== {} (cargo {})", step.what, step.arguments.join(" "));
        let (success, tests) = step.run(gpu, on)?;
        total.add(tests);
        // A step is a test of its own; one that failed by a counted test is not counted twice.
        match success {
            true => total.passed += 1,
            false if tests.failed == 0 => total.failed += 1,
            false => {}
        }
        if !success {
            broken.push(step.what);
        }
    }
    for what in &broken {
        println!("does not hold: {what}");
    }
    println!(
        "{} passed, {} failed, {} skipped",
        total.passed, total.failed, total.skipped
    );
    if !broken.is_empty() {
        bail!("{} of {} steps failed", broken.len(), STEPS.len());
    }
    Ok(())
}

impl Step {
    /// Runs the step, passing its output on; also tells what `cargo test` counted.
    fn run(&self, gpu: bool, on: On) -> Result<(bool, Count)> {
        let cargo = std::env::var_os("CARGO");
        let mut child = Command::new(cargo.as_deref().unwrap_or(OsStr::new("cargo")))
            .args(self.arguments)
            .args(match (self.kernels, on) {
                (Kernels::InTests, _) if gpu => &["--", "--include-ignored"][..],
                (Kernels::InDemo, On::Cpu) => &["--on", "cpu"],
                (Kernels::InDemo, On::Gpu) => &["--on", "gpu"],
                _ => &[],
            })
            .envs(self.environment.iter().copied())
            .current_dir(toolchain::workspace_root())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot run cargo")?;
        let mut tests = Count::default();
        for line in BufReader::new(child.stdout.take().context("cargo has no output")?).lines() {
            let line = line?;
            println!("{line}");
            if let Some(count) = Count::of_line(&line) {
                tests.add(count);
            }
        }
        Ok((child.wait()?.success(), tests))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runner_s_summary_is_counted() {
        let line = "test result: FAILED. 12 passed; 1 failed; 2 ignored; 0 measured; 5 filtered out; finished in 0.10s";
        let count = Count::of_line(line).unwrap();
        assert_eq!((count.passed, count.failed, count.skipped), (12, 1, 2));
        assert!(Count::of_line("test x ... ok").is_none());
    }
}
