//! Matrix products of blobs, whose shapes determine the sizes m, n and k of the product.

use super::Blob;
use crate::{
    device::Device,
    element::Element,
    error::{Error, Result},
    op::{Gemm, Transpose},
};
use num_traits::{One, Zero};

/// A blob with two axes as an operand of [`matmul`], possibly transposed.
///
/// A reference to a blob converts into a [`Matrix`]. [`Blob::t`] returns the transpose of a blob as
/// a [`Matrix`]. The conversion of a blob to a [`Matrix`] copies no elements.
///
/// ```
/// use cortado::{blob::Matrix, prelude::*};
///
/// /// Multiplies a matrix, possibly transposed, by a column of two ones.
/// fn row_sums<'a>(a: impl Into<Matrix<'a, f32, CpuDevice>>) -> Result<Vec<f32>> {
///     let a: Matrix<'_, _, _> = a.into();
///     matmul(a, &Blob::ones(&CpuDevice::new(), &[2, 1])?)?.to_vec()
/// }
/// let a = Blob::from_slice(&CpuDevice::new(), &[2, 2], &[1.0, 2.0, 3.0, 4.0])?;
/// assert_eq!((row_sums(&a)?, row_sums(a.t())?), (vec![3.0, 7.0], vec![4.0, 6.0]));
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Debug)]
pub struct Matrix<'a, T: Element, D: Device> {
    blob: &'a Blob<T, D>,
    transpose: Transpose,
}

impl<T: Element, D: Device> Clone for Matrix<'_, T, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Element, D: Device> Copy for Matrix<'_, T, D> {}

impl<'a, T: Element, D: Device> From<&'a Blob<T, D>> for Matrix<'a, T, D> {
    fn from(blob: &'a Blob<T, D>) -> Self {
        Self { blob, transpose: Transpose::No }
    }
}

impl<T: Element, D: Device> Blob<T, D> {
    /// Returns the transpose of this matrix as an operand of [`matmul`], without a copy.
    ///
    /// [`matmul`] returns an error unless the blob has two axes.
    pub fn t(&self) -> Matrix<'_, T, D> {
        Matrix { blob: self, transpose: Transpose::Yes }
    }
}

impl<T: Element, D: Device> Matrix<'_, T, D> {
    /// Returns the numbers of rows and columns of the operand after the transposition.
    fn extents(&self) -> Option<[usize; 2]> {
        let [rows, columns] = **self.blob.shape() else { return None };
        Some(match self.transpose {
            Transpose::No => [rows, columns],
            Transpose::Yes => [columns, rows],
        })
    }

    /// Returns a description of the operand for error messages, such as `Bᵀ of shape [4, 3]`.
    fn describe(&self, name: &str) -> String {
        let suffix = if self.transpose == Transpose::Yes { "ᵀ" } else { "" };
        match self.extents() {
            Some([rows, columns]) => format!("{name}{suffix} of shape [{rows}, {columns}]"),
            None => format!("{name} of shape {}", self.blob.shape()),
        }
    }
}

/// Returns the matrix product `A·B` as a new blob on the device of `a`.
///
/// The shape of `a` is m × k, the shape of `b` is k × n, and the shape of the product is m × n.
/// [`Blob::t`] transposes an operand.
///
/// ```
/// use cortado::prelude::*;
///
/// let a = Blob::from_slice(&CpuDevice::new(), &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let c = matmul(&a, a.t())?;
/// assert_eq!(c.to_vec()?, [14.0, 32.0, 32.0, 77.0]);
///
/// let error = matmul(&a, &a).unwrap_err().to_string();
/// assert_eq!(
///     error,
///     "matmul: A of shape [2, 3], B of shape [2, 3]; A must have as many columns as B has rows"
/// );
/// # Ok::<(), cortado::Error>(())
/// ```
///
/// # Errors
/// [`Error::Shape`] unless both operands have two axes and `a` has as many columns as `b` has rows;
/// [`Error::Borrowed`] if another access to the data is in progress; any error that the device
/// returns.
#[track_caller]
pub fn matmul<'a, 'b, T: Element, D: Device>(
    a: impl Into<Matrix<'a, T, D>>,
    b: impl Into<Matrix<'b, T, D>>,
) -> Result<Blob<T, D>> {
    let (a, b) = (a.into(), b.into());
    let sizes @ [m, n, _] = sizes("matmul", a, b)?;
    let c = Blob::new(a.blob.device(), &[m, n])?;
    multiply(sizes, a, b, T::Acc::zero(), &c)?;
    Ok(c)
}

