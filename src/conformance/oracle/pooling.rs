//! Pooling, window by window.

use crate::{conformance::values::Expected, op::Pool2d};
use std::ops::Range;

/// What window `at` covers along one axis of the input, and how much of the padded input.
fn reach(op: &Pool2d, axis: usize, at: usize) -> (Range<usize>, usize) {
    let (input, pad) = (op.input[axis], op.pad[axis]);
    let start = at * op.stride[axis];
    let end = (start + op.kernel[axis]).min(input + 2 * pad);
    let inside = |padded: usize| padded.saturating_sub(pad).min(input);
    (inside(start)..inside(end), end.saturating_sub(start))
}

/// Calls `body(window, elements, size)` for each window of each plane: its number among the
/// outputs, the elements of the input it covers in row-major order, and how many it counts as.
fn each_window(op: &Pool2d, mut body: impl FnMut(usize, &[usize], usize)) {
    let ([height, width], plane) = (op.output(), op.input[0] * op.input[1]);
    for (window, place) in (0..op.output_len()).map(|w| (w, w % (height * width))) {
        let (rows, tall) = reach(op, 0, place / width);
        let (columns, wide) = reach(op, 1, place % width);
        let start = window / (height * width) * plane;
        let in_row = |row| columns.clone().map(move |column| start + row * op.input[1] + column);
        let elements: Vec<_> = rows.flat_map(in_row).collect();
        body(window, &elements, tall * wide);
    }
}

/// Maxima and masks. A window starts out with `lowest` and takes what is greater.
pub(in crate::conformance) fn max_pool(
    op: &Pool2d,
    x: &[f64],
    lowest: f64,
) -> (Vec<f64>, Vec<i32>) {
    let plane = op.input[0] * op.input[1];
    let (mut y, mut mask) = (vec![lowest; op.output_len()], vec![-1; op.output_len()]);
    each_window(op, |window, elements, _| {
        for &at in elements {
            if x[at] > y[window] {
                (y[window], mask[window]) = (x[at], (at % plane) as i32);
            }
        }
    });
    (y, mask)
}

/// The gradient of what `mask` says was taken.
pub(in crate::conformance) fn max_pool_backward(
    op: &Pool2d,
    dy: &[f64],
    mask: &[i32],
) -> Vec<Expected> {
    let mut dx = vec![Expected::none(); op.input_len()];
    let (from, to) = (op.input[0] * op.input[1], op.output()[0] * op.output()[1]);
    for (window, (&dy, &place)) in dy.iter().zip(mask).enumerate() {
        if place >= 0 {
            dx[window / to * from + place as usize].add(dy);
        }
    }
    dx
}

/// Means, in which padding counts as zeros.
pub(in crate::conformance) fn average_pool(op: &Pool2d, x: &[f64]) -> Vec<Expected> {
    let mut y = vec![Expected::none(); op.output_len()];
    each_window(op, |window, elements, size| {
        elements.iter().for_each(|&at| y[window].add(x[at]));
        y[window] = y[window].scaled(1.0 / size as f64);
    });
    y
}

/// Gradients, spread evenly over their windows.
pub(in crate::conformance) fn average_pool_backward(op: &Pool2d, dy: &[f64]) -> Vec<Expected> {
    let mut dx = vec![Expected::none(); op.input_len()];
    each_window(op, |window, elements, size| {
        elements.iter().for_each(|&at| dx[at].add(dy[window] / size as f64));
    });
    dx
}

/// Elements drawn by `u` and masks; `y` is 0 and the mask −1 for a window that holds nothing.
pub(in crate::conformance) fn stochastic_pool(
    op: &Pool2d,
    x: &[f64],
    u: &[f32],
) -> (Vec<f64>, Vec<i32>) {
    let plane = op.input[0] * op.input[1];
    let (mut y, mut mask) = (vec![0.0; op.output_len()], vec![-1; op.output_len()]);
    each_window(op, |window, elements, _| {
        let weight = |at: usize| if x[at] > 0.0 { x[at] } else { 0.0 };
        let total: f64 = elements.iter().map(|&at| weight(at)).sum();
        let (mut sum, mut drawn) = (0.0, elements.first().copied());
        for &at in elements {
            sum += weight(at);
            if sum > f64::from(u[window]) * total {
                drawn = Some(at);
                break;
            }
        }
        if let Some(at) = drawn {
            (y[window], mask[window]) = (x[at], (at % plane) as i32);
        }
    });
    (y, mask)
}
