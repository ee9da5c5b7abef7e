//! The kernels of all forms, built in both languages, and the list of them that goes with the images.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::form::Form;
use super::kernels;
use super::mutants::Mutant;
use super::scenario::{self, Scenario};
use crate::build::{self, Arch, CppTwin, Isa, KernelCrate};
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
    /// Wrong specs that get images of their own.
    pub mutants: &'a [Mutant],
    /// The `cuda-ptx-link` to link with, for a program that is not its own linker.
    pub linker: Option<&'a Path>,
}

/// Every form of the headers, and where the images lie.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Images {
    /// The release of CCCL.
    pub cccl: String,
    /// One for every variant of the headers, in their order.
    pub entries: Vec<Entry>,
    #[serde(skip)]
    folder: PathBuf,
}

/// A form, and whether it can be run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// The form.
    pub form: Form,
    /// Why there is no kernel of it.
    pub reason: Option<String>,
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
        let tools = toolchain::cuda()?;
        let headers = Headers::read(&tools.cccl_include)?;
        let spec = spec::load()?;
        let matching = Matching::new(&headers, &spec)?;
        let sources = Sources::new(&matching, arch)?;
        let images = Self {
            cccl: headers.version.clone(),
            entries: sources.entries.clone(),
            folder: folder.to_path_buf(),
        };
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let work = toolchain::target_dir().join("differential");
        let twins = work.join("differential.cu");
        write_if_changed(&twins, &sources.cxx)?;
        CppTwin::new(&twins, arch).cubin(&images.cubin(Side::Cpp))?;
        let root = toolchain::workspace_root();
        build_rust(
            &sources.rust,
            &root,
            &work.join("rust"),
            plan,
            &images.cubin(Side::Rust),
        )?;
        let misuse = [kernels::RUST_PRELUDE, &prelude("misuse.rs")?].concat();
        build_rust(
            &misuse,
            &root,
            &work.join("misuse"),
            plan,
            &Self::misuse(folder),
        )?;
        for mutant in plan.mutants {
            let crate_folder = mutant.write_crate(&work)?;
            let source = sources.of_functions(mutant.functions)?;
            build_rust(
                &source,
                &crate_folder,
                &work.join(mutant.name),
                plan,
                &images.mutant(mutant.name),
            )?;
        }
        fs::write(
            folder.join(MANIFEST),
            serde_json::to_string(&images)? + "\n",
        )?;
        Ok(images)
    }

    /// The kernels of one language.
    pub fn cubin(&self, side: Side) -> PathBuf {
        self.folder.join(match side {
            Side::Rust => "differential-rust.cubin",
            Side::Cpp => "differential-cpp.cubin",
        })
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
pub struct Sources {
    /// The forms.
    pub entries: Vec<Entry>,
    /// All kernels in Rust.
    pub rust: String,
    /// All kernels in C++.
    pub cxx: String,
    /// Each kernel in Rust, by its function.
    kernels: Vec<(String, String)>,
}

impl Sources {
    /// The kernels of every form that `arch` has.
    ///
    /// # Errors
    ///
    /// A form has no mirror, or its scenario does not fit it.
    pub fn new(matching: &Matching, arch: Arch) -> Result<Self> {
        let mut sources = Self {
            entries: Vec::new(),
            rust: format!("{}{}", kernels::RUST_PRELUDE, prelude("prelude.rs")?),
            cxx: prelude("prelude.cuh")?,
            kernels: Vec::new(),
        };
        for (index, pair) in matching.pairs.iter().enumerate() {
            let form = Form::new(index, &pair.form);
            let reason = match runnable(&pair.form, &form, arch) {
                Err(reason) => Some(reason),
                Ok(scenario) => {
                    let mirror = pair
                        .mirror
                        .with_context(|| format!("the spec has no mirror of {form}"))?;
                    sources.add(&form, &scenario, &pair.form, mirror)?;
                    None
                }
            };
            sources.entries.push(Entry { form, reason });
        }
        Ok(sources)
    }

    fn add(
        &mut self,
        form: &Form,
        scenario: &Scenario,
        declaration: &Declaration,
        mirror: Mirror,
    ) -> Result<()> {
        let rust =
            kernels::rust(&form.kernel, scenario, mirror).with_context(|| form.to_string())?;
        self.rust += &rust;
        self.cxx += &kernels::cxx(&form.kernel, scenario, declaration, mirror)
            .with_context(|| form.to_string())?;
        self.kernels.push((form.function.clone(), rust));
        Ok(())
    }

    /// A crate with the kernels of some functions.
    fn of_functions(&self, functions: &[&str]) -> Result<String> {
        let kernels = self
            .kernels
            .iter()
            .filter(|(function, _)| functions.contains(&function.as_str()));
        let head = format!("{}{}", kernels::RUST_PRELUDE, prelude("prelude.rs")?);
        Ok(kernels.fold(head, |text, (_, kernel)| text + kernel))
    }
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

fn prelude(file: &str) -> Result<String> {
    let path = toolchain::workspace_root()
        .join("ptx/differential")
        .join(file);
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// The forms, and where the PTX of their kernels in Rust lies: for what executes it without a GPU.
///
/// # Errors
///
/// A tool is missing, something does not build, or a form has no mirror in the spec.
pub fn ptx(plan: Plan) -> Result<(Vec<Entry>, PathBuf)> {
    let headers = Headers::read(&toolchain::cuda()?.cccl_include)?;
    let spec = spec::load()?;
    let sources = Sources::new(&Matching::new(&headers, &spec)?, plan.arch)?;
    let folder = toolchain::target_dir().join("differential/rust");
    let ptx = rust_ptx(&sources.rust, &toolchain::workspace_root(), &folder, plan)?;
    Ok((sources.entries, ptx))
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

/// A file that keeps its time of change also keeps cargo from building again.
pub(super) fn write_if_changed(path: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(path).is_ok_and(|present| present == text) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
