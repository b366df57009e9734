//! Local response normalisation.

use crate::{
    error::{Error, Result},
    shape::Shape,
};

/// Which elements a response is normalised by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LrnRegion {
    /// The same position in neighbouring channels.
    AcrossChannels,
    /// Neighbouring positions of the same channel.
    WithinChannel,
}

/// `y = x · s^(−β)` with `s = k + α/n · Σ x²` over a region of `n` elements about `x`.
///
/// Operands are batch × channels × height × width. Across channels `n = size`; within a channel
/// `n = size²` and, as in Caffe, `k` counts as 1. What the region lacks at the borders counts as
/// zero. Source: Krizhevsky, Sutskever, Hinton 2012, section 3.3.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lrn {
    /// Which elements.
    pub region: LrnRegion,
    /// Images.
    pub batch: usize,
    /// Channels of an image.
    pub channels: usize,
    /// Height and width of a channel.
    pub plane: [usize; 2],
    /// Extent of the region; odd.
    pub size: usize,
    /// Factor of the mean square.
    pub alpha: f64,
    /// Exponent.
    pub beta: f64,
    /// What is added to it.
    pub k: f64,
}

impl Lrn {
    /// Elements of an operand, if they [can be counted](Self::check).
    pub fn count(&self) -> usize {
        let [height, width] = self.plane;
        [self.channels, height, width].into_iter().fold(self.batch, usize::saturating_mul)
    }

    /// Fails unless the region's extent is odd and the operands can be counted.
    ///
    /// # Errors
    /// [`Error::InvalidInput`], [`Error::ShapeOverflow`].
    pub fn check(&self) -> Result<()> {
        if self.size.is_multiple_of(2) {
            return Err(Error::invalid_input("lrn", format!("size {} is not odd", self.size)));
        }
        Shape::new(&[self.batch, self.channels, self.plane[0], self.plane[1]])?;
        Ok(())
    }
}
