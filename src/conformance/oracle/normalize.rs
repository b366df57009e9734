//! Oracles for softmax, local response normalization (LRN), moments and standardization.

use super::axis::{lines, slice};
use crate::{
    conformance::expected::Expected,
    op::{Axis, EpsilonPlacement, Lrn, LrnRegion, Standardize},
};

/// Allowed error, in roundings, of an elementary function that a library or an instruction
/// computes.
const FUNCTION_ROUNDINGS: f64 = 8.0;

/// Computes the softmax `y ← eˣ / Σ eˣ` along an axis.
///
/// The exponential multiplies the relative error of its exponent by the exponent's magnitude.
pub(crate) fn softmax(axis: &Axis, x: &[f64]) -> Vec<Expected> {
    let mut y = vec![Expected::zero(); x.len()];
    for line in lines(axis) {
        let max = line.iter().fold(f64::NEG_INFINITY, |max, &at| max.max(x[at]));
        let min = line.iter().fold(f64::INFINITY, |min, &at| min.min(x[at]));
        let sum: f64 = line.iter().map(|&at| (x[at] - max).exp()).sum();
        let roundings = line.len() as f64 + 2.0 * (FUNCTION_ROUNDINGS + max - min);
        for &at in &line {
            y[at] = Expected::approx((x[at] - max).exp() / sum, roundings);
        }
    }
    y
}

/// Computes the gradient of softmax along an axis, `dx ← (dy − Σ dy·y) · y`.
pub(crate) fn softmax_backward(axis: &Axis, y: &[f64], dy: &[f64]) -> Vec<Expected> {
    let mut dx = vec![Expected::zero(); y.len()];
    for line in lines(axis) {
        let product: Expected = line.iter().map(|&at| -dy[at] * y[at]).collect();
        for &at in &line {
            let mut sum = product;
            sum.add(dy[at]);
            dx[at] = sum.scaled(y[at]);
        }
    }
    dx
}

/// Returns the indices of the LRN region around element `at`, including `at` itself.
fn region(op: &Lrn, at: usize) -> Vec<usize> {
    let [height, width] = op.plane;
    let radius = op.size / 2;
    let neighbours =
        |i: usize, extent: usize| i.saturating_sub(radius)..(i + radius + 1).min(extent);
    let (plane, position) = (at / (height * width), at % (height * width));
    match op.region {
        LrnRegion::AcrossChannels => {
            let (image, channel) = (plane / op.channels, plane % op.channels);
            let channels = neighbours(channel, op.channels);
            channels.map(|c| (image * op.channels + c) * height * width + position).collect()
        }
        LrnRegion::WithinChannel => {
            let (rows, columns) =
                (neighbours(position / width, height), neighbours(position % width, width));
            let start = plane * height * width;
            rows.flat_map(|r| columns.clone().map(move |c| start + r * width + c)).collect()
        }
    }
}

/// Returns the constants `k` and `α/n` of LRN.
fn constants(op: &Lrn) -> (f64, f64) {
    match op.region {
        LrnRegion::AcrossChannels => (op.k, op.alpha / op.size as f64),
        LrnRegion::WithinChannel => (1.0, op.alpha / (op.size * op.size) as f64),
    }
}

/// Returns `s^(−β)`, whose relative error is β times the relative error of `s`. A device may
/// compute the power through an exponential, which multiplies the relative error of the exponent by
/// the exponent's magnitude.
fn power(op: &Lrn, s: Expected) -> Expected {
    let exponent = (op.beta * s.value.ln()).abs();
    Expected::approx(
        s.value.powf(-op.beta),
        op.beta * s.roundings + FUNCTION_ROUNDINGS + 2.0 * exponent,
    )
}

/// Computes LRN, `y = x · s^(−β)`.
pub(crate) fn lrn(op: &Lrn, x: &[f64]) -> Vec<Expected> {
    let scale = lrn_scale(op, x);
    scale.into_iter().zip(x).map(|(s, &x)| power(op, s).scaled(x)).collect()
}

/// Computes the scale of LRN, `s = k + α/n · Σ x²`.
pub(crate) fn lrn_scale(op: &Lrn, x: &[f64]) -> Vec<Expected> {
    let (k, factor) = constants(op);
    let scale = |at| {
        let mut sum = Expected::from_iter([k]);
        region(op, at).into_iter().for_each(|other| sum.add(factor * x[other] * x[other]));
        sum
    };
    (0..x.len()).map(scale).collect()
}

