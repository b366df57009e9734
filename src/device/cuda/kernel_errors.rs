//! What kernels find wrong with values: a queue keeps the first of each kind, and whoever next
//! waits for it is told.

use super::error::{CudaFailure, check_driver};
use crate::error::Error;
use cust::sys::{CUdeviceptr, CUresult, cuMemAllocHost_v2, cuMemFreeHost};
use std::{
    ptr::{self, NonNull},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// A kind of complaint.
#[derive(Clone, Copy)]
pub(super) enum KernelError {
    /// A label is no class.
    Label,
    /// An index names no row.
    Index,
    /// A number is no index.
    Number,
}

/// Who complains of what.
const KINDS: [(&str, &str); 3] = [
    ("label", "is no class, nor one that is ignored"),
    ("index", "is outside the table"),
    ("to_indices", "is no index below the bound"),
];

/// A word for each kind: 0, or the complement of the first position.
type Words = [AtomicU64; KINDS.len()];

/// Words of pinned host memory that the GPU writes to, so that nothing is copied where nobody
/// complains.
pub(super) struct KernelErrorFlags(NonNull<Words>);

// SAFETY: the memory belongs to this, and its words are atomic.
unsafe impl Send for KernelErrorFlags {}
// SAFETY: as above.
unsafe impl Sync for KernelErrorFlags {}

impl KernelErrorFlags {
    /// In the context that is current.
    pub(super) fn new() -> Result<Self, CudaFailure> {
        let mut start = ptr::null_mut();
        // SAFETY: there is room for the address.
        let taken = match unsafe { cuMemAllocHost_v2(&mut start, size_of::<Words>()) } {
            CUresult::CUDA_SUCCESS if start.is_null() => CUresult::CUDA_ERROR_OUT_OF_MEMORY,
            taken => taken,
        };
        check_driver("cuMemAllocHost", taken)?;
        // SAFETY: it is not null, for that was an error.
        let words = unsafe { NonNull::new_unchecked(start.cast::<Words>()) };
        // SAFETY: as many bytes were taken. From here on they are initialised.
        unsafe { words.write_bytes(0, 1) };
        Ok(Self(words))
    }

    /// Where the GPU finds the word of a kind: pinned memory has one address for both sides.
    pub(super) fn address(&self, kind: KernelError) -> CUdeviceptr {
        self.0.as_ptr() as CUdeviceptr + (size_of::<AtomicU64>() * kind as usize) as u64
    }

    /// The first kind that there is a complaint of; all are forgotten. What writes them is done.
    pub(super) fn take(&self) -> Option<Error> {
        // SAFETY: the words are initialised, and live as long as `self`.
        let words = unsafe { self.0.as_ref() };
        let found = words.each_ref().map(|word| word.swap(0, Relaxed));
        let (word, (op, what)) = found.into_iter().zip(KINDS).find(|(word, _)| *word != 0)?;
        Some(Error::invalid_input(op, format!("that at position {} {what}", !word)))
    }
}

impl Drop for KernelErrorFlags {
    fn drop(&mut self) {
        // SAFETY: nobody else has the memory, and what writes to it is done.
        let _ = unsafe { cuMemFreeHost(self.0.as_ptr().cast()) };
    }
}
