//! Matrix products by warps, and `movmatrix`.
//!
//! Where an element of a matrix lies is written from the element's side: the lane, the register and the bit that hold
//! the element of this row and column. Integers and bits have exact products. Floats have them on inputs whose sums are
//! exact in every order; on others a sum may be off by as much as so many roundings to the precision that the ISA
//! promises make it.

mod quads;
mod types;

use self::types::{Element, Sum, half};
use super::{Scenario, missing};
use crate::differential::form::Form;
use crate::differential::scenario::{Case, Random, Word};
use crate::driver::Launch;

const LANES: usize = 32;

/// Columns of B.
const N: usize = 8;

/// A product of matrices.
#[derive(Clone, Copy, Debug)]
struct Product {
    m: usize,
    k: usize,
    a: Element,
    b: Element,
    c: Sum,
    d: Sum,
    /// Bits that are both set count, or that differ.
    xor: bool,
    saturates: bool,
    /// Half of A is zero.
    sparse: bool,
    /// The places of elements are named in their order.
    ordered: bool,
}

/// Element (row, column) by row.
type Matrix = Vec<Vec<f64>>;

/// Which product, row and column.
type Place = (usize, usize, usize);

pub fn scenario(form: &Form) -> Result<Scenario, String> {
    if form.instruction.starts_with("movmatrix") {
        return Ok(movmatrix());
    }
    let product = Product::of(form).ok_or_else(|| missing(form))?;
    if product.m * product.k == 8 * 4 && product.d != Sum::Double {
        return Ok(quads::scenario(form, product));
    }
    let name = form.instruction.clone();
    let body = product.body();
    Ok(Scenario::new(body, move |seed| {
        let kinds = product.kinds();
        let case =
            |kind: &Kind| product.case(*kind, Random::new(seed, &format!("{name} {kind:?}")));
        kinds.iter().map(case).collect()
    }))
}

/// What the numbers of a launch are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Integers so small that every sum is exact.
    Small,
    /// The same, each row of A and column of B times a power of two of its own.
    Scaled,
    /// All there are.
    Any,
    /// Sums that are beyond the greatest integer, or below the least.
    Beyond { negative: bool },
}

impl Product {
    fn of(form: &Form) -> Option<Self> {
        let parts = Vec::from_iter(form.instruction.split('.'));
        let sizes = parts.iter().find_map(|part| {
            let (m, k) = part.strip_prefix('m')?.split_once("n8k")?;
            Some((m.parse().ok()?, k.parse().ok()?))
        });
        let (m, k) = sizes?;
        // The layouts of A and B are before the types.
        let at = parts
            .iter()
            .rposition(|part| matches!(*part, "row" | "col"))?
            + 1;
        let at = at + usize::from(form.says("satfinite"));
        let types = parts.get(at..at + 4)?;
        Some(Self {
            m,
            k,
            d: Sum::parse(types[0])?,
            a: Element::parse(types[1])?,
            b: Element::parse(types[2])?,
            c: Sum::parse(types[3])?,
            xor: form.says("xor"),
            saturates: form.says("satfinite"),
            sparse: parts.get(1).is_some_and(|part| part.starts_with("sp")),
            ordered: form.says("sp::ordered_metadata"),
        })
    }

    /// Columns of A that are stored.
    fn stored(&self) -> usize {
        if self.sparse { self.k / 2 } else { self.k }
    }

    fn registers(&self) -> [usize; 3] {
        let of = |element: Element, count: usize| {
            let bits = element.bits() as usize;
            count * bits / bits.max(32) / LANES
        };
        [
            of(self.a, self.m * self.stored()),
            of(self.b, N * self.k),
            self.m * N / LANES / self.c.per_register(),
        ]
    }

    /// The threads of a group whose metadata count: for each selector, the first and how many.
    fn selectors(&self) -> Vec<usize> {
        let bits_of_group = 2 * 4 * self.chunks();
        if self.sparse {
            (0..4 * 32 / bits_of_group).collect()
        } else {
            vec![0]
        }
    }

