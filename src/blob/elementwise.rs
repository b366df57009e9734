//! Elementwise functions of blobs, with broadcasting.

use super::Blob;
use crate::{
    device::Device,
    element::Element,
    error::{Error, Result},
    op::{Axis, Binary, Unary},
    shape::Shape,
};

impl<T: Element, D: Device> Blob<T, D> {
    /// Returns `f(x)` for each element `x` as a new blob.
    ///
    /// ```
    /// use cortado::{op::Unary, prelude::*};
    ///
    /// let x = Blob::from_slice(&CpuDevice::new(), &[3], &[-1.0f32, 0.5, 2.0])?;
    /// let y = x.apply(Unary::Clip { low: 0.0, high: 1.0 })?;
    /// assert_eq!(y.to_vec()?, [0.0, 0.5, 1.0]);
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Borrowed`] while this blob or an alias is locked for writing; any error that the
    /// device returns.
    #[track_caller]
    pub fn apply(&self, f: Unary<f64>) -> Result<Self> {
        let y = Self::new(self.device(), self.shape())?;
        self.apply_into(f, &y)?;
        Ok(y)
    }

    /// Computes `y ← f(x)` for each element. `y` may be this blob or an alias of it.
    ///
    /// # Errors
    /// [`Error::Shape`] unless this blob and `y` have the same shape; [`Error::Borrowed`] if
    /// another access to the data is in progress; any error that the device returns.
    #[track_caller]
    pub fn apply_into(&self, f: Unary<f64>, y: &Self) -> Result<()> {
        check_output(f.name(), [("x", self)], self.shape(), y)?;
        let (x, mut out) = y.data_mut_from(self)?;
        self.device().unary(f.cast(), x.src(), out.view_mut())
    }

    /// Returns `f(a, b)` for each pair of elements as a new blob of this blob's shape. The operand
    /// `a` is this blob.
    ///
    /// If the shapes differ, `b` is broadcast to the shape of `a`: `b` is repeated along missing
    /// leading axes and axes of extent 1, and the other axes of `b` must be adjacent. For example,
    /// a bias of shape C × 1 × 1 is added to N × C × H × W images.
    ///
    /// ```
    /// use cortado::{op::Binary, prelude::*};
    ///
    /// let device = CpuDevice::new();
    /// let a = Blob::from_slice(&device, &[2, 2], &[1.0, 2.0, 3.0, 4.0])?;
    /// let b = Blob::from_slice(&device, &[2], &[3.0, 0.0])?;
    /// assert_eq!(a.combine(Binary::Max, &b)?.to_vec()?, [3.0, 2.0, 3.0, 4.0]);
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if `b` cannot be broadcast to the shape of `a`; [`Error::Borrowed`] if
    /// another access to the data is in progress; any error that the device returns.
    #[track_caller]
    pub fn combine(&self, f: Binary<f64>, b: &Self) -> Result<Self> {
        let y = Self::new(self.device(), self.shape())?;
        self.combine_into(f, b, &y)?;
        Ok(y)
    }

    /// Computes `y ← f(a, b)` for each pair of elements, like [`combine`](Self::combine). `y` may
    /// be this blob or an alias of it.
    ///
    /// # Errors
    /// Returns any error from [`combine`](Self::combine), [`Error::Shape`] unless `y` has the shape
    /// of `a`, and [`Error::Borrowed`] if `y` shares its data with `b`.
    #[track_caller]
    pub fn combine_into(&self, f: Binary<f64>, b: &Self, y: &Self) -> Result<()> {
        let op = f.name();
        check_output(op, [("a", self), ("b", b)], self.shape(), y)?;
        let Some(axis) = broadcast_axis(self.shape(), b.shape()) else {
            let (a, b) = (self.shape(), b.shape());
            let rule = "b is repeated along missing leading axes and axes of extent 1";
            return Err(Error::Shape(format!(
                "{op}: a of shape {a}, b of shape {b}; b cannot be broadcast to a ({rule})"
            )));
        };
        let b = b.data()?;
        let (a, mut out) = y.data_mut_from(self)?;
        if axis.extent == self.count() {
            self.device().binary(f.cast(), a.src(), b.view(), out.view_mut())
        } else {
            self.device().broadcast(f.cast(), &axis, a.src(), b.view(), out.view_mut())
        }
    }

    /// Returns `a + b`; `b` is broadcast as in [`combine`](Self::combine).
    ///
    /// ```
    /// use cortado::prelude::*;
    ///
    /// let device = CpuDevice::new();
    /// let scores = Blob::from_slice(&device, &[2, 3], &[1.0f32; 6])?;
    /// let bias = Blob::from_slice(&device, &[3], &[1.0, 2.0, 3.0])?;
    /// assert_eq!(scores.add(&bias)?.to_vec()?, [2.0, 3.0, 4.0, 2.0, 3.0, 4.0]);
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns any error from [`combine`](Self::combine).
    #[track_caller]
    pub fn add(&self, b: &Self) -> Result<Self> {
        self.combine(Binary::Add, b)
    }

    /// Returns `a − b`; `b` is broadcast as in [`combine`](Self::combine).
    ///
    /// # Errors
    /// Returns any error from [`combine`](Self::combine).
    #[track_caller]
    pub fn sub(&self, b: &Self) -> Result<Self> {
        self.combine(Binary::Sub, b)
    }

