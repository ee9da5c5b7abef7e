//! The kernels of all forms as cubins in both languages, and what is known of them before they run.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::forms::{self, FormKernel};
use super::setup::{self, Actor, Chain, Link};
use super::source::{self, Subject};
use crate::build::{self, Arch, CppTwin, Isa, KernelCrate, write_if_changed};
use crate::inspect::sass;
use crate::spec::{self, Spec};
use crate::toolchain;

/// The newest PTX ISA version: ptxas of CUDA 13.5 makes cubins of it that older drivers load.
const ISA: Isa = Isa { major: 9, minor: 5 };

const FORMS: &str = "bench-forms.json";

/// The images with the forms of `cuda::ptx`; what it lacks has images for each family.
pub const MIRROR: &str = "cuda-ptx";

/// All forms that an architecture has.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Forms {
    /// The architecture, as in `sm_90a`.
    pub architecture: String,
    /// The links that join the steps of a chain, each alone.
    pub links: Vec<Form>,
    /// Those that can be timed.
    pub timed: Vec<Form>,
    /// Those that cannot.
    pub untimed: Vec<Untimed>,
    /// How many forms `cuda::ptx` has that are for other architectures.
    pub elsewhere: usize,
    /// How many forms that it lacks are for other architectures.
    pub elsewhere_beyond: usize,
}

/// A form and how it is timed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Form {
    /// The instruction with its operands.
    pub form: String,
    /// The family in `spec/`; `link` for a link alone.
    pub family: String,
    /// The kernel's name in both images.
    pub kernel: String,
    /// What makes a step wait for the one before.
    pub chain: Chain,
    /// Who executes a step.
    pub actor: Actor,
    /// Whether the kernel runs in clusters of two CTAs.
    pub cluster: bool,
    /// Steps in the body of the loop.
    pub unroll: u32,
    /// Bytes that a step moves.
    pub bytes: u32,
    /// Whether a step costs more at some places of global memory than at others.
    pub places: bool,
    /// Threads of the smallest block.
    pub threads: u32,
    /// Threads of the largest block.
    pub max_threads: u32,
    /// Bytes of shared memory besides the barriers and buffers of the warps.
    pub shared: u32,
    /// Multiplications and additions of a step.
    pub flops: u32,
    /// Whether `cuda::ptx` lacks it.
    pub beyond: bool,
    /// What else a step holds.
    pub with: String,
    /// How the machine code of Rust compares with that of C++.
    pub sass: String,
    /// What one side has more of, if they differ.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub difference: String,
    /// The instructions of the kernel, Rust and C++.
    pub instructions: [usize; 2],
    /// The assembler kept fewer copies of the instruction than the chain has steps.
    pub collapsed: bool,
}

/// A form that is not timed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Untimed {
    /// The instruction with its operands.
    pub form: String,
    /// The family in `spec/`.
    pub family: String,
    /// Whether `cuda::ptx` lacks it.
    pub beyond: bool,
    /// Why.
    pub reason: String,
}

impl Form {
    /// The images that have the kernel.
    pub fn image(&self) -> &str {
        image(&self.family, self.beyond)
    }
}

/// The images that have the forms of a family, of `cuda::ptx` or beyond it.
fn image(family: &str, beyond: bool) -> &str {
    if beyond { family } else { MIRROR }
}

/// The images in a folder.
#[derive(Clone, Debug)]
pub struct Images {
    folder: PathBuf,
}

impl Images {
    /// Those built earlier.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// Cubins with kernels of forms: Rust, C++.
    pub fn cubins(&self, image: &str) -> [PathBuf; 2] {
        ["rust", "cpp"].map(|side| self.folder.join(format!("bench-{image}-{side}.cubin")))
    }

    /// Those of the situations: Rust, C++.
    pub fn situation_cubins(&self) -> [PathBuf; 2] {
        ["situations-rust.cubin", "situations-cpp.cubin"].map(|name| self.folder.join(name))
    }

