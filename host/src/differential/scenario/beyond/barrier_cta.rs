//! Barriers of a CTA: `barrier.cta.sync`, `.arrive`, `.red`; and the aligned ones of a cluster.

use super::{Scenario, missing};
use crate::differential::form::Form;

pub fn scenario(form: &Form) -> Result<Scenario, String> {
    Err(missing(form))
}
