//! Two-dimensional pooling.

use crate::{
    error::{Error, Result, check_len},
    shape::Shape,
};

/// How the number of windows is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PoolRounding {
    /// Up: the last window may hang over the edge. Caffe's default.
    Ceil,
    /// Down, as convolution does.
    Floor,
}

/// Pooling of `planes` planes of `input` into planes of `output`; pairs are (height, width).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool2d {
    /// Planes: batch · channels.
    pub planes: usize,
    /// Extents of an input plane.
    pub input: [usize; 2],
    /// Extents of a window.
    pub kernel: [usize; 2],
    /// Steps from one window to the next.
    pub stride: [usize; 2],
    /// Padding on each side.
    pub pad: [usize; 2],
    rounding: PoolRounding,
    output: [usize; 2],
}

impl Pool2d {
    /// Describes a pooling as Caffe sizes it: `round((input + 2·pad − kernel) / stride) + 1`
    /// windows, less the last where, with padding, it would start in the far padding. A kernel
    /// that reaches past the padded input by less than a stride fits once if rounded up.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] if kernel or stride is zero, if padding reaches the kernel's extent, or if
    /// no window fits; [`Error::ShapeOverflow`] if an operand is too large to count.
    pub fn new(
        planes: usize,
        input: [usize; 2],
        kernel: [usize; 2],
        stride: [usize; 2],
        pad: [usize; 2],
        rounding: PoolRounding,
    ) -> Result<Self> {
        let padded = pad != [0, 0];
        let mut output = [0; 2];
        for axis in 0..2 {
            output[axis] =
                windows((input[axis], kernel[axis], stride[axis], pad[axis]), padded, rounding)?;
        }
        Shape::new(&[planes, input[0], input[1]])?;
        Shape::new(&[planes, output[0], output[1]])?;
        Ok(Self { planes, input, kernel, stride, pad, rounding, output })
    }

    /// Extents of an output plane.
    pub fn output(&self) -> [usize; 2] {
        self.output
    }

    /// Elements of the input.
    pub fn input_len(&self) -> usize {
        self.input.into_iter().fold(self.planes, usize::saturating_mul)
    }

    /// Elements of the output, and of the mask.
    pub fn output_len(&self) -> usize {
        self.output.into_iter().fold(self.planes, usize::saturating_mul)
    }

    /// Fails unless operands of these lengths are an input and an output, and the fields are still
    /// those that [`new`](Self::new) was given, or others of as many windows.
    ///
    /// # Errors
    /// [`Error::Length`] names the operand; those of [`new`](Self::new).
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
                format!("there are no {to:?} windows in {from:?}"),
            ));
        }
        check_len(op, input.0, self.input_len(), input.1)?;
        check_len(op, output.0, self.output_len(), output.1)
    }
}

fn windows(
    (input, kernel, stride, pad): (usize, usize, usize, usize),
    padded: bool,
    rounding: PoolRounding,
) -> Result<usize> {
    let bad = |why: &str| {
        let geometry = format!("input {input}, kernel {kernel}, stride {stride}, pad {pad}");
        Error::invalid_input("pool", format!("{why}: {geometry}"))
    };
    if kernel == 0 || stride == 0 {
        return Err(bad("kernel and stride must be positive"));
    }
    if pad >= kernel {
        return Err(bad("padding must be smaller than the kernel"));
    }
    let whole = pad.checked_mul(2).and_then(|both| both.checked_add(input));
    let whole = whole.ok_or_else(|| bad("overflow"))?;
    let steps = match (whole.checked_sub(kernel), rounding) {
        (Some(slack), PoolRounding::Ceil) => slack.div_ceil(stride),
        (Some(slack), PoolRounding::Floor) => slack / stride,
        (None, PoolRounding::Ceil) if input > 0 && kernel - whole < stride => 0,
        (None, _) => return Err(bad("the kernel does not fit")),
    };
    // Caffe drops a last window that would start past the input and the near padding.
    let outside = padded && steps.saturating_mul(stride) >= input + pad;
    Ok(steps + 1 - usize::from(outside))
}
