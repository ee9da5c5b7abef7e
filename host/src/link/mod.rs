//! The link stage: LLVM bitcode of a kernel crate → PTX.
//!
//! rustc calls `cuda-ptx-link` as its linker, with bitcode that no LLVM pass has touched
//! (`-Cno-prepopulate-passes`). The stage links it, rewrites what rustc cannot express
//! (`rewrite`, `asm_text`, `convergence`), and only then optimises:
//!
//! ```text
//! llvm-link → opt (drop what is unused) → rewrite, mark → opt -O → fold → opt (infer address spaces) → fold → llc → check
//! ```

mod arguments;
mod asm_text;
pub mod convergence;
mod fold;
mod ptx;
mod record;
mod rewrite;
mod text;

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};

pub use arguments::{Arguments, Header};

use crate::toolchain::{self, LlvmTools};

/// The name under which a program that calls [`run_as_linker`] acts as the linker.
pub const LINKER_NAME: &str = "cuda-ptx-link";

/// The environment variable that names a second place for the PTX.
pub(crate) const COPY: &str = "CUDA_PTX_LINK_COPY";

/// Whether this program has called [`run_as_linker`], so that it can be a linker.
static CAN_BE_LINKER: AtomicBool = AtomicBool::new(false);

/// Acts as rustc's linker, if this process was started under the linker's name.
///
/// A program that builds kernels is its own linker: it calls this first in `main` and returns the
/// exit code, if there is one. The build module makes the name.
#[must_use]
pub fn run_as_linker() -> Option<ExitCode> {
    CAN_BE_LINKER.store(true, Ordering::Relaxed);
    let mut arguments = std::env::args();
    let name = arguments.next()?;
    if Path::new(&name).file_stem() != Some(OsStr::new(LINKER_NAME)) {
        return None;
    }
    let linked =
        Arguments::parse(arguments).and_then(|arguments| link(&arguments, &toolchain::llvm()?));
    Some(match linked {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{LINKER_NAME}: {error:#}");
            ExitCode::FAILURE
        }
    })
}

