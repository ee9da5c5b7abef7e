//! Tensor copies of one to five dimensions, in tiles: loads, stores, reductions, multicast, prefetch.

use super::reduce::{Element, Operation};
use super::{Case, Random, Scenario, Tensor, bulk, words};
use crate::differential::form::Form;
use crate::driver::{DataType, Interleave, Launch, Swizzle};

/// A packed tensor of one dimension: `len` elements of `u32`.
pub fn plain(len: u64) -> Tensor {
    Tensor {
        data_type: DataType::U32,
        dims: vec![len],
        strides: Vec::new(),
        tile: vec![32],
        steps: vec![1],
        swizzle: Swizzle::None,
        interleave: Interleave::None,
        nan: false,
        at: 0,
    }
}

impl Tensor {
    /// A tensor whose rows are padded to 16 bytes.
    fn new(data_type: DataType, dims: &[u64], tile: &[u32], swizzle: Swizzle) -> Self {
        let row = (dims[0] * data_type.bytes()).next_multiple_of(16);
        let strides = dims[1..].iter().scan(row, |stride, dim| {
            let this = *stride;
            *stride *= dim;
            Some(this)
        });
        Self {
            data_type,
            dims: dims.to_vec(),
            strides: strides.collect(),
            tile: tile.to_vec(),
            steps: vec![1; dims.len()],
            swizzle,
            interleave: Interleave::None,
            nan: false,
            at: 0,
        }
    }

    fn element(&self) -> usize {
        self.data_type.bytes() as usize
    }

    /// Bytes of global memory.
    fn extent(&self) -> usize {
        let rows = match (self.strides.last(), self.dims.last()) {
            (Some(stride), Some(dim)) => stride * dim,
            _ => self.dims[0] * self.data_type.bytes(),
        };
        rows as usize
    }

    /// The elements of a tile in shared memory.
    fn box_dims(&self) -> Vec<usize> {
        let dims = self.tile.iter().zip(&self.steps);
        dims.map(|(tile, step)| tile.div_ceil(*step) as usize)
            .collect()
    }

    fn tile_bytes(&self) -> usize {
        self.box_dims().iter().product::<usize>() * self.element()
    }

    /// The bytes of the tile at `corner`, in shared memory, and their number.
    pub fn tile(&self, memory: &[u8], corner: &[i64]) -> (usize, Vec<u8>) {
        let element = self.element();
        // The H200's NaN is the same in each half of an f32.
        let fill: &[u8] = if self.nan {
            &[0xf7, 0x7f, 0xf7, 0x7f]
        } else {
            &[0; 8]
        };
        let mut tile = vec![0; self.tile_bytes().next_multiple_of(128)];
        for (shared, global) in self.places(corner) {
            let value = match global {
                Some(global) => &memory[global..global + element],
                None => &fill[..element],
            };
            tile[shared..shared + element].copy_from_slice(value);
        }
        tile.truncate(self.tile_bytes());
        (self.tile_bytes(), tile)
    }

    /// For each element of the tile at `corner`: where it lies in shared memory, and where in global memory if
    /// that is in bounds.
    fn places(&self, corner: &[i64]) -> Vec<(usize, Option<usize>)> {
        let dims = self.box_dims();
        let count = dims.iter().product();
        let place = |number: usize| {
            let mut rest = number;
            let mut global = Some(self.at as usize);
            for (d, dim) in dims.iter().enumerate() {
                let coordinate = corner[d] + (rest % dim) as i64 * i64::from(self.steps[d]);
                rest /= dim;
                let stride = if d == 0 {
                    self.data_type.bytes()
                } else {
                    self.strides[d - 1]
                };
                let inside = (0..self.dims[d] as i64).contains(&coordinate);
                global = global
                    .filter(|_| inside)
                    .map(|at| at + coordinate as usize * stride as usize);
            }
            (swizzled(number * self.element(), self.swizzle), global)
        };
        (0..count).map(place).collect()
    }
}

/// The chunk of 16 bytes moves within its line by the number of the line, as both repeat.
fn swizzled(at: usize, swizzle: Swizzle) -> usize {
    match swizzle {
        Swizzle::None => at,
        Swizzle::Bytes32 => at ^ (at >> 7 & 1) << 4,
        Swizzle::Bytes64 => at ^ (at >> 7 & 3) << 4,
        Swizzle::Bytes128 => at ^ (at >> 7 & 7) << 4,
    }
}

/// What tensors are for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Copies {
    /// To shared memory.
    In,
    /// Out of shared memory.
    Out,
    /// Out of shared memory with a reduction, of elements of 32 bits.
    Reduce,
}

