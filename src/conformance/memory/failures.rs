//! Check of failures that the device injects: which call reports a failure, which kernel the error
//! names, which memory keeps its values, and whether the device works afterwards.

use crate::{
    conformance::{
        compare::expect_bits,
        failure::{CaseFailure, Verdict, flaw},
        memory::{
            errors::expect_usable,
            failing::{Kernel, NOT_INJECTED, expect_named, failed, native_kernel, operand},
        },
        operand::Operand,
        runner::CheckRunner,
        values::byte_pattern,
    },
    device::AnyDevice,
    error::{Error, Result},
    kernel::traits::*,
    memory::{AnyBuffer, FailureKind, Head, SyncedMemory, View},
};

/// Number of bytes of a copy that fails.
const BYTES: usize = 300;

/// Kernel that returns a number, so that its call waits for the queue.
#[derive(Debug)]
struct NumberKernel {
    name: &'static str,
    call: fn(&AnyDevice, View<'_, f32, AnyDevice>) -> Result<f32>,
}

static NUMBER_KERNELS: [NumberKernel; 5] = [
    NumberKernel { name: "dot", call: |queue, x| queue.dot(x, x) },
    NumberKernel { name: "dot_strided", call: |queue, x| queue.dot_strided(2, x, 2, x, 1) },
    NumberKernel { name: "asum", call: |queue, x| queue.asum(x) },
    NumberKernel { name: "sumsq", call: |queue, x| queue.sumsq(x) },
    NumberKernel { name: "amax", call: |queue, x| queue.amax(x) },
];

/// Way to wait for a queue on which work has failed.
#[derive(Clone, Copy, Debug)]
enum Wait {
    Synchronize,
    DownloadOfOutput,
    DownloadOfOtherMemory,
    /// A kernel of [`NUMBER_KERNELS`], which does not use the memory of the failed work.
    Number(&'static NumberKernel),
    /// A wait for another queue, followed by a wait for the queue on which work failed.
    SynchronizeOfBothQueues,
    /// Like `SynchronizeOfBothQueues`, but the other queue is ordered after the queue on which work
    /// failed.
    OrderedQueue,
}

/// Returns all ways to wait for a queue.
fn waits() -> impl Iterator<Item = Wait> {
    let waits = [
        Wait::Synchronize,
        Wait::DownloadOfOutput,
        Wait::DownloadOfOtherMemory,
        Wait::SynchronizeOfBothQueues,
        Wait::OrderedQueue,
    ];
    waits.into_iter().chain(NUMBER_KERNELS.iter().map(Wait::Number))
}

pub(super) fn injected_failures(runner: &CheckRunner<'_>) -> Verdict {
    let (device, fork) = (runner.device, &runner.device.fork_queue()?);
    let kernel = native_kernel(device)?;
    let mut skipped_kinds = Vec::new();
    for kind in FailureKind::ALL {
        for (name, queue, other_queue) in [("the device", device, fork), ("a fork", fork, device)] {
            runner.start_step(format!("injected failure of the next {kind} on {name}"));
            let test = QueueUnderTest { queue, other_queue };
            let in_case = |CaseFailure(reason)| {
                flaw!("injected failure of the next {kind} on {name}: {reason}")
            };
            if !test.run(kind, kernel).map_err(in_case)? {
                skipped_kinds.push(kind.to_string());
                break;
            }
        }
    }
    if skipped_kinds.len() == FailureKind::ALL.len() {
        runner.skip(NOT_INJECTED.into());
    } else if !skipped_kinds.is_empty() {
        let reason =
            format!("the device cannot inject these failures: {}", skipped_kinds.join(", "));
        runner.skip(reason);
    }
    Ok(())
}

/// Memory that failed work does not use.
type OtherMemory = (AnyBuffer, Operand<f32>);

/// Queue on which operations fail, and another queue of the same device.
struct QueueUnderTest<'d> {
    queue: &'d AnyDevice,
    other_queue: &'d AnyDevice,
}

impl QueueUnderTest<'_> {
    /// Checks failures of the given kind. Returns false if the device does not inject failures of
    /// this kind.
    fn run(&self, kind: FailureKind, kernel: Option<&Kernel>) -> Verdict<bool> {
        self.synchronize()?;
        match (kind, kernel) {
            (FailureKind::Alloc, _) => self.alloc(),
            (FailureKind::Upload, _) => self.upload(),
            (FailureKind::Download, _) => self.download(),
            (FailureKind::Launch, Some(kernel)) => self.launch(kernel),
            (FailureKind::QueuedKernel, Some(kernel)) => {
                let test_wait = |wait| self.queued_kernel(kernel, wait);
                self.for_all_waits(test_wait)
            }
            (FailureKind::QueuedUpload, _) => self.for_all_waits(|wait| self.queued_upload(wait)),
            (_, None) => Ok(false),
        }
    }

