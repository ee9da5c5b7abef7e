//! Times against the roofline, as SVG.

use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::prelude::*;

use crate::Outcome;

const FONT: &str = "sans-serif";
/// The first competitor, and the others; told apart with any colour vision.
const COLOURS: [RGBColor; 4] =
    [RGBColor(183, 65, 14), RGBColor(120, 150, 190), RGBColor(150, 150, 150), RGBColor(200, 200, 200)];
const WIDTH: i32 = 1100;
const LABELS: i32 = 420;
/// The length of the roofline.
const LENGTH: i32 = 440;
const ROW: i32 = 20;
const HEAD: i32 = 64;

/// A bar for each competitor: the least time that the hardware allows, as a part of the time it took.
///
/// # Errors
/// If the file cannot be written.
pub fn roofline(path: &Path, title: &str, outcomes: &[Outcome]) -> Result<()> {
    let rows: i32 = outcomes.iter().map(|outcome| outcome.entries.len() as i32 + 1).sum();
    let height = HEAD + ROW * rows + 20;
    let root = SVGBackend::new(path, (WIDTH as u32, height as u32)).into_drawing_area();
    root.fill(&WHITE).map_err(broken)?;
    let text = |words: &str, x, y, size| {
        root.draw(&Text::new(words.to_owned(), (x, y), (FONT, size))).map_err(broken)
    };
    text(title, 12, 10, 20)?;
    text(
        "time against the roofline: the least time by the peak of memory or tensor cores, over the time taken (median)",
        12,
        36,
        13,
    )?;
    let mut y = HEAD;
    for outcome in outcomes {
        text(&outcome.name, 12, y + 4, 13)?;
        for (entry, colour) in outcome.entries.iter().zip(COLOURS.into_iter().cycle()) {
            y += ROW;
            let part = outcome.roofline_ms / entry.ms.median;
            let end = LABELS + (part * f64::from(LENGTH)) as i32;
            text(&entry.name, 40, y + 3, 12)?;
            root.draw(&Rectangle::new([(LABELS, y + 3), (end, y + ROW - 4)], colour.filled()))
                .map_err(broken)?;
            let figures = format!(
                "{:.1} %, {:.4} ms, {}",
                part * 100.0,
                entry.ms.median,
                outcome.work.rate(entry.ms.median)
            );
            text(&figures, LABELS + LENGTH + 8, y + 3, 12)?;
        }
        y += ROW;
    }
    let roofline = LABELS + LENGTH;
    root.draw(&PathElement::new([(roofline, HEAD - 8), (roofline, y)], BLACK.stroke_width(1)))
        .map_err(broken)?;
    root.present().map_err(broken)
}

fn broken(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("cannot draw the chart: {error}")
}
