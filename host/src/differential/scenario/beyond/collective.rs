//! What the lanes of a warp do together: `redux`, `vote`, `match`, `elect`, `activemask`, `bar.warp.sync`.

use super::{Scenario, missing};
use crate::differential::form::Form;

pub fn scenario(form: &Form) -> Result<Scenario, String> {
    Err(missing(form))
}
