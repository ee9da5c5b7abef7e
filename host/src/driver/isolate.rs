//! Jobs in a child process under a time limit.
//!
//! A kernel that hangs cannot be stopped from within its process, and one that faults leaves a
//! context in which every later call fails. So a job that may do either runs in a child: the same
//! executable, started again with arguments that make it call [`serve`]. Whatever becomes of the
//! child, [`Isolate::run`] returns soon after the limit and says what happened.
//!
//! ```no_run
//! use std::time::Duration;
//! use cuda_ptx_host::driver::isolate::{self, Isolate};
//!
//! fn main() -> anyhow::Result<()> {
//!     if std::env::args().nth(1).as_deref() == Some("isolated-job") {
//!         isolate::serve(|n: u32| Ok(n + 1));
//!     }
//!     let two: u32 = Isolate::new(["isolated-job"]).run(&1, Duration::from_secs(10))?;
//!     Ok(())
//! }
//! ```

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::sanitizer::{self, Sanitizer};
use super::{DriverError, driver_error};

/// Names the file descriptor on which the child writes its answer.
const ANSWER_FD: &str = "CUDA_PTX_ANSWER_FD";

/// How long a child may take to end after it has answered or been killed.
const GRACE: Duration = Duration::from_secs(5);

/// How long the rest of the output may take once the child has ended; a grandchild may hold the pipe.
const OUTPUT_GRACE: Duration = Duration::from_millis(500);

/// How much of the child's output a failure carries, in bytes.
const OUTPUT_TAIL: usize = 4 << 10;

/// What the child sends back, as one JSON value.
#[derive(Serialize, Deserialize)]
enum Answer<R> {
    Value(R),
    Driver {
        error: Box<DriverError>,
        message: String,
    },
    Error(String),
}

/// How to start the executable again so that it calls [`serve`].
#[derive(Clone, Debug)]
pub struct Isolate {
    arguments: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    sanitizer: Option<Sanitizer>,
}

impl Isolate {
    /// The current executable with these arguments.
    pub fn new<S: Into<OsString>>(arguments: impl IntoIterator<Item = S>) -> Isolate {
        Isolate {
            arguments: arguments.into_iter().map(Into::into).collect(),
            variables: Vec::new(),
            sanitizer: None,
        }
    }

    /// With compute-sanitizer looking at the child; what it finds is a failure.
    pub fn under(mut self, sanitizer: &Sanitizer) -> Isolate {
        self.sanitizer = Some(sanitizer.clone());
        self
    }

    /// With an environment variable set in the child.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Isolate {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Runs a job in a child process and gives its answer.
    ///
    /// A child without an answer after `limit` is killed. What a successful child printed goes to
    /// this process's standard error.
    pub fn run<J: Serialize, R: DeserializeOwned>(
        &self,
        job: &J,
        limit: Duration,
    ) -> Result<R, ChildFailure> {
        let job = serde_json::to_vec(job).map_err(|error| ChildFailure::NotStarted {
            reason: format!("the job is no JSON: {error}"),
        })?;
        let running = self.start(job).map_err(|error| ChildFailure::NotStarted {
            reason: error.to_string(),
        })?;
        // The child's end of the pipe closes when it has answered, and when it dies.
        let answered = running.answer.ends_within(limit);
        let status = end(running.child, !answered);
        running.output.ends_within(OUTPUT_GRACE);
        let output = running.output.bytes();
        let output = &output[output.len().saturating_sub(OUTPUT_TAIL)..];
        let output = String::from_utf8_lossy(output).into_owned();
        if !answered {
            let gone = status.is_some();
            return Err(ChildFailure::Hung {
                after: limit,
                gone,
                output,
            });
        }
        interpret(&running.answer.bytes(), status, output)
    }

    fn start(&self, job: Vec<u8>) -> io::Result<Running> {
        let (job_reader, mut job_writer) = io::pipe()?;
        let (answer_reader, answer_writer) = io::pipe()?;
        let (output_reader, output_writer) = io::pipe()?;
        let answer_fd = answer_writer.as_raw_fd();
        let program = std::env::current_exe()?;
        let mut command = match &self.sanitizer {
            None => Command::new(program),
            Some(sanitizer) => sanitizer.command(&program),
        };
        command
            .args(&self.arguments)
            .process_group(0)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .env(ANSWER_FD, answer_fd.to_string())
            .stdin(job_reader)
            .stdout(output_writer.try_clone()?)
            .stderr(output_writer);
        // SAFETY: only calls that are async-signal-safe.
        unsafe { command.pre_exec(move || prepare_child(answer_fd)) };
        let child = command.spawn()?;
        // The parent's write ends must close, or the readers would wait for ever.
        drop(command);
        drop(answer_writer);
        // A child that ends without reading its job closes the pipe: nothing to report here.
        thread::spawn(move || job_writer.write_all(&job));
        Ok(Running {
            child,
            answer: Drain::new(answer_reader, usize::MAX),
            output: Drain::new(output_reader, OUTPUT_TAIL),
        })
    }
}

