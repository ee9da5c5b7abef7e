//! A launch described in words: what `cargo xtask check` runs under many schedules.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use super::memory::NOTHING;
use super::schedule::{Chooser, Deviations};
use super::{Grid, Memory, Options, Program, Stats, Violation};

/// One argument of a kernel.
///
/// | words | argument |
/// |---|---|
/// | `u32:7`, `i32:-7`, `u64:7`, `f32:0.5`, `f64:0.5` | a number |
/// | `count:4096` | a buffer of so many `u32`: 0, 1, 2, … |
/// | `floats:4096` | a buffer of so many `f32`: 0, 1, 2, … |
/// | `zeros:4096` | a buffer of so many bytes, all 0 |
/// | `new:4096` | a buffer of so many bytes that may not be read before they are written |
/// | `file:PATH` | a buffer with the bytes of a file |
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub enum Argument {
    /// A number, as its bytes.
    Value(Vec<u8>),
    /// A buffer with these bytes.
    Buffer(Vec<u8>),
    /// A buffer of so many bytes that hold nothing.
    New(usize),
    /// A buffer with the bytes of a file.
    File(PathBuf),
}

impl FromStr for Argument {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let Some((kind, value)) = text.split_once(':') else {
            bail!("expected an argument such as `u32:7` or `count:4096`, found `{text}`");
        };
        let explain = || format!("expected a number after `{kind}:`, found `{value}`");
        let len = || value.parse::<u32>().with_context(explain);
        Ok(match kind {
            "u32" => Self::Value(number::<u32>(value)?.to_le_bytes().into()),
            "i32" => Self::Value(number::<i32>(value)?.to_le_bytes().into()),
            "u64" => Self::Value(number::<u64>(value)?.to_le_bytes().into()),
            "f32" => Self::Value(number::<f32>(value)?.to_le_bytes().into()),
            "f64" => Self::Value(number::<f64>(value)?.to_le_bytes().into()),
            "count" => Self::Buffer((0..len()?).flat_map(u32::to_le_bytes).collect()),
            "floats" => Self::Buffer((0..len()?).flat_map(|i| (i as f32).to_le_bytes()).collect()),
            "zeros" => Self::Buffer(vec![0; len()? as usize]),
            "new" => Self::New(len()? as usize),
            "file" => Self::File(value.into()),
            _ => bail!(
                "expected `u32`, `i32`, `u64`, `f32`, `f64`, `count`, `floats`, `zeros`, `new` or \
                 `file` before the `:`, found `{kind}`"
            ),
        })
    }
}

impl TryFrom<String> for Argument {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map_err(|error| format!("{error:#}"))
    }
}

fn number<T: FromStr>(text: &str) -> Result<T>
where
    T::Err: std::error::Error + Send + Sync + 'static,
{
    let error = || format!("expected a number, found `{text}`");
    text.parse::<T>().with_context(error)
}

/// A kernel and its launch, as in a TOML file:
///
/// ```toml
/// kernel = "double"
/// grid = [4]
/// block = [256]
/// arguments = ["floats:1024", "new:4096"]
/// ```
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The kernel.
    pub kernel: String,
    /// CTAs in x, y, z; 1 where nothing is said.
    #[serde(default)]
    pub grid: Vec<u32>,
    /// Threads of a CTA in x, y, z.
    pub block: Vec<u32>,
    /// CTAs of a cluster in x, y, z.
    #[serde(default)]
    pub cluster: Vec<u32>,
    /// Bytes of dynamic shared memory.
    #[serde(default)]
    pub shared: u32,
    /// The arguments in their order.
    #[serde(default)]
    pub arguments: Vec<Argument>,
}

/// What was found under many schedules.
#[derive(Debug, Clone)]
pub struct Findings {
    /// What the runs without a mistake took.
    pub stats: Stats,
    /// Schedules without a mistake.
    pub silent: u64,
    /// The others: seed and mistake.
    pub violations: Vec<(u64, Violation)>,
}

impl Argument {
    /// The bytes of a buffer before the launch; `None` for a number.
    pub(super) fn contents(&self) -> Result<Option<Vec<u8>>> {
        Ok(Some(match self {
            Self::Value(_) => return Ok(None),
            Self::Buffer(bytes) => bytes.clone(),
            Self::New(bytes) => vec![NOTHING; *bytes],
            Self::File(path) => {
                std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?
            }
        }))
    }
}

impl Job {
    pub(super) fn grid(&self) -> Result<Grid> {
        let axes = |dims: &[u32], what: &str| {
            ensure!(
                dims.len() <= 3,
                "expected at most three numbers for the {what}, found {dims:?}"
            );
            Ok([0, 1, 2].map(|axis| dims.get(axis).copied().unwrap_or(1)))
        };
        Ok(Grid {
            grid: axes(&self.grid, "grid")?,
            block: axes(&self.block, "block")?,
            shared_bytes: self.shared,
            cluster: match self.cluster.is_empty() {
                true => None,
                false => Some(axes(&self.cluster, "cluster")?),
            },
        })
    }

