//! Misuse on purpose: what the hardware and the driver do is recorded.
//!
//! Each case runs in a child process, which it may take with it, and is followed by a launch that
//! breaks no rule.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::images::Images;
use crate::child::{self, ChildJob};
use crate::driver::isolate::ChildFailure;
use crate::driver::{Arguments, DataType, Driver, Launch, Swizzle, TensorMapBuilder};

/// A kernel that has not ended by then never will.
const LIMIT: Duration = Duration::from_secs(5);

/// Global memory that a kernel is given, in bytes.
const MEMORY: usize = 64 << 10;

/// A rule, and how it is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misuse {
    /// The kernel, or what is wrong about the launch of one.
    name: &'static str,
    /// What comes of it: [`RAN`], [`HUNG`], [`HUNG_OR_RAN`], or the name of the driver's error.
    expected: &'static str,
    /// How.
    how: How,
}

/// The kernel ends, whatever it did.
const RAN: &str = "ran";

/// The kernel never ends.
const HUNG: &str = "hung";

/// It ends if no byte comes behind those that are expected at the time when the barrier is looked at.
const HUNG_OR_RAN: &str = "hung or ran";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// The kernel of this name breaks the rule.
    Kernel {
        takes_map: bool,
        threads: u32,
        cluster: u32,
    },
    /// The launch does: blocks, threads, dynamic shared memory, blocks of a cluster.
    Launch {
        blocks: u32,
        threads: u32,
        shared: u32,
        cluster: u32,
    },
    /// The tensor map of the kernel `tile_of_two_lines` has a swizzle that only newer GPUs have.
    Swizzle(Swizzle),
    /// The kernel gets an argument less than it takes.
    ArgumentMissing,
    /// The image has no kernel of the name.
    NoKernel,
    /// The image is PTX of a version that no driver knows.
    FutureIsa,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The case.
    pub name: String,
    /// What was to come of it: `ran`, `hung`, `hung or ran`, or the name of the driver's error.
    pub expected: String,
    /// The driver's error, `hung`, or what the kernel wrote.
    pub observed: String,
    /// Whether a launch that breaks no rule succeeded afterwards.
    pub recovered: bool,
}

const fn kernel(name: &'static str, expected: &'static str) -> Misuse {
    Misuse {
        name,
        expected,
        how: How::Kernel {
            takes_map: false,
            threads: 1,
            cluster: 1,
        },
    }
}

const fn tensor(name: &'static str, expected: &'static str) -> Misuse {
    Misuse {
        name,
        expected,
        how: How::Kernel {
            takes_map: true,
            threads: 1,
            cluster: 1,
        },
    }
}

const fn launch(
    name: &'static str,
    expected: &'static str,
    blocks: u32,
    threads: u32,
    shared: u32,
    cluster: u32,
) -> Misuse {
    Misuse {
        name,
        expected,
        how: How::Launch {
            blocks,
            threads,
            shared,
            cluster,
        },
    }
}

const fn swizzled(name: &'static str, expected: &'static str, swizzle: Swizzle) -> Misuse {
    Misuse {
        name,
        expected,
        how: How::Swizzle(swizzle),
    }
}

impl Outcome {
    /// Whether it was as expected, and left the GPU as it was.
    pub fn holds(&self) -> bool {
        let name = self.observed.split([' ', ':']).next().unwrap_or_default();
        self.recovered && self.expected.split(" or ").any(|expected| expected == name)
    }
}

