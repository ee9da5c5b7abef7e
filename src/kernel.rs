//! Kernels: the entry points, their launch attributes and their parameters.
//!
//! [`kernel!`](crate::kernel!) writes what CUDA C++ spells `__global__`, `__launch_bounds__`,
//! `__cluster_dims__`, `__maxnreg__`, `__block_size__` and `__grid_constant__`. rustc has no
//! attributes for these, so the macro records them in a static of the section `.cuda_ptx.kernel`,
//! from which the link stage sets the PTX directives.

use core::ops::Deref;

/// A kernel parameter passed by value that lives in parameter memory for the whole launch and
/// whose address may be taken: `const __grid_constant__ T` in CUDA C++.
///
/// The host passes a `T` (not a pointer to one); the kernel sees a reference to the grid's single
/// copy, which is never copied to local memory. `T` can have any alignment, so a 64-byte-aligned
/// [`TensorMap`] works.
///
/// PTX ISA: [kernel function parameters](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#kernel-function-parameters).
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct GridConstant<T: Copy + 'static>(&'static T);

impl<T: Copy> GridConstant<T> {
    /// The generic address of the parameter.
    #[inline(always)]
    pub const fn as_ptr(&self) -> *const T {
        self.0
    }
}

impl<T: Copy> Deref for GridConstant<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        self.0
    }
}

/// A tensor map: the opaque 128-byte, 64-byte-aligned object (`CUtensorMap` of the driver API) that
/// describes a tensor in global memory to the tensor copy instructions.
///
/// The host encodes it with `cuTensorMapEncodeTiled` and passes it as
/// [`GridConstant<TensorMap>`](GridConstant).
///
/// PTX ISA: [tensor-map](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#tensor-tensormap).
#[repr(C, align(64))]
#[derive(Clone, Copy)]
pub struct TensorMap {
    opaque: [u64; 16],
}

/// A type that a kernel can take as a parameter: pointers, integers, floats, and
/// [`GridConstant`] for everything that is passed by value and larger.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a kernel parameter",
    note = "pass a struct or an array as `GridConstant<{Self}>`, anything else by pointer"
)]
pub trait Parameter: sealed::Sealed {
    /// Size and alignment in bytes of a grid constant; zeros for a parameter that travels in a
    /// register-sized slot.
    #[doc(hidden)]
    const GRID_CONSTANT: [u32; 2] = [0, 0];
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! scalar_parameters {
    ($($type:ty),*) => {$(
        impl sealed::Sealed for $type {}
        impl Parameter for $type {}
    )*};
}
scalar_parameters!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize, f32, f64);

impl<T> sealed::Sealed for *const T {}
impl<T> Parameter for *const T {}
impl<T> sealed::Sealed for *mut T {}
impl<T> Parameter for *mut T {}

impl<T: Copy> sealed::Sealed for GridConstant<T> {}
impl<T: Copy> Parameter for GridConstant<T> {
    const GRID_CONSTANT: [u32; 2] = [size_of::<T>() as u32, align_of::<T>() as u32];
}

/// What [`kernel!`](crate::kernel!) tells the link stage about one kernel; 0 means "not given".
/// `host/src/link/record.rs` reads these bytes.
#[doc(hidden)]
#[repr(C, packed)]
pub struct Record<const NAME: usize, const PARAMETERS: usize> {
    pub attributes: Attributes,
    pub parameter_count: u32,
    pub grid_constants: [[u32; 2]; PARAMETERS],
    pub name: [u8; NAME],
}

#[doc(hidden)]
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Attributes {
    pub max_threads: u32,
    pub min_blocks: u32,
    pub max_registers: u32,
    pub cluster: [u32; 3],
    pub block: [u32; 3],
}

impl Attributes {
    pub const NONE: Self = Self {
        max_threads: 0,
        min_blocks: 0,
        max_registers: 0,
        cluster: [0; 3],
        block: [0; 3],
    };

    #[must_use]
    pub const fn launch_bounds(mut self, max_threads: u32, min_blocks: u32) -> Self {
        assert!(
            max_threads >= 1 && max_threads <= 1024,
            "launch_bounds: a block has 1 to 1024 threads"
        );
        self.max_threads = max_threads;
        self.min_blocks = min_blocks;
        self
    }

    #[must_use]
    pub const fn maxnreg(mut self, registers: u32) -> Self {
        assert!(
            registers >= 16 && registers <= 255,
            "maxnreg: a thread has 16 to 255 registers"
        );
        self.max_registers = registers;
        self
    }

    #[must_use]
    pub const fn cluster_dim(mut self, x: u32, y: u32, z: u32) -> Self {
        assert!(
            x * y * z >= 1 && x * y * z <= 16,
            "cluster_dim: a cluster has 1 to 16 blocks (8 are portable)"
        );
        self.cluster = [x, y, z];
        self
    }

