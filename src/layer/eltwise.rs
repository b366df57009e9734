//! Sum, product or maximum of several blobs.

use super::{Arity, Layer, LayerContext, PropagateDown};
use crate::{
    blob::{Blob, SrcGuard},
    device::Device,
    element::Element,
    error::{Error, Result},
    memory::Src,
    op::{Binary, Unary},
    proto::{LayerParameter, eltwise_parameter::EltwiseOp},
};

/// One element of each bottom to one: `y = Σ coeff·x`, `y = Π x` or `y = max x`.
///
/// Of bottoms that are equal, the second has the maximum before the first, and the first before
/// all others.
pub struct EltwiseLayer<T: Element, D: Device> {
    operation: EltwiseOp,
    /// Of each bottom in a sum, if given.
    coeffs: Vec<f64>,
    /// Whether gradients of a product are products rather than quotients.
    stable: bool,
    /// Which elements of a bottom exceed those of another.
    greater: Blob<T, D>,
}

impl<T: Element, D: Device> EltwiseLayer<T, D> {
    /// From the layer's parameters.
    ///
    /// # Errors
    /// [`Error::InvalidData`] for coefficients of a product, or of other than all bottoms.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_, D>) -> Result<Self> {
        let bottoms = param.bottom.len();
        let param = param.eltwise_param.clone().unwrap_or_default();
        let (operation, given) = (param.operation(), param.coeff.len());
        if operation == EltwiseOp::Prod && given > 0 {
            return Err(Error::InvalidData("eltwise_param: a product takes no coeff".into()));
        }
        if ![0, bottoms].contains(&given) {
            let why = format!("eltwise_param: {given} coeff entries for {bottoms} bottoms");
            return Err(Error::InvalidData(why));
        }
        Ok(Self {
            operation,
            coeffs: param.coeff.iter().map(|&coeff| coeff.into()).collect(),
            stable: param.stable_prod_grad(),
            greater: Blob::new(cx.device, &[0])?,
        })
    }

    fn coeff(&self, bottom: usize) -> f64 {
        self.coeffs.get(bottom).copied().unwrap_or(1.0)
    }

    /// `y ← Σ coeff·x`: one pass for two bottoms without coefficients.
    fn sum(&self, device: &D, bottom: &[Blob<T, D>], top: &Blob<T, D>) -> Result<()> {
        let (first, mut y) = top.data_mut_from(&bottom[0])?;
        let added = match (self.coeff(0), self.coeff(1)) {
            (1.0, 1.0) => {
                let second = bottom[1].data()?;
                device.binary(Binary::Add, first.src(), second.view(), y.view_mut())?;
                2
            }
            (coeff, _) => {
                device.unary(Unary::Scale(T::acc(coeff)), first.src(), y.view_mut())?;
                1
            }
        };
        for (i, x) in bottom.iter().enumerate().skip(added) {
            device.axpy(T::acc(self.coeff(i)), x.data()?.view(), y.view_mut())?;
        }
        Ok(())
    }

    /// `y ← op` of all bottoms.
    fn fold(
        &self,
        device: &D,
        op: Binary<T::Acc>,
        bottom: &[Blob<T, D>],
        top: &Blob<T, D>,
    ) -> Result<()> {
        let mut y = top.data_mut()?;
        let (first, second) = (bottom[0].data()?, bottom[1].data()?);
        device.binary(op, first.view().into(), second.view(), y.view_mut())?;
        for x in &bottom[2..] {
            device.binary(op, Src::InPlace, x.data()?.view(), y.view_mut())?;
        }
        Ok(())
    }

    /// `dx ← coeff · dy`
    fn sum_backward(&self, device: &D, i: usize, dy: &Blob<T, D>, dx: &Blob<T, D>) -> Result<()> {
        match (self.coeff(i), dx.diff_mut_from(dy)?) {
            (1.0, (SrcGuard::InPlace, _)) => Ok(()),
            (1.0, (SrcGuard::Other(dy), mut dx)) => device.copy(dy.view(), dx.view_mut()),
            (coeff, (dy, mut dx)) => {
                device.unary(Unary::Scale(T::acc(coeff)), dy.src(), dx.view_mut())
            }
        }
    }

    /// `dx ← dy ·` the product of the others, one by one or as `y / x`.
    fn product_backward(
        &self,
        device: &D,
        i: usize,
        top: &Blob<T, D>,
        bottom: &[Blob<T, D>],
    ) -> Result<()> {
        let (dy, mut dx) = (top.diff()?, bottom[i].diff_mut()?);
        if !self.stable {
            let (y, x) = (top.data()?, bottom[i].data()?);
            device.binary(Binary::Div, y.view().into(), x.view(), dx.view_mut())?;
            return device.binary(Binary::Mul, Src::InPlace, dy.view(), dx.view_mut());
        }
        let mut product = Some(dy.view());
        for (_, other) in bottom.iter().enumerate().filter(|(j, _)| *j != i) {
            let a = product.take().map_or(Src::InPlace, Src::View);
            device.binary(Binary::Mul, a, other.data()?.view(), dx.view_mut())?;
        }
        Ok(())
    }

    /// `dx ← dy` where this bottom has the maximum, else 0.
    fn maximum_backward(
        &self,
        device: &D,
        i: usize,
        dy: &Blob<T, D>,
        bottom: &[Blob<T, D>],
    ) -> Result<()> {
        let (x, mut dx) = (bottom[i].data()?, bottom[i].diff_mut()?);
        let mut greater = self.greater.data_mut()?;
        let mut first = true;
        for (j, other) in bottom.iter().enumerate().filter(|(j, _)| *j != i) {
            let op = if rank(i) < rank(j) { Binary::GreaterEqual } else { Binary::Greater };
            let other = other.data()?;
            if std::mem::take(&mut first) {
                device.binary(op, x.view().into(), other.view(), dx.view_mut())?;
            } else {
                device.binary(op, x.view().into(), other.view(), greater.view_mut())?;
                device.binary(Binary::Mul, Src::InPlace, greater.view(), dx.view_mut())?;
            }
        }
        device.binary(Binary::Mul, Src::InPlace, dy.diff()?.view(), dx.view_mut())
    }
}

