//! The kernels of all forms, built in both languages, and the list of them that goes with the images.
//!
//! The forms of `cuda::ptx` share an image, and those of each family beyond it; of many kernels there are several.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::form::Form;
use super::kernels;
use super::mutants::Mutant;
use super::scenario::{self, Scenario};
use crate::build::{self, Arch, CppTwin, Isa, KernelCrate, write_if_changed};
use crate::parity::form::Form as Declaration;
use crate::parity::headers::Headers;
use crate::parity::matching::{Matching, Mirror};
use crate::spec;
use crate::toolchain;

/// The newest PTX ISA version: the images are machine code, which an older driver loads.
const ISA: Isa = Isa { major: 9, minor: 5 };

/// What to build, and with what.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// The architecture.
    pub arch: Arch,
    /// Which forms get kernels.
    pub extent: Extent,
    /// Wrong specs that get images of their own.
    pub mutants: &'a [Mutant],
    /// The `cuda-ptx-link` to link with, for a program that is not its own linker.
    pub linker: Option<&'a Path>,
}

/// Which of the forms that can be run get kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All.
    All,
    /// Not those that differ from others in the number of columns alone, for which thousands of kernels would take minutes
    /// to build: for tests without a GPU.
    Sample,
}

/// Every form of the headers, and where the images lie.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Images {
    /// The release of CCCL.
    pub cccl: String,
    /// One for every variant of the headers, in their order, and behind them those that `cuda::ptx` lacks.
    pub entries: Vec<Entry>,
    #[serde(skip)]
    folder: PathBuf,
}

/// A form, and whether it is run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// The form.
    pub form: Form,
    /// Why there is no kernel of it.
    pub reason: Option<String>,
    /// The name of the image that has the kernels.
    pub image: Option<String>,
}

/// What an image was written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// This project's functions.
    Rust,
    /// Those of `cuda::ptx`.
    Cpp,
}

const MANIFEST: &str = "differential.json";

impl Entry {
    /// The name of the image that has the kernels.
    ///
    /// # Errors
    ///
    /// There are none.
    pub fn image(&self) -> Result<&str> {
        let image = self.image.as_deref();
        image.with_context(|| format!("there are no kernels of {}", self.form))
    }

    fn not_run(form: Form, reason: String) -> Self {
        Self {
            form,
            reason: Some(reason),
            image: None,
        }
    }
}

impl Images {
    /// The images in `folder`, built earlier.
    ///
    /// # Errors
    ///
    /// There is no list of forms in it.
    pub fn in_folder(folder: &Path) -> Result<Self> {
        let path = folder.join(MANIFEST);
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let images = serde_json::from_str(&text)
            .with_context(|| format!("cannot understand {}", path.display()))?;
        Ok(Self {
            folder: folder.to_path_buf(),
            ..images
        })
    }

