//! Local response normalization.

use crate::{
    error::{Error, Result, check_len},
    shape::Shape,
};

/// The kind of region over which local response normalization (LRN) sums the squares of elements.
///
/// ```
/// use cortado::{host::Workers, kernel::slices, op::{Lrn, LrnRegion::*}};
///
/// let (plane, size, alpha, beta, k) = ([1, 2], 3, 9.0, 0.75, 1.0);
/// for (region, first) in [(AcrossChannels, 1.0 + 3.0 * 10.0), (WithinChannel, 1.0 + 5.0)] {
///     let op = Lrn { region, batch: 1, channels: 2, plane, size, alpha, beta, k };
///     let (mut s, mut y) = ([0.0; 4], [0.0; 4]);
///     slices::lrn(Workers::global(), &op, &[1.0f32, 2.0, 3.0, 4.0], &mut s, &mut y)?;
///     assert_eq!(s[0], first);
/// }
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LrnRegion {
    /// The region covers the same position in neighbouring channels.
    AcrossChannels,
    /// The region covers neighbouring positions in the same channel.
    WithinChannel,
}

/// Local response normalization, `y = x · s^(−β)` with `s = k + α/n · Σ x²`. The sum `Σ x²` is over
/// a region of `n` elements around `x`.
///
/// The operands have the shape batch × channels × height × width. For a region across channels, `n
/// = size`. For a region within a channel, `n = size²`; as in Caffe, such a region uses 1 instead
/// of `k`. Elements of a region that lie outside the operand count as zero. Local response
/// normalization was introduced by Krizhevsky, Sutskever and Hinton (2012), section 3.3.
///
/// ```
/// use cortado::{host::Workers, kernel::slices, op::{Lrn, LrnRegion}};
///
/// let (region, plane) = (LrnRegion::AcrossChannels, [1, 1]);
/// let (alpha, beta, k) = (3.0, 0.5, 1.0);
/// let op = Lrn { region, batch: 1, channels: 3, plane, size: 3, alpha, beta, k };
/// let (mut s, mut y) = ([0.0; 3], [0.0; 3]);
/// slices::lrn(Workers::global(), &op, &[2.0f32, 2.0, 4.0], &mut s, &mut y)?;
/// assert_eq!(s, [9.0, 25.0, 21.0]);
/// assert!((y[1] - 2.0 / 5.0).abs() < 1e-6);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lrn {
    /// Kind of region over which the squares are summed.
    pub region: LrnRegion,
    /// Number of images in the batch.
    pub batch: usize,
    /// Number of channels of an image.
    pub channels: usize,
    /// Height and width of a channel.
    pub plane: [usize; 2],
    /// Extent of the region along each of its axes; an odd number.
    pub size: usize,
    /// Factor α of the mean square over the region.
    pub alpha: f64,
    /// Exponent.
    pub beta: f64,
    /// Constant term `k` of the base `s`.
    pub k: f64,
}

impl Lrn {
    /// Returns the name under which a [`Ledger`](crate::ledger::Ledger) and the coverage table list
    /// the kernel [`lrn`](crate::kernel::Normalize::lrn) with this kind of region.
    pub fn kernel_name(&self) -> &'static str {
        match self.region {
            LrnRegion::AcrossChannels => "lrn_across",
            LrnRegion::WithinChannel => "lrn_within",
        }
    }

    /// Like [`kernel_name`](Self::kernel_name), for the kernel
    /// [`lrn_backward`](crate::kernel::Normalize::lrn_backward).
    pub fn backward_kernel_name(&self) -> &'static str {
        match self.region {
            LrnRegion::AcrossChannels => "lrn_across_backward",
            LrnRegion::WithinChannel => "lrn_within_backward",
        }
    }

    /// Returns the number of elements of each operand, saturating at `usize::MAX`. If the number of
    /// elements overflows, [`check`](Self::check) fails.
    pub fn count(&self) -> usize {
        let [height, width] = self.plane;
        [self.channels, height, width].into_iter().fold(self.batch, usize::saturating_mul)
    }

    /// Fails if the region's extent is even, or if an operand's element count overflows.
    ///
    /// # Errors
    /// Returns [`Error::InvalidInput`] if `size` is even, or [`Error::ShapeOverflow`] if the
    /// element count overflows.
    pub fn check(&self) -> Result<()> {
        if self.size.is_multiple_of(2) {
            return Err(Error::invalid_input(
                "lrn",
                format!("size {} is even; it must be odd", self.size),
            ));
        }
        Shape::new(&[self.batch, self.channels, self.plane[0], self.plane[1]])?;
        Ok(())
    }

    /// Fails if [`check`](Self::check) fails, or if an operand of the kernel `op` has the wrong
    /// length.
    pub(crate) fn check_operands(
        &self,
        op: &'static str,
        operands: &[(&'static str, usize)],
    ) -> Result<()> {
        self.check()?;
        operands.iter().try_for_each(|&(name, len)| check_len(op, name, self.count(), len))
    }
}