/// Lets the answer's pipe through to the new program, and ties the child's life to this process.
fn prepare_child(answer_fd: RawFd) -> io::Result<()> {
    // SAFETY: system calls on integers.
    unsafe {
        if libc::fcntl(answer_fd, libc::F_SETFD, 0) == -1 {
            return Err(io::Error::last_os_error());
        }
        if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == -1 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// A pipe that a thread reads, so that the other side never waits for us.
struct Drain {
    bytes: Arc<Mutex<Vec<u8>>>,
    ended: Receiver<()>,
}

impl Drain {
    /// Reads `pipe` to its end; only the last `keep` bytes or so are kept.
    fn new(mut pipe: PipeReader, keep: usize) -> Drain {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let (sender, ended) = mpsc::channel();
        let sink = Arc::clone(&bytes);
        thread::spawn(move || {
            let mut chunk = [0; 4096];
            loop {
                let count = match pipe.read(&mut chunk) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Ok(0) | Err(_) => break,
                    Ok(count) => count,
                };
                let mut bytes = sink.lock().unwrap_or_else(PoisonError::into_inner);
                bytes.extend_from_slice(&chunk[..count]);
                if bytes.len() / 2 > keep {
                    let surplus = bytes.len() - keep;
                    bytes.drain(..surplus);
                }
            }
            // The receiver may be gone, after a time-out.
            let _ = sender.send(());
        });
        Drain { bytes, ended }
    }

    /// Whether the pipe ended within `limit`.
    fn ends_within(&self, limit: Duration) -> bool {
        self.ended.recv_timeout(limit).is_ok()
    }

    /// What has come so far.
    fn bytes(&self) -> Vec<u8> {
        self.bytes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

struct Running {
    child: Child,
    answer: Drain,
    output: Drain,
}

/// Waits for the child's end, killing it at once or after [`GRACE`]; `None` if it does not come.
///
/// A process in the driver's uninterruptible sleep outlives SIGKILL for a while; a thread waits for
/// that one so that it does not stay a zombie.
fn end(mut child: Child, kill_now: bool) -> Option<ExitStatus> {
    let ended = if kill_now {
        None
    } else {
        wait(&mut child, GRACE)
    };
    let status = ended.or_else(|| {
        kill(&child);
        wait(&mut child, GRACE)
    });
    if status.is_none() {
        thread::spawn(move || child.wait());
    }
    status
}

/// Kills the child and what it started: under a sanitizer, the program is not its direct child.
fn kill(child: &Child) {
    // SAFETY: a system call on integers. The child leads its group, and has not been waited for.
    // An error means that it has just ended.
    unsafe { libc::kill(-child.id().cast_signed(), libc::SIGKILL) };
}

/// Waits for the child's end, but no longer than `limit`.
fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if start.elapsed() < limit => thread::sleep(Duration::from_millis(2)),
            _ => return None,
        }
    }
}

/// The value that the child sent, or what its answer or its silence means.
fn interpret<R: DeserializeOwned>(
    answer: &[u8],
    status: Option<ExitStatus>,
    output: String,
) -> Result<R, ChildFailure> {
    match serde_json::from_slice(answer) {
        Ok(Answer::Value(_)) if status.and_then(|it| it.code()) == Some(sanitizer::FOUND) => {
            Err(ChildFailure::Sanitizer { output })
        }
        Ok(Answer::Value(value)) => {
            if !output.is_empty() {
                eprintln!("{}", output.trim_end());
            }
            Ok(value)
        }
        Ok(Answer::Driver { error, message }) => Err(ChildFailure::Driver {
            error,
            message,
            output,
        }),
        Ok(Answer::Error(message)) => Err(ChildFailure::Failed { message, output }),
        Err(error) => Err(match status {
            Some(status) if !status.success() || answer.is_empty() => match status.signal() {
                Some(signal) => ChildFailure::Killed { signal, output },
                None => ChildFailure::Exited {
                    code: status.code().unwrap_or(-1),
                    output,
                },
            },
            _ => ChildFailure::BadAnswer {
                reason: error.to_string(),
                output,
            },
        }),
    }
}

/// The child's side: reads the job, does it, sends the answer and exits.
///
/// An error of the driver in the chain of causes is sent with its code and name. Started by hand
/// instead of by [`Isolate::run`], it says so and exits with code 2.
pub fn serve<J: DeserializeOwned, R: Serialize>(job: impl FnOnce(J) -> anyhow::Result<R>) -> ! {
    let served = answer_pipe().and_then(|mut pipe| {
        let input =
            serde_json::from_reader(io::stdin().lock()).context("the job on standard input")?;
        let answer = match job(input) {
            Ok(value) => Answer::Value(value),
            Err(error) => refusal(&error),
        };
        serde_json::to_writer(&mut pipe, &answer).context("sending the answer")
    });
    std::process::exit(match served {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("{error:#}");
            2
        }
    })
}

