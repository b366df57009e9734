//! [`Windows`](crate::kernel::Windows).

use super::harness::{CaseSetup, call, ones, refused, refuses_lengths, tries};
use crate::{
    conformance::{
        runner::CheckRunner,
        check::{Check, checks},
        compare::same,
        failure::Verdict,
        operand::{Operand, Placement, unset},
        oracle::conv as oracle,
        values::wide,
    },
    device::Device,
    element::Element,
    error::Result,
    memory::{Src, View, ViewMut},
    op::{Convolution, SpatialAxis, Unary, Window},
};
use proptest::prelude::*;

pub(super) fn checks<D: Device>() -> Vec<Check<D>> {
    checks! {
        "im2col" of "im2col": im2col();
        "col2im" of "col2im": col2im();
        "convolve" of "convolve": convolve();
        "convolve_with_activation" of "convolve": convolve_with_activation();
        "convolve_backward_input" of "convolve_backward_input": convolve_backward_input();
        "convolve_backward_filters" of "convolve_backward_filters": convolve_backward_filters();
    }
}

fn im2col<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    tries(bench, windows()?, any_window(3), |op, how| {
        let x = how.draw().take::<T>(op.image_len());
        let before = unset(op.columns_len());
        let (x, columns) = (("x", &x[..], how.at[0]), ("columns", &before[..], how.at[1]));
        let [got] = call(bench, [x], [columns], |[x], [y]| bench.device.im2col(op, x, y))?;
        let want = oracle::im2col(op, &wide(x.1));
        same("columns", &got, &want.into_iter().map(T::from_f64).collect::<Vec<_>>())
    })?;
    let op = small()?;
    let (x, columns) = (("x", op.image_len()), ("columns", op.columns_len()));
    refuses_lengths::<T, D, _, _>(bench, [x], [columns], |[x], [y]| bench.device.im2col(&op, x, y))
}

fn col2im<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    tries(bench, windows()?, any_window(3), |op, how| {
        let columns = how.draw().take::<T>(op.columns_len());
        let before = unset(op.image_len());
        let given = ("columns", &columns[..], how.at[0]);
        let x = ("x", &before[..], how.at[1]);
        let [got] = call(bench, [given], [x], |[y], [x]| bench.device.col2im(op, y, x))?;
        how.values.judge("x", &got, &oracle::col2im(op, &wide(&columns)))
    })?;
    let op = small()?;
    let (columns, x) = (("columns", op.columns_len()), ("x", op.image_len()));
    refuses_lengths::<T, D, _, _>(bench, [columns], [x], |[y], [x]| bench.device.col2im(&op, y, x))
}

/// Images, filters, biases and results of a convolution.
struct Operands<T> {
    x: Vec<T>,
    filters: Vec<T>,
    bias: Vec<T>,
    y: Vec<T>,
}

impl<T: Element> Operands<T> {
    fn draw(op: &Convolution, how: &CaseSetup) -> Self {
        let mut draw = how.draw();
        Self {
            x: draw.take(op.input_len()),
            filters: draw.take(op.filter_len()),
            bias: draw.take(op.outputs()),
            y: draw.take(op.output_len()),
        }
    }
}

fn convolve<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    tries(bench, convolutions()?, any_convolution(), |op, how| {
        let Operands { x, filters, bias, .. } = &Operands::<T>::draw(op, how);
        let before = unset(op.output_len());
        let given = [("x", &x[..], how.at[0]), ("filters", &filters[..], how.at[1])];
        let y = ("y", &before[..], how.at[3]);
        let biases = Operand::input(bench.device, bias, how.at[2])?;
        for with in [true, false] {
            let [got] = call(bench, given, [y], |[x, w], [y]| {
                let bias = with.then(|| biases.view()).transpose()?;
                bench.device.convolve(op, x, w, bias, y)
            })?;
            biases.unchanged("bias")?;
            let bias = wide(bias);
            let bias = with.then_some(&bias[..]);
            let want = oracle::convolve(op, &wide(x), &wide(filters), bias);
            how.values.judge(if with { "y" } else { "y without bias" }, &got, &want)?;
        }
        Ok(())
    })?;
    convolve_refuses::<T, D>(bench, None)
}

/// Functions of results: with and without elementary functions.
const ACTIVATIONS: [Unary<f64>; 3] =
    [Unary::Relu { slope: 0.0 }, Unary::Relu { slope: 0.3 }, Unary::Tanh];

