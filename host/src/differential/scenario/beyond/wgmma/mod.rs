//! Matrix products by warpgroups.
//!
//! Elements are whole numbers, small enough in the floating-point types that every sum is exact, so that one result is
//! right. What the ISA says of layouts is in [`matrix`].

mod matrix;

use self::matrix::{Element, Matrix, Pattern, Sum};
use super::{Scenario, missing};
use crate::differential::form::Form;
use crate::differential::scenario::{Case, Random};
use crate::driver::Launch;

const THREADS: usize = 128;
const ROWS: usize = 64;

/// Words of input before the matrices: descriptors of A as it is and transposed, of B, and whether D is added.
const HEAD: usize = 5;
/// Words of input that each thread has besides D: registers of A, and metadata.
const OWN: usize = 5;

/// The numbers of columns of most forms of a sample.
const COLUMNS: [usize; 3] = [8, 24, 256];

/// The types of D, A and B of the forms that a sample has with all numbers of columns, with both matrices in shared memory.
const ALL_COLUMNS: [&str; 3] = ["f32.bf16.bf16", "f16.f16.f16", "s32.s8.s8"];

/// A form of `wgmma.mma_async`.
#[derive(Clone, Debug)]
struct Product {
    columns: usize,
    sum: Sum,
    types: [Element; 2],
    sparse: bool,
    /// Whether A is in registers.
    in_registers: bool,
    saturates: bool,
    calls: Vec<Call>,
}

/// The immediates of one call.
#[derive(Clone, Copy, Debug)]
struct Call {
    selector: usize,
    negated: bool,
    transposed: [bool; 2],
}

pub fn scenario(form: &Form) -> Result<Scenario, String> {
    match form.function.as_str() {
        "wgmma_fence" | "wgmma_commit_group" | "wgmma_wait_group" => return Ok(nothing_pending()),
        _ => {}
    }
    let (product, immediates) = product(form).ok_or_else(|| missing(form))?;
    let body = product.body(&immediates);
    let purpose = form.instruction.clone();
    let shared = product.shared_bytes();
    Ok(Scenario::new(body, move |seed| {
        product.cases(&mut Random::new(seed, &purpose))
    })
    .shared(shared)
    .around_call("warpgroup_begin();", "warpgroup_end();"))
}

/// Why a sample lacks the form, if it does.
pub fn left_out(form: &Form) -> Option<String> {
    let (product, _) = product(form)?;
    (!product.is_in_sample(form)).then(|| {
        format!(
            "left to a build of all forms: here with {COLUMNS:?} columns, and with every number of them one form for each \
             type of D"
        )
    })
}

/// With no multiplication under way, these let a warpgroup go on.
fn nothing_pending() -> Scenario {
    let body = "@ = ()\nput(output, thread(), get(input, thread()));\n";
    Scenario::new(body, |seed| {
        let mut random = Random::new(seed, "wgmma");
        let words = Vec::from_iter((0..2 * THREADS).map(|_| random.word()));
        let launch = Launch::new(1, words.len() as u32);
        vec![Case::new("two warpgroups", launch, words.clone()).gives_words(words)]
    })
}

