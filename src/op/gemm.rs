//! Descriptors of matrix-matrix and matrix-vector products: GEMM, batched GEMM and GEMV.

use crate::{
    element::Element,
    error::{Error, Result, check_len, check_min_len},
};
use num_traits::{One, Zero};

/// Whether a GEMM or GEMV transposes a matrix operand.
///
/// ```
/// use cortado::{host::Workers, kernel::slices, op::{Gemm, Transpose}};
///
/// let (a, identity) = ([1.0f32, 2.0, 3.0, 4.0], [1.0, 0.0, 0.0, 1.0]);
/// let op = Gemm::new(2, 2, 2).transpose(Transpose::Yes, Transpose::No);
/// let mut c = [0.0; 4];
/// slices::gemm(Workers::global(), &op, &a, &identity, &mut c)?;
/// assert_eq!(c, [1.0, 3.0, 2.0, 4.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transpose {
    /// The GEMM or GEMV uses the matrix as stored.
    No,
    /// The GEMM or GEMV uses the transpose of the stored matrix.
    Yes,
}

/// `C ← α·op(A)·op(B) + β·C`, where all matrices are row-major, `op(A)` is m×k, `op(B)` is k×n and
/// `C` is m×n.
///
/// As in BLAS, the GEMM does not read `C` if β = 0, so a NaN in `C` does not propagate. The GEMM
/// reads neither `A` nor `B` if α = 0 or k = 0.
///
/// ```
/// use cortado::{kernel::Blas, op::Gemm, prelude::*};
///
/// let device = CpuDevice::new();
/// let a = Blob::from_slice(&device, &[1, 2], &[1.0f32, 2.0])?;
/// let b = Blob::from_slice(&device, &[2, 1], &[3.0, 4.0])?;
/// let c = Blob::from_slice(&device, &[1, 1], &[500.0])?;
/// let op = Gemm::<f32>::new(1, 1, 2).alpha(10.0).accumulate();
/// device.gemm(&op, a.data()?.view(), b.data()?.view(), c.data_mut()?.view_mut())?;
/// assert_eq!(c.item()?, 500.0 + 10.0 * 11.0);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gemm<T: Element> {
    /// Number of rows of `op(A)` and `C`.
    pub m: usize,
    /// Number of columns of `op(B)` and `C`.
    pub n: usize,
    /// Number of columns of `op(A)` and rows of `op(B)`.
    pub k: usize,
    /// Whether `A` is transposed, that is, stored as k×m.
    pub trans_a: Transpose,
    /// Whether `B` is transposed, that is, stored as n×k.
    pub trans_b: Transpose,
    /// Factor α of the product `op(A)·op(B)`.
    pub alpha: T::Acc,
    /// Factor β of the previous contents of `C`.
    pub beta: T::Acc,
    /// Leading dimension of `A`: distance in elements from one stored row to the next.
    pub lda: usize,
    /// Leading dimension of the stored `B`, in elements.
    pub ldb: usize,
    /// Leading dimension of `C`, in elements.
    pub ldc: usize,
}

impl<T: Element> Gemm<T> {
    /// Creates the descriptor of `C ← A·B`, where `A` is m×k, `B` is k×n and `C` is m×n, all
    /// without gaps between rows.
    pub fn new(m: usize, n: usize, k: usize) -> Self {
        let (trans_a, trans_b) = (Transpose::No, Transpose::No);
        let (alpha, beta) = (T::Acc::one(), T::Acc::zero());
        Self { m, n, k, trans_a, trans_b, alpha, beta, lda: k, ldb: n, ldc: n }
    }

    /// Sets whether `A` and `B` are transposed, and resets the leading dimensions to those of
    /// operands without gaps between rows. A transposed `A` is stored as k×m, and a transposed `B`
    /// is stored as n×k.
    ///
    /// ```
    /// use cortado::op::{Gemm, Transpose::{No, Yes}};
    ///
    /// let op = Gemm::<f32>::new(2, 3, 4).transpose(No, Yes);
    /// assert_eq!((op.lda, op.ldb, op.ldc), (4, 4, 3));
    /// ```
    #[must_use]
    pub fn transpose(self, a: Transpose, b: Transpose) -> Self {
        let lda = if a == Transpose::No { self.k } else { self.m };
        let ldb = if b == Transpose::No { self.n } else { self.k };
        Self { trans_a: a, trans_b: b, lda, ldb, ..self }
    }

