//! Windows as the kernels declare them.

use crate::op::{SpatialAxis, Window};
use bytemuck::{Pod, Zeroable};

/// Axes that kernels know.
pub(super) const AXES: usize = 3;

/// A window along an axis, as the kernels declare it.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub(super) struct WindowAxis {
    pub input: i32,
    pub output: i32,
    pub kernel: i32,
    pub stride: i32,
    pub pad: i32,
    pub dilation: i32,
}

/// Windows along all axes, those that there are not first: of one element.
///
/// None if there are too many of them, or places in the padded image that are not counted in 32
/// bits.
pub(super) fn window_axes(window: &Window) -> Option<[WindowAxis; AXES]> {
    let mut all =
        [WindowAxis { input: 1, output: 1, kernel: 1, stride: 1, pad: 0, dilation: 1 }; AXES];
    let missing = AXES.checked_sub(window.axes().len())?;
    let most = |counts: [usize; 2]| {
        counts[0].checked_mul(counts[1].max(1)).filter(|most| *most <= i32::MAX as usize / 4)
    };
    most([window.plane_len(), window.channels()])?;
    for (i, (axis, &output)) in window.axes().iter().zip(window.output()).enumerate() {
        let &SpatialAxis { input, kernel, stride, pad, dilation } = axis;
        most([output, stride])?;
        most([kernel, dilation])?;
        most([input.checked_add(pad)?, 1])?;
        let count = |count: usize| i32::try_from(count).ok();
        all[missing + i] = WindowAxis {
            input: count(input)?,
            output: count(output)?,
            kernel: count(kernel)?,
            stride: count(stride)?,
            pad: count(pad)?,
            dilation: count(dilation)?,
        };
    }
    Some(all)
}