/// What a form is, and the immediates of its calls.
fn product(form: &Form) -> Option<(Product, Vec<Vec<i64>>)> {
    let function = form.function.strip_prefix("wgmma_mma_async")?;
    let (sparse, kind) = match function.strip_prefix("_sp") {
        Some(kind) => (true, kind),
        None => (false, function),
    };
    let parts = Vec::from_iter(form.instruction.split('.'));
    let shape = parts.iter().position(|part| part.starts_with("m64n"))?;
    let columns = parts[shape][4..].split('k').next()?.parse().ok()?;
    let (sum, a, b) = (parts[shape + 1], parts[shape + 2], parts[shape + 3]);
    let types = [Element::named(a)?, Element::named(b)?];
    // Of few columns, all kinds of immediates; each call is instructions of its own.
    let few = columns == 8;
    let variants: Vec<Vec<i64>> = match (kind, few) {
        ("" | "_satfinite", _) => vec![vec![]],
        ("_scaled", true) => vec![vec![1, 1], vec![-1, 1], vec![1, -1], vec![-1, -1]],
        ("_scaled", false) => vec![vec![1, -1]],
        ("_transposed", true) => vec![
            vec![1, 1, 0, 0],
            vec![-1, 1, 1, 0],
            vec![1, -1, 0, 1],
            vec![-1, -1, 1, 1],
        ],
        ("_transposed", false) => vec![vec![-1, 1, 1, 1]],
        ("_transposed_b", true) => vec![
            vec![1, 1, 0],
            vec![-1, 1, 1],
            vec![1, -1, 1],
            vec![-1, -1, 0],
        ],
        ("_transposed_b", false) => vec![vec![1, 1, 1]],
        _ => return None,
    };
    let selectors = if sparse && types[0].bits() > 8 { 2 } else { 1 };
    let mut calls = Vec::new();
    let mut immediates = Vec::new();
    for (number, variant) in variants.into_iter().enumerate() {
        let selector = (columns / 8 + number) % selectors;
        calls.push(Call {
            selector,
            negated: variant.iter().take(2).product::<i64>() < 0,
            transposed: match variant[..] {
                [_, _, a, b] => [a == 1, b == 1],
                [_, _, b] => [false, b == 1],
                _ => [false; 2],
            },
        });
        let selector = sparse.then_some(selector as i64);
        immediates.push(selector.into_iter().chain(variant).collect());
    }
    let product = Product {
        columns,
        sum: Sum::named(sum)?,
        types,
        sparse,
        in_registers: form.operands.get(1)?.contains('['),
        saturates: form.says("satfinite"),
        calls,
    };
    Some((product, immediates))
}

impl Product {
    fn is_in_sample(&self, form: &Form) -> bool {
        let in_shared_memory = !self.sparse && !self.in_registers;
        let all = in_shared_memory
            && ALL_COLUMNS
                .iter()
                .any(|types| form.instruction.ends_with(types));
        all || COLUMNS.contains(&self.columns)
    }

    /// Registers of D of a thread.
    fn registers(&self) -> usize {
        self.columns / 2 / self.sum.elements()
    }

    /// Bytes along K of B; A has 32.
    fn depth_bytes(&self) -> usize {
        if self.sparse { 64 } else { 32 }
    }

    /// Where A and B lie, as they are and transposed. With many columns there is room for one of each.
    fn places(&self) -> [[usize; 2]; 2] {
        if self.columns == 8 {
            [[0, 8192], [16384, 20480]]
        } else {
            [[0, 0], [8192, 8192]]
        }
    }

    fn shared_bytes(&self) -> usize {
        if self.columns == 8 { 24576 } else { 40960 }
    }

    fn body(&self, immediates: &[Vec<i64>]) -> String {
        let (bytes, registers) = (self.shared_bytes(), self.registers());
        let own = HEAD + bytes / 8;
        let mut body = format!(
            "var t = thread();\n\
             var i = t * 8;\n\
             while (i < {bytes}) {{\n\
             store(at(shared, i), 8, get(input, {HEAD} + i / 8));\n\
             i = i + {};\n\
             }}\n\
             var own = {own} + t * {};\n\
             var d = own + {OWN};\n\
             var start = matrix_start(shared);\n",
            8 * THREADS,
            OWN + registers
        );
        let d = Vec::from_iter((0..registers).map(|k| format!("get(input, d + {k})"))).join(" | ");
        for (number, (call, immediates)) in self.calls.iter().zip(immediates).enumerate() {
            let [a, b] = call.transposed.map(usize::from);
            let a = match self.in_registers {
                true => (0..4)
                    .map(|k| format!("get(input, own + {k})"))
                    .collect::<Vec<_>>()
                    .join(" | "),
                false => format!("get(input, {a}) + start"),
            };
            let b = format!("get(input, {}) + start", 2 + b);
            let metadata = if self.sparse {
                "; get(input, own + 4)"
            } else {
                ""
            };
            let numbers = immediates.iter().map(i64::to_string);
            let numbers = Vec::from_iter(numbers).join(", ");
            let numbers = if numbers.is_empty() {
                numbers
            } else {
                format!(" #{numbers}")
            };
            body += &format!("@r{number}{numbers} = ({d}; {a}; {b}{metadata}; get(input, 4))\n");
            let first = number * THREADS * registers;
            for k in 0..registers {
                body += &format!("put(output, {first} + t * {registers} + {k}, r{number}_{k});\n");
            }
        }
        body
    }

