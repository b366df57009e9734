//! Losses and measures.
//!
//! A label that is no class is an error that the GPU finds out: it turns up when somebody next
//! waits for its queue, as the loss itself does.

use crate::{
    device::{
        CudaDevice,
        cuda::{CudaBuffer, kernel_errors::KernelError, launch::Launch},
    },
    element::Element,
    error::{Result, check_len},
    kernel::Losses,
    memory::{View, ViewMut},
    op::{
        Accuracy, Axis, ClassLoss, ClassLossKind, ElementwiseLoss, ElementwiseLossKind,
        LossNormalization, SoftmaxLoss,
    },
};
use bytemuck::{Pod, Zeroable};

/// Threads of a block that sums.
const THREADS: usize = 256;

/// Threads that share a label where each looks at all of its scores.
const WARP: usize = 32;

/// Most blocks that sum: the next launch joins their parts in one each.
const PARTS: usize = 256;

/// A sum, and how many went into it.
type Part = [f64; 2];

/// Labels as the kernels take them: `kernels/labels.cuh`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Labels {
    count: u64,
    extent: u64,
    inner: u64,
    ignored: f64,
    has_ignored: u64,
    /// What a sum is divided by; 0 for the number of labels that count.
    divisor: f64,
}

impl Labels {
    fn new(axis: &Axis, ignore: Option<i64>, divisor: f64) -> Self {
        Self {
            count: axis.reduced_count() as u64,
            extent: axis.extent as u64,
            inner: axis.inner as u64,
            ignored: ignore.map_or(0.0, |ignore| ignore as f64),
            has_ignored: u64::from(ignore.is_some()),
            divisor,
        }
    }
}

/// Pairs as the kernels take them: `kernels/elementwise_loss.cu`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Pairs {
    count: u64,
    divisor: f64,
    form: u32,
    has_ignored: u32,
}

/// What a sum is divided by; 0 if the number that counts has to be found out.
fn divisor(normalization: LossNormalization, [outer, inner]: [usize; 2]) -> f64 {
    match normalization {
        LossNormalization::Valid => 0.0,
        known => known.divisor(outer, inner, 0),
    }
}

fn labels(op: &SoftmaxLoss) -> Labels {
    let divisor = divisor(op.normalization, [op.axis.outer, op.axis.inner]);
    Labels::new(&op.axis, op.ignore, divisor)
}

fn class_labels(op: &ClassLoss) -> (Labels, u32) {
    let divisor = divisor(op.normalization, [op.axis.outer, op.axis.inner]);
    let form = match op.form {
        ClassLossKind::Log => 0,
        ClassLossKind::LogWithSoftmaxGradient => 1,
        ClassLossKind::Hinge => 2,
        ClassLossKind::SquaredHinge => 3,
    };
    (Labels::new(&op.axis, op.ignore, divisor), form)
}

/// The pairs, and their margin and the target that is ignored.
fn pairs<T: Element>(op: &ElementwiseLoss<T::Acc>) -> (Pairs, [T::Acc; 2]) {
    let none = T::acc(0.0);
    let (form, margin) = match op.form {
        ElementwiseLossKind::Squared => (0, none),
        ElementwiseLossKind::SigmoidCrossEntropy => (1, none),
        ElementwiseLossKind::Contrastive { margin } => (2, margin),
        ElementwiseLossKind::ContrastiveLegacy { margin } => (3, margin),
    };
    let count = op.batch * op.each;
    // Without one to ignore, every target counts.
    let divisor = match op.ignore {
        None => op.divisor(count),
        Some(_) => divisor(op.normalization, [op.batch, op.each]),
    };
    let has_ignored = u32::from(op.ignore.is_some());
    let ignored = op.ignore.map_or(none, |ignore| T::acc(ignore as f64));
    (Pairs { count: count as u64, divisor, form, has_ignored }, [margin, ignored])
}

/// Blocks that sum `n` items, each of so many threads.
fn blocks(n: usize, threads_each: usize) -> usize {
    n.saturating_mul(threads_each).div_ceil(THREADS).clamp(1, PARTS)
}

