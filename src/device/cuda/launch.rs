//! Launches of CUDA kernels, with checks of the arguments.

use super::{
    CudaBuffer, CudaDevice,
    kernel_errors::KernelError,
    kernel_launch::KernelLaunch,
    module::{Function, PtxKernel},
};
use crate::{
    element::{Element, Storable},
    error::{Error, Result},
    ledger,
    memory::{DeviceSlice, DeviceSliceMut, DeviceWork, Memory, Src, ViewMut},
};
use std::{marker::PhantomData, panic::Location};
use zerocopy::{Immutable, IntoBytes};

/// Default number of threads per block.
pub(super) const THREADS: u32 = 256;

/// Largest number of thread blocks in a grid, per multiprocessor of the GPU. If a grid has fewer
/// threads than items, the threads loop over the remaining items.
const BLOCKS_PER_MULTIPROCESSOR: usize = 32;

/// A kernel that is about to be launched. The caller adds arguments in the order of the
/// kernel's parameters.
///
/// Operands live until the kernel has run, because a `Launch` borrows its operands and the queue
/// frees memory after the launches that use the memory. The launch compares the size of each argument with the parameter
/// size that the PTX declares.
#[must_use = "call a grid method to launch the kernel"]
pub(super) struct Launch<'a> {
    device: &'a CudaDevice,
    kernel: &'static PtxKernel,
    function: Function,
    /// The kernel arguments, each aligned to eight bytes.
    argument_words: Vec<u64>,
    /// Index in `argument_words` at which each argument starts.
    starts: Vec<usize>,
    site: &'static Location<'static>,
    /// Whether the kernel reports invalid values.
    reports_values: bool,
    /// Ledger scope that attributes transfers of operands to the kernel.
    scope: ledger::KernelScope,
    operands: PhantomData<&'a CudaBuffer>,
}

impl CudaDevice {
    /// Prepares a launch of the kernel `{name}_{dtype}`, which the ledger records as `name`.
    #[track_caller]
    pub(super) fn kernel<T: Element>(&self, name: &'static str) -> Result<Launch<'_>> {
        self.variant::<T>(name, name)
    }

    /// Prepares a launch of the kernel `{symbol}_{dtype}`, which the ledger records as `name`.
    #[track_caller]
    pub(super) fn variant<T: Element>(
        &self,
        name: &'static str,
        symbol: &str,
    ) -> Result<Launch<'_>> {
        let scope = ledger::enter_kernel(name, T::DTYPE.name());
        self.symbol(scope, &format!("{symbol}_{}", T::DTYPE.name()))
    }

    /// Prepares a launch of the kernel called `symbol` within an open ledger scope.
    #[track_caller]
    pub(super) fn symbol(&self, scope: ledger::KernelScope, symbol: &str) -> Result<Launch<'_>> {
        let site = Location::caller();
        let unknown = || Error::device(&*self.context().name, format!("unknown kernel {symbol}"));
        let context = self.context();
        let kernel = context.modules.find(symbol).ok_or_else(unknown)?;
        context.enter()?;
        let function =
            context.modules.function(kernel).map_err(|failure| context.error(failure))?;
        Ok(Launch {
            device: self,
            kernel,
            function,
            argument_words: Vec::with_capacity(12),
            starts: Vec::with_capacity(12),
            site,
            reports_values: false,
            scope,
            operands: PhantomData,
        })
    }

    /// Allocates a device buffer of `len` uninitialized values, for results that one launch stores
    /// and the next launch reads.
    pub(super) fn scratch<T: Storable>(&self, len: usize) -> Result<CudaBuffer> {
        CudaBuffer::new(&self.stream, len.saturating_mul(size_of::<T>()))
    }

    /// Waits for queued work and downloads the first `N` values of a buffer.
    #[track_caller]
    pub(super) fn fetch<T: Storable, const N: usize>(&self, from: &CudaBuffer) -> Result<[T; N]> {
        let mut values = [T::zeroed(); N];
        let bytes = crate::cast::cast_slice_mut(&mut values);
        ledger::record_transfer(self, ledger::EventKind::Download, bytes.len(), || {
            self.download(from, 0, bytes)
        })?;
        Ok(values)
    }
}

impl<'a> Launch<'a> {
    /// Adds an argument: a number or a C-layout struct.
    pub(super) fn arg<P: IntoBytes + Immutable>(mut self, value: P) -> Self {
        let start = self.argument_words.len();
        self.starts.push(start);
        self.argument_words.resize(start + size_of::<P>().div_ceil(8), 0);
        crate::cast::cast_slice_mut(&mut self.argument_words[start..])[..size_of::<P>()]
            .copy_from_slice(value.as_bytes());
        self
    }

    /// Adds an argument of type `size_t`.
    pub(super) fn size(self, value: usize) -> Self {
        self.arg(value as u64)
    }

    /// Adds several arguments of type `size_t`.
    pub(super) fn sizes<const N: usize>(self, values: [usize; N]) -> Self {
        values.into_iter().fold(self, Self::size)
    }

