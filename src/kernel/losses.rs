//! Loss and accuracy kernels.

use crate::{
    element::Element,
    op::{Accuracy, ClassLoss, ElementwiseLoss, SoftmaxLoss},
};

macro_rules! kernels {
    ($then:ident) => {
        $then! {
            /// Loss and accuracy kernels, whose results stay on the device.
            ///
            /// A label is a class number or the ignored label, stored as a floating-point element.
            /// Any other label, such as −1, 0.5, NaN or the number of classes, is an error, which
            /// the device may report in a later call. If all labels are ignored, the loss is 0. The
            /// [module page](crate::kernel) lists the rules that all kernels share.
            ///
            /// ```
            /// use cortado::{kernel::Losses, op::Accuracy, op::Axis, prelude::*};
            ///
            /// let device = CpuDevice::new();
            /// let scores = Blob::from_slice(&device, &[2, 2], &[0.2f32, 0.8, 0.6, 0.4])?;
            /// let (labels, y) = (Blob::ones(&device, &[2])?, Blob::zeros(&device, &[2])?);
            /// let op = Accuracy { axis: Axis::of(scores.shape(), 1)?, top_k: 1, ignore: None };
            /// let (scores, labels, mut share) = (scores.data()?, labels.data()?, y.data_mut()?);
            /// device.accuracy_by_class(&op, scores.view(), labels.view(), share.view_mut())?;
            /// assert_eq!(share.host_mut()?, [0.0, 0.5]); // class 0 has no labels
            /// # Ok::<(), cortado::Error>(())
            /// ```
            trait Losses {}

            /// `loss[0] ← the softmax loss` of the probabilities `p`; see [`SoftmaxLoss`]. The loss
            /// is NaN if the probability of a label that is not ignored is NaN.
            ///
            /// Lengths: `p` has `op.axis.count()` elements, `label` has `op.axis.reduced_count()`,
            /// and `loss` has 1.
            fn softmax_loss<T: Element>(
                op: &SoftmaxLoss, p: read T, label: read T, loss: overwrite T
            ) {
                op.check("softmax_loss", p, label)?;
                check_len("softmax_loss", "loss", 1, loss)
            }

            /// `dx ← scale[0] · (p − onehot(label)) / n`, the gradient of the scores whose softmax
            /// is `p`; zero where the label is ignored, even if `p` is NaN there.
            ///
            /// Lengths: `p` and `dx` have `op.axis.count()` elements, `label` has
            /// `op.axis.reduced_count()`, and `scale` has 1.
            fn softmax_loss_backward<T: Element>(
                op: &SoftmaxLoss, p: read T, label: read T, scale: read T, dx: overwrite T
            ) {
                op.check("softmax_loss_backward", p, label)?;
                check_len("softmax_loss_backward", "scale", 1, scale)?;
                check_len("softmax_loss_backward", "dx", op.axis.count(), dx)
            }

            /// `y[0] ← the fraction of labels that are predicted correctly`; see [`Accuracy`]. A
            /// label whose class has a NaN score is never predicted correctly.
            ///
            /// Lengths: `scores` has `op.axis.count()` elements, `label` has
            /// `op.axis.reduced_count()`, and `y` has 1.
            fn accuracy<T: Element>(op: &Accuracy, scores: read T, label: read T, y: overwrite T) {
                op.check("accuracy", scores, label)?;
                check_len("accuracy", "y", 1, y)
            }

            /// `y[c] ← the fraction of labels c that are predicted correctly`, or 0 if no position
            /// has label `c`.
            ///
            /// Lengths: `scores` has `op.axis.count()` elements, `label` has
            /// `op.axis.reduced_count()`, and `y` has `op.axis.extent`.
            fn accuracy_by_class<T: Element>(
                op: &Accuracy, scores: read T, label: read T, y: overwrite T
            ) {
                op.check("accuracy_by_class", scores, label)?;
                check_len("accuracy_by_class", "y", op.axis.extent, y)
            }

            /// `loss[0] ← Σ f(x, label) / n`; see [`ClassLoss`].
            ///
            /// Lengths: `x` has `op.axis.count()` elements, `label` has `op.axis.reduced_count()`,
            /// `matrix` has `op.axis.extent²`, and `loss` has 1.
            fn class_loss<T: Element>(
                op: &ClassLoss, x: read T, label: read T, matrix: optional T, loss: overwrite T
            ) {
                op.check("class_loss", x, label, matrix)?;
                check_len("class_loss", "loss", 1, loss)
            }

            /// `dx ← scale[0] · the derivative of f / n`, the gradient of
            /// [`class_loss`](Self::class_loss); zero where the label is ignored, and at the kink
            /// of a hinge loss.
            ///
            /// Lengths: `x` and `dx` have `op.axis.count()` elements, `label` has
            /// `op.axis.reduced_count()`, `matrix` has `op.axis.extent²`, and `scale` has 1.
            fn class_loss_backward<T: Element>(
                op: &ClassLoss,
                x: read T,
                label: read T,
                matrix: optional T,
                scale: read T,
                dx: overwrite T
            ) {
                op.check("class_loss_backward", x, label, matrix)?;
                check_len("class_loss_backward", "scale", 1, scale)?;
                check_len("class_loss_backward", "dx", op.axis.count(), dx)
            }

            /// `loss[0] ← Σ f(x, t) / n`; see [`ElementwiseLoss`]. If all targets are ignored, the
            /// loss is 0.
            ///
            /// Lengths: `x` and `t` have `op.batch · op.item_len` elements, and `loss` has 1.
            fn elementwise_loss<T: Element>(
                op: &ElementwiseLoss<T::Acc>, x: read T, t: read T, loss: overwrite T
            ) {
                op.check("elementwise_loss", x, t)?;
                check_len("elementwise_loss", "loss", 1, loss)
            }

            /// `dx ← scale[0] · ∂f/∂x / n`, the gradient of
            /// [`elementwise_loss`](Self::elementwise_loss); zero where the target is ignored.
            ///
            /// Lengths: `x`, `t` and `dx` have `op.batch · op.item_len` elements, and `scale` has
            /// 1.
            fn elementwise_loss_backward<T: Element>(
                op: &ElementwiseLoss<T::Acc>, x: read T, t: read T, scale: read T, dx: overwrite T
            ) {
                op.check("elementwise_loss_backward", x, t)?;
                check_len("elementwise_loss_backward", "scale", 1, scale)?;
                check_len("elementwise_loss_backward", "dx", x, dx)
            }
        }
    };
}
kernels!(declare_family);
pub(crate) use kernels;
