//! Whether another run finds the same.

use std::collections::HashMap;
use std::fmt;

use super::job::Measured;
use super::runner::Results;
use super::situation_job::SituationPoint;

/// How far two runs may be apart.
const SAME: f64 = 0.03;

impl Results {
    /// Whether the second run of the same command found what the first did; nothing if there was none.
    #[must_use]
    pub fn repeated(&self) -> Option<Agreement> {
        let forms = self.timed.iter().filter(|m| !m.form.collapsed);
        let forms = forms
            .filter_map(|m| Some((form_name(m), m.latency.slopes(), m.again.as_ref()?.slopes())));
        let points = self.points();
        let points = points.filter_map(|(name, p)| Some((name, p.operation, p.again?)));
        Agreement::of(forms, points)
    }

    /// How the medians compare with those of another run, which had its own machine, clock and time.
    #[must_use]
    pub fn against(&self, other: &Self) -> Option<Agreement> {
        let latencies: HashMap<_, _> = other
            .timed
            .iter()
            .map(|m| (form_name(m), m.latency.slopes()))
            .collect();
        let forms = self.timed.iter().filter(|m| !m.form.collapsed);
        let forms = forms.filter_map(|m| {
            let name = form_name(m);
            let other = latencies.get(&name)?;
            Some((name, m.latency.slopes(), *other))
        });
        let operations: HashMap<_, _> = other.points().map(|(n, p)| (n, p.operation)).collect();
        let points = self.points().filter_map(|(name, p)| {
            let other = operations.get(&name)?;
            Some((name, p.operation, *other))
        });
        Agreement::of(forms, points)
    }

    /// The points of all situations, with names.
    fn points(&self) -> impl Iterator<Item = (String, &SituationPoint)> {
        self.situations.iter().flat_map(|situation| {
            let name = |p: &SituationPoint| {
                format!(
                    "`{}` at {}, line {}",
                    situation.kernel, p.point.at, p.point.line
                )
            };
            situation.points.iter().map(move |p| (name(p), p))
        })
    }
}

/// How the medians of two runs compare.
#[derive(Clone, Debug, PartialEq)]
pub struct Agreement {
    forms: Share,
    points: Share,
}

/// A name with the cycles in Rust and C++ that two runs found.
type Twice = (String, [f64; 2], [f64; 2]);

/// The cycles of one kind, Rust's and C++'s, and those that are further apart than [`SAME`].
#[derive(Clone, Debug, PartialEq)]
struct Share {
    all: usize,
    apart: Vec<String>,
}

impl Agreement {
    /// Of names with the first and the second run; nothing of nothing.
    fn of(forms: impl Iterator<Item = Twice>, points: impl Iterator<Item = Twice>) -> Option<Self> {
        let agreement = Self {
            forms: Share::of(forms),
            points: Share::of(points),
        };
        (agreement.forms.all + agreement.points.all > 0).then_some(agreement)
    }
}

impl Share {
    fn of(pairs: impl Iterator<Item = Twice>) -> Self {
        let mut share = Self {
            all: 0,
            apart: Vec::new(),
        };
        for (name, first, second) in pairs {
            for (side, language) in ["Rust", "C++"].into_iter().enumerate() {
                share.all += 1;
                let (a, b) = (first[side], second[side]);
                if apart(a, b) {
                    share
                        .apart
                        .push(format!("{name} ({language}: {a:.1}, then {b:.1})"));
                }
            }
        }
        share
    }
}

impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { forms, points } = self;
        let within = |share: &Share| share.all - share.apart.len();
        write!(
            f,
            "A second run: {} of {} costs of forms and {} of {} of situations are within {:.0} %.",
            within(forms),
            forms.all,
            within(points),
            points.all,
            100.0 * SAME
        )?;
        let apart = Vec::from_iter(forms.apart.iter().chain(&points.apart).map(String::as_str));
        if apart.is_empty() {
            return Ok(());
        }
        write!(f, " The others: {}.", apart.join("; "))
    }
}

fn apart(a: f64, b: f64) -> bool {
    (b / a - 1.0).abs() > SAME
}

/// The kernel: two forms may share the instruction.
fn form_name(measured: &Measured) -> String {
    format!("`{}`", measured.form.kernel)
}

/// Whether the second run found another cost.
pub(super) fn unsteady(first: [f64; 2], second: Option<[f64; 2]>) -> bool {
    second.is_some_and(|second| (0..2).any(|side| apart(first[side], second[side])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_more_than_three_percent_apart_are_named() {
        let pairs = [
            ("near".to_owned(), [100.0, 50.0], [102.9, 50.0]),
            ("off".to_owned(), [100.0, 50.0], [103.1, 50.0]),
        ];
        let agreement = Agreement::of(pairs.into_iter(), std::iter::empty()).unwrap();
        assert_eq!(
            agreement.to_string(),
            "A second run: 3 of 4 costs of forms and 0 of 0 of situations are within 3 %. \
             The others: off (Rust: 100.0, then 103.1)."
        );
        assert!(Agreement::of(std::iter::empty(), std::iter::empty()).is_none());
    }
}
