//! The driver's entry points, declared here and resolved with `dlsym`.
//!
//! cust is generated for CUDA 11.4 and reads results into an enum of the codes of that release, so
//! the entry points that are newer, and those whose errors a user must see, are called from here.
//! Signatures follow `cuda.h`; every result is the raw code.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use cust::error::CudaResult;

use super::error::{DriverError, OpenError};

/// An opaque handle: `CUmodule`, `CUfunction`, `CUstream`, …
pub(crate) type Handle = *mut c_void;
/// `CUdeviceptr`.
pub(crate) type DeviceAddress = u64;

pub(crate) const SUCCESS: u32 = 0;

/// `CUlaunchConfig`.
#[repr(C)]
pub(crate) struct LaunchConfig {
    pub grid: [c_uint; 3],
    pub block: [c_uint; 3],
    /// Dynamic shared memory of a block, in bytes.
    pub shared_bytes: c_uint,
    pub stream: Handle,
    pub attributes: *const LaunchAttribute,
    pub attribute_count: c_uint,
}

/// `CUlaunchAttribute` whose value is a `clusterDim`, or a flag in its first word; the C union is 64
/// bytes, aligned to 8.
#[repr(C, align(8))]
pub(crate) struct LaunchAttribute {
    pub id: c_uint,
    pub padding: c_uint,
    pub value: [c_uint; 3],
    pub unused: [c_uint; 13],
}

const _: () = assert!(size_of::<LaunchConfig>() == 56 && size_of::<LaunchAttribute>() == 72);

macro_rules! entry_points {
    (required { $($name:ident($($arg:ty),*);)* } optional { $($extra:ident($($extra_arg:ty),*);)* }) => {
        /// The resolved entry points, by their names in libcuda.so.1.
        #[allow(non_snake_case)]
        pub(crate) struct Api {
            $(pub $name: unsafe extern "C" fn($($arg),*) -> u32,)*
            $(pub $extra: Option<unsafe extern "C" fn($($extra_arg),*) -> u32>,)*
        }

        impl Api {
            /// Fails with the name of the first required entry point that `library` lacks.
            fn resolve(library: Handle) -> Result<Api, &'static str> {
                Ok(Api {
                    // SAFETY: a symbol of this name has the type that cuda.h declares.
                    $($name: unsafe { symbol(library, concat!(stringify!($name), "\0")) }
                        .ok_or(stringify!($name))?,)*
                    // SAFETY: as above.
                    $($extra: unsafe { symbol(library, concat!(stringify!($extra), "\0")) },)*
                })
            }
        }
    };
}

entry_points! {
    required {
        cuInit(c_uint);
        cuDriverGetVersion(*mut c_int);
        cuGetErrorName(u32, *mut *const c_char);
        cuGetErrorString(u32, *mut *const c_char);
        cuDeviceGetCount(*mut c_int);
        cuDeviceGetAttribute(*mut c_int, c_uint, c_int);
        cuMemGetInfo_v2(*mut usize, *mut usize);
        cuMemAlloc_v2(*mut DeviceAddress, usize);
        cuMemsetD8_v2(DeviceAddress, u8, usize);
        cuMemcpyHtoD_v2(DeviceAddress, *const c_void, usize);
        cuMemcpyDtoH_v2(*mut c_void, DeviceAddress, usize);
        cuStreamSynchronize(Handle);
        cuModuleLoadDataEx(*mut Handle, *const c_void, c_uint, *const c_uint, *const *mut c_void);
        cuModuleUnload(Handle);
        cuModuleGetFunction(*mut Handle, Handle, *const c_char);
        cuFuncGetAttribute(*mut c_int, c_uint, Handle);
        cuFuncSetAttribute(Handle, c_uint, c_int);
        cuLaunchKernelEx(*const LaunchConfig, Handle, *const *mut c_void, *const *mut c_void);
        cuTensorMapEncodeTiled(*mut c_void, c_uint, u32, u64, *const u64, *const u64, *const u32, *const u32,
            c_uint, c_uint, c_uint, c_uint);
        cuTensorMapEncodeIm2col(*mut c_void, c_uint, u32, u64, *const u64, *const u64, *const c_int,
            *const c_int, u32, u32, *const u32, c_uint, c_uint, c_uint, c_uint);
    }
    optional {
        // CUDA 12.4.
        cuFuncGetParamInfo(Handle, usize, *mut usize, *mut usize);
        // CUDA 12.8.
        cuTensorMapEncodeIm2colWide(*mut c_void, c_uint, u32, u64, *const u64, *const u64, c_int, c_int, u32, u32,
            *const u32, c_uint, c_uint, c_uint, c_uint, c_uint);
    }
}

