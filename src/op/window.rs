//! Sliding windows over any number of spatial axes: the geometry of im2col, col2im and convolution.

use crate::{
    error::{Error, Result, check_len},
    shape::Shape,
};

/// Window geometry along one spatial axis, with all lengths in elements.
///
/// ```
/// use cortado::op::SpatialAxis;
///
/// let axis = SpatialAxis { stride: 2, pad: 3, ..SpatialAxis::new(224, 7) };
/// assert_eq!(axis.output()?, 112);
/// assert_eq!(SpatialAxis { input: 112, ..axis }.transposed()?.input, 223);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpatialAxis {
    /// Extent of the input image along the axis.
    pub input: usize,
    /// Number of taps of the convolution kernel along the axis.
    pub kernel: usize,
    /// Stride: the distance in elements from one window to the next.
    pub stride: usize,
    /// Padding: the number of zeros on each side of the input along the axis.
    pub pad: usize,
    /// Dilation: the distance in elements from one tap to the next.
    pub dilation: usize,
}

impl SpatialAxis {
    /// Creates a spatial axis with stride 1, without padding or dilation.
    pub fn new(input: usize, kernel: usize) -> Self {
        Self { input, kernel, stride: 1, pad: 0, dilation: 1 }
    }

    /// Returns the number of windows along the axis, `⌊(input + 2·pad − (dilation·(kernel − 1) +
    /// 1)) / stride⌋ + 1`.
    ///
    /// # Errors
    /// Returns [`Error::InvalidInput`] if the kernel, stride or dilation is zero, if no window fits
    /// into the padded input, or if a number overflows.
    pub fn output(&self) -> Result<usize> {
        let Self { input, kernel, stride, pad, dilation } = *self;
        let error = |reason: &str| {
            let taps = format!("kernel {kernel}, stride {stride}, pad {pad}, dilation {dilation}");
            Error::invalid_input("window", format!("{reason}: input {input}, {taps}"))
        };
        if kernel == 0 || stride == 0 || dilation == 0 {
            return Err(error("kernel, stride and dilation must be positive"));
        }
        let padded_input = pad.checked_mul(2).and_then(|pad| pad.checked_add(input));
        let extent = dilation.checked_mul(kernel - 1).and_then(|last| last.checked_add(1));
        let (Some(padded_input), Some(extent)) = (padded_input, extent) else {
            return Err(error("overflow"));
        };
        let slack = padded_input.checked_sub(extent).ok_or_else(|| error("kernel does not fit"))?;
        Ok(slack / stride + 1)
    }

    /// Returns the axis of the transposed convolution. The number of windows along the returned
    /// axis is the input extent of `self`. The input extent of the returned axis is
    /// `stride·(input − 1) + dilation·(kernel − 1) + 1 − 2·pad`.
    ///
    /// # Errors
    /// Returns [`Error::InvalidInput`] if the kernel, stride or dilation is zero, if the input
    /// extent of the returned axis is negative, or if a number overflows.
    pub fn transposed(&self) -> Result<Self> {
        let Self { input, kernel, stride, pad, dilation } = *self;
        let steps = |count: usize, step: usize| count.checked_sub(1)?.checked_mul(step);
        let new_input = || {
            let padded_input = steps(input, stride)?.checked_add(steps(kernel, dilation)?)?;
            padded_input.checked_add(1)?.checked_sub(pad.checked_mul(2)?)
        };
        let error = || {
            let taps = format!("kernel {kernel}, stride {stride}, pad {pad}, dilation {dilation}");
            Error::invalid_input(
                "window",
                format!("no input extent yields {input} windows: {taps}"),
            )
        };
        let transposed_axis = Self { input: new_input().ok_or_else(error)?, ..*self };
        if transposed_axis.output()? == input { Ok(transposed_axis) } else { Err(error()) }
    }
}

/// Sliding windows over an image of shape `channels × input…` with any number of spatial axes.
///
/// The im2col matrix of an image, called *columns*, has `channels · ∏kernel` rows (channel
/// outermost, then the taps in row-major order) and `∏output` columns.
///
/// ```
/// use cortado::{host::Workers, kernel::slices, op::{SpatialAxis, Window}};
///
/// let window = Window::new(1, &[SpatialAxis::new(4, 2)])?;
/// assert_eq!((window.column_rows(), window.positions()), (2, 3));
/// let mut columns = [0.0; 6];
/// slices::im2col(Workers::global(), &window, &[1.0f32, 2.0, 3.0, 4.0], &mut columns)?;
/// assert_eq!(columns, [1.0, 2.0, 3.0, 2.0, 3.0, 4.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    channels: usize,
    axes: Vec<SpatialAxis>,
    output: Vec<usize>,
}

