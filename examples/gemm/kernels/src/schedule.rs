//! Which parts of C a cluster computes, one after the other.

use cuda_ptx::{get_sreg_clusterid_x, get_sreg_nclusterid_x};

use crate::{CLUSTER, COLUMNS, CTA_ROWS, Product};

/// The first row and column of each tile of the executing cluster.
pub struct Schedule {
    next: u32,
    rows: u32,
    columns: u32,
    group: u32,
}

impl Schedule {
    /// For C of a product. So many rows of clusters' tiles as its `group` says are computed
    /// together, column by column: at any time the clusters work on a block of C that is about as high as
    /// wide, for which the L2 cache holds A and B.
    #[inline(always)]
    pub fn new(product: &Product) -> Self {
        Self {
            next: get_sreg_clusterid_x(),
            rows: product.m.div_ceil(CLUSTER * CTA_ROWS),
            columns: product.n.div_ceil(COLUMNS).max(1),
            group: product.group.max(1),
        }
    }
}

impl Iterator for Schedule {
    type Item = (u32, u32);

    #[inline(always)]
    fn next(&mut self) -> Option<(u32, u32)> {
        let index = self.next;
        if index >= self.rows * self.columns {
            return None;
        }
        self.next += get_sreg_nclusterid_x();
        let group = index / (self.group * self.columns).max(1);
        let first = group * self.group;
        let height = self.group.min(self.rows - first).max(1);
        let place = index - first * self.columns;
        let (row, column) = (first + place % height, place / height);
        // Back again in every other group: what was used last is used first.
        let column = if group % 2 == 0 { column } else { self.columns - 1 - column };
        Some((row * CLUSTER * CTA_ROWS, column * COLUMNS))
    }
}