    /// Adds an operand that the kernel reads.
    pub(super) fn read(self, x: DeviceSlice<'a, CudaDevice>) -> Self {
        self.operand(x.buffer, x.offset)
    }

    /// Adds an operand that the kernel writes.
    pub(super) fn write(self, y: DeviceSliceMut<'a, CudaDevice>) -> Self {
        self.operand(y.buffer, y.offset)
    }

    /// Adds an operand, which starts at byte `offset` of a buffer.
    pub(super) fn operand(self, buffer: &'a CudaBuffer, offset: usize) -> Self {
        let address = buffer.used_by(&self.device.stream);
        self.arg(if buffer.is_empty() { 0 } else { address + offset as u64 })
    }

    /// Adds an input operand and an output operand that the kernel overwrites, possibly in place.
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

    /// Adds a null pointer for an absent operand.
    pub(super) fn null(self) -> Self {
        self.size(0)
    }

    /// Adds the address of an error word, in which the kernel reports invalid values.
    pub(super) fn error_flag(self, kind: KernelError) -> Result<Self> {
        let flags = self.device.stream.error_flags()?;
        Ok(Self { reports_values: true, ..self }.arg(flags.address(kind)))
    }

    /// Launches the kernel with threads for `n` items; does nothing if `n` is 0.
    pub(super) fn grid_1d(self, n: usize) -> Result<()> {
        self.blocks(n.div_ceil(THREADS as usize), THREADS)
    }

    /// Launches the kernel in at most `blocks` blocks of `threads` threads; does nothing if
    /// `blocks` is 0. The blocks loop over any remaining work.
    pub(super) fn blocks(self, blocks: usize, threads: u32) -> Result<()> {
        let max_blocks = self.max_blocks();
        self.grid([blocks.min(max_blocks), 1, 1], [threads, 1, 1])
    }

    /// Launches the kernel with threads for `rows` × `columns` elements. Adds the last argument of
    /// kernels that use `kernels/rows.cuh`: the number of threads that share a row.
    pub(super) fn grid_2d(self, rows: usize, columns: usize) -> Result<()> {
        let max_blocks = self.max_blocks();
        let span = match columns {
            // At the end of a row, fewer threads stay idle if a warp processes the row than if a
            // block does.
            0..=64 => columns.max(1),
            65..1024 => 32,
            _ => THREADS as usize,
        };
        let blocks_x = columns.div_ceil(span).min(max_blocks);
        let blocks_y = rows.div_ceil(THREADS as usize / span);
        let blocks_y = blocks_y.min(max_blocks.div_ceil(blocks_x.max(1))).min(65535);
        self.arg(span as u32).grid([blocks_x, blocks_y, 1], [THREADS, 1, 1])
    }

    /// Like [`grid_2d`](Self::grid_2d), but for kernels that move 16 bytes at a time if the size of
    /// a row is a multiple of 16 bytes.
    pub(super) fn grid_2d_packs<T: Element>(self, rows: usize, columns: usize) -> Result<()> {
        let pack = 16 / size_of::<T>();
        self.grid_2d(rows, if columns.is_multiple_of(pack) { columns / pack } else { columns })
    }

    /// Returns the largest number of blocks in a grid; the threads loop over any remaining items.
    fn max_blocks(&self) -> usize {
        BLOCKS_PER_MULTIPROCESSOR * self.device.multiprocessors
    }

    /// Launches the kernel on a grid of blocks; does nothing if the grid has no blocks.
    pub(super) fn grid(self, blocks: [usize; 3], threads: [u32; 3]) -> Result<()> {
        if blocks.contains(&0) {
            return Ok(());
        }
        let context = self.device.context();
        let kernel = self.kernel;
        let error =
            |reason: String| Error::device(&*context.name, format!("{}: {reason}", kernel.name));
        let limits = [i32::MAX as usize, 65535, 65535];
        if blocks.iter().zip(limits).any(|(blocks, limit)| *blocks > limit) {
            return Err(error(format!("grid of {blocks:?} blocks exceeds {limits:?}")));
        }
        if !self.arguments_match() {
            let reason = format!(
                "the sizes of {} arguments do not match the parameter sizes {:?}",
                self.starts.len(),
                kernel.parameters
            );
            return Err(error(reason));
        }
        let launch = KernelLaunch {
            kernel,
            function: self.function,
            blocks: blocks.map(|blocks| blocks as u32),
            threads,
            argument_words: self.argument_words,
            starts: self.starts,
            work: DeviceWork::Kernel { call: self.scope.call(), function: kernel.name },
            site: self.site,
            reports_values: self.reports_values,
        };
        self.device.stream.launch(launch)?;
        if context.synchronous { self.device.stream.wait() } else { Ok(()) }
    }

    /// Returns whether each argument has the size that the PTX declares, rounded up to a multiple
    /// of eight bytes.
    fn arguments_match(&self) -> bool {
        let ends = self.starts.iter().copied().skip(1).chain([self.argument_words.len()]);
        let sizes = self.starts.iter().zip(ends).map(|(start, end)| end - start);
        sizes.eq(self.kernel.parameters.iter().map(|bytes| bytes.div_ceil(8)))
    }
}
