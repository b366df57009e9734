//! Oracles for reductions along an axis.

use super::axis::{lines, slice};
use crate::{
    conformance::expected::Expected,
    op::{Axis, Reduce, TopK},
};
use std::cmp::Ordering;

/// Computes the reduction `y[o,i] ← op over e of x[o,e,i]`.
pub(crate) fn reduce(op: Reduce, axis: &Axis, x: &[f64]) -> Vec<Expected> {
    lines(axis).map(|line| reduce_one(op, line.iter().map(|&at| x[at]))).collect()
}

fn reduce_one(op: Reduce, x: impl Iterator<Item = f64> + Clone) -> Expected {
    let numbers = x.clone().filter(|x| !x.is_nan());
    match op {
        Reduce::Sum => x.collect(),
        Reduce::AbsSum => x.map(f64::abs).collect(),
        Reduce::SumSq => x.map(|x| x * x).collect(),
        Reduce::Mean => {
            let reciprocal = 1.0 / x.clone().count() as f64;
            // To compute a mean, a device may divide by `n` or multiply by the rounded reciprocal
            // of `n`.
            Expected { inexact: true, ..x.collect::<Expected>().scaled(reciprocal) }
        }
        Reduce::Max => Expected::exact(numbers.fold(f64::NAN, f64::max)),
        Reduce::Min => Expected::exact(numbers.fold(f64::NAN, f64::min)),
    }
}

/// Computes `y[e] ← β·y[e] + Σ over o, i of x[o,e,i]`, and does not read `y` if β is 0.
pub(crate) fn sum_to_axis(axis: &Axis, beta: f64, x: &[f64], y: &[f64]) -> Vec<Expected> {
    let sum = |(e, y): (usize, &f64)| {
        slice(axis, e).map(|at| x[at]).chain((beta != 0.0).then_some(beta * y)).collect()
    };
    y.iter().enumerate().map(sum).collect()
}

/// Computes `y[o,i] ← the smallest e at which x[o,e,i] is largest`, ignoring NaN, or 0 if all
/// elements are NaN.
pub(crate) fn arg_max(axis: &Axis, x: &[f64]) -> Vec<u32> {
    let index_of_max = |line: Vec<usize>| {
        let max = line.iter().map(|&at| x[at]).fold(f64::NAN, f64::max);
        line.iter().position(|&at| x[at] == max).unwrap_or(0) as u32
    };
    lines(axis).map(index_of_max).collect()
}

/// Returns, for each outer and inner index, the index in `x` and the position on the axis of each
/// of the `k` largest elements.
pub(crate) fn top_k(op: &TopK, x: &[f64]) -> Vec<(usize, f64)> {
    let TopK { axis, k } = *op;
    let mut largest_elements = vec![(0, 0.0); k * axis.reduced_count()];
    for (number, line) in lines(&axis).enumerate() {
        let mut order: Vec<usize> = (0..axis.extent).rev().collect();
        // `order` lists the positions of the elements in descending order, with NaNs at the end. If
        // two elements are equal, `order` lists the later position first.
        order.sort_by(|&a, &b| match (x[line[a]].is_nan(), x[line[b]].is_nan()) {
            (false, false) => x[line[b]].partial_cmp(&x[line[a]]).unwrap_or(Ordering::Equal),
            (a, b) => a.cmp(&b),
        });
        for (j, &e) in order[..k].iter().enumerate() {
            let at = (number / axis.inner * k + j) * axis.inner + number % axis.inner;
            largest_elements[at] = (line[e], e as f64);
        }
    }
    largest_elements
}
