//! Launches of kernels.

use super::{
    CudaBuffer, CudaDevice,
    error::PendingLaunch,
    kernel_errors::KernelError,
    module::{self, Function, PtxKernel},
};
use crate::{
    element::{Element, Storable},
    error::{Error, Result},
    ledger,
    memory::{DeviceSlice, DeviceSliceMut, Memory, Src, ViewMut},
};
use cust::sys::cuLaunchKernel;
use std::{ffi::c_void, marker::PhantomData, panic::Location, ptr};

/// Threads of a block, unless a launch says otherwise.
pub(super) const THREADS: u32 = 256;

/// Blocks of a grid for each multiprocessor, of which it runs some at once: those that there are
/// go on with what is left.
const BLOCKS: usize = 32;

/// A kernel about to be launched: arguments are given in the order of its parameters.
///
/// Operands are borrowed until it is launched, and memory is given back in the order of queues,
/// so that they live as long as it runs. Each argument has the size that the PTX declares.
#[must_use = "a kernel runs when a grid is given"]
pub(super) struct Launch<'a> {
    device: &'a CudaDevice,
    kernel: &'static PtxKernel,
    function: Function,
    /// The arguments, each from a multiple of eight bytes.
    words: Vec<u64>,
    /// Where each begins in `words`.
    starts: Vec<usize>,
    site: &'static Location<'static>,
    /// While operands are asked for.
    _account: ledger::KernelScope,
    operands: PhantomData<&'a CudaBuffer>,
}

impl CudaDevice {
    /// The kernel `{name}_{dtype}`, on an account of that name.
    #[track_caller]
    pub(super) fn kernel<T: Element>(&self, name: &'static str) -> Result<Launch<'_>> {
        self.variant::<T>(name, name)
    }

    /// The kernel `{symbol}_{dtype}`, on the account of `name`.
    #[track_caller]
    pub(super) fn variant<T: Element>(
        &self,
        name: &'static str,
        symbol: &str,
    ) -> Result<Launch<'_>> {
        let account = ledger::enter_kernel(name, T::DTYPE.name());
        self.symbol(account, &format!("{symbol}_{}", T::DTYPE.name()))
    }

    /// The kernel called `symbol`, on an account that is open.
    #[track_caller]
    pub(super) fn symbol(&self, account: ledger::KernelScope, symbol: &str) -> Result<Launch<'_>> {
        let site = Location::caller();
        let none = || Error::device(&*self.context().name, format!("there is no kernel {symbol}"));
        let kernel = module::find(symbol).ok_or_else(none)?;
        let context = self.context();
        context.enter()?;
        let function =
            context.modules.function(kernel).map_err(|failure| context.error(failure))?;
        Ok(Launch {
            device: self,
            kernel,
            function,
            words: Vec::with_capacity(12),
            starts: Vec::with_capacity(12),
            site,
            _account: account,
            operands: PhantomData,
        })
    }

    /// Room for `len` values between two launches, of any content.
    pub(super) fn scratch<T: Storable>(&self, len: usize) -> Result<CudaBuffer> {
        CudaBuffer::new(&self.stream, len.saturating_mul(size_of::<T>()))
    }

    /// The first values of a buffer, once all queued work is done: a kernel's result.
    #[track_caller]
    pub(super) fn fetch<T: Storable, const N: usize>(&self, from: &CudaBuffer) -> Result<[T; N]> {
        let mut values = [T::zeroed(); N];
        let bytes = bytemuck::cast_slice_mut(&mut values);
        ledger::record_transfer(self, ledger::EventKind::Download, bytes.len(), || {
            self.download(from, 0, bytes)
        })?;
        Ok(values)
    }
}

impl<'a> Launch<'a> {
    /// The next argument: a number, or a structure laid out as in C.
    pub(super) fn arg<P: Storable>(mut self, value: P) -> Self {
        let start = self.words.len();
        self.starts.push(start);
        self.words.resize(start + size_of::<P>().div_ceil(8), 0);
        bytemuck::cast_slice_mut(&mut self.words[start..])[..size_of::<P>()]
            .copy_from_slice(bytemuck::bytes_of(&value));
        self
    }

    /// The next argument, a `size_t`.
    pub(super) fn size(self, value: usize) -> Self {
        self.arg(value as u64)
    }

    /// The next arguments, each a `size_t`.
    pub(super) fn sizes<const N: usize>(self, values: [usize; N]) -> Self {
        values.into_iter().fold(self, Self::size)
    }

    /// The next operand, which is read.
    pub(super) fn read(self, x: DeviceSlice<'a, CudaDevice>) -> Self {
        self.operand(x.buffer, x.offset)
    }

    /// The next operand, which is written.
    pub(super) fn write(self, y: DeviceSliceMut<'a, CudaDevice>) -> Self {
        self.operand(y.buffer, y.offset)
    }

    /// The next operand: a buffer from a byte on.
    pub(super) fn operand(self, buffer: &'a CudaBuffer, offset: usize) -> Self {
        let address = buffer.used_by(&self.device.stream);
        self.arg(if buffer.is_empty() { 0 } else { address + offset as u64 })
    }