    #[must_use]
    pub const fn block_size(mut self, x: u32, y: u32, z: u32) -> Self {
        assert!(
            x * y * z >= 1 && x * y * z <= 1024,
            "block_size: a block has 1 to 1024 threads"
        );
        self.block = [x, y, z];
        self
    }
}

/// Called by every kernel and removed by the link stage. If a build bypasses the stage, the name is
/// what the loader or ptxas prints.
#[cfg(target_arch = "nvptx64")]
#[doc(hidden)]
#[inline(always)]
pub fn require_link_stage() {
    unsafe extern "C" {
        safe fn __cuda_ptx_was_linked_without_cuda_ptx_link();
    }
    __cuda_ptx_was_linked_without_cuda_ptx_link();
}

/// The number of parameters, also of a kernel that has none.
#[doc(hidden)]
#[must_use]
pub const fn count(parameters: &[&str]) -> usize {
    parameters.len()
}

/// The bytes of a string, for [`Record::name`].
#[doc(hidden)]
#[must_use]
pub const fn name_bytes<const N: usize>(name: &str) -> [u8; N] {
    let mut bytes = [0; N];
    let mut i = 0;
    while i < N {
        bytes[i] = name.as_bytes()[i];
        i += 1;
    }
    bytes
}

/// Defines kernels.
///
/// ```
/// # #![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]
/// use cuda_ptx::{GridConstant, TensorMap, kernel};
///
/// kernel! {
///     /// At most 256 threads a block, and registers for two blocks on a multiprocessor.
///     #[launch_bounds(256, 2)]
///     #[cluster_dim(2, 1, 1)]
///     pub fn tiles(map: GridConstant<TensorMap>, out: *mut f32, n: u32) {
///         # let _ = (map.as_ptr(), out, n);
///     }
/// }
/// ```
///
/// Each becomes `pub unsafe extern "ptx-kernel"` under its own name, which a launch uses. The crate
/// that uses the macro needs `#![feature(abi_ptx)]`. Attributes, all optional and each with
/// constant expressions as arguments:
///
/// | attribute | CUDA C++ | PTX |
/// |---|---|---|
/// | `launch_bounds(threads)`, `launch_bounds(threads, min_blocks)` | `__launch_bounds__` | `.maxntid`, `.minnctapersm` |
/// | `maxnreg(registers)` | `__maxnreg__` | `.maxnreg` |
/// | `cluster_dim(x, y, z)` (blocks) | `__cluster_dims__` | `.reqnctapercluster` |
/// | `block_size(x, y, z)` (threads) | `__block_size__` | `.reqntid` |
///
/// Parameters are pointers, numbers and [`GridConstant`]s; a struct by value is a compile error.
#[macro_export]
macro_rules! kernel {
    () => {};
    ($(#[$($attribute:tt)*])* $vis:vis fn $name:ident($($parameter:ident: $type:ty),* $(,)?) $body:block $($rest:tt)*) => {
        $crate::__kernel! {
            [$([$($attribute)*])*] [] [$crate::kernel::Attributes::NONE]
            $vis fn $name($($parameter: $type),*) $body
        }
        $crate::kernel! { $($rest)* }
    };
}

/// Sorts the attributes of one kernel into those that stay and those that make its record.
#[doc(hidden)]
#[macro_export]
macro_rules! __kernel {
    ([[launch_bounds($threads:expr)] $($rest:tt)*] $kept:tt [$($record:tt)*] $($function:tt)*) => {
        $crate::__kernel! { [$($rest)*] $kept [$($record)*.launch_bounds($threads, 0)] $($function)* }
    };
    ([[launch_bounds($threads:expr, $blocks:expr)] $($rest:tt)*] $kept:tt [$($record:tt)*] $($function:tt)*) => {
        $crate::__kernel! { [$($rest)*] $kept [$($record)*.launch_bounds($threads, $blocks)] $($function)* }
    };
    ([[maxnreg($n:expr)] $($rest:tt)*] $kept:tt [$($record:tt)*] $($function:tt)*) => {
        $crate::__kernel! { [$($rest)*] $kept [$($record)*.maxnreg($n)] $($function)* }
    };
    ([[cluster_dim($x:expr, $y:expr, $z:expr)] $($rest:tt)*] $kept:tt [$($record:tt)*] $($function:tt)*) => {
        $crate::__kernel! { [$($rest)*] $kept [$($record)*.cluster_dim($x, $y, $z)] $($function)* }
    };
    ([[block_size($x:expr, $y:expr, $z:expr)] $($rest:tt)*] $kept:tt [$($record:tt)*] $($function:tt)*) => {
        $crate::__kernel! { [$($rest)*] $kept [$($record)*.block_size($x, $y, $z)] $($function)* }
    };
    ([[$($other:tt)*] $($rest:tt)*] [$($kept:tt)*] $record:tt $($function:tt)*) => {
        $crate::__kernel! { [$($rest)*] [$($kept)* [$($other)*]] $record $($function)* }
    };
    ([] [$([$($kept:tt)*])*] [$($record:tt)*] $vis:vis fn $name:ident($($parameter:ident: $type:ty),*) $body:block) => {
        #[cfg(target_arch = "nvptx64")]
        $(#[$($kept)*])*
        #[unsafe(no_mangle)]
        $vis unsafe extern "ptx-kernel" fn $name($($parameter: $type),*) {
            #[used]
            #[unsafe(link_section = ".cuda_ptx.kernel")]
            static RECORD: $crate::kernel::Record<
                { stringify!($name).len() },
                { $crate::kernel::count(&[$(stringify!($parameter)),*]) },
            > = $crate::kernel::Record {
                attributes: $($record)*,
                parameter_count: $crate::kernel::count(&[$(stringify!($parameter)),*]) as u32,
                grid_constants: [$(<$type as $crate::kernel::Parameter>::GRID_CONSTANT),*],
                name: $crate::kernel::name_bytes(stringify!($name)),
            };
            $crate::kernel::require_link_stage();
            $body
        }
        // Other targets have no such ABI; there the kernel is only type-checked.
        #[cfg(not(target_arch = "nvptx64"))]
        $(#[$($kept)*])*
        $vis unsafe fn $name($($parameter: $type),*) {
            const _: $crate::kernel::Attributes = $($record)*;
            $(let _ = <$type as $crate::kernel::Parameter>::GRID_CONSTANT;)*
            $body
        }
    };
}

/// What [`panic_trap!`](crate::panic_trap!) does with a panic.
#[cfg(target_arch = "nvptx64")]
#[doc(hidden)]
#[inline(always)]
pub fn trap_on_panic() -> ! {
    // SAFETY: `trap` ends the grid. Not `nomem`: what the thread stored before stays before.
    unsafe { core::arch::asm!("trap;", options(noreturn, nostack)) }
}

/// Defines the crate's panic handler: a panic traps, which ends the whole grid with an error that
/// the host sees at its next synchronisation (`CUDA_ERROR_LAUNCH_FAILED`).
///
/// This is the smallest handler; [`panic_report!`](crate::panic_report!) also says where.
#[macro_export]
macro_rules! panic_trap {
    () => {
        #[cfg(target_arch = "nvptx64")]
        const _: () = {
            #[panic_handler]
            fn panic(_: &::core::panic::PanicInfo) -> ! {
                $crate::kernel::trap_on_panic()
            }
        };
    };
}

/// What [`panic_report!`](crate::panic_report!) does with a panic.
#[cfg(target_arch = "nvptx64")]
#[doc(hidden)]
#[cold]
#[inline(never)]
pub fn report_panic(info: &core::panic::PanicInfo) -> ! {
    unsafe extern "C" {
        // Provided by the driver, as for `assert` in CUDA C++.
        fn __assertfail(
            message: *const u8,
            file: *const u8,
            line: u32,
            function: *const u8,
            char_size: usize,
        ) -> !;
    }
    let (file, line) = match info.location() {
        Some(location) => (location.file_as_c_str(), location.line()),
        None => (c"unknown file", 0),
    };
    // A panic with a formatted message has no text that could be shown without formatting it here.
    let mut message = [0u8; PANIC_MESSAGE];
    let text = info.message().as_str().unwrap_or("panic");
    let mut length = 0;
    for byte in text.bytes().take(PANIC_MESSAGE - 1) {
        message[length] = byte;
        length += 1;
    }
    // SAFETY: all three strings end with a NUL; `char_size` is that of their characters.
    unsafe {
        __assertfail(
            message.as_ptr(),
            file.as_ptr().cast(),
            line,
            c"Rust".as_ptr().cast(),
            1,
        )
    }
}

/// The longest panic message that is shown, in bytes, with the NUL.
#[cfg(target_arch = "nvptx64")]
const PANIC_MESSAGE: usize = 128;

/// Defines the crate's panic handler: a panic is reported like a failed `assert` in CUDA C++. The
/// driver writes file, line, block, thread and message to the host's standard error, the grid
/// ends, and the host's next call returns `CUDA_ERROR_ASSERT`.
///
/// Messages without arguments are shown (up to 127 bytes); of one that would have to be formatted,
/// as that of an index out of bounds, only the place. A kernel that cannot panic pays nothing; one
/// that can has a call in its slow path. The macro is for kernels in development and for debug
/// builds, [`panic_trap!`](crate::panic_trap!) for the rest.
#[macro_export]
macro_rules! panic_report {
    () => {
        #[cfg(target_arch = "nvptx64")]
        const _: () = {
            #[panic_handler]
            fn panic(info: &::core::panic::PanicInfo) -> ! {
                $crate::kernel::report_panic(info)
            }
        };
    };
}
