//! Lock file by which a training process detects another process with the same snapshot prefix.

use std::{
    fs::{self, File, TryLockError},
    io::{Read, Write},
    path::{Path, PathBuf},
    process,
};

/// The locked file `.<prefix>.lock`, which contains the process id and which `drop` removes. The
/// operating system unlocks the file if the process dies.
pub(super) struct PrefixLock {
    path: PathBuf,
    _file: File,
}

impl PrefixLock {
    /// Locks the file for the snapshot prefix `prefix`. If another process holds the lock, logs a
    /// warning and returns `None`. Also returns `None` if the file cannot be created: training does
    /// not need the lock.
    pub(super) fn acquire(prefix: &str) -> Option<Self> {
        let prefix = Path::new(prefix);
        let name = prefix.file_name().unwrap_or_default().to_string_lossy();
        let path = prefix.with_file_name(format!(".{name}.lock"));
        let result =
            File::options().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = result.ok()?;
        match file.try_lock() {
            Ok(()) => {
                // Ignore errors, because other processes use the process id only in a warning.
                let _ = file.set_len(0).and_then(|()| write!(file, "{}", process::id()));
                Some(Self { path, _file: file })
            }
            Err(TryLockError::WouldBlock) => {
                let mut id = String::new();
                let has_id = file.read_to_string(&mut id).is_ok() && id.parse::<u32>().is_ok();
                let process =
                    if has_id { format!("process {id}") } else { "another process".into() };
                let prefix = prefix.display();
                log::warn!(
                    "{process} is training with the same snapshot prefix `{prefix}`: each of the \
                     two processes replaces snapshots of the other; set another snapshot_prefix"
                );
                None
            }
            Err(TryLockError::Error(_)) => None,
        }
    }
}

impl Drop for PrefixLock {
    fn drop(&mut self) {
        // A leftover file does no harm: the next process locks and removes it.
        let _ = fs::remove_file(&self.path);
    }
}
