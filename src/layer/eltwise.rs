//! The Eltwise layer: sum, product or maximum of several blobs.

use super::prelude::*;
use crate::{
    blob::SrcGuard,
    memory::Src,
    op::{Binary, Unary},
    proto::eltwise_parameter::EltwiseOp,
};

/// `y = Σ coeff·x`, `y = Π x` or `y = max x` over the bottoms, element by element.
///
/// If several bottoms equal the maximum at an element, only one of them receives the gradient: the
/// second bottom if it equals the maximum, otherwise the bottom with the lowest index.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "a" input_param { shape { dim: 2 } } }
///     layer { type: "Input" top: "b" input_param { shape { dim: 2 } } }
///     layer { type: "Eltwise" bottom: "a" bottom: "b" top: "difference"
///       eltwise_param { operation: SUM coeff: 1 coeff: -1 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("a").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[5.0, 6.0]);
/// net.blob("b").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[1.0, 8.0]);
/// net.forward()?;
/// assert_eq!(net.blob("difference").unwrap().to_vec()?, [4.0, -2.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct EltwiseLayer<T: Element> {
    operation: EltwiseOp,
    /// The coefficient of each bottom in a sum; empty if all coefficients are 1.
    coeffs: Vec<f64>,
    /// Caffe's field `stable_prod_grad`: if `true`, the layer computes the gradient of a product
    /// without divisions.
    has_stable_gradient: bool,
    /// Scratch blob for the comparison of two bottoms in the gradient of a maximum: 1 where the
    /// comparison holds, and 0 elsewhere.
    exceeds_other: Blob<T>,
}

