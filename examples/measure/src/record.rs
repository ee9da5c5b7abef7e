//! What a run leaves behind: the machine, the command and every contest.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use cuda_ptx_host::driver::Driver;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Outcome;

/// What one example measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// The GPU.
    pub device: String,
    /// The driver, and the CUDA version that it supports.
    pub driver: String,
    /// Clocks at the end of the run, and at most, as `nvidia-smi` tells them.
    pub clocks: String,
    /// When, in UTC.
    pub date: String,
    /// What was run.
    pub command: String,
    /// What was found.
    pub contests: Vec<Outcome>,
}

impl Record {
    /// What this program found on this machine.
    ///
    /// # Errors
    /// If the driver cannot tell what the GPU is.
    pub fn new(driver: &Driver, contests: Vec<Outcome>) -> Result<Self> {
        let smi = |what: &str| {
            said_by("nvidia-smi", &[&format!("--query-gpu={what}"), "--format=csv,noheader", "--id=0"])
        };
        let program = std::env::args().next().unwrap_or_default();
        let name = Path::new(&program).file_name().unwrap_or_default();
        let arguments = std::env::args().skip(1);
        let command: Vec<String> =
            std::iter::once(name.to_string_lossy().into_owned()).chain(arguments).collect();
        Ok(Self {
            device: driver.gpu_name()?,
            driver: format!("{} (CUDA {})", smi("driver_version"), driver.cuda_version()),
            clocks: smi("clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.draw,temperature.gpu"),
            date: said_by("date", &["-u", "+%Y-%m-%dT%H:%M:%SZ"]),
            command: command.join(" "),
            contests,
        })
    }
}

/// The output of a command, or that there is none.
fn said_by(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    match output {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        _ => format!("unknown: `{program}` did not answer"),
    }
}

/// Writes an example's record under its name into a file that may hold those of others.
///
/// # Errors
/// If the file cannot be written, or holds something else.
pub fn write(path: &Path, example: &str, record: &Record) -> Result<()> {
    let mut file: Map<String, Value> = match std::fs::read_to_string(path) {
        Ok(text) => {
            serde_json::from_str(&text).with_context(|| format!("{} is not a record", path.display()))?
        }
        Err(_) => Map::new(),
    };
    file.insert(example.to_owned(), serde_json::to_value(record)?);
    let text = serde_json::to_string_pretty(&file)? + "\n";
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