    /// Chunks of a row of A, each with 4 bits of metadata.
    fn chunks(&self) -> usize {
        self.k
            / match self.a.bits() {
                32 => 2,
                4 => 8,
                _ => 4,
            }
    }

    fn body(&self) -> String {
        let [a, b, c] = self.registers();
        let words = a + b + c + usize::from(self.sparse);
        let list = |from: usize, count: usize| {
            let words = (from..from + count).map(|k| format!("get(input, {words} * i + {k})"));
            Vec::from_iter(words).join(" | ")
        };
        let mut operands = format!("{}; {}; {}", list(0, a), list(a, b), list(a + b, c));
        if self.sparse {
            operands += &format!("; {}", list(a + b + c, 1));
        }
        let selectors = self.selectors();
        let d = self.m * N / LANES / self.d.per_register();
        let mut body = "var i = thread();\n".to_string();
        for selector in &selectors {
            let immediate = if self.sparse {
                format!(" #{selector}")
            } else {
                String::new()
            };
            body += &format!("@d{selector}{immediate} = ({operands})\n");
            for k in 0..d {
                let at = d * selector + k;
                body += &format!(
                    "put(output, {} * i + {at}, d{selector}_{k});\n",
                    d * selectors.len()
                );
            }
        }
        body
    }

    fn kinds(&self) -> Vec<Kind> {
        let beyond = |negative| Kind::Beyond { negative };
        match (self.a, self.b) {
            (Element::Int { signed, .. }, Element::Int { signed: other, .. }) if self.saturates => {
                let mut kinds = vec![Kind::Small, beyond(false)];
                kinds.extend((signed || other).then(|| beyond(true)));
                kinds
            }
            (Element::Int { .. }, _) => vec![Kind::Small, Kind::Any],
            _ => vec![Kind::Small, Kind::Scaled, Kind::Any],
        }
    }

    /// A number for A or B; `sign` is what it must have.
    fn number(&self, element: Element, kind: Kind, sign: Option<f64>, random: &mut Random) -> f64 {
        match element {
            Element::Int { bits, signed } => {
                let low = if signed { -(1i64 << (bits - 1)) } else { 0 };
                let any = low + random.below(1 << bits) as i64;
                let any = any as f64;
                match sign {
                    // Never zero, so that the sum does go beyond.
                    Some(sign) => {
                        let most = (1u64 << (bits - u32::from(signed))) - 1;
                        sign * (1 + random.below(most)) as f64
                    }
                    None if kind == Kind::Small && bits == 8 => (any / 16.0).trunc(),
                    None => any,
                }
            }
            _ if kind == Kind::Any => self.float(element, random),
            _ => random.below(9) as f64 - 4.0,
        }
    }

    /// A float with random sign and fraction, of moderate size.
    fn float(&self, element: Element, random: &mut Random) -> f64 {
        let fraction_bits = match element {
            Element::Float(float) => float.fraction,
            _ => 52,
        };
        let fraction = random.word() % (1 << fraction_bits);
        let exponent = random.below(6) as i32 - 3;
        let size =
            (1.0 + fraction as f64 * 2f64.powi(-(fraction_bits as i32))) * 2f64.powi(exponent);
        if random.below(2) == 0 { size } else { -size }
    }

    fn case(&self, kind: Kind, mut random: Random) -> Case {
        let random = &mut random;
        let [a, b, c] = self.matrices(kind, random);
        let metadata = self.metadata(random);
        let input = self.input(&a, &b, &c, &metadata);
        let mut expected = Vec::new();
        let mut bounds = Vec::new();
        for selector in self.selectors() {
            let dense = if self.sparse {
                self.dense(&a, &metadata, selector)
            } else {
                a.clone()
            };
            let (sums, sizes) = self.sums(&dense, &b, &c);
            expected.push(sums);
            bounds.push(sizes);
        }
        let case = Case::new(
            format!("{kind:?}").to_lowercase(),
            Launch::new(1, LANES as u32),
            input,
        );
        self.expect(case, kind, self.places(), expected, bounds)
    }

