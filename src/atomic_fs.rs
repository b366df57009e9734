//! Atomic replacement of files and directories.

#[cfg(feature = "net")]
mod dir;
mod file;

#[cfg(feature = "net")]
pub(crate) use dir::{StagedDir, check_writable};
pub use file::write_atomically;
