//! How each form is run: the body of its kernels, the launches, and what must come out.
//!
//! A body is written once, in a few lines that [`super::kernels`] renders in Rust and in C++; only
//! the line that begins with `@` differs, the call of the form. What must come out is computed here,
//! from what the PTX ISA says of the instruction that the C++ headers name: neither the spec nor
//! the device crate has a part in it. Of what the headers lack (`beyond`) the spec names the instruction.

mod barrier;
mod beyond;
mod bulk;
mod control;
mod fence;
mod matrix;
mod memory;
mod reduce;
mod remote;
mod shuffle;
mod special_registers;
mod tensor;
mod tensor_map;
mod values;

use anyhow::Result;

use super::form::Form;
use crate::driver::{DataType, Interleave, Launch, Swizzle};
use crate::exec::Columns;
use crate::guide::random;

pub use reduce::Element;

/// What an output holds before the launch.
pub const POISON: u64 = 0xdead_beef_a5a5_5a5a;

/// Words behind the end of the output that no kernel may write.
const GUARD: usize = 16;

/// How a form is run.
pub struct Scenario {
    /// The statements of its kernels.
    pub body: String,
    /// Static shared memory, in bytes.
    pub shared: usize,
    /// Whether the kernels take a tensor map.
    pub takes_map: bool,
    /// The registers that a thread is given, where it matters.
    pub registers: Option<u32>,
    /// Statements right before each call of the form, when its operands are there, and right behind it, before its
    /// results are looked at.
    pub around_call: Option<[&'static str; 2]>,
    /// The launches for a seed.
    pub cases: Box<dyn Fn(u64) -> Vec<Case>>,
}

impl Scenario {
    fn new(body: impl Into<String>, cases: impl Fn(u64) -> Vec<Case> + 'static) -> Self {
        Self {
            body: body.into(),
            shared: 0,
            takes_map: false,
            registers: None,
            around_call: None,
            cases: Box::new(cases),
        }
    }

    fn shared(mut self, bytes: usize) -> Self {
        self.shared = bytes;
        self
    }

    fn around_call(mut self, before: &'static str, behind: &'static str) -> Self {
        self.around_call = Some([before, behind]);
        self
    }

    fn with_map(mut self) -> Self {
        self.takes_map = true;
        self
    }
}

/// One launch.
pub struct Case {
    /// What is particular about it, for messages.
    pub what: String,
    /// Its shape.
    pub launch: Launch,
    /// The words of input.
    pub input: Vec<u64>,
    /// The global memory before.
    pub memory: Vec<u8>,
    /// The tensor that the map describes, if the kernel takes one.
    pub tensor: Option<Tensor>,
    /// What must come out.
    pub expected: Expected,
    /// What is counted and recorded, whatever it is.
    pub counts: Option<Counts>,
}

impl Case {
    fn new(what: impl Into<String>, launch: Launch, input: Vec<u64>) -> Self {
        Self {
            what: what.into(),
            launch,
            input,
            memory: Vec::new(),
            tensor: None,
            expected: Expected {
                output: Vec::new(),
                memory: Vec::new(),
                relation: None,
                fails: false,
                map: None,
            },
            counts: None,
        }
    }

    /// The output before the launch, with room behind its end that must stay as it is.
    pub fn blank_output(&self) -> Vec<u64> {
        vec![POISON; self.expected.output.len() + GUARD]
    }

    /// Global memory that must be unchanged afterwards.
    fn memory(mut self, memory: Vec<u8>) -> Self {
        self.expected.memory.clone_from(&memory);
        self.memory = memory;
        self
    }

    /// What global memory must hold afterwards.
    fn leaves(mut self, memory: Vec<u8>) -> Self {
        self.expected.memory = memory;
        self
    }

    fn gives(mut self, output: Vec<Word>) -> Self {
        self.expected.output = output;
        self
    }

    fn gives_words(self, output: impl IntoIterator<Item = u64>) -> Self {
        let output = output.into_iter().map(Word::Is).collect();
        self.gives(output)
    }

    fn relation(mut self, relation: impl Fn(&[u64]) -> Result<(), String> + 'static) -> Self {
        self.expected.relation = Some(Box::new(relation));
        self
    }

    fn counts(mut self, counts: impl Fn(&[u64]) -> Vec<(String, u64)> + 'static) -> Self {
        self.counts = Some(Box::new(counts));
        self
    }

    fn tensor(mut self, tensor: Tensor) -> Self {
        self.tensor = Some(tensor);
        self
    }
}

/// What must come out of a launch.
pub struct Expected {
    /// The words of output.
    pub output: Vec<Word>,
    /// The global memory.
    pub memory: Vec<u8>,
    /// What holds among the words of output.
    pub relation: Option<Relation>,
    /// Whether the launch fails, as a `trap` makes it.
    pub fails: bool,
    /// Words of output that are a tensor map.
    pub map: Option<ReplacedMap>,
}

/// A tensor map in the output, of which a field was replaced.
pub struct ReplacedMap {
    /// The first of its 16 words.
    pub at: usize,
    /// What it describes.
    pub tensor: Tensor,
}

/// A condition on the words of output; its error says what was expected.
pub type Relation = Box<dyn Fn(&[u64]) -> Result<(), String>>;

/// What was counted in the words of output, by name.
pub type Counts = Box<dyn Fn(&[u64]) -> Vec<(String, u64)>>;

/// What a word of output must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// This.
    Is(u64),
    /// This, in the bits of the mask.
    Masked(u64, u64),
    /// From the first to the second.
    Within(u64, u64),
    /// What the ISA leaves open, but in the bits of the mask the same in both languages.
    Opaque(u64),
    /// What may differ from launch to launch.
    Free,
}

