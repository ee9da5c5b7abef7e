//! How forms are timed that `cuda::ptx` lacks: by what they take and return, and a few by name.

use super::setup::{Actor, Chain, Link, NO_MULTICAST, Setup, by_name, tagged};
use crate::spec::{Space, Type, Variant};

/// Threads of a block with multiplications of a warpgroup, which hold up to 128 registers of D.
const WARPGROUPS: u32 = 256;
/// Bytes of the two matrices in shared memory: 64 and 256 rows of 128 bytes.
const MATRICES: u32 = (64 + 256) * 128;
/// Multiplications in the body of the loop, and of those with so many registers that they take long to compile.
const MULTIPLICATIONS: u32 = 16;
const LARGE_MULTIPLICATIONS: u32 = 4;
/// Steps in the body of the loop of what there are hundreds of forms of.
const STEPS: u32 = 32;
const FEW_STEPS: u32 = 8;

/// How to time a variant, or why that is not done.
pub fn setup_of(variant: &Variant) -> Result<Setup, &'static str> {
    let name = variant.function.as_str();
    let starts = |prefix: &str| name.starts_with(prefix);
    let order = Setup::order(Actor::Warp);
    Ok(match name {
        _ if starts("multimem") => return Err(NO_MULTICAST),
        _ if starts("enable_smem_spilling") => {
            return Err("is a directive to the assembler, and no instruction");
        }
        _ if starts("wgmma_mma_async") => multiply_by_warpgroup(variant),
        _ if starts("wgmma_fence") || starts("wgmma_commit") || starts("wgmma_wait") => Setup {
            threads: 128,
            max_threads: WARPGROUPS,
            ..order
        },
        // Other factors in each step: the assembler would convert them to halves, and multiply, only once.
        _ if starts("mma_") && has_small_floats(variant) => Setup {
            chain: Chain::Accumulate,
            step: "$LOAD $CALL;",
            with: "loads of A and B from shared memory",
            unroll: match starts("mma_sp") {
                true => LARGE_MULTIPLICATIONS,
                false => MULTIPLICATIONS,
            },
            flops: flops(variant),
            ..order
        },
        _ if starts("mma_") && adds_to_its_type(variant) => Setup {
            chain: Chain::Accumulate,
            unroll: MULTIPLICATIONS,
            flops: flops(variant),
            ..order
        },
        // D is of another type than C: the next product waits for it by an element of A.
        _ if starts("mma_") => Setup {
            step: "a[0] |= x & zero; x = opaque(fold($CALL));",
            unroll: MULTIPLICATIONS,
            flops: flops(variant),
            ..Setup::linked(Link::Register, Actor::Warp)
        },
        _ if ["barrier_cluster", "cp_async_bulk", "cp_reduce"]
            .iter()
            .any(|start| starts(start)) =>
        {
            return by_name(variant);
        }
        _ if starts("barrier_cta") => order,
        _ if starts("cp_async_ca") || starts("cp_async_cg") => copy(variant),
        _ if starts("cvt_") && packs_into_half_a_register(variant) => Setup {
            step: "x = twice($CALL);",
            with: "a permutation that makes 32 bits of 16",
            unroll: STEPS,
            ..Setup::linked(Link::Register, Actor::Warp)
        },
        _ if starts("applypriority") || starts("discard") || starts("prefetch") => Setup {
            places: true,
            ..order
        },
        _ if tagged(variant, "space_cluster") => remote(variant),
        _ => by_signature(variant),
    })
}

/// In the shared memory of the other CTA of a cluster.
fn remote(variant: &Variant) -> Setup {
    let setup = by_signature(variant).in_cluster();
    match setup.chain {
        Chain::Link(Link::Shared) => Setup {
            step: "cursor = advance_remote(cursor, x & zero); x = opaque(fold($CALL));",
            ..setup
        },
        _ => setup,
    }
}

/// Whether a conversion is an instruction that writes 16 of 32 bits. To fill in the others, the assembler masks the
/// register, or moves it too, by what is around the chain.
fn packs_into_half_a_register(variant: &Variant) -> bool {
    let result = variant.result.as_ref().map(|result| &result.ty);
    let is_half = matches!(result, Some(Type::Scalar(of)) if of.bits() == 16);
    let name = &variant.function;
    is_half && (name.contains("_relu") || name.contains("_satfinite"))
}

/// Whether the factors of a product are floats of 8 bits, which tensor cores of this architecture take by `wgmma` only.
fn has_small_floats(variant: &Variant) -> bool {
    let mut parts = variant.opcode().split('.');
    parts.any(|part| matches!(part, "e4m3" | "e5m2"))
}

/// Whether the result of a product can be the next one's addend.
fn adds_to_its_type(variant: &Variant) -> bool {
    let addend = variant.args.iter().find(|arg| arg.name == "c");
    addend.map(|arg| &arg.ty) == variant.result.as_ref().map(|result| &result.ty)
}

