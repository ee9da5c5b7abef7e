//! The launches of forms on this process's GPU, and the comparison of what comes out.

use std::collections::hash_map::Entry as MapEntry;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use cust::memory::DevicePointer;
use serde::{Deserialize, Serialize};

use super::agreement::{self, Found};
use super::golden::Digest;
use super::images::{Entry, Images, Side};
use super::scenario::{self, Case, Tensor, Word};
use crate::driver::{
    Arguments, Driver, Function, Module, OutOfBounds, TensorMap, TensorMapBuilder,
};

/// Launches of some forms, for a child process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// Where the images lie.
    pub folder: PathBuf,
    /// Positions in the list of forms.
    pub forms: Vec<usize>,
    /// The seeds of the inputs.
    pub seeds: Vec<u64>,
    /// The mutant that stands in for the kernels in Rust.
    pub mutant: Option<String>,
    /// The file to which is added what each launch gives that is not just what is expected.
    pub outputs: Option<Outputs>,
    /// Whether compute-sanitizer looks on.
    pub sanitized: bool,
}

/// Where to write down what launches give.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outputs {
    /// Lines of JSON are added to this file: one before each launch, and one for each language behind it.
    pub file: PathBuf,
    /// How many launches to leave out, because an earlier child process came no further.
    pub skip: usize,
}

/// What became of a form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Its position in the list of forms.
    pub form: usize,
    /// Whether both languages gave the same in every launch.
    pub rust_vs_cpp: bool,
    /// Whether both gave what the PTX ISA says.
    pub vs_isa: bool,
    /// Launches, of both languages together.
    pub runs: u64,
    /// The first difference.
    pub difference: Option<String>,
    /// The seed of the first difference.
    pub seed: Option<u64>,
    /// For each seed, what the kernels in Rust gave.
    pub digests: Vec<Digest>,
    /// What was counted in all launches, by name.
    pub counts: BTreeMap<String, u64>,
}

impl Finding {
    /// A form whose kernels did not finish.
    pub fn failed(form: usize, why: String) -> Self {
        Self {
            form,
            rust_vs_cpp: false,
            vs_isa: false,
            runs: 0,
            difference: Some(why),
            seed: None,
            digests: Vec::new(),
            counts: BTreeMap::new(),
        }
    }

    /// Whether all agree.
    pub fn holds(&self) -> bool {
        self.rust_vs_cpp && self.vs_isa
    }
}

/// One launch that is expected to fail, for a child process of its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FailingJob {
    /// Where the images lie.
    pub folder: PathBuf,
    /// The position in the list of forms.
    pub form: usize,
    /// Whether in C++.
    pub cpp: bool,
}

impl Job {
    /// Runs every case of every form and seed, in both languages.
    ///
    /// # Errors
    ///
    /// There is no GPU, an image cannot be loaded, or a kernel fails, which leaves this process without a GPU.
    pub fn run(&self) -> Result<Vec<Finding>> {
        let images = Images::in_folder(&self.folder)?;
        let driver = Driver::open()?;
        let mut modules = HashMap::new();
        let mut findings = Vec::new();
        for &form in &self.forms {
            let entry = images
                .entries
                .get(form)
                .with_context(|| format!("there is no form {form}"))?;
            let image = entry.image()?;
            let modules = match modules.entry(image) {
                MapEntry::Occupied(loaded) => loaded.into_mut(),
                MapEntry::Vacant(place) => place.insert(self.load(&driver, &images, image)?),
            };
            let finding = self.form(&driver, modules, form, entry);
            findings.push(finding.with_context(|| entry.form.to_string())?);
        }
        Ok(findings)
    }