impl Misuse {
    /// All cases.
    pub const ALL: [Self; 41] = [
        kernel(
            "bulk_copy_from_misaligned_global",
            "CUDA_ERROR_MISALIGNED_ADDRESS",
        ),
        kernel(
            "bulk_copy_to_misaligned_shared",
            "CUDA_ERROR_MISALIGNED_ADDRESS",
        ),
        kernel("bulk_copy_of_8_bytes", HUNG),
        kernel("bulk_copy_of_0_bytes", RAN),
        kernel("bulk_copy_of_24_bytes", HUNG),
        kernel("bulk_copy_from_no_allocation", "CUDA_ERROR_ILLEGAL_ADDRESS"),
        kernel("bulk_copy_behind_shared_memory", HUNG),
        kernel("more_bytes_expected_than_copied", HUNG),
        kernel("bytes_not_expected", RAN),
        kernel("arrival_missing", HUNG),
        kernel("one_arrival_too_many", "CUDA_ERROR_LAUNCH_FAILED"),
        kernel("barrier_of_0_arrivals", RAN),
        kernel("barrier_of_too_many_arrivals", RAN),
        kernel("barrier_misaligned", "CUDA_ERROR_MISALIGNED_ADDRESS"),
        kernel("barrier_in_global_memory", "CUDA_ERROR_ILLEGAL_INSTRUCTION"),
        kernel("barrier_not_initialised", "CUDA_ERROR_LAUNCH_FAILED"),
        kernel("parity_of_two_phases_ago", HUNG),
        kernel("first_wait_for_empty_with_parity_0", HUNG),
        kernel(
            "bytes_beyond_the_greatest_count",
            "CUDA_ERROR_LAUNCH_FAILED",
        ),
        kernel("store_misaligned", "CUDA_ERROR_MISALIGNED_ADDRESS"),
        kernel("load_from_address_0", "CUDA_ERROR_ILLEGAL_ADDRESS"),
        tensor("tensor_map_misaligned", "CUDA_ERROR_MISALIGNED_ADDRESS"),
        tensor("tensor_map_of_garbage", "CUDA_ERROR_ILLEGAL_INSTRUCTION"),
        tensor("tensor_tile_misaligned", "CUDA_ERROR_MISALIGNED_ADDRESS"),
        tensor("tensor_corner_misaligned", "CUDA_ERROR_ILLEGAL_INSTRUCTION"),
        tensor(
            "tensor_store_before_the_tensor",
            "CUDA_ERROR_ILLEGAL_INSTRUCTION",
        ),
        tensor("tensor_tile_expected_without_its_fill", HUNG_OR_RAN),
        swizzled(
            "swizzle_of_32_byte_atoms",
            "CUDA_ERROR_INVALID_VALUE",
            Swizzle::Bytes128Atom32,
        ),
        swizzled(
            "swizzle_of_32_byte_atoms_with_flipped_halves",
            "CUDA_ERROR_INVALID_VALUE",
            Swizzle::Bytes128Atom32Flip8,
        ),
        swizzled(
            "swizzle_of_64_byte_atoms",
            "CUDA_ERROR_INVALID_VALUE",
            Swizzle::Bytes128Atom64,
        ),
        Misuse {
            name: "rank_outside_the_cluster",
            expected: "CUDA_ERROR_LAUNCH_FAILED",
            how: How::Kernel {
                takes_map: false,
                threads: 1,
                cluster: 2,
            },
        },
        Misuse {
            name: "arrival_at_a_block_that_ended",
            expected: RAN,
            how: How::Kernel {
                takes_map: false,
                threads: 1,
                cluster: 2,
            },
        },
        Misuse {
            name: "registers_that_nobody_returned",
            expected: HUNG,
            how: How::Kernel {
                takes_map: false,
                threads: 128,
                cluster: 1,
            },
        },
        Misuse {
            name: "row_of_a_matrix_misaligned",
            expected: "CUDA_ERROR_MISALIGNED_ADDRESS",
            how: How::Kernel {
                takes_map: false,
                threads: 32,
                cluster: 1,
            },
        },
        launch(
            "too_much_shared_memory",
            "CUDA_ERROR_INVALID_VALUE",
            1,
            1,
            300 << 10,
            1,
        ),
        launch(
            "too_many_threads",
            "CUDA_ERROR_INVALID_VALUE",
            1,
            2048,
            0,
            1,
        ),
        launch(
            "grid_that_is_no_multiple_of_the_cluster",
            "CUDA_ERROR_INVALID_CLUSTER_SIZE",
            4,
            1,
            0,
            3,
        ),
        launch(
            "cluster_of_32",
            "CUDA_ERROR_INVALID_CLUSTER_SIZE",
            32,
            1,
            0,
            32,
        ),
        Misuse {
            name: "argument_missing",
            expected: "CUDA_ERROR_INVALID_VALUE",
            how: How::ArgumentMissing,
        },
        Misuse {
            name: "no_such_kernel",
            expected: "CUDA_ERROR_NOT_FOUND",
            how: How::NoKernel,
        },
        Misuse {
            name: "image_of_a_future_isa",
            expected: "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
            how: How::FutureIsa,
        },
    ];

