//! The launch of a kernel: resolves operands to device regions and queues the host function.

use super::{
    SimulatedDevice,
    buffer::{ReadElements, Region, WriteElements},
    fault::Fault,
    queue::Job,
    state::DeviceState,
};
use crate::{
    element::Storable,
    error::Result,
    host::Workers,
    memory::{
        DeviceWork, Memory, View, ViewMut,
        ledger::{self, EventKind, KernelCall, KernelScope},
    },
    sync::Mutex,
};
use std::{marker::PhantomData, mem, sync::Arc};

/// A kernel that is about to be queued. `Launch` converts the views of a call to operands that the
/// queued closure can own. The queued closure owns the operands, and locks them when it runs.
pub(super) struct Launch<'d> {
    device: &'d SimulatedDevice,
    kernel: KernelCall,
    outputs: Vec<Region>,
    /// Ledger scope that attributes the uploads of operands to the kernel.
    _scope: KernelScope,
}

/// Closure that calls a host function, and owns the function's operands.
pub(super) type HostCall = Box<dyn FnOnce(&Workers) -> Result<()> + Send>;

/// An operand that the kernel reads.
pub(super) struct Input<T>(Region, PhantomData<fn() -> T>);

/// An operand that the kernel writes.
pub(super) struct Output<T>(Region, PhantomData<fn(T)>);

impl<T: Storable> Input<T> {
    pub(super) fn read(&self) -> ReadElements<'_, T> {
        self.0.read()
    }
}

impl<T: Storable> Output<T> {
    pub(super) fn write(&self) -> WriteElements<'_, T> {
        self.0.write()
    }
}

impl<'d> Launch<'d> {
    /// Starts a launch of a kernel whose operands the caller has checked.
    ///
    /// # Errors
    /// Fails, before any operand is transferred, if an injected [`Fault::Launch`] occurs.
    #[track_caller]
    pub(super) fn new(
        device: &'d SimulatedDevice,
        kernel: &'static str,
        element: &'static str,
    ) -> Result<Self> {
        if device.state.faults.occurs(Fault::Launch) {
            let what = format!("launch of {kernel} of {element}: injected fault");
            return Err(DeviceState::error(what));
        }
        let kernel = KernelCall::new(kernel, element);
        Ok(Self { device, kernel, outputs: Vec::new(), _scope: kernel.enter() })
    }

    /// Adds an operand that the kernel reads.
    #[track_caller]
    pub(super) fn reads<T: Storable>(
        &mut self,
        x: View<'_, T, SimulatedDevice>,
    ) -> Result<Input<T>> {
        let slice = x.device()?;
        Ok(Input(slice.buffer.region(slice.offset, slice.bytes)?, PhantomData))
    }

    /// Adds an operand that the kernel reads and writes, or writes only in part.
    #[track_caller]
    pub(super) fn updates<T: Storable>(
        &mut self,
        y: ViewMut<'_, T, SimulatedDevice>,
    ) -> Result<Output<T>> {
        self.overwrites_if(false, y)
    }

    /// Adds an operand that the kernel overwrites.
    #[track_caller]
    pub(super) fn overwrites<T: Storable>(
        &mut self,
        y: ViewMut<'_, T, SimulatedDevice>,
    ) -> Result<Output<T>> {
        self.overwrites_if(true, y)
    }

    /// Adds an operand that the kernel overwrites if `is_overwritten` is true, and updates
    /// otherwise.
    #[track_caller]
    pub(super) fn overwrites_if<T: Storable>(
        &mut self,
        is_overwritten: bool,
        mut y: ViewMut<'_, T, SimulatedDevice>,
    ) -> Result<Output<T>> {
        let slice = if is_overwritten { y.device_write_only()? } else { y.device_mut()? };
        let region = slice.buffer.region(slice.offset, slice.bytes)?;
        self.outputs.push(region.clone());
        Ok(Output(region, PhantomData))
    }

    /// Queues the kernel. The kernel is a boxed closure, so that `queue` is compiled only once and
    /// not again for every kernel and element type.
    pub(super) fn queue(mut self, kernel: HostCall) -> Result<()> {
        self.enqueue(kernel);
        Ok(())
    }

    /// Queues the kernel, waits for it and returns its result.
    #[track_caller]
    pub(super) fn value<R: Send + 'static>(
        mut self,
        kernel: impl FnOnce(&Workers) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let device = self.device;
        let result = Arc::new(Mutex::new(None));
        let shared_result = Arc::clone(&result);
        ledger::record_transfer(device, EventKind::Download, size_of::<R>(), || {
            self.enqueue(Box::new(move |workers| {
                *shared_result.lock() = Some(kernel(workers)?);
                Ok(())
            }));
            device.synchronize()
        })?;
        let message =
            || format!("{}: failed; an earlier wait already returned the error", self.kernel);
        result.lock().take().ok_or_else(|| DeviceState::error(message()))
    }

    fn enqueue(&mut self, kernel: HostCall) {
        let SimulatedDevice { state, queue, workers } = self.device;
        let workers = workers.clone();
        state.count(|counters| counters.kernels += 1);
        let job = Job {
            work: DeviceWork::Kernel { call: self.kernel, function: self.kernel.name },
            outputs: mem::take(&mut self.outputs),
            staged_bytes: 0,
            body: Box::new(move || kernel(&workers)),
        };
        queue.push_job(state, job);
    }
}