    /// Builds the kernels of every form that the architecture has, in both languages, and those of each mutant.
    ///
    /// # Errors
    ///
    /// A tool is missing, something does not build, or a form has no mirror in the spec.
    pub fn build(plan: Plan, folder: &Path) -> Result<Self> {
        let arch = plan.arch;
        let sources = Sources::new(arch, plan.extent, None)?;
        let images = Self {
            cccl: sources.cccl.clone(),
            entries: sources.entries.clone(),
            folder: folder.to_path_buf(),
        };
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let work = toolchain::target_dir().join("differential");
        let root = toolchain::workspace_root();
        let cxx = |part: &Part| {
            let twins = work.join(format!("{}.cu", part.image));
            write_if_changed(&twins, &part.cxx)?;
            CppTwin::new(&twins, arch).cubin(&images.cubin(Side::Cpp, &part.image))
        };
        let rust = |part: &Part| {
            let out = images.cubin(Side::Rust, &part.image);
            build_rust(&part.rust, &root, &work.join(&part.image), plan, &out)
        };
        // C++ takes longer: whoever is done with Rust, of which cargo builds one crate at a time, takes a share.
        let left = Mutex::new(sources.parts.iter());
        let next = || left.lock().map_or(None, |mut left| left.next());
        let cxx = || std::iter::from_fn(next).try_for_each(cxx);
        thread::scope(|scope| {
            let other = scope.spawn(cxx);
            sources.parts.iter().try_for_each(rust)?;
            cxx()?;
            other
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;
        let misuse = [kernels::RUST_PRELUDE, &prelude("misuse.rs")?].concat();
        build_rust(
            &misuse,
            &root,
            &work.join("misuse"),
            plan,
            &Self::misuse(folder),
        )?;
        for mutant in plan.mutants {
            let ptx = sources.mutant_ptx(mutant, &work, plan)?;
            build::cubin(&ptx, arch, images.mutant(mutant.name))?;
        }
        fs::write(
            folder.join(MANIFEST),
            serde_json::to_string(&images)? + "\n",
        )?;
        Ok(images)
    }

    /// The kernels of an image in one language.
    pub fn cubin(&self, side: Side, image: &str) -> PathBuf {
        let side = match side {
            Side::Rust => "rust",
            Side::Cpp => "cpp",
        };
        self.folder
            .join(format!("differential-{image}-{side}.cubin"))
    }

    /// The kernels of [`super::misuse`].
    pub fn misuse(folder: &Path) -> PathBuf {
        folder.join("differential-misuse.cubin")
    }

    /// The kernels in Rust of one mutant.
    pub fn mutant(&self, name: &str) -> PathBuf {
        self.folder.join(format!("differential-{name}.cubin"))
    }
}

/// The kernels as text.
struct Sources {
    /// The release of CCCL.
    cccl: String,
    /// The forms.
    entries: Vec<Entry>,
    /// The kernels, image by image.
    parts: Vec<Part>,
    /// Each kernel in Rust, by its function.
    kernels: Vec<(String, String)>,
}

/// The kernels that share an image, as text.
struct Part {
    /// What the image and its sources are called.
    image: String,
    /// The family, if `cuda::ptx` lacks the forms.
    family: Option<String>,
    /// The kernels in Rust.
    rust: String,
    /// Those in C++.
    cxx: String,
}

/// Bytes of Rust from which on the next kernel goes to another image: one of thousands of kernels would take long to load
/// too, in each process that runs some of them.
const LARGE: usize = 3 << 20;

impl Part {
    /// An image of a family that has so many already.
    fn new(family: Option<&str>, earlier: usize) -> Result<Self> {
        let mut image = family.unwrap_or("mirror").replace('_', "-");
        if earlier > 0 {
            image += &format!("-{}", earlier + 1);
        }
        Ok(Self {
            image,
            family: family.map(str::to_owned),
            rust: rust_head()?,
            cxx: prelude("prelude.cuh")?,
        })
    }
}

impl Sources {
    /// The kernels of every form that `arch` has, or of those of one family beyond `cuda::ptx`.
    ///
    /// # Errors
    ///
    /// The headers are missing, a form has no mirror in the spec, or its scenario does not fit it.
    fn new(arch: Arch, extent: Extent, family: Option<&str>) -> Result<Self> {
        let headers = Headers::read(&toolchain::cuda()?.cccl_include)?;
        let spec = spec::load()?;
        let matching = Matching::new(&headers, &spec)?;
        let mut sources = Self {
            cccl: headers.version.clone(),
            entries: Vec::new(),
            parts: Vec::new(),
            kernels: Vec::new(),
        };
        let mirrored = matching.pairs.iter().filter(|_| family.is_none());
        for (index, pair) in mirrored.enumerate() {
            let form = Form::new(index, &pair.form);
            let entry = match runnable(&pair.form, &form, arch) {
                Err(reason) => Entry::not_run(form, reason),
                Ok(scenario) => {
                    let mirror = pair
                        .mirror
                        .with_context(|| format!("the spec has no mirror of {form}"))?;
                    sources.add(form, &scenario, Some(&pair.form), mirror)?
                }
            };
            sources.entries.push(entry);
        }
        for (form, mirror) in beyond(&matching) {
            if family.is_some() && form.family.as_deref() != family {
                continue;
            }
            let scenario = match mirror.variant.targets.allow(&arch.to_string()) {
                true => scenario::of(&form),
                false => Err(format!("needs {}", mirror.variant.targets)),
            };
            let left_out = match extent {
                Extent::All => None,
                Extent::Sample => scenario::left_out(&form),
            };
            let entry = match (scenario, left_out) {
                (Err(reason), _) | (_, Some(reason)) => Entry::not_run(form, reason),
                (Ok(scenario), None) => sources.add(form, &scenario, None, mirror)?,
            };
            sources.entries.push(entry);
        }
        Ok(sources)
    }

    fn add(
        &mut self,
        form: Form,
        scenario: &Scenario,
        declaration: Option<&Declaration>,
        mirror: Mirror,
    ) -> Result<Entry> {
        let rust =
            kernels::rust(&form.kernel, scenario, mirror).with_context(|| form.to_string())?;
        let cxx = kernels::cxx(&form.kernel, scenario, declaration, mirror)
            .with_context(|| form.to_string())?;
        let part = self.part(form.family.as_deref())?;
        part.rust += &rust;
        part.cxx += &cxx;
        let image = Some(part.image.clone());
        self.kernels.push((form.function.clone(), rust));
        Ok(Entry {
            form,
            reason: None,
            image,
        })
    }

    /// Where the next kernel goes.
    fn part(&mut self, family: Option<&str>) -> Result<&mut Part> {
        let of_family = |part: &Part| part.family.as_deref() == family;
        let open = |part: &Part| of_family(part) && part.rust.len() < LARGE;
        let at = match self.parts.iter().position(open) {
            Some(at) => at,
            None => {
                let earlier = self.parts.iter().filter(|part| of_family(part)).count();
                self.parts.push(Part::new(family, earlier)?);
                self.parts.len() - 1
            }
        };
        Ok(&mut self.parts[at])
    }

    /// The PTX of the functions that a mutant makes wrong.
    fn mutant_ptx(&self, mutant: &Mutant, work: &Path, plan: Plan) -> Result<PathBuf> {
        let (source, root) = (
            self.of_functions(mutant.functions)?,
            mutant.write_crate(work)?,
        );
        rust_ptx(&source, &root, &work.join(mutant.name), plan)
    }

    /// A crate with the kernels of some functions.
    fn of_functions(&self, functions: &[&str]) -> Result<String> {
        let kernels = self
            .kernels
            .iter()
            .filter(|(function, _)| functions.contains(&function.as_str()));
        Ok(kernels.fold(rust_head()?, |text, (_, kernel)| text + kernel))
    }
}

/// The forms of an architecture, all that can be run among them.
///
/// # Errors
///
/// The headers are missing, or a form has no mirror in the spec.
pub fn entries(arch: Arch) -> Result<Vec<Entry>> {
    Ok(Sources::new(arch, Extent::All, None)?.entries)
}

/// The forms that `cuda::ptx` lacks. They are numbered function by function, so that a new one moves few of the others.
pub fn beyond<'m>(matching: &'m Matching) -> Vec<(Form, Mirror<'m>)> {
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let form = |mirror: &Mirror<'m>| {
        let number = numbers.entry(&mirror.overload.rust_name).or_default();
        *number += 1;
        (Form::beyond(*number - 1, *mirror), *mirror)
    };
    matching.beyond.iter().map(form).collect()
}

