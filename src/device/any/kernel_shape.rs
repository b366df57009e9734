//! Shapes of kernel calls, which a trace records.

use crate::{
    element::Element,
    memory::trace::KernelSize,
    op::{Axis, Convolution, Gemm, GemmBatch, Gemv, Pool2d, SpatialAxis, Window},
};

/// Descriptor of a kernel whose shape and floating-point operations a trace records.
pub(super) trait KernelShape {
    /// Sets the shape in `size` and, for matrix products and convolutions, the number of
    /// floating-point operations.
    fn describe(&self, size: &mut KernelSize);
}

impl<T: Element> KernelShape for Gemm<T> {
    fn describe(&self, size: &mut KernelSize) {
        size.shape = format!("m: {}, n: {}, k: {}", self.m, self.n, self.k);
        size.flops = Some(self.flops());
    }
}

impl<T: Element> KernelShape for (&Gemm<T>, &GemmBatch) {
    fn describe(&self, size: &mut KernelSize) {
        let (op, GemmBatch { count, .. }) = self;
        size.shape = format!("batch: {count}, m: {}, n: {}, k: {}", op.m, op.n, op.k);
        size.flops = Some(op.flops().saturating_mul(*count as u64));
    }
}

impl<T: Element> KernelShape for Gemv<T> {
    fn describe(&self, size: &mut KernelSize) {
        size.shape = format!("m: {}, n: {}", self.m, self.n);
        size.flops = Some(2_u64.saturating_mul(self.m as u64).saturating_mul(self.n as u64));
    }
}

impl KernelShape for Convolution {
    fn describe(&self, size: &mut KernelSize) {
        self.window().describe(size);
        let (images, outputs, groups) = (self.batch(), self.outputs(), self.groups());
        let window = &size.shape;
        size.shape = format!("images: {images}, outputs: {outputs}, groups: {groups}, {window}");
        size.flops = Some(self.flops());
    }
}

impl KernelShape for Window {
    fn describe(&self, size: &mut KernelSize) {
        let extents = |of: fn(&SpatialAxis) -> usize| extents(self.axes().iter().map(of));
        size.shape = format!(
            "channels: {}, input: {}, kernel: {}, stride: {}, pad: {}, dilation: {}",
            self.channels(),
            extents(|axis| axis.input),
            extents(|axis| axis.kernel),
            extents(|axis| axis.stride),
            extents(|axis| axis.pad),
            extents(|axis| axis.dilation)
        );
    }
}

impl KernelShape for Pool2d {
    fn describe(&self, size: &mut KernelSize) {
        let [input, kernel, stride, pad] =
            [self.input, self.kernel, self.stride, self.pad].map(|e| extents(e.into_iter()));
        let planes = self.planes;
        size.shape = format!(
            "planes: {planes}, input: {input}, kernel: {kernel}, stride: {stride}, pad: {pad}"
        );
    }
}

impl KernelShape for Axis {
    fn describe(&self, size: &mut KernelSize) {
        let Self { outer, extent, inner } = self;
        size.shape = format!("outer: {outer}, extent: {extent}, inner: {inner}");
    }
}

/// Formats the extents of several axes, such as `28×28`.
fn extents(extents: impl Iterator<Item = usize>) -> String {
    extents.map(|extent| extent.to_string()).collect::<Vec<_>>().join("×")
}
