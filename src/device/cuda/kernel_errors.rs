//! Errors for invalid values that GPU kernels find in their operands. A queue records the first
//! position of each kind of invalid value, and the next wait for the queue returns an error.

use super::error::{CudaFailure, check_driver};
use crate::error::Error;
use cust::sys::{CUdeviceptr, CUresult, cuMemAllocHost_v2, cuMemFreeHost};
use std::{
    ptr::{self, NonNull},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// A kind of invalid value that a kernel can find in an operand.
#[derive(Clone, Copy)]
pub(super) enum KernelError {
    /// A label that is neither the index of a class nor the ignored label.
    Label,
    /// A row index outside the table of a gather or scatter.
    Index,
    /// A number that is not an integer in `0..bound`, where `bound` is an argument of the kernel.
    Number,
}

/// For each kind of invalid value, the subject and the problem in the error message.
const KINDS: [(&str, &str); 3] = [
    ("label", "is neither a class number nor the ignored label"),
    ("index", "is outside the table"),
    ("to_indices", "is not an integer in the range of valid indices"),
];

/// One word per kind of invalid value: 0, or the bitwise complement of the position of the first
/// invalid value.
type Words = [AtomicU64; KINDS.len()];

/// The error words of a queue, in pinned host memory. The GPU writes the error words directly to
/// host memory, so no copy is needed.
pub(super) struct KernelErrorFlags(NonNull<Words>);

// SAFETY: `self` owns the memory, which any thread may access and free.
unsafe impl Send for KernelErrorFlags {}
// SAFETY: the words are atomic, so several threads may access them at once.
unsafe impl Sync for KernelErrorFlags {}

impl KernelErrorFlags {
    /// Allocates the error words in the current context, and sets all words to 0.
    pub(super) fn new() -> Result<Self, CudaFailure> {
        let mut start = ptr::null_mut();
        // SAFETY: `start` is valid for writing the address.
        let result = match unsafe { cuMemAllocHost_v2(&mut start, size_of::<Words>()) } {
            CUresult::CUDA_SUCCESS if start.is_null() => CUresult::CUDA_ERROR_OUT_OF_MEMORY,
            result => result,
        };
        check_driver("cuMemAllocHost", result)?;
        // SAFETY: the address is not null, because `check_driver` returned no error.
        let words = unsafe { NonNull::new_unchecked(start.cast::<Words>()) };
        // SAFETY: the allocation has the size of `Words` and is aligned to a page.
        unsafe { words.write_bytes(0, 1) };
        Ok(Self(words))
    }

    /// Returns the address of the error word of `kind`, which is the same on the GPU and the host.
    pub(super) fn address(&self, kind: KernelError) -> CUdeviceptr {
        self.0.as_ptr() as CUdeviceptr + (size_of::<AtomicU64>() * kind as usize) as u64
    }

    /// Returns the error for the first kind in [`KINDS`] of which a kernel reported an invalid
    /// value, and clears all words. The caller has waited for the kernels that write the error
    /// words.
    pub(super) fn take(&self) -> Option<Error> {
        // SAFETY: `new` initialized the words, which are freed only when `self` is dropped.
        let words = unsafe { self.0.as_ref() };
        let old_words = words.each_ref().map(|word| word.swap(0, Relaxed));
        let (word, (subject, problem)) =
            old_words.into_iter().zip(KINDS).find(|(word, _)| *word != 0)?;
        Some(Error::invalid_input(subject, format!("the value at position {} {problem}", !word)))
    }
}

impl Drop for KernelErrorFlags {
    fn drop(&mut self) {
        // SAFETY: `self` owns the memory, and `Stream::drop` has waited for kernels that write the
        // memory.
        let _ = unsafe { cuMemFreeHost(self.0.as_ptr().cast()) };
    }
}