    /// Sets α, so that the kernel multiplies the product by `alpha`.
    #[must_use]
    pub fn alpha(self, alpha: T::Acc) -> Self {
        Self { alpha, ..self }
    }

    /// Sets β, so that the GEMM adds `beta` times the previous contents of `C`.
    #[must_use]
    pub fn beta(self, beta: T::Acc) -> Self {
        Self { beta, ..self }
    }

    /// Sets β to 1, so that the GEMM adds to `C` instead of overwriting `C`.
    #[must_use]
    pub fn accumulate(self) -> Self {
        self.beta(T::Acc::one())
    }

    /// Sets the leading dimensions of `A`, `B` and `C`, for operands that are blocks of wider
    /// matrices.
    #[must_use]
    pub fn leading_dims(self, lda: usize, ldb: usize, ldc: usize) -> Self {
        Self { lda, ldb, ldc, ..self }
    }

    /// Returns whether the GEMM overwrites `C`, that is, `C` has no gaps between rows and the GEMM
    /// reads no element of `C`.
    pub fn overwrites(&self) -> bool {
        self.beta.is_zero() && (self.ldc == self.n || self.m <= 1)
    }

    /// Returns the spans of `A`, `B` and `C`: for each matrix, the number of elements from the
    /// first to the last element that the GEMM uses.
    ///
    /// # Errors
    /// Returns [`Error::InvalidInput`] if a leading dimension is less than the length of a row, or
    /// if a span overflows.
    pub fn spans(&self) -> Result<(usize, usize, usize)> {
        let stored_shape = |trans, rows, columns| match trans {
            Transpose::No => (rows, columns),
            Transpose::Yes => (columns, rows),
        };
        Ok((
            span("gemm", "lda", stored_shape(self.trans_a, self.m, self.k), self.lda)?,
            span("gemm", "ldb", stored_shape(self.trans_b, self.k, self.n), self.ldb)?,
            span("gemm", "ldc", (self.m, self.n), self.ldc)?,
        ))
    }

    /// Fails if an operand is shorter than its span; `a`, `b` and `c` are the numbers of elements
    /// of `A`, `B` and `C`.
    ///
    /// # Errors
    /// Returns [`Error::Length`], which names the operand, if an operand is too short. Returns
    /// [`Error::InvalidInput`] if a leading dimension is too small.
    pub fn check(&self, a: usize, b: usize, c: usize) -> Result<()> {
        let (want_a, want_b, want_c) = self.spans()?;
        check_min_len("gemm", "a", want_a, a)?;
        check_min_len("gemm", "b", want_b, b)?;
        check_min_len("gemm", "c", want_c, c)
    }

    /// Fails if an operand of [`gemm_with_bias`](crate::kernel::Blas::gemm_with_bias) has a wrong
    /// length; `a`, `b`, `bias` and `c` are the numbers of elements of the operands.
    ///
    /// # Errors
    /// Returns the errors of [`check`](Self::check). Returns [`Error::Length`] if `bias` does not
    /// have n elements or `c` does not have m·n, and [`Error::InvalidInput`] if `C` has gaps between
    /// rows.
    pub fn check_with_bias(&self, a: usize, b: usize, bias: usize, c: usize) -> Result<()> {
        const NAME: &str = "gemm_with_bias";
        self.check(a, b, c)?;
        check_len(NAME, "bias", self.n, bias)?;
        check_len(NAME, "c", self.m.saturating_mul(self.n), c)?;
        if self.ldc != self.n && self.m > 1 {
            let reason = format!("ldc {} differs from the {} columns of `C`", self.ldc, self.n);
            return Err(Error::invalid_input(NAME, reason));
        }
        Ok(())
    }

