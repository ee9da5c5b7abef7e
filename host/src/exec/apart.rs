//! Clusters on several cores, where none sees what another does.
//!
//! Each cluster runs by itself, under a schedule of its own, in a copy of global memory that its worker
//! has. If it then turns out that no word that one wrote was touched by another worker's, the copies
//! are put together; otherwise all that is thrown away, and the grid runs on one core. So the result
//! does not depend on the number of cores.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::machine::{Options, Prepared, Stats};
use super::memory::Memory;
use super::program::Program;
use super::schedule::Chooser;

/// Runs a grid whose clusters are independent; `None` if they are not, or if something is wrong.
pub fn run(
    program: &Program,
    launch: &Prepared,
    memory: &mut Memory,
    options: &Options,
) -> Option<Stats> {
    let total = launch.clusters();
    if total < 2 {
        return None;
    }
    let workers = (total as usize).min(options.workers);
    let failed = AtomicBool::new(false);
    let worker = |number: usize| {
        let (mut memory, mut stats) = (memory.clone(), Stats::default());
        for cluster in (number as u32..total).step_by(workers) {
            let mut chooser = Chooser::of_part(options.seed, cluster);
            let mut machine = program.machine(launch, &mut memory, options, &mut chooser);
            if failed.load(Ordering::Relaxed) || !machine.run_alone(cluster) {
                failed.store(true, Ordering::Relaxed);
                return None;
            }
            stats.add(machine.stats);
        }
        Some((memory, stats))
    };
    let parts: Vec<_> = thread::scope(|scope| {
        let worker = &worker;
        let threads: Vec<_> = (0..workers)
            .map(|number| scope.spawn(move || worker(number)))
            .collect();
        let joined = threads.into_iter().map(|thread| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        joined.collect::<Option<_>>()
    })?;
    let (memories, stats): (Vec<Memory>, Vec<Stats>) = parts.into_iter().unzip();
    memory.unite(&memories).then(|| {
        let mut total = Stats::default();
        stats.into_iter().for_each(|it| total.add(it));
        total
    })
}
