//! Errors for invalid values that GPU kernels find in their operands. A queue records the first
//! position of each kind of invalid value, and the next wait for the queue returns an error.

use super::context::Context;
use crate::{
    error::{Error, Result},
    sync::Mutex,
};
use cust::sys::{
    CUdeviceptr, CUresult, CUstream, cuMemAllocHost_v2, cuMemFreeHost, cuMemcpyDtoHAsync_v2,
    cuMemsetD8Async,
};
use std::{
    ptr::{self, NonNull},
    sync::{
        Arc,
        atomic::{
            AtomicBool,
            Ordering::{AcqRel, Acquire, Release},
        },
    },
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
type Words = [u64; KINDS.len()];

/// The error words of a queue. The error words are in device memory, because atomic operations on
/// host memory require support by the PCIe bus. A wait for the queue copies the error words to the
/// host if a kernel that can report invalid values was launched since the last copy.
pub(super) struct KernelErrorFlags {
    context: Arc<Context>,
    stream: CUstream,
    words: CUdeviceptr,
    /// Pinned memory, to which the words are copied.
    copy: Mutex<NonNull<Words>>,
    /// Whether a kernel that can report invalid values was launched since the last copy.
    is_stale: AtomicBool,
}

// SAFETY: `self` owns the memory, which any thread may access and free.
unsafe impl Send for KernelErrorFlags {}
// SAFETY: a lock protects the host memory, and the driver's functions are thread-safe.
unsafe impl Sync for KernelErrorFlags {}

impl KernelErrorFlags {
    /// Allocates the error words of `stream` in its context, which must be current, and queues the
    /// initialization of all words to 0.
    pub(super) fn new(context: &Arc<Context>, stream: CUstream) -> Result<Self> {
        let mut start = ptr::null_mut();
        // SAFETY: `start` is valid for writing the address.
        let result = match unsafe { cuMemAllocHost_v2(&mut start, size_of::<Words>()) } {
            CUresult::CUDA_SUCCESS if start.is_null() => CUresult::CUDA_ERROR_OUT_OF_MEMORY,
            result => result,
        };
        context.check("cuMemAllocHost", result)?;
        // SAFETY: the address is not null, because `check` returned no error.
        let copy = unsafe { NonNull::new_unchecked(start.cast::<Words>()) };
        let words = context.alloc(size_of::<Words>(), stream).inspect_err(|_| {
            // SAFETY: the driver has allocated the memory, and nothing else refers to the memory.
            let _ = unsafe { cuMemFreeHost(start) };
        })?;
        let (context, copy) = (Arc::clone(context), Mutex::new(copy));
        let flags = Self { context, stream, words, copy, is_stale: AtomicBool::new(false) };
        flags.clear()?;
        Ok(flags)
    }

    /// Returns the device address of the error word of `kind`.
    pub(super) fn address(&self, kind: KernelError) -> CUdeviceptr {
        self.words + (size_of::<u64>() * kind as usize) as u64
    }

    /// Records that a kernel that can report invalid values was launched.
    pub(super) fn kernel_was_launched(&self) {
        self.is_stale.store(true, Release);
    }

    /// Calls `synchronize`, which waits for the queue. Returns the error for the first kind in
    /// [`KINDS`] of which a kernel reported an invalid value, and clears all words. The context
    /// must be current.
    pub(super) fn wait(&self, synchronize: impl FnOnce() -> Result<()>) -> Result<()> {
        if !self.is_stale.load(Acquire) {
            return synchronize();
        }
        let copy = self.copy.lock();
        // If another thread launches a kernel from here on, a later wait reports the invalid values
        // of that kernel.
        if !self.is_stale.swap(false, AcqRel) {
            return synchronize();
        }
        // SAFETY: both allocations have the size of `Words`. `synchronize` returns when the copy is
        // done, and the lock protects the host memory until then.
        let result = unsafe {
            cuMemcpyDtoHAsync_v2(copy.as_ptr().cast(), self.words, size_of::<Words>(), self.stream)
        };
        self.context.check("cuMemcpyDtoHAsync", result)?;
        synchronize()?;
        // SAFETY: the copy has initialized the words, and the lock is held.
        let words = unsafe { copy.read() };
        let Some((word, (subject, problem))) =
            words.into_iter().zip(KINDS).find(|(word, _)| *word != 0)
        else {
            return Ok(());
        };
        self.clear()?;
        Err(Error::invalid_input(subject, format!("the value at position {} {problem}", !word)))
    }

    /// Queues an operation that sets all error words to 0.
    fn clear(&self) -> Result<()> {
        // SAFETY: the allocation has the size of `Words`.
        let result = unsafe { cuMemsetD8Async(self.words, 0, size_of::<Words>(), self.stream) };
        self.context.check("cuMemsetD8Async", result)
    }
}

impl Drop for KernelErrorFlags {
    fn drop(&mut self) {
        if self.context.enter().is_err() {
            return;
        }
        self.context.pool.give(self.words, self.stream);
        // SAFETY: `self` owns the memory. A wait followed each copy to the pinned memory, so no
        // copy is in progress.
        let _ = unsafe { cuMemFreeHost(self.copy.lock().as_ptr().cast()) };
    }
}