    /// The kernels in Rust and in C++.
    fn load<'d>(
        &self,
        driver: &'d Driver,
        images: &Images,
        image: &str,
    ) -> Result<[Module<'d>; 2]> {
        let rust = match &self.mutant {
            Some(mutant) => images.mutant(mutant),
            None => images.cubin(Side::Rust, image),
        };
        let load = |path: PathBuf| -> Result<Module<'d>> {
            let image =
                std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            Ok(driver.load(&image)?)
        };
        Ok([load(rust)?, load(images.cubin(Side::Cpp, image))?])
    }

    fn form(
        &self,
        driver: &Driver,
        modules: &[Module; 2],
        number: usize,
        entry: &Entry,
    ) -> Result<Finding> {
        let scenario = scenario::of(&entry.form).map_err(anyhow::Error::msg)?;
        let functions = [
            modules[0].function(&entry.form.kernel)?,
            modules[1].function(&entry.form.kernel)?,
        ];
        let mut finding = Finding {
            form: number,
            rust_vs_cpp: true,
            vs_isa: true,
            runs: 0,
            difference: None,
            seed: None,
            digests: Vec::new(),
            counts: BTreeMap::new(),
        };
        let mut skip = self.outputs.as_ref().map_or(0, |outputs| outputs.skip);
        for &seed in &self.seeds {
            let mut digest = Digest::new(seed);
            for case in (scenario.cases)(seed)
                .iter()
                .filter(|case| !case.expected.fails && !self.mistakes(entry, case))
            {
                if skip > 0 {
                    skip -= 1;
                    continue;
                }
                if let Some(outputs) = &self.outputs {
                    outputs.add(&serde_json::json!({"begun": case.what, "seed": seed}))?;
                }
                let results = launch(driver, &functions, case)
                    .with_context(|| format!("seed {seed}, {}", case.what))?;
                finding.runs += 2;
                if let Some(outputs) = &self.outputs {
                    outputs.record(entry, seed, case, &results)?;
                }
                digest.add(case, &results.found[0]);
                if let Some(counts) = &case.counts {
                    for (name, count) in results.found.iter().flat_map(|it| counts(&it.output)) {
                        *finding.counts.entry(name).or_default() += count;
                    }
                }
                if let Some(bits) = results.deviations(case) {
                    let name = format!("bits unlike the driver's map, {}", case.what);
                    *finding.counts.entry(name).or_default() += bits;
                }
                let mut note = |what: Result<(), String>| {
                    if let Err(difference) = &what {
                        let difference = format!("seed {seed}, {}: {difference}", case.what);
                        finding.difference.get_or_insert(difference);
                        finding.seed.get_or_insert(seed);
                    }
                    what.is_ok()
                };
                finding.rust_vs_cpp &= note(agreement::of_languages(
                    &results.expected,
                    [&results.found[0], &results.found[1]],
                    case,
                ));
                for (language, found) in ["Rust", "C++"].iter().zip(&results.found) {
                    let agrees = agreement::with_isa(&results.expected, found, case);
                    finding.vs_isa &=
                        note(agrees.map_err(|difference| format!("{language}: {difference}")));
                }
            }
            finding.digests.push(digest);
        }
        Ok(finding)
    }
}

impl Job {
    /// Whether memcheck takes the launch for wrong: to it, the block's own shared memory is outside a cluster of one.
    fn mistakes(&self, entry: &Entry, case: &Case) -> bool {
        self.sanitized
            && entry
                .form
                .tags
                .starts_with(&["space_cluster", "space_shared"].map(str::to_owned))
            && case.launch.cluster == Some([1; 3])
    }
}

impl Outputs {
    /// How many launches were begun.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn begun(&self) -> Result<usize> {
        let text = std::fs::read_to_string(&self.file)?;
        Ok(text
            .lines()
            .filter(|line| line.starts_with("{\"begun\""))
            .count())
    }

    fn add(&self, line: &serde_json::Value) -> Result<()> {
        let mut file = File::options()
            .create(true)
            .append(true)
            .open(&self.file)
            .with_context(|| format!("cannot write {}", self.file.display()))?;
        Ok(writeln!(file, "{line}")?)
    }

    /// Words of output and bytes of global memory that are not just what is expected, with their places.
    fn record(&self, entry: &Entry, seed: u64, case: &Case, results: &Results) -> Result<()> {
        for (language, found) in ["Rust", "C++"].iter().zip(&results.found) {
            let words = results.expected.iter().zip(&found.output).enumerate();
            let words = words
                .filter(|(_, (expected, found))| **expected != Word::Is(**found))
                .map(|(at, (expected, found))| {
                    (at, format!("{found:#x}"), agreement::describe(*expected))
                });
            let memory = case.expected.memory.iter().zip(&found.memory).enumerate();
            let memory = memory
                .filter(|(_, (expected, found))| expected != found)
                .map(|(at, (expected, found))| (at, *found, *expected));
            self.add(&serde_json::json!({
                "form": entry.form.kernel,
                "seed": seed,
                "case": case.what,
                "language": language,
                "output": Vec::from_iter(words),
                "memory": Vec::from_iter(memory),
            }))?;
        }
        Ok(())
    }
}

