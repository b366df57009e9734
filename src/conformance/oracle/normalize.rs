//! Softmax, local response normalisation, moments.

use crate::{
    conformance::values::Expected,
    op::{Axis, EpsilonPlacement, Lrn, LrnRegion, Standardize},
};

/// Places of the lines along an axis: one inner vector for each outer and inner index.
pub(in crate::conformance) fn lines(axis: &Axis) -> impl Iterator<Item = Vec<usize>> {
    let Axis { extent, inner, .. } = *axis;
    (0..axis.reduced_count()).map(move |line| {
        let start = line / inner * extent * inner + line % inner;
        (0..extent).map(|e| start + e * inner).collect()
    })
}

/// Places of the elements at position `e` of an axis.
fn places(axis: &Axis, e: usize) -> impl Iterator<Item = usize> + Clone {
    let Axis { extent, inner, .. } = *axis;
    (0..axis.reduced_count()).map(move |rest| (rest / inner * extent + e) * inner + rest % inner)
}

/// Roundings granted to a function that a library or an instruction computes.
const FUNCTION: f64 = 8.0;

/// `y ← eˣ / Σ eˣ` along an axis.
///
/// A rounding of an exponent is as many of the result as the exponent is large.
pub(in crate::conformance) fn softmax(axis: &Axis, x: &[f64]) -> Vec<Expected> {
    let mut y = vec![Expected::none(); x.len()];
    for line in lines(axis) {
        let greatest = line.iter().fold(f64::NEG_INFINITY, |max, &at| max.max(x[at]));
        let least = line.iter().fold(f64::INFINITY, |min, &at| min.min(x[at]));
        let sum: f64 = line.iter().map(|&at| (x[at] - greatest).exp()).sum();
        let roundings = line.len() as f64 + 2.0 * (FUNCTION + greatest - least);
        for &at in &line {
            y[at] = Expected::near((x[at] - greatest).exp() / sum, roundings);
        }
    }
    y
}