/// Gives the running program the linker's name, by a link in the target folder, and returns that.
pub(crate) fn install() -> Result<PathBuf> {
    if !CAN_BE_LINKER.load(Ordering::Relaxed) {
        bail!(
            "this program builds kernels and must be their linker, too: call `link::run_as_linker` \
             first in `main`, or name an installed cuda-ptx-link with `KernelCrate::linker`"
        );
    }
    let program = std::env::current_exe().context("cannot find the running program")?;
    let owner = program.file_name().unwrap_or(OsStr::new("program"));
    let folder = toolchain::target_dir()
        .join("device")
        .join("linker")
        .join(owner);
    let linker = folder.join(LINKER_NAME);
    if fs::read_link(&linker).is_ok_and(|target| target == program) {
        return Ok(linker);
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    // Renamed into place, so that a build running beside this one always finds a linker.
    let fresh = folder.join(format!("{LINKER_NAME}.{}", std::process::id()));
    let _ = fs::remove_file(&fresh);
    symlink(&program, &fresh)
        .and_then(|()| fs::rename(&fresh, &linker))
        .with_context(|| format!("cannot create {}", linker.display()))?;
    Ok(linker)
}

/// Links what rustc asked for.
///
/// # Errors
/// If an LLVM tool fails, or the module holds something that cannot be expressed in PTX or is not
/// understood.
pub fn link(arguments: &Arguments, tools: &LlvmTools) -> Result<()> {
    let scratch = tempfile::tempdir().context("cannot create a temporary directory")?;
    let stage = Stage {
        arguments,
        tools,
        scratch: scratch.path(),
    };
    let ptx = stage.run()?;
    write(&arguments.output, &ptx)?;
    match std::env::var_os(COPY) {
        Some(copy) => write(Path::new(&copy), &ptx),
        None => Ok(()),
    }
}

/// Writes a file as a whole: whoever reads it meanwhile sees the old one or the new one.
fn write(path: &Path, text: &str) -> Result<()> {
    let write = || -> Result<()> {
        let folder = path.parent().context("a file lies in a folder")?;
        fs::create_dir_all(folder)?;
        let mut file = tempfile::Builder::new()
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.persist(path)?;
        Ok(())
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

/// What [`fold`] leaves: casts between address spaces, and the arithmetic that they were hiding.
const INFER_ADDRESS_SPACES: &str = "function(infer-address-spaces,instcombine<no-verify-fixpoint>,\
    early-cse<memssa>,simplifycfg),globaldce";

/// One run of the pipeline; each step reads and writes files in `scratch`.
struct Stage<'a> {
    arguments: &'a Arguments,
    tools: &'a LlvmTools,
    scratch: &'a Path,
}

impl Stage<'_> {
    fn run(&self) -> Result<String> {
        let linked = self.link_bitcode()?;
        let rewritten = asm_text::write(&rewrite::rewrite(&linked)?)?;
        let marked = if convergence::is_marked() {
            convergence::mark(&rewritten)?
        } else {
            eprintln!(
                "{LINKER_NAME}: warning: {} is set: LLVM may duplicate and merge barriers in this code",
                convergence::SWITCH
            );
            rewritten
        };
        let optimised = self.opt("optimised", &marked, &self.pipeline())?;
        let folded = fold::fold(&optimised)?;
        let inferred = self.opt("inferred", &folded, INFER_ADDRESS_SPACES)?;
        let ptx = self.compile(&fold::keep_addresses(&inferred))?;
        ptx::check(&ptx)?;
        let ptx = ptx::set_header(&ptx, &self.arguments.header);
        Ok(match self.arguments.opt_level {
            '0' => ptx,
            _ => ptx::keep_line_tables_only(&ptx),
        })
    }

    /// All objects and libraries as one module, without what the exported kernels do not need.
    fn link_bitcode(&self) -> Result<String> {
        let linked = self.scratch.join("linked.bc");
        let mut command = Command::new(&self.tools.llvm_link);
        command
            .arg("--ignore-non-bitcode")
            .args(&self.arguments.inputs)
            .arg("-o")
            .arg(&linked);
        run(&mut command)?;

        let exported = self.scratch.join("exported");
        fs::write(&exported, self.arguments.exported.join("\n") + "\n")?;
        let needed = self.scratch.join("needed.ll");
        let mut keep = std::ffi::OsString::from("--internalize-public-api-file=");
        keep.push(&exported);
        let mut command = Command::new(&self.tools.opt);
        command
            .args(["-S", "--passes=internalize,globaldce"])
            .arg(keep)
            .arg(&linked)
            .arg("-o")
            .arg(&needed);
        run(&mut command)?;
        read(&needed)
    }

    fn pipeline(&self) -> String {
        format!("default<O{}>", self.arguments.opt_level)
    }

    fn opt(&self, name: &str, ir: &str, passes: &str) -> Result<String> {
        let input = self.scratch.join(format!("{name}-in.ll"));
        let output = self.scratch.join(format!("{name}.ll"));
        fs::write(&input, ir)?;
        let mut command = Command::new(&self.tools.opt);
        command
            .arg("-S")
            .arg(format!("--passes={passes}"))
            .arg(format!("-mcpu={}", self.arguments.target_cpu))
            .arg(&input)
            .arg("-o")
            .arg(&output);
        run(&mut command)?;
        read(&output)
    }

    fn compile(&self, ir: &str) -> Result<String> {
        let input = self.scratch.join("final.ll");
        let output = self.scratch.join("final.ptx");
        fs::write(&input, ir)?;
        let level = match self.arguments.opt_level {
            '0' => "-O0",
            '1' => "-O1",
            '3' => "-O3",
            _ => "-O2",
        };
        let mut command = Command::new(&self.tools.llc);
        command
            .args([level, "--nvptx-short-ptr"])
            .arg(format!("-mcpu={}", self.arguments.target_cpu));
        if !self.arguments.target_features.is_empty() {
            command.arg(format!("-mattr={}", self.arguments.target_features));
        }
        command.arg(&input).arg("-o").arg(&output);
        run(&mut command)?;
        read(&output)
    }
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Runs a tool that must succeed; its own words are the error.
fn run(command: &mut Command) -> Result<()> {
    let program = Path::new(command.get_program())
        .file_name()
        .unwrap_or(OsStr::new("tool"))
        .to_string_lossy()
        .into_owned();
    let output = command
        .output()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    if !output.status.success() {
        bail!(
            "{program} failed ({}):\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim_end()
        );
    }
    Ok(())
}