    /// Two launches: with D added, and without.
    fn cases(&self, random: &mut Random) -> Vec<Case> {
        let fits = |swizzle: &usize| *swizzle == 0 || *swizzle >= self.depth_bytes();
        let fitting = Vec::from_iter([0, 32, 64, 128].into_iter().filter(fits));
        let first = random.below(fitting.len() as u64) as usize;
        let swizzles = [fitting[first], fitting[(first + 1) % fitting.len()]];
        let cases = swizzles.into_iter().zip([true, false]);
        cases
            .map(|(swizzle, adds)| self.case(swizzle, adds, random))
            .collect()
    }

    fn case(&self, swizzle: usize, adds: bool, random: &mut Random) -> Case {
        let a = Matrix::random(self.types[0], ROWS, 32, random);
        let b = Matrix::random(self.types[1], self.columns, self.depth_bytes(), random);
        let patterns = [(); 2].map(|()| Pattern::random(self.types[0], random));
        let mut image = random.bytes(self.shared_bytes());
        let mut input = Vec::new();
        for (matrix, places) in [&a, &b].into_iter().zip(self.places()) {
            for (transposed, place) in [false, true].into_iter().zip(places) {
                let used = self.calls.iter().any(|call| {
                    call.transposed[usize::from(std::ptr::eq(matrix, &b))] == transposed
                });
                input.push(match used {
                    true => matrix.lay_out(transposed, swizzle, place, &mut image, random),
                    false => 0,
                });
            }
        }
        input.push(adds.into());
        input.extend(crate::differential::scenario::words(&image));
        let before =
            Vec::from_iter((0..ROWS * self.columns).map(|_| self.sum.random(adds, random)));
        for thread in 0..THREADS {
            input.extend((0..4).map(|register| a.fragment(thread, register)));
            input.push(self.metadata(&patterns, thread));
            let registers =
                (0..self.registers()).map(|register| self.register(thread, register, &before));
            input.extend(registers);
        }
        let output = self.calls.iter().flat_map(|call| {
            let products = match self.sparse {
                true => a.sparse_product(&patterns[call.selector], &b),
                false => a.product(&b),
            };
            let sums = before.iter().zip(products).map(|(before, product)| {
                let product = if call.negated { -product } else { product };
                let before = if adds { self.sum.value(*before) } else { 0 };
                self.sum.code(before + product, self.saturates)
            });
            let sums = Vec::from_iter(sums);
            let threads = (0..THREADS)
                .flat_map(|thread| (0..self.registers()).map(move |register| (thread, register)));
            Vec::from_iter(threads.map(|(thread, register)| self.register(thread, register, &sums)))
        });
        let output = Vec::from_iter(output);
        let adds = if adds { "added" } else { "replaced" };
        let what = format!("a swizzle of {swizzle} bytes, D {adds}");
        Case::new(what, Launch::new(1, THREADS as u32), input).gives_words(output)
    }

    /// The bits of a register of D: figures "WGMMA .m64nNk… register fragment layout for accumulator matrix D".
    fn register(&self, thread: usize, register: usize, codes: &[u32]) -> u64 {
        let (warp, lane) = (thread / 32, thread % 32);
        let elements = self.sum.elements();
        (0..elements).fold(0, |bits, half| {
            let element = register * elements + half;
            let row = 16 * warp + lane / 4 + 8 * (element / 2 % 2);
            let column = 8 * (element / 4) + 2 * (lane % 4) + element % 2;
            bits | u64::from(codes[row * self.columns + column]) << (16 * half)
        })
    }

    /// The metadata of a thread: figures "Sparse WGMMA .m64nNk… metadata layout".
    fn metadata(&self, patterns: &[Pattern; 2], thread: usize) -> u64 {
        let (warp, lane) = (thread / 32, thread % 32);
        let quad = 16 * warp + lane / 4;
        (0..8).fold(0, |bits, nibble| {
            let (selector, row, group) = match self.types[0].bits() {
                // Two threads have the row, two that 8 below; each has half of its columns.
                ..=8 => (0, quad + 8 * (lane % 2), lane % 4 / 2 * 8 + nibble),
                // A pair has both rows, each of its threads half of their columns.
                _ => (
                    lane % 4 / 2,
                    quad + nibble / 4 * 8,
                    lane % 2 * 4 + nibble % 4,
                ),
            };
            bits | patterns[selector].nibble(row, group) << (4 * nibble)
        })
    }
}