/// Tensors of `rank` dimensions, each with the corners of tiles: inside, over an edge, and outside.
///
/// Loads may begin before the tensor, and rows may end anywhere. Copies out of shared memory may not begin before
/// it, where the hardware traps; and where a row is no multiple of 16 bytes, they write the rest of the last 16.
fn tensors(rank: usize, copies: Copies) -> Vec<(Tensor, Vec<Vec<i64>>)> {
    let loads = copies == Copies::In;
    let dims = [if loads { 44 } else { 48 }, 9, 6, 5, 3];
    let tile = [16, 4, 3, 2, 2];
    let with = |data_type, tile0: u32, swizzle| {
        let mut tile = tile[..rank].to_vec();
        tile[0] = tile0;
        Tensor::new(data_type, &dims[..rank], &tile, swizzle)
    };
    let u32 = DataType::U32;
    let mut tensors = vec![
        with(u32, 16, Swizzle::None),
        with(u32, 8, Swizzle::Bytes32),
        with(u32, 16, Swizzle::Bytes64),
        with(u32, 32, Swizzle::Bytes128),
    ];
    if copies != Copies::Reduce {
        tensors.push(with(DataType::U8, 16, Swizzle::None));
        tensors.push(with(DataType::U8, 32, Swizzle::Bytes32));
        tensors.push(with(DataType::U16, 64, Swizzle::Bytes128));
        tensors.push(with(DataType::U64, 2, Swizzle::None));
        if rank > 1 {
            let mut stepping = with(u32, 16, Swizzle::None);
            stepping.steps[1..].fill(2);
            tensors.push(stepping);
        }
    }
    let corners = |tensor: Tensor| {
        // The innermost coordinate is a multiple of 16 bytes: the hardware traps at others.
        let unit = 16 / tensor.data_type.bytes() as i64;
        let last = dims[0] as i64 / unit - 1;
        let corners = [
            [0, 0, 0, 0, 0],
            [1, 3, 1, 2, 1],
            [-1, -2, 4, -1, 2],
            [last, 7, -1, 4, 0],
            [last + 5, 0, 0, 0, 0],
        ];
        let place = |[x, rest @ ..]: [i64; 5]| {
            let corner = [&[x * unit], &rest[..rank - 1]].concat();
            if loads {
                corner
            } else {
                corner.into_iter().map(|at| at.max(0)).collect()
            }
        };
        (tensor, corners.map(place).into())
    };
    tensors.into_iter().map(corners).collect()
}

pub fn scenario(form: &Form) -> Option<Scenario> {
    let rank = (1..=5).find(|rank| form.says(&format!("{rank}d")))?;
    if form.says("im2col") {
        return None;
    }
    let coordinates = Vec::from_iter((0..rank).map(|d| format!("get(input, 2 + {d})"))).join(" | ");
    let scenario = if form.function.contains("prefetch") {
        prefetch(form, rank, &coordinates)
    } else if form.has("space_shared") && form.tags[0] == "space_global" {
        store(form, rank, &coordinates)
    } else {
        load(form, rank, &coordinates)
    };
    Some(scenario.with_map())
}

/// Input: bytes of the tile, mask of blocks, corner.
fn input(tensor: &Tensor, mask: u64, corner: &[i64]) -> Vec<u64> {
    let corner = corner.iter().map(|at| *at as u64 & 0xffff_ffff);
    [tensor.tile_bytes() as u64, mask]
        .into_iter()
        .chain(corner)
        .collect()
}

fn what(tensor: &Tensor, corner: &[i64]) -> String {
    format!(
        "{:?}, tile {:?}, {:?} swizzle, steps {:?}, at {corner:?}",
        tensor.data_type, tensor.tile, tensor.swizzle, tensor.steps
    )
}

fn load(form: &Form, rank: usize, coordinates: &str) -> Scenario {
    let multicast = form.operands.len() == 5;
    let mask = if multicast { "; get(input, 1)" } else { "" };
    let act = format!(
        "var chosen = get(input, 1) >> cluster_rank() & 1;\n\
         if (thread() == 0) {{\n\
         if (chosen == 1) {{ bar_expect(bar, get(input, 0)); bar_arrive(bar, 1); }}\n\
         }}\n\
         cluster_sync();\n\
         if (thread() == 0) {{\n\
         if (cluster_rank() == 0) {{\n\
         @ = (data; tensor_map; {coordinates}; bar{mask})\n\
         }}\n\
         }}\n\
         if (chosen == 1) {{ bar_wait(bar, 0); }}\n"
    );
    let name = form.instruction.clone();
    let cases = move |seed| {
        let mut random = Random::new(seed, &name);
        let mut cases = Vec::new();
        for (number, (tensor, corners)) in tensors(rank, Copies::In).into_iter().enumerate() {
            for corner in corners {
                let (blocks, mask) = if multicast {
                    [(1, 1), (2, 2), (4, 0b1011)][number % 3]
                } else {
                    (1, 1)
                };
                let memory = random.bytes(tensor.extent());
                let (_, tile) = tensor.tile(&memory, &corner);
                let received = bulk::region(&tile, 0);
                let block = |rank: u64| {
                    if mask >> rank & 1 == 1 {
                        received.clone()
                    } else {
                        vec![bulk::FILL; 1024]
                    }
                };
                let output = Vec::from_iter((0..blocks).flat_map(block));
                let launch = Launch::new(blocks as u32, 64).cluster([blocks as u32, 1, 1]);
                let case = Case::new(
                    what(&tensor, &corner),
                    launch,
                    input(&tensor, mask, &corner),
                );
                cases.push(
                    case.memory(memory)
                        .gives_words(output)
                        .tensor(tensor.clone()),
                );
            }
        }
        cases
    };
    Scenario::new([bulk::BEGIN, &act, bulk::SHOW].concat(), cases).shared(bulk::SHARED)
}