    /// Runs the kernel once, in memory of its own.
    ///
    /// # Errors
    /// A [`Violation`], or a launch that the kernel does not take.
    pub fn run(&self, program: &Program, options: &Options) -> Result<Stats> {
        Ok(self.launch(program, options, &mut Chooser::of(options))?.0)
    }

    /// Runs the kernel once; also gives its buffers.
    pub(super) fn launch(
        &self,
        program: &Program,
        options: &Options,
        chooser: &mut Chooser,
    ) -> Result<(Stats, Vec<Vec<u8>>)> {
        let mut memory = Memory::new();
        let (mut arguments, mut buffers) = (Vec::new(), Vec::new());
        for argument in &self.arguments {
            let buffer = match (argument, argument.contents()?) {
                (Argument::Value(bytes), _) => {
                    arguments.push(bytes.clone());
                    continue;
                }
                (Argument::New(bytes), _) => memory.uninitialised(*bytes),
                (_, contents) => memory.upload(&contents.unwrap_or_default()),
            };
            arguments.push(buffer.address().to_le_bytes().into());
            buffers.push(buffer);
        }
        let grid = self.grid()?;
        let stats = program.run_as_chosen(
            &self.kernel,
            &grid,
            &arguments,
            &mut memory,
            options,
            chooser,
        )?;
        let buffers = buffers.iter().map(|it| memory.download(*it).to_vec());
        Ok((stats, buffers.collect()))
    }

    /// Runs the kernel under the schedules of `seeds`, on all cores.
    ///
    /// # Errors
    /// If the launch is none that the kernel takes.
    pub fn explore(&self, program: &Program, seeds: std::ops::Range<u64>) -> Result<Findings> {
        let next = AtomicU64::new(seeds.start);
        let worker = || -> Result<Findings> {
            let mut findings = Findings {
                stats: Stats::default(),
                silent: 0,
                violations: Vec::new(),
            };
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= seeds.end {
                    return Ok(findings);
                }
                let options = Options {
                    seed,
                    ..Options::default()
                };
                match self.run(program, &options) {
                    Ok(stats) => {
                        findings.silent += 1;
                        findings.stats.add(stats);
                    }
                    Err(error) => {
                        let violation = error.downcast::<Violation>()?;
                        findings.violations.push((seed, violation));
                    }
                }
            }
        };
        let workers = thread::available_parallelism().map_or(1, usize::from);
        let mut all = Findings {
            stats: Stats::default(),
            silent: 0,
            violations: Vec::new(),
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
            for thread in threads {
                let findings = thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
                all.stats.add(findings.stats);
                all.silent += findings.silent;
                all.violations.extend(findings.violations);
            }
            Ok::<_, anyhow::Error>(())
        })?;
        all.violations.sort_by_key(|(seed, _)| *seed);
        Ok(all)
    }
}

/// What was found under all schedules with few deviations.
#[derive(Debug, Clone, Default)]
pub struct Coverage {
    /// The schedules that were run.
    pub runs: u64,
    /// The most deviations of which every schedule was run.
    pub deviations: usize,
    /// Whether these are all schedules there are.
    pub complete: bool,
    /// The schedules with a mistake.
    pub violations: Vec<(Deviations, Violation)>,
}

impl Job {
    /// Runs the kernel under every schedule, those with the fewest deviations from the plainest first,
    /// but at most `limit` of them.
    ///
    /// A schedule chooses which warp goes on at each step that others can see, when each half of a copy
    /// is moved, and which `try_wait` gives up early.
    ///
    /// # Errors
    /// If the launch is none that the kernel takes.
    pub fn explore_all(&self, program: &Program, limit: usize) -> Result<Coverage> {
        let mut coverage = Coverage::default();
        let mut level = vec![Deviations::default()];
        loop {
            let left = limit - coverage.runs as usize;
            let cut = level.len() > left;
            level.truncate(left);
            let mut next = Vec::new();
            let outcomes = self.run_each(program, &level, limit)?;
            for (deviations, (more, violation)) in level.iter().zip(outcomes) {
                coverage.runs += 1;
                if next.len() <= limit {
                    next.extend(more);
                }
                if let Some(violation) = violation {
                    coverage.violations.push((deviations.clone(), violation));
                }
            }
            if cut {
                return Ok(coverage);
            }
            coverage.deviations = level.first().map_or(0, Deviations::count);
            coverage.complete = next.is_empty();
            if coverage.complete || coverage.runs as usize == limit {
                return Ok(coverage);
            }
            level = next;
        }
    }

