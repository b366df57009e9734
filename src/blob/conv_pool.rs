//! Convolution and pooling of batches of images.

use super::{Blob, elementwise::check_output};
use crate::{
    device::Device,
    element::Element,
    error::{Error, Result},
    op::{Convolution, Pool2d, PoolRounding, SpatialAxis, Window},
};

/// Options of [`Blob::conv2d`]. Each pair of values is (height, width).
///
/// ```
/// use cortado::blob::Conv2d;
///
/// let options = Conv2d { pad: [1, 1], ..Conv2d::default() };
/// assert_eq!(options.stride, [1, 1]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conv2d {
    /// Distance in elements from one window to the next; by default 1.
    pub stride: [usize; 2],
    /// Number of zeros that pad each side of an image; by default 0.
    pub pad: [usize; 2],
    /// Distance in elements from one tap of a filter to the next; by default 1.
    pub dilation: [usize; 2],
    /// Number of groups of channels; filters of one group read only the channels of that group. By
    /// default 1.
    pub groups: usize,
}

impl Default for Conv2d {
    fn default() -> Self {
        Self { stride: [1, 1], pad: [0, 0], dilation: [1, 1], groups: 1 }
    }
}

/// Shape of the windows of [`Blob::max_pool2d`] and [`Blob::average_pool2d`]. Each pair of values
/// is (height, width).
///
/// ```
/// use cortado::blob::PoolWindow;
///
/// let window = PoolWindow { stride: [2, 2], ..PoolWindow::new([3, 3]) };
/// assert_eq!(window.kernel, [3, 3]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolWindow {
    /// Height and width of a window.
    pub kernel: [usize; 2],
    /// Distance in elements from one window to the next.
    pub stride: [usize; 2],
    /// Number of padding elements on each side of an image.
    pub pad: [usize; 2],
    /// Whether the number of windows along an axis is rounded up or down.
    pub rounding: PoolRounding,
}

impl PoolWindow {
    /// Creates non-overlapping windows of `kernel[0]` × `kernel[1]` elements, without padding. As
    /// in Caffe, the number of windows along an axis is rounded up.
    pub fn new(kernel: [usize; 2]) -> Self {
        Self { kernel, stride: kernel, pad: [0, 0], rounding: PoolRounding::Ceil }
    }
}

impl<T: Element, D: Device> Blob<T, D> {
    /// Returns the convolution of images (N × C × H × W) with `filters` (K × C/groups × h × w) as a
    /// new blob (N × K × H' × W'). The optional `bias` has K elements, one for each filter.
    ///
    /// As in Caffe, filters are not flipped, so the convolution is a cross-correlation. The height
    /// of the result is `H' = ⌊(H + 2·pad − dilation·(h − 1) − 1) / stride⌋ + 1`.
    ///
    /// ```
    /// use cortado::{blob::Conv2d, prelude::*};
    ///
    /// let device = CpuDevice::new();
    /// let image = Blob::from_fn(&device, &[1, 1, 3, 3], |i| i as f32)?;
    /// let filter = Blob::ones(&device, &[1, 1, 2, 2])?;
    /// let sums = image.conv2d(&filter, None, Conv2d::default())?;
    /// assert_eq!(sums.shape().to_vec(), [1, 1, 2, 2]);
    /// assert_eq!(sums.to_vec()?, [8.0, 12.0, 20.0, 24.0]);
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes do not match or no window fits; [`Error::Borrowed`] if
    /// another access to the data is in progress; any error that the device returns.
    #[track_caller]
    pub fn conv2d(&self, filters: &Self, bias: Option<&Self>, options: Conv2d) -> Result<Self> {
        let (op, shape) = self.convolution(filters, bias, options)?;
        let y = Self::new(self.device(), &shape)?;
        self.convolve(&op, filters, bias, &y)?;
        Ok(y)
    }

    /// Writes the convolution to `y`, like [`conv2d`](Self::conv2d).
    ///
    /// # Errors
    /// Returns any error from [`conv2d`](Self::conv2d), and [`Error::Shape`] unless `y` has the
    /// shape of the result.
    #[track_caller]
    pub fn conv2d_into(
        &self,
        filters: &Self,
        bias: Option<&Self>,
        options: Conv2d,
        y: &Self,
    ) -> Result<()> {
        let (op, shape) = self.convolution(filters, bias, options)?;
        check_output("conv2d", [("x", self), ("filters", filters)], &shape, y)?;
        self.convolve(&op, filters, bias, y)
    }

