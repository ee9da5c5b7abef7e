//! Completion function: between the last arrival of a phase and the end of the waits for it, one
//! thread adds up what all have shown.

use cuda_ptx::barrier::{Barrier, Block, CompletionFunction};
use cuda_ptx::{kernel, shared};

use crate::block;

shared! {
    static BAR: Barrier<Block, BlockSum>;
    static ADDENDS: [u32; 1024];
    static SUM: u32;
}

/// Adds the block's addends to its sum.
struct BlockSum {
    len: u32,
}

impl CompletionFunction for BlockSum {
    #[inline(always)]
    fn complete(&mut self) {
        let addends = ADDENDS.as_mut_ptr().cast::<u32>();
        // SAFETY: the threads wrote the addends before they arrived, and wait now.
        unsafe {
            let mut sum = *SUM.as_mut_ptr();
            for k in 0..self.len as usize {
                sum += *addends.add(k);
            }
            *SUM.as_mut_ptr() = sum;
        }
    }
}

kernel! {
    /// Each block sums `n` elements of `data`, as many at a time as it has threads. Each addend is an
    /// element plus the sum so far, so that a sum that is read too early or late changes all others.
    ///
    /// The guide's function captures the pointer to the sum by reference: a reference to a parameter
    /// of the thread that initialises the barrier, whereas any thread may call the function.
    ///
    /// # Safety
    /// `data` has `n` elements for each block, where `n` is a multiple of the number of threads; `acc`
    /// has one element for each block.
    #[launch_bounds(1024)]
    pub fn psum_barrier(n: u32, data: *const u32, acc: *mut u32) {
        let addends = ADDENDS.as_mut_ptr().cast::<u32>();
        let (rank, size) = (block::thread_rank(), block::size());
        let data = data.add((block::index() * n + rank) as usize);

        if rank == 0 {
            *SUM.as_mut_ptr() = 0;
            Barrier::init_with(BAR.as_mut_ptr(), size, BlockSum { len: size });
        }
        block::sync();
        let bar = Barrier::from_ptr(BAR.as_mut_ptr());

        let mut i = 0;
        while i < n {
            *addends.add(rank as usize) = *data.add(i as usize) + *SUM.as_mut_ptr();
            let token = bar.arrive();
            // Independent work would be done here.
            token.wait();
            // The addends can be overwritten: the only thread that reads others' has done it.
            i += size;
        }

        if rank == 0 {
            *acc.add(block::index() as usize) = *SUM.as_mut_ptr();
        }
    }
}
