//! Grids, sleep, and memory barriers: `griddepcontrol`, `nanosleep`, `membar`.

use super::{Scenario, missing};
use crate::differential::form::Form;
use crate::differential::scenario::{Case, Random, fence};
use crate::driver::Launch;

pub fn scenario(form: &Form) -> Result<Scenario, String> {
    match form.function.as_str() {
        "griddepcontrol_launch_dependents" | "griddepcontrol_wait" => Ok(nothing_changes(form, "")),
        "nanosleep" => Ok(nothing_changes(form, "get(input, i) % 3000")),
        "membar_cta" => Ok(membar(form, "scope_cta")),
        "membar_gl" => Ok(membar(form, "scope_gpu")),
        "membar_sys" => Ok(membar(form, "scope_sys")),
        _ => Err(missing(form)),
    }
}

/// `membar` is a sequentially consistent fence.
fn membar(form: &Form, scope: &str) -> Scenario {
    fence::litmus(&Form {
        tags: vec!["sem_sc".to_owned(), scope.to_owned()],
        ..form.clone()
    })
}

/// The call ends, in diverged warps too, and registers, shared and global memory stay as they are. No grid comes
/// before this one that it could depend on.
fn nothing_changes(form: &Form, operand: &str) -> Scenario {
    let body = format!(
        "var i = grid_thread();\n\
         ptr mine = at(shared, 8 * thread());\n\
         var kept = get(input, i);\n\
         store(mine, 8, kept + 1);\n\
         var times = kept % 4;\n\
         while (times > 0) {{\n\
         @ = ({operand})\n\
         times = times - 1;\n\
         }}\n\
         put(output, 3 * i, kept);\n\
         put(output, 3 * i + 1, load(mine, 8));\n\
         put(output, 3 * i + 2, load(at(memory, 8 * i), 8));\n"
    );
    let name = form.instruction.clone();
    Scenario::new(body, move |seed| {
        let case = |blocks: usize, threads: usize| {
            let mut random = Random::new(seed ^ threads as u64, &name);
            let input = Vec::from_iter((0..blocks * threads).map(|_| random.word()));
            let memory = random.bytes(8 * input.len());
            let loaded = crate::differential::scenario::words(&memory);
            let output = input.iter().zip(loaded);
            let output = output.flat_map(|(kept, loaded)| [*kept, kept.wrapping_add(1), loaded]);
            let output = Vec::from_iter(output);
            let launch = Launch::new(blocks as u32, threads as u32);
            Case::new(format!("{blocks} blocks of {threads}"), launch, input)
                .memory(memory)
                .gives_words(output)
        };
        vec![case(1, 32), case(3, 200), case(1, 1)]
    })
    .shared(8 * 256)
}