impl FailingJob {
    /// Launches the one case that fails.
    ///
    /// # Errors
    ///
    /// The driver's, if all is as it should be.
    pub fn run(&self) -> Result<()> {
        let images = Images::in_folder(&self.folder)?;
        let entry = images
            .entries
            .get(self.form)
            .with_context(|| format!("there is no form {}", self.form))?;
        let scenario = scenario::of(&entry.form).map_err(anyhow::Error::msg)?;
        let driver = Driver::open()?;
        let side = if self.cpp { Side::Cpp } else { Side::Rust };
        let image = std::fs::read(images.cubin(side, entry.image()?))?;
        let module = driver.load(&image)?;
        let function = module.function(&entry.form.kernel)?;
        let cases = (scenario.cases)(1);
        let case = cases
            .iter()
            .find(|case| case.expected.fails)
            .context("no case is to fail")?;
        launch(&driver, &[function], case).map(drop)
    }
}

/// What the launches of one case gave, and the words that were expected.
struct Results {
    found: Vec<Found>,
    expected: Vec<Word>,
    /// The driver's tensor map, if one is among the words of output.
    map: Option<[u64; 16]>,
}

impl Results {
    /// The bits in which maps in the output differ from the driver's.
    fn deviations(&self, case: &Case) -> Option<u64> {
        let map = self.map?;
        let at = case.expected.map.as_ref()?.at;
        let of = |found: &Found| {
            let words = found.output[at..].iter().zip(map);
            words
                .map(|(found, driver)| u64::from((found ^ driver).count_ones()))
                .sum::<u64>()
        };
        Some(self.found.iter().map(of).sum())
    }
}

/// Both languages work on the same buffers one after the other, so that addresses are the same.
fn launch(driver: &Driver, functions: &[Function], case: &Case) -> Result<Results> {
    let input = driver.upload(if case.input.is_empty() {
        &[0]
    } else {
        &case.input[..]
    })?;
    let mut output = driver.upload(&case.blank_output())?;
    let mut memory = driver.upload(if case.memory.is_empty() {
        &[0]
    } else {
        &case.memory[..]
    })?;
    let address = memory.as_device_ptr().as_raw();
    let mut arguments = Arguments::new()
        .pointer(&input)
        .pointer(&output)
        .pointer(&memory);
    if let Some(tensor) = &case.tensor {
        arguments = arguments.tensor_map(encode(driver, tensor, address)?);
    }
    let mut expected = case.expected.output.clone();
    let mut of_driver = None;
    if let (Some(before), Some(map)) = (&case.tensor, &case.expected.map) {
        let before = map_words(&encode(driver, before, address)?);
        let after = map_words(&encode(driver, &map.tensor, address)?);
        of_driver = Some(after);
        // Sizes that the driver works out from several fields may stay as they were.
        let words = expected[map.at..].iter_mut().zip(before).zip(after);
        for ((word, before), after) in words {
            *word = Word::Masked(after, !(before ^ after));
        }
    }
    let mut found = Vec::new();
    for function in functions {
        driver.copy_to_device(&case.blank_output(), &mut output)?;
        if !case.memory.is_empty() {
            driver.copy_to_device(&case.memory, &mut memory)?;
        }
        // SAFETY: the kernel takes these arguments, and stays within them as its case says.
        unsafe { function.launch(&case.launch, &arguments)? };
        driver.synchronize()?;
        found.push(Found {
            output: driver.download(&output)?,
            memory: driver.download(&memory)?,
        });
    }
    Ok(Results {
        found,
        expected,
        map: of_driver,
    })
}

fn encode(driver: &Driver, tensor: &Tensor, memory: u64) -> Result<TensorMap> {
    let address = DevicePointer::<u8>::from_raw(memory + tensor.at);
    let (of, dims) = (tensor.data_type, &tensor.dims);
    let builder = match &tensor.columns {
        None => TensorMapBuilder::tiled(of, address, dims, &tensor.tile),
        Some(columns) => {
            let corners = (&columns.lower[..], &columns.upper[..]);
            TensorMapBuilder::im2col(of, address, dims, corners, tensor.tile[0], columns.pixels)
        }
    };
    let mut builder = builder
        .strides(&tensor.strides)
        .element_strides(&tensor.steps)
        .swizzle(tensor.swizzle)
        .interleave(tensor.interleave);
    if tensor.nan {
        builder = builder.out_of_bounds(OutOfBounds::Nan);
    }
    builder
        .encode(driver)
        .with_context(|| format!("{tensor:?}"))
}

/// The 128 bytes of a tensor map.
fn map_words(map: &TensorMap) -> [u64; 16] {
    // SAFETY: a tensor map is 128 bytes of plain data.
    unsafe { std::mem::transmute_copy(map) }
}

/// Fails unless the form is one that can be run.
pub fn check_runnable(images: &Images, form: usize) -> Result<()> {
    if let Some(reason) = &images.entries[form].reason {
        bail!("{} cannot be run: {reason}", images.entries[form].form);
    }
    Ok(())
}