/// What has a result waits for the one before, by the first operand that can carry it.
fn by_signature(variant: &Variant) -> Setup {
    let links = variant.args.iter().filter_map(|arg| match arg.ty {
        Type::Pointer {
            space: Space::Shared,
            ..
        } => Some(Link::Shared),
        Type::Pointer {
            space: Space::Global,
            ..
        } => Some(Link::Global),
        Type::Pointer { .. } if variant.result.is_some() => Some(Link::Global),
        Type::Scalar(_) => Some(Link::Register),
        _ => None,
    });
    let returns = variant.result.is_some();
    match links.clone().min_by_key(|link| *link == Link::Register) {
        // Hundreds of cycles each: few are enough, and take less time to compile.
        Some(Link::Global) if returns => Setup {
            unroll: FEW_STEPS,
            ..Setup::linked(Link::Global, Actor::Warp)
        },
        Some(link) if returns => Setup {
            unroll: STEPS,
            ..Setup::linked(link, Actor::Warp)
        },
        _ => Setup {
            unroll: STEPS,
            ..Setup::order(Actor::Warp)
        },
    }
}

fn copy(variant: &Variant) -> Setup {
    let sizes = variant.args.iter().filter_map(|arg| match arg.ty {
        Type::Immediate { low, .. } => Some(low as u32),
        _ => None,
    });
    Setup {
        chain: Chain::Completion,
        step: "$CALL; async_drain();",
        with: "cp.async.wait_all",
        unroll: 4,
        bytes: sizes.max().unwrap_or(4),
        places: true,
        ..Setup::order(Actor::Warp)
    }
}

fn multiply_by_warpgroup(variant: &Variant) -> Setup {
    let [_, n, _] = shape(variant);
    let setup = Setup {
        unroll: match n {
            ..=64 => MULTIPLICATIONS,
            _ => LARGE_MULTIPLICATIONS,
        },
        threads: 128,
        max_threads: WARPGROUPS,
        shared: MATRICES,
        flops: flops(variant),
        first: "wgmma_fence();",
        last: "wait_for_groups();",
        ..Setup::order(Actor::Warp)
    };
    // The immediate operands cost nothing, so the forms that have them show what one costs alone.
    let alone = !["wgmma_mma_async", "wgmma_mma_async_sp"].contains(&variant.function.as_str());
    match alone {
        true => Setup {
            chain: Chain::Completion,
            step: "$CALL; wgmma_commit_group(); wait_for_groups(); wgmma_fence();",
            with: "wgmma.commit_group, wgmma.wait_group of all, wgmma.fence",
            ..setup
        },
        false => Setup {
            chain: Chain::Accumulate,
            step: "$CALL;",
            after: "wgmma_commit_group(); keep_one_group();",
            with: "wgmma.commit_group and wgmma.wait_group of all but one, once in the loop",
            ..setup
        },
    }
}

/// Multiplications and additions of an instruction; of a sparse one, with those by the zeros that it leaves out.
fn flops(variant: &Variant) -> u32 {
    2 * shape(variant).iter().product::<u32>()
}

/// M, N and K.
fn shape(variant: &Variant) -> [u32; 3] {
    let number = |part: &str| -> Option<[u32; 3]> {
        let (m, rest) = part.strip_prefix('m')?.split_once('n')?;
        let (n, k) = rest.split_once('k')?;
        Some([m.parse().ok()?, n.parse().ok()?, k.parse().ok()?])
    };
    let mut parts = variant.opcode().split('.');
    parts.find_map(number).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec;

    fn setup(opcode: &str) -> Result<Setup, &'static str> {
        let spec = spec::load().unwrap();
        let mut variants = spec.variants().map(|(.., variant)| variant);
        setup_of(variants.find(|v| v.ptx.starts_with(opcode)).unwrap())
    }

    #[test]
    fn a_multiplication_counts_twice_m_times_n_times_k() {
        let flops = |opcode| setup(opcode).unwrap().flops;
        let f16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16";
        assert_eq!(flops(f16), 2 * 16 * 8 * 16);
        let wide = "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16";
        assert_eq!(flops(wide), 2 * 64 * 256 * 16);
    }

    #[test]
    fn small_floats_are_loaded_anew_in_each_step() {
        let loads = |opcode| setup(opcode).unwrap().step.contains("$LOAD");
        assert!(loads("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2"));
        assert!(!loads("mma.sync.aligned.m16n8k16.row.col.f32.f16"));
    }

    #[test]
    fn the_result_is_handed_on_by_an_address_if_there_is_one() {
        let chain = |opcode| setup(opcode).unwrap().chain;
        assert_eq!(
            chain("createpolicy.range.global"),
            Chain::Link(Link::Global)
        );
        assert_eq!(chain("redux.sync.add.s32"), Chain::Link(Link::Register));
        assert_eq!(chain("membar.gl"), Chain::Order);
    }

    #[test]
    fn every_number_of_columns_is_timed() {
        let spec = spec::load().unwrap();
        let variants = spec.variants().map(|(.., variant)| variant);
        let products = variants.filter(|v| v.ptx.starts_with("wgmma.mma_async"));
        let timed = products.filter(|v| setup_of(v).is_ok());
        assert_eq!(timed.count(), 2088);
    }
}