    /// Returns the GEMV with `op(A)` that is equivalent to this GEMM, if `op(B)` and `C` are
    /// contiguous columns.
    pub(crate) fn as_gemv(&self) -> Option<Gemv<T>> {
        let dense_b = self.trans_b == Transpose::Yes || self.ldb == 1 || self.k == 1;
        let dense_c = self.ldc == 1 || self.m == 1;
        let (m, n) =
            if self.trans_a == Transpose::No { (self.m, self.k) } else { (self.k, self.m) };
        let Self { alpha, beta, lda, trans_a: trans, .. } = *self;
        (self.n == 1 && dense_b && dense_c).then_some(Gemv { m, n, trans, alpha, beta, lda })
    }

    /// Returns the GEMV with `op(B)ᵀ` that is equivalent to this GEMM, if `op(A)` is a contiguous
    /// row.
    pub(crate) fn as_transposed_gemv(&self) -> Option<Gemv<T>> {
        let dense_a = self.trans_a == Transpose::No || self.lda == 1 || self.k == 1;
        let (m, n, trans) = match self.trans_b {
            Transpose::No => (self.k, self.n, Transpose::Yes),
            Transpose::Yes => (self.n, self.k, Transpose::No),
        };
        let Self { alpha, beta, ldb: lda, .. } = *self;
        (self.m == 1 && dense_a).then_some(Gemv { m, n, trans, alpha, beta, lda })
    }

    /// Returns the number of floating-point operations of the GEMM, `2·m·n·k`, saturating at
    /// `u64::MAX`.
    pub fn flops(&self) -> u64 {
        [self.m, self.n, self.k].into_iter().fold(2, |flops, by| flops.saturating_mul(by as u64))
    }
}

/// A batch of `count` GEMMs of the same shape, whose operands are a constant stride apart.
///
/// If the stride of `A` or `B` is zero, all GEMMs of the batch use the same matrix. The matrices
/// `C` of the batch must not overlap.
///
/// ```
/// use cortado::{host::Workers, kernel::slices, op::{Gemm, GemmBatch}};
///
/// let (rows, column, mut c) = ([1.0f32, 2.0, 3.0, 4.0], [1.0, 10.0], [0.0; 2]);
/// let batch = GemmBatch { count: 2, stride_a: 2, stride_b: 0, stride_c: 1 };
/// slices::gemm_batched(Workers::global(), &Gemm::new(1, 1, 2), &batch, &rows, &column, &mut c)?;
/// assert_eq!(c, [21.0, 43.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GemmBatch {
    /// Number of GEMMs in the batch.
    pub count: usize,
    /// Distance in elements from the matrix `A` of one GEMM to the `A` of the next GEMM.
    pub stride_a: usize,
    /// Distance in elements from the matrix `B` of one GEMM to the `B` of the next GEMM.
    pub stride_b: usize,
    /// Distance in elements from the matrix `C` of one GEMM to the `C` of the next GEMM.
    pub stride_c: usize,
}

impl GemmBatch {
    /// A batch of one GEMM.
    #[cfg(feature = "cuda")] // used by device
    pub(crate) const SINGLE: Self = Self { count: 1, stride_a: 0, stride_b: 0, stride_c: 0 };

    /// Fails if operands of `a`, `b` and `c` elements are too short for the batch of GEMMs, or if
    /// two of the matrices `C` overlap.
    ///
    /// # Errors
    /// Returns any error from [`Gemm::check`]. Returns [`Error::InvalidInput`] if two of the
    /// matrices `C` overlap.
    pub fn check<T: Element>(&self, op: &Gemm<T>, a: usize, b: usize, c: usize) -> Result<()> {
        let Some(last) = self.count.checked_sub(1) else { return Ok(()) };
        let (span_a, span_b, span_c) = op.spans()?;
        if last > 0 && self.stride_c < span_c {
            let reason =
                format!("stride_c {} is shorter than a `C` of {span_c} elements", self.stride_c);
            return Err(Error::invalid_input("gemm_batched", reason));
        }
        let check = |operand, stride: usize, span: usize, got| {
            let required_len = stride.checked_mul(last).and_then(|start| start.checked_add(span));
            check_min_len("gemm_batched", operand, required_len.unwrap_or(usize::MAX), got)
        };
        check("a", self.stride_a, span_a, a)?;
        check("b", self.stride_b, span_b, b)?;
        check("c", self.stride_c, span_c, c)
    }
}

