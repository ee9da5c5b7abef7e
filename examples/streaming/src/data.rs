//! The operations, their input, and what they must give.

use std::thread;

/// What a kernel does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operation {
    Copy,
    Scale(Type),
    Sum(Type),
}

/// The type of the elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Type {
    F32,
    Bf16,
}

/// The factor of `y = a·x`; a bf16 holds it, so that both types multiply by the same.
pub const FACTOR: f32 = 1.703_125;

impl Operation {
    pub const ALL: [Self; 5] = [
        Self::Copy,
        Self::Scale(Type::F32),
        Self::Scale(Type::Bf16),
        Self::Sum(Type::F32),
        Self::Sum(Type::Bf16),
    ];

    /// The kernel.
    pub fn kernel(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Scale(Type::F32) => "scale_f32",
            Self::Scale(Type::Bf16) => "scale_bf16",
            Self::Sum(Type::F32) => "sum_f32",
            Self::Sum(Type::Bf16) => "sum_bf16",
        }
    }

    /// A copy moves bytes, whatever they are.
    pub fn element(self) -> Type {
        match self {
            Self::Copy => Type::F32,
            Self::Scale(element) | Self::Sum(element) => element,
        }
    }

    /// What becomes of a word of the input.
    pub fn map(self, word: u32) -> u32 {
        match self {
            Self::Copy | Self::Sum(_) => word,
            Self::Scale(Type::F32) => (f32::from_bits(word) * FACTOR).to_bits(),
            Self::Scale(Type::Bf16) => halves(word)
                .map(|x| u32::from(round(x * FACTOR)))
                .into_iter()
                .rev()
                .fold(0, |word, half| word << 16 | half),
        }
    }
}

impl Type {
    /// A word of the input: one or two numbers from 1 to 2.
    pub fn input(self, index: u64) -> u32 {
        let mut x = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        x = (x ^ x >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let random = (x >> 32) as u32;
        match self {
            Self::F32 => 1.0f32.to_bits() | random >> 9,
            Self::Bf16 => 0x3f80_3f80 | random & 0x007f_007f,
        }
    }

    /// The sum of the numbers in a word.
    pub fn sum(self, word: u32) -> f64 {
        match self {
            Self::F32 => f64::from(f32::from_bits(word)),
            Self::Bf16 => halves(word).into_iter().map(f64::from).sum(),
        }
    }
}

/// The two bf16 of a word.
fn halves(word: u32) -> [f32; 2] {
    [word << 16, word & 0xffff_0000].map(f32::from_bits)
}

/// The nearest bf16 of a finite number, of two the even one.
fn round(x: f32) -> u16 {
    let bits = x.to_bits();
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

/// Words `first` and following of the input.
pub fn input(element: Type, first: u64, words: &mut [u32]) {
    in_parallel(words, |place, part| {
        for (index, word) in part.iter_mut().enumerate() {
            *word = element.input(first + (place + index) as u64);
        }
        0.0
    });
}

/// How many of the words, `first` and following of an output, are wrong.
pub fn wrong(operation: Operation, first: u64, words: &mut [u32]) -> u64 {
    let element = operation.element();
    in_parallel(words, |place, part| {
        let expected = |index| operation.map(element.input(first + (place + index) as u64));
        part.iter().enumerate().filter(|(index, word)| **word != expected(*index)).count() as f64
    }) as u64
}

/// The sum of an input of so many words.
pub fn sum(element: Type, words: u64) -> f64 {
    const CHUNK: u64 = 1 << 16;
    let mut sums = vec![0u32; words.div_ceil(CHUNK) as usize];
    in_parallel(&mut sums, |place, part| {
        let first = place as u64 * CHUNK;
        let last = (first + part.len() as u64 * CHUNK).min(words);
        (first..last).map(|index| element.sum(element.input(index))).sum()
    })
}

/// Has every core do a part; gives the sum of what they give.
fn in_parallel(words: &mut [u32], work: impl Fn(usize, &mut [u32]) -> f64 + Sync) -> f64 {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let size = words.len().div_ceil(workers).max(1);
    thread::scope(|scope| {
        let work = &work;
        let parts = words.chunks_mut(size).enumerate();
        let workers: Vec<_> =
            parts.map(|(index, part)| scope.spawn(move || work(index * size, part))).collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).sum()
    })
}
