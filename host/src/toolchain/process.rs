//! Runs a tool and keeps what it said for the error message.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// A tool that could not be run or did not succeed.
#[derive(Debug)]
pub(super) struct Failure {
    /// One line: which tool ended how.
    pub what: String,
    /// The last lines of its output.
    pub said: String,
    trouble: Option<Trouble>,
}

/// A cause that the set-up knows a fix for, recognised from a tool's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    NoNetwork,
    DiskFull,
}

impl Failure {
    fn new(what: String, output: &str) -> Self {
        Self {
            what,
            said: last_lines(output),
            trouble: Trouble::recognise(output),
        }
    }

    /// The cause for a [`super::StepError`].
    pub fn cause(&self) -> String {
        let named = match self.trouble {
            Some(Trouble::NoNetwork) => "no network: ",
            Some(Trouble::DiskFull) => "the disk is full: ",
            None => "",
        };
        match self.said.is_empty() {
            true => format!("{named}{}", self.what),
            false => format!("{named}{}; its last lines:\n{}", self.what, self.said),
        }
    }

    /// The fix for the cause where it is a known one, and `otherwise`. `dir` is where the tool was writing.
    pub fn fix(&self, dir: &Path, otherwise: String) -> String {
        match self.trouble {
            Some(Trouble::NoNetwork) => format!(
                "connect the machine, or name its proxy in HTTPS_PROXY, and run again\nor: {otherwise}"
            ),
            Some(Trouble::DiskFull) => disk_full_fix(dir),
            None => otherwise,
        }
    }
}

/// How to get out of a full disk.
pub(super) fn disk_full_fix(dir: &Path) -> String {
    format!(
        "free about 1 GB where {} lies, or set CARGO_TARGET_DIR to a folder on a larger disk",
        dir.display()
    )
}

impl Trouble {
    fn recognise(output: &str) -> Option<Self> {
        const NETWORK: [&str; 10] = [
            "NewConnectionError",
            "ConnectTimeoutError",
            "ReadTimeoutError",
            "ProxyError",
            "Network is unreachable",
            "Temporary failure in name resolution",
            "Temporary failure resolving",
            "Could not resolve",
            "could not connect",
            "Connection timed out",
        ];
        if output.contains("No space left on device") {
            Some(Self::DiskFull)
        } else if NETWORK.iter().any(|sign| output.contains(sign)) {
            Some(Self::NoNetwork)
        } else {
            None
        }
    }
}

/// Runs a command to its end and returns its standard output.
pub(super) fn run(command: &mut Command) -> Result<String, Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Failure::new(cannot_start(&name, &error), ""))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(stdout);
    }
    let said = stdout + &String::from_utf8_lossy(&output.stderr);
    Err(Failure::new(
        format!("{name} ended with {}", output.status),
        &said,
    ))
}

fn cannot_start(name: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("{name} is not there"),
        _ => format!("{name} does not start: {error}"),
    }
}

fn last_lines(output: &str) -> String {
    const KEPT: usize = 6;
    const WIDTH: usize = 200;
    let lines: Vec<_> = output
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    lines[lines.len().saturating_sub(KEPT)..]
        .iter()
        .map(|line| match line.char_indices().nth(WIDTH) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line.to_string(),
        })
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Result<String, Failure> {
        run(Command::new("/bin/sh").args(["-c", script]))
    }

    #[test]
    fn a_failure_keeps_the_last_lines_of_both_streams() {
        let failure = shell("seq 1 9; echo last >&2; exit 3").unwrap_err();
        assert_eq!(failure.said, "5\n6\n7\n8\n9\nlast");
        assert_eq!(
            failure.cause(),
            "/bin/sh ended with exit status: 3; its last lines:\n5\n6\n7\n8\n9\nlast"
        );
    }

    #[test]
    fn a_long_line_is_cut() {
        let line = last_lines(&"é".repeat(300));
        assert_eq!(line, "é".repeat(200) + "…");
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let failure = run(&mut Command::new("/nowhere/pip")).unwrap_err();
        assert_eq!(failure.cause(), "/nowhere/pip is not there");
    }

    #[test]
    fn known_troubles_are_named_with_their_fix() {
        let dir = Path::new("/d");
        let offline = shell("echo 'NewConnectionError: x'; exit 1").unwrap_err();
        assert!(offline.cause().starts_with("no network: "));
        assert!(offline.fix(dir, "other".into()).contains("HTTPS_PROXY"));
        let full = shell("echo '[Errno 28] No space left on device'; exit 1").unwrap_err();
        assert!(full.cause().starts_with("the disk is full: "));
        assert!(full.fix(dir, "other".into()).contains("CARGO_TARGET_DIR"));
        let unknown = shell("echo odd; exit 1").unwrap_err();
        assert_eq!(unknown.fix(dir, "other".into()), "other");
    }
}