/// # Safety
/// `T` is the function pointer type of the symbol, and `name` ends in NUL.
unsafe fn symbol<T>(library: Handle, name: &'static str) -> Option<T> {
    assert!(size_of::<T>() == size_of::<Handle>() && name.ends_with('\0'));
    // SAFETY: `library` came from `dlopen`; the caller vouches for the type.
    unsafe {
        let found = libc::dlsym(library, name.as_ptr().cast());
        (!found.is_null()).then(|| std::mem::transmute_copy(&found))
    }
}

impl Api {
    /// Loads libcuda.so.1 once; later calls give the first one's answer.
    pub(crate) fn load() -> Result<&'static Api, OpenError> {
        static API: OnceLock<Result<Api, OpenError>> = OnceLock::new();
        API.get_or_init(open_library).as_ref().map_err(Clone::clone)
    }

    /// An error if `code` says that `call` failed.
    pub(crate) fn check(&self, call: &'static str, code: u32) -> Result<(), DriverError> {
        match code {
            SUCCESS => Ok(()),
            _ => Err(self.error(call, code)),
        }
    }

    /// The error that `code` stands for.
    pub(crate) fn error(&self, call: &str, code: u32) -> DriverError {
        let name = self.describe(self.cuGetErrorName, code);
        let text = self.describe(self.cuGetErrorString, code);
        DriverError {
            call: call.into(),
            code,
            name: name.unwrap_or_else(|| "an error without a name".into()),
            text: text.unwrap_or_else(|| "the driver has no text for it".into()),
            detail: None,
            log: None,
        }
    }

    /// The value of a call through cust. cust knows the codes of CUDA 11.4 only and gives any other
    /// as `CUDA_ERROR_UNKNOWN`: calls whose errors a user is likely to meet do not go through it.
    pub(crate) fn cust<T>(
        &self,
        call: &'static str,
        result: CudaResult<T>,
    ) -> Result<T, DriverError> {
        result.map_err(|error| self.error(call, error as u32))
    }

    fn describe(
        &self,
        ask: unsafe extern "C" fn(u32, *mut *const c_char) -> u32,
        code: u32,
    ) -> Option<Box<str>> {
        let mut text = std::ptr::null();
        // SAFETY: the driver writes a pointer to a static string, or null for a code it does not know.
        unsafe {
            (ask(code, &mut text) == SUCCESS && !text.is_null())
                .then(|| CStr::from_ptr(text).to_string_lossy().into())
        }
    }
}

/// Calls an entry point and turns its code into a `Result<(), DriverError>`. The arguments must be
/// what `cuda.h` asks of that entry point.
macro_rules! call {
    ($api:expr, $name:ident($($arg:expr),* $(,)?)) => {{
        let api: &$crate::driver::api::Api = $api;
        // SAFETY: pointers are to live values of the declared types, handles are the driver's own.
        api.check(stringify!($name), unsafe { (api.$name)($($arg),*) })
    }};
}
pub(crate) use call;

fn open_library() -> Result<Api, OpenError> {
    // SAFETY: the name is NUL-terminated; the library stays loaded for good.
    let library = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW) };
    if library.is_null() {
        // SAFETY: `dlerror` gives this thread's last message, or null.
        let reason = unsafe {
            let text = libc::dlerror();
            (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
        };
        return Err(OpenError::NoDriver {
            reason: reason.unwrap_or_else(|| "libcuda.so.1 did not load".to_owned()),
        });
    }
    Api::resolve(library).map_err(|lacks| OpenError::TooOld {
        found: version_of(library),
        lacks: Some(lacks),
    })
}

/// The CUDA version of a driver that lacks some entry point.
fn version_of(library: Handle) -> super::Version {
    let mut version = 0;
    // SAFETY: the type is that of cuda.h.
    unsafe {
        let ask: Option<unsafe extern "C" fn(*mut c_int) -> u32> =
            symbol(library, "cuDriverGetVersion\0");
        if let Some(ask) = ask {
            ask(&mut version);
        }
    }
    super::Version::from_cuda(version)
}
