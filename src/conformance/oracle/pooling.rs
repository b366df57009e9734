//! Oracles for pooling, computed window by window.

use crate::{conformance::expected::Expected, op::Pool2d};
use std::ops::Range;

/// Returns the range of the unpadded input that window `at` covers along one axis, and the window's
/// length in the padded input.
fn window_range(op: &Pool2d, axis: usize, at: usize) -> (Range<usize>, usize) {
    let (input, pad) = (op.input[axis], op.pad[axis]);
    let start = at * op.stride[axis];
    let end = (start + op.kernel[axis]).min(input + 2 * pad);
    let unpad = |padded: usize| padded.saturating_sub(pad).min(input);
    (unpad(start)..unpad(end), end.saturating_sub(start))
}

/// Calls `body(window, elements, size)` for each window of each plane. `window` is the index of the
/// window's output, and `elements` are the indices of the window's inputs in row-major order.
/// `size` is the number of elements of the padded input in the window.
fn each_window(op: &Pool2d, mut body: impl FnMut(usize, &[usize], usize)) {
    let ([height, width], plane) = (op.output(), op.input[0] * op.input[1]);
    for (window, position) in (0..op.output_len()).map(|w| (w, w % (height * width))) {
        let (rows, window_height) = window_range(op, 0, position / width);
        let (columns, window_width) = window_range(op, 1, position % width);
        let start = window / (height * width) * plane;
        let row_elements =
            |row| columns.clone().map(move |column| start + row * op.input[1] + column);
        let elements: Vec<_> = rows.flat_map(row_elements).collect();
        body(window, &elements, window_height * window_width);
    }
}

/// Returns the maximum of each window, and the mask: the index of the maximum in its plane. A
/// window without elements above `lowest` has the maximum `lowest` and the mask −1.
pub(crate) fn max_pool(op: &Pool2d, x: &[f64], lowest: f64) -> (Vec<f64>, Vec<i32>) {
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

/// Returns the gradient of max pooling: each `dy` is added to the element whose index `mask` holds.
pub(crate) fn max_pool_backward(op: &Pool2d, dy: &[f64], mask: &[i32]) -> Vec<Expected> {
    let mut dx = vec![Expected::zero(); op.input_len()];
    let (from, to) = (op.input[0] * op.input[1], op.output()[0] * op.output()[1]);
    for (window, (&dy, &element)) in dy.iter().zip(mask).enumerate() {
        if element >= 0 {
            dx[window / to * from + element as usize].add(dy);
        }
    }
    dx
}

/// Returns the means of the windows, in which padding counts as zeros.
pub(crate) fn average_pool(op: &Pool2d, x: &[f64]) -> Vec<Expected> {
    let mut y = vec![Expected::zero(); op.output_len()];
    each_window(op, |window, elements, size| {
        elements.iter().for_each(|&at| y[window].add(x[at]));
        y[window] = y[window].scaled(1.0 / size as f64);
    });
    y
}

/// Returns the gradient of average pooling: each `dy` is distributed evenly over the elements of
/// its window.
pub(crate) fn average_pool_backward(op: &Pool2d, dy: &[f64]) -> Vec<Expected> {
    let mut dx = vec![Expected::zero(); op.input_len()];
    each_window(op, |window, elements, size| {
        elements.iter().for_each(|&at| dx[at].add(dy[window] / size as f64));
    });
    dx
}

/// Returns the element of each window that the random numbers `u` select, and the mask: the index
/// of the element in its plane. A window without elements has the value 0 and the mask −1.
pub(crate) fn stochastic_pool(op: &Pool2d, x: &[f64], u: &[f32]) -> (Vec<f64>, Vec<i32>) {
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
