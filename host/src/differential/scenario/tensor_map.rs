//! Tensor maps that kernels change, copy and use.

use std::ops::Range;

use super::{Case, Random, ReplacedMap, Scenario, Tensor, Word, bulk, tensor, words};
use crate::differential::form::Form;
use crate::driver::{DataType, Interleave, Launch, Swizzle};

/// Where the tensors begin in global memory, in bytes; the maps that kernels make lie at its beginning.
const TENSOR: u64 = 4096;

/// Global memory, in bytes.
const MEMORY: usize = 128 << 10;

pub fn scenario(form: &Form) -> Option<Scenario> {
    if form.function == "tensormap_cp_fenceproxy" {
        return Some(copy());
    }
    replace(form)
}

/// A tensor of `rank` dimensions.
fn base(rank: usize) -> Tensor {
    Tensor {
        data_type: DataType::U32,
        dims: [64, 16, 8, 3, 2][..rank].to_vec(),
        strides: [512, 8192, 65_536, 196_608][..rank - 1].to_vec(),
        tile: [16, 4, 2, 1, 1][..rank].to_vec(),
        columns: None,
        steps: vec![1; rank],
        swizzle: Swizzle::None,
        interleave: Interleave::None,
        nan: false,
        at: TENSOR,
    }
}

/// A field with its new value.
struct Change {
    /// The immediate operand: the dimension, or the new value.
    immediate: i64,
    /// The operand, where the value is not the immediate one.
    value: u64,
    /// What the map describes before.
    before: Tensor,
    /// And then.
    after: Tensor,
    /// The tile that shows the change; nothing if only the map itself does.
    corner: Option<[i64; 3]>,
}

impl Change {
    fn new(immediate: i64, value: u64, before: Tensor, change: impl Fn(&mut Tensor)) -> Self {
        let mut after = before.clone();
        change(&mut after);
        Self {
            immediate,
            value,
            before,
            after,
            corner: Some([16, 4, 2]),
        }
    }

    fn at(mut self, corner: [i64; 3]) -> Self {
        self.corner = Some(corner);
        self
    }

    fn not_copied(mut self) -> Self {
        self.corner = None;
        self
    }
}

/// The numbers that the PTX ISA gives the types, which are not those of the driver.
const ELEMENT_TYPES: [DataType; 13] = [
    DataType::U8,
    DataType::U16,
    DataType::U32,
    DataType::I32,
    DataType::U64,
    DataType::I64,
    DataType::F16,
    DataType::F32,
    DataType::F32Ftz,
    DataType::F64,
    DataType::Bf16,
    DataType::Tf32,
    DataType::Tf32Ftz,
];

/// In each of these dimensions; of those from `shown` on, only maps of five dimensions have all, and are not copied.
fn each_dimension(
    dimensions: Range<usize>,
    shown: usize,
    values: [u64; 5],
    change: impl Fn(&mut Tensor, usize, u64),
) -> Vec<Change> {
    let replace = |d: usize| {
        let value = values[d];
        let replaced = |rank| {
            Change::new(d as i64, value, base(rank), |tensor| {
                change(tensor, d, value)
            })
        };
        if d < shown {
            replaced(3)
        } else {
            replaced(5).not_copied()
        }
    };
    dimensions.map(replace).collect()
}