/// `dx ← (dy − Σ dy·y) · y` along an axis.
pub(in crate::conformance) fn softmax_backward(
    axis: &Axis,
    y: &[f64],
    dy: &[f64],
) -> Vec<Expected> {
    let mut dx = vec![Expected::none(); y.len()];
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

/// The elements of the region about element `at`, itself among them.
fn region(op: &Lrn, at: usize) -> Vec<usize> {
    let [height, width] = op.plane;
    let half = op.size / 2;
    let about = |i: usize, extent: usize| i.saturating_sub(half)..(i + half + 1).min(extent);
    let (plane, place) = (at / (height * width), at % (height * width));
    match op.region {
        LrnRegion::AcrossChannels => {
            let (image, channel) = (plane / op.channels, plane % op.channels);
            let channels = about(channel, op.channels);
            channels.map(|c| (image * op.channels + c) * height * width + place).collect()
        }
        LrnRegion::WithinChannel => {
            let (rows, columns) = (about(place / width, height), about(place % width, width));
            let start = plane * height * width;
            rows.flat_map(|r| columns.clone().map(move |c| start + r * width + c)).collect()
        }
    }
}

/// `k` and `α/n`.
fn constants(op: &Lrn) -> (f64, f64) {
    match op.region {
        LrnRegion::AcrossChannels => (op.k, op.alpha / op.size as f64),
        LrnRegion::WithinChannel => (1.0, op.alpha / (op.size * op.size) as f64),
    }
}

/// `s^(−β)`, and how many roundings it takes: those of `s` count β times, and those of an
/// exponent, through which powers may be computed, as many times as that is large.
fn power(op: &Lrn, s: Expected) -> Expected {
    let exponent = (op.beta * s.value.ln()).abs();
    Expected::near(s.value.powf(-op.beta), op.beta * s.roundings + FUNCTION + 2.0 * exponent)
}

/// `y = x · s^(−β)`
pub(in crate::conformance) fn lrn(op: &Lrn, x: &[f64]) -> Vec<Expected> {
    let scale = lrn_scale(op, x);
    scale.into_iter().zip(x).map(|(s, &x)| power(op, s).scaled(x)).collect()
}

/// `s = k + α/n · Σ x²`
pub(in crate::conformance) fn lrn_scale(op: &Lrn, x: &[f64]) -> Vec<Expected> {
    let (k, factor) = constants(op);
    let scale = |at| {
        let mut sum = Expected::from_iter([k]);
        region(op, at).into_iter().for_each(|other| sum.add(factor * x[other] * x[other]));
        sum
    };
    (0..x.len()).map(scale).collect()
}

/// `dx ← dy · s^(−β) − 2αβ/n · x · Σ dy·y/s`
pub(in crate::conformance) fn lrn_backward(op: &Lrn, given: &[Vec<f64>; 4]) -> Vec<Expected> {
    let [x, y, scale, dy] = given;
    let (_, factor) = constants(op);
    let gradient = |at: usize| {
        let mut sum = power(op, Expected::rounded(scale[at], 0.0)).scaled(dy[at]);
        for other in region(op, at) {
            sum.add(-2.0 * factor * op.beta * x[at] * dy[other] * y[other] / scale[other]);
        }
        sum
    };
    (0..x.len()).map(gradient).collect()
}

/// Mean and variance at each position of an axis.
///
/// The mean may be off by what its roundings, of `epsilon`, add up to, and the variance about it
/// by the square of that: so it is in two passes, but not as the difference of large squares.
pub(in crate::conformance) fn moments(axis: &Axis, x: &[f64], epsilon: f64) -> Vec<[Expected; 2]> {
    let share = 1.0 / axis.reduced_count() as f64;
    let at = |e: usize| {
        let places = places(axis, e);
        // About the first element, so that a large mean costs no digits here.
        let origin = x[e * axis.inner];
        let shift = places.clone().map(|at| x[at] - origin).sum::<f64>() * share;
        let mean = Expected::from_iter(places.clone().map(|at| x[at])).scaled(share);
        let mean = Expected { value: origin + shift, ..mean };
        let squares = places.map(|at| (x[at] - origin - shift).powi(2));
        let mut variance = Expected::from_iter(squares).scaled(share);
        variance.magnitude += mean.roundings * epsilon * mean.magnitude.powi(2);
        [mean, variance]
    };
    (0..axis.extent).map(at).collect()
}

/// The inverse of the deviation; it takes a root, a sum and a quotient.
fn rate(op: &Standardize, variance: f64) -> f64 {
    match op.place {
        EpsilonPlacement::AddedToVariance => 1.0 / (variance + op.epsilon).sqrt(),
        EpsilonPlacement::AddedToDeviation => 1.0 / (variance.sqrt() + op.epsilon),
    }
}

/// `y ← (x − mean) · rate`
pub(in crate::conformance) fn standardize(
    op: &Standardize,
    x: &[f64],
    mean: &[f64],
    variance: &[f64],
) -> Vec<Expected> {
    let element = |(i, &x): (usize, &f64)| {
        let e = i / op.axis.inner % op.axis.extent;
        let mut sum = Expected::from_iter([x, -mean[e]]).scaled(rate(op, variance[e]));
        sum.roundings += FUNCTION;
        Expected { inexact: true, ..sum }
    };
    x.iter().enumerate().map(element).collect()
}

/// `dx ← (dy − Σ dy / m − y · Σ dy·y / m) · rate`
pub(in crate::conformance) fn standardize_backward(
    op: &Standardize,
    x: &[f64],
    [mean, variance]: &[Vec<f64>; 2],
    dy: &[f64],
) -> Vec<Expected> {
    let (axis, share) = (&op.axis, 1.0 / op.axis.reduced_count() as f64);
    let mut dx = vec![Expected::none(); x.len()];
    for e in 0..axis.extent {
        let places: Vec<usize> = places(axis, e).collect();
        let rate = rate(op, variance[e]);
        let y = |i: usize| (x[i] - mean[e]) * rate;
        // The terms of `x − mean`, which may cancel.
        let terms = |i: usize| (x[i].abs() + mean[e].abs()) * rate;
        let first: Expected = places.iter().map(|&i| dy[i]).collect();
        let second: Expected = places.iter().map(|&i| dy[i] * y(i)).collect();
        let magnitude: f64 = places.iter().map(|&i| dy[i].abs() * terms(i)).sum();
        for &i in &places {
            let value = dy[i] - first.value * share - y(i) * second.value * share;
            dx[i] = Expected {
                value: value * rate,
                magnitude: (dy[i].abs() + (first.magnitude + terms(i) * magnitude) * share) * rate,
                roundings: first.roundings + 3.0 * FUNCTION,
                inexact: true,
            };
        }
    }
    dx
}
