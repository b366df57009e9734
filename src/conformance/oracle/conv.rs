//! Oracles for im2col, col2im and convolution.

use crate::{
    conformance::expected::Expected,
    op::{Convolution, Window},
};

/// Returns the index of the plane element that tap `tap` of the window at `position` reads, or
/// `None` for padding. Taps and positions are in row-major order.
fn tap_element(window: &Window, mut tap: usize, mut position: usize) -> Option<usize> {
    let (mut element, mut stride, mut inside) = (0, 1, true);
    for (axis, &output) in window.axes().iter().zip(window.output()).rev() {
        let padded_index = position % output * axis.stride + tap % axis.kernel * axis.dilation;
        (position, tap) = (position / output, tap / axis.kernel);
        match padded_index.checked_sub(axis.pad) {
            Some(at) if at < axis.input => element += at * stride,
            _ => inside = false,
        }
        stride *= axis.input;
    }
    inside.then_some(element)
}

/// Calls `body(image index, matrix index)` for every element of the im2col matrix. For padding, the
/// image index is `None`.
fn each_column(window: &Window, mut body: impl FnMut(Option<usize>, usize)) {
    for row in 0..window.column_rows() {
        let (channel, tap) = (row / window.taps(), row % window.taps());
        for position in 0..window.positions() {
            let element = tap_element(window, tap, position);
            body(
                element.map(|at| channel * window.plane_len() + at),
                row * window.positions() + position,
            );
        }
    }
}

/// Returns the im2col matrix of the image `x`, in which padding is 0.
pub(crate) fn im2col(window: &Window, x: &[f64]) -> Vec<f64> {
    let mut columns = vec![0.0; window.columns_len()];
    each_column(window, |from, to| columns[to] = from.map_or(0.0, |from| x[from]));
    columns
}

/// Returns an image in which each element is the sum of the im2col matrix elements that correspond
/// to it.
pub(crate) fn col2im(window: &Window, columns: &[f64]) -> Vec<Expected> {
    let mut x = vec![Expected::zero(); window.image_len()];
    each_column(window, |to, from| {
        if let Some(to) = to {
            x[to].add(columns[from]);
        }
    });
    x
}

/// Calls `body(i, j, k)` for every product `x[i] · w[j]` that is a term of the convolution's output
/// `y[k]`.
///
/// A convolution and the gradients of its input and its filters are sums over the same index
/// triples `(i, j, k)`.
fn each_product(op: &Convolution, mut body: impl FnMut(usize, usize, usize)) {
    let window = op.window();
    let channels = window.channels() / op.groups();
    let outputs = op.outputs() / op.groups();
    let tap_elements =
        |tap| (0..window.positions()).map(move |p| tap_element(window, tap, p)).collect();
    let elements: Vec<Vec<_>> = (0..window.taps()).map(tap_elements).collect();
    for (image, output) in (0..op.batch()).flat_map(|b| (0..op.outputs()).map(move |o| (b, o))) {
        let first = output / outputs * channels;
        for (channel, tap) in (0..channels).flat_map(|c| (0..window.taps()).map(move |t| (c, t))) {
            let plane = (image * window.channels() + first + channel) * window.plane_len();
            let weight_index = (output * channels + channel) * window.taps() + tap;
            let result = (image * op.outputs() + output) * window.positions();
            for (position, element) in elements[tap].iter().enumerate() {
                if let Some(element) = element {
                    body(plane + element, weight_index, result + position);
                }
            }
        }
    }
}

/// Computes the convolution `y ← x ∗ w + bias`.
pub(crate) fn convolve(
    op: &Convolution,
    x: &[f64],
    w: &[f64],
    bias: Option<&[f64]>,
) -> Vec<Expected> {
    let mut y = vec![Expected::zero(); op.output_len()];
    each_product(op, |i, j, k| y[k].add(x[i] * w[j]));
    if let Some(bias) = bias {
        let plane = op.window().positions();
        for (k, y) in y.iter_mut().enumerate() {
            y.add(bias[k / plane % op.outputs()]);
        }
    }
    y
}

/// Computes the gradient of a convolution's input, `dx ← wᵀ ∗ dy`.
pub(crate) fn convolve_backward_input(op: &Convolution, w: &[f64], dy: &[f64]) -> Vec<Expected> {
    let mut dx = vec![Expected::zero(); op.input_len()];
    each_product(op, |i, j, k| dx[i].add(w[j] * dy[k]));
    dx
}

/// Computes the gradient of a convolution's filters, `dw ← before + x ∗ dy`.
pub(crate) fn convolve_backward_filters(
    op: &Convolution,
    x: &[f64],
    dy: &[f64],
    before: &[f64],
) -> Vec<Expected> {
    let mut dw: Vec<_> = before.iter().map(|&before| Expected::from_iter([before])).collect();
    each_product(op, |i, j, k| dw[j].add(x[i] * dy[k]));
    dw
}
