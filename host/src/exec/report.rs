//! What went wrong and where, and who waits for what in a deadlock.

use std::collections::BTreeMap;

use super::check::{Check, Fault, Thread, Violation};
use super::machine::Machine;
use super::state::*;

impl Machine<'_> {
    /// The violation of the instruction that a split is at.
    pub fn blame(&self, fault: Fault, warp: &Warp, split: usize) -> Violation {
        let inst = self.inst_of(warp, &warp.splits[split]);
        let line = inst.map_or(0, |inst| inst.line);
        let lane = fault
            .lane
            .unwrap_or_else(|| warp.splits[split].mask.trailing_zeros());
        let thread = Thread {
            cta: self.clusters[self.at.0].ctas[self.at.1].ctaid,
            thread: self.thread_of(warp.number * 32 + lane),
        };
        self.violation(fault, line, Some(thread))
    }

    pub fn blame_copy(&self, fault: Fault) -> Violation {
        self.violation(fault, self.copy_line, None)
    }

    pub fn violation(&self, fault: Fault, line: u32, thread: Option<Thread>) -> Violation {
        Violation {
            check: fault.check,
            kernel: self.program.functions[self.kernel as usize].name.clone(),
            line,
            source: self.program.source(line),
            thread,
            message: fault.message,
        }
    }

    /// Who waits for what.
    pub fn deadlock(&self) -> Violation {
        let mut waiters: BTreeMap<(u32, String), Vec<String>> = BTreeMap::new();
        let (mut first, mut check, mut exited) = (None, Check::Deadlock, 0);
        for cluster in &self.clusters {
            for cta in &cluster.ctas {
                exited += self.threads_per_cta() - cta.live_threads;
                for warp in &cta.warps {
                    for split in &warp.splits {
                        let Some(inst) = self.inst_of(warp, split) else {
                            continue;
                        };
                        // `bar.sync` and the cluster's wait have been passed in the program.
                        let passed = matches!(split.wait, Wait::Named { .. } | Wait::Warp(_));
                        let line = match (passed, split.pc) {
                            (true, 1..) => self.line_before(warp, split),
                            _ => inst.line,
                        };
                        let apart = matches!(split.wait, Wait::Converge(_) | Wait::Warp(_));
                        if apart {
                            check = Check::Divergence;
                        }
                        let lane = split.mask.trailing_zeros();
                        let thread = Thread {
                            cta: cta.ctaid,
                            thread: self.thread_of(warp.number * 32 + lane),
                        };
                        if first.is_none() || apart {
                            first = Some((line, thread));
                        }
                        let what = self.waits_for(cluster, cta, warp, split);
                        let who = format!("{thread} and {} more", split.mask.count_ones() - 1);
                        waiters.entry((line, what)).or_default().push(who);
                    }
                }
            }
        }
        let mut message = String::from("nothing can go on:");
        for ((line, what), who) in waiters.iter().take(6) {
            let others = match who.len() {
                1 => String::new(),
                n => format!(", and {} other warps", n - 1),
            };
            message += &format!(" [{}{others} wait at PTX line {line} for {what}]", who[0]);
        }
        if exited > 0 {
            message += &format!(" ({exited} threads of these CTAs have exited)");
        }
        let (line, thread) = first.unwrap_or((
            0,
            Thread {
                cta: [0; 3],
                thread: [0; 3],
            },
        ));
        self.violation(*Fault::new(check, message), line, Some(thread))
    }

    fn line_before(&self, warp: &Warp, split: &Split) -> u32 {
        let slot = split.frames.last().map_or(0, |frame| frame.slot);
        let function = &self.program.functions[warp.slots[slot as usize].function as usize];
        function.insts[split.pc as usize - 1].line
    }

    fn waits_for(&self, cluster: &Cluster, cta: &Cta, warp: &Warp, split: &Split) -> String {
        match &split.wait {
            Wait::Phase {
                rank,
                offset,
                phase,
                parity,
            }
            | Wait::Poll {
                rank,
                offset,
                phase,
                parity,
                ..
            } => {
                let owner = &cluster.ctas[*rank as usize];
                let Some(barrier) = owner.barriers.get(offset) else {
                    return format!("the mbarrier at {offset:#x}, which is gone");
                };
                let mut text = format!(
                    "phase {phase} of the mbarrier at shared address {offset:#x} (initialised at PTX \
                     line {}): {} of {} arrivals and {} bytes are missing",
                    barrier.init_line, barrier.pending, barrier.expected, barrier.tx
                );
                let number = self.number_in_cluster(cta, cluster, warp, split);
                let seen = barrier.seen.get(number as usize).copied().unwrap_or(0);
                if let Some(parity) = parity
                    && seen > 0
                    && barrier.phase >= seen + 2
                {
                    text += &format!(
                        "; it asked for parity {parity} and last saw {seen} phases complete, so it \
                         is more than one phase behind, and the parity means a later phase now"
                    );
                }
                text
            }
            Wait::Named { id, .. } => {
                let barrier = &cta.named[*id as usize];
                format!(
                    "barrier {id}: {} of {} threads have arrived",
                    barrier.arrived, barrier.expected
                )
            }
            Wait::Cluster { .. } => format!(
                "the cluster's barrier: {} threads have arrived",
                cluster.barrier.arrived
            ),
            Wait::Converge(members) => format!(
                "the other threads of its warp (lanes {:#x}) to execute the same instruction",
                members & warp.live & !split.mask
            ),
            Wait::Warp(members) => format!(
                "the other threads of its warp (lanes {:#x}) to execute a `bar.warp.sync` of the mask \
                 {members:#x}",
                members & warp.live & !split.mask
            ),
            Wait::Bulk { .. } | Wait::Async { .. } => "its copies".to_owned(),
            Wait::Warpgroup { .. } => {
                "the other warps of its warpgroup to issue the same multiplications".to_owned()
            }
            Wait::Nothing => "nothing".to_owned(),
        }
    }

    fn number_in_cluster(&self, cta: &Cta, cluster: &Cluster, warp: &Warp, split: &Split) -> u32 {
        let rank = cluster.ctas.iter().position(|it| std::ptr::eq(it, cta));
        rank.unwrap_or(0) as u32 * self.threads_per_cta()
            + warp.number * 32
            + split.mask.trailing_zeros()
    }
}
