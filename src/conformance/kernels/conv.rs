//! Conformance checks of the kernel family [`Conv`](crate::kernel::Conv).

use super::{harness::as_slices, prelude::*};
use crate::{
    conformance::oracle::conv as oracle,
    element::DType,
    op::{Convolution, SpatialAxis, Unary, Window},
};

checks! {
    "im2col" of "im2col": im2col();
    "col2im" of "col2im": col2im();
    "convolve" of "convolve": convolve();
    "convolve_with_activation" of "convolve": convolve_with_activation();
    "convolve_backward_input" of "convolve_backward_input": convolve_backward_input();
    "convolve_backward_filters" of "convolve_backward_filters": convolve_backward_filters();
}

fn im2col<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    runner.try_kernel(
        &window_cases()?,
        |op, setup| {
            setup.inputs_and_outputs::<T, 1, 1>(
                [("x", op.image_len())],
                [("columns", op.columns_len())],
            )
        },
        |op, [x], [columns]| runner.device.im2col(op, x, columns),
        |op, [x], _| [ExpectedOutput::Bits(oracle::im2col(op, x))],
    )
}

fn col2im<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    runner.try_kernel(
        &window_cases()?,
        |op, setup| {
            setup.inputs_and_outputs::<T, 1, 1>(
                [("columns", op.columns_len())],
                [("x", op.image_len())],
            )
        },
        |op, [columns], [x]| runner.device.col2im(op, columns, x),
        |op, [columns], _| [ExpectedOutput::Sums(oracle::col2im(op, columns))],
    )
}

/// Returns random operands of a convolution: images, filters, bias and output.
fn operands<T: Element>(op: &Convolution, setup: &CaseSetup) -> [NamedValues<T>; 4] {
    let (filters, outputs) = (("filters", op.filter_len()), ("bias", op.outputs()));
    let lengths = [("x", op.input_len()), filters, outputs, ("y", op.output_len())];
    let mut operands = setup.operands(lengths);
    if setup.values == Values::Specials {
        // A kernel may multiply filters by padding, and padding times infinity is NaN.
        operands[1].1 = Values::Integers.stream(setup.seed).take(op.filter_len());
    }
    operands
}

fn convolve<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    let with_bias = convolution_cases()?.and_whole(large_convolutions()?);
    let without_bias = convolution_cases()?.without_refused();
    for (has_bias, cases) in [(true, with_bias), (false, without_bias)] {
        runner.try_kernel(
            &cases,
            |op, setup| {
                let [x, filters, bias, _] = operands::<T>(op, setup);
                ([x, filters, bias], [("y", unset(op.output_len()))])
            },
            |op, [x, w, bias], [y]| runner.device.convolve(op, x, w, has_bias.then_some(bias), y),
            |op, [x, w, bias], _| {
                [ExpectedOutput::Sums(oracle::convolve(op, x, w, has_bias.then_some(bias)))]
            },
        )?;
    }
    Ok(())
}

/// Activations to fuse with a convolution: ReLU, leaky ReLU and tanh.
const ACTIVATIONS: [Unary<f64>; 3] =
    [Unary::Relu { slope: 0.0 }, Unary::Relu { slope: 0.3 }, Unary::Tanh];

/// Checks that the fused kernel's results are bit-identical to those of the device's convolution
/// followed by the device's activation.
fn convolve_with_activation<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    let device = runner.device;
    let test = |op: &Convolution, setup: &CaseSetup| {
        let operands = operands::<T>(op, setup);
        let [x, w, bias, _] = as_slices(&operands);
        let y = ("y", &unset(op.output_len())[..]);
        for (i, function) in ACTIVATIONS.map(Unary::cast).into_iter().enumerate() {
            let has_bias = i != 1;
            let [got] = runner.call(setup, [x, w, bias], [y], |[x, w, bias], [y]| {
                let bias = has_bias.then_some(bias);
                device.convolve_with_activation(op, x, w, bias, function, y)
            })?;
            let [want] = runner.call(setup, [x, w, bias], [y], |[x, w, bias], [mut y]| {
                device.convolve(op, x, w, has_bias.then_some(bias), y.reborrow())?;
                device.unary(function, Src::InPlace, y)
            })?;
            match setup.values {
                // Do not compare the bits of a NaN, because the bits of a computed NaN are
                // unspecified.
                Values::Specials => expect_nearest(function.name(), &got, &wide(&want))?,
                _ => expect_bits(function.name(), &got, &want)?,
            }
        }
        Ok(())
    };
    runner.try_all(&convolution_cases()?, test)?;
    // Cases with large operands are slow, so the kit runs them only in `f32`.
    if T::DTYPE == DType::F32 {
        runner.try_cases(large_convolutions()?, |op| test(op, &CaseSetup::WHOLE))?;
    }
    let (op, function) = (Convolution::new(2, 2, 2, small_window()?)?, ACTIVATIONS[0].cast());
    let [x, w, bias, y] = operands::<T>(&op, &CaseSetup::WHOLE).map(|x| (x.0, x.1.len()));
    runner.check_lengths::<T, T, 3, 1>([x, w, bias], [y], |[x, w, bias], [y]| {
        device.convolve_with_activation(&op, x, w, Some(bias), function, y)
    })
}

fn convolve_backward_input<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    runner.try_kernel(
        &convolution_cases()?.and_whole(large_convolutions()?),
        |op, setup| {
            let [_, filters, _, (_, dy)] = operands::<T>(op, setup);
            ([filters, ("dy", dy)], [("dx", unset(op.input_len()))])
        },
        |op, [w, dy], [dx]| runner.device.convolve_backward_input(op, w, dy, dx),
        |op, [w, dy], _| [ExpectedOutput::Sums(oracle::convolve_backward_input(op, w, dy))],
    )
}