impl CudaDevice {
    /// Launches a kernel on so many blocks, whose arguments end with the parts that they sum and
    /// `y`, which becomes the sum divided.
    #[track_caller]
    fn mean<T: Element>(
        &self,
        name: &'static str,
        (launch, blocks): (Launch<'_>, usize),
        divisor: f64,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let parts = self.scratch::<Part>(if blocks > 1 { blocks } else { 0 })?;
        let launch = launch.operand(&parts, 0).write(y.device_write_only()?);
        launch.summing(blocks)?;
        if blocks == 1 {
            return Ok(());
        }
        let launch = self.variant::<T>(name, "mean_of_parts")?.size(blocks).arg(divisor);
        let launch = launch.operand(&parts, 0).write(y.device_write_only()?);
        launch.summing(1)
    }

    /// Parts of the number of labels that count, if it has to be known; and how many parts.
    #[track_caller]
    fn count_labels<T: Element>(
        &self,
        name: &'static str,
        labels: Labels,
        label: View<'_, T, Self>,
    ) -> Result<(CudaBuffer, usize)> {
        // Where there are no scores, nobody else looks at the labels.
        if labels.divisor != 0.0 && labels.extent != 0 {
            return Ok((self.scratch::<Part>(0)?, 0));
        }
        let blocks = blocks(label.len(), 1);
        let parts = self.scratch::<Part>(blocks)?;
        let launch = self.variant::<T>(name, "count_labels")?.arg(labels).read(label.device()?);
        let launch = launch.complaint(KernelError::Label)?.operand(&parts, 0);
        launch.summing(blocks)?;
        Ok((parts, blocks))
    }
}

impl Launch<'_> {
    fn summing(self, blocks: usize) -> Result<()> {
        self.grid([blocks, 1, 1], [THREADS as u32, 1, 1])
    }
}

impl Losses for CudaDevice {
    fn softmax_loss<T: Element>(
        &self,
        op: &SoftmaxLoss,
        p: View<'_, T, Self>,
        label: View<'_, T, Self>,
        loss: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        const OP: &str = "softmax_loss";
        check_len(OP, "p", op.axis.count(), p.len())?;
        check_len(OP, "label", op.axis.reduced_count(), label.len())?;
        check_len(OP, "loss", 1, loss.len())?;
        let (labels, blocks) = (labels(op), blocks(label.len(), 1));
        let launch = self.kernel::<T>(OP)?.arg(labels).read(p.device()?).read(label.device()?);
        let launch = launch.complaint(KernelError::Label)?;
        self.mean(OP, (launch, blocks), labels.divisor, loss)
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
        check_len(OP, "p", op.axis.count(), p.len())?;
        check_len(OP, "label", op.axis.reduced_count(), label.len())?;
        check_len(OP, "scale", 1, scale.len())?;
        check_len(OP, "dx", op.axis.count(), dx.len())?;
        let labels = labels(op);
        let (counts, parts) = self.count_labels(OP, labels, label)?;
        let launch = self.kernel::<T>(OP)?.arg(labels).read(p.device()?).read(label.device()?);
        let launch = launch.read(scale.device()?).operand(&counts, 0).size(parts);
        let launch = launch.complaint(KernelError::Label)?.write(dx.device_write_only()?);
        launch.grid_1d(op.axis.count())
    }

    fn accuracy<T: Element>(
        &self,
        op: &Accuracy,
        scores: View<'_, T, Self>,
        label: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        const OP: &str = "accuracy";
        check_len(OP, "scores", op.axis.count(), scores.len())?;
        check_len(OP, "label", op.axis.reduced_count(), label.len())?;
        check_len(OP, "y", 1, y.len())?;
        let labels = Labels::new(&op.axis, op.ignore, 0.0);
        let launch = self.kernel::<T>(OP)?.arg(labels).size(op.top_k).read(scores.device()?);
        let launch = launch.read(label.device()?).complaint(KernelError::Label)?;
        self.mean(OP, (launch, blocks(label.len(), WARP)), 0.0, y)
    }

    fn accuracy_by_class<T: Element>(
        &self,
        op: &Accuracy,
        scores: View<'_, T, Self>,
        label: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        const OP: &str = "accuracy_by_class";
        check_len(OP, "scores", op.axis.count(), scores.len())?;
        check_len(OP, "label", op.axis.reduced_count(), label.len())?;
        check_len(OP, "y", op.axis.extent, y.len())?;
        let labels = Labels::new(&op.axis, op.ignore, 0.0);
        let launch = self.kernel::<T>(OP)?.arg(labels).size(op.top_k).read(scores.device()?);
        let launch = launch.read(label.device()?).complaint(KernelError::Label)?;
        // A block at least, which looks at the labels.
        launch.write(y.device_write_only()?).blocks(op.axis.extent.max(1), THREADS as u32)
    }

