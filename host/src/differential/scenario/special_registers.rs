//! Special registers, against what the launch says they must be.

use super::{Case, Scenario, Word};
use crate::differential::form::Form;
use crate::driver::Launch;

/// The static shared memory of the kernels, in bytes.
const STATIC: u64 = 1024;

/// What the system reserves of the shared memory of each block from sm_90 on, at most, in bytes.
const RESERVED: u64 = 1024;

/// The unit in which shared memory is given out, in bytes, is not more than this.
const UNIT: u64 = 1024;

pub fn scenario(form: &Form) -> Option<Scenario> {
    let name = form.function.strip_prefix("get_sreg_")?.to_owned();
    check(&name, &shapes()[0], 0)?;
    // What no thread reads, the compilers would leave out, and the shared memory with it. Threads that
    // share a word store the same, so that they do not race.
    let body = "var i = grid_thread();\n\
        store(at(shared, 8 * (i % 64)), 8, i % 64);\n\
        sync();\n\
        if (load(at(shared, 8 * (i % 64)), 8) == 18446744073709551615) { put(output, 0, 0); }\n\
        @r = ()\n\
        @s = ()\n\
        put(output, 2 * i, r);\n\
        put(output, 2 * i + 1, s);\n";
    let body = body.to_owned();
    Some(
        Scenario::new(body, move |_| {
            shapes().iter().map(|shape| case(&name, shape)).collect()
        })
        .shared(STATIC as usize),
    )
}

fn shapes() -> [Launch; 4] {
    [
        Launch::new(1, 1),
        Launch::new((3, 2, 2), (8, 4, 3)),
        Launch::new((8, 4, 2), (40, 2, 1))
            .cluster([4, 2, 1])
            .shared(2048),
        Launch::new(64, 256).cluster([2, 1, 1]).shared(96),
    ]
}

fn case(name: &str, launch: &Launch) -> Case {
    let total = (volume(launch.grid) * volume(launch.block)) as usize;
    let word = |thread: usize| check(name, launch, thread as u64).expect("a known register");
    let output = (0..total).flat_map(|thread| [word(thread); 2]).collect();
    let case = Case::new(launch.to_string(), *launch, vec![0]).gives(output);
    if name == "gridid" {
        return case.relation(|output| {
            let other = output.iter().find(|id| **id != output[0]);
            other.map_or(Ok(()), |id| {
                Err(format!("expected one grid, found {} and {id}", output[0]))
            })
        });
    }
    let wraps = match name {
        "clock" | "clock_hi" | "globaltimer_lo" | "globaltimer_hi" => Some(u64::from(u32::MAX)),
        "clock64" | "globaltimer" => Some(u64::MAX),
        _ => None,
    };
    match wraps {
        None => case,
        Some(mask) => case.relation(move |output| {
            // A second on any clock is less than half its range or shows in its high part.
            let backwards = output.chunks(2).position(|pair| pair[1].wrapping_sub(pair[0]) & mask > mask / 2);
            match backwards {
                None => Ok(()),
                Some(thread) => Err(format!(
                    "thread {thread}: expected the second reading not to be before the first, found {} after {}",
                    output[2 * thread + 1],
                    output[2 * thread]
                )),
            }
        }),
    }
}

fn volume(size: [u32; 3]) -> u64 {
    size.iter().map(|n| u64::from(*n)).product()
}

/// The position in three dimensions of what has this number.
fn position(number: u64, size: [u32; 3]) -> [u64; 3] {
    let [x, y, _] = size.map(u64::from);
    [number % x, number / x % y, number / (x * y)]
}

fn check(name: &str, launch: &Launch, thread: u64) -> Option<Word> {
    let block_threads = volume(launch.block);
    let in_block = thread % block_threads;
    let block = position(thread / block_threads, launch.grid);
    let cluster = launch.cluster.unwrap_or([1; 3]);
    let in_cluster = [0, 1, 2].map(|d| block[d] % u64::from(cluster[d]));
    let cluster_rank = in_cluster[0]
        + u64::from(cluster[0]) * (in_cluster[1] + u64::from(cluster[1]) * in_cluster[2]);
    let lane = in_block % 32;
    let shared = STATIC + u64::from(launch.shared_bytes);
    let dimension = match name.rsplit_once('_') {
        Some((_, "x")) => Some(0),
        Some((_, "y")) => Some(1),
        Some((_, "z")) => Some(2),
        _ => None,
    };
    if let Some(d) = dimension {
        return Some(Word::Is(match name.rsplit_once('_')?.0 {
            "tid" => position(in_block, launch.block)[d],
            "ntid" => launch.block[d].into(),
            "ctaid" => block[d],
            "nctaid" => launch.grid[d].into(),
            "clusterid" => block[d] / u64::from(cluster[d]),
            "nclusterid" => u64::from(launch.grid[d] / cluster[d]),
            "cluster_ctaid" => in_cluster[d],
            "cluster_nctaid" => cluster[d].into(),
            _ => return None,
        }));
    }
    let mask = |below: u64, own: u64| (1u64 << (lane + below)) - own;
    Some(match name {
        "laneid" => Word::Is(lane),
        "warpid" => Word::Within(0, block_threads.div_ceil(32).max(64) - 1),
        "nwarpid" => Word::Within(block_threads.div_ceil(32), 64),
        "smid" => Word::Within(0, (1 << 16) - 1),
        "nsmid" => Word::Within(1, 1 << 16),
        "gridid" => Word::Free,
        "is_explicit_cluster" => Word::Is(launch.cluster.is_some().into()),
        "cluster_ctarank" => Word::Is(cluster_rank),
        "cluster_nctarank" => Word::Is(volume(cluster)),
        "lanemask_eq" => Word::Is(1 << lane),
        "lanemask_lt" => Word::Is(mask(0, 1)),
        "lanemask_le" => Word::Is(mask(1, 1)),
        "lanemask_ge" => Word::Is(u64::from(u32::MAX) & !mask(0, 1)),
        "lanemask_gt" => Word::Is(u64::from(u32::MAX) & !mask(1, 1)),
        "clock" | "clock_hi" | "clock64" | "globaltimer" | "globaltimer_lo" | "globaltimer_hi" => {
            Word::Free
        }
        "total_smem_size" => Word::Within(shared, shared + UNIT),
        "aggr_smem_size" => Word::Within(shared, shared + RESERVED + UNIT),
        "dynamic_smem_size" => Word::Within(
            launch.shared_bytes.into(),
            u64::from(launch.shared_bytes) + UNIT,
        ),
        "current_graph_exec" => Word::Is(0),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_and_blocks_are_numbered_x_first() {
        let launch = Launch::new((8, 4, 2), (40, 2, 1)).cluster([4, 2, 1]);
        // Block 8 × 3 + 5 is (5, 3, 0): in its cluster (1, 1, 0), whose rank is 5.
        let thread = 80 * 29 + 41;
        let is = |name| check(name, &launch, thread).unwrap();
        assert_eq!(is("tid_x"), Word::Is(1));
        assert_eq!(is("tid_y"), Word::Is(1));
        assert_eq!(is("ctaid_x"), Word::Is(5));
        assert_eq!(is("cluster_ctarank"), Word::Is(5));
        assert_eq!(is("clusterid_y"), Word::Is(1));
        // Thread 41 of the block is lane 9.
        assert_eq!(is("lanemask_lt"), Word::Is(0x1ff));
        assert_eq!(is("lanemask_gt"), Word::Is(0xffff_fc00));
    }
}
