//! Modules from cubin or PTX, and their kernels.

use std::cell::Cell;
use std::ffi::{CString, c_int, c_void};

use super::api::{Api, Handle, SUCCESS, call};
use super::error::code;
use super::{Driver, DriverError};

/// The size of the buffer for the messages of the driver's PTX compiler, in bytes.
const JIT_LOG_BYTES: usize = 16 << 10;

// Values of `CUjit_option` and `CUfunction_attribute`.
const JIT_ERROR_LOG_BUFFER: u32 = 5;
const JIT_ERROR_LOG_BUFFER_SIZE_BYTES: u32 = 6;
const MAX_THREADS_PER_BLOCK: u32 = 0;
const SHARED_SIZE_BYTES: u32 = 1;
const CONST_SIZE_BYTES: u32 = 2;
const LOCAL_SIZE_BYTES: u32 = 3;
const NUM_REGS: u32 = 4;
const BINARY_VERSION: u32 = 6;
pub(super) const MAX_DYNAMIC_SHARED_SIZE_BYTES: u32 = 8;
pub(super) const NON_PORTABLE_CLUSTER_SIZE_ALLOWED: u32 = 14;

/// What a block may have of shared memory, static and dynamic, unless its kernel is told otherwise, in
/// bytes.
const DEFAULT_SHARED_LIMIT: u32 = 48 << 10;

/// A loaded cubin or PTX. It is unloaded when dropped.
pub struct Module<'d> {
    pub(super) driver: &'d Driver,
    handle: Handle,
}

impl Driver {
    /// Loads a cubin, a fatbin or PTX text. PTX that its compiler rejects is reported with the
    /// compiler's words.
    pub fn load(&self, image: &[u8]) -> Result<Module<'_>, DriverError> {
        // PTX must end in NUL; a byte more does a cubin no harm. u64s, because an ELF wants alignment.
        let mut aligned = vec![0u64; image.len() / 8 + 1];
        cust::memory::bytemuck::cast_slice_mut(&mut aligned)[..image.len()].copy_from_slice(image);
        let mut log = vec![0u8; JIT_LOG_BYTES];
        let options = [JIT_ERROR_LOG_BUFFER, JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        let values = [
            log.as_mut_ptr().cast::<c_void>(),
            JIT_LOG_BYTES as *mut c_void,
        ];
        let mut handle = std::ptr::null_mut();
        call!(
            self.api,
            cuModuleLoadDataEx(
                &mut handle,
                aligned.as_ptr().cast(),
                options.len() as u32,
                options.as_ptr(),
                values.as_ptr(),
            )
        )
        .map_err(|error| self.explain_load(error, image, &log))?;
        Ok(Module {
            driver: self,
            handle,
        })
    }

    fn explain_load(&self, mut error: DriverError, image: &[u8], log: &[u8]) -> DriverError {
        let log = log.split(|byte| *byte == 0).next().unwrap_or_default();
        let log = String::from_utf8_lossy(log).trim().to_owned();
        error.log = (!log.is_empty()).then_some(log);
        let found = image_kind(image);
        match error.code {
            code::UNSUPPORTED_PTX_VERSION => error.with_detail(format!(
                "expected PTX of an ISA that the driver for CUDA {} compiles, found {found}",
                self.version
            )),
            code::NO_BINARY_FOR_GPU => {
                let gpu = self
                    .compute_capability()
                    .map_or("?".to_owned(), |v| v.to_string());
                error.with_detail(format!(
                    "expected code for compute capability {gpu}, found {found}"
                ))
            }
            code::INVALID_IMAGE | code::INVALID_PTX => {
                error.with_detail(format!("the image is {found}"))
            }
            _ => error,
        }
    }
}

impl<'d> Module<'d> {
    /// The kernel called `name` in the module.
    pub fn function(&self, name: &str) -> Result<Function<'_>, DriverError> {
        let c_name = CString::new(name).unwrap_or_default();
        let mut handle = std::ptr::null_mut();
        call!(
            self.driver.api,
            cuModuleGetFunction(&mut handle, self.handle, c_name.as_ptr())
        )
        .map_err(|error| error.with_detail(format!("no kernel `{name}` in the module")))?;
        let function = Function {
            driver: self.driver,
            name: name.to_owned(),
            handle,
            parameters: parameter_sizes(self.driver.api, handle),
            shared_limit: Cell::new(0),
        };
        let fixed = function.attribute(SHARED_SIZE_BYTES)?;
        let limit = DEFAULT_SHARED_LIMIT.saturating_sub(fixed);
        function.shared_limit.set(limit);
        Ok(function)
    }
}

impl Drop for Module<'_> {
    fn drop(&mut self) {
        // An error here is an earlier kernel's; whoever synchronised has seen it.
        // SAFETY: the functions of the module borrow it, so none is left.
        unsafe { (self.driver.api.cuModuleUnload)(self.handle) };
    }
}

