//! The array that `producer_consumer` streams: a file's, or generated.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};
use cust::memory::bytemuck;

use super::random;
use crate::driver::Driver;

/// The size of a generated array, where the device has four times as much.
const GENERATED_BYTES: u64 = 1 << 30;

/// The elements of the file, or generated ones.
pub fn load(driver: &Driver, file: Option<&Path>, seed: u64) -> Result<Vec<f32>> {
    match file {
        Some(path) => read(path),
        None => {
            let (_, total) = driver.memory_info()?;
            let bytes = GENERATED_BYTES.min(total / 4);
            Ok(random::floats(seed, (bytes / 4) as usize))
        }
    }
}

/// What the CPU streams at most, in elements.
pub const CPU_LEN: usize = 1 << 20;

/// The first elements of the file, or generated ones: as many as the CPU streams.
pub fn load_part(file: Option<&Path>, seed: u64) -> Result<Vec<f32>> {
    let Some(path) = file else {
        return Ok(random::floats(seed, CPU_LEN));
    };
    let mut floats = read(path)?;
    floats.truncate(CPU_LEN);
    Ok(floats)
}

/// Opens a file of raw little-endian floats; also gives its length in bytes.
pub fn open(path: &Path) -> Result<(File, u64)> {
    let name = path.display();
    let file = File::open(path).with_context(|| {
        format!("cannot open the input {name}: expected a file of raw little-endian f32")
    })?;
    let metadata = file
        .metadata()
        .with_context(|| format!("cannot look at the input {name}"))?;
    if !metadata.is_file() {
        bail!(
            "the input {name} is not a regular file: expected raw little-endian f32; \
             write them to a file and name that"
        );
    }
    let len = metadata.len();
    if len == 0 {
        bail!(
            "the input {name} is empty: expected raw little-endian f32, at least 4 bytes; \
             name a file that has some"
        );
    }
    if len % 4 != 0 {
        bail!(
            "the input {name} has {len} bytes: expected a multiple of 4, since an f32 has 4; \
             {} bytes are left over: cut them off, or see whether the file is what it should be",
            len % 4
        );
    }
    Ok((file, len))
}

/// Reads raw little-endian floats.
pub fn read(path: &Path) -> Result<Vec<f32>> {
    let (mut file, len) = open(path)?;
    let mut floats = vec![0.0f32; usize::try_from(len / 4)?];
    file.read_exact(bytemuck::cast_slice_mut(&mut floats))
        .with_context(|| format!("cannot read {len} bytes of the input {}", path.display()))?;
    if cfg!(target_endian = "big") {
        for float in &mut floats {
            *float = f32::from_bits(float.to_bits().swap_bytes());
        }
    }
    Ok(floats)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_bytes(bytes: &[u8]) -> Result<Vec<f32>> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        read(file.path())
    }

    #[test]
    fn floats_are_little_endian() {
        let floats = read_bytes(&[0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0]).unwrap();
        assert_eq!(floats, [1.0, -2.0]);
    }

    #[test]
    fn an_empty_file_is_refused() {
        let error = read_bytes(&[]).unwrap_err().to_string();
        assert!(error.contains("is empty: expected"), "{error}");
    }

    #[test]
    fn a_length_that_is_no_multiple_of_four_is_refused() {
        let error = read_bytes(&[0; 7]).unwrap_err().to_string();
        assert!(
            error.contains("has 7 bytes: expected a multiple of 4"),
            "{error}"
        );
        assert!(error.contains("3 bytes are left over"), "{error}");
    }

    #[test]
    fn a_file_that_is_missing_or_a_folder_is_refused() {
        let error = read(Path::new("/nonexistent/x.f32")).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("cannot open the input /nonexistent/x.f32"),
            "{error}"
        );
        let folder = tempfile::tempdir().unwrap();
        let error = read(folder.path()).unwrap_err();
        assert!(error.to_string().contains("not a regular file"), "{error}");
    }
}
