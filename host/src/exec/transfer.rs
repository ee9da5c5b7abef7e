//! Copies under way: their pieces are moved later, in any order, and their barriers told.

use super::alu;
use super::barrier::add_transactions;
use super::bulk::number_of;
use super::check::{Check, Fault, Step};
use super::machine::Machine;
use super::op::*;
use super::state::*;
use super::tensor::CHUNK;

/// The most pieces of a copy.
const PIECES: usize = 4;

impl Machine<'_> {
    /// Cuts a copy into pieces of whole grains.
    pub fn cut(&mut self, size: u32, grain: u32) -> Vec<(u32, u32)> {
        let grains = size / grain.max(1);
        if self.chooser.is_planned() {
            let half = grains / 2;
            let halves = [(0, half), (half, grains - half)];
            let halves = halves.into_iter().filter(|(_, len)| *len > 0);
            return halves.map(|(at, len)| (at * grain, len * grain)).collect();
        }
        let mut pieces = Vec::new();
        let mut at = 0;
        while at < grains {
            let left = grains - at;
            let take = if pieces.len() + 1 == PIECES {
                left
            } else {
                1 + self.chooser.below(left as usize) as u32
            };
            pieces.push((at * grain, take * grain));
            at += take;
        }
        pieces
    }

    /// Whether a cluster has copies to move or multiplications to execute.
    pub fn is_busy(&self, cluster: usize) -> bool {
        !self.clusters[cluster].copies.is_empty() || !self.ready_warpgroups(cluster).is_empty()
    }

    /// Moves one piece of some copy, or executes a multiplication, if there is any.
    pub fn move_a_piece(&mut self) -> Step<()> {
        let busy: Vec<usize> = (0..self.clusters.len())
            .filter(|cluster| self.is_busy(*cluster))
            .collect();
        if busy.is_empty() {
            return Ok(());
        }
        let cluster = busy[self.chooser.below(busy.len())];
        let copies = self.clusters[cluster].copies.len();
        let groups = self.ready_warpgroups(cluster);
        let chosen = self.chooser.below(copies + groups.len());
        match chosen.checked_sub(copies) {
            Some(group) => self.multiply(cluster, groups[group]),
            None => self.move_piece_of(cluster, chosen),
        }
    }

    /// Moves one piece of a copy, and tells its barrier.
    pub fn move_piece_of(&mut self, cluster: usize, number: usize) -> Step<()> {
        self.at = (cluster, 0);
        self.progress += 1;
        let pieces = self.clusters[cluster].copies[number].pieces.len();
        let piece = self.chooser.below(pieces);
        let copy = &mut self.clusters[cluster].copies[number];
        let (offset, len) = copy.pieces.swap_remove(piece);
        let last = copy.pieces.is_empty();
        let (route, reduce, byte_mask) = (copy.route.clone(), copy.reduce, copy.byte_mask);
        let (agent, tick, mbarrier) = (copy.agent, copy.tick, copy.mbarrier);
        let moved = offset.max(copy.moved.start)..(offset + len).min(copy.moved.end);
        self.copy_line = copy.line;
        self.still_there(&route)?;
        match route {
            Route::Bytes { source, target } if !moved.is_empty() => {
                let len = moved.end - moved.start;
                let bytes = match source {
                    Source::Data(data) => data[moved.start as usize..moved.end as usize].to_vec(),
                    Source::Memory(place) => self.bytes(place.plus(moved.start), len).to_vec(),
                };
                self.put_bytes(target.plus(moved.start), &bytes, reduce, byte_mask);
            }
            Route::Bytes { .. } => {}
            Route::Tile { tile, rank, load } => {
                for at in (offset..offset + len).step_by(CHUNK as usize) {
                    self.move_chunk(&tile, at, (rank, load), reduce)?;
                }
            }
        }
        if let Some((rank, offset)) = mbarrier {
            let barrier = self.barrier(rank, offset)?;
            add_transactions(barrier, -i64::from(len))?;
            if last {
                barrier.arrivals.complete(agent, tick);
                barrier.arrivals.complete(agent + 1, tick);
            }
            barrier.settle();
        }
        if last {
            self.clusters[cluster].copies.swap_remove(number);
        }
        Ok(())
    }

    /// Moves 16 bytes of a tile.
    fn move_chunk(
        &mut self,
        tile: &Tile,
        at: u32,
        (rank, load): (u32, bool),
        reduce: Option<(AtomOp, Ty)>,
    ) -> Step<()> {
        let chunk = tile.chunk(at);
        let shared = self.side(&chunk, rank, true, load)?;
        let global = self.side(&chunk, rank, false, load)?;
        if load {
            let mut bytes = tile.layout.outside();
            if let Some((place, len)) = global {
                let valid = chunk.valid.start as usize..chunk.valid.end as usize;
                bytes[valid.clone()].copy_from_slice(self.bytes(place, len));
                tile.layout.round(&mut bytes[valid]);
            }
            if let Some((place, _)) = shared {
                self.put_bytes(place, &bytes, None, u16::MAX);
            }
        } else if let (Some((from, len)), Some((to, _))) = (shared, global) {
            let bytes = self.bytes(from, len).to_vec();
            self.put_bytes(to, &bytes, reduce, u16::MAX);
        }
        Ok(())
    }

    /// Writes bytes, or reduces what is there with them.
    fn put_bytes(
        &mut self,
        target: Place,
        bytes: &[u8],
        reduce: Option<(AtomOp, Ty)>,
        byte_mask: u16,
    ) {
        let into = self.bytes(target, bytes.len() as u32);
        let Some((f, ty)) = reduce else {
            for (at, (into, from)) in into.iter_mut().zip(bytes).enumerate() {
                if byte_mask >> (at % 16) & 1 == 1 {
                    *into = *from;
                }
            }
            return;
        };
        let size = ty.bytes() as usize;
        for (into, from) in into.chunks_mut(size).zip(bytes.chunks(size)) {
            let value = alu::atomic(f, ty, number_of(into), number_of(from), 0);
            into.copy_from_slice(&value.to_le_bytes()[..size]);
        }
    }

    /// Fails if a copy uses the shared memory of a CTA that has exited.
    fn still_there(&self, route: &Route) -> Step<()> {
        let ctas = &self.clusters[self.at.0].ctas;
        let mut ranks = route.ranks();
        match ranks.find(|rank| ctas[*rank as usize].live_threads == 0) {
            None => Ok(()),
            Some(rank) => Err(Fault::new(
                Check::ExitedCta,
                format!(
                    "expected a wait for this copy before the threads of the CTA of rank {rank} \
                     exit, since it still uses the shared memory of that CTA"
                ),
            )),
        }
    }
}
