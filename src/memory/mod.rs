//! Memory that threads share: atomic operations, loads and stores with an order, and which space a
//! pointer is in.
//!
//! | what | |
//! |---|---|
//! | [`atom_add`], [`atom_cas`], … | change a value and return what it was |
//! | [`red_add`], … | change a value, and return nothing to wait for |
//! | [`ld_sem_scope`], [`st_sem_scope`] | load and store, relaxed or as one side of a synchronisation |
//! | [`ld_volatile`], [`st_volatile`], [`ld_mmio`], [`st_mmio`], [`ld_weak`], [`st_weak`] | the other kinds |
//! | [`isspacep`] | asks which space a generic pointer is in |
//!
//! Tags come first. The *semantics* say what the operation orders: `sem_relaxed` nothing, `sem_release`
//! all earlier accesses of the thread before it, `sem_acquire` all later ones after it, and `sem_acq_rel`
//! both. The *scope* says among which threads; the smaller, the cheaper. The *space* says where the
//! pointer, always a generic one, points to, and with `space_generic` that the hardware finds out.
//! Types follow from the pointer. An array is a vector: one instruction, but each element is
//! an access of its own.
//!
//! ```
//! use cuda_ptx::*;
//!
//! kernel! {
//!     /// Sums in steps: each CTA of 256 threads adds its own sum to the total; the last one writes it out.
//!     #[launch_bounds(256)]
//!     pub fn grand_total(input: *const u32, total: *mut u32, arrived: *mut u32, output: *mut u32) { unsafe {
//!         shared! { static PART: u32; }
//!         let part = PART.as_mut_ptr();
//!         let (thread, cta) = (get_sreg_tid_x(), get_sreg_ctaid_x());
//!         if thread == 0 {
//!             *part = 0;
//!         }
//!         barrier_cta_sync_aligned(0);
//!         let value = *input.add((cta * 256 + thread) as usize);
//!         red_add(sem_relaxed, scope_cta, space_shared, part, value);
//!         barrier_cta_sync_aligned(0);
//!         if thread == 0 {
//!             red_add(sem_relaxed, scope_gpu, space_global, total, *part);
//!             // Publishes this CTA's sum, and sees those of the CTAs before it.
//!             let before = atom_add(sem_acq_rel, scope_gpu, space_global, arrived, 1);
//!             if before + 1 == get_sreg_nctaid_x() {
//!                 *output = ld_sem_scope(sem_relaxed, scope_gpu, space_global, total);
//!             }
//!         }
//!     } }
//! }
//! ```
//!
//! # When to use it
//!
//! `core::sync::atomic` has integers of up to 64 bits, and all of its operations have the scope of the
//! system: right, but slower than need be among the threads of a CTA or of a GPU. Use the functions here
//! for a smaller scope, floating-point numbers, vectors, 128 bits, the shared memory of another CTA, or a
//! reduction. Both can be used on one value. For the phases of a pipeline an
//! [`mbarrier`](mod@crate::mbarrier) is better than a flag in memory.
//!
//! A plain access, as of `*pointer`, is weak: nothing that another thread writes at the same time may be
//! read so. [`ld_weak`] and [`st_weak`] are for shared memory of another CTA, where they name the space.
//!
//! # What goes wrong in another CTA's shared memory
//!
//! For `space_cluster`, and where that is what `space_generic` comes to, ptxas 13.5 makes a load, an operation
//! and a store of `and`, `or`, `xor`, `min` and `max` of 64 bits, and of `add` of `f16x2` and `bf16x2`. In the
//! shared memory of another CTA they then lose what other threads change in between, and the operation of the packed
//! halves is the addition of their bits as integers: from C++ as from Rust, and seen on an H200. [`atom_cas`]
//! and `add` of other types are right there.
//!
//! # What the types rule out
//!
//! Operations that a type does not have:
//!
//! ```compile_fail,E0277
//! # use cuda_ptx::*;
//! # unsafe fn f(x: *mut f32) { unsafe {
//! atom_inc(sem_relaxed, scope_gpu, space_global, x, 1.0);
//! # } }
//! ```
//!
//! Semantics that an instruction does not have:
//!
//! ```compile_fail,E0277
//! # use cuda_ptx::*;
//! # unsafe fn f(x: *mut f32) { unsafe {
//! st_sem_scope(sem_acquire, scope_gpu, space_global, x, 1.0);
//! # } }
//! ```
//!
//! Vectors outside of global memory:
//!
//! ```compile_fail,E0277
//! # use cuda_ptx::*;
//! # unsafe fn f(x: *mut [f32; 2]) { unsafe {
//! red_add(sem_relaxed, scope_gpu, space_shared, x, [1.0, 2.0]);
//! # } }
//! ```

mod atom;
mod form;
mod load_store;
mod registers;

pub use atom::*;
pub use form::{
    AskedSpace, AtomSem, Atomic, CacheHint, GlobalSpace, LdSem, Moved, RedSem, Scalar, Scope,
    Space, StSem,
};
pub use load_store::*;
