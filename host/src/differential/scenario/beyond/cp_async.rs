//! Copies of 4 to 16 bytes: `cp.async`, and the groups that they are waited for by.

use super::{Scenario, missing};
use crate::differential::form::Form;

pub fn scenario(form: &Form) -> Result<Scenario, String> {
    Err(missing(form))
}