fn changes(field: &str) -> Option<Vec<Change>> {
    let with = |change: &dyn Fn(&mut Tensor)| {
        let mut tensor = base(3);
        change(&mut tensor);
        tensor
    };
    let floats = with(&|tensor| tensor.data_type = DataType::F32);
    let holes = with(&|tensor| (tensor.data_type, tensor.nan) = (DataType::F32, true));
    Some(match field {
        "global_address" => [TENSOR / 2, 2 * TENSOR, 3 * TENSOR + 16]
            .map(|at| Change::new(0, at, base(3), |tensor| tensor.at = at))
            .into(),
        // The field is one less than the rank.
        "rank" => [(3, 2), (3, 1), (5, 4), (5, 3), (2, 1)]
            .map(|(before, after)| {
                let change = Change::new(0, after as u64 - 1, base(before), |tensor| {
                    *tensor = base(after)
                });
                if before == 5 {
                    change.not_copied()
                } else {
                    change
                }
            })
            .into(),
        "box_dim" => each_dimension(0..5, 3, [8, 3, 1, 2, 2], |tensor, d, value| {
            tensor.tile[d] = value as u32;
        }),
        "global_dim" => each_dimension(0..5, 3, [20, 6, 3, 2, 1], |tensor, d, value| {
            tensor.dims[d] = value;
        }),
        // The distance of neighbours in the next dimension.
        "global_stride" => each_dimension(
            0..4,
            2,
            [256, 4096, 32_768, 131_072, 0],
            |tensor, d, value| {
                tensor.strides[d] = value;
            },
        ),
        // That of the innermost dimension is ignored.
        "element_stride" | "element_size" => {
            each_dimension(1..5, 3, [1, 2, 2, 3, 8], |tensor, d, value| {
                tensor.steps[d] = value as u32;
            })
        }
        "elemtype" => (0..)
            .zip(ELEMENT_TYPES)
            .map(|(number, of)| Change::new(number, 0, base(3), |tensor| tensor.data_type = of))
            .collect(),
        "swizzle_mode" => {
            let narrow = with(&|tensor| tensor.tile[0] = 8);
            let wide = with(&|tensor| tensor.tile[0] = 32);
            let swizzled = with(&|tensor| tensor.swizzle = Swizzle::Bytes64);
            vec![
                Change::new(0, 0, swizzled, |tensor| tensor.swizzle = Swizzle::None),
                Change::new(1, 0, narrow, |tensor| tensor.swizzle = Swizzle::Bytes32),
                Change::new(2, 0, base(3), |tensor| tensor.swizzle = Swizzle::Bytes64),
                Change::new(3, 0, wide, |tensor| tensor.swizzle = Swizzle::Bytes128),
            ]
        }
        "interleave_layout" => {
            let sliced = with(&|tensor| tensor.interleave = Interleave::Bytes16);
            let swizzled = with(&|tensor| {
                (tensor.tile[0], tensor.swizzle) = (8, Swizzle::Bytes32);
            });
            vec![
                Change::new(0, 0, sliced, |tensor| tensor.interleave = Interleave::None)
                    .not_copied(),
                Change::new(1, 0, base(3), |tensor| {
                    tensor.interleave = Interleave::Bytes16
                })
                .not_copied(),
                Change::new(2, 0, swizzled, |tensor| {
                    tensor.interleave = Interleave::Bytes32
                })
                .not_copied(),
            ]
        }
        "fill_mode" => vec![
            Change::new(0, 0, holes, |tensor| tensor.nan = false).at([0, 0, -1]),
            Change::new(1, 0, floats, |tensor| tensor.nan = true).at([0, 0, -1]),
        ],
        _ => return None,
    })
}

/// Words of input: the immediate operand, the other one, the bytes of the tile, its rank (0 if nothing is copied),
/// and its corner.
const INPUT: [&str; 4] = [
    "get(input, 0)",
    "get(input, 1)",
    "get(input, 2)",
    "get(input, 3)",
];

/// The map with the new value is shown, and what it describes is copied.
fn replace(form: &Form) -> Option<Scenario> {
    let global = form.has("space_global");
    let field = form.function.strip_prefix("tensormap_replace_")?;
    let [chosen, value, bytes, rank] = INPUT;
    let mut immediates = Vec::from_iter(changes(field)?.iter().map(|change| change.immediate));
    immediates.sort_unstable();
    immediates.dedup();
    let operand = match form.operands.len() {
        1 => String::new(),
        _ if field == "global_address" => format!("; address(at(memory, {value}))"),
        _ => format!("; {value}"),
    };
    let (place, hand_over) = if global {
        ("target", "map_release();\n")
    } else {
        ("place", "map_publish(target, place);\n")
    };
    let call = |number: i64| {
        let immediate = match form.immediates {
            0 => String::new(),
            _ => format!("#{number} "),
        };
        format!("if ({chosen} == {number}) {{\n@ {immediate}= ({place}{operand})\n}}\n")
    };
    let calls = String::from_iter(immediates.into_iter().map(call));
    let body = format!(
        "{}ptr target = at(memory, 0);\n\
         ptr place = at(shared, 512);\n\
         var rank = {rank};\n\
         i = thread();\n\
         if (i < 16) {{ store(at({place}, 8 * i), 8, load(at(tensor_map, 8 * i), 8)); }}\n\
         sync();\n\
         if (i == 0) {{\n\
         {calls}\
         }}\n\
         sync();\n\
         if (i < 16) {{ put(output, 1024 + i, load(at({place}, 8 * i), 8)); }}\n\
         {hand_over}\
         map_acquire(target);\n\
         if (i == 0) {{\n\
         bar_expect(bar, {bytes});\n\
         bar_arrive(bar, 1);\n\
         if (rank == 1) {{ tensor_load(data, target, get(input, 4), bar); }}\n\
         if (rank == 2) {{ tensor_load_2d(data, target, get(input, 4), get(input, 5), bar); }}\n\
         if (rank == 3) {{ tensor_load_3d(data, target, get(input, 4), get(input, 5), get(input, 6), bar); }}\n\
         }}\n\
         bar_wait(bar, 0);\n\
         {}",
        bulk::BEGIN,
        bulk::SHOW
    );
    let field = field.to_owned();
    let cases = move |seed| {
        let changes = changes(&field).unwrap_or_default();
        changes
            .into_iter()
            .map(|change| replaced(&field, change, seed))
            .collect()
    };
    Some(Scenario::new(body, cases).shared(bulk::SHARED).with_map())
}