/// Which of equal bottoms has the maximum: the least.
fn rank(bottom: usize) -> usize {
    match bottom {
        0 => 1,
        1 => 0,
        other => other,
    }
}

impl<T: Element, D: Device> Layer<T, D> for EltwiseLayer<T, D> {
    fn kind(&self) -> &'static str {
        "Eltwise"
    }

    fn arity(&self) -> Arity {
        Arity::between(2..=usize::MAX, 1..=1)
    }

    fn allows_in_place(&self) -> bool {
        self.operation == EltwiseOp::Sum
    }

    fn reshape(&mut self, bottom: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        let shape = bottom[0].shape();
        if let Some((i, other)) =
            bottom.iter().enumerate().find(|(_, other)| *other.shape() != *shape)
        {
            let other = other.shape();
            return Err(Error::Shape(format!("bottom {i} has shape {other}, bottom 0 {shape}")));
        }
        if self.operation == EltwiseOp::Max && bottom.len() > 2 {
            self.greater.reshape_like(&bottom[0])?;
        }
        top[0].reshape_like(&bottom[0])
    }

    fn forward(&mut self, device: &D, bottom: &[Blob<T, D>], top: &[Blob<T, D>]) -> Result<()> {
        match self.operation {
            EltwiseOp::Sum => self.sum(device, bottom, &top[0]),
            EltwiseOp::Prod => self.fold(device, Binary::Mul, bottom, &top[0]),
            EltwiseOp::Max => self.fold(device, Binary::Max, bottom, &top[0]),
        }
    }

    fn backward(
        &mut self,
        device: &D,
        top: &[Blob<T, D>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T, D>],
    ) -> Result<()> {
        // The first last: if it is the top, its gradient is overwritten.
        for i in (0..bottom.len()).rev().filter(|&i| propagate.bottom[i]) {
            match self.operation {
                EltwiseOp::Sum => self.sum_backward(device, i, &top[0], &bottom[i])?,
                EltwiseOp::Prod => self.product_backward(device, i, &top[0], bottom)?,
                EltwiseOp::Max => self.maximum_backward(device, i, &top[0], bottom)?,
            }
        }
        Ok(())
    }
}
