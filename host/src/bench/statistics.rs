//! Medians, their intervals, and straight lines.

use serde::{Deserialize, Serialize};

/// A straight line through points.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The change of y with x.
    pub slope: f64,
    /// y at x = 0.
    pub intercept: f64,
    /// The part of the variance of y that the line explains, from 0 to 1.
    pub r2: f64,
}

impl Line {
    /// The line of least squares.
    #[must_use]
    pub fn through(points: &[(f64, f64)]) -> Self {
        let count = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (x_mean, y_mean) = (mean(|p| p.0), mean(|p| p.1));
        let sum = |of: &dyn Fn(f64, f64) -> f64| {
            points
                .iter()
                .map(|(x, y)| of(x - x_mean, y - y_mean))
                .sum::<f64>()
        };
        let (xx, xy, yy) = (sum(&|x, _| x * x), sum(&|x, y| x * y), sum(&|_, y| y * y));
        let slope = xy / xx;
        Self {
            slope,
            intercept: y_mean - slope * x_mean,
            r2: if yy == 0.0 { 1.0 } else { xy * xy / (xx * yy) },
        }
    }
}

/// The value in the middle; between two, their mean. `NaN` of nothing.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let sorted = sorted(values);
    let count = sorted.len();
    match count {
        0 => f64::NAN,
        _ => f64::midpoint(sorted[(count - 1) / 2], sorted[count / 2]),
    }
}

/// The mean without the lowest and the highest tenth of the values. `NaN` of nothing.
#[must_use]
pub fn trimmed_mean(values: &[f64]) -> f64 {
    let sorted = sorted(values);
    let cut = sorted.len() / 10;
    let middle = &sorted[cut..sorted.len() - cut];
    middle.iter().sum::<f64>() / middle.len() as f64
}

/// An interval that holds the median of the population with a probability of at least 95 %, whatever its
/// distribution: between two order statistics, by the binomial distribution.
#[must_use]
pub fn median_interval(values: &[f64]) -> [f64; 2] {
    let sorted = sorted(values);
    let count = sorted.len();
    if count == 0 {
        return [f64::NAN; 2];
    }
    // The largest `cut` for which at most 2.5 % of all outcomes have `cut` values or fewer on one side.
    let (mut probability, mut sum, mut cut) = (0.5f64.powi(count as i32), 0.0, 0);
    for successes in 0..count {
        sum += probability;
        if sum > 0.025 {
            break;
        }
        cut = successes + 1;
        probability *= (count - successes) as f64 / (successes + 1) as f64;
    }
    let cut = cut.saturating_sub(1).min((count - 1) / 2);
    [sorted[cut], sorted[count - 1 - cut]]
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_through_points_on_a_line_is_that_line() {
        let line = Line::through(&[(64.0, 142.0), (128.0, 270.0), (256.0, 526.0)]);
        assert!((line.slope - 2.0).abs() < 1e-12);
        assert!((line.intercept - 14.0).abs() < 1e-9);
        assert!((line.r2 - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_point_beside_the_line_lowers_r2() {
        let line = Line::through(&[(1.0, 1.0), (2.0, 3.0), (3.0, 2.0)]);
        assert!((line.slope - 0.5).abs() < 1e-12);
        assert!((line.r2 - 0.25).abs() < 1e-12);
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn the_trimmed_mean_leaves_out_a_tenth_on_either_side() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 1e6];
        assert_eq!(trimmed_mean(&values), 5.5);
        assert_eq!(trimmed_mean(&[1.0, 4.0]), 2.5);
    }

    #[test]
    fn the_interval_of_fifteen_values_is_the_fourth_to_the_twelfth() {
        // P(3 or fewer of 15) = 1.76 %, P(4 or fewer) = 5.9 %.
        let values: Vec<f64> = (1..=15).map(f64::from).collect();
        assert_eq!(median_interval(&values), [4.0, 12.0]);
        assert_eq!(median_interval(&[7.0]), [7.0, 7.0]);
    }
}