/// Computes the gradient of LRN, `dx ← dy · s^(−β) − 2αβ/n · x · Σ dy·y/s`.
pub(crate) fn lrn_backward(op: &Lrn, [x, y, scale, dy]: [&[f64]; 4]) -> Vec<Expected> {
    let (_, factor) = constants(op);
    let gradient = |at: usize| {
        let mut sum = power(op, Expected::product(scale[at], 0.0)).scaled(dy[at]);
        for other in region(op, at) {
            sum.add(-2.0 * factor * op.beta * x[at] * dy[other] * y[other] / scale[other]);
        }
        sum
    };
    (0..x.len()).map(gradient).collect()
}

/// Returns the mean and the variance of the elements at each position of an axis.
///
/// The error bound of the variance includes a term for the error of the mean; `epsilon` is the
/// relative error of one rounding. A two-pass computation of the variance meets the error bound,
/// but a difference of large squares does not.
pub(crate) fn moments(axis: &Axis, x: &[f64], epsilon: f64) -> [Vec<Expected>; 2] {
    let reciprocal = 1.0 / axis.reduced_count() as f64;
    let at = |e: usize| {
        let slice = slice(axis, e);
        // Subtracting the first element preserves the digits of the deviations from the mean if the
        // mean is large.
        let origin = x[e * axis.inner];
        let shift = slice.clone().map(|at| x[at] - origin).sum::<f64>() * reciprocal;
        let mean = Expected::from_iter(slice.clone().map(|at| x[at])).scaled(reciprocal);
        let mean = Expected { value: origin + shift, ..mean };
        let squares = slice.map(|at| (x[at] - origin - shift).powi(2));
        let mut variance = Expected::from_iter(squares).scaled(reciprocal);
        variance.magnitude += mean.roundings * epsilon * mean.magnitude.powi(2);
        (mean, variance)
    };
    <[_; 2]>::from((0..axis.extent).map(at).unzip::<_, _, Vec<_>, Vec<_>>())
}

/// Returns the reciprocal of the standard deviation. To avoid a division by 0, adds ε to the
/// variance or to the deviation.
fn rate(op: &Standardize, variance: f64) -> f64 {
    match op.epsilon_placement {
        EpsilonPlacement::AddedToVariance => 1.0 / (variance + op.epsilon).sqrt(),
        EpsilonPlacement::AddedToDeviation => 1.0 / (variance.sqrt() + op.epsilon),
    }
}

/// Computes `y ← (x − mean) · rate`, where `rate` is the reciprocal of the standard deviation.
pub(crate) fn standardize(
    op: &Standardize,
    x: &[f64],
    mean: &[f64],
    variance: &[f64],
) -> Vec<Expected> {
    let element = |(i, &x): (usize, &f64)| {
        let e = i / op.axis.inner % op.axis.extent;
        let mut sum = Expected::from_iter([x, -mean[e]]).scaled(rate(op, variance[e]));
        sum.roundings += FUNCTION_ROUNDINGS;
        Expected { inexact: true, ..sum }
    };
    x.iter().enumerate().map(element).collect()
}

/// Computes the gradient of standardization, `dx ← (dy − Σ dy / m − y · Σ dy·y / m) · rate`.
pub(crate) fn standardize_backward(
    op: &Standardize,
    x: &[f64],
    [mean, variance]: [&[f64]; 2],
    dy: &[f64],
) -> Vec<Expected> {
    let (axis, reciprocal) = (&op.axis, 1.0 / op.axis.reduced_count() as f64);
    let mut dx = vec![Expected::zero(); x.len()];
    for e in 0..axis.extent {
        let slice: Vec<usize> = slice(axis, e).collect();
        let rate = rate(op, variance[e]);
        let y = |i: usize| (x[i] - mean[e]) * rate;
        // The difference `x − mean` may lose digits by cancellation, so its error is relative to
        // `|x| + |mean|`.
        let terms = |i: usize| (x[i].abs() + mean[e].abs()) * rate;
        let sum_of_dy: Expected = slice.iter().map(|&i| dy[i]).collect();
        let sum_of_products: Expected = slice.iter().map(|&i| dy[i] * y(i)).collect();
        let magnitude: f64 = slice.iter().map(|&i| dy[i].abs() * terms(i)).sum();
        for &i in &slice {
            let value =
                dy[i] - sum_of_dy.value * reciprocal - y(i) * sum_of_products.value * reciprocal;
            dx[i] = Expected {
                value: value * rate,
                magnitude: (dy[i].abs()
                    + (sum_of_dy.magnitude + terms(i) * magnitude) * reciprocal)
                    * rate,
                roundings: sum_of_dy.roundings + 3.0 * FUNCTION_ROUNDINGS,
                inexact: true,
            };
        }
    }
    dx
}