fn convolve_backward_filters<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    runner.try_kernel(
        &convolution_cases()?.and_whole(large_convolutions()?),
        |op, setup| {
            let [x, (_, before), _, (_, mut dy)] = operands::<T>(op, setup);
            if setup.values == Values::Specials {
                // A kernel may multiply gradients by padding, and infinity times padding is NaN.
                dy = Values::Integers.stream(setup.seed).take(dy.len());
            }
            ([x, ("dy", dy)], [("dfilters", before)])
        },
        |op, [x, dy], [dw]| runner.device.convolve_backward_filters(op, x, dy, dw),
        |op, [x, dy], [dw]| {
            [ExpectedOutput::Sums(oracle::convolve_backward_filters(op, x, dy, dw))]
        },
    )
}

/// Returns a window along the given axes, each as `[input, kernel, stride, pad, dilation]`.
fn window(channels: usize, axes: &[[usize; 5]]) -> Result<Window> {
    fn axis(&[input, kernel, stride, pad, dilation]: &[usize; 5]) -> SpatialAxis {
        SpatialAxis { input, kernel, stride, pad, dilation }
    }
    Window::new(channels, &axes.iter().map(axis).collect::<Vec<_>>())
}

/// Returns a window with 3 × 2 taps, for images with two channels of 4 × 5 elements.
fn small_window() -> Result<Window> {
    window(2, &[[4, 3, 1, 1, 1], [5, 2, 2, 0, 1]])
}

/// Returns windows along one to three axes: one tap, windows outside the image, large strides,
/// empty images, and more positions than one GPU thread block computes.
fn window_corners() -> Result<Vec<Window>> {
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
        small_window()?,
    ])
}

fn window_cases() -> Result<Cases<Window>> {
    Ok(Cases::new(window_corners()?, random_window(3), small_window()?))
}

/// Returns cases of convolutions: every window of [`window_corners`], several groups, depthwise
/// filters, and 1 × 1 convolutions, which are matrix products.
fn convolution_cases() -> Result<Cases<Convolution>> {
    let mut corner_cases = vec![
        Convolution::new(0, 2, 1, small_window()?)?,
        Convolution::new(2, 0, 1, small_window()?)?,
        Convolution::new(2, 6, 3, window(3, &[[6, 3, 1, 1, 1], [5, 3, 2, 1, 1]])?)?,
        Convolution::new(2, 4, 4, window(4, &[[6, 3, 1, 1, 1], [7, 3, 1, 1, 1]])?)?,
        Convolution::new(3, 9, 1, window(7, &[[5, 1, 1, 0, 1], [7, 1, 1, 0, 1]])?)?,
        Convolution::new(3, 4, 2, window(4, &[[5, 1, 2, 0, 1], [7, 1, 2, 0, 1]])?)?,
        Convolution::new(2, 17, 1, window(5, &[[14, 5, 1, 0, 1], [13, 5, 1, 0, 1]])?)?,
        Convolution::new(1, 3, 1, window(6, &[[67, 3, 1, 1, 1]])?)?,
    ];
    for window in window_corners()? {
        corner_cases.push(Convolution::new(2, 3, 1, window)?);
    }
    Ok(Cases::new(corner_cases, random_convolution(), Convolution::new(2, 2, 2, small_window()?)?))
}

/// Returns four convolutions: with more than 65,535 images, with more than 32,767 planes, with more
/// than 2²⁰ positions, and with more than 256 output channels and more than 256 terms per sum.
fn large_convolutions() -> Result<[Convolution; 4]> {
    let (planes, channels) = (40_009, 300);
    Ok([
        Convolution::new(ROWS, 2, 1, window(1, &[[3, 2, 1, 0, 1]])?)?,
        Convolution::new(1, planes, planes, window(planes, &[[3, 2, 1, 0, 1]])?)?,
        Convolution::new(1, 1, 1, window(1, &[[(1 << 20) + 4, 2, 1, 0, 1]])?)?,
        Convolution::new(1, channels, 1, window(channels, &[[5, 3, 1, 1, 1]])?)?,
    ])
}

fn random_window(channels: usize) -> impl Strategy<Value = Window> {
    let axis = (1..=4usize, 1..=3usize, 0..=3usize, 1..=3usize, 0..=6usize);
    let axis = axis.prop_map(|(kernel, stride, pad, dilation, slack)| {
        let dilated_len = dilation * (kernel - 1) + 1;
        [dilated_len.saturating_sub(2 * pad).max(1) + slack, kernel, stride, pad, dilation]
    });
    let axes = prop::collection::vec(axis, 1..=3);
    (1..=channels, axes).prop_filter_map("too large", |(channels, axes)| {
        window(channels, &axes).ok().filter(|window| window.columns_len() <= 20_000)
    })
}

fn random_convolution() -> impl Strategy<Value = Convolution> {
    let extents = (1..=3usize, 1..=4usize, 1..=3usize);
    (extents, random_window(2)).prop_filter_map(
        "invalid convolution",
        |((batch, outputs, groups), w)| {
            let window = Window::new(w.channels() * groups, w.axes()).ok()?;
            let op = Convolution::new(batch, outputs * groups, groups, window).ok()?;
            (op.flops() <= 400_000).then_some(op)
        },
    )
}
