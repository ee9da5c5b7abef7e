//! Device buffers. They are cust's; they are made and copied here so that errors keep their code
//! and say what was asked for.

use cust::memory::bytemuck::{Pod, Zeroable};
use cust::memory::{DeviceBuffer, DeviceCopy, DevicePointer};

use super::api::call;
use super::error::code;
use super::{Driver, DriverError};

impl Driver {
    /// A device buffer of `len` elements, all bytes zero. It is aligned to at least 256 bytes.
    pub fn zeroed<T: DeviceCopy + Zeroable>(
        &self,
        len: usize,
    ) -> Result<DeviceBuffer<T>, DriverError> {
        let buffer = self.allocate(len)?;
        if bytes::<T>(len) > 0 {
            let address = buffer.as_device_ptr().as_raw();
            call!(self.api, cuMemsetD8_v2(address, 0, bytes::<T>(len)))?;
        }
        Ok(buffer)
    }

    /// A device buffer with a copy of `data`.
    pub fn upload<T: DeviceCopy + Pod>(&self, data: &[T]) -> Result<DeviceBuffer<T>, DriverError> {
        let mut buffer = self.allocate(data.len())?;
        self.copy_to_device(data, &mut buffer)?;
        Ok(buffer)
    }

    /// Copies `data` over the first elements of `buffer`. Panics if `buffer` is shorter.
    pub fn copy_to_device<T: DeviceCopy + Pod>(
        &self,
        data: &[T],
        buffer: &mut DeviceBuffer<T>,
    ) -> Result<(), DriverError> {
        assert!(
            data.len() <= buffer.len(),
            "{} elements into {}",
            data.len(),
            buffer.len()
        );
        if size_of_val(data) == 0 {
            return Ok(());
        }
        let address = buffer.as_device_ptr().as_raw();
        call!(
            self.api,
            cuMemcpyHtoD_v2(address, data.as_ptr().cast(), size_of_val(data))
        )
    }

    /// The elements of `buffer`. Waits for the launches before it, and gives the error of one that
    /// faulted.
    pub fn download<T: DeviceCopy + Pod>(
        &self,
        buffer: &DeviceBuffer<T>,
    ) -> Result<Vec<T>, DriverError> {
        self.synchronize()?;
        let mut data = vec![T::zeroed(); buffer.len()];
        if bytes::<T>(data.len()) > 0 {
            let address = buffer.as_device_ptr().as_raw();
            call!(
                self.api,
                cuMemcpyDtoH_v2(data.as_mut_ptr().cast(), address, bytes::<T>(data.len()))
            )?;
        }
        Ok(data)
    }

    fn allocate<T: DeviceCopy>(&self, len: usize) -> Result<DeviceBuffer<T>, DriverError> {
        let size = len.saturating_mul(size_of::<T>());
        let mut address = 0;
        if size > 0 {
            call!(self.api, cuMemAlloc_v2(&mut address, size))
                .map_err(|error| self.explain_allocation(error, size))?;
        }
        // SAFETY: the address is a fresh allocation of `len` elements, or null for none.
        Ok(unsafe { DeviceBuffer::from_raw_parts(DevicePointer::from_raw(address), len) })
    }

    fn explain_allocation(&self, error: DriverError, asked: usize) -> DriverError {
        match self.memory_info() {
            Ok((free, total)) if error.code == code::OUT_OF_MEMORY => error.with_detail(format!(
                "{asked} bytes asked for, {free} bytes free of {total}"
            )),
            _ => error,
        }
    }
}

/// The size of `len` elements, which fit in memory, in bytes.
fn bytes<T>(len: usize) -> usize {
    len * size_of::<T>()
}
