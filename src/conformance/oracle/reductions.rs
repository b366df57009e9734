//! Reductions along an axis.

use crate::{
    conformance::values::Expected,
    op::{Axis, Reduce, TopK},
};

/// The elements that become one: those of an axis at `o` and `i`.
fn along(axis: &Axis, x: &[f64], o: usize, i: usize) -> Vec<f64> {
    (0..axis.extent).map(|e| x[(o * axis.extent + e) * axis.inner + i]).collect()
}

/// Every `(o, i)`, in the order of what is left.
fn rest(axis: &Axis) -> impl Iterator<Item = (usize, usize)> {
    let inner = axis.inner;
    (0..axis.outer).flat_map(move |o| (0..inner).map(move |i| (o, i)))
}

/// `y[o,i] ← op over e of x[o,e,i]`
pub(in crate::conformance) fn reduce(op: Reduce, axis: &Axis, x: &[f64]) -> Vec<Expected> {
    rest(axis).map(|(o, i)| one(op, &along(axis, x, o, i))).collect()
}

fn one(op: Reduce, x: &[f64]) -> Expected {
    let numbers = x.iter().copied().filter(|x| !x.is_nan());
    match op {
        Reduce::Sum => x.iter().copied().collect(),
        Reduce::AbsSum => x.iter().map(|x| x.abs()).collect(),
        Reduce::SumSq => x.iter().map(|x| x * x).collect(),
        Reduce::Mean => {
            let sum: Expected = x.iter().copied().collect();
            // Divided by n, or multiplied by its reciprocal.
            Expected { inexact: true, ..sum.scaled(1.0 / x.len() as f64) }
        }
        Reduce::Max => Expected::once(numbers.fold(f64::NAN, f64::max)),
        Reduce::Min => Expected::once(numbers.fold(f64::NAN, f64::min)),
    }
}

/// `y[e] ← β·y[e] + Σ over o, i of x[o,e,i]`
pub(in crate::conformance) fn sum_to_axis(
    axis: &Axis,
    beta: f64,
    x: &[f64],
    y: &[f64],
) -> Vec<Expected> {
    let sum = |(e, y): (usize, &f64)| {
        let term = |(o, i)| x[(o * axis.extent + e) * axis.inner + i];
        rest(axis).map(term).chain((beta != 0.0).then_some(beta * y)).collect()
    };
    y.iter().enumerate().map(sum).collect()
}

/// `y[o,i] ← the least e whose x[o,e,i] is greatest`; NaN is none, and 0 stands for nothing else.
pub(in crate::conformance) fn arg_max(axis: &Axis, x: &[f64]) -> Vec<u32> {
    let first = |(o, i)| {
        let x = along(axis, x, o, i);
        let max = x.iter().copied().fold(f64::NAN, f64::max);
        x.iter().position(|&x| x == max).unwrap_or(0) as u32
    };
    rest(axis).map(first).collect()
}

/// Where the `k` greatest along each line are in `x`, and their index along the axis.
pub(in crate::conformance) fn top_k(op: &TopK, x: &[f64]) -> Vec<(usize, f64)> {
    let TopK { axis, k } = *op;
    let mut found = vec![(0, 0.0); k * axis.reduced_count()];
    for (o, i) in rest(&axis) {
        let line = along(&axis, x, o, i);
        let mut order: Vec<usize> = (0..axis.extent).rev().collect();
        // Stable: of equals the later stays before.
        order.sort_by(|&a, &b| match (line[a].is_nan(), line[b].is_nan()) {
            (false, false) => line[b].total_cmp(&line[a]),
            (a, b) => a.cmp(&b),
        });
        for (j, &e) in order[..k].iter().enumerate() {
            let at = (o * axis.extent + e) * axis.inner + i;
            found[(o * k + j) * axis.inner + i] = (at, e as f64);
        }
    }
    found
}