/// How a form is run, or why it is not.
fn runnable(declaration: &Declaration, form: &Form, arch: Arch) -> Result<Scenario, String> {
    let overload = declaration.overload;
    if !overload.allows(arch) {
        let targets = Vec::from_iter(overload.targets.iter().map(ToString::to_string));
        return Err(format!("needs {}", targets.join(", ")));
    }
    if overload.isa.before.is_some() {
        return Err(
            "the headers hide it from toolkits as new as the one that builds the kernels"
                .to_owned(),
        );
    }
    scenario::of(form)
}

/// What all kernels in Rust stand on.
fn rust_head() -> Result<String> {
    Ok([kernels::RUST_PRELUDE, &prelude("prelude.rs")?].concat())
}

fn prelude(file: &str) -> Result<String> {
    let path = toolchain::workspace_root()
        .join("ptx/differential")
        .join(file);
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// The forms and their kernels, for what executes PTX without a GPU.
#[derive(Clone, Debug)]
pub struct Ptx {
    /// As in [`Images::entries`].
    pub entries: Vec<Entry>,
    /// By [`Entry::image`], where the PTX of the kernels in Rust lies.
    pub kernels: BTreeMap<String, PathBuf>,
    /// The same of each mutant's functions, by its name.
    pub mutants: BTreeMap<&'static str, PathBuf>,
}

/// The forms, or those of one family beyond `cuda::ptx`, and the PTX of their kernels in Rust.
///
/// # Errors
///
/// A tool is missing, something does not build, or a form has no mirror in the spec.
pub fn ptx(plan: Plan, family: Option<&str>) -> Result<Ptx> {
    let sources = Sources::new(plan.arch, plan.extent, family)?;
    let (root, work) = (
        toolchain::workspace_root(),
        toolchain::target_dir().join("differential"),
    );
    let (mut kernels, mut mutants) = (BTreeMap::new(), BTreeMap::new());
    for part in &sources.parts {
        let ptx = rust_ptx(&part.rust, &root, &work.join(&part.image), plan)?;
        kernels.insert(part.image.clone(), ptx);
    }
    for mutant in plan.mutants {
        mutants.insert(mutant.name, sources.mutant_ptx(mutant, &work, plan)?);
    }
    Ok(Ptx {
        entries: sources.entries,
        kernels,
        mutants,
    })
}

/// The PTX of a crate of kernels that depends on the device crate in `root`.
fn rust_ptx(source: &str, root: &Path, folder: &Path, plan: Plan) -> Result<PathBuf> {
    // Crates of one name would share a file in the target folder.
    let name = folder.file_name().unwrap_or_default().display();
    let manifest = format!(
        "[package]\nname = \"differential-{name}\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n[dependencies]\n\
         cuda-ptx = {{ path = {:?} }}\n\n[workspace]\n",
        root.display().to_string()
    );
    write_if_changed(&folder.join("Cargo.toml"), &manifest)?;
    write_if_changed(&folder.join("src/lib.rs"), source)?;
    let mut kernels = KernelCrate::new(folder.join("Cargo.toml"), plan.arch).isa(ISA);
    if let Some(linker) = plan.linker {
        kernels = kernels.linker(linker);
    }
    kernels.ptx()
}

fn build_rust(source: &str, root: &Path, folder: &Path, plan: Plan, out: &Path) -> Result<()> {
    build::cubin(&rust_ptx(source, root, folder, plan)?, plan.arch, out)
}
