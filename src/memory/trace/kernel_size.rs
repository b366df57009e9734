//! The size of a kernel call: lengths of its operands, dimensions, bytes and floating-point operations.

use std::fmt::Write;

/// The size of a kernel call on an [`AnyDevice`](crate::AnyDevice).
///
/// ```
/// use cortado::{trace::{Trace, Work}, prelude::*};
///
/// let device = AnyDevice::new(&CpuDevice::new());
/// let a = Blob::<f32>::ones(&device, &[2, 3])?;
/// let b = Blob::<f32>::ones(&device, &[3, 5])?;
/// let trace = Trace::new();
/// let guard = trace.open();
/// matmul(&a, &b)?;
/// drop(guard);
/// let spans = trace.spans();
/// let size = spans.iter().find_map(|span| match &span.work {
///     Work::Kernel { call, size, .. } if call.name == "gemm" => size.as_ref(),
///     _ => None,
/// });
/// let size = size.unwrap();
/// assert_eq!((&*size.operands, size.bytes), ("a: 6, b: 15, c: 10", 4 * (6 + 15 + 10)));
/// assert_eq!((&*size.shape, size.flops), ("m: 2, n: 5, k: 3", Some(2 * 2 * 5 * 3)));
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelSize {
    /// Names and numbers of elements of the operands, such as `x: 600, y: 600`.
    pub operands: String,
    /// Names and values of the dimensions, such as `m: 2, n: 5, k: 3`; empty for kernels other than
    /// products with matrices, convolutions, im2col, col2im, pooling and softmax.
    pub shape: String,
    /// Number of bytes of operands that the kernel reads, plus the number that it writes. An
    /// operand that the kernel updates counts twice.
    pub bytes: u64,
    /// Number of floating-point operations; `None` for kernels other than matrix products and
    /// convolutions.
    pub flops: Option<u64>,
    /// Whether the output is also an input.
    is_in_place: bool,
}

impl KernelSize {
    /// Adds an operand of `len` elements of `size` bytes, each of which the kernel accesses
    /// `accesses` times.
    fn add(&mut self, name: &str, len: usize, size: usize, accesses: u64) {
        let separator = if self.operands.is_empty() { "" } else { ", " };
        // Writing to a string cannot fail.
        let _ = write!(self.operands, "{separator}{name}: {len}");
        let bytes = (len as u64).saturating_mul(size as u64).saturating_mul(accesses);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Adds an operand that the kernel reads.
    pub(crate) fn read(&mut self, name: &str, len: usize, size: usize) {
        self.add(name, len, size, 1);
    }

    /// Adds an operand that the kernel overwrites, or also reads if it runs in place.
    pub(crate) fn overwrite(&mut self, name: &str, len: usize, size: usize) {
        self.add(name, len, size, if self.is_in_place { 2 } else { 1 });
    }

    /// Adds an operand that the kernel reads and writes.
    pub(crate) fn update(&mut self, name: &str, len: usize, size: usize) {
        self.add(name, len, size, 2);
    }

    /// Records that the output is also an input.
    pub(crate) fn in_place(&mut self) {
        self.is_in_place = true;
    }
}
