//! PTX kernels → machine code of one architecture; a kernel that ptxas rejects costs only itself.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::build::Arch;
use crate::inspect::sass::{self, Function};
use crate::toolchain::CudaTools;

/// What became of the kernels of one side.
#[derive(Debug, Default)]
pub struct Assembled {
    /// ptxas's words by the name of the kernel that it rejects.
    pub rejected: BTreeMap<String, String>,
    /// The cubin with the other kernels, if there are any.
    cubin: Option<PathBuf>,
}

impl Assembled {
    /// Whether both cubins are the same, byte for byte: then they need no disassembly.
    ///
    /// # Errors
    ///
    /// A cubin cannot be read.
    pub fn is_same(&self, other: &Self) -> Result<bool> {
        let [Some(one), Some(other)] = [&self.cubin, &other.cubin] else {
            return Ok(false);
        };
        let read =
            |path: &Path| fs::read(path).with_context(|| format!("cannot read {}", path.display()));
        Ok(read(one)? == read(other)?)
    }

    /// The machine code by kernel name.
    ///
    /// # Errors
    ///
    /// nvdisasm does not start, or its output is not understood.
    pub fn functions(&self, tools: &CudaTools) -> Result<HashMap<String, Function>> {
        let Some(cubin) = &self.cubin else {
            return Ok(HashMap::new());
        };
        let functions = sass::disassemble(&tools.nvdisasm, cubin)?;
        Ok(functions
            .into_iter()
            .map(|function| (function.name.clone(), function))
            .collect())
    }
}

/// Assembles `kernels` (name and text) for `arch`; files go to `folder` under the name `side`.
///
/// # Errors
///
/// A tool does not start, or ptxas fails without naming a line of a kernel.
pub fn assemble(
    tools: &CudaTools,
    kernels: &[(String, &str)],
    arch: Arch,
    folder: &Path,
    side: &str,
) -> Result<Assembled> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let (ptx, cubin) = (
        folder.join(format!("{side}.ptx")),
        folder.join(format!("{side}.cubin")),
    );
    let mut assembled = Assembled::default();
    loop {
        let left = Vec::from_iter(
            kernels
                .iter()
                .filter(|(name, _)| !assembled.rejected.contains_key(name)),
        );
        if left.is_empty() {
            return Ok(assembled);
        }
        let module = ModuleText::new(&left, arch);
        if is_assembled(&ptx, &module.text, &cubin, &tools.ptxas) {
            break;
        }
        fs::write(&ptx, &module.text).with_context(|| format!("cannot write {}", ptx.display()))?;
        let Some(messages) = ptxas(tools, &ptx, arch, &cubin)? else {
            break;
        };
        let mut rejected = module.blame(&messages);
        if rejected.is_empty() {
            let assembles = |kernels: &[&(String, &str)]| {
                fs::write(&ptx, ModuleText::new(kernels, arch).text)?;
                Ok(ptxas(tools, &ptx, arch, &cubin)?.is_none())
            };
            rejected = culprits(&left, &assembles)?;
        }
        if rejected.is_empty() {
            bail!(
                "ptxas rejects {} for {arch}, but each of its kernels alone is accepted:\n{messages}",
                ptx.display()
            );
        }
        assembled.rejected.extend(rejected);
    }
    assembled.cubin = Some(cubin);
    Ok(assembled)
}

/// Whether the cubin is what this ptxas made of this text: a run before had the same kernels on this side. Most of the
/// time of a comparison is ptxas's.
fn is_assembled(ptx: &Path, text: &str, cubin: &Path, ptxas: &Path) -> bool {
    let changed = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
    let newer = changed(cubin) >= changed(ptx) && changed(cubin) > changed(ptxas);
    newer && fs::read_to_string(ptx).is_ok_and(|present| present == text)
}

/// `None` if ptxas accepts the file, otherwise what it says.
fn ptxas(tools: &CudaTools, ptx: &Path, arch: Arch, cubin: &Path) -> Result<Option<String>> {
    // One that is cut short leaves no cubin.
    let unfinished = cubin.with_extension("unfinished");
    let output = Command::new(&tools.ptxas)
        .arg(format!("-arch={arch}"))
        .arg(ptx)
        .arg("-o")
        .arg(&unfinished)
        .output()
        .with_context(|| format!("cannot run {}", tools.ptxas.display()))?;
    if output.status.success() {
        fs::rename(&unfinished, cubin)
            .with_context(|| format!("cannot write {}", cubin.display()))?;
        return Ok(None);
    }
    let messages = [output.stdout, output.stderr].concat();
    Ok(Some(String::from_utf8_lossy(&messages).into_owned()))
}

