//! The forms that `cuda::ptx` lacks, one file for what belongs together.
//!
//! [`Form::function`] is the Rust function, which tells forms of one instruction apart; [`Form::operands`] has what is
//! read and written too, and its words afterwards are outputs.

mod barrier_cta;
mod cache;
mod collective;
mod convert;
mod copies;
mod cp_async;
mod floats;
mod memory;
mod mma;
mod pacing;
mod wgmma;

use super::Scenario;
use crate::differential::form::Form;

/// How the form of this family is run.
///
/// # Errors
///
/// Why it cannot be run on this GPU.
pub fn of(form: &Form, family: &str) -> Result<Scenario, String> {
    match family {
        "atom" => memory::scenario(form),
        "barrier_cta" => barrier_cta::scenario(form),
        "cache" => cache::scenario(form),
        "convert" => convert::scenario(form),
        "cp_async" => cp_async::scenario(form),
        "mma" => mma::scenario(form),
        "pacing" => pacing::scenario(form),
        "warp_collective" => collective::scenario(form),
        "cp_async_bulk" | "cp_async_bulk_tensor" | "cp_reduce_async_bulk" | "multimem" => {
            copies::scenario(form)
        }
        "wgmma" => wgmma::scenario(form),
        _ => Err(missing(form)),
    }
}

/// Why a sample lacks the form, if it does: see [`Extent`](crate::differential::Extent).
pub fn left_out(form: &Form, family: &str) -> Option<String> {
    match family {
        "wgmma" => wgmma::left_out(form),
        _ => None,
    }
}

/// Counted and named until there is a scenario.
fn missing(form: &Form) -> String {
    format!("no scenario yet: `{}`", form.function)
}