    /// The next two operands: an input and an output that is overwritten, which may be the same.
    #[track_caller]
    pub(super) fn src_dst<T: Element>(
        self,
        x: Src<'a, T, CudaDevice>,
        y: &'a mut ViewMut<'_, T, CudaDevice>,
    ) -> Result<Self> {
        match x {
            Src::View(x) => Ok(self.read(x.device()?).write(y.device_write_only()?)),
            Src::InPlace => {
                let y = y.device_mut()?;
                let (buffer, offset) = (&*y.buffer, y.offset);
                Ok(self.operand(buffer, offset).operand(buffer, offset))
            }
        }
    }

    /// The next operand, which there is none of: null.
    pub(super) fn none(self) -> Self {
        self.size(0)
    }

    /// The next operand: where to complain of values.
    pub(super) fn complaint(self, kind: KernelError) -> Result<Self> {
        let address = self.device.stream.complaints()?.address(kind);
        Ok(self.arg(address))
    }

    /// For `n` items, one or more a thread; nothing happens if there are none.
    pub(super) fn grid_1d(self, n: usize) -> Result<()> {
        self.blocks(n.div_ceil(THREADS as usize), THREADS)
    }

    /// On `blocks` blocks of so many threads, or on fewer that go on with what is left; nothing
    /// happens if there are none.
    pub(super) fn blocks(self, blocks: usize, threads: u32) -> Result<()> {
        let most = self.most_blocks();
        self.grid([blocks.min(most), 1, 1], [threads, 1, 1])
    }

    /// For the elements of `rows` × `columns`, with the last argument of kernels that use
    /// `kernels/rows.cuh`: how many threads lie side by side in a row.
    pub(super) fn grid_2d(self, rows: usize, columns: usize) -> Result<()> {
        let most = self.most_blocks();
        let span = match columns {
            // A warp wastes less of a row's end than a block does.
            0..=64 => columns.max(1),
            65..1024 => 32,
            _ => THREADS as usize,
        };
        let across = columns.div_ceil(span).min(most);
        let down = rows.div_ceil(THREADS as usize / span);
        let down = down.min(most.div_ceil(across.max(1))).min(65535);
        self.arg(span as u32).grid([across, down, 1], [THREADS, 1, 1])
    }

    /// As [`over`](Self::over) for kernels that move 16 bytes at a time where rows can be cut so.
    pub(super) fn over_packs<T: Element>(self, rows: usize, columns: usize) -> Result<()> {
        let pack = 16 / size_of::<T>();
        self.grid_2d(rows, if columns.is_multiple_of(pack) { columns / pack } else { columns })
    }

    /// Blocks of a grid that are worth it.
    fn most_blocks(&self) -> usize {
        BLOCKS * self.device.context().multiprocessors
    }

    /// On a grid of blocks of threads; nothing happens if there are none.
    pub(super) fn grid(mut self, blocks: [usize; 3], threads: [u32; 3]) -> Result<()> {
        if blocks.contains(&0) {
            return Ok(());
        }
        let context = self.device.context();
        let kernel = self.kernel;
        let wrong = |why: String| Error::device(&*context.name, format!("{}: {why}", kernel.name));
        let most = [i32::MAX as usize, 65535, 65535];
        if blocks.iter().zip(most).any(|(blocks, most)| *blocks > most) {
            return Err(wrong(format!("a grid of {blocks:?} blocks is too large")));
        }
        let [gx, gy, gz] = blocks.map(|blocks| blocks as u32);
        let [bx, by, bz] = threads;
        if !self.fits() {
            let given = format!(
                "{} arguments of other sizes than {:?}",
                self.starts.len(),
                kernel.parameters
            );
            return Err(wrong(given));
        }
        context.enter()?;
        let words = &mut self.words;
        let mut arguments: Vec<*mut c_void> =
            self.starts.iter().map(|start| (&raw mut words[*start]).cast()).collect();
        context
            .launches
            .add(self.device.stream.raw(), PendingLaunch { kernel: kernel.name, site: self.site });
        // SAFETY: there is an argument of the right size for each parameter, copied during the
        // call. What kernels do with operands is for this module to get right: it gives them
        // views of at least as many elements as it tells them.
        let launched = unsafe {
            cuLaunchKernel(
                self.function.0,
                gx,
                gy,
                gz,
                bx,
                by,
                bz,
                0,
                self.device.stream.raw(),
                arguments.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        context.check(kernel.name, launched)?;
        if context.synchronous { self.device.stream.wait() } else { Ok(()) }
    }

    /// Whether the arguments are as the PTX declares them, rounded up to eight bytes.
    fn fits(&self) -> bool {
        let ends = self.starts.iter().copied().skip(1).chain([self.words.len()]);
        let sizes = self.starts.iter().zip(ends).map(|(start, end)| end - start);
        sizes.eq(self.kernel.parameters.iter().map(|bytes| bytes.div_ceil(8)))
    }
}