impl Word {
    /// Whether `found` is what must be.
    pub fn fits(self, found: u64) -> bool {
        match self {
            Word::Is(word) => found == word,
            Word::Masked(word, mask) => found & mask == word & mask,
            Word::Within(low, high) => (low..=high).contains(&found),
            Word::Opaque(_) | Word::Free => true,
        }
    }

    /// The bits in which both languages must find the same.
    pub fn reproducible(self) -> u64 {
        match self {
            Word::Is(_) | Word::Masked(..) => u64::MAX,
            Word::Opaque(mask) => mask,
            Word::Within(..) | Word::Free => 0,
        }
    }
}

/// A tensor at the beginning of global memory, or behind it.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// The type of its elements.
    pub data_type: DataType,
    /// Its elements in each dimension, innermost first.
    pub dims: Vec<u64>,
    /// The distance of neighbours in bytes, in each dimension but the innermost.
    pub strides: Vec<u64>,
    /// The elements that one copy moves; of columns, the channels of a pixel.
    pub tile: Vec<u32>,
    /// The pixels that copies take, if they are im2col.
    pub columns: Option<Columns>,
    /// Every so many elements are copied.
    pub steps: Vec<u32>,
    /// The swizzle in shared memory.
    pub swizzle: Swizzle,
    /// The layout in global memory.
    pub interleave: Interleave,
    /// Whether elements out of bounds read as NaN.
    pub nan: bool,
    /// Where it begins in global memory, in bytes.
    pub at: u64,
}

/// Numbers that depend on the seed alone.
pub struct Random {
    seed: u64,
    index: u64,
}

impl Random {
    /// The numbers of a seed and of a purpose, so that no two purposes share them.
    pub fn new(seed: u64, purpose: &str) -> Self {
        let seed = purpose
            .bytes()
            .fold(seed, |seed, byte| random::hash(seed, byte.into()));
        Self { seed, index: 0 }
    }

    /// The next number.
    pub fn word(&mut self) -> u64 {
        self.index += 1;
        random::hash(self.seed, self.index)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.word() % limit
    }

    /// So many bytes.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let words = (0..len.div_ceil(8)).flat_map(|_| self.word().to_le_bytes());
        let mut bytes = Vec::from_iter(words);
        bytes.truncate(len);
        bytes
    }
}

/// The words that bytes are.
fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
}

/// Why operations on a multicast address are not run.
const MULTICAST_OBJECT: &str = "needs a multicast object (cuMulticastCreate), which was not made: on a host that several users share it \
     can disable GPUs of others";

/// Why [`Extent::Sample`](super::Extent::Sample) lacks a form that can be run, if it does.
pub fn left_out(form: &Form) -> Option<String> {
    beyond::left_out(form, form.family.as_deref()?)
}

/// How the form is run.
///
/// # Errors
///
/// Why it cannot be run on this GPU.
pub fn of(form: &Form) -> Result<Scenario, String> {
    if let Some(family) = &form.family {
        return beyond::of(form, family);
    }
    let function = form.function.as_str();
    let begins = |prefix: &str| function.starts_with(prefix);
    let scenario = if begins("mbarrier_") {
        barrier::scenario(form)
    } else if begins("cp_async_mbarrier_arrive") {
        barrier::tracked_copy(form)
    } else if begins("get_sreg_") {
        special_registers::scenario(form)
    } else if begins("cp_async_bulk_tensor")
        || begins("cp_reduce_async_bulk_tensor")
        || begins("cp_async_bulk_prefetch_tensor")
    {
        tensor::scenario(form)
    } else if begins("cp_reduce_async_bulk") {
        reduce::scenario(form)
    } else if begins("cp_async_bulk") {
        bulk::scenario(form)
    } else if begins("fence") {
        fence::scenario(form)
    } else if begins("ldmatrix") || begins("stmatrix") {
        matrix::scenario(form)
    } else if begins("red_async") || begins("st_async") {
        remote::scenario(form)
    } else if begins("shfl_sync") {
        shuffle::scenario(form)
    } else if begins("tensormap_") {
        tensor_map::scenario(form)
    } else if begins("prefetch")
        || function == "ld"
        || begins("ld_")
        || function == "st"
        || begins("st_")
    {
        memory::scenario(form)
    } else if begins("multimem_") {
        return Err(MULTICAST_OBJECT.to_owned());
    } else if ["bfind", "bmsk", "prmt", "shl", "shr"]
        .iter()
        .any(|prefix| begins(prefix))
    {
        values::scenario(form)
    } else {
        control::scenario(form)
    };
    scenario.ok_or_else(|| format!("no scenario for `{}`", form.instruction))
}