/// Stores and reductions: elements out of bounds are left out.
fn store(form: &Form, rank: usize, coordinates: &str) -> Scenario {
    let act = format!(
        "i = thread();\n\
         while (i < 1024) {{ store(at(data, 8 * i), 8, get(input, 2 + {rank} + i)); i = i + threads(); }}\n\
         proxy_fence();\n\
         sync();\n\
         if (thread() == 0) {{\n\
         @ = (tensor_map; {coordinates}; data)\n\
         bulk_commit();\n\
         bulk_wait();\n\
         }}\n"
    );
    let operation = Operation::of(&form.instruction);
    let copies = operation.map_or(Copies::Out, |_| Copies::Reduce);
    let name = form.instruction.clone();
    let cases = move |seed| {
        let mut random = Random::new(seed, &name);
        let mut cases = Vec::new();
        for (tensor, corners) in tensors(rank, copies) {
            for corner in corners {
                let memory = random.bytes(tensor.extent());
                let data = random.bytes(8192);
                let mut after = memory.clone();
                let element = tensor.element();
                for (shared, global) in tensor.places(&corner) {
                    let Some(global) = global else { continue };
                    let source = &data[shared..shared + element];
                    match operation {
                        None => after[global..global + element].copy_from_slice(source),
                        Some(operation) => {
                            let word = |bytes: &[u8]| {
                                u64::from(u32::from_le_bytes(bytes.try_into().expect("a u32")))
                            };
                            let held = word(&after[global..global + element]);
                            let reduced =
                                Element::Unsigned(32).apply(operation, held, word(source)) as u32;
                            after[global..global + element].copy_from_slice(&reduced.to_le_bytes());
                        }
                    }
                }
                let mut words_in = input(&tensor, 1, &corner);
                words_in.extend(words(&data));
                let case = Case::new(what(&tensor, &corner), Launch::new(1, 64), words_in);
                cases.push(
                    case.memory(memory)
                        .leaves(after)
                        .gives_words(words(&data))
                        .tensor(tensor.clone()),
                );
            }
        }
        cases
    };
    Scenario::new([bulk::BEGIN, &act, bulk::SHOW].concat(), cases).shared(bulk::SHARED)
}

fn prefetch(form: &Form, rank: usize, coordinates: &str) -> Scenario {
    // Evict normally.
    let policy = if form.operands.len() > 2 {
        "; 1220475499017404416"
    } else {
        ""
    };
    let body = format!(
        "var i = thread();\n\
         if (i == 0) {{\n\
         @ = (tensor_map; {coordinates}{policy})\n\
         }}\n\
         put(output, i, load(at(memory, 8 * i), 8));\n"
    );
    let name = form.instruction.clone();
    Scenario::new(body, move |seed| {
        let mut random = Random::new(seed, &name);
        let mut cases = Vec::new();
        for (tensor, corners) in tensors(rank, Copies::In) {
            let memory = random.bytes(tensor.extent().max(256));
            let output = Vec::from_iter(words(&memory[..256]));
            let case = Case::new(
                what(&tensor, &corners[1]),
                Launch::new(1, 32),
                input(&tensor, 1, &corners[1]),
            );
            cases.push(case.memory(memory).gives_words(output).tensor(tensor));
        }
        cases
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tile_over_the_edge_has_holes() {
        let tensor = Tensor::new(DataType::U32, &[6, 2], &[4, 2], Swizzle::None);
        assert_eq!(tensor.strides, [32]);
        let places = tensor.places(&[4, 1]);
        assert_eq!(places[1], (4, Some(32 + 20)));
        assert_eq!(places[2], (8, None));
        assert_eq!(places[4], (16, None));
    }

    #[test]
    fn the_lines_of_a_swizzle_differ_in_their_chunks() {
        assert_eq!(swizzled(0x80, Swizzle::Bytes128), 0x90);
        assert_eq!(swizzled(0x3f4, Swizzle::Bytes128), 0x384);
        assert_eq!(swizzled(0x180, Swizzle::Bytes64), 0x1b0);
        assert_eq!(swizzled(0x100, Swizzle::Bytes32), 0x100);
    }
}
