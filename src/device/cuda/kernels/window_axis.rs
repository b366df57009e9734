//! Sliding windows as arguments of CUDA kernels.

use crate::op::{SpatialAxis, Window};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Number of spatial axes of a window in the arguments of the CUDA kernels.
pub(super) const AXES: usize = 3;

/// Extents, stride, padding and dilation of a window along one axis; equivalent to the argument
/// struct `Extent` in `kernels/window.cuh`.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes)]
pub(super) struct WindowAxis {
    pub input: i32,
    pub output: i32,
    pub kernel: i32,
    pub stride: i32,
    pub pad: i32,
    pub dilation: i32,
}

/// Returns the kernel arguments for each axis of `window`. If the window has fewer than [`AXES`]
/// axes, the missing leading axes have extent 1.
///
/// Returns `None` if the window has more than [`AXES`] axes, or if a position in the padded image
/// exceeds 32 bits.
pub(super) fn window_axes(window: &Window) -> Option<[WindowAxis; AXES]> {
    let mut axes =
        [WindowAxis { input: 1, output: 1, kernel: 1, stride: 1, pad: 0, dilation: 1 }; AXES];
    let missing = AXES.checked_sub(window.axes().len())?;
    let check_product = |a: usize, b: usize| {
        a.checked_mul(b.max(1)).filter(|product| *product <= i32::MAX as usize / 4)
    };
    check_product(window.plane_len(), window.channels())?;
    for (i, (axis, &output)) in window.axes().iter().zip(window.output()).enumerate() {
        let &SpatialAxis { input, kernel, stride, pad, dilation } = axis;
        check_product(output, stride)?;
        check_product(kernel, dilation)?;
        check_product(input.checked_add(pad)?, 1)?;
        let convert = |count: usize| i32::try_from(count).ok();
        axes[missing + i] = WindowAxis {
            input: convert(input)?,
            output: convert(output)?,
            kernel: convert(kernel)?,
            stride: convert(stride)?,
            pad: convert(pad)?,
            dilation: convert(dilation)?,
        };
    }
    Some(axes)
}