/// Computes `C ← A·B`, like [`matmul`], but writes the product to the existing blob `c`.
///
/// ```
/// use cortado::prelude::*;
///
/// let device = CpuDevice::new();
/// let (a, c) = (Blob::ones(&device, &[2, 3])?, Blob::<f32, _>::new(&device, &[2, 2])?);
/// matmul_into(&a, a.t(), &c)?; // allocates nothing, so a loop can reuse `c`
/// assert_eq!(c.to_vec()?, [3.0; 4]);
/// # Ok::<(), cortado::Error>(())
/// ```
///
/// # Errors
/// Returns any error from [`matmul`], [`Error::Shape`] unless `c` has m × n elements, and
/// [`Error::Borrowed`] if `c` shares its data with an operand.
#[track_caller]
pub fn matmul_into<'a, 'b, T: Element, D: Device>(
    a: impl Into<Matrix<'a, T, D>>,
    b: impl Into<Matrix<'b, T, D>>,
    c: &Blob<T, D>,
) -> Result<()> {
    let (a, b) = (a.into(), b.into());
    multiply(sizes_into("matmul_into", a, b, c)?, a, b, T::Acc::zero(), c)
}

/// Computes `C ← C + A·B`, for example to accumulate a gradient.
///
/// ```
/// use cortado::prelude::*;
///
/// // Adds the outer product x·yᵀ to a gradient.
/// let device = CpuDevice::new();
/// let (x, y) = (Blob::full(&device, &[2, 1], 3.0)?, Blob::full(&device, &[2, 1], 4.0)?);
/// let gradient = Blob::<f32, _>::ones(&device, &[2, 2])?;
/// matmul_add(&x, y.t(), &gradient)?;
/// assert_eq!(gradient.to_vec()?, [13.0; 4]);
/// # Ok::<(), cortado::Error>(())
/// ```
///
/// # Errors
/// Returns any error from [`matmul_into`].
#[track_caller]
pub fn matmul_add<'a, 'b, T: Element, D: Device>(
    a: impl Into<Matrix<'a, T, D>>,
    b: impl Into<Matrix<'b, T, D>>,
    c: &Blob<T, D>,
) -> Result<()> {
    let (a, b) = (a.into(), b.into());
    multiply(sizes_into("matmul_add", a, b, c)?, a, b, T::Acc::one(), c)
}

/// Returns m, n and k of the product `A·B`.
fn sizes<T: Element, D: Device>(
    op: &str,
    a: Matrix<'_, T, D>,
    b: Matrix<'_, T, D>,
) -> Result<[usize; 3]> {
    let fail = |reason: &str| {
        let (a, b) = (a.describe("A"), b.describe("B"));
        Error::Shape(format!("{op}: {a}, {b}; {reason}"))
    };
    let (Some([m, k]), Some([rows, n])) = (a.extents(), b.extents()) else {
        return Err(fail("A and B must have two axes; `reshaped` returns a blob of another shape"));
    };
    match k == rows {
        true => Ok([m, n, k]),
        false => Err(fail("A must have as many columns as B has rows")),
    }
}

/// Returns m, n and k of the product `A·B`, or an error unless `c` has the product's shape.
fn sizes_into<T: Element, D: Device>(
    op: &str,
    a: Matrix<'_, T, D>,
    b: Matrix<'_, T, D>,
    c: &Blob<T, D>,
) -> Result<[usize; 3]> {
    let sizes @ [m, n, _] = sizes(op, a, b)?;
    if **c.shape() == [m, n] {
        return Ok(sizes);
    }
    let (a, b, found) = (a.describe("A"), b.describe("B"), c.shape());
    Err(Error::Shape(format!("{op}: {a}, {b}; expected C of shape [{m}, {n}], found {found}")))
}

#[track_caller]
fn multiply<T: Element, D: Device>(
    [m, n, k]: [usize; 3],
    a: Matrix<'_, T, D>,
    b: Matrix<'_, T, D>,
    beta: T::Acc,
    c: &Blob<T, D>,
) -> Result<()> {
    let gemm = Gemm::new(m, n, k).transpose(a.transpose, b.transpose).beta(beta);
    let (a, b) = (a.blob.data()?, b.blob.data()?);
    c.device().gemm(&gemm, a.view(), b.view(), c.data_mut()?.view_mut())
}
