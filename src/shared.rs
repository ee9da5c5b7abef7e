//! Objects in shared memory: [`shared!`](crate::shared!) is `__shared__`,
//! [`extern_shared!`](crate::extern_shared!) is `extern __shared__`.
//!
//! Rust has no shared-memory statics. These are ordinary statics in the sections `.shared` and
//! `.shared.extern`, which the link stage moves to the shared state space. There is one object per
//! CTA, it is uninitialised when the kernel starts, and every thread of the CTA can reach it, which
//! is why all access goes through raw pointers.

use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::mem::MaybeUninit;

/// A static object of type `T` in shared memory, declared with [`shared!`](crate::shared!).
///
/// `ALIGN` raises the alignment above that of `T`, in bytes: a power of two up to 1024.
#[repr(C)]
pub struct Shared<T, const ALIGN: usize = 1>
where
    Align<ALIGN>: Alignment,
{
    align: [<Align<ALIGN> as Alignment>::Unit; 0],
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: sharing hands out nothing but a raw pointer; whoever dereferences it synchronises.
unsafe impl<T, const ALIGN: usize> Sync for Shared<T, ALIGN> where Align<ALIGN>: Alignment {}

impl<T, const ALIGN: usize> Shared<T, ALIGN>
where
    Align<ALIGN>: Alignment,
{
    /// What [`shared!`](crate::shared!) writes as the initialiser. Shared memory has none, so the
    /// object is uninitialised.
    #[doc(hidden)]
    #[must_use]
    pub const fn uninit() -> Self {
        const { assert!(size_of::<T>() > 0, "a shared object must have a size") }
        Self {
            align: [],
            value: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// A generic pointer to the object of the executing CTA.
    #[inline(always)]
    pub const fn as_mut_ptr(&self) -> *mut T {
        self.value.get().cast()
    }
}

/// The start of the CTA's dynamic shared memory, declared with
/// [`extern_shared!`](crate::extern_shared!).
///
/// Its size is chosen at launch; a kernel reads it with `get_sreg_dynamic_smem_size`.
#[repr(C)]
pub struct DynamicShared<T, const ALIGN: usize = 16>
where
    Align<ALIGN>: Alignment,
{
    align: [<Align<ALIGN> as Alignment>::Unit; 0],
    // A static of no size need not have an address of its own.
    first: UnsafeCell<MaybeUninit<u8>>,
    elements: PhantomData<T>,
}

// SAFETY: as for `Shared`.
unsafe impl<T, const ALIGN: usize> Sync for DynamicShared<T, ALIGN> where Align<ALIGN>: Alignment {}

impl<T, const ALIGN: usize> DynamicShared<T, ALIGN>
where
    Align<ALIGN>: Alignment,
{
    /// What [`extern_shared!`](crate::extern_shared!) writes as the initialiser.
    #[doc(hidden)]
    #[must_use]
    pub const fn uninit() -> Self {
        const {
            assert!(
                align_of::<T>() <= ALIGN,
                "the alignment is less than the type needs"
            )
        }
        Self {
            align: [],
            first: UnsafeCell::new(MaybeUninit::uninit()),
            elements: PhantomData,
        }
    }

    /// A generic pointer to the first byte of the executing CTA's dynamic shared memory. All
    /// declarations of a program name this one address.
    #[inline(always)]
    pub const fn as_mut_ptr(&self) -> *mut T {
        self.first.get().cast()
    }
}

/// Names an alignment of `N` bytes.
pub struct Align<const N: usize>;

/// An alignment that a shared object can have: a power of two from 1 to 1024 bytes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an alignment of shared memory",
    note = "allowed are 1, 2, 4, 8, 16, 32, 64, 128, 256, 512 and 1024 bytes"
)]
pub trait Alignment: sealed::Sealed {
    /// A type of this alignment.
    #[doc(hidden)]
    type Unit;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! alignments {
    ($($unit:ident = $n:literal),* $(,)?) => {$(
        #[doc(hidden)]
        #[repr(align($n))]
        pub struct $unit;
        impl sealed::Sealed for Align<$n> {}
        impl Alignment for Align<$n> {
            type Unit = $unit;
        }
    )*};
}
alignments!(
    Align1 = 1,
    Align2 = 2,
    Align4 = 4,
    Align8 = 8,
    Align16 = 16,
    Align32 = 32,
    Align64 = 64,
    Align128 = 128,
    Align256 = 256,
    Align512 = 512,
    Align1024 = 1024,
);

/// Declares objects in shared memory, like `__shared__` in CUDA C++.
///
/// ```
/// use cuda_ptx::shared;
///
/// shared! {
///     /// One barrier for the CTA.
///     static BARRIER: u64;
///     /// The target of bulk copies.
///     #[align(128)]
///     static TILE: [f32; 1024];
/// }
///
/// let barrier: *mut u64 = BARRIER.as_mut_ptr();
/// let tile: *mut f32 = TILE.as_mut_ptr().cast();
/// # let _ = (barrier, tile);
/// ```
///
/// The objects are uninitialised; an initialiser is a syntax error. An alignment that shared memory
/// does not have is a compile error:
///
/// ```compile_fail,E0277
/// cuda_ptx::shared! { #[align(48)] static TILE: [f32; 4]; }
/// ```
#[macro_export]
macro_rules! shared {
    ($($(#[doc = $doc:literal])* $(#[align($align:literal)])? $vis:vis static $name:ident: $type:ty;)*) => {$(
        $(#[doc = $doc])*
        #[cfg_attr(target_arch = "nvptx64", unsafe(link_section = ".shared"))]
        $vis static $name: $crate::Shared<$type $(, $align)?> = $crate::Shared::uninit();
    )*};
}

/// Declares the CTA's dynamic shared memory, like `extern __shared__ T name[]` in CUDA C++.
///
/// ```
/// cuda_ptx::extern_shared! {
///     #[align(128)]
///     static BUFFER: [f32];
/// }
/// let first: *mut f32 = BUFFER.as_mut_ptr();
/// # let _ = first;
/// ```
///
/// The alignment is 16 bytes unless given. Several declarations name the same memory.
#[macro_export]
macro_rules! extern_shared {
    ($($(#[doc = $doc:literal])* $(#[align($align:literal)])? $vis:vis static $name:ident: [$type:ty];)*) => {$(
        $(#[doc = $doc])*
        #[cfg_attr(target_arch = "nvptx64", unsafe(link_section = ".shared.extern"))]
        $vis static $name: $crate::DynamicShared<$type $(, $align)?> = $crate::DynamicShared::uninit();
    )*};
}