    /// Expects the elements of products in words: for each its product, row and column.
    fn expect(
        &self,
        case: Case,
        kind: Kind,
        places: Vec<Vec<Place>>,
        sums: Vec<Matrix>,
        sizes: Vec<Matrix>,
    ) -> Case {
        let (d, tolerance) = (self.d, self.tolerance());
        if kind != Kind::Any || d == Sum::Int {
            let words = places.iter().map(|place| {
                let codes = place
                    .iter()
                    .map(|(which, row, column)| d.encode(sums[*which][*row][*column]));
                codes.rev().fold(0, |word, code| word << 16 | code)
            });
            return case.gives_words(Vec::from_iter(words));
        }
        case.gives(vec![Word::Opaque(u64::MAX); places.len()]).relation(move |output| {
            for (word, place) in output.iter().zip(&places) {
                for (half, (which, row, column)) in place.iter().enumerate() {
                    let found = d.value(word >> (16 * half));
                    let sum = sums[*which][*row][*column];
                    let within = tolerance * sizes[*which][*row][*column];
                    let off = (found - sum).abs();
                    if off.is_nan() || off > within {
                        return Err(format!(
                            "row {row}, column {column}: expected {sum} within {within:.1e}, found {found}"
                        ));
                    }
                }
            }
            Ok(())
        })
    }

    /// A, B by its columns, and C.
    fn matrices(&self, kind: Kind, random: &mut Random) -> [Matrix; 3] {
        let sign = match kind {
            Kind::Beyond { negative } => Some(negative),
            _ => None,
        };
        // The negative one is the one that can be.
        let b_signed = matches!(self.b, Element::Int { signed: true, .. });
        let sign_of_a = sign.map(|negative| if negative && !b_signed { -1.0 } else { 1.0 });
        let sign_of_b = sign.map(|negative| if negative && b_signed { -1.0 } else { 1.0 });
        let scaled = kind == Kind::Scaled;
        let scales = |count: usize, random: &mut Random| {
            let scale = |_| {
                if scaled {
                    2f64.powi(random.below(5) as i32 - 2)
                } else {
                    1.0
                }
            };
            Vec::from_iter((0..count).map(scale))
        };
        let (of_rows, of_columns) = (scales(self.m, random), scales(N, random));
        let mut a = vec![vec![0.0; self.stored()]; self.m];
        for (row, scale) in a.iter_mut().zip(&of_rows) {
            row.fill_with(|| scale * self.number(self.a, kind, sign_of_a, random));
        }
        let mut b = vec![vec![0.0; self.k]; N];
        for (column, scale) in b.iter_mut().zip(&of_columns) {
            column.fill_with(|| scale * self.number(self.b, kind, sign_of_b, random));
        }
        let mut c = vec![vec![0.0; N]; self.m];
        for (row, of_row) in c.iter_mut().zip(&of_rows) {
            for (element, of_column) in row.iter_mut().zip(&of_columns) {
                *element = of_row * of_column * self.addend(kind, random);
            }
        }
        [a, b, c]
    }

    /// How great sums of products are that have one sign, more or less.
    fn typical_sum(&self) -> u64 {
        let half = |element| match element {
            Element::Int { bits, signed } => (1 << (bits - u32::from(signed))) / 2,
            _ => 1,
        };
        self.stored() as u64 * half(self.a) * half(self.b)
    }