/// `y ← α·op(A)·x + β·y`, where `A` is row-major and m×n as stored. If β = 0, the GEMV does not
/// read `y`. If α = 0, the GEMV reads neither `A` nor `x`.
///
/// ```
/// use cortado::{host::Workers, kernel::slices, op::{Gemv, Transpose}};
///
/// let a = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
/// let op = Gemv::<f32>::new(Transpose::Yes, 2, 3);
/// assert_eq!(op.lengths(), (2, 3));
/// let mut y = [0.0; 3];
/// slices::gemv(Workers::global(), &op, &a, &[1.0, 10.0], &mut y)?;
/// assert_eq!(y, [41.0, 52.0, 63.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gemv<T: Element> {
    /// Number of rows of `A` as stored.
    pub m: usize,
    /// Number of columns of `A` as stored.
    pub n: usize,
    /// Whether `op(A)` is `Aᵀ`; in that case, `x` has m elements and `y` has n elements.
    pub trans: Transpose,
    /// Factor α of the product `op(A)·x`.
    pub alpha: T::Acc,
    /// Factor β of the previous contents of `y`.
    pub beta: T::Acc,
    /// Leading dimension of `A`, in elements.
    pub lda: usize,
}

impl<T: Element> Gemv<T> {
    /// Creates the descriptor of `y ← op(A)·x` for a stored m×n matrix `A` without gaps between
    /// rows.
    pub fn new(trans: Transpose, m: usize, n: usize) -> Self {
        Self { m, n, trans, alpha: T::Acc::one(), beta: T::Acc::zero(), lda: n }
    }

    /// Sets α, so that the kernel multiplies the product by `alpha`.
    #[must_use]
    pub fn alpha(self, alpha: T::Acc) -> Self {
        Self { alpha, ..self }
    }

    /// Sets β, so that the GEMV adds `beta` times the previous contents of `y`.
    #[must_use]
    pub fn beta(self, beta: T::Acc) -> Self {
        Self { beta, ..self }
    }

    /// Sets the leading dimension of `A`, for a matrix `A` that is a block of a wider matrix.
    #[must_use]
    pub fn leading_dim(self, lda: usize) -> Self {
        Self { lda, ..self }
    }

    /// Returns the lengths of `x` and `y`.
    pub fn lengths(&self) -> (usize, usize) {
        match self.trans {
            Transpose::No => (self.n, self.m),
            Transpose::Yes => (self.m, self.n),
        }
    }

    /// Fails unless `A` has at least the elements that the GEMV uses, and `x` and `y` have exactly
    /// the required lengths.
    ///
    /// # Errors
    /// Returns [`Error::Length`], which names the operand, if an operand has the wrong length.
    /// Returns [`Error::InvalidInput`] if `lda` is too small.
    pub fn check(&self, a: usize, x: usize, y: usize) -> Result<()> {
        let (want_x, want_y) = self.lengths();
        check_min_len("gemv", "a", span("gemv", "lda", (self.m, self.n), self.lda)?, a)?;
        check_len("gemv", "x", want_x, x)?;
        check_len("gemv", "y", want_y, y)
    }
}

/// Returns the number of elements from the first to the last element of a matrix with leading
/// dimension `ld`.
fn span(
    op: &'static str,
    name: &'static str,
    (rows, columns): (usize, usize),
    ld: usize,
) -> Result<usize> {
    if rows == 0 || columns == 0 {
        return Ok(0);
    }
    if ld < columns {
        let reason = format!("{name} {ld} is shorter than a row of {columns} elements");
        return Err(Error::invalid_input(op, reason));
    }
    (rows - 1)
        .checked_mul(ld)
        .and_then(|start| start.checked_add(columns))
        .filter(|&span| span <= isize::MAX as usize)
        .ok_or_else(|| {
            Error::invalid_input(op, format!("{rows} rows of {name} = {ld} elements overflow"))
        })
}