    /// Returns the maximum of each window of images (N × C × H × W) as a new blob.
    ///
    /// ```
    /// use cortado::{blob::PoolWindow, prelude::*};
    ///
    /// let image = Blob::from_fn(&CpuDevice::new(), &[1, 1, 4, 4], |i| i as f32)?;
    /// let y = image.max_pool2d(PoolWindow::new([2, 2]))?;
    /// assert_eq!(y.to_vec()?, [5.0, 7.0, 13.0, 15.0]);
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] unless the blob has four axes and the windows fit; [`Error::Borrowed`] if
    /// another access to the data is in progress; any error that the device returns.
    #[track_caller]
    pub fn max_pool2d(&self, window: PoolWindow) -> Result<Self> {
        let (op, shape) = self.pooling("max_pool2d", window)?;
        let (y, mask) = (Self::new(self.device(), &shape)?, Blob::new(self.device(), &shape)?);
        let (mut out, mut mask) = (y.data_mut()?, mask.data_mut()?);
        self.device().max_pool(&op, self.data()?.view(), out.view_mut(), mask.view_mut())?;
        drop(out);
        Ok(y)
    }

    /// Returns the mean of each window of images (N × C × H × W) as a new blob. As in Caffe, the
    /// sum of a window is divided by the number of window elements in the image and in the padding;
    /// window elements beyond the padding do not count.
    ///
    /// ```
    /// use cortado::prelude::*;
    ///
    /// let image = Blob::from_slice(&CpuDevice::new(), &[1, 1, 2, 2], &[1.0, 2.0, 3.0, 6.0])?;
    /// assert_eq!(image.average_pool2d(PoolWindow::new([2, 2]))?.to_vec()?, [3.0]);
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns any error from [`max_pool2d`](Self::max_pool2d).
    #[track_caller]
    pub fn average_pool2d(&self, window: PoolWindow) -> Result<Self> {
        let (op, shape) = self.pooling("average_pool2d", window)?;
        let y = Self::new(self.device(), &shape)?;
        self.device().average_pool(&op, self.data()?.view(), y.data_mut()?.view_mut())?;
        Ok(y)
    }

    #[track_caller]
    fn convolve(
        &self,
        op: &Convolution,
        filters: &Self,
        bias: Option<&Self>,
        y: &Self,
    ) -> Result<()> {
        let (x, filters, bias) = (self.data()?, filters.data()?, bias.map(Self::data).transpose()?);
        let bias = bias.as_ref().map(|bias| bias.view());
        self.device().convolve(op, x.view(), filters.view(), bias, y.data_mut()?.view_mut())
    }

    /// Returns the convolution's descriptor and the shape of the result.
    fn convolution(
        &self,
        filters: &Self,
        bias: Option<&Self>,
        options: Conv2d,
    ) -> Result<(Convolution, [usize; 4])> {
        let fail = |reason: &str| {
            let (x, w) = (self.shape(), filters.shape());
            let bias =
                bias.map_or(String::new(), |bias| format!(", bias of shape {}", bias.shape()));
            Error::Shape(format!("conv2d: x of shape {x}, filters of shape {w}{bias}; {reason}"))
        };
        let (&[batch, channels, h, w], &[outputs, filter_channels, kernel_h, kernel_w]) =
            (&**self.shape(), &**filters.shape())
        else {
            return Err(fail("x and filters must have four axes"));
        };
        if filter_channels.checked_mul(options.groups) != Some(channels) {
            let groups = options.groups;
            return Err(fail(&format!(
                "the channels of x must be the channels of a filter times {groups} groups"
            )));
        }
        if bias.is_some_and(|bias| bias.count() != outputs) {
            return Err(fail("the bias must have one element for each filter"));
        }
        let Conv2d { stride, pad, dilation, groups } = options;
        let axis = |i: usize, input, kernel| {
            let (stride, pad, dilation) = (stride[i], pad[i], dilation[i]);
            SpatialAxis { input, kernel, stride, pad, dilation }
        };
        let window = Window::new(channels, &[axis(0, h, kernel_h), axis(1, w, kernel_w)]);
        let op = window.and_then(|window| Convolution::new(batch, outputs, groups, window));
        let op = op.map_err(|error| fail(&error.to_string()))?;
        let [out_h, out_w] = *op.window().output() else { return Err(fail("two spatial axes")) };
        Ok((op, [batch, outputs, out_h, out_w]))
    }

    /// Returns the pooling's descriptor and the shape of the result.
    fn pooling(&self, name: &str, window: PoolWindow) -> Result<(Pool2d, [usize; 4])> {
        let fail =
            |reason: &str| Error::Shape(format!("{name}: x of shape {}; {reason}", self.shape()));
        let [batch, channels, h, w] = **self.shape() else {
            return Err(fail("x must have four axes: batch, channels, height, width"));
        };
        let PoolWindow { kernel, stride, pad, rounding } = window;
        let op = Pool2d::new(batch * channels, [h, w], kernel, stride, pad, rounding);
        let op = op.map_err(|error| fail(&error.to_string()))?;
        let [out_h, out_w] = op.output();
        Ok((op, [batch, channels, out_h, out_w]))
    }
}