    /// A number for C.
    fn addend(&self, kind: Kind, random: &mut Random) -> f64 {
        match (kind, self.d) {
            (Kind::Beyond { negative }, _) => {
                // Some sums go beyond and some do not.
                let from_end = random.below(2 * self.typical_sum()) as f64;
                if negative {
                    f64::from(i32::MIN) + from_end
                } else {
                    f64::from(i32::MAX) - from_end
                }
            }
            (Kind::Any, Sum::Int) => f64::from(random.word() as i32),
            (Kind::Any, _) => match self.c {
                Sum::Half => self.float(Element::Float(half()), random),
                Sum::Single => f64::from(self.float(Element::Double, random) as f32),
                _ => self.float(Element::Double, random),
            },
            _ => random.below(65) as f64 - 32.0,
        }
    }

    /// How far a sum may be off, as a part of the magnitudes of what is added: the ISA promises at least the precision
    /// of `f32`, or of `f16` if C and D have that type, and leaves order and rounding open, so each addition may lose
    /// one unit in the last place. Products of 8-bit floats are added with about 14 bits by the tensor cores of Hopper
    /// (DeepSeek-V3 Technical Report, section 3.3.2).
    fn tolerance(&self) -> f64 {
        let narrow = matches!(self.a, Element::Float(float) if float.bits() == 8);
        let fraction = match self.d {
            Sum::Half => 10,
            Sum::Double => 52,
            _ if narrow => 13,
            _ => 23,
        };
        (self.k + 1) as f64 * 2f64.powi(-fraction)
    }

    /// The sums that D must have, and the magnitudes that were added.
    fn sums(&self, a: &Matrix, b: &Matrix, c: &Matrix) -> (Matrix, Matrix) {
        let (mut sums, mut sizes) = (c.clone(), c.clone());
        for (row, column) in (0..self.m).flat_map(|row| (0..N).map(move |column| (row, column))) {
            let (mut sum, mut size) = (c[row][column], c[row][column].abs());
            for k in 0..self.k {
                let (a, b) = (a[row][k], b[column][k]);
                let product = if self.xor {
                    f64::from(u8::from(a != b))
                } else {
                    a * b
                };
                sum += product;
                size += product.abs();
            }
            if self.saturates {
                sum = sum.max(i32::MIN.into()).min(i32::MAX.into());
            }
            sums[row][column] = sum;
            sizes[row][column] = size;
        }
        (sums, sizes)
    }

    /// A lane's metadata, for all lanes: places of which the ISA says what they mean.
    fn metadata(&self, random: &mut Random) -> Vec<u64> {
        let meaningful: &[u64] = match (self.a.bits(), self.ordered) {
            (32, _) => &[0b0100, 0b1110],
            (_, true) => &[0b0100, 0b1000, 0b1001, 0b1100, 0b1101, 0b1110],
            (_, false) => &[1, 2, 3, 4, 6, 7, 8, 9, 11, 12, 13, 14],
        };
        let word = |_| {
            let four =
                |word, _| word << 4 | meaningful[random.below(meaningful.len() as u64) as usize];
            (0..8).fold(0, four)
        };
        (0..LANES).map(word).collect()
    }

    /// A with its zeros: each 4 bits of the threads that the selector names say where two pieces of a chunk are.
    fn dense(&self, stored: &Matrix, metadata: &[u64], selector: usize) -> Matrix {
        let mut dense = vec![vec![0.0; self.k]; self.m];
        let threads = 2 * 4 * self.chunks() / 32;
        for (lane, metadata) in metadata.iter().enumerate() {
            let (group, thread) = (lane / 4, lane % 4);
            if thread / threads != selector {
                continue;
            }
            let thread = thread % threads;
            for nibble in 0..8 {
                // 16-bit and wider types: the lower half is of one row and the upper of the row 8 below. Narrower
                // types: threads take turns with the two rows.
                let (row, chunk) = match self.a.bits() {
                    16.. => (group + 8 * (nibble / 4), 4 * thread + nibble % 4),
                    _ => (group + 8 * (thread % 2), 8 * (thread / 2) + nibble),
                };
                let places = (metadata >> (4 * nibble)) as usize & 15;
                match self.a.bits() {
                    32 => {
                        let second = usize::from(places == 0b1110);
                        dense[row][2 * chunk + second] = stored[row][chunk];
                    }
                    4 => {
                        for (k, place) in [places % 4, places / 4].into_iter().enumerate() {
                            for half in 0..2 {
                                dense[row][8 * chunk + 2 * place + half] =
                                    stored[row][4 * chunk + 2 * k + half];
                            }
                        }
                    }
                    _ => {
                        dense[row][4 * chunk + places % 4] = stored[row][2 * chunk];
                        dense[row][4 * chunk + places / 4] = stored[row][2 * chunk + 1];
                    }
                }
            }
        }
        dense
    }