/// The oracle is the device itself, which has been tried on both kernels: no bit may differ.
fn convolve_with_activation<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let device = bench.device;
    tries(bench, convolutions()?, any_convolution(), |op, how| {
        let Operands { x, filters, bias, .. } = &Operands::<T>::draw(op, how);
        let before = unset(op.output_len());
        let given = [("x", &x[..], how.at[0]), ("filters", &filters[..], how.at[1])];
        let y = ("y", &before[..], how.at[3]);
        let biases = Operand::input(device, bias, how.at[2])?;
        for (i, function) in ACTIVATIONS.map(Unary::cast).into_iter().enumerate() {
            let bias = || (i != 1).then(|| biases.view()).transpose();
            let [got] = call(bench, given, [y], |[x, w], [y]| {
                device.convolve_with_activation(op, x, w, bias()?, function, y)
            })?;
            biases.unchanged("bias")?;
            let [want] = call(bench, given, [y], |[x, w], [mut y]| {
                device.convolve(op, x, w, bias()?, y.reborrow())?;
                device.unary(function, Src::InPlace, y)
            })?;
            same(function.name(), &got, &want)?;
        }
        Ok(())
    })?;
    convolve_refuses::<T, D>(bench, Some(ACTIVATIONS[0].cast()))
}

fn convolve_refuses<T: Element, D: Device>(
    bench: &CheckRunner<'_, D>,
    function: Option<Unary<T::Acc>>,
) -> Verdict {
    let op = convolution(2, 2, 2, small()?)?;
    let run = |bias, x: View<'_, T, D>, w: View<'_, T, D>, y: ViewMut<'_, T, D>| -> Result<()> {
        let bias = Operand::input(bench.device, &ones::<T>(bias), Placement::WHOLE)?;
        let bias = Some(bias.view()?);
        match function {
            Some(function) => bench.device.convolve_with_activation(&op, x, w, bias, function, y),
            None => bench.device.convolve(&op, x, w, bias, y),
        }
    };
    let given = [("x", op.input_len()), ("filters", op.filter_len())];
    let results = [("y", op.output_len())];
    refuses_lengths::<T, D, _, _>(bench, given, results, |[x, w], [y]| run(2, x, w, y))?;
    let [x, filters, y] = [op.input_len(), op.filter_len(), op.output_len()].map(ones::<T>);
    bench.all([1, 3], |&bias| {
        let at = Placement::CORNERS[1];
        let given = [("x", &x[..], at), ("filters", &filters[..], at)];
        refused(bench, given, [("y", &y[..], at)], |[x, w], [y]| run(bias, x, w, y))
    })
}

fn convolve_backward_input<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let device = bench.device;
    tries(bench, convolutions()?, any_convolution(), |op, how| {
        let Operands { filters, y: dy, .. } = &Operands::<T>::draw(op, how);
        let before = unset(op.input_len());
        let given = [("filters", &filters[..], how.at[0]), ("dy", &dy[..], how.at[1])];
        let dx = ("dx", &before[..], how.at[2]);
        let [got] = call(bench, given, [dx], |[w, dy], [dx]| {
            device.convolve_backward_input(op, w, dy, dx)
        })?;
        let want = oracle::convolve_backward_input(op, &wide(filters), &wide(dy));
        how.values.judge("dx", &got, &want)
    })?;
    let op = convolution(2, 2, 2, small()?)?;
    let given = [("filters", op.filter_len()), ("dy", op.output_len())];
    refuses_lengths::<T, D, _, _>(bench, given, [("dx", op.input_len())], |[w, dy], [dx]| {
        device.convolve_backward_input(&op, w, dy, dx)
    })
}

fn convolve_backward_filters<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let device = bench.device;
    tries(bench, convolutions()?, any_convolution(), |op, how| {
        let Operands { x, y: dy, filters: before, .. } = &Operands::<T>::draw(op, how);
        let given = [("x", &x[..], how.at[0]), ("dy", &dy[..], how.at[1])];
        let dw = ("dfilters", &before[..], how.at[2]);
        let [got] = call(bench, given, [dw], |[x, dy], [dw]| {
            device.convolve_backward_filters(op, x, dy, dw)
        })?;
        let want = oracle::convolve_backward_filters(op, &wide(x), &wide(dy), &wide(before));
        how.values.judge("dfilters", &got, &want)
    })?;
    let op = convolution(2, 2, 2, small()?)?;
    let given = [("x", op.input_len()), ("dy", op.output_len())];
    refuses_lengths::<T, D, _, _>(bench, given, [("dfilters", op.filter_len())], |[x, dy], [dw]| {
        device.convolve_backward_filters(&op, x, dy, dw)
    })
}

