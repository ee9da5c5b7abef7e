//! `ld` and `st` with an order, and `isspacep`.

use super::form::{
    AskedSpace, GlobalSpace, LdSem, Mmio, Move, Moved, NoScope, Scalar, Scope, Space, StSem,
    Volatile, Weak, Word, bits,
};
use super::registers::{self, Registers};
use crate::tags::*;
use crate::target::{Has, Target, ptx_82};

#[inline(always)]
unsafe fn load<S: Word, C: Word, P: Space, T: Moved<P>>(addr: *const T) -> T {
    bits(unsafe {
        <T::Registers as Registers<P::Address>>::load::<Move<S, C, P, T>>(P::address(addr))
    })
}

#[inline(always)]
unsafe fn store<S: Word, C: Word, P: Space, T: Moved<P>>(addr: *mut T, value: T) {
    let value: T::Registers = bits(value);
    unsafe { value.store::<Move<S, C, P, T>>(P::address(addr)) }
}

/// Loads a value with an order among other accesses.
///
/// An array is a vector, whose elements are loaded one by one in any order; `u128` is loaded as a whole.
///
/// ```text
/// ld.sem.scope{.space}{.vec}.type value, [addr];
/// ```
///
/// PTX ISA: [`ld`](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#data-movement-and-conversion-instructions-ld)
///
/// # Safety
///
/// - `addr` points to a value in memory of `space`, aligned to its size as a whole.
/// - Stores to it that may be concurrent are not weak, and their scopes and this one include each other's threads.
#[inline(always)]
pub unsafe fn ld_sem_scope<S: LdSem, C: Scope, P: Space, T: Moved<P>>(
    _sem: S,
    _scope: C,
    _space: P,
    addr: *const T,
) -> T {
    unsafe { load::<S, C, P, T>(addr) }
}

/// Loads a value that nobody writes at the same time.
///
/// ```text
/// ld.weak{.space}{.vec}.type value, [addr];
/// ```
///
/// PTX ISA: [`ld`](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#data-movement-and-conversion-instructions-ld)
///
/// # Safety
///
/// - `addr` points to a value in memory of `space`, aligned to its size as a whole.
/// - No store to it is concurrent.
#[inline(always)]
pub unsafe fn ld_weak<P: Space, T: Moved<P>>(_space: P, addr: *const T) -> T {
    unsafe { load::<Weak, NoScope, P, T>(addr) }
}

/// Loads a value anew each time, as if relaxed with the scope of the system.
///
/// ```text
/// ld.volatile{.space}{.vec}.type value, [addr];
/// ```
///
/// PTX ISA: [`ld`](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#data-movement-and-conversion-instructions-ld)
///
/// # Safety
///
/// - `addr` points to a value in memory of `space`, aligned to its size as a whole.
/// - Stores to it that may be concurrent are not weak.
#[inline(always)]
pub unsafe fn ld_volatile<P: Space, T: Moved<P>>(_space: P, addr: *const T) -> T {
    unsafe { load::<Volatile, NoScope, P, T>(addr) }
}

/// Loads from a register of a device that is mapped into global memory: exactly once, and in order with
/// the thread's other such accesses to the same address.
///
/// ```text
/// ld.mmio.relaxed.sys{.global}.type value, [addr];
///     PTX ISA 8.2, sm_70 and later
/// ```
///
/// PTX ISA: [`ld`](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#data-movement-and-conversion-instructions-ld)
///
/// # Safety
///
/// - `addr` points to a value in global memory, aligned to its size, and the device lets it be read.
#[inline(always)]
pub unsafe fn ld_mmio<P: GlobalSpace, T: Moved<P> + Scalar>(
    _sem: sem_relaxed,
    _scope: scope_sys,
    _space: P,
    addr: *const T,
) -> T
where
    for<'a> Target: Has<ptx_82>,
{
    unsafe { load::<Mmio, scope_sys, P, T>(addr) }
}

/// Stores a value with an order among other accesses.
///
/// An array is a vector, whose elements are stored one by one in any order; `u128` is stored as a whole.
///
/// ```text
/// st.sem.scope{.space}{.vec}.type [addr], value;
/// ```
///
/// PTX ISA: [`st`](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#data-movement-and-conversion-instructions-st)
///
/// # Safety
///
/// - `addr` points to memory of `space` with room for the value, aligned to its size as a whole.
/// - Accesses to it that may be concurrent are not weak, and their scopes and this one include each other's threads.
#[inline(always)]
pub unsafe fn st_sem_scope<S: StSem, C: Scope, P: Space, T: Moved<P>>(
    _sem: S,
    _scope: C,
    _space: P,
    addr: *mut T,
    value: T,
) {
    unsafe { store::<S, C, P, T>(addr, value) }
}

/// Stores a value that nobody accesses at the same time.
///
/// ```text
/// st.weak{.space}{.vec}.type [addr], value;
/// ```
///
/// PTX ISA: [`st`](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#data-movement-and-conversion-instructions-st)
///
/// # Safety
///
/// - `addr` points to memory of `space` with room for the value, aligned to its size as a whole.
/// - No other access to it is concurrent.
#[inline(always)]
pub unsafe fn st_weak<P: Space, T: Moved<P>>(_space: P, addr: *mut T, value: T) {
    unsafe { store::<Weak, NoScope, P, T>(addr, value) }
}

/// Stores a value each time, as if relaxed with the scope of the system.
///
/// ```text
/// st.volatile{.space}{.vec}.type [addr], value;
/// ```
///
/// PTX ISA: [`st`](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#data-movement-and-conversion-instructions-st)
///
/// # Safety
///
/// - `addr` points to memory of `space` with room for the value, aligned to its size as a whole.
/// - Accesses to it that may be concurrent are not weak.
#[inline(always)]
pub unsafe fn st_volatile<P: Space, T: Moved<P>>(_space: P, addr: *mut T, value: T) {
    unsafe { store::<Volatile, NoScope, P, T>(addr, value) }
}

/// Stores to a register of a device that is mapped into global memory: exactly once, and in order with
/// the thread's other such accesses to the same address.
///
/// ```text
/// st.mmio.relaxed.sys{.global}.type [addr], value;
///     PTX ISA 8.2, sm_70 and later
/// ```
///
/// PTX ISA: [`st`](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#data-movement-and-conversion-instructions-st)
///
/// # Safety
///
/// - `addr` points to a value in global memory, aligned to its size, and the device lets it be written.
#[inline(always)]
pub unsafe fn st_mmio<P: GlobalSpace, T: Moved<P> + Scalar>(
    _sem: sem_relaxed,
    _scope: scope_sys,
    _space: P,
    addr: *mut T,
    value: T,
) where
    for<'a> Target: Has<ptx_82>,
{
    unsafe { store::<Mmio, scope_sys, P, T>(addr, value) }
}

/// Whether a generic address is in a state space.
///
/// Shared memory of this CTA is also shared memory of the cluster.
///
/// ```text
/// isspacep.space inside, addr;
/// ```
///
/// PTX ISA: [`isspacep`](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#data-movement-and-conversion-instructions-isspacep)
#[inline(always)]
#[must_use]
pub fn isspacep<P: AskedSpace, T>(_space: P, addr: *const T) -> bool {
    registers::is_in::<P>(addr.addr() as u64)
}
