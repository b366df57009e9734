//! Convolution of a batch of images with a bank of filters.

use super::Window;
use crate::{
    error::{Error, Result, check_len},
    shape::Shape,
};

/// Convolution of `batch` images with `window.channels()` planes each, into `outputs` planes per
/// image.
///
/// All operands are row-major. The images `x` have the shape batch × channels × input…, the filters
/// `w` have the shape outputs × channels/groups × kernel…, and the outputs `y` have the shape batch
/// × outputs × output…. The bias has one element per output plane. The output planes of a group
/// depend only on the input planes of the same group.
///
/// The example convolves 8 RGB images of 32 × 32 pixels with 16 filters of 5 × 5 taps:
///
/// ```
/// use cortado::op::{Convolution, SpatialAxis, Window};
///
/// let window = Window::new(3, &[SpatialAxis::new(32, 5), SpatialAxis::new(32, 5)])?;
/// let op = Convolution::new(8, 16, 1, window)?;
/// assert_eq!(op.filter_len(), 16 * 3 * 5 * 5);
/// assert_eq!(op.output_len(), 8 * 16 * 28 * 28);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Convolution {
    batch: usize,
    outputs: usize,
    groups: usize,
    window: Window,
}

impl Convolution {
    /// Creates the descriptor of a convolution.
    ///
    /// # Errors
    /// Returns [`Error::InvalidInput`] if `groups` is zero, or if the number of channels or outputs
    /// is not a multiple of `groups`. Returns [`Error::ShapeOverflow`] if an operand's element
    /// count overflows.
    pub fn new(batch: usize, outputs: usize, groups: usize, window: Window) -> Result<Self> {
        let channels = window.channels();
        if groups == 0 || !channels.is_multiple_of(groups) || !outputs.is_multiple_of(groups) {
            let reason =
                format!("{groups} groups do not divide {channels} channels and {outputs} outputs");
            return Err(Error::invalid_input("convolution", reason));
        }
        Shape::new(&[batch, window.image_len()])?;
        Shape::new(&[batch, outputs, window.positions()])?;
        Shape::new(&[outputs, window.column_rows()])?;
        Ok(Self { batch, outputs, groups, window })
    }

    /// Returns the number of images in the batch.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// Returns the number of output planes per image.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Returns the number of groups.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// Returns the descriptor of the windows over one image.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// Returns the number of elements of the images `x`.
    pub fn input_len(&self) -> usize {
        self.batch * self.window.image_len()
    }

    /// Returns the number of elements of the filters `w`.
    pub fn filter_len(&self) -> usize {
        self.outputs * (self.window.column_rows() / self.groups)
    }

    /// Returns the number of elements of the outputs `y`.
    pub fn output_len(&self) -> usize {
        self.batch * self.outputs * self.window.positions()
    }

    /// Returns the number of floating-point operations of the convolution of the whole batch,
    /// saturating at `u64::MAX`.
    pub fn flops(&self) -> u64 {
        let flops_per_output = 2 * (self.window.column_rows() / self.groups) as u64;
        flops_per_output.saturating_mul(self.output_len() as u64)
    }

    /// Fails unless the lengths of `x`, `w` and `y`, or of their gradients, match the convolution.
    ///
    /// # Errors
    /// Returns [`Error::Length`], which names the operand, if an operand has the wrong length.
    pub fn check(
        &self,
        op: &'static str,
        x: (&'static str, usize),
        w: (&'static str, usize),
        y: (&'static str, usize),
    ) -> Result<()> {
        check_len(op, x.0, self.input_len(), x.1)?;
        check_len(op, w.0, self.filter_len(), w.1)?;
        check_len(op, y.0, self.output_len(), y.1)
    }
}
