//! Tensor maps that kernels change, copy and use.

use super::{Case, Random, Scenario, Tensor, Word, bulk, tensor, words};
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

/// The tensor that the maps describe at first.
fn base() -> Tensor {
    Tensor {
        data_type: DataType::U32,
        dims: vec![64, 16, 8],
        strides: vec![256, 4096],
        tile: vec![16, 4, 2],
        steps: vec![1, 1, 1],
        swizzle: Swizzle::None,
        interleave: Interleave::None,
        nan: false,
        at: TENSOR,
    }
}

/// A field with its new value.
struct Change {
    /// What the map describes then.
    tensor: Tensor,
    /// The operand, if it is not an immediate one.
    value: &'static str,
    /// The dimension, or the new value.
    immediate: Option<i64>,
    /// The tile that shows the change.
    corner: [i64; 3],
}

fn change(field: &str) -> Option<Change> {
    let mut tensor = base();
    let mut corner = [16, 4, 2];
    let (value, immediate) = match field {
        "global_address" => {
            tensor.at = 2 * TENSOR;
            ("; address(at(memory, 8192))", None)
        }
        "rank" => {
            tensor.dims.truncate(2);
            tensor.strides.truncate(1);
            tensor.tile.truncate(2);
            tensor.steps.truncate(2);
            ("; 1", None)
        }
        "box_dim" => {
            tensor.tile[1] = 3;
            ("; 3", Some(1))
        }
        "global_dim" => {
            tensor.dims[2] = 3;
            ("; 3", Some(2))
        }
        "global_stride" => {
            tensor.strides[1] = 8192;
            ("; 8192", Some(1))
        }
        "element_stride" | "element_size" => {
            tensor.steps[1] = 2;
            ("; 2", Some(1))
        }
        "elemtype" => {
            tensor.data_type = DataType::U8;
            ("", Some(0))
        }
        "swizzle_mode" => {
            tensor.swizzle = Swizzle::Bytes64;
            ("", Some(2))
        }
        "interleave_layout" => {
            tensor.interleave = Interleave::Bytes16;
            ("", Some(1))
        }
        "fill_mode" => {
            tensor.data_type = DataType::F32;
            tensor.nan = true;
            corner = [0, 0, -1];
            ("", Some(1))
        }
        _ => return None,
    };
    Some(Change {
        tensor,
        value,
        immediate,
        corner,
    })
}

/// What the map with the new value describes is copied; of a layout it is the map itself that is compared, with
/// what the driver makes of a tensor of that layout.
fn replace(form: &Form) -> Option<Scenario> {
    let global = form.has("space_global");
    let field = form.function.strip_prefix("tensormap_replace_")?;
    let Change {
        tensor,
        value,
        immediate,
        corner,
    } = change(field)?;
    let mut first = base();
    if field == "fill_mode" {
        first.data_type = DataType::F32;
    }
    let by_copy = field != "interleave_layout";
    let place = if global { "target" } else { "place" };
    let hand_over = match (global, by_copy) {
        (true, true) => "map_release();\nmap_acquire(target);\n",
        (false, true) => "map_publish(target, place);\nmap_acquire(target);\n",
        _ => "",
    };
    let show = if by_copy {
        let load = if field == "rank" {
            "tensor_load_2d"
        } else {
            "tensor_load_3d"
        };
        let z = if field == "rank" {
            ""
        } else {
            ", get(input, 3)"
        };
        format!(
            "if (i == 0) {{\n\
             bar_expect(bar, get(input, 0));\n\
             bar_arrive(bar, 1);\n\
             {load}(data, target, get(input, 1), get(input, 2){z}, bar);\n\
             }}\n\
             bar_wait(bar, 0);\n{}",
            bulk::SHOW
        )
    } else {
        format!("if (i < 16) {{ put(output, i, load(at({place}, 8 * i), 8)); }}\n")
    };
    let body = format!(
        "{}ptr target = at(memory, 0);\n\
         ptr place = at(shared, 512);\n\
         i = thread();\n\
         if (i < 16) {{ store(at({place}, 8 * i), 8, load(at(tensor_map, 8 * i), 8)); }}\n\
         sync();\n\
         if (i == 0) {{\n\
         @ = ({place}{value})\n\
         }}\n\
         sync();\n\
         {hand_over}{show}",
        bulk::BEGIN
    );
    let mut scenario = Scenario::new(body, move |seed| {
        let memory = Random::new(seed, "tensor map").bytes(MEMORY);
        let corner = &corner[..tensor.dims.len()];
        let (bytes, tile) = tensor.tile(&memory, corner);
        let input = [bytes as u64]
            .into_iter()
            .chain(corner.iter().map(|at| *at as u64 & 0xffff_ffff));
        let mut case =
            Case::new("one field", Launch::new(1, 32), input.collect()).tensor(first.clone());
        if by_copy {
            case = case.gives_words(bulk::region(&tile, 0));
        } else {
            case.expected.output = vec![Word::Opaque(u64::MAX); 16];
            case.expected.map = Some(tensor.clone());
        }
        // The map lies there; the output says what became of it.
        case.memory = memory;
        vec![case]
    })
    .shared(bulk::SHARED)
    .with_map();
    scenario.immediate = immediate;
    Some(scenario)
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
