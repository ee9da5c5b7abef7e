//! `mma.m8n8k4` of `f16`: four products, each by four threads of the lower half of the warp and four of the upper one.

use super::types::Sum;
use super::{Kind, LANES, Matrix, N, Place, Product};
use crate::differential::form::Form;
use crate::differential::scenario::{Case, Random, Scenario};
use crate::driver::Launch;

/// Rows of A, and its columns.
const ROWS: usize = 8;
const K: usize = 4;
const PRODUCTS: usize = 4;

/// A product, and how A and B lie.
#[derive(Clone, Copy)]
struct Quads {
    product: Product,
    a_by_rows: bool,
    b_by_rows: bool,
}

/// The lane and the number there of an element.
type Home = (usize, usize);

pub fn scenario(form: &Form, product: Product) -> Scenario {
    let layout = |back: usize| form.instruction.split('.').rev().nth(back) == Some("row");
    let quads = Quads {
        product,
        // Four types are behind the layouts.
        a_by_rows: layout(5),
        b_by_rows: layout(4),
    };
    let name = form.instruction.clone();
    let body = quads.body();
    Scenario::new(body, move |seed| {
        let kinds = [Kind::Small, Kind::Scaled, Kind::Any];
        let case = |kind| quads.case(kind, Random::new(seed, &format!("{name} {kind:?}")));
        kinds.map(case).into()
    })
}

impl Quads {
    /// Registers of A, B, C and D.
    fn registers(&self) -> [usize; 4] {
        let of = |sum: Sum| N / sum.per_register();
        [2, 2, of(self.product.c), of(self.product.d)]
    }

    fn body(&self) -> String {
        let [a, b, c, d] = self.registers();
        let words = a + b + c;
        let list = |from: usize, count: usize| {
            let words = (from..from + count).map(|k| format!("get(input, {words} * i + {k})"));
            Vec::from_iter(words).join(" | ")
        };
        let call = format!(
            "@d = ({}; {}; {})\n",
            list(0, a),
            list(a, b),
            list(a + b, c)
        );
        let puts = (0..d).map(|k| format!("put(output, {d} * i + {k}, d_{k});\n"));
        format!("var i = thread();\n{call}{}", String::from_iter(puts))
    }

    /// Where an element is that has this place among the four threads or the four elements of a thread, and that in
    /// the other way; from the fifth row of A, or column of B, on it is in the upper half of the warp.
    fn of_factor(which: usize, by_threads: usize, across: usize, swapped: bool) -> Home {
        let (half, near) = (by_threads / 4, by_threads % 4);
        let (thread, number) = if swapped {
            (across, near)
        } else {
            (near, across)
        };
        (16 * half + 4 * which + thread, number)
    }

    fn of_sum(which: usize, sum: Sum, row: usize, column: usize) -> Home {
        let first = 16 * (row / 4) + 4 * which;
        match sum {
            Sum::Half => (first + row % 4, column),
            // Bits 0 of row and 1 of the column choose the thread, the others the number.
            _ => (
                first + row % 2 + column / 2 % 2 * 2,
                column % 2 + row / 2 % 2 * 2 + column / 4 * 4,
            ),
        }
    }

    fn case(&self, kind: Kind, mut random: Random) -> Case {
        let [of_a, of_b, of_c, of_d] = self.registers();
        let words = of_a + of_b + of_c;
        let mut input = vec![0; words * LANES];
        let mut put = |(lane, number): Home, first: usize, per: usize, code: u64| {
            input[words * lane + first + number / per] |= code << (16 * (number % per));
        };
        let (mut sums, mut sizes): (Vec<Matrix>, Vec<Matrix>) = (Vec::new(), Vec::new());
        let product = &self.product;
        for which in 0..PRODUCTS {
            let [a, b, c] = product.matrices(kind, &mut random);
            for (row, k) in (0..ROWS).flat_map(|row| (0..K).map(move |k| (row, k))) {
                let home = Self::of_factor(which, row, k, !self.a_by_rows);
                put(home, 0, 2, product.a.encode(a[row][k]));
                // A column of B like a row of A.
                let home = Self::of_factor(which, row, k, self.b_by_rows);
                put(home, of_a, 2, product.b.encode(b[row][k]));
            }
            for (row, column) in (0..ROWS).flat_map(|row| (0..N).map(move |column| (row, column))) {
                let home = Self::of_sum(which, product.c, row, column);
                put(
                    home,
                    of_a + of_b,
                    product.c.per_register(),
                    product.c.encode(c[row][column]),
                );
            }
            let (of, size) = product.sums(&a, &b, &c);
            sums.push(of);
            sizes.push(size);
        }
        let case = Case::new(
            format!("{kind:?}").to_lowercase(),
            Launch::new(1, LANES as u32),
            input,
        );
        product.expect(case, kind, self.places(of_d), sums, sizes)
    }

    fn places(&self, of_d: usize) -> Vec<Vec<Place>> {
        let per = self.product.d.per_register();
        let mut places = vec![vec![(0, 0, 0); per]; of_d * LANES];
        for which in 0..PRODUCTS {
            for (row, column) in (0..ROWS).flat_map(|row| (0..N).map(move |column| (row, column))) {
                let (lane, number) = Self::of_sum(which, self.product.d, row, column);
                places[of_d * lane + number / per][number % per] = (which, row, column);
            }
        }
        places
    }
}
