//! Two-dimensional pooling.

use crate::{
    element::{DType, Element, bf16, f16},
    error::{Error, Result, check_len},
    shape::Shape,
};

/// Rounding mode for the number of pooling windows along an axis.
///
/// ```
/// use cortado::op::{Pool2d, PoolRounding};
///
/// for (rounding, output) in [(PoolRounding::Ceil, [4, 4]), (PoolRounding::Floor, [3, 3])] {
///     let op = Pool2d::new(1, [8, 8], [3, 3], [2, 2], [0, 0], rounding)?;
///     assert_eq!(op.output(), output);
/// }
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PoolRounding {
    /// Rounds the number of windows up, as Caffe does by default; the last window may extend beyond
    /// the padded input.
    Ceil,
    /// Rounds the number of windows down, as convolution does.
    Floor,
}

/// Two-dimensional pooling of `planes` planes with the extents `input` into planes with the extents
/// `output`. Each pair of extents is `[height, width]`.
///
/// ```
/// use cortado::{host::Workers, kernel::slices, op::{Pool2d, PoolRounding}};
///
/// let op = Pool2d::new(1, [2, 4], [2, 2], [2, 2], [0, 0], PoolRounding::Ceil)?;
/// let x = [1.0f32, 5.0, 2.0, 0.0, 3.0, 4.0, 8.0, 7.0];
/// let (mut y, mut mask) = ([0.0; 2], [0; 2]);
/// slices::max_pool(Workers::global(), &op, &x, &mut y, &mut mask)?;
/// assert_eq!((y, mask), ([5.0, 8.0], [1, 6]));
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool2d {
    /// Number of planes, which is batch size times channels.
    pub planes: usize,
    /// Height and width of an input plane.
    pub input: [usize; 2],
    /// Height and width of a pooling window.
    pub kernel: [usize; 2],
    /// Distance in elements from one window to the next, vertically and horizontally.
    pub stride: [usize; 2],
    /// Padding on each side of an input plane, in elements, vertically and horizontally.
    pub pad: [usize; 2],
    rounding: PoolRounding,
    output: [usize; 2],
}

impl Pool2d {
    /// Returns the value at which [`max_pool`](crate::kernel::Pooling::max_pool) starts each
    /// maximum, as in Caffe: the lowest finite number of `T`, or of `f32` if `T` is `f64`.
    ///
    /// ```
    /// use cortado::{f16, op::Pool2d};
    ///
    /// assert_eq!(Pool2d::initial_max::<f16>(), -65504.0);
    /// assert_eq!(Pool2d::initial_max::<f64>(), f64::from(f32::MIN));
    /// ```
    pub fn initial_max<T: Element>() -> T::Acc {
        T::acc(match T::DTYPE {
            DType::F16 => f16::MIN.to_f64(),
            DType::Bf16 => bf16::MIN.to_f64(),
            DType::F32 | DType::F64 => f64::from(f32::MIN),
        })
    }

    /// Creates the descriptor of a pooling operation.
    ///
    /// As in Caffe, each axis has `round((input + 2·pad − kernel) / stride) + 1` windows, where
    /// `round` is the given rounding mode. If the padding is not zero, and the last window would
    /// start in the padding after the input, the last window is dropped. With
    /// [`PoolRounding::Ceil`], an axis has one window if the kernel exceeds the padded input by
    /// less than a stride.
    ///
    /// # Errors
    /// Returns [`Error::InvalidInput`] if the kernel or the stride is zero, if the padding is not
    /// less than the kernel, or if no window fits. Returns [`Error::ShapeOverflow`] if an operand's
    /// element count overflows.
    pub fn new(
        planes: usize,
        input: [usize; 2],
        kernel: [usize; 2],
        stride: [usize; 2],
        pad: [usize; 2],
        rounding: PoolRounding,
    ) -> Result<Self> {
        let is_padded = pad != [0, 0];
        let mut output = [0; 2];
        for axis in 0..2 {
            output[axis] =
                windows((input[axis], kernel[axis], stride[axis], pad[axis]), is_padded, rounding)?;
        }
        Shape::new(&[planes, input[0], input[1]])?;
        Shape::new(&[planes, output[0], output[1]])?;
        Ok(Self { planes, input, kernel, stride, pad, rounding, output })
    }

    /// Returns the height and width of an output plane.
    pub fn output(&self) -> [usize; 2] {
        self.output
    }

    /// Returns the number of elements of the input.
    pub fn input_len(&self) -> usize {
        self.input.into_iter().fold(self.planes, usize::saturating_mul)
    }

    /// Returns the number of elements of the output and of the mask.
    pub fn output_len(&self) -> usize {
        self.output.into_iter().fold(self.planes, usize::saturating_mul)
    }

    /// Fails unless the lengths of the input and the output match the descriptor. Also fails if the
    /// caller has changed the public fields so that [`new`](Self::new) would fail or would compute
    /// a different number of windows.
    ///
    /// # Errors
    /// Returns [`Error::Length`], which names the operand, if an operand has the wrong length.
    /// Returns any error from [`new`](Self::new).
    pub fn check(
        &self,
        op: &'static str,
        input: (&'static str, usize),
        output: (&'static str, usize),
    ) -> Result<()> {
        let Self { planes, input: from, kernel, stride, pad, rounding, output: to } = *self;
        if Self::new(planes, from, kernel, stride, pad, rounding)? != *self {
            return Err(Error::invalid_input(
                op,
                format!("fields were changed: {to:?} windows do not match input {from:?}"),
            ));
        }
        check_len(op, input.0, self.input_len(), input.1)?;
        check_len(op, output.0, self.output_len(), output.1)
    }
}

/// Returns the number of pooling windows along one axis.
fn windows(
    (input, kernel, stride, pad): (usize, usize, usize, usize),
    is_padded: bool,
    rounding: PoolRounding,
) -> Result<usize> {
    let error = |reason: &str| {
        let geometry = format!("input {input}, kernel {kernel}, stride {stride}, pad {pad}");
        Error::invalid_input("pool", format!("{reason}: {geometry}"))
    };
    if kernel == 0 || stride == 0 {
        return Err(error("kernel and stride must be positive"));
    }
    if pad >= kernel {
        return Err(error("padding must be smaller than the kernel"));
    }
    let padded_input = pad.checked_mul(2).and_then(|padding| padding.checked_add(input));
    let padded_input = padded_input.ok_or_else(|| error("overflow"))?;
    let steps = match (padded_input.checked_sub(kernel), rounding) {
        (Some(slack), PoolRounding::Ceil) => slack.div_ceil(stride),
        (Some(slack), PoolRounding::Floor) => slack / stride,
        (None, PoolRounding::Ceil) if input > 0 && kernel - padded_input < stride => 0,
        (None, _) => return Err(error("kernel does not fit")),
    };
    // As in Caffe, drop the last window if it would start in the padding after the input.
    let starts_outside = is_padded && steps.saturating_mul(stride) >= input + pad;
    Ok(steps + 1 - usize::from(starts_outside))
}
