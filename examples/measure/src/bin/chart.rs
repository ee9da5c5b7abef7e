//! Draws the chart of a file that the examples' `--json` wrote, and prints its table for
//! `docs/flagship.md`: `chart RESULTS.json CHART.svg`.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use measure::Record;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [results, chart] = arguments.as_slice() else {
        bail!("expected two arguments: the results to read, and the chart to write");
    };
    let text = std::fs::read_to_string(results).with_context(|| format!("cannot read {results}"))?;
    let records: BTreeMap<String, Record> =
        serde_json::from_str(&text).with_context(|| format!("{results} is not of the examples"))?;
    let device = records.values().next().map_or("no device", |record| record.device.as_str());
    // Memory first.
    let outcomes: Vec<_> = ["streaming", "layernorm", "gemm"]
        .iter()
        .filter_map(|example| records.get(*example))
        .flat_map(|record| record.contests.iter().cloned())
        .collect();
    for outcome in &outcomes {
        print!("{}", outcome.table());
    }
    measure::roofline(Path::new(chart), &format!("Kernels in Rust on an {device}"), &outcomes)
}