/// The kernels that do not assemble alone, found by halving: ptxas may crash instead of naming a line.
fn culprits(
    kernels: &[&(String, &str)],
    assembles: &impl Fn(&[&(String, &str)]) -> Result<bool>,
) -> Result<BTreeMap<String, String>> {
    if assembles(kernels)? {
        return Ok(BTreeMap::new());
    }
    if let [(name, _)] = kernels {
        return Ok(BTreeMap::from([(
            name.clone(),
            "ptxas fails without a message".to_owned(),
        )]));
    }
    let (left, right) = kernels.split_at(kernels.len() / 2);
    let mut culprits = self::culprits(left, assembles)?;
    culprits.extend(self::culprits(right, assembles)?);
    Ok(culprits)
}

/// A module put together from kernels, and the line each one ends on.
struct ModuleText<'k> {
    text: String,
    ends: Vec<(usize, &'k str)>,
}

impl<'k> ModuleText<'k> {
    fn new(kernels: &[&'k (String, &str)], arch: Arch) -> Self {
        let mut module = Self {
            text: format!(".version 9.5\n.target {arch}\n.address_size 64\n"),
            ends: Vec::new(),
        };
        let mut line = 3;
        for (name, text) in kernels {
            module.text.push_str(text);
            module.text.push('\n');
            line += text.lines().count();
            module.ends.push((line, name));
        }
        module
    }

    /// The kernels whose lines carry an error, with the first one's words.
    fn blame(&self, messages: &str) -> BTreeMap<String, String> {
        let mut blamed = BTreeMap::new();
        for message in messages.lines() {
            let Some((place, words)) = message.split_once("; error") else {
                continue;
            };
            let line = place
                .rsplit("line ")
                .next()
                .and_then(|line| line.parse::<usize>().ok());
            let Some(line) = line else { continue };
            let words = words.trim_start_matches([' ', ':']).to_owned();
            if let Some((_, name)) = self.ends.iter().find(|(end, _)| line <= *end) {
                blamed.entry((*name).to_owned()).or_insert(words);
            }
        }
        blamed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_blamed_on_the_kernel_that_holds_its_line() {
        let kernels = [
            ("a".to_owned(), ".entry a()\n{\nret;\n}"),
            ("b".to_owned(), ".entry b()\n{\nbad;\n}"),
        ];
        let module = ModuleText::new(&Vec::from_iter(&kernels), Arch::SM_90A);
        let line = module.text.lines().position(|line| line == "bad;").unwrap() + 1;
        let messages = format!(
            "ptxas x.ptx, line 4; warning : w\nptxas x.ptx, line {line}; error   : Feature 'bad' not supported\n"
        );
        let blamed = module.blame(&messages);
        assert_eq!(
            Vec::from_iter(blamed),
            [("b".to_owned(), "Feature 'bad' not supported".to_owned())]
        );
        assert!(module.blame("ptxas fatal : no memory\n").is_empty());
    }

    #[test]
    fn what_was_assembled_is_taken_if_nothing_changed_since() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let [ptxas, ptx, cubin] = ["ptxas", "side.ptx", "side.cubin"].map(file);
        let assembled = |text| is_assembled(&ptx, text, &cubin, &ptxas);
        let write = |path: &Path, second: u64| {
            fs::write(path, "a").unwrap();
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(second);
            fs::File::options()
                .write(true)
                .open(path)
                .unwrap()
                .set_modified(time)
                .unwrap();
        };
        write(&ptxas, 1);
        write(&ptx, 2);
        assert!(!assembled("a"), "there is no cubin");
        write(&cubin, 3);
        assert!(assembled("a"));
        assert!(!assembled("b"), "other kernels");
        write(&ptx, 4);
        assert!(
            !assembled("a"),
            "the text was written again, and not assembled"
        );
        write(&cubin, 5);
        write(&ptxas, 6);
        assert!(!assembled("a"), "another ptxas");
    }

    #[test]
    fn a_crash_is_blamed_on_the_kernels_that_crash_alone() {
        let kernels = ["a", "b", "c", "d", "e"].map(|name| (name.to_owned(), name));
        let assembles = |kernels: &[&(String, &str)]| {
            Ok(!kernels.iter().any(|(_, text)| ["b", "e"].contains(text)))
        };
        let blamed = culprits(&Vec::from_iter(&kernels), &assembles).unwrap();
        assert_eq!(Vec::from_iter(blamed.into_keys()), ["b", "e"]);
    }

    #[test]
    fn the_first_and_the_last_line_of_a_kernel_are_its_own() {
        let kernels = [("a".to_owned(), "1\n2"), ("b".to_owned(), "3")];
        let module = ModuleText::new(&Vec::from_iter(&kernels), Arch::SM_90A);
        let blamed = |line: usize| {
            module
                .blame(&format!("f, line {line}; error : e"))
                .into_keys()
                .next()
        };
        assert_eq!(
            [4, 5, 6].map(blamed),
            ["a", "a", "b"].map(|name| Some(name.to_owned()))
        );
    }
}