/// Windows along an axis: `[input, kernel, stride, pad, dilation]`.
fn window(channels: usize, axes: &[[usize; 5]]) -> Result<Window> {
    let axis = |&[input, kernel, stride, pad, dilation]: &[usize; 5]| SpatialAxis {
        input,
        kernel,
        stride,
        pad,
        dilation,
    };
    Window::new(channels, &axes.iter().map(axis).collect::<Vec<_>>())
}

/// Two channels of 4 × 5 under 3 × 2.
fn small() -> Result<Window> {
    window(2, &[[4, 3, 1, 1, 1], [5, 2, 2, 0, 1]])
}

/// Windows in one to three axes: of one tap, of taps that never meet the image, wide apart, of an
/// empty image, and more of them than a block computes.
fn windows() -> Result<Vec<Window>> {
    Ok(vec![
        window(0, &[[4, 3, 1, 1, 1]])?,
        window(2, &[[0, 2, 1, 1, 1], [3, 1, 1, 0, 1]])?,
        window(1, &[[1, 1, 1, 0, 1]])?,
        window(3, &[[5, 1, 1, 0, 1], [3, 1, 1, 0, 1]])?,
        window(3, &[[5, 1, 2, 0, 1], [4, 1, 3, 1, 1]])?,
        window(2, &[[9, 3, 2, 1, 1]])?,
        window(1, &[[2, 2, 1, 4, 3]])?,
        window(2, &[[7, 3, 1, 2, 2], [8, 2, 3, 0, 3]])?,
        window(2, &[[3, 2, 1, 0, 1], [4, 3, 2, 1, 1], [5, 2, 1, 1, 2]])?,
        window(3, &[[35, 3, 1, 1, 1], [37, 3, 1, 1, 1]])?,
        small()?,
    ])
}

fn convolution(batch: usize, outputs: usize, groups: usize, window: Window) -> Result<Convolution> {
    Convolution::new(batch, outputs, groups, window)
}

/// Convolutions over [`windows`], and with what layers have: groups, depthwise filters, matrix
/// products in disguise.
fn convolutions() -> Result<Vec<Convolution>> {
    let mut cases = vec![
        convolution(0, 2, 1, small()?)?,
        convolution(2, 0, 1, small()?)?,
        convolution(2, 6, 3, window(3, &[[6, 3, 1, 1, 1], [5, 3, 2, 1, 1]])?)?,
        convolution(2, 4, 4, window(4, &[[6, 3, 1, 1, 1], [7, 3, 1, 1, 1]])?)?,
        convolution(3, 9, 1, window(7, &[[5, 1, 1, 0, 1], [7, 1, 1, 0, 1]])?)?,
        convolution(3, 4, 2, window(4, &[[5, 1, 2, 0, 1], [7, 1, 2, 0, 1]])?)?,
        convolution(2, 17, 1, window(5, &[[14, 5, 1, 0, 1], [13, 5, 1, 0, 1]])?)?,
        convolution(1, 3, 1, window(6, &[[67, 3, 1, 1, 1]])?)?,
    ];
    for window in windows()? {
        cases.push(convolution(2, 3, 1, window)?);
    }
    Ok(cases)
}

fn any_window(channels: usize) -> impl Strategy<Value = Window> {
    let axis = (1..=4usize, 1..=3usize, 0..=3usize, 1..=3usize, 0..=6usize);
    let axis = axis.prop_map(|(kernel, stride, pad, dilation, slack)| {
        let reach = dilation * (kernel - 1) + 1;
        [reach.saturating_sub(2 * pad).max(1) + slack, kernel, stride, pad, dilation]
    });
    let axes = prop::collection::vec(axis, 1..=3);
    let whole = (1..=channels, axes).prop_map(|(channels, axes)| window(channels, &axes).ok());
    whole.prop_filter_map("too large", |window| window.filter(|w| w.columns_len() <= 20_000))
}

fn any_convolution() -> impl Strategy<Value = Convolution> {
    let extents = (1..=3usize, 1..=4usize, 1..=3usize);
    (extents, any_window(2)).prop_filter_map("no convolution", |((batch, outputs, groups), w)| {
        let window = Window::new(w.channels() * groups, w.axes()).ok()?;
        let op = Convolution::new(batch, outputs * groups, groups, window).ok()?;
        (op.flops() <= 400_000).then_some(op)
    })
}
