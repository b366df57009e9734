//! Bugs in memory and queues, in the reports of failures, and in the ledger scopes and operand
//! offsets of native kernels.

/// Adds the bugs to the list in brackets, and passes the list to the next macro.
macro_rules! memory_bugs {
    ([$($listed:tt)*] $next:ident $($rest:ident)*) => { $next! { [$($listed)*
        // Bugs in uploads and downloads.
        /// Bug: an upload writes all bytes at an offset that is one byte too large.
        UploadLate => raw_copies,
        /// Bug: an upload copies only whole words and omits the remaining bytes.
        UploadDropsTail => raw_copies,
        /// Bug: an upload of more than 4 MiB omits the bytes after the first 4 MiB.
        LargeUploadStops => raw_copies,
        /// Bug: an upload that does not begin at the start of the buffer has no effect.
        UploadLost => raw_copies,
        /// Bug: an upload ignores its offset and writes to the start of the buffer.
        UploadIgnoresOffset => raw_copies,
        /// Bug: a download copies at most one page.
        DownloadTruncated => raw_copies,
        /// Bug: a download rounds its start offset down to a word boundary.
        DownloadAligned => raw_copies,
        /// Bug: a download does not wait for queued work.
        DownloadUnfinished => raw_copies,
        /// Bug: the first download of a buffer is cached, and later downloads return the cached
        /// bytes.
        DownloadStale => coherence,
        // Bugs in recorded spans.
        /// Bug: all spans of a recording start at the same time, so that they overlap.
        SpansOverlap => spans,
        /// Bug: a span ends before it starts, and the difference wraps around.
        SpansEndBeforeStart => spans,
        /// Bug: a recording lacks the last launch of a kernel.
        SpansMissLaunch => spans,
        /// Bug: a recording contains only kernels.
        SpansMissTransfers => spans,
        /// Bug: all durations are equal.
        SpansDoNotGrow => spans,
        /// Bug: the spans are in the reverse order.
        SpansReversed => spans,
        /// Bug: the start of a span is relative to the last call of `take_spans`.
        SpansRestart => spans,
        /// Bug: `record_spans` does not end a recording.
        SpansNeverEnd => spans,
        /// Bug: a forked queue records if its parent records.
        SpansOfForks => spans,
        // Bugs in allocations.
        /// Bug: new device memory is not zeroed.
        AllocNotZeroed => raw_copies,
        /// Bug: new host memory is not zeroed.
        HostAllocNotZeroed => raw_copies,
        /// Bug: allocating a buffer of zero bytes is an error.
        AllocRefusesZeroBytes => raw_copies,
        /// Bug: an allocation of far too many bytes succeeds with fewer bytes than requested.
        AllocTooShort => out_of_memory,
        /// Bug: an allocation of far too many bytes panics instead of returning an error.
        AllocPanics => out_of_memory,
        /// Bug: after one allocation has failed, all later allocations fail.
        AllocNeverRecovers => out_of_memory,
        /// Bug: an allocation of far too many bytes returns an error of the device instead of
        /// `OutOfMemory`.
        OutOfMemoryIsDevice => out_of_memory,
        /// Bug: the error `OutOfMemory` reports the number of available bytes instead of the number
        /// of requested bytes.
        OutOfMemoryOtherBytes => out_of_memory,
        /// Bug: an allocation that fails reports a number of bytes that is rounded up to a page.
        OutOfMemoryRounded => out_of_memory,
        /// Bug: freed memory is zeroed and reused while queued work still uses it.
        FreedInFlight => queues,
        /// Bug: freed memory is reused when the queue that frees it is done, although another queue
        /// still uses it.
        FreedWhileForkUses => freed_in_flight,
        /// Bug: freed memory is reused while a queued upload to it is pending.
        UploadFreedInFlight => freed_in_flight,
        /// Bug: a freed block of at least 1 MiB is not zeroed when it is allocated again.
        DirtyLargeBlock => reused_memory,
        /// Bug: a freed block is not zeroed when a forked queue allocates it.
        DirtyForkBlock => reused_memory,
        /// Bug: a freed block to which a kernel has written is not zeroed when it is allocated
        /// again.
        DirtyKernelOutput => reused_memory,
        /// Bug: memory that is a part of a larger freed block is not zeroed.
        DirtySplitBlock => reused_memory,
        /// Bug: host memory of at least 1 MiB is not zeroed when it is allocated again.
        HostBlockDirty => reused_memory,
        // Bugs in queues.
        /// Bug: the method `order_after` does nothing.
        OrderAfterIgnored => queues,
        /// Bug: the method `order_after` has an effect only in its first call on a handle.
        OrderAfterOnce => queue_order,
        /// Bug: a fork does not have the name of the device.
        ForkRenamed => queues,
        /// Bug: the method `order_after` does nothing between two forked queues.
        OrderBetweenForksIgnored => queue_order,
        /// Bug: the method `order_after` ignores a queue without work of its own, although that
        /// queue is ordered after a third queue.
        OrderAfterIdleIgnored => queue_order,
        /// Bug: two queues that are each ordered after the other wait for each other forever.
        OrderDeadlocks => queues,
        /// Bug: a forked queue cannot be forked again.
        ForkOfForkRefused => queue_order,
        /// Bug: the pending work of a forked queue is lost when its handle is dropped.
        DroppedForkForgotten => queue_order,
        /// Bug: the method `synchronize` does nothing.
        SynchronizeIgnored => coherence,
        /// Bug: an upload on a forked queue runs at once instead of in queue order.
        ForkUploadsAtOnce => queues,
        /// Bug: after a device call has returned an error, all later calls return an error.
        ErrorsPersist => alive_after_errors,
        /// Bug: a queued kernel fails, and only `synchronize` reports the failure.
        QueuedFailure => scal,
        // Bugs in the reports of failures, and in calls after failures.
        /// Bug: no call reports the failure of queued work.
        FailureSwallowed => injected_failures,
        /// Bug: a download does not report the failure of queued work, and later calls do not
        /// either.
        DownloadLosesFailure => injected_failures,
        /// Bug: the kernel `asum` discards the failure of earlier queued work.
        AsumLosesFailure => injected_failures,
        /// Bug: the kernel `dot` discards the failure of earlier queued work.
        DotLosesFailure => injected_failures,
        /// Bug: no call reports the failure of work on a forked queue.
        ForkFailureLost => injected_failures,
        /// Bug: a wait for one queue discards the failure of work on another queue.
        OtherQueueLosesFailure => injected_failures,
        /// Bug: every wait reports an earlier failure of queued work again.
        FailureRepeats => injected_failures,
        /// Bug: the error of queued work names a kernel other than the one that failed.
        FailureOfAnotherKernel => injected_failures,
        /// Bug: the device, not the queue, records a failure, and a wait for any queue reports the
        /// failure if the failed work has already run.
        FailureOfAnyQueue => queue_failures,
        /// Bug: a wait for a queue that is ordered after a failed queue discards the failure of the
        /// failed queue.
        OrderedQueueTakesFailure => queue_failures,
        /// Bug: no call reports the failure of work on a dropped fork.
        DroppedForkLosesFailure => queue_failures,
        /// Bug: the error of a failed launch does not name the kernel.
        LaunchFailureUnnamed => injected_failures,
        /// Bug: after queued work has failed, all allocations fail.
        FailureKillsDevice => injected_failures,
        /// Bug: after queued work has failed, all allocations on forked queues fail.
        FailureKillsForks => injected_failures,
        /// Bug: a failed launch returns no error.
        LaunchFailureSwallowed => injected_failures,
        /// Bug: a kernel runs although its launch returns an error.
        FailedLaunchRuns => injected_failures,
        /// Bug: an upload that returns an error has copied half of its bytes.
        FailedUploadWrites => injected_failures,
        /// Bug: a failed upload returns no error.
        UploadFailureSwallowed => injected_failures,
        /// Bug: a failed download returns no error.
        DownloadFailureSwallowed => injected_failures,
        /// Bug: a failed allocation returns an error of the device instead of `OutOfMemory`.
        FailedAllocIsDevice => injected_failures,
        /// Bug: the native kernel `top_k` discards the value of its first output before the second
        /// output is allocated.
        ReservesNoOutput => failed_outputs,
        /// Bug: the native kernel `moments` discards the values of its outputs before it uploads
        /// its input.
        OutputsBeforeInput => failed_outputs,
        // Bugs in native kernels.
        /// Bug: the native kernel `scal` does not enter its ledger scope.
        ScopeForgotten => scal,
        /// Bug: the native kernel `scal` enters its ledger scope after it has used its operand.
        ScopeLate => scal,
        /// Bug: the native kernel `scal` leaves its ledger scope before it does any work.
        ScopeDropped => scal,
        /// Bug: the native kernel `axpy` enters the ledger scope of another kernel.
        ScopeOfAnotherKernel => axpy,
        /// Bug: a native kernel ignores the offset of its output and writes to the start of the
        /// buffer.
        OffsetIgnored => axpy,
        /// Bug: a native kernel writes its output one element after the operand's offset.
        OffsetOffByOne => axpy,
        /// Bug: a native kernel truncates the offset of its output to 16 bits.
        OffsetNarrow => scal,
        /// Bug: a native kernel writes one element past the end of its output.
        WritesPastEnd => scal,
        /// Bug: a native kernel writes the device side through a shared view, so the host side
        /// stays marked as valid.
        HostNotInvalidated => sharing,
        /// Bug: a kernel truncates operands of different lengths to the shorter length instead of
        /// returning an error.
        AcceptsAnyLength => alive_after_errors,
    ] $($rest)* } };
}
pub(super) use memory_bugs;
