//! Launches of loss and accuracy kernels.
//!
//! The CUDA kernels report invalid labels as an error, which the next wait for the queue returns.

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
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Number of threads per block in kernels that compute sums.
const THREADS: usize = 256;

/// Number of threads per label, in kernels that read the scores of all classes for each label.
const WARP: usize = 32;

/// Largest number of thread blocks among which a sum is split. A second launch with a single block
/// adds up the partial sums.
const MAX_PARTS: usize = 256;

/// A partial sum and the number of its terms; equivalent to the struct `Part` of the CUDA kernels.
type Part = [f64; 2];

/// Rust equivalent of the argument struct `Labels` in `kernels/labels.cuh`.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes)]
#[repr(C)]
struct Labels {
    count: u64,
    extent: u64,
    inner: u64,
    ignored: f64,
    has_ignored: u64,
    /// Divisor of the sum of losses; if 0, the kernel divides by the number of labels that are not
    /// ignored.
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

    /// Returns the argument struct of a loss kernel. A divisor of 0 stands for the number of labels
    /// that are not ignored.
    fn of_loss(axis: &Axis, ignore: Option<i64>, normalization: LossNormalization) -> Self {
        Self::new(axis, ignore, divisor(normalization, axis.outer, axis.inner))
    }
}

/// Rust equivalent of the argument struct `ElementwiseLoss` of the CUDA kernels.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes)]
#[repr(C)]
struct ElementwiseLossArgs {
    count: u64,
    divisor: f64,
    form: u32,
    has_ignored: u32,
}

/// Returns the divisor of a sum of losses, or 0 if the kernel divides by the number of labels that
/// are not ignored.
fn divisor(normalization: LossNormalization, outer: usize, inner: usize) -> f64 {
    match normalization {
        LossNormalization::Valid => 0.0,
        normalization => normalization.divisor(outer, inner, 0),
    }
}

/// Returns the number of thread blocks for a sum of `n` items, with `threads` threads per item.
fn sum_blocks(n: usize, threads: usize) -> usize {
    n.saturating_mul(threads).div_ceil(THREADS).clamp(1, MAX_PARTS)
}

impl CudaDevice {
    /// Launches a kernel whose `blocks` blocks store partial sums, and a second kernel that stores
    /// the mean to `y`. If `blocks` is 1, the first kernel stores the mean to `y`. The caller has
    /// added to `launch` all arguments except the partial sums and `y`.
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
        launch.sum_grid(blocks)?;
        if blocks == 1 {
            return Ok(());
        }
        let launch = self.variant::<T>(name, "mean_of_parts")?.size(blocks).arg(divisor);
        launch.operand(&parts, 0).write(y.device_write_only()?).sum_grid(1)
    }

    /// Counts the labels that are not ignored, if the divisor of the loss depends on this count.
    /// Returns a buffer of the partial label counts, and the number of these counts.
    #[track_caller]
    fn count_labels<T: Element>(
        &self,
        name: &'static str,
        labels: Labels,
        label: View<'_, T, Self>,
    ) -> Result<(CudaBuffer, usize)> {
        // If the number of classes is 0, the gradient kernel does not check the labels, so the
        // kernel `count_labels` checks them.
        if labels.divisor != 0.0 && labels.extent != 0 {
            return Ok((self.scratch::<Part>(0)?, 0));
        }
        let blocks = sum_blocks(label.len(), 1);
        let parts = self.scratch::<Part>(blocks)?;
        let launch = self.variant::<T>(name, "count_labels")?.arg(labels).read(label.device()?);
        launch.error_flag(KernelError::Label)?.operand(&parts, 0).sum_grid(blocks)?;
        Ok((parts, blocks))
    }

    /// Prepares a launch of an accuracy kernel, and adds the arguments up to and including the
    /// error flag.
    #[track_caller]
    fn accuracy_kernel<'a, T: Element>(
        &'a self,
        name: &'static str,
        op: &Accuracy,
        scores: View<'a, T, Self>,
        label: View<'a, T, Self>,
    ) -> Result<Launch<'a>> {
        op.check(name, scores.len(), label.len())?;
        let labels = Labels::new(&op.axis, op.ignore, 0.0);
        let launch = self.kernel::<T>(name)?.arg(labels).size(op.top_k).read(scores.device()?);
        launch.read(label.device()?).error_flag(KernelError::Label)
    }

    /// Prepares a launch of a class loss kernel, and adds the arguments up to and including the
    /// infogain matrix.
    #[track_caller]
    fn class_loss_kernel<'a, T: Element>(
        &'a self,
        name: &'static str,
        (op, labels): (&ClassLoss, Labels),
        x: View<'a, T, Self>,
        label: View<'a, T, Self>,
        matrix: Option<View<'a, T, Self>>,
    ) -> Result<Launch<'a>> {
        let form = match op.kind {
            ClassLossKind::Log => 0u32,
            ClassLossKind::LogWithSoftmaxGradient => 1,
            ClassLossKind::Hinge => 2,
            ClassLossKind::SquaredHinge => 3,
        };
        let launch = self.kernel::<T>(name)?.arg(labels).arg(form).read(x.device()?);
        launch.read(label.device()?).read_optional(matrix)
    }

    /// Prepares a launch of an elementwise loss kernel, and adds the arguments up to and including
    /// the margin and the ignored target value. Returns the launch and the divisor of the sum of
    /// losses. If the divisor is 0, the kernel divides by the number of targets that are not
    /// ignored.
    #[track_caller]
    fn elementwise_loss_kernel<T: Element>(
        &self,
        (name, symbol): (&'static str, &str),
        op: &ElementwiseLoss<T::Acc>,
    ) -> Result<(Launch<'_>, f64)> {
        let zero = T::acc(0.0);
        let (form, margin) = match op.kind {
            ElementwiseLossKind::Squared => (0, zero),
            ElementwiseLossKind::SigmoidCrossEntropy => (1, zero),
            ElementwiseLossKind::Contrastive { margin } => (2, margin),
            ElementwiseLossKind::ContrastiveLegacy { margin } => (3, margin),
        };
        let count = op.batch * op.item_len;
        // If no target is ignored, the host can compute the divisor.
        let divisor = match op.ignore {
            None => op.divisor(count),
            Some(_) => divisor(op.normalization, op.batch, op.item_len),
        };
        let has_ignored = u32::from(op.ignore.is_some());
        let ignored = op.ignore.map_or(zero, |ignore| T::acc(ignore as f64));
        let args = ElementwiseLossArgs { count: count as u64, divisor, form, has_ignored };
        Ok((self.variant::<T>(name, symbol)?.arg(args).arg([margin, ignored]), divisor))
    }
}

