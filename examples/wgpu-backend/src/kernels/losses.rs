//! Softmax loss and accuracy.
//!
//! The loss shaders detect labels that are neither a class number nor the ignored label. If a label
//! is invalid, the next wait for the stream, such as a download of the loss, returns an error.

use super::scratch::Scratch;
use crate::{
    device::WgpuDevice,
    kernel::{EACH, Kernel, Launch},
    kernel_errors::KernelError,
};
use cortado::{
    Element, Result, View, ViewMut,
    error::check_len,
    kernel::{Losses, fallback},
    op::{Accuracy, Axis, LossNormalization, SoftmaxLoss},
};

const LABELS: &str = include_str!("../shaders/labels.wgsl");
const MATH: &str = include_str!("../shaders/math.wgsl");

const LOSS: Kernel = Kernel {
    name: "softmax_loss",
    reads: &["x", "label"],
    writes: &["y", "error_flags: atomic<u32>"],
    scalars: &["extent", "inner", "has_ignored", "top_k", "ignored: f32", "divisor: f32"],
    body: &[LABELS, MATH, include_str!("../shaders/softmax_loss.wgsl"), OVER_LABELS],
};

/// WGSL entry point that computes two sums over all labels in one loop.
const OVER_LABELS: &str = include_str!("../shaders/over_labels.wgsl");

const ACCURACY: Kernel = Kernel {
    name: "accuracy",
    body: &[LABELS, include_str!("../shaders/accuracy.wgsl"), OVER_LABELS],
    ..LOSS
};

/// Kernel that computes the divisor by which a loss is normalized, and checks the labels.
const DIVISOR: Kernel = Kernel {
    name: "divisor",
    reads: &["label"],
    body: &[LABELS, include_str!("../shaders/divisor.wgsl"), OVER_LABELS],
    ..LOSS
};

const BACKWARD: Kernel = Kernel {
    name: "softmax_loss_backward",
    reads: &["x", "label", "scale", "divided_by"],
    body: &[LABELS, include_str!("../shaders/softmax_loss_backward.wgsl"), EACH],
    ..LOSS
};

/// Adds the scalars of a loss kernel to a launch. With a `divisor` of 0, the kernel divides by the
/// number of labels that are not ignored.
fn scalars<'d>(
    launch: Launch<'d>,
    axis: &Axis,
    ignore: Option<i64>,
    top_k: usize,
    divisor: f32,
) -> Launch<'d> {
    // If `f32` cannot represent the ignored label, no label can be equal to the ignored label.
    let ignored_label = ignore.map(|ignore| ignore as f32).filter(|&i| Some(i as i64) == ignore);
    launch
        .sizes([axis.extent, axis.inner, usize::from(ignored_label.is_some()), top_k])
        .floats([ignored_label.unwrap_or(0.0), divisor])
}

/// Returns the divisor of a softmax loss for [`scalars`]: 0 if the loss is divided by the number of
/// labels that are not ignored.
fn divisor(op: &SoftmaxLoss) -> f32 {
    match op.normalization {
        LossNormalization::Valid => 0.0,
        _ => op.divisor(0) as f32,
    }
}

impl Losses for WgpuDevice {
    fn softmax_loss<T: Element>(
        &self,
        op: &SoftmaxLoss,
        p: View<'_, T, Self>,
        label: View<'_, T, Self>,
        mut loss: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(_scope) = self.native::<T>("softmax_loss") else {
            return fallback::softmax_loss(self, op, p, label, loss);
        };
        check_len("softmax_loss", "p", op.axis.count(), p.len())?;
        check_len("softmax_loss", "label", op.axis.reduced_count(), label.len())?;
        check_len("softmax_loss", "loss", 1, loss.len())?;
        let launch = LOSS.on(self).read(p.device()?).read(label.device()?);
        let launch = launch.write(loss.device_write_only()?).error_flag(KernelError::Label);
        scalars(launch, &op.axis, op.ignore, 0, divisor(op)).one_group(label.len())
    }

    fn softmax_loss_backward<T: Element>(
        &self,
        op: &SoftmaxLoss,
        p: View<'_, T, Self>,
        label: View<'_, T, Self>,
        scale: View<'_, T, Self>,
        mut dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        const OP: &str = "softmax_loss_backward";
        let Some(_scope) = self.native::<T>(OP) else {
            return fallback::softmax_loss_backward(self, op, p, label, scale, dx);
        };
        check_len(OP, "p", op.axis.count(), p.len())?;
        check_len(OP, "label", op.axis.reduced_count(), label.len())?;
        check_len(OP, "scale", 1, scale.len())?;
        check_len(OP, "dx", op.axis.count(), dx.len())?;
        let divisor_buffer = Scratch::new(self, 1)?;
        let launch = DIVISOR.on(self).read(label.device()?).operand(&divisor_buffer, 0);
        let launch = launch.error_flag(KernelError::Label);
        scalars(launch, &op.axis, op.ignore, 0, divisor(op)).one_group(label.len())?;
        let launch = BACKWARD.on(self).read(p.device()?).read(label.device()?);
        let launch = launch.read(scale.device()?).operand(&divisor_buffer, 0);
        let launch = launch.write(dx.device_write_only()?).error_flag(KernelError::Label);
        scalars(launch, &op.axis, op.ignore, 0, 0.0).each(op.axis.count())
    }

    fn accuracy<T: Element>(
        &self,
        op: &Accuracy,
        scores: View<'_, T, Self>,
        label: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(_scope) = self.native::<T>("accuracy") else {
            return fallback::accuracy(self, op, scores, label, y);
        };
        check_len("accuracy", "scores", op.axis.count(), scores.len())?;
        check_len("accuracy", "label", op.axis.reduced_count(), label.len())?;
        check_len("accuracy", "y", 1, y.len())?;
        let launch = ACCURACY.on(self).read(scores.device()?).read(label.device()?);
        let launch = launch.write(y.device_write_only()?).error_flag(KernelError::Label);
        let top_k = op.top_k.min(op.axis.extent);
        scalars(launch, &op.axis, op.ignore, top_k, 0.0).one_group(label.len())
    }
}
