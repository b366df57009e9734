//! Losses and measures. A label out of range is told at the next wait.

use crate::{
    device::SimulatedDevice,
    element::Element,
    error::{Result, check_len},
    host,
    kernel::Losses,
    memory::{View, ViewMut},
    op::{Accuracy, ClassLoss, ElementwiseLoss, SoftmaxLoss},
};

impl Losses for SimulatedDevice {
    fn softmax_loss<T: Element>(
        &self,
        op: &SoftmaxLoss,
        p: View<'_, T, Self>,
        label: View<'_, T, Self>,
        loss: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        check_len("softmax_loss", "p", op.axis.count(), p.len())?;
        check_len("softmax_loss", "label", op.axis.reduced_count(), label.len())?;
        check_len("softmax_loss", "loss", 1, loss.len())?;
        let mut launch = self.launch::<T>("softmax_loss")?;
        let (p, label) = (launch.reads(p)?, launch.reads(label)?);
        let (op, loss) = (*op, launch.writes(loss)?);
        launch.queue(move |workers| {
            host::softmax_loss(workers, &op, &p.read(), &label.read(), &mut loss.write())
        })
    }

    fn softmax_loss_backward<T: Element>(
        &self,
        op: &SoftmaxLoss,
        p: View<'_, T, Self>,
        label: View<'_, T, Self>,
        scale: View<'_, T, Self>,
        dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        const OP: &str = "softmax_loss_backward";
        check_len(OP, "p", op.axis.count(), p.len())?;
        check_len(OP, "label", op.axis.reduced_count(), label.len())?;
        check_len(OP, "scale", 1, scale.len())?;
        check_len(OP, "dx", op.axis.count(), dx.len())?;
        let mut launch = self.launch::<T>(OP)?;
        let (p, label) = (launch.reads(p)?, launch.reads(label)?);
        let (op, scale, dx) = (*op, launch.reads(scale)?, launch.writes(dx)?);
        launch.queue(move |workers| {
            let (p, label, scale) = (p.read(), label.read(), scale.read());
            host::softmax_loss_backward(workers, &op, &p, &label, &scale, &mut dx.write())
        })
    }

    fn accuracy<T: Element>(
        &self,
        op: &Accuracy,
        scores: View<'_, T, Self>,
        label: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        check_len("accuracy", "scores", op.axis.count(), scores.len())?;
        check_len("accuracy", "label", op.axis.reduced_count(), label.len())?;
        check_len("accuracy", "y", 1, y.len())?;
        let mut launch = self.launch::<T>("accuracy")?;
        let (scores, label) = (launch.reads(scores)?, launch.reads(label)?);
        let (op, y) = (*op, launch.writes(y)?);
        launch.queue(move |workers| {
            host::accuracy(workers, &op, &scores.read(), &label.read(), &mut y.write())
        })
    }

    fn accuracy_by_class<T: Element>(
        &self,
        op: &Accuracy,
        scores: View<'_, T, Self>,
        label: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        const OP: &str = "accuracy_by_class";
        check_len(OP, "scores", op.axis.count(), scores.len())?;
        check_len(OP, "label", op.axis.reduced_count(), label.len())?;
        check_len(OP, "y", op.axis.extent, y.len())?;
        let mut launch = self.launch::<T>(OP)?;
        let (scores, label) = (launch.reads(scores)?, launch.reads(label)?);
        let (op, y) = (*op, launch.writes(y)?);
        launch.queue(move |workers| {
            host::accuracy_by_class(workers, &op, &scores.read(), &label.read(), &mut y.write())
        })
    }

    fn class_loss<T: Element>(
        &self,
        op: &ClassLoss,
        x: View<'_, T, Self>,
        label: View<'_, T, Self>,
        matrix: Option<View<'_, T, Self>>,
        loss: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        op.check("class_loss", x.len(), label.len(), matrix.map(|matrix| matrix.len()))?;
        check_len("class_loss", "loss", 1, loss.len())?;
        let mut launch = self.launch::<T>("class_loss")?;
        let (x, label) = (launch.reads(x)?, launch.reads(label)?);
        let matrix = matrix.map(|matrix| launch.reads(matrix)).transpose()?;
        let (op, loss) = (*op, launch.writes(loss)?);
        launch.queue(move |workers| {
            let (x, label, matrix) = (x.read(), label.read(), matrix.as_ref().map(|m| m.read()));
            host::class_loss(workers, &op, &x, &label, matrix.as_deref(), &mut loss.write())
        })
    }

    fn class_loss_backward<T: Element>(
        &self,
        op: &ClassLoss,
        x: View<'_, T, Self>,
        label: View<'_, T, Self>,
        matrix: Option<View<'_, T, Self>>,
        scale: View<'_, T, Self>,
        dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        const OP: &str = "class_loss_backward";
        op.check(OP, x.len(), label.len(), matrix.map(|matrix| matrix.len()))?;
        check_len(OP, "scale", 1, scale.len())?;
        check_len(OP, "dx", op.axis.count(), dx.len())?;
        let mut launch = self.launch::<T>(OP)?;
        let (x, label) = (launch.reads(x)?, launch.reads(label)?);
        let matrix = matrix.map(|matrix| launch.reads(matrix)).transpose()?;
        let (op, scale, dx) = (*op, launch.reads(scale)?, launch.writes(dx)?);
        launch.queue(move |workers| {
            let (x, label, matrix) = (x.read(), label.read(), matrix.as_ref().map(|m| m.read()));
            let (matrix, scale) = (matrix.as_deref(), scale.read());
            host::class_loss_backward(workers, &op, &x, &label, matrix, &scale, &mut dx.write())
        })
    }

    fn elementwise_loss<T: Element>(
        &self,
        op: &ElementwiseLoss<T::Acc>,
        x: View<'_, T, Self>,
        t: View<'_, T, Self>,
        loss: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        op.check("elementwise_loss", x.len(), t.len())?;
        check_len("elementwise_loss", "loss", 1, loss.len())?;
        let mut launch = self.launch::<T>("elementwise_loss")?;
        let (x, t) = (launch.reads(x)?, launch.reads(t)?);
        let (op, loss) = (*op, launch.writes(loss)?);
        launch.queue(move |workers| {
            host::elementwise_loss(workers, &op, &x.read(), &t.read(), &mut loss.write())
        })
    }

    fn elementwise_loss_backward<T: Element>(
        &self,
        op: &ElementwiseLoss<T::Acc>,
        x: View<'_, T, Self>,
        t: View<'_, T, Self>,
        scale: View<'_, T, Self>,
        dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        const OP: &str = "elementwise_loss_backward";
        op.check(OP, x.len(), t.len())?;
        check_len(OP, "scale", 1, scale.len())?;
        check_len(OP, "dx", x.len(), dx.len())?;
        let mut launch = self.launch::<T>(OP)?;
        let (x, t) = (launch.reads(x)?, launch.reads(t)?);
        let (op, scale, dx) = (*op, launch.reads(scale)?, launch.writes(dx)?);
        launch.queue(move |workers| {
            let (x, t, scale) = (x.read(), t.read(), scale.read());
            host::elementwise_loss_backward(workers, &op, &x, &t, &scale, &mut dx.write())
        })
    }
}
