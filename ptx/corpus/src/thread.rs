//! What a kernel of the corpus works on.

/// What every kernel gets: its own word of the data, and a place for side effects that keep the
/// optimiser from turning branches into selections.
pub struct Thread {
    word: *mut u32,
    notes: *mut u32,
}

/// Threads in a block, at most.
const THREADS: usize = 1024;

impl Thread {
    /// The executing thread's part of the data.
    #[inline(always)]
    pub unsafe fn new(data: *mut u32, notes: *mut u32) -> Self {
        let thread = core::arch::nvptx::_thread_idx_x() as usize;
        Self {
            word: data.add(thread),
            notes: notes.add(thread),
        }
    }

    /// The thread's word.
    #[inline(always)]
    pub unsafe fn get(&self) -> u32 {
        *self.word
    }

    /// Writes the thread's word.
    #[inline(always)]
    pub unsafe fn set(&self, x: u32) {
        *self.word = x;
    }

    /// Writes a word beside the result.
    #[inline(always)]
    pub unsafe fn note(&self, row: u32, x: u32) {
        *self.notes.add(row as usize * THREADS) = x;
    }
}