    fn class_loss<T: Element>(
        &self,
        op: &ClassLoss,
        x: View<'_, T, Self>,
        label: View<'_, T, Self>,
        matrix: Option<View<'_, T, Self>>,
        loss: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        const OP: &str = "class_loss";
        op.check(OP, x.len(), label.len(), matrix.map(|matrix| matrix.len()))?;
        check_len(OP, "loss", 1, loss.len())?;
        let (labels, form) = class_labels(op);
        let launch = self.kernel::<T>(OP)?.arg(labels).arg(form).read(x.device()?);
        let launch = launch.read(label.device()?).matrix(matrix)?.complaint(KernelError::Label)?;
        self.mean(OP, (launch, blocks(label.len(), WARP)), labels.divisor, loss)
    }

    fn class_loss_backward<T: Element>(
        &self,
        op: &ClassLoss,
        x: View<'_, T, Self>,
        label: View<'_, T, Self>,
        matrix: Option<View<'_, T, Self>>,
        scale: View<'_, T, Self>,
        mut dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        const OP: &str = "class_loss_backward";
        op.check(OP, x.len(), label.len(), matrix.map(|matrix| matrix.len()))?;
        check_len(OP, "scale", 1, scale.len())?;
        check_len(OP, "dx", op.axis.count(), dx.len())?;
        let (labels, form) = class_labels(op);
        let (counts, parts) = self.count_labels(OP, labels, label)?;
        let launch = self.kernel::<T>(OP)?.arg(labels).arg(form).read(x.device()?);
        let launch = launch.read(label.device()?).matrix(matrix)?.read(scale.device()?);
        let launch = launch.operand(&counts, 0).size(parts).complaint(KernelError::Label)?;
        launch.write(dx.device_write_only()?).grid_1d(op.axis.reduced_count().saturating_mul(WARP))
    }

    fn elementwise_loss<T: Element>(
        &self,
        op: &ElementwiseLoss<T::Acc>,
        x: View<'_, T, Self>,
        t: View<'_, T, Self>,
        loss: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        const OP: &str = "elementwise_loss";
        op.check(OP, x.len(), t.len())?;
        check_len(OP, "loss", 1, loss.len())?;
        let (pairs, numbers) = pairs::<T>(op);
        let launch = self.kernel::<T>(OP)?.arg(pairs).arg(numbers);
        let launch = launch.read(x.device()?).read(t.device()?);
        self.mean(OP, (launch, blocks(x.len(), 1)), pairs.divisor, loss)
    }

    fn elementwise_loss_backward<T: Element>(
        &self,
        op: &ElementwiseLoss<T::Acc>,
        x: View<'_, T, Self>,
        t: View<'_, T, Self>,
        scale: View<'_, T, Self>,
        mut dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        const OP: &str = "elementwise_loss_backward";
        op.check(OP, x.len(), t.len())?;
        check_len(OP, "scale", 1, scale.len())?;
        check_len(OP, "dx", x.len(), dx.len())?;
        let (pairs, numbers) = pairs::<T>(op);
        let parts = if pairs.divisor == 0.0 { blocks(t.len(), 1) } else { 0 };
        let counts = self.scratch::<Part>(parts)?;
        if parts > 0 {
            let launch = self.variant::<T>(OP, "count_targets")?.arg(pairs).arg(numbers);
            launch.read(t.device()?).operand(&counts, 0).summing(parts)?;
        }
        let launch = self.kernel::<T>(OP)?.arg(pairs).arg(numbers).read(x.device()?);
        let launch = launch.read(t.device()?).read(scale.device()?).operand(&counts, 0);
        launch.size(parts).write(dx.device_write_only()?).grid_1d(t.len())
    }
}

impl<'a> Launch<'a> {
    /// The next operand, if there is one.
    fn matrix<T: Element>(self, matrix: Option<View<'a, T, CudaDevice>>) -> Result<Self> {
        match matrix {
            Some(matrix) => Ok(self.read(matrix.device()?)),
            None => Ok(self.none()),
        }
    }
}
