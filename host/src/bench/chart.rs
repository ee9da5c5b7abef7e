//! Charts as SVG.

use std::ops::Range;
use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;

use super::report::figure;

const FONT: &str = "sans-serif";
const RUST: RGBColor = RGBColor(183, 65, 14);
const CPP: RGBColor = RGBColor(120, 150, 190);
/// Colours that are told apart with any colour vision.
const LINES: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(90, 90, 90),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];

type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A label and its figures: Rust, C++.
pub type Bar = (String, [f64; 2]);

/// A line of a chart.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Points, x ascending.
    pub points: Vec<(f64, f64)>,
}

/// What stands around a chart of lines.
#[derive(Clone, Copy, Debug)]
pub struct Axes<'a> {
    /// Above it.
    pub title: &'a str,
    /// Below the horizontal axis.
    pub x: &'a str,
    /// Beside the vertical axis.
    pub y: &'a str,
    /// Whether each axis is logarithmic.
    pub logarithmic: [bool; 2],
}

/// Horizontal bars in pairs on a logarithmic axis, with the figure at the end of each pair.
///
/// # Errors
/// If the file cannot be written.
pub fn bars(path: &Path, title: &str, unit: &str, bars: &[Bar]) -> Result<()> {
    let (row, head, label_width, width) = (22, 60, 620, 1240);
    let height = head + 20 + row * bars.len() as i32;
    let root = canvas(path, (width as u32, height as u32))?;
    let greatest = bars.iter().flat_map(|bar| bar.1).fold(10.0f64, f64::max);
    let length = |value: f64| {
        let scale = (width - label_width - 110) as f64 / (greatest / 0.5).log10();
        ((value.max(0.5) / 0.5).log10() * scale) as i32
    };
    text(&root, title, (12, 10), 20)?;
    text(
        &root,
        &format!("{unit}; the scale is logarithmic"),
        (12, 36),
        13,
    )?;
    for (colour, name, x) in [(RUST, "Rust", width - 190), (CPP, "C++", width - 100)] {
        rectangle(&root, (x, 16), (14, 14), colour)?;
        text(&root, name, (x + 20, 16), 14)?;
    }
    for (index, (label, values)) in bars.iter().enumerate() {
        let y = head + row * index as i32;
        text(&root, label, (12, y + 3), 13)?;
        for (side, colour) in [RUST, CPP].into_iter().enumerate() {
            let place = (label_width, y + 2 + 8 * side as i32);
            rectangle(&root, place, (length(values[side]), 7), colour)?;
        }
        let end = label_width + length(values[0].max(values[1])) + 6;
        text(&root, &figure(values[0]), (end, y + 3), 12)?;
    }
    root.present().map_err(broken)
}

/// Lines with points, and a legend beside them.
///
/// # Errors
/// If the file cannot be written.
pub fn lines(path: &Path, axes: Axes, series: &[Series]) -> Result<()> {
    let longest = series.iter().map(|line| line.name.len()).max().unwrap_or(0);
    let (plot, legend) = (820, 50 + 7 * longest as u32);
    let root = canvas(path, (plot + legend, 540))?;
    let (left, right) = root.split_horizontally(plot);
    let scale = |value: f64, axis: usize| match axes.logarithmic[axis] {
        true => value.log2(),
        false => value,
    };
    let [x, y] = [0, 1].map(|axis| {
        let values = series.iter().flat_map(|line| &line.points);
        bounds(
            values.map(|p| scale([p.0, p.1][axis], axis)),
            axes.logarithmic[axis],
        )
    });
    let label = |axis: usize| {
        let logarithmic = axes.logarithmic[axis];
        let bytes = [axes.x, axes.y][axis].starts_with("bytes");
        move |value: &f64| match logarithmic {
            true if (value - value.round()).abs() > 1e-6 => String::new(),
            true => count(value.exp2(), bytes),
            false => count(*value, bytes),
        }
    };
    // One label for each power of two.
    let labels = |range: &Range<f64>, logarithmic| match logarithmic {
        true => (range.end - range.start).ceil() as usize + 1,
        false => 11,
    };
    let (x_label, y_label) = (label(0), label(1));
    let (x_labels, y_labels) = (
        labels(&x, axes.logarithmic[0]),
        labels(&y, axes.logarithmic[1]),
    );
    let mut chart = ChartBuilder::on(&left)
        .caption(axes.title, (FONT, 20))
        .margin(14)
        .x_label_area_size(46)
        .y_label_area_size(66)
        .build_cartesian_2d(x, y)
        .map_err(broken)?;
    chart
        .configure_mesh()
        .x_desc(axes.x)
        .y_desc(axes.y)
        .x_labels(x_labels)
        .y_labels(y_labels)
        .x_label_formatter(&x_label)
        .y_label_formatter(&y_label)
        .light_line_style(WHITE)
        .bold_line_style(RGBColor(225, 225, 225))
        .label_style((FONT, 13))
        .draw()
        .map_err(broken)?;
    for (index, line) in series.iter().enumerate() {
        let colour = LINES[index % LINES.len()];
        // The first is the widest, so that it is seen behind others.
        let width = 2 + 3 * (series.len() - 1 - index).min(3) as u32 / 2;
        let points = line.points.iter().map(|p| (scale(p.0, 0), scale(p.1, 1)));
        chart
            .draw_series(LineSeries::new(points.clone(), colour.stroke_width(width)))
            .map_err(broken)?;
        chart
            .draw_series(points.map(|p| Circle::new(p, 2 + width as i32 / 2, colour.filled())))
            .map_err(broken)?;
        let place = 60 + 24 * index as i32;
        rectangle(&right, (0, place + 5), (22, width as i32), colour)?;
        text(&right, &line.name, (30, place), 14)?;
    }
    root.present().map_err(broken)
}

/// An axis: from zero if it is linear, from a power of two if not, with some room at the end.
fn bounds(values: impl Iterator<Item = f64>, logarithmic: bool) -> Range<f64> {
    let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), v| {
        (low.min(v), high.max(v))
    });
    match logarithmic {
        true => low.floor()..(high - 0.01).ceil().max(low.floor() + 1.0),
        false => 0.0f64.min(low)..(1.05 * high).max(1.0),
    }
}

fn canvas(path: &Path, size: (u32, u32)) -> Result<Canvas<'_>> {
    let root = SVGBackend::new(path, size).into_drawing_area();
    root.fill(&WHITE).map_err(broken)?;
    Ok(root)
}

fn rectangle(root: &Canvas, at: (i32, i32), size: (i32, i32), colour: RGBColor) -> Result<()> {
    let corners = [at, (at.0 + size.0, at.1 + size.1)];
    root.draw(&Rectangle::new(corners, colour.filled()))
        .map_err(broken)
}

fn text(root: &Canvas, text: &str, at: (i32, i32), size: i32) -> Result<()> {
    root.draw(&Text::new(text.to_owned(), at, (FONT, size)))
        .map_err(broken)
}

/// 4096 is 4Ki where bytes are counted.
fn count(value: f64, bytes: bool) -> String {
    match value {
        v if bytes && v >= 1024.0 && v % 1024.0 == 0.0 => format!("{}Ki", v / 1024.0),
        v if v.fract() == 0.0 => format!("{v}"),
        v => format!("{v:.2}"),
    }
}

fn broken(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("cannot draw the chart: {error}")
}