    /// Returns the elementwise product `a·b`; `b` is broadcast as in [`combine`](Self::combine).
    ///
    /// # Errors
    /// Returns any error from [`combine`](Self::combine).
    #[track_caller]
    pub fn mul(&self, b: &Self) -> Result<Self> {
        self.combine(Binary::Mul, b)
    }

    /// Returns the elementwise quotient `a / b`; `b` is broadcast as in
    /// [`combine`](Self::combine).
    ///
    /// # Errors
    /// Returns any error from [`combine`](Self::combine).
    #[track_caller]
    pub fn div(&self, b: &Self) -> Result<Self> {
        self.combine(Binary::Div, b)
    }

    /// Returns `factor · x` for each element `x` as a new blob.
    ///
    /// # Errors
    /// Returns any error from [`apply`](Self::apply).
    #[track_caller]
    pub fn scale(&self, factor: f64) -> Result<Self> {
        self.apply(Unary::Scale(factor))
    }

    /// Computes `a ← a + factor · b`, for example to update weights with their gradient.
    ///
    /// ```
    /// use cortado::prelude::*;
    ///
    /// let device = CpuDevice::new();
    /// let weights = Blob::from_slice(&device, &[2], &[1.0f32, 2.0])?;
    /// let gradient = Blob::from_slice(&device, &[2], &[4.0, 8.0])?;
    /// weights.add_scaled(-0.25, &gradient)?;
    /// assert_eq!(weights.to_vec()?, [0.0, 0.0]);
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] unless this blob and `b` have the same shape; [`Error::Borrowed`] if both
    /// blobs share their data; any error that the device returns.
    #[track_caller]
    pub fn add_scaled(&self, factor: f64, b: &Self) -> Result<()> {
        if *self.shape() != *b.shape() {
            let (a, b) = (self.shape(), b.shape());
            return Err(Error::Shape(format!(
                "add_scaled: a of shape {a}, b of shape {b}; the shapes must be equal"
            )));
        }
        self.device().axpy(T::acc(factor), b.data()?.view(), self.data_mut()?.view_mut())
    }

    /// Returns `max(x, 0)`.
    ///
    /// # Errors
    /// Returns any error from [`apply`](Self::apply).
    #[track_caller]
    pub fn relu(&self) -> Result<Self> {
        self.apply(Unary::Relu { slope: 0.0 })
    }

    /// Returns the sigmoid `1 / (1 + e⁻ˣ)` of each element `x` as a new blob.
    ///
    /// # Errors
    /// Returns any error from [`apply`](Self::apply).
    #[track_caller]
    pub fn sigmoid(&self) -> Result<Self> {
        self.apply(Unary::Sigmoid)
    }

    /// Returns `tanh x`.
    ///
    /// # Errors
    /// Returns any error from [`apply`](Self::apply).
    #[track_caller]
    pub fn tanh(&self) -> Result<Self> {
        self.apply(Unary::Tanh)
    }

    /// Returns `eˣ`.
    ///
    /// # Errors
    /// Returns any error from [`apply`](Self::apply).
    #[track_caller]
    pub fn exp(&self) -> Result<Self> {
        self.apply(Unary::Exp)
    }

    /// Returns `ln x`.
    ///
    /// # Errors
    /// Returns any error from [`apply`](Self::apply).
    #[track_caller]
    pub fn ln(&self) -> Result<Self> {
        self.apply(Unary::Ln)
    }
}

/// Returns an error unless the output `y` has the shape `expected`. The error message also contains
/// the shapes of the operands.
pub(super) fn check_output<T: Element, D: Device, const N: usize>(
    op: &str,
    operands: [(&str, &Blob<T, D>); N],
    expected: &[usize],
    y: &Blob<T, D>,
) -> Result<()> {
    if **y.shape() == *expected {
        return Ok(());
    }
    let describe = |(name, blob): (&str, &Blob<T, D>)| format!("{name} of shape {}", blob.shape());
    let operands = operands.map(describe).join(", ");
    let (expected, found) = (Shape::new(expected)?, y.shape());
    Err(Error::Shape(format!("{op}: {operands}; expected y of shape {expected}, found {found}")))
}

/// Returns the axes of `a` along which `b` is not repeated, merged into one axis. Returns `None` if
/// `b` cannot be broadcast to the shape of `a`.
fn broadcast_axis(a: &Shape, b: &Shape) -> Option<Axis> {
    if a == b {
        return Some(Axis { outer: 1, extent: a.count(), inner: 1 });
    }
    let missing_axes = a.len().checked_sub(b.len())?;
    let is_repeated = |i: &usize| *i < missing_axes || b[i - missing_axes] == 1;
    let Some(start) = (0..a.len()).find(|i| !is_repeated(i)) else {
        return Some(Axis { outer: a.count(), extent: 1, inner: 1 });
    };
    let end = 1 + (start..a.len()).rev().find(|i| !is_repeated(i))?;
    if a[start..end] != b[start - missing_axes..end - missing_axes] {
        return None;
    }
    let product = |axes: &[usize]| axes.iter().product();
    let (outer, extent, inner) = (&a[..start], &a[start..end], &a[end..]);
    Some(Axis { outer: product(outer), extent: product(extent), inner: product(inner) })
}