/// A kernel of a loaded module.
pub struct Function<'m> {
    pub(super) driver: &'m Driver,
    pub(super) name: String,
    pub(super) handle: Handle,
    /// The size of each parameter in bytes, where the driver tells (CUDA 12.4).
    pub(super) parameters: Option<Vec<usize>>,
    /// The dynamic shared memory that a block may have now, in bytes.
    pub(super) shared_limit: Cell<u32>,
}

/// What a kernel needs, as compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionAttributes {
    /// Registers of a thread.
    pub registers: u32,
    /// Static shared memory of a block, in bytes.
    pub shared_bytes: u32,
    /// Local memory of a thread, in bytes: spills and arrays that are not in registers.
    pub local_bytes: u32,
    /// Constant memory, in bytes.
    pub constant_bytes: u32,
    /// The most threads of a block with which it can be launched.
    pub max_threads_per_block: u32,
    /// The architecture of its machine code: 10 × major + minor, such as 90.
    pub binary_version: u32,
}

impl Function<'_> {
    /// The kernel's name in the module.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the kernel needs, as compiled.
    pub fn attributes(&self) -> Result<FunctionAttributes, DriverError> {
        Ok(FunctionAttributes {
            registers: self.attribute(NUM_REGS)?,
            shared_bytes: self.attribute(SHARED_SIZE_BYTES)?,
            local_bytes: self.attribute(LOCAL_SIZE_BYTES)?,
            constant_bytes: self.attribute(CONST_SIZE_BYTES)?,
            max_threads_per_block: self.attribute(MAX_THREADS_PER_BLOCK)?,
            binary_version: self.attribute(BINARY_VERSION)?,
        })
    }

    fn attribute(&self, attribute: u32) -> Result<u32, DriverError> {
        let mut value: c_int = 0;
        call!(
            self.driver.api,
            cuFuncGetAttribute(&mut value, attribute, self.handle)
        )?;
        Ok(value as u32)
    }

    pub(super) fn set_attribute(&self, attribute: u32, value: u32) -> Result<(), DriverError> {
        call!(
            self.driver.api,
            cuFuncSetAttribute(self.handle, attribute, value as c_int)
        )
    }
}

/// The size of each parameter of a kernel in bytes; `None` if the driver cannot tell.
fn parameter_sizes(api: &Api, function: Handle) -> Option<Vec<usize>> {
    let ask = api.cuFuncGetParamInfo?;
    let size = |index| {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: the types are those of cuda.h; an index past the last parameter is an error code.
        let code = unsafe { ask(function, index, &mut offset, &mut size) };
        (code == SUCCESS).then_some(size)
    };
    Some((0..).map_while(size).collect())
}

/// What an image is, by its header.
fn image_kind(image: &[u8]) -> String {
    match image {
        [0x7f, b'E', b'L', b'F', header @ ..] if header.len() >= 48 => {
            // The byte of e_flags (file offset 48) that holds the architecture moved in ABI version 8.
            let abi_version = header[4];
            let architecture = header[if abi_version >= 8 { 45 } else { 44 }];
            format!("a cubin for sm_{architecture}")
        }
        [0x50, 0xed, 0x55, 0xba, ..] => "a fatbin".to_owned(),
        [] => "empty".to_owned(),
        _ => {
            let text = String::from_utf8_lossy(image);
            let directive = |name| {
                let line = text.lines().find(|line| line.starts_with(name))?;
                line.split_whitespace().nth(1)
            };
            match (directive(".version"), directive(".target")) {
                (Some(version), Some(target)) => {
                    format!(
                        "PTX .version {version} for {}",
                        target.trim_end_matches(',')
                    )
                }
                _ => "neither a cubin nor PTX".to_owned(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::image_kind;

    #[test]
    fn an_image_is_named_by_its_header() {
        let ptx = b"//\n.version 9.5\n.target sm_90a, debug\n.address_size 64\n";
        assert_eq!(image_kind(ptx), "PTX .version 9.5 for sm_90a");
        assert_eq!(image_kind(b""), "empty");
        assert_eq!(image_kind(b"hello"), "neither a cubin nor PTX");
        assert_eq!(
            image_kind(&cubin_header(8, 0x0600_5a04)),
            "a cubin for sm_90"
        );
        assert_eq!(
            image_kind(&cubin_header(7, 0x0056_0556)),
            "a cubin for sm_86"
        );
    }

    /// The part of a 64-bit ELF header that tells a cubin's architecture.
    fn cubin_header(abi_version: u8, flags: u32) -> Vec<u8> {
        let mut header = vec![0; 64];
        header[..4].copy_from_slice(b"\x7fELF");
        header[8] = abi_version;
        header[48..52].copy_from_slice(&flags.to_le_bytes());
        header
    }
}