    /// The registers of all lanes.
    fn input(&self, a: &Matrix, b: &Matrix, c: &Matrix, metadata: &[u64]) -> Vec<u64> {
        let [of_a, of_b, of_c] = self.registers();
        let words = of_a + of_b + of_c + usize::from(self.sparse);
        let mut input = vec![0; words * LANES];
        let mut put = |lane: usize, register: usize, shift: usize, code: u64| {
            input[words * lane + register] |= code << shift;
        };
        for (row, elements) in a.iter().enumerate() {
            let bits = self.a.bits() as usize;
            let per = (32 / bits).max(1);
            for (column, value) in elements.iter().enumerate() {
                let lane = 4 * (row % 8) + column / per % 4;
                let register = row / 8 + self.m / 8 * (column / (4 * per));
                put(lane, register, bits * (column % per), self.a.encode(*value));
            }
        }
        for (column, elements) in b.iter().enumerate() {
            let bits = self.b.bits() as usize;
            let per = (32 / bits).max(1);
            for (row, value) in elements.iter().enumerate() {
                let lane = 4 * column + row / per % 4;
                put(
                    lane,
                    of_a + row / (4 * per),
                    bits * (row % per),
                    self.b.encode(*value),
                );
            }
        }
        for (row, elements) in c.iter().enumerate() {
            for (column, value) in elements.iter().enumerate() {
                let number = 2 * (row / 8) + column % 2;
                let per = self.c.per_register();
                let lane = 4 * (row % 8) + column / 2;
                put(
                    lane,
                    of_a + of_b + number / per,
                    16 * (number % per),
                    self.c.encode(*value),
                );
            }
        }
        if self.sparse {
            for (lane, word) in metadata.iter().enumerate() {
                put(lane, words - 1, 0, *word);
            }
        }
        input
    }

    /// The product of which selector, the row and the column of each element in each word of output.
    fn places(&self) -> Vec<Vec<Place>> {
        let per = self.d.per_register();
        let d = self.m * N / LANES / per;
        let selectors = self.selectors().len();
        let place = |word: usize| {
            let (lane, rest) = (word / (d * selectors), word % (d * selectors));
            let (which, register) = (rest / d, rest % d);
            let numbers = per * register..per * (register + 1);
            let at = numbers.map(|number| {
                (
                    which,
                    lane / 4 + 8 * (number / 2),
                    lane % 4 * 2 + number % 2,
                )
            });
            at.collect()
        };
        (0..LANES * d * selectors).map(place).collect()
    }
}

/// Every element goes where row and column are exchanged.
fn movmatrix() -> Scenario {
    let body = "var i = thread();\n@r = (get(input, i))\nput(output, i, r);\n";
    Scenario::new(body, |seed| {
        let mut random = Random::new(seed, "movmatrix");
        let input = Vec::from_iter((0..LANES).map(|_| random.word() & 0xffff_ffff));
        let mut output = vec![0; LANES];
        for (row, column) in (0..8).flat_map(|row| (0..8).map(move |column| (row, column))) {
            let of = |row: usize, column: usize| (4 * row + column / 2, 16 * (column % 2));
            let ((from, low), (to, shift)) = (of(row, column), of(column, row));
            output[to] |= (input[from] >> low & 0xffff) << shift;
        }
        vec![Case::new("one warp", Launch::new(1, LANES as u32), input).gives_words(output)]
    })
}