impl Launch<'_> {
    fn sum_grid(self, blocks: usize) -> Result<()> {
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
        op.check(OP, p.len(), label.len())?;
        check_len(OP, "loss", 1, loss.len())?;
        let labels = Labels::of_loss(&op.axis, op.ignore, op.normalization);
        let launch = self.kernel::<T>(OP)?.arg(labels).read(p.device()?).read(label.device()?);
        let launch = launch.error_flag(KernelError::Label)?;
        self.mean(OP, (launch, sum_blocks(label.len(), 1)), labels.divisor, loss)
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
        op.check(OP, p.len(), label.len())?;
        check_len(OP, "scale", 1, scale.len())?;
        check_len(OP, "dx", op.axis.count(), dx.len())?;
        let labels = Labels::of_loss(&op.axis, op.ignore, op.normalization);
        let (counts, parts) = self.count_labels(OP, labels, label)?;
        let launch = self.kernel::<T>(OP)?.arg(labels).read(p.device()?).read(label.device()?);
        let launch = launch.read(scale.device()?).operand(&counts, 0).size(parts);
        let launch = launch.error_flag(KernelError::Label)?.write(dx.device_write_only()?);
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
        check_len(OP, "y", 1, y.len())?;
        let launch = self.accuracy_kernel(OP, op, scores, label)?;
        self.mean(OP, (launch, sum_blocks(label.len(), WARP)), 0.0, y)
    }

    fn accuracy_by_class<T: Element>(
        &self,
        op: &Accuracy,
        scores: View<'_, T, Self>,
        label: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        const OP: &str = "accuracy_by_class";
        check_len(OP, "y", op.axis.extent, y.len())?;
        let launch = self.accuracy_kernel(OP, op, scores, label)?;
        // The grid has at least one block, because block 0 reports invalid labels.
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
        let labels = Labels::of_loss(&op.axis, op.ignore, op.normalization);
        let launch = self.class_loss_kernel(OP, (op, labels), x, label, matrix)?;
        let launch = launch.error_flag(KernelError::Label)?;
        self.mean(OP, (launch, sum_blocks(label.len(), WARP)), labels.divisor, loss)
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
        let labels = Labels::of_loss(&op.axis, op.ignore, op.normalization);
        let (counts, parts) = self.count_labels(OP, labels, label)?;
        let launch = self.class_loss_kernel(OP, (op, labels), x, label, matrix)?;
        let launch = launch.read(scale.device()?).operand(&counts, 0).size(parts);
        let launch = launch.error_flag(KernelError::Label)?.write(dx.device_write_only()?);
        launch.grid_1d(op.axis.reduced_count().saturating_mul(WARP))
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
        let (launch, divisor) = self.elementwise_loss_kernel::<T>((OP, OP), op)?;
        let launch = launch.read(x.device()?).read(t.device()?);
        self.mean(OP, (launch, sum_blocks(x.len(), 1)), divisor, loss)
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
        let needs_count = op.ignore.is_some() && op.normalization == LossNormalization::Valid;
        let parts = if needs_count { sum_blocks(t.len(), 1) } else { 0 };
        let counts = self.scratch::<Part>(parts)?;
        if parts > 0 {
            let (launch, _) = self.elementwise_loss_kernel::<T>((OP, "count_targets"), op)?;
            launch.read(t.device()?).operand(&counts, 0).sum_grid(parts)?;
        }
        let (launch, _) = self.elementwise_loss_kernel::<T>((OP, OP), op)?;
        let launch = launch.read(x.device()?).read(t.device()?).read(scale.device()?);
        let launch = launch.operand(&counts, 0).size(parts).write(dx.device_write_only()?);
        launch.grid_1d(t.len())
    }
}
