//! The command line with which rustc calls the linker of an `nvptx64` target.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

/// What rustc asked for.
#[derive(Debug, PartialEq, Eq)]
pub struct Arguments {
    /// Bitcode objects and libraries.
    pub inputs: Vec<PathBuf>,
    /// Symbols that must survive: the kernels.
    pub exported: Vec<String>,
    /// Where the PTX goes.
    pub output: PathBuf,
    /// For instance `sm_90a`.
    pub target_cpu: String,
    /// For instance `+ptx86`; empty if none was given.
    pub target_features: String,
    /// The digit or letter of `-O`.
    pub opt_level: char,
    /// What the PTX's header says instead of what LLVM knows.
    pub header: Header,
}

/// `.version` and `.target` of the PTX, where they are newer than LLVM.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// For instance `9.4`.
    pub version: Option<String>,
    /// For instance `sm_107a`.
    pub target: Option<String>,
}

impl Arguments {
    /// Reads the arguments behind the program name.
    ///
    /// # Errors
    /// If an option is unknown or something needed is missing; both mean another rustc than expected.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut arguments = arguments.into_iter();
        let mut parsed = Self {
            inputs: Vec::new(),
            exported: Vec::new(),
            output: PathBuf::new(),
            target_cpu: String::new(),
            target_features: String::new(),
            opt_level: '0',
            header: Header::default(),
        };
        while let Some(argument) = arguments.next() {
            let (option, inline) = match argument.split_once('=') {
                Some((option, value)) if option.starts_with("--") => {
                    (option, Some(value.to_owned()))
                }
                _ => (argument.as_str(), None),
            };
            let mut value = || match &inline {
                Some(value) => Ok(value.clone()),
                None => arguments
                    .next()
                    .with_context(|| format!("`{option}` needs a value")),
            };
            match option {
                "--export-symbol" => parsed.exported.push(value()?),
                "-o" | "--output" => parsed.output = value()?.into(),
                "--target-cpu" => parsed.target_cpu = value()?,
                "--target-feature" => parsed.target_features = value()?,
                "--ptx-version" => parsed.header.version = Some(value()?),
                "--ptx-target" => parsed.header.target = Some(value()?),
                "--target" | "-L" => drop(value()?),
                "--debug" => {}
                _ if option.starts_with("-O") => {
                    parsed.opt_level = option.chars().nth(2).context("`-O` needs a level")?;
                }
                _ if option.starts_with('-') => bail!(
                    "rustc passed the linker option `{argument}`, which cuda-ptx-link does not know"
                ),
                _ => parsed.inputs.push(argument.into()),
            }
        }
        if parsed.output.as_os_str().is_empty() || parsed.inputs.is_empty() {
            bail!(
                "cuda-ptx-link is called by rustc, as `-Clinker=cuda-ptx-link`, with object files and `-o`"
            );
        }
        if parsed.target_cpu.is_empty() {
            bail!("no `--target-cpu`: name the architecture with `-Ctarget-cpu=sm_90a` or similar");
        }
        Ok(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments> {
        Arguments::parse(line.split(' ').map(str::to_owned))
    }

    #[test]
    fn rustc_s_command_line_is_understood() {
        let parsed = parse(
            "--export-symbol k a.o libcore.rlib -L dir --target nvptx64-nvidia-cuda --target-cpu sm_90a \
             --target-feature=+ptx80,+ptx86 --ptx-version=9.4 -o out.ptx -O3 --debug",
        );
        assert_eq!(
            parsed.unwrap(),
            Arguments {
                inputs: vec!["a.o".into(), "libcore.rlib".into()],
                exported: vec!["k".into()],
                output: "out.ptx".into(),
                target_cpu: "sm_90a".into(),
                target_features: "+ptx80,+ptx86".into(),
                opt_level: '3',
                header: Header {
                    version: Some("9.4".into()),
                    target: None
                },
            }
        );
    }

    #[test]
    fn an_unknown_option_is_named() {
        let error = parse("a.o -o b --target-cpu sm_90 --frobnicate")
            .unwrap_err()
            .to_string();
        assert!(error.contains("--frobnicate"), "{error}");
    }
}