    /// Breaks the rule in a child process, then runs a launch that breaks none in another.
    pub fn observe(&self, folder: &Path) -> Outcome {
        let run = |misuse: Self| {
            let job = ChildJob::Misuse(Job {
                folder: folder.to_path_buf(),
                name: misuse.name.to_owned(),
            });
            child::run::<String>(&job, LIMIT)
        };
        let observed = match run(*self) {
            Ok(wrote) => format!("ran: {wrote}"),
            Err(ChildFailure::Hung { .. }) => {
                format!("hung: did not end within {} s", LIMIT.as_secs())
            }
            Err(ChildFailure::Driver { error, .. }) => match &error.detail {
                Some(detail) => format!("{} of {}: {detail}", error.name, error.call),
                None => format!("{} of {}", error.name, error.call),
            },
            Err(failure) => failure.headline(),
        };
        let recovered = run(NOTHING_WRONG).is_ok();
        Outcome {
            name: self.name.to_owned(),
            expected: self.expected.to_owned(),
            observed,
            recovered,
        }
    }
}

const NOTHING_WRONG: Misuse = kernel("nothing_wrong", RAN);

/// One case, for a child process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    folder: PathBuf,
    name: String,
}

impl Job {
    /// Breaks the rule; gives the first words of memory if nothing comes of it.
    ///
    /// # Errors
    ///
    /// Mostly the driver's.
    pub fn run(&self) -> Result<String> {
        let all = Misuse::ALL.into_iter().chain([NOTHING_WRONG]);
        let misuse = all.into_iter().find(|misuse| misuse.name == self.name);
        let misuse = misuse.with_context(|| format!("there is no misuse {}", self.name))?;
        let driver = Driver::open()?;
        let image = match misuse.how {
            How::FutureIsa => b".version 99.0\n.target sm_90\n.address_size 64\n".to_vec(),
            _ => {
                let path = Images::misuse(&self.folder);
                std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?
            }
        };
        let module = driver.load(&image)?;
        let name = match misuse.how {
            How::Kernel { .. } => misuse.name,
            How::Swizzle(_) => "tile_of_two_lines",
            How::NoKernel => "no_such_kernel",
            _ => NOTHING_WRONG.name,
        };
        let function = module.function(name)?;
        let memory = driver.upload(&Vec::from_iter(
            (0..MEMORY as u64 / 8).map(|i| i * 0x0101_0101),
        ))?;
        let (shape, takes_map) = match misuse.how {
            How::Kernel {
                takes_map,
                threads,
                cluster,
            } => {
                let shape = Launch::new(cluster, threads);
                (
                    if cluster > 1 {
                        shape.cluster([cluster, 1, 1])
                    } else {
                        shape
                    },
                    takes_map,
                )
            }
            How::Launch {
                blocks,
                threads,
                shared,
                cluster,
            } => {
                let shape = Launch::new(blocks, threads).shared(shared);
                (
                    if cluster > 1 {
                        shape.cluster([cluster, 1, 1])
                    } else {
                        shape
                    },
                    false,
                )
            }
            How::Swizzle(_) => (Launch::new(1, 1), true),
            _ => (Launch::new(1, 1), false),
        };
        let mut arguments = Arguments::new();
        if misuse.how != How::ArgumentMissing {
            arguments = arguments.pointer(&memory);
        }
        if takes_map {
            let map = |dims: &[u64], tile: &[u32]| {
                TensorMapBuilder::tiled(DataType::U32, memory.as_device_ptr(), dims, tile)
            };
            let builder = match misuse.how {
                How::Swizzle(swizzle) => map(&[32, MEMORY as u64 / 128], &[32, 8]).swizzle(swizzle),
                _ => map(&[MEMORY as u64 / 4], &[32]),
            };
            arguments = arguments.tensor_map(builder.encode(&driver)?);
        }
        // SAFETY: what it does wrong ends this process's context alone.
        unsafe { function.launch(&shape, &arguments)? };
        driver.synchronize()?;
        let wrote = driver.download(&memory)?;
        Ok(format!("{:#x} {:#x}", wrote[0], wrote[1]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_compared_by_its_name() {
        let holds = |expected: &str, observed: &str, recovered| {
            let outcome = Outcome {
                name: String::new(),
                expected: expected.to_owned(),
                observed: observed.to_owned(),
                recovered,
            };
            outcome.holds()
        };
        assert!(holds(RAN, "ran: 0x0 0x1", true));
        assert!(holds(HUNG_OR_RAN, "ran: 0x0 0x1", true));
        assert!(holds(HUNG, "hung: did not end within 5 s", true));
        let fault = "CUDA_ERROR_ILLEGAL_ADDRESS of cuStreamSynchronize";
        assert!(holds("CUDA_ERROR_ILLEGAL_ADDRESS", fault, true));
        assert!(!holds("CUDA_ERROR_ILLEGAL_ADDRESS", fault, false));
        assert!(!holds(RAN, fault, true));
    }
}
