//! One installation at a time, over all processes that share the folder.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;

use super::progress::note;

/// Held until dropped; the system releases it when the process dies.
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock `name` in `dir`, which is created if need be.
    pub fn wait(dir: &Path, name: &str) -> io::Result<Self> {
        fs::create_dir_all(dir)?;
        let file = File::create(dir.join(format!(".{name}.lock")))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                note(&format!("waiting for another process that sets up {name}"));
                file.lock()?;
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        Ok(Self { _file: file })
    }
}
