//! A counted set of opcodes, and the difference of two.

use std::collections::BTreeMap;
use std::fmt;

/// Opcodes and how often each occurs, in alphabetical order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Multiset(BTreeMap<String, usize>);

impl Multiset {
    /// How often `item` occurs.
    pub fn count(&self, item: &str) -> usize {
        self.0.get(item).copied().unwrap_or(0)
    }

    /// The number of occurrences of all items together.
    pub fn total(&self) -> usize {
        self.0.values().sum()
    }

    /// Whether nothing occurs.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The items with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (&str, usize)> {
        self.0.iter().map(|(item, &count)| (item.as_str(), count))
    }

    /// The items alone.
    pub fn items(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// What `self` has more often than `other`.
    pub fn minus(&self, other: &Self) -> Self {
        let surplus = |(item, count): (&str, usize)| {
            let more = count.saturating_sub(other.count(item));
            (more > 0).then(|| (item.to_owned(), more))
        };
        Self(self.iter().filter_map(surplus).collect())
    }

    /// The items of `self` that `other` does not hold at all.
    pub fn not_in(&self, other: &Self) -> Vec<String> {
        let absent = |item: &&str| other.count(item) == 0;
        self.items().filter(absent).map(str::to_owned).collect()
    }
}

impl<S: Into<String>> FromIterator<S> for Multiset {
    fn from_iter<I: IntoIterator<Item = S>>(items: I) -> Self {
        let mut counts = BTreeMap::new();
        for item in items {
            *counts.entry(item.into()).or_default() += 1;
        }
        Self(counts)
    }
}

/// Writes `2 MOV, 1 STS`.
impl fmt::Display for Multiset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, (item, count)) in self.iter().enumerate() {
            let separator = if position == 0 { "" } else { ", " };
            write!(f, "{separator}{count} {item}")?;
        }
        Ok(())
    }
}

/// What each of two sides has and the other lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// What Rust has more often.
    pub only_rust: Multiset,
    /// What C++ has more often.
    pub only_cxx: Multiset,
}

impl Difference {
    /// The difference of two counted sets.
    pub fn of(rust: &Multiset, cxx: &Multiset) -> Self {
        Self {
            only_rust: rust.minus(cxx),
            only_cxx: cxx.minus(rust),
        }
    }

    /// Whether both sides are the same.
    pub fn is_empty(&self) -> bool {
        self.only_rust.is_empty() && self.only_cxx.is_empty()
    }
}

/// Writes `Rust has 1 MOV more; C++ has 2 UMOV more`.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.only_rust.is_empty(), self.only_cxx.is_empty()) {
            (true, true) => write!(f, "no difference"),
            (false, true) => write!(f, "Rust has {} more", self.only_rust),
            (true, false) => write!(f, "C++ has {} more", self.only_cxx),
            (false, false) => {
                write!(
                    f,
                    "Rust has {} more; C++ has {} more",
                    self.only_rust, self.only_cxx
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(items: &[&str]) -> Multiset {
        items.iter().copied().collect()
    }

    #[test]
    fn the_difference_counts_each_side_apart() {
        let difference = Difference::of(&set(&["MOV", "MOV", "LDS"]), &set(&["MOV", "STS"]));
        assert_eq!(
            difference.to_string(),
            "Rust has 1 LDS, 1 MOV more; C++ has 1 STS more"
        );
        assert!(!difference.is_empty());
    }

    #[test]
    fn an_item_that_occurs_less_often_is_still_in_the_set() {
        assert_eq!(
            set(&["MOV", "MOV"]).not_in(&set(&["MOV"])),
            Vec::<String>::new()
        );
        assert_eq!(set(&["MOV", "MOV"]).minus(&set(&["MOV"])), set(&["MOV"]));
    }

    #[test]
    fn equal_sets_have_no_difference() {
        assert!(Difference::of(&set(&["A", "B"]), &set(&["B", "A"])).is_empty());
    }
}