impl Window {
    /// Creates the descriptor of windows over images with `channels` channels and the spatial axes
    /// `axes`.
    ///
    /// # Errors
    /// Returns any error from [`SpatialAxis::output`]. Returns [`Error::ShapeOverflow`] if the
    /// element count of the image or of the im2col matrix overflows.
    pub fn new(channels: usize, axes: &[SpatialAxis]) -> Result<Self> {
        let output = axes.iter().map(SpatialAxis::output).collect::<Result<Vec<_>>>()?;
        let kernel: Vec<_> = axes.iter().map(|axis| axis.kernel).collect();
        let (taps, positions) = (Shape::new(&kernel)?.count(), Shape::new(&output)?.count());
        // Even if `channels` is 0, the product of taps and positions must not overflow, because
        // kernels compute this product.
        Shape::new(&[channels, taps, positions])?;
        let image: Vec<_> = [channels].into_iter().chain(axes.iter().map(|a| a.input)).collect();
        Shape::new(&image)?;
        Ok(Self { channels, axes: axes.to_vec(), output })
    }

    /// Returns the number of channels of the image.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Returns the spatial axes of the windows.
    pub fn axes(&self) -> &[SpatialAxis] {
        &self.axes
    }

    /// Returns the number of windows along each spatial axis.
    pub fn output(&self) -> &[usize] {
        &self.output
    }

    /// Returns the number of taps in one channel of a window, `∏kernel`.
    pub fn taps(&self) -> usize {
        self.axes.iter().map(|axis| axis.kernel).product()
    }

    /// Returns the number of rows of the im2col matrix, `channels · ∏kernel`.
    pub fn column_rows(&self) -> usize {
        self.channels * self.taps()
    }

    /// Returns the number of windows over an image, `∏output`.
    pub fn positions(&self) -> usize {
        self.output.iter().product()
    }

    /// Returns the number of elements of one channel of the image, `∏input`.
    pub fn plane_len(&self) -> usize {
        self.axes.iter().map(|axis| axis.input).product()
    }

    /// Returns the number of elements of the image.
    pub fn image_len(&self) -> usize {
        self.channels * self.plane_len()
    }

    /// Returns the number of elements of the im2col matrix.
    pub fn columns_len(&self) -> usize {
        self.column_rows() * self.positions()
    }

    /// Returns whether the im2col matrix equals the image, which is the case for kernels of one tap
    /// with stride 1 and no padding.
    pub fn is_identity(&self) -> bool {
        self.axes.iter().all(|axis| axis.kernel == 1 && axis.stride == 1 && axis.pad == 0)
    }

    /// Fails unless the lengths of the image and the im2col matrix match the descriptor.
    ///
    /// # Errors
    /// Returns [`Error::Length`], which names the operand, if an operand has the wrong length.
    pub fn check(
        &self,
        op: &'static str,
        image: (&'static str, usize),
        columns: (&'static str, usize),
    ) -> Result<()> {
        check_len(op, image.0, self.image_len(), image.1)?;
        check_len(op, columns.0, self.columns_len(), columns.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transposed_axis_has_one_window_per_input_element() {
        for (input, kernel, stride, pad, dilation) in
            [(1, 1, 1, 0, 1), (4, 3, 2, 1, 1), (5, 2, 3, 0, 4), (7, 4, 4, 1, 2), (3, 1, 5, 0, 1)]
        {
            let axis = SpatialAxis { input, kernel, stride, pad, dilation };
            let transposed_axis = axis.transposed().unwrap();
            assert_eq!(transposed_axis.output().unwrap(), input, "{axis:?}");
            let smaller_axis = SpatialAxis { input: transposed_axis.input - 1, ..transposed_axis };
            assert!(smaller_axis.output().map_or(true, |output| output < input), "{axis:?}");
        }
    }

    #[test]
    fn an_axis_without_a_transposed_axis_is_an_error() {
        let axis = SpatialAxis { input: 3, kernel: 2, stride: 1, pad: 2, dilation: 1 };
        let invalid_axes = [
            SpatialAxis { pad: 3, ..axis },
            SpatialAxis { input: 0, ..axis },
            SpatialAxis { kernel: 0, ..axis },
            SpatialAxis { stride: 0, ..axis },
            SpatialAxis { stride: usize::MAX, ..axis },
            SpatialAxis { pad: usize::MAX, ..axis },
        ];
        assert_eq!(axis.transposed().unwrap().input, 0);
        for axis in invalid_axes {
            assert!(
                matches!(axis.transposed(), Err(Error::InvalidInput { op: "window", .. })),
                "{axis:?}"
            );
        }
    }
}