fn replaced(field: &str, change: Change, seed: u64) -> Case {
    let Change {
        immediate,
        value,
        before,
        after,
        corner,
    } = change;
    let memory = Random::new(seed, "tensor map").bytes(MEMORY);
    let rank = after.dims.len();
    let what = format!(
        "{field} {immediate} {value} of {} dimensions",
        before.dims.len()
    );
    let mut input = vec![immediate as u64, value];
    let mut output = bulk::region(&[], 0);
    match corner {
        None => input.extend([0, 0]),
        Some(corner) => {
            input.extend([after.tile_bytes() as u64, rank as u64]);
            input.extend(corner.map(|at| at as u64 & 0xffff_ffff));
            output = after.loaded(&memory, &corner[..rank]);
        }
    }
    let mut words = Vec::from_iter(output.into_iter().map(Word::Is));
    let at = words.len();
    words.extend([Word::Opaque(u64::MAX); 16]);
    let mut case = Case::new(what, Launch::new(1, 32), input)
        .gives(words)
        .tensor(before);
    case.expected.map = Some(ReplacedMap { at, tensor: after });
    // The map lies there; the output says what became of it.
    case.memory = memory;
    case
}

/// A map goes through shared memory to global memory, and is used there.
fn copy() -> Scenario {
    hand_over("@ = (target; place)\n", "map_acquire(target);\n")
}

/// Fences between who writes a map and who uses it.
pub fn fence(form: &Form) -> Scenario {
    if form.has("sem_acquire") {
        hand_over("map_publish(target, place);\n", "@ = (target)\n")
    } else {
        let stores = "if (i < 16) { store(at(target, 8 * i), 8, load(at(place, 8 * i), 8)); }\n\
            @ = ()\n";
        hand_over(stores, "map_acquire(target);\n")
    }
}

fn hand_over(publish: &str, acquire: &str) -> Scenario {
    let act = format!(
        "ptr target = at(memory, 0);\n\
         ptr place = at(shared, 512);\n\
         i = thread();\n\
         if (i < 16) {{ store(at(place, 8 * i), 8, load(at(tensor_map, 8 * i), 8)); }}\n\
         sync();\n\
         {publish}\
         sync();\n\
         {acquire}\
         if (i == 0) {{\n\
         bar_expect(bar, 128);\n\
         bar_arrive(bar, 1);\n\
         tensor_load(data, target, get(input, 0), bar);\n\
         }}\n\
         bar_wait(bar, 0);\n"
    );
    Scenario::new([bulk::BEGIN, &act, bulk::SHOW].concat(), |seed| {
        let case = |at: usize| {
            let data = Random::new(seed ^ at as u64, "hand over").bytes(4096);
            let mut tensor = tensor::plain(1024);
            tensor.at = 1024;
            let mut memory = vec![0; 1024];
            memory.extend(&data);
            let output = Vec::from_iter(words_of_tile(&data, at));
            let mut case = Case::new(
                format!("elements {at} to {}", at + 31),
                Launch::new(1, 32),
                vec![at as u64],
            )
            .memory(memory)
            .gives_words(output)
            .tensor(tensor);
            // The map is written there.
            case.expected.memory = Vec::new();
            case
        };
        [0, 8, 500, 1000].map(case).into()
    })
    .shared(bulk::SHARED)
    .with_map()
}

/// The region after a load of the tile of 32 elements.
fn words_of_tile(data: &[u8], at: usize) -> Vec<u64> {
    let mut tile = data[4 * at..(4 * at + 128).min(data.len())].to_vec();
    tile.resize(128, 0);
    debug_assert!(words(&tile).count() == 16);
    bulk::region(&tile, 0)
}
