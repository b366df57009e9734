//! Launching kernels: what every override shares.

use super::{SimulatedDevice, buffer::Region, fault::Fault, state::DeviceState, queue::Job};
use crate::{
    element::Storable,
    error::Result,
    host::Workers,
    memory::{
        Memory, View, ViewMut,
        ledger::{self, EventKind, KernelCall, KernelScope},
    },
};
use parking_lot::{MappedRwLockReadGuard, MappedRwLockWriteGuard, Mutex};
use std::{marker::PhantomData, mem, sync::Arc};

/// A kernel about to be queued. Views become operands, which the kernel's closure owns and opens
/// when it runs.
pub(super) struct Launch<'d> {
    device: &'d SimulatedDevice,
    kernel: KernelCall,
    writes: Vec<Region>,
    /// Keeps the kernel's account open: operands may have to be copied.
    _account: KernelScope,
}

/// An operand to be read.
pub(super) struct Input<T>(Region, PhantomData<fn() -> T>);

/// An operand to be written.
pub(super) struct Output<T>(Region, PhantomData<fn(T)>);

impl<T: Storable> Input<T> {
    pub(super) fn read(&self) -> MappedRwLockReadGuard<'_, [T]> {
        self.0.read()
    }
}

impl<T: Storable> Output<T> {
    pub(super) fn write(&self) -> MappedRwLockWriteGuard<'_, [T]> {
        self.0.write()
    }
}

impl<'d> Launch<'d> {
    /// Begins a launch; operands have been checked.
    ///
    /// # Errors
    /// An injected [`Fault::Launch`], before any operand is touched.
    #[track_caller]
    pub(super) fn new(
        device: &'d SimulatedDevice,
        kernel: &'static str,
        element: &'static str,
    ) -> Result<Self> {
        if device.machine.faults.strikes(Fault::Launch) {
            return Err(DeviceState::failed(format!(
                "launch of {kernel} of {element}: injected fault"
            )));
        }
        let kernel = KernelCall::new(kernel, element);
        Ok(Self { device, kernel, writes: Vec::new(), _account: kernel.enter() })
    }

    /// An operand that is read.
    #[track_caller]
    pub(super) fn reads<T: Storable>(&self, x: View<'_, T, SimulatedDevice>) -> Result<Input<T>> {
        let slice = x.device()?;
        Ok(Input(slice.buffer.region(slice.offset, slice.bytes)?, PhantomData))
    }

    /// An operand that is read and written, or written in part.
    #[track_caller]
    pub(super) fn updates<T: Storable>(
        &mut self,
        mut y: ViewMut<'_, T, SimulatedDevice>,
    ) -> Result<Output<T>> {
        let slice = y.device_mut()?;
        self.output(slice.buffer.region(slice.offset, slice.bytes)?)
    }

    /// An operand that is overwritten.
    #[track_caller]
    pub(super) fn writes<T: Storable>(
        &mut self,
        mut y: ViewMut<'_, T, SimulatedDevice>,
    ) -> Result<Output<T>> {
        let slice = y.device_write_only()?;
        self.output(slice.buffer.region(slice.offset, slice.bytes)?)
    }

    /// An operand that is overwritten if `only`, else updated.
    #[track_caller]
    pub(super) fn writes_if<T: Storable>(
        &mut self,
        only: bool,
        y: ViewMut<'_, T, SimulatedDevice>,
    ) -> Result<Output<T>> {
        if only { self.writes(y) } else { self.updates(y) }
    }

    fn output<T>(&mut self, region: Region) -> Result<Output<T>> {
        self.writes.push(region.clone());
        Ok(Output(region, PhantomData))
    }

    /// Queues the kernel.
    pub(super) fn queue(
        mut self,
        kernel: impl FnOnce(&Workers) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        self.enqueue(kernel);
        Ok(())
    }

    /// Queues the kernel and brings its result to the host.
    #[track_caller]
    pub(super) fn value<R: Send + 'static>(
        mut self,
        kernel: impl FnOnce(&Workers) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let device = self.device;
        let result = Arc::new(Mutex::new(None));
        let place = Arc::clone(&result);
        ledger::record_transfer(device, EventKind::Download, size_of::<R>(), || {
            self.enqueue(move |workers| {
                *place.lock() = Some(kernel(workers)?);
                Ok(())
            });
            device.synchronize()
        })?;
        let lost = || format!("{}: another wait was told its failure", self.kernel);
        result.lock().take().ok_or_else(|| DeviceState::failed(lost()))
    }

    fn enqueue(&mut self, kernel: impl FnOnce(&Workers) -> Result<()> + Send + 'static) {
        let SimulatedDevice { machine, queue, workers } = self.device;
        let workers = workers.clone();
        machine.count(|counters| counters.kernels += 1);
        let job = Job {
            name: self.kernel.to_string(),
            writes: mem::take(&mut self.writes),
            staged: 0,
            body: Box::new(move || kernel(&workers)),
        };
        queue.job(machine, job);
    }
}