    fn synchronize(&self) -> Result<()> {
        self.queue.synchronize()?;
        self.other_queue.synchronize()
    }

    fn for_all_waits(&self, test: impl Fn(Wait) -> Verdict<bool>) -> Verdict<bool> {
        for wait in waits() {
            let in_case = |flaw: CaseFailure| flaw.in_case("wait", &wait);
            if !test(wait).map_err(in_case)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Fails unless both queues work and have no further error.
    fn expect_usable(&self) -> Verdict {
        for (name, queue) in [("this queue", self.queue), ("the other queue", self.other_queue)] {
            let check_queue = || {
                queue.synchronize()?;
                expect_usable(queue)?;
                let mut bytes = [0; 3];
                let mut buffer = queue.alloc(4)?;
                queue.upload(&[1, 2, 3], &mut buffer, 1)?;
                queue.download(&buffer, 1, &mut bytes)?;
                expect_bits("byte of a copy", &bytes, &[1, 2, 3])
            };
            check_queue().map_err(|CaseFailure(reason)| {
                flaw!("after the failure was reported, {name} does not work: {reason}")
            })?;
        }
        Ok(())
    }

    fn inject(&self, kind: FailureKind) -> Verdict {
        self.synchronize()?;
        match self.queue.inject_failure(kind) {
            true => Ok(()),
            false => Err(flaw!("`inject_failure` returned false after it had returned true")),
        }
    }

    /// Returns a buffer with the given bytes.
    fn buffer(&self, bytes: &[u8]) -> Verdict<AnyBuffer> {
        let mut buffer = self.queue.alloc(bytes.len())?;
        self.queue.upload(bytes, &mut buffer, 0)?;
        self.synchronize()?;
        Ok(buffer)
    }

    fn expect_bytes(&self, name: &str, buffer: &AnyBuffer, want: &[u8]) -> Verdict {
        let mut got = vec![0; want.len()];
        self.queue.download(buffer, 0, &mut got)?;
        expect_bits(name, &got, want)
    }

    /// Returns memory that the failed work does not use.
    fn other_memory(&self) -> Verdict<OtherMemory> {
        Ok((self.buffer(&byte_pattern(4, BYTES))?, operand(self.queue, 1.0)?))
    }

    fn expect_unchanged(&self, (buffer, operand): &OtherMemory) -> Verdict {
        operand.unchanged("other memory")?;
        self.expect_bytes("byte of other memory", buffer, &byte_pattern(4, BYTES))
    }

    fn alloc(&self) -> Verdict<bool> {
        if !self.queue.inject_failure(FailureKind::Alloc) {
            return Ok(false);
        }
        let error = failed(self.queue.alloc(BYTES), "`alloc`")?;
        if !matches!(error.root(), Error::OutOfMemory { bytes: BYTES, .. }) {
            return Err(flaw!("`alloc` of {BYTES} bytes returned another error: {error}"));
        }
        self.expect_usable()?;
        let want = byte_pattern(1, BYTES);
        let mut memory = SyncedMemory::new(self.queue, BYTES);
        memory.host_write_only()?.copy_from_slice(&want);
        if self.queue.host_mapping().is_none() {
            self.inject(FailureKind::Alloc)?;
            failed(memory.device(), "`SyncedMemory::device`")?;
        }
        self.expect_side(&memory, Head::HeadAtHost, &want)?;
        Ok(true)
    }

    fn upload(&self) -> Verdict<bool> {
        let (old, new) = (byte_pattern(1, BYTES), byte_pattern(2, BYTES));
        let mut buffer = self.buffer(&old)?;
        if !self.queue.inject_failure(FailureKind::Upload) {
            return Ok(false);
        }
        failed(self.queue.upload(&new, &mut buffer, 0), "`upload`")?;
        self.expect_bytes("byte after a failed upload", &buffer, &old)?;
        self.queue.upload(&new, &mut buffer, 0)?;
        self.expect_bytes("byte after a second upload", &buffer, &new)?;
        self.expect_usable()?;
        let mut memory = SyncedMemory::new(self.queue, BYTES);
        memory.host_write_only()?.copy_from_slice(&new);
        if self.queue.host_mapping().is_none() {
            self.inject(FailureKind::Upload)?;
            failed(memory.device(), "`SyncedMemory::device`")?;
        }
        self.expect_side(&memory, Head::HeadAtHost, &new)?;
        Ok(true)
    }

    fn download(&self) -> Verdict<bool> {
        let want = byte_pattern(3, BYTES);
        let buffer = self.buffer(&want)?;
        if !self.queue.inject_failure(FailureKind::Download) {
            return Ok(false);
        }
        failed(self.queue.download(&buffer, 0, &mut [0; BYTES]), "`download`")?;
        self.expect_bytes("byte after a failed download", &buffer, &want)?;
        self.expect_usable()?;
        let mut memory = SyncedMemory::new(self.queue, BYTES);
        self.queue.upload(&want, memory.device_write_only()?, 0)?;
        if self.queue.host_mapping().is_none() {
            self.inject(FailureKind::Download)?;
            failed(memory.host(), "`SyncedMemory::host`")?;
            self.expect_side(&memory, Head::HeadAtDevice, &want)?;
        }
        Ok(true)
    }

    /// Fails unless the memory has the given valid sides and the given bytes on both sides.
    fn expect_side(&self, memory: &SyncedMemory<AnyDevice>, head: Head, want: &[u8]) -> Verdict {
        if memory.head() != head {
            return Err(flaw!("a failed call changed `Head` from {head:?} to {:?}", memory.head()));
        }
        expect_bits("byte on the host", memory.host()?, want)?;
        self.expect_bytes("byte on the device", memory.device()?, want)
    }

    fn launch(&self, kernel: &Kernel) -> Verdict<bool> {
        let (x, mut y) = (operand(self.queue, 2.0)?, operand(self.queue, 3.0)?);
        self.synchronize()?;
        if !self.queue.inject_failure(FailureKind::Launch) {
            return Ok(false);
        }
        let error = failed((kernel.call)(self.queue, &x, &mut y), kernel.name)?;
        expect_named(&error, kernel)?;
        self.synchronize()?;
        x.unchanged("x")?;
        y.unchanged("y")?;
        (kernel.call)(self.queue, &x, &mut y)?;
        expect_bits("y after a second launch", &y.values()?, &[kernel.result; 4])?;
        self.expect_usable()?;
        Ok(true)
    }

    fn queued_kernel(&self, kernel: &Kernel, wait: Wait) -> Verdict<bool> {
        let (x, mut y) = (operand(self.queue, 2.0)?, operand(self.queue, 3.0)?);
        let other_memory = self.other_memory()?;
        if !self.queue.inject_failure(FailureKind::QueuedKernel) {
            return Ok(false);
        }
        let call_result = (kernel.call)(self.queue, &x, &mut y);
        let error = match call_result {
            Err(error) => error,
            Ok(()) => self.reported(wait, &other_memory, || y.view()?.host().map(drop))?,
        };
        expect_named(&error, kernel)?;
        self.expect_usable()?;
        x.unchanged("x")?;
        self.expect_unchanged(&other_memory)?;
        // The failure leaves the kernel's output unspecified, so the check overwrites the output.
        y.view_mut()?.host_write_only()?.fill(3.0);
        (kernel.call)(self.queue, &x, &mut y)?;
        expect_bits("y after a second call", &y.values()?, &[kernel.result; 4])?;
        Ok(true)
    }

    fn queued_upload(&self, wait: Wait) -> Verdict<bool> {
        let (old, new) = (byte_pattern(1, BYTES), byte_pattern(2, BYTES));
        let (mut buffer, other_memory) = (self.buffer(&old)?, self.other_memory()?);
        if !self.queue.inject_failure(FailureKind::QueuedUpload) {
            return Ok(false);
        }
        if self.queue.upload(&new, &mut buffer, 0).is_ok() {
            let download = || self.queue.download(&buffer, 0, &mut [0; BYTES]);
            self.reported(wait, &other_memory, download)?;
        }
        self.expect_usable()?;
        self.expect_unchanged(&other_memory)?;
        self.queue.upload(&new, &mut buffer, 0)?;
        self.expect_bytes("byte after a second upload", &buffer, &new)?;
        Ok(true)
    }

    /// Waits for the queue, and returns the error that the wait must report.
    fn reported(
        &self,
        wait: Wait,
        (buffer, operand): &OtherMemory,
        download_output: impl FnOnce() -> Result<()>,
    ) -> Verdict<Error> {
        let Self { queue, other_queue } = self;
        match wait {
            Wait::Synchronize => failed(queue.synchronize(), "`synchronize`"),
            Wait::DownloadOfOutput => failed(download_output(), "a download of the output"),
            Wait::DownloadOfOtherMemory => {
                let download = queue.download(buffer, 0, &mut [0; BYTES]);
                failed(download, "a download of other memory")
            }
            Wait::Number(NumberKernel { name, call }) => {
                failed(call(queue, operand.view()?), &format!("`{name}` of other memory"))
            }
            Wait::SynchronizeOfBothQueues => {
                // By default, a fork shares the queue of its device, so the wait for the other
                // queue may return the error, too.
                let first_wait = other_queue.synchronize();
                failed(first_wait.and_then(|()| queue.synchronize()), "`synchronize` of the queue")
            }
            Wait::OrderedQueue => {
                let first_wait =
                    other_queue.order_after(queue).and_then(|()| other_queue.synchronize());
                let second_wait = queue.synchronize();
                failed(first_wait.and(second_wait), "`synchronize` of the queue")
            }
        }
    }
}
