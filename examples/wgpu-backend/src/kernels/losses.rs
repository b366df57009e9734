//! Losses and measures.
//!
//! A label that is no class is an error that the device finds out: it turns up when somebody next
//! waits for the device, as the loss itself does.

use super::scratch::Scratch;
use crate::{
    complaints::Complaint,
    device::WgpuDevice,
    kernel::{EACH, Kernel, Launch},
};
use cortado::{
    Element, Result, View, ViewMut,
    error::expect_len,
    kernel::{Losses, fallback},
    op::{Accuracy, Axis, LossNormalization, SoftmaxLoss},
};

const LABELS: &str = include_str!("../shaders/labels.wgsl");
const MATH: &str = include_str!("../shaders/math.wgsl");

const LOSS: Kernel = Kernel {
    name: "softmax_loss",
    reads: &["x", "label"],
    writes: &["y", "complaints: atomic<u32>"],
    scalars: &["extent", "inner", "has_ignored", "top_k", "ignored: f32", "divisor: f32"],
    body: &[LABELS, MATH, include_str!("../shaders/softmax_loss.wgsl"), ALL],
};

/// `main` of bodies that sum pairs of numbers over all labels.
const ALL: &str = include_str!("../shaders/over_labels.wgsl");

const ACCURACY: Kernel = Kernel {
    name: "accuracy",
    body: &[LABELS, include_str!("../shaders/accuracy.wgsl"), ALL],
    ..LOSS
};

/// What a summed loss is divided by, and whether labels are classes.
const DIVISOR: Kernel = Kernel {
    name: "divisor",
    reads: &["label"],
    body: &[LABELS, include_str!("../shaders/divisor.wgsl"), ALL],
    ..LOSS
};

const BACKWARD: Kernel = Kernel {
    name: "softmax_loss_backward",
    reads: &["x", "label", "scale", "divided_by"],
    body: &[LABELS, include_str!("../shaders/softmax_loss_backward.wgsl"), EACH],
    ..LOSS
};

/// The scalars; `divisor` is 0 if it is the number of labels that count.
fn scalars<'d>(
    launch: Launch<'d>,
    axis: &Axis,
    ignore: Option<i64>,
    top_k: usize,
    divisor: f32,
) -> Launch<'d> {
    // A label that single precision does not hold is never met.
    let ignored = ignore.map(|ignore| ignore as f32).filter(|&i| Some(i as i64) == ignore);
    launch
        .sizes([axis.extent, axis.inner, usize::from(ignored.is_some()), top_k])
        .floats([ignored.unwrap_or(0.0), divisor])
}

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
        let Some(_running) = self.native::<T>("softmax_loss") else {
            return fallback::softmax_loss(self, op, p, label, loss);
        };
        expect_len("softmax_loss", "p", op.axis.count(), p.len())?;
        expect_len("softmax_loss", "label", op.axis.rest(), label.len())?;
        expect_len("softmax_loss", "loss", 1, loss.len())?;
        let launch = LOSS.on(self).read(p.device()?).read(label.device()?);
        let launch = launch.write(loss.device_write_only()?).complaints(Complaint::Label);
        scalars(launch, &op.axis, op.ignore, 0, divisor(op)).once(label.len())
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
        let Some(_running) = self.native::<T>("softmax_loss_backward") else {
            return fallback::softmax_loss_backward(self, op, p, label, scale, dx);
        };
        expect_len(OP, "p", op.axis.count(), p.len())?;
        expect_len(OP, "label", op.axis.rest(), label.len())?;
        expect_len(OP, "scale", 1, scale.len())?;
        expect_len(OP, "dx", op.axis.count(), dx.len())?;
        let divided_by = Scratch::new(self, 1)?;
        let launch = DIVISOR.on(self).read(label.device()?).operand(&divided_by, 0);
        let launch = launch.complaints(Complaint::Label);
        scalars(launch, &op.axis, op.ignore, 0, divisor(op)).once(label.len())?;
        let launch = BACKWARD.on(self).read(p.device()?).read(label.device()?);
        let launch = launch.read(scale.device()?).operand(&divided_by, 0);
        let launch = launch.write(dx.device_write_only()?).complaints(Complaint::Label);
        scalars(launch, &op.axis, op.ignore, 0, 0.0).each(op.axis.count())
    }

    fn accuracy<T: Element>(
        &self,
        op: &Accuracy,
        scores: View<'_, T, Self>,
        label: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(_running) = self.native::<T>("accuracy") else {
            return fallback::accuracy(self, op, scores, label, y);
        };
        expect_len("accuracy", "scores", op.axis.count(), scores.len())?;
        expect_len("accuracy", "label", op.axis.rest(), label.len())?;
        expect_len("accuracy", "y", 1, y.len())?;
        let launch = ACCURACY.on(self).read(scores.device()?).read(label.device()?);
        let launch = launch.write(y.device_write_only()?).complaints(Complaint::Label);
        let top_k = op.top_k.min(op.axis.extent);
        scalars(launch, &op.axis, op.ignore, top_k, 0.0).once(label.len())
    }
}
