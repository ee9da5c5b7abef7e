//! What only the caches notice: policies, priorities, prefetches, and lines that are discarded.

use super::{Scenario, missing};
use crate::differential::form::Form;

pub fn scenario(form: &Form) -> Result<Scenario, String> {
    Err(missing(form))
}