    /// What is in them.
    ///
    /// # Errors
    /// If they were not built.
    pub fn forms(&self) -> Result<Forms> {
        let path = self.folder.join(FORMS);
        let text = fs::read_to_string(&path).with_context(|| {
            format!("cannot read {}: the kernels were not built", path.display())
        })?;
        serde_json::from_str(&text).with_context(|| format!("cannot understand {}", path.display()))
    }

    /// Builds the kernels of every form that `arch` has.
    ///
    /// # Errors
    /// If a tool is missing or a side does not build.
    pub fn build(arch: Arch, folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let images = Self::in_folder(folder);
        let spec = spec::load()?;
        let Subjects {
            subjects,
            untimed,
            elsewhere,
        } = Subjects::of(&spec, arch);
        images.build_situations(arch)?;
        let mut forms = Forms {
            architecture: arch.to_string(),
            links: Vec::new(),
            timed: Vec::new(),
            untimed,
            elsewhere: elsewhere[0],
            elsewhere_beyond: elsewhere[1],
        };
        for (image, subjects) in by_image(&subjects) {
            let [rust, cpp] = images.cubins(image);
            thread::scope(|scope| {
                let cpp = scope.spawn(|| build_cpp(image, &subjects, arch, &cpp));
                build_rust(image, &subjects, arch, &rust)?;
                cpp.join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })?;
            let sides = functions([&rust, &cpp])?;
            for subject in subjects {
                forms.timed.push(with_sass(timed_form(subject), &sides)?);
            }
            if image == MIRROR {
                for link in source::LINKS {
                    forms.links.push(with_sass(link_form(link), &sides)?);
                }
            }
        }
        fs::write(
            folder.join(FORMS),
            serde_json::to_string_pretty(&forms)? + "\n",
        )?;
        Ok(images)
    }
}

impl Images {
    fn build_situations(&self, arch: Arch) -> Result<()> {
        let source = toolchain::workspace_root().join("ptx/bench");
        let [rust, cpp] = self.situation_cubins();
        build::build(&KernelCrate::new(source.join("Cargo.toml"), arch), &rust)?;
        CppTwin::new(source.join("src/bench.cu"), arch).cubin(&cpp)
    }
}

/// How the functions begin that neither `cuda::ptx` has nor the spec says in C++.
const WITHOUT_TWIN: [&str; 3] = ["mapa", "enable_smem_spilling", "ldmatrix_m16n16"];

/// The forms, by what becomes of them.
struct Subjects<'a> {
    subjects: Vec<Subject<'a>>,
    untimed: Vec<Untimed>,
    /// Those that the architecture lacks: of `cuda::ptx`, and of what it lacks.
    elsewhere: [usize; 2],
}

impl<'a> Subjects<'a> {
    fn of(spec: &'a Spec, arch: Arch) -> Self {
        let isa = spec::Isa(ISA.number() as u16);
        let mut all = Self {
            subjects: Vec::new(),
            untimed: Vec::new(),
            elsewhere: [0; 2],
        };
        let has_twin = |kernel: &FormKernel| {
            let function = &kernel.variant.function;
            !WITHOUT_TWIN.iter().any(|start| function.starts_with(start))
        };
        for kernel in forms::all(spec).into_iter().filter(has_twin) {
            if !kernel.variant.is_available(&arch.to_string(), isa) {
                all.elsewhere[usize::from(kernel.variant.is_beyond())] += 1;
                continue;
            }
            match setup::setup_of(kernel.variant) {
                Ok(setup) => all.subjects.push(Subject { kernel, setup }),
                Err(reason) => all.untimed.push(Untimed {
                    form: form(&kernel),
                    family: kernel.family.name.clone(),
                    beyond: kernel.variant.is_beyond(),
                    reason: reason.to_owned(),
                }),
            }
        }
        all
    }
}

