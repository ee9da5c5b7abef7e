//! Generic pointers to the addresses that instructions take.
//!
//! Every pointer in this crate is a generic one, as in C++. An instruction whose address operand is
//! in a state space wants that space's own address, and for shared memory that is a 32-bit number.
//! These functions convert; they are what `cuda::ptx` calls `__as_ptr_smem` and its siblings.
//!
//! On the device each is a marker that the link stage turns into an address-space cast *after*
//! LLVM's inliner has run. A cast of a [`shared!`](crate::shared!) object then costs nothing, also
//! with an offset and through helper functions; a cast of a pointer of unknown origin is one
//! `cvta`. On the host they return the address as it is, so that code type-checks.

#[cfg(target_arch = "nvptx64")]
mod marker {
    unsafe extern "C" {
        #[link_name = "__cuda_ptx_cvta_to_shared"]
        pub safe fn cvta_to_shared(pointer: *const ()) -> u32;
        #[link_name = "__cuda_ptx_cvta_to_global"]
        pub safe fn cvta_to_global(pointer: *const ()) -> u64;
        #[link_name = "__cuda_ptx_cvta_from_shared"]
        pub safe fn cvta_from_shared(address: u32) -> *mut ();
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod marker {
    pub fn cvta_to_shared(pointer: *const ()) -> u32 {
        pointer.addr() as u32
    }
    pub fn cvta_to_global(pointer: *const ()) -> u64 {
        pointer.addr() as u64
    }
    pub fn cvta_from_shared(address: u32) -> *mut () {
        core::ptr::without_provenance_mut(address as usize)
    }
}

/// The `.shared::cta` address of an object in the shared memory of the executing CTA.
///
/// The result means nothing if `pointer` does not point into shared memory.
#[inline(always)]
#[must_use]
pub fn as_ptr_smem<T: ?Sized>(pointer: *const T) -> u32 {
    marker::cvta_to_shared(pointer.cast())
}

/// The `.shared::cluster` address of an object in shared memory of the cluster.
///
/// The window of `.shared::cta` is contained in that of `.shared::cluster`, so an object of the
/// executing CTA has the same address in both.
#[inline(always)]
#[must_use]
pub fn as_ptr_dsmem<T: ?Sized>(pointer: *const T) -> u32 {
    marker::cvta_to_shared(pointer.cast())
}

/// The `.shared::cluster` address of an object in the shared memory of another CTA of the cluster,
/// for instance of a pointer that `mapa` returned.
#[inline(always)]
#[must_use]
pub fn as_ptr_remote_dsmem<T: ?Sized>(pointer: *const T) -> u32 {
    marker::cvta_to_shared(pointer.cast())
}

/// The `.global` address of an object in global memory.
///
/// The result means nothing if `pointer` does not point into global memory.
#[inline(always)]
#[must_use]
pub fn as_ptr_gmem<T: ?Sized>(pointer: *const T) -> u64 {
    marker::cvta_to_global(pointer.cast())
}

/// A generic pointer to the `.shared::cluster` address `address`.
///
/// The other way round from [`as_ptr_dsmem`]. Where the pointer becomes an address again, also with an offset or around a
/// loop, neither conversion is left.
#[inline(always)]
#[must_use]
pub fn from_ptr_dsmem<T>(address: u32) -> *mut T {
    marker::cvta_from_shared(address).cast()
}