impl<T: Element> EltwiseLayer<T> {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if `coeff` is given for a product, or does not have one value
    /// per bottom.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        let bottoms = param.bottom.len();
        let param = param.eltwise_param.clone().unwrap_or_default();
        let (operation, given) = (param.operation(), param.coeff.len());
        if operation == EltwiseOp::Prod && given > 0 {
            return invalid("eltwise_param: coeff is not allowed with operation PROD");
        }
        if ![0, bottoms].contains(&given) {
            return invalid(format!(
                "eltwise_param: expected {bottoms} values of coeff, found {given}"
            ));
        }
        Ok(Self {
            operation,
            coeffs: param.coeff.iter().map(|&coeff| coeff.into()).collect(),
            has_stable_gradient: param.stable_prod_grad(),
            exceeds_other: Blob::new(cx.device, &[0])?,
        })
    }

    fn coeff(&self, bottom: usize) -> f64 {
        self.coeffs.get(bottom).copied().unwrap_or(1.0)
    }

    /// `y ← Σ coeff·x` over the bottoms x. If the coefficients of the first two bottoms are 1, a
    /// single kernel adds the two bottoms.
    fn sum(&self, device: &AnyDevice, bottom: &[Blob<T>], top: &Blob<T>) -> Result<()> {
        let (first_bottom, mut y) = top.data_mut_from(&bottom[0])?;
        let added_count = match (self.coeff(0), self.coeff(1)) {
            (1.0, 1.0) => {
                let second_bottom = bottom[1].data()?;
                device.binary(
                    Binary::Add,
                    first_bottom.src(),
                    second_bottom.view(),
                    y.view_mut(),
                )?;
                2
            }
            (coeff, _) => {
                device.unary(Unary::Scale(T::acc(coeff)), first_bottom.src(), y.view_mut())?;
                1
            }
        };
        for (i, x) in bottom.iter().enumerate().skip(added_count) {
            device.axpy(T::acc(self.coeff(i)), x.data()?.view(), y.view_mut())?;
        }
        Ok(())
    }

    /// `y ← op(bottoms)`, element by element.
    fn reduce(
        &self,
        device: &AnyDevice,
        op: Binary<T::Acc>,
        bottom: &[Blob<T>],
        top: &Blob<T>,
    ) -> Result<()> {
        let mut y = top.data_mut()?;
        let (first_bottom, second_bottom) = (bottom[0].data()?, bottom[1].data()?);
        device.binary(op, first_bottom.view().into(), second_bottom.view(), y.view_mut())?;
        for x in &bottom[2..] {
            device.binary(op, Src::InPlace, x.data()?.view(), y.view_mut())?;
        }
        Ok(())
    }

    /// `dx ← coeff · dy`
    fn sum_backward(&self, device: &AnyDevice, i: usize, dy: &Blob<T>, dx: &Blob<T>) -> Result<()> {
        match (self.coeff(i), dx.diff_mut_from(dy)?) {
            (1.0, (SrcGuard::InPlace, _)) => Ok(()),
            (1.0, (SrcGuard::Other(dy), mut dx)) => device.copy(dy.view(), dx.view_mut()),
            (coeff, (dy, mut dx)) => {
                device.unary(Unary::Scale(T::acc(coeff)), dy.src(), dx.view_mut())
            }
        }
    }

    /// `dx ← dy · p`, where p is the product of all bottoms except bottom `i`. Unless
    /// `has_stable_gradient` is set, `product_backward` computes p as `y / x`, where x is bottom
    /// `i`.
    fn product_backward(
        &self,
        device: &AnyDevice,
        i: usize,
        top: &Blob<T>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        let (dy, mut dx) = (top.diff()?, bottom[i].diff_mut()?);
        if !self.has_stable_gradient {
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

    /// `dx ← dy` where bottom `i` receives the gradient of the maximum, otherwise `dx ← 0`.
    fn maximum_backward(
        &self,
        device: &AnyDevice,
        i: usize,
        dy: &Blob<T>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        let (x, mut dx) = (bottom[i].data()?, bottom[i].diff_mut()?);
        let mut exceeds_other = self.exceeds_other.data_mut()?;
        let mut is_first_comparison = true;
        for (j, other) in bottom.iter().enumerate().filter(|(j, _)| *j != i) {
            let op = if gradient_rank(i) < gradient_rank(j) {
                Binary::GreaterEqual
            } else {
                Binary::Greater
            };
            let other = other.data()?;
            if std::mem::take(&mut is_first_comparison) {
                device.binary(op, x.view().into(), other.view(), dx.view_mut())?;
            } else {
                device.binary(op, x.view().into(), other.view(), exceeds_other.view_mut())?;
                device.binary(Binary::Mul, Src::InPlace, exceeds_other.view(), dx.view_mut())?;
            }
        }
        device.binary(Binary::Mul, Src::InPlace, dy.diff()?.view(), dx.view_mut())
    }
}

/// Returns the position of bottom `bottom` in the order 1, 0, 2, 3, …. If several bottoms equal the
/// maximum, the bottom that comes first in this order receives the gradient.
fn gradient_rank(bottom: usize) -> usize {
    match bottom {
        0 => 1,
        1 => 0,
        other => other,
    }
}

impl<T: Element> Layer<T> for EltwiseLayer<T> {
    fn kind(&self) -> &'static str {
        "Eltwise"
    }

    fn arity(&self) -> Arity {
        match self.coeffs.len() {
            0 => Arity::between(2..=usize::MAX, 1..=1),
            bottoms => Arity::exactly(bottoms.max(2), 1),
        }
    }

    fn allows_in_place(&self) -> bool {
        self.operation == EltwiseOp::Sum
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let shape = bottom[0].shape();
        if let Some((i, other)) =
            bottom.iter().enumerate().find(|(_, other)| *other.shape() != *shape)
        {
            let other = other.shape();
            return wrong_shape(format!("bottom {i} has shape {other}, but bottom 0 has {shape}"));
        }
        if self.operation == EltwiseOp::Max && bottom.len() > 2 {
            self.exceeds_other.reshape_like(&bottom[0])?;
        }
        top[0].reshape_like(&bottom[0])
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        match self.operation {
            EltwiseOp::Sum => self.sum(device, bottom, &top[0]),
            EltwiseOp::Prod => self.reduce(device, Binary::Mul, bottom, &top[0]),
            EltwiseOp::Max => self.reduce(device, Binary::Max, bottom, &top[0]),
        }
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        // Process bottom 0 last: if the layer runs in place, the gradient of bottom 0 overwrites
        // the gradient of the top.
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
