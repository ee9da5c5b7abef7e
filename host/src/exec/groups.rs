//! The groups by which a thread waits for its copies.

use std::rc::Rc;

use super::machine::Machine;
use super::state::*;

impl Machine<'_> {
    /// Whether of the threads' groups of `cp.async` only so many are not complete, or no copy with
    /// `None`; if not, the warp waits for it.
    pub fn async_copies_done(
        &mut self,
        warp: &mut Warp,
        current: usize,
        active: u32,
        pending: Option<u32>,
    ) -> bool {
        if pending.is_none() {
            commit(&mut warp.async_groups, active);
        }
        let pending = pending.unwrap_or(0);
        let done = self.groups_done(warp, active, pending, false);
        if done {
            self.learn_groups(warp, active, pending, false, false);
        } else {
            warp.splits[current].wait = Wait::Async { pending };
        }
        done
    }

    /// Whether all but the last `pending` groups of each lane are complete.
    pub fn groups_done(&self, warp: &Warp, active: u32, pending: u32, bulk: bool) -> bool {
        let groups = if bulk {
            &warp.bulk_groups
        } else {
            &warp.async_groups
        };
        let copies = &self.clusters[self.at.0].copies;
        lanes(active)
            .filter_map(|lane| groups.get(&lane))
            .all(|it| {
                let waited = it.committed.len().saturating_sub(pending as usize);
                let mut issued = it.committed.iter().take(waited).flatten();
                issued.all(|issued| copies.iter().all(|copy| copy.id != issued.id))
            })
    }

    /// The lanes learn of the copies in the groups that they have waited for.
    pub fn learn_groups(
        &mut self,
        warp: &mut Warp,
        active: u32,
        pending: u32,
        bulk: bool,
        read: bool,
    ) {
        for lane in lanes(active) {
            let groups = if bulk {
                &mut warp.bulk_groups
            } else {
                &mut warp.async_groups
            };
            let Some(groups) = groups.get_mut(&lane) else {
                continue;
            };
            let waited = groups.committed.len().saturating_sub(pending as usize);
            let issued: Vec<Issued> = if read {
                // Their writes may still be waited for.
                groups
                    .committed
                    .iter()
                    .take(waited)
                    .flatten()
                    .copied()
                    .collect()
            } else {
                groups.committed.drain(..waited).flatten().collect()
            };
            if issued.is_empty() {
                continue;
            }
            let thread = &mut warp.threads[lane as usize];
            let mut clock = (*thread.base).clone();
            for Issued { agent, tick, .. } in issued {
                let numbers = if read {
                    agent..=agent
                } else {
                    agent..=agent + 1
                };
                for number in numbers {
                    let known = &mut clock.happened[number as usize];
                    *known = (*known).max(tick);
                }
            }
            thread.base = Rc::new(clock);
        }
    }
}

pub fn commit(groups: &mut std::collections::BTreeMap<u32, Groups>, active: u32) {
    for lane in lanes(active) {
        let groups = groups.entry(lane).or_default();
        let open = std::mem::take(&mut groups.open);
        groups.committed.push_back(open);
    }
}
