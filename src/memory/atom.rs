//! `atom` and `red`.

use super::form::{AtomSem, Atomic, CacheHint, Operation, RedSem, Scope, Space, bits};
use super::registers::Registers;
use crate::tags::*;

macro_rules! operations {
    ($($op:ident $word:literal $does:literal: $atom:ident $atom_hint:ident $($red:ident $red_hint:ident)?;)*) => {$(
        #[doc = concat!("Replaces a value in memory by ", $does, ", atomically, and returns what it was.")]
        ///
        /// ```text
        #[doc = concat!("atom.sem.scope{.space}.", $word, "{.noftz}{.vec}.type old, [addr], value;")]
        /// ```
        ///
        /// PTX ISA: [`atom`](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#parallel-synchronization-and-communication-instructions-atom)
        ///
        /// # Safety
        ///
        /// - `addr` points to a value in memory of `space`, aligned to its size.
        /// - All accesses to the value that may be concurrent are atomic, with scopes that include each
        ///   other's threads.
        #[inline(always)]
        pub unsafe fn $atom<S: AtomSem, C: Scope, P: Space, T: Atomic<$op, P>>(
            _sem: S,
            _scope: C,
            _space: P,
            addr: *mut T,
            value: T,
        ) -> T {
            let value: T::Registers = bits(value);
            bits(unsafe { value.exchange::<Operation<S, C, P, $op, T>>(P::address(addr)) })
        }

        #[doc = concat!("[`", stringify!($atom), "`] with a policy for the L2 cache.")]
        ///
        /// ```text
        #[doc = concat!("atom.sem.scope{.global}.", $word, "{.noftz}.L2::cache_hint{.vec}.type old, [addr], value, cache_policy;")]
        ///     PTX ISA 7.4, sm_80 and later
        /// ```
        ///
        /// - `cache_policy`: how the L2 cache is to keep the line, as `createpolicy` makes it.
        ///
        /// PTX ISA: [`atom`](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#parallel-synchronization-and-communication-instructions-atom)
        ///
        /// # Safety
        ///
        #[doc = concat!("As of [`", stringify!($atom), "`]; what `addr` points to is in global memory.")]
        #[inline(always)]
        #[allow(non_snake_case)] // as PTX writes it
        pub unsafe fn $atom_hint<S: AtomSem, C: Scope, P: CacheHint, T: Atomic<$op, P>>(
            _sem: S,
            _scope: C,
            _space: P,
            addr: *mut T,
            value: T,
            cache_policy: u64,
        ) -> T {
            let value: T::Registers = bits(value);
            bits(unsafe { value.exchange_hint::<Operation<S, C, P, $op, T>>(P::address(addr), cache_policy) })
        }

        $(
            #[doc = concat!("Replaces a value in memory by ", $does, ", atomically.")]
            ///
            #[doc = concat!("[`", stringify!($atom), "`] without what the value was: the thread waits for nothing.")]
            ///
            /// ```text
            #[doc = concat!("red.sem.scope{.space}.", $word, "{.noftz}{.vec}.type [addr], value;")]
            /// ```
            ///
            /// PTX ISA: [`red`](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#parallel-synchronization-and-communication-instructions-red)
            ///
            /// # Safety
            ///
            /// - `addr` points to a value in memory of `space`, aligned to its size.
            /// - All accesses to the value that may be concurrent are atomic, with scopes that include each
            ///   other's threads.
            #[inline(always)]
            pub unsafe fn $red<S: RedSem, C: Scope, P: Space, T: Atomic<$op, P>>(
                _sem: S,
                _scope: C,
                _space: P,
                addr: *mut T,
                value: T,
            ) {
                let value: T::Registers = bits(value);
                unsafe { value.reduce::<Operation<S, C, P, $op, T>>(P::address(addr)) }
            }

            #[doc = concat!("[`", stringify!($red), "`] with a policy for the L2 cache.")]
            ///
            /// ```text
            #[doc = concat!("red.sem.scope{.global}.", $word, "{.noftz}.L2::cache_hint{.vec}.type [addr], value, cache_policy;")]
            ///     PTX ISA 7.4, sm_80 and later
            /// ```
            ///
            /// - `cache_policy`: how the L2 cache is to keep the line, as `createpolicy` makes it.
            ///
            /// PTX ISA: [`red`](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#parallel-synchronization-and-communication-instructions-red)
            ///
            /// # Safety
            ///
            #[doc = concat!("As of [`", stringify!($red), "`]; what `addr` points to is in global memory.")]
            #[inline(always)]
            #[allow(non_snake_case)] // as PTX writes it
            pub unsafe fn $red_hint<S: RedSem, C: Scope, P: CacheHint, T: Atomic<$op, P>>(
                _sem: S,
                _scope: C,
                _space: P,
                addr: *mut T,
                value: T,
                cache_policy: u64,
            ) {
                let value: T::Registers = bits(value);
                unsafe { value.reduce_hint::<Operation<S, C, P, $op, T>>(P::address(addr), cache_policy) }
            }
        )?
    )*};
}

operations! {
    op_and_op "and" "its bitwise and with `value`": atom_and atom_and_L2_cache_hint red_and red_and_L2_cache_hint;
    op_or_op "or" "its bitwise or with `value`": atom_or atom_or_L2_cache_hint red_or red_or_L2_cache_hint;
    op_xor_op "xor" "its bitwise exclusive or with `value`": atom_xor atom_xor_L2_cache_hint red_xor red_xor_L2_cache_hint;
    op_add "add" "its sum with `value`": atom_add atom_add_L2_cache_hint red_add red_add_L2_cache_hint;
    op_inc "inc" "its successor, and by zero if it is `value` or greater": atom_inc atom_inc_L2_cache_hint red_inc red_inc_L2_cache_hint;
    op_dec "dec" "its predecessor, and by `value` if it is zero or greater than `value`": atom_dec atom_dec_L2_cache_hint red_dec red_dec_L2_cache_hint;
    op_min "min" "the lesser of it and `value`": atom_min atom_min_L2_cache_hint red_min red_min_L2_cache_hint;
    op_max "max" "the greater of it and `value`": atom_max atom_max_L2_cache_hint red_max red_max_L2_cache_hint;
    op_exch "exch" "`value`": atom_exch atom_exch_L2_cache_hint;
}

/// Replaces a value in memory by `value` if it is `compare`, atomically, and returns what it was.
///
/// Compared are bits: two NaNs can be equal, and 0.0 is not -0.0.
///
/// ```text
/// atom.sem.scope{.space}.cas.type old, [addr], compare, value;
/// ```
///
/// PTX ISA: [`atom`](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#parallel-synchronization-and-communication-instructions-atom)
///
/// # Safety
///
/// - `addr` points to a value in memory of `space`, aligned to its size.
/// - All accesses to the value that may be concurrent are atomic, with scopes that include each
///   other's threads.
#[inline(always)]
pub unsafe fn atom_cas<S: AtomSem, C: Scope, P: Space, T: Atomic<op_cas, P>>(
    _sem: S,
    _scope: C,
    _space: P,
    addr: *mut T,
    compare: T,
    value: T,
) -> T {
    let (compare, value): (T::Registers, T::Registers) = (bits(compare), bits(value));
    bits(unsafe { value.compare::<Operation<S, C, P, op_cas, T>>(P::address(addr), compare) })
}