fn refusal<R>(error: &anyhow::Error) -> Answer<R> {
    let message = format!("{error:#}");
    match driver_error(error) {
        Some(error) => Answer::Driver {
            error: Box::new(error.clone()),
            message,
        },
        None => Answer::Error(message),
    }
}

fn answer_pipe() -> anyhow::Result<File> {
    let fd = std::env::var(ANSWER_FD)
        .ok()
        .and_then(|fd| fd.parse::<RawFd>().ok());
    // SAFETY: a system call on an integer. Programs started from here do not get the pipe.
    match fd.filter(|fd| unsafe { libc::fcntl(*fd, libc::F_SETFD, libc::FD_CLOEXEC) } == 0) {
        // SAFETY: the parent opened it for this process, and this is its only use.
        Some(fd) => Ok(unsafe { File::from_raw_fd(fd) }),
        None => {
            bail!("this command is started by the program itself, as the child that runs a job")
        }
    }
}

/// Why a child gave no value. Displays as what happened, then the end of the child's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChildFailure {
    /// The child could not be started.
    NotStarted {
        /// Why.
        reason: String,
    },
    /// No answer came within the limit, so the child was killed.
    Hung {
        /// The limit.
        after: Duration,
        /// Whether the process is gone; the driver can hold a killed one for a while.
        gone: bool,
        /// The end of the child's output.
        output: String,
    },
    /// A call to the driver failed; a kernel that faults ends here.
    Driver {
        /// The driver's error.
        error: Box<DriverError>,
        /// The whole chain of causes.
        message: String,
        /// The end of the child's output.
        output: String,
    },
    /// The job gave an error that is not the driver's.
    Failed {
        /// The whole chain of causes.
        message: String,
        /// The end of the child's output.
        output: String,
    },
    /// The job was done, and compute-sanitizer found something.
    Sanitizer {
        /// The end of what it reported.
        output: String,
    },
    /// A signal ended the child.
    Killed {
        /// The signal's number.
        signal: i32,
        /// The end of the child's output.
        output: String,
    },
    /// The child exited without an answer; a panic does so with code 101.
    Exited {
        /// The exit code.
        code: i32,
        /// The end of the child's output.
        output: String,
    },
    /// The answer is not the JSON of the expected type.
    BadAnswer {
        /// The parser's words.
        reason: String,
        /// The end of the child's output.
        output: String,
    },
}

impl ChildFailure {
    /// What happened, without the child's output.
    pub fn headline(&self) -> String {
        match self {
            ChildFailure::NotStarted { reason } => {
                format!("the child process did not start: {reason}")
            }
            ChildFailure::Hung { after, gone, .. } => format!(
                "hung: expected an answer within {after:?}, found none and killed the child process{}; \
                 a wait in the kernel never ends, or the limit is too short",
                if *gone {
                    ""
                } else {
                    " (the driver still holds it)"
                }
            ),
            ChildFailure::Driver { message, .. } | ChildFailure::Failed { message, .. } => {
                message.clone()
            }
            ChildFailure::Sanitizer { .. } => "compute-sanitizer found something".to_owned(),
            ChildFailure::Killed { signal, .. } => {
                format!("{} ended the child process", signal_name(*signal))
            }
            ChildFailure::Exited { code, .. } => {
                format!("the child process exited with code {code} and without an answer")
            }
            ChildFailure::BadAnswer { reason, .. } => {
                format!("the child's answer is not the JSON expected: {reason}")
            }
        }
    }

    /// The end of what the child printed, 4 KiB at most.
    pub fn output(&self) -> &str {
        match self {
            ChildFailure::NotStarted { .. } => "",
            ChildFailure::Hung { output, .. }
            | ChildFailure::Driver { output, .. }
            | ChildFailure::Failed { output, .. }
            | ChildFailure::Sanitizer { output }
            | ChildFailure::Killed { output, .. }
            | ChildFailure::Exited { output, .. }
            | ChildFailure::BadAnswer { output, .. } => output,
        }
    }
}

impl fmt::Display for ChildFailure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}", self.headline())?;
        for line in self.output().lines() {
            write!(f, "\n  | {line}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ChildFailure {}

fn signal_name(signal: i32) -> String {
    let name = match signal {
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGILL => "SIGILL",
        libc::SIGINT => "SIGINT",
        libc::SIGKILL => "SIGKILL",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGTERM => "SIGTERM",
        _ => return format!("signal {signal}"),
    };
    name.to_owned()
}