/// The forms of each pair of cubins.
fn by_image<'a>(subjects: &'a [Subject]) -> BTreeMap<&'a str, Vec<&'a Subject<'a>>> {
    let mut images: BTreeMap<&str, Vec<&Subject>> = BTreeMap::new();
    for subject in subjects {
        let FormKernel {
            family, variant, ..
        } = &subject.kernel;
        let image = image(&family.name, variant.is_beyond());
        images.entry(image).or_default().push(subject);
    }
    images
}

fn form(kernel: &FormKernel) -> String {
    kernel
        .variant
        .ptx
        .replace(['{', '}'], "")
        .trim_end_matches(';')
        .to_owned()
}

fn folder() -> PathBuf {
    toolchain::target_dir().join("bench")
}

fn build_rust(image: &str, subjects: &[&Subject], arch: Arch, cubin: &Path) -> Result<()> {
    let folder = folder().join(image).join("rust");
    let manifest = format!(
        "[package]\nname = \"bench-{image}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n\
         cuda-ptx = {{ path = {:?} }}\n\n[workspace]\n",
        toolchain::workspace_root().display().to_string()
    );
    write_if_changed(&folder.join("Cargo.toml"), &manifest)?;
    write_if_changed(&folder.join("src/lib.rs"), &source::rust(subjects))?;
    let kernels = KernelCrate::new(folder.join("Cargo.toml"), arch).isa(ISA);
    build::build(&kernels, cubin)
}

fn build_cpp(image: &str, subjects: &[&Subject], arch: Arch, cubin: &Path) -> Result<()> {
    let file = folder().join(image).join("kernels.cu");
    write_if_changed(&file, &source::cpp(subjects))?;
    let time = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
    if time(cubin) < time(&file) {
        CppTwin::new(file, arch).cubin(cubin)?;
    }
    Ok(())
}

type Functions = HashMap<String, sass::Function>;

/// The machine code of both sides, by the kernel's name.
fn functions(cubins: [&Path; 2]) -> Result<Vec<Functions>> {
    let nvdisasm = &toolchain::cuda()?.nvdisasm;
    let by_name = |cubin| -> Result<Functions> {
        let functions = sass::disassemble(nvdisasm, cubin)?;
        Ok(functions.into_iter().map(|f| (f.name.clone(), f)).collect())
    };
    cubins.into_iter().map(by_name).collect()
}

fn link_form(link: Link) -> Form {
    let name = source::link_name(link);
    Form {
        form: name.to_owned(),
        family: "link".to_owned(),
        kernel: name.to_owned(),
        chain: Chain::Value,
        actor: Actor::Warp,
        cluster: false,
        unroll: 64,
        bytes: 0,
        places: false,
        threads: 32,
        max_threads: 1024,
        shared: 0,
        flops: 0,
        beyond: false,
        with: String::new(),
        sass: String::new(),
        difference: String::new(),
        instructions: [0; 2],
        collapsed: false,
    }
}

fn timed_form(Subject { kernel, setup }: &Subject) -> Form {
    Form {
        form: form(kernel),
        family: kernel.family.name.clone(),
        kernel: kernel.name.clone(),
        chain: setup.chain,
        actor: setup.actor,
        cluster: setup.cluster,
        unroll: setup.unroll,
        bytes: setup.bytes,
        places: setup.places,
        threads: setup.threads,
        max_threads: setup.max_threads,
        shared: setup.shared,
        flops: setup.flops,
        beyond: kernel.variant.is_beyond(),
        with: setup.with.to_owned(),
        sass: String::new(),
        difference: String::new(),
        instructions: [0; 2],
        collapsed: false,
    }
}

