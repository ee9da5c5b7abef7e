//! What each kernel of a cubin takes: registers, stack, shared and local memory.

use anyhow::{Context, Result, bail};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The resources of one kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Resources {
    /// Registers per thread.
    pub registers: u32,
    /// Bytes of stack per thread.
    pub stack: u32,
    /// Bytes of static shared memory per block, with what the driver reserves.
    pub shared: u32,
    /// Bytes of local memory per thread.
    pub local: u32,
}

/// The resources of every kernel in `cubin`, by name.
///
/// # Errors
///
/// `cuobjdump` does not start or refuses the file, or writes something that is not understood.
pub fn of_cubin(cuobjdump: &Path, cubin: &Path) -> Result<BTreeMap<String, Resources>> {
    let output = Command::new(cuobjdump)
        .arg("--dump-resource-usage")
        .arg(cubin)
        .output()
        .with_context(|| format!("expected to run {}", cuobjdump.display()))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        bail!(
            "cuobjdump refused {} ({}): {}",
            cubin.display(),
            output.status,
            message.trim()
        );
    }
    parse(&String::from_utf8_lossy(&output.stdout))
}

/// Parses what `cuobjdump --dump-resource-usage` writes.
///
/// # Errors
///
/// A function without its line of figures, or a figure that is no number.
pub fn parse(text: &str) -> Result<BTreeMap<String, Resources>> {
    let mut resources = BTreeMap::new();
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        let Some(name) = line.strip_prefix("Function ") else {
            continue;
        };
        let name = name.trim_end_matches(':');
        let Some(figures) = lines.next().filter(|line| line.starts_with("REG:")) else {
            bail!("expected `REG:…` after `{line}` in cuobjdump's resource usage");
        };
        let figure = |field: &str| -> Result<u32> {
            let values = figures
                .split_whitespace()
                .filter_map(|word| word.split_once(':'));
            let value = values
                .filter(|(name, _)| *name == field)
                .map(|(_, value)| value)
                .next();
            value.and_then(|value| value.parse().ok()).with_context(|| {
                format!("expected `{field}:` and a number for {name}, found `{figures}`")
            })
        };
        let figures = Resources {
            registers: figure("REG")?,
            stack: figure("STACK")?,
            shared: figure("SHARED")?,
            local: figure("LOCAL")?,
        };
        resources.insert(name.to_owned(), figures);
    }
    Ok(resources)
}

#[cfg(test)]
mod tests {
    use super::*;

    const USAGE: &str = "\nResource usage:\n Common:\n  GLOBAL:4 CONSTANT[4]:16\n Function copy:\n  \
        REG:24 STACK:8 SHARED:2176 LOCAL:0 CONSTANT[0]:548 TEXTURE:0 SURFACE:0 SAMPLER:0\n";

    #[test]
    fn figures_are_read_by_name() {
        let expected = Resources {
            registers: 24,
            stack: 8,
            shared: 2176,
            local: 0,
        };
        assert_eq!(parse(USAGE).unwrap()["copy"], expected);
    }

    #[test]
    fn a_missing_figure_is_named() {
        let error = parse(&USAGE.replace("STACK:8", "")).unwrap_err();
        assert!(error.to_string().contains("`STACK:`"), "{error}");
    }

    #[test]
    fn a_function_without_figures_is_an_error() {
        assert!(parse(" Function copy:\n").is_err());
    }
}
