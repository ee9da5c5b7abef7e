//! Times what does the same work against each other, in one run, and records it.

mod chart;
mod contest;
mod record;

pub use chart::roofline;
pub use contest::{Competitor, Contest, Outcome, Quartiles, Work, time};
pub use record::{Record, write};