/// Compares the machine code of both sides.
fn with_sass(mut form: Form, sides: &[Functions]) -> Result<Form> {
    let side = |index: usize| {
        sides[index]
            .get(&form.kernel)
            .map(timed_part)
            .with_context(|| format!("the cubins lack the kernel {}", form.kernel))
    };
    let (rust, cpp) = (side(0)?, side(1)?);
    let comparison = sass::compare(&rust, &cpp);
    form.sass = format!("{:?}", comparison.class).to_lowercase();
    if !comparison.difference.is_empty() {
        form.difference = comparison.difference.to_string();
    }
    form.instructions = [rust.instructions.len(), cpp.instructions.len()];
    form.collapsed = [&rust, &cpp]
        .iter()
        .any(|side| carried_out(side, form.flops > 0) < form.unroll as usize);
    Ok(form)
}

/// How many of a chain's instructions are left at most: of products, the assembler may make one and add it to all sums.
fn carried_out(chain: &sass::Function, is_product: bool) -> usize {
    let opcodes = chain
        .instructions
        .iter()
        .map(|instruction| &instruction.opcode);
    let calls = |opcode: &String| opcode.starts_with("CALL");
    match is_product && !opcodes.clone().any(calls) {
        true => opcodes.filter(|opcode| opcode.contains("MMA")).count(),
        false => chain.instructions.len(),
    }
}

/// The chain: the longest loop between the first and the last reading of the clock. A loop that waits lies within.
fn timed_part(function: &sass::Function) -> sass::Function {
    let instructions = &function.instructions;
    let reads_clock = |instruction: &sass::Instruction| {
        let mut operands = instruction.operands.iter();
        operands.any(|operand| operand.contains("SR_CLOCKLO"))
    };
    let first = instructions.iter().position(reads_clock).unwrap_or(0);
    let last = instructions.iter().rposition(reads_clock).unwrap_or(0);
    let loops = (first..last).filter_map(|index| {
        let target = instructions[index].operands.last()?.strip_prefix('#')?;
        let target: usize = target.parse().ok()?;
        (first < target && target < index).then_some(target..index + 1)
    });
    let body = loops
        .max_by_key(ExactSizeIterator::len)
        .unwrap_or(first..last);
    sass::Function {
        name: function.name.clone(),
        instructions: instructions[body].to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_sm_90a_is_timed_or_has_a_reason() {
        let spec = spec::load().unwrap();
        let Subjects {
            subjects,
            untimed,
            elsewhere,
        } = Subjects::of(&spec, Arch::SM_90A);
        // As many as the headers of CCCL 3.5.0 have, and as they have for this architecture.
        let mirrored = subjects
            .iter()
            .filter(|s| !s.kernel.variant.is_beyond())
            .count();
        assert_eq!(mirrored + untimed.iter().filter(|u| !u.beyond).count(), 976);
        assert_eq!(976 + elsewhere[0], 2792);
        assert_eq!(mirrored, 650);
        let unknown = untimed
            .iter()
            .find(|form| form.reason.contains("no set-up"));
        assert!(unknown.is_none(), "{unknown:?}");
        // Of what `cuda::ptx` lacks, these are all the reasons.
        let reasons = ["directive", "multicast"];
        let known = |form: &Untimed| reasons.iter().any(|part| form.reason.contains(part));
        let unknown = untimed.iter().find(|form| form.beyond && !known(form));
        assert!(unknown.is_none(), "{unknown:?}");
    }

    #[test]
    fn both_languages_get_a_kernel_of_each_form() {
        let spec = spec::load().unwrap();
        let subjects = Subjects::of(&spec, Arch::SM_90A).subjects;
        for subjects in by_image(&subjects).into_values() {
            let (rust, cpp) = (source::rust(&subjects), source::cpp(&subjects));
            for subject in subjects {
                let name = &subject.kernel.name;
                assert!(rust.contains(&format!("pub fn {name}(")), "{name}");
                assert!(cpp.contains(&format!(" {name}(")), "{name}");
            }
            assert!(!rust.contains("$CALL") && !cpp.contains("$CALL"));
        }
    }
}
