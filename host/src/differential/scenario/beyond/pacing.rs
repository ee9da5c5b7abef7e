//! Grids, sleep, and memory barriers: `griddepcontrol`, `nanosleep`, `membar`.

use super::{Scenario, missing};
use crate::differential::form::Form;

pub fn scenario(form: &Form) -> Result<Scenario, String> {
    Err(missing(form))
}