    /// Runs some schedules on all cores; gives for each the schedules that deviate once more, and the
    /// mistake.
    fn run_each(
        &self,
        program: &Program,
        schedules: &[Deviations],
        limit: usize,
    ) -> Result<Vec<(Vec<Deviations>, Option<Violation>)>> {
        let one = |deviations: &Deviations| {
            let mut chooser = Chooser::planned(deviations.clone());
            let run = self.launch(program, &Options::default(), &mut chooser);
            let violation = match run {
                Ok(_) => None,
                Err(error) => Some(error.downcast::<Violation>()?),
            };
            Ok((chooser.more_deviations(limit), violation))
        };
        let workers = thread::available_parallelism().map_or(1, usize::from);
        let part = schedules.len().div_ceil(workers).max(1);
        thread::scope(|scope| {
            let parts = schedules.chunks(part);
            let threads: Vec<_> = parts
                .map(|part| scope.spawn(move || part.iter().map(one).collect::<Result<Vec<_>>>()))
                .collect();
            let mut all = Vec::new();
            for thread in threads {
                all.extend(
                    thread
                        .join()
                        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?,
                );
            }
            Ok(all)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_numbers_and_buffers() {
        let parse = |text: &str| text.parse::<Argument>().unwrap();
        assert_eq!(parse("u32:258"), Argument::Value(vec![2, 1, 0, 0]));
        assert_eq!(parse("i32:-1"), Argument::Value(vec![255; 4]));
        assert_eq!(
            parse("count:2"),
            Argument::Buffer(vec![0, 0, 0, 0, 1, 0, 0, 0])
        );
        assert_eq!(parse("new:9"), Argument::New(9));
        for wrong in ["7", "u8:7", "u32:x", "count:-1", ""] {
            let error = wrong.parse::<Argument>().unwrap_err();
            assert!(error.to_string().starts_with("expected"), "{error}");
        }
    }

    #[test]
    fn a_job_is_read_from_toml() {
        let text = "kernel = \"k\"\nblock = [64]\narguments = [\"zeros:4\", \"u32:1\"]";
        let job: Job = toml::from_str(text).unwrap();
        assert_eq!(job.grid().unwrap(), Grid::new([1; 3], [64, 1, 1]));
        assert_eq!(job.arguments.len(), 2);
        assert!(toml::from_str::<Job>("kernel = \"k\"\nblocks = [64]").is_err());
    }

    #[test]
    fn all_schedules_are_run_and_one_is_run_again_by_its_deviations() {
        // Warp 1 reads what warp 0 has written only if it comes late: one deviation finds it early.
        let text = ".version 8.0\n.target sm_90a\n.address_size 64\n.shared .align 4 .u32 word;\n\
             .visible .entry k() { .reg .pred %p; .reg .b32 %r<3>; mov.u32 %r1, %tid.x;\n\
             setp.ge.u32 %p, %r1, 32; @%p bra READ; st.volatile.shared.u32 [word], 1; bra END;\n\
             READ: ld.volatile.shared.u32 %r2, [word]; END: ret; }";
        let job: Job = toml::from_str("kernel = \"k\"\nblock = [64]").unwrap();
        let program = Program::parse(text).unwrap();
        let coverage = job.explore_all(&program, 1000).unwrap();
        assert!(coverage.complete, "{coverage:?}");
        assert!(coverage.runs as usize > coverage.violations.len());
        let (deviations, violation) = &coverage.violations[0];
        assert_eq!(violation.check, super::super::Check::Uninitialised);
        let options = Options {
            deviations: Some(deviations.clone()),
            ..Options::default()
        };
        let again = job.run(&program, &options).unwrap_err();
        assert_eq!(again.downcast_ref::<Violation>(), Some(violation));
        let cut = job.explore_all(&program, 2).unwrap();
        assert_eq!((cut.runs, cut.complete), (2, false));
    }

    #[test]
    fn a_race_is_found_under_every_schedule_and_its_cure_under_none() {
        let text = |barrier: &str| {
            format!(
                ".version 8.0\n.target sm_90a\n.address_size 64\n.shared .align 4 .u32 word;\n\
                 .visible .entry k() {{ .reg .pred %p; .reg .b32 %r<3>; mov.u32 %r1, %tid.x;\n\
                 setp.eq.u32 %p, %r1, 0; @%p st.shared.u32 [word], 1; {barrier}\n\
                 ld.shared.u32 %r2, [word]; ret; }}"
            )
        };
        let job: Job = toml::from_str("kernel = \"k\"\nblock = [128]").unwrap();
        let findings = |barrier| {
            let program = Program::parse(&text(barrier)).unwrap();
            job.explore(&program, 0..30).unwrap()
        };
        let racy = findings("");
        assert_eq!((racy.silent, racy.violations.len()), (0, 30));
        assert_eq!(racy.violations[7].0, 7);
        assert_eq!(findings("bar.sync 0;").silent, 30);
    }
}
