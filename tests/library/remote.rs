//! Test device whose memory the host can access only by copies.

use cortado::{
    Element, Error, Memory, Result, View, ViewMut,
    kernel::{Blas, Conv, fallback},
    op::{Convolution, Unary},
};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

/// Test device without native kernels. The device counts fused convolutions, and can run a faulty
/// `axpy`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observed {
    pub(crate) fused_count: Arc<AtomicUsize>,
    pub(crate) axpy: Axpy,
}

/// Behaviour of `axpy` on an `Observed` device.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Axpy {
    #[default]
    Correct,
    /// `axpy` does nothing for lengths from 100 to 249, which only random cases have.
    SkipsSomeLengths,
    Panics,
    /// `axpy` never returns.
    Hangs,
}

impl Memory for Observed {
    type Buffer = Vec<u8>;

    fn name(&self) -> String {
        "remote".into()
    }
    fn alloc(&self, bytes: usize) -> Result<Vec<u8>> {
        let mut buffer = Vec::new();
        buffer
            .try_reserve_exact(bytes)
            .map_err(|_| Error::OutOfMemory { device: self.name(), bytes })?;
        buffer.resize(bytes, 0);
        Ok(buffer)
    }
    fn upload(&self, src: &[u8], dst: &mut Vec<u8>, at: usize) -> Result<()> {
        dst[at..at + src.len()].copy_from_slice(src);
        Ok(())
    }
    fn download(&self, src: &Vec<u8>, at: usize, dst: &mut [u8]) -> Result<()> {
        dst.copy_from_slice(&src[at..at + dst.len()]);
        Ok(())
    }
}

impl Blas for Observed {
    fn axpy<T: Element>(
        &self,
        alpha: T::Acc,
        x: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        match self.axpy {
            Axpy::SkipsSomeLengths if (100..250).contains(&y.len()) => Ok(()),
            Axpy::Panics => panic!("injected panic"),
            Axpy::Hangs => loop {
                std::thread::park();
            },
            Axpy::Correct | Axpy::SkipsSomeLengths => fallback::axpy(self, alpha, x, y),
        }
    }
}

impl Conv for Observed {
    fn convolve_with_activation<T: Element>(
        &self,
        op: &Convolution,
        x: View<'_, T, Self>,
        filters: View<'_, T, Self>,
        bias: Option<View<'_, T, Self>>,
        function: Unary<T::Acc>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        self.fused_count.fetch_add(1, Relaxed);
        fallback::convolve_with_activation(self, op, x, filters, bias, function, y)
    }
}

cortado::families!(
    Observed: Elementwise, Reductions, Random, Pooling, Normalize, Losses, Indexing, Update
);
