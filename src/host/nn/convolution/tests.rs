//! Tests that compare convolution with its definition.

use super::*;
use crate::{
    error::Error,
    host::{
        elementwise::map::unary_in_place,
        nn::testing::expect_length_errors,
        simd::level::with_each_simd_level,
        testing::{for_each_element, fractions, integers, rounded, threads, wide},
    },
    op::{SpatialAxis, Window},
};

fn axis(input: usize, kernel: usize, stride: usize, pad: usize, dilation: usize) -> SpatialAxis {
    SpatialAxis { input, kernel, stride, pad, dilation }
}

fn convolution(
    batch: usize,
    channels: usize,
    outputs: usize,
    groups: usize,
    axes: &[SpatialAxis],
) -> Convolution {
    Convolution::new(batch, outputs, groups, Window::new(channels, axes).unwrap()).unwrap()
}

fn cases() -> Vec<Convolution> {
    let square_axes = |input, kernel, stride, pad| [axis(input, kernel, stride, pad, 1); 2];
    vec![
        // Convolution layers of LeNet, in small batches. The second has 15 channels instead of 20:
        // Winograd's algorithm would compute 20, and its results of 5×5 filters are not exact.
        convolution(3, 1, 20, 1, &square_axes(28, 5, 1, 0)),
        convolution(17, 15, 50, 1, &square_axes(12, 5, 1, 0)),
        // A convolution whose image gradient takes the transposed steps of Winograd's algorithm.
        convolution(4, 16, 16, 1, &square_axes(10, 3, 1, 0)),
        // Convolutions without images, channels, outputs or input elements.
        convolution(0, 3, 4, 1, &square_axes(5, 3, 1, 1)),
        convolution(2, 0, 4, 1, &square_axes(5, 3, 1, 1)),
        convolution(2, 3, 0, 1, &square_axes(5, 3, 1, 1)),
        convolution(2, 2, 2, 1, &[axis(0, 3, 1, 2, 1)]),
        // Convolutions of a single element, and convolutions with zero to four axes.
        convolution(1, 1, 1, 1, &square_axes(1, 1, 1, 0)),
        convolution(3, 4, 5, 1, &[]),
        convolution(2, 3, 4, 1, &[axis(30, 5, 2, 2, 2)]),
        convolution(5, 3, 2, 1, &[axis(9, 4, 3, 2, 1)]),
        convolution(1, 1, 2, 1, &[axis(4, 3, 1, 0, 1), axis(5, 2, 1, 0, 1)]),
        convolution(2, 4, 6, 2, &[axis(7, 3, 2, 1, 1), axis(9, 2, 1, 3, 2)]),
        convolution(9, 6, 4, 2, &[axis(7, 3, 2, 1, 1), axis(6, 3, 1, 2, 2)]),
        convolution(3, 2, 4, 1, &square_axes(20, 3, 1, 1)),
        convolution(2, 2, 3, 1, &[axis(4, 3, 1, 1, 1), axis(5, 2, 2, 0, 1), axis(6, 3, 1, 1, 1)]),
        convolution(2, 2, 2, 1, &[axis(4, 2, 1, 0, 1), axis(3, 2, 1, 1, 1), axis(4, 3, 2, 1, 1)]),
        convolution(1, 1, 2, 1, &[axis(3, 2, 1, 0, 1); 4]),
        // Convolutions with 1×1 kernels, whose im2col matrix equals the image unless the stride
        // exceeds 1.
        convolution(2, 6, 5, 1, &square_axes(11, 1, 1, 0)),
        convolution(3, 6, 4, 2, &square_axes(9, 1, 1, 0)),
        convolution(70, 5, 4, 1, &square_axes(2, 1, 1, 0)),
        convolution(2, 4, 4, 1, &square_axes(9, 1, 2, 0)),
        // Depthwise convolutions with several filters per channel, strides that do not divide the
        // kernel, dilation, one axis, gaps between windows, or many windows.
        convolution(3, 5, 5, 5, &square_axes(5, 3, 1, 1)),
        convolution(3, 6, 12, 6, &square_axes(10, 3, 1, 1)),
        convolution(2, 5, 5, 5, &square_axes(13, 3, 2, 1)),
        convolution(2, 3, 6, 3, &[axis(9, 2, 3, 1, 1), axis(12, 5, 2, 3, 1)]),
        convolution(3, 4, 4, 4, &[axis(11, 3, 1, 2, 2), axis(15, 3, 2, 3, 3)]),
        convolution(2, 7, 14, 7, &[axis(40, 4, 3, 2, 2)]),
        convolution(2, 3, 3, 3, &[axis(14, 2, 5, 0, 1), axis(17, 1, 4, 0, 1)]),
        convolution(9, 3, 3, 3, &square_axes(56, 3, 1, 1)),
        // Depthwise convolutions that take the GEMM path, because of a channel multiplier of five
        // or a kernel wider than the image.
        convolution(2, 2, 10, 2, &square_axes(10, 3, 1, 1)),
        convolution(2, 2, 2, 2, &square_axes(2, 3, 1, 1)),
        // Convolutions that have few positions per image, or padding wider than the image.
        convolution(70, 3, 7, 1, &square_axes(4, 3, 1, 0)),
        convolution(2, 2, 2, 1, &square_axes(1, 3, 2, 4)),
        // A convolution whose filter gradient stores the im2col matrix, with groups and padding.
        convolution(2, 6, 4, 2, &[axis(24, 3, 1, 1, 1), axis(25, 3, 1, 1, 1)]),
        // A convolution by Winograd's algorithm, in vectors that contain planes of two images.
        convolution(4, 17, 18, 1, &square_axes(8, 3, 1, 1)),
        // A convolution whose im2col matrix exceeds the caches.
        convolution(2, 40, 6, 2, &square_axes(80, 4, 1, 1)),
        convolution(1, 96, 8, 1, &[axis(600, 9, 1, 4, 1)]),
        // A convolution of a single image, whose GEMM several threads share. The image has 97
        // channels, one more than the largest block of channels in the input gradient.
        convolution(1, 97, 16, 1, &square_axes(56, 1, 2, 0)),
        // Convolutions whose input gradients are computed by a GEMM and `col2im`: one with a single
        // position, and one with a single tap.
        convolution(1, 260, 128, 1, &square_axes(8, 8, 1, 0)),
        convolution(1, 257, 64, 1, &square_axes(15, 1, 2, 0)),
    ]
}

/// Returns all test cases except large convolutions, which take most of the test time.
fn small_cases() -> impl Iterator<Item = Convolution> {
    cases().into_iter().filter(|op| op.flops() < 5_000_000)
}

/// Calls `term(i, j, k)` for each product `x[i] · filters[j]` in the definition of `y[k]`.
pub(crate) fn for_each_product(op: &Convolution, mut term: impl FnMut(usize, usize, usize)) {
    let window = op.window();
    let (channels, outputs) = (window.channels() / op.groups(), op.outputs() / op.groups());
    let (taps, positions, plane_len) = (window.taps(), window.positions(), window.plane_len());
    let offset_in_plane = |mut tap: usize, mut position: usize| {
        let (mut offset, mut stride) = (0, 1);
        for (axis, &output) in window.axes().iter().zip(window.output()).rev() {
            let padded_index = position % output * axis.stride + tap % axis.kernel * axis.dilation;
            let input_index = padded_index.checked_sub(axis.pad).filter(|&i| i < axis.input)?;
            offset += input_index * stride;
            stride *= axis.input;
            (tap, position) = (tap / axis.kernel, position / output);
        }
        Some(offset)
    };
    for tap in 0..taps {
        for position in 0..positions {
            let Some(offset) = offset_in_plane(tap, position) else { continue };
            for image in 0..op.batch() {
                for out in 0..op.outputs() {
                    let (group, mut channel) = (out / outputs, 0);
                    // Not a `for` loop, because each step of an iterator is several calls in an
                    // unoptimized build.
                    while channel < channels {
                        let plane = image * window.channels() + group * channels + channel;
                        let y = (image * op.outputs() + out) * positions + position;
                        term(
                            plane * plane_len + offset,
                            (out * channels + channel) * taps + tap,
                            y,
                        );
                        channel += 1;
                    }
                }
            }
        }
    }
}

/// Sums of small integers are exact, so results on integer operands must equal the definition. Each
/// case runs on one, two or three threads, in rotation; another test compares the results of
/// different numbers of threads.
fn convolution_and_gradients_match_the_definition<T: Element>() {
    let workers = threads();
    for (case, op) in small_cases().enumerate() {
        check_directions::<T>(&op, |check| check(&workers[case % 3]));
    }
}

/// Checks the convolution and both of its gradients each time that `body` calls its argument.
/// Computes the expected results only once.
fn check_directions<T: Element>(op: &Convolution, body: impl FnOnce(&dyn Fn(&Workers))) {
    let x: Vec<T> = integers(1, op.input_len());
    let filters: Vec<T> = integers(2, op.filter_len());
    let bias: Vec<T> = integers(3, op.outputs());
    let dy: Vec<T> = integers(4, op.output_len());
    let dfilters: Vec<T> = integers(5, op.filter_len());
    let (wide_x, wide_filters, wide_dy) = (wide(&x), wide(&filters), wide(&dy));
    let (mut y, mut dx, mut df) = (vec![0.0; dy.len()], vec![0.0; x.len()], wide(&dfilters));
    {
        // Slices, because indexing a vector is a call in an unoptimized build.
        let (x, filters, dy) = (&wide_x[..], &wide_filters[..], &wide_dy[..]);
        let (y, dx, df) = (&mut y[..], &mut dx[..], &mut df[..]);
        for_each_product(op, |i, j, k| {
            y[k] += x[i] * filters[j];
            dx[i] += dy[k] * filters[j];
            df[j] += dy[k] * x[i];
        });
    }
    let bias_of = |k: usize| bias[k / op.window().positions() % op.outputs()].to_f64();
    let y_with_bias: Vec<f64> = y.iter().enumerate().map(|(k, y)| y + bias_of(k)).collect();
    let nan = T::from_f64(f64::NAN);
    body(&|workers| {
        let mut got = vec![nan; y.len()];
        convolve(workers, op, &x, &filters, None, &mut got).unwrap();
        assert_eq!(wide(&got), rounded::<T>(&y), "y of {op:?}");
        convolve(workers, op, &x, &filters, Some(&bias), &mut got).unwrap();
        assert_eq!(wide(&got), rounded::<T>(&y_with_bias), "y with bias of {op:?}");
        let mut got = vec![nan; x.len()];
        convolve_backward_input(workers, op, &filters, &dy, &mut got).unwrap();
        assert_eq!(wide(&got), rounded::<T>(&dx), "dx of {op:?}");
        let mut got = dfilters.clone();
        convolve_backward_filters(workers, op, &x, &dy, &mut got).unwrap();
        assert_eq!(wide(&got), rounded::<T>(&df), "dfilters of {op:?}");
    });
}

/// Sums of fractions are rounded, so a change in the order of additions would change results.
fn convolution_is_bit_identical_on_any_number_of_threads<T: Element>() {
    let workers = threads();
    for op in small_cases() {
        let x: Vec<T> = fractions(1, op.input_len());
        let filters: Vec<T> = fractions(2, op.filter_len());
        let dy: Vec<T> = fractions(3, op.output_len());
        let run = |workers: &Workers| {
            let (mut y, mut dx, mut df) = (dy.clone(), x.clone(), filters.clone());
            convolve(workers, &op, &x, &filters, None, &mut y).unwrap();
            convolve_backward_input(workers, &op, &filters, &dy, &mut dx).unwrap();
            convolve_backward_filters(workers, &op, &x, &dy, &mut df).unwrap();
            (y, dx, df)
        };
        let [one, two, three] = workers.each_ref().map(run);
        assert!(one == two && one == three, "{op:?}");
    }
}

fn fused_activation_is_bit_identical_to_a_separate_pass<T: Element>() {
    let (slope, workers) = (T::acc(0.3), threads());
    for op in cases().into_iter().filter(|op| op.flops() < 500_000) {
        let x: Vec<T> = fractions(1, op.input_len());
        let filters: Vec<T> = fractions(2, op.filter_len());
        let b: Vec<T> = fractions(3, op.outputs());
        for workers in &workers {
            for bias in [None, Some(&b[..])] {
                for function in [Unary::Relu { slope }, Unary::Tanh, Unary::Exp] {
                    let mut want = vec![T::from_f64(f64::NAN); op.output_len()];
                    let mut got = want.clone();
                    convolve(workers, &op, &x, &filters, bias, &mut want).unwrap();
                    unary_in_place(workers, function, &mut want).unwrap();
                    convolve_with_activation(workers, &op, &x, &filters, bias, function, &mut got)
                        .unwrap();
                    let bits = |y: &[T]| crate::cast::cast_slice::<T, u8>(y).to_vec();
                    assert!(bits(&got) == bits(&want), "{op:?} {function:?}");
                }
            }
        }
    }
}

for_each_element!(
    convolution_and_gradients_match_the_definition,
    convolution_is_bit_identical_on_any_number_of_threads,
    fused_activation_is_bit_identical_to_a_separate_pass
);

#[test]
fn large_convolutions_match_the_definition() {
    let [one, _, three] = threads();
    for op in cases().iter().filter(|op| op.flops() >= 5_000_000) {
        check_directions::<f32>(op, |check| {
            check(&one);
            check(&three);
        });
    }
}

#[test]
fn convolution_at_every_simd_level_matches_the_definition() {
    let workers = threads();
    for (case, op) in small_cases().enumerate() {
        check_directions::<f32>(&op, |check| with_each_simd_level(|| check(&workers[case % 3])));
    }
}

#[test]
fn convolution_length_errors_name_the_operand() {
    let (w, op) = (&Workers::sequential(), &convolution(2, 3, 4, 1, &[axis(5, 3, 1, 0, 1)]));
    let operands = [("x", 30), ("filters", 36), ("bias", 4), ("y", 24)];
    expect_length_errors("convolve", operands, |[x, f, b, mut y]| {
        convolve(w, op, &x, &f, Some(&b), &mut y)
    });
    let operands = [("filters", 36), ("dy", 24), ("dx", 30)];
    expect_length_errors("convolve_backward_input", operands, |[f, dy, mut dx]| {
        convolve_backward_input(w, op, &f, &dy, &mut dx)
    });
    let operands = [("x", 30), ("dy", 24), ("dfilters", 36)];
    expect_length_errors("convolve_backward_filters", operands, |[x, dy, mut df]| {
        convolve_backward_filters(w, op, &x, &dy, &mut df)
    });
}

/// A convolution without channels, outputs or images must not build tables of taps or positions.
#[test]
fn an_empty_convolution_allocates_nothing() {
    let (w, pad) = (&Workers::sequential(), 1 << (usize::BITS - 14));
    let wide_axis = SpatialAxis { pad, ..SpatialAxis::new(1, 2 * pad + 1) };
    let long_axis = SpatialAxis { stride: 3, ..SpatialAxis::new(1 << (usize::BITS / 2 - 4), 3) };
    for (batch, channels, outputs, axes) in
        [(1, 0, 2, &[wide_axis][..]), (1, 2, 0, &[wide_axis]), (0, 1, 2, &[long_axis, long_axis])]
    {
        let op = convolution(batch, channels, outputs, 1, axes);
        let (f, bias) = (vec![1.0f32; op.filter_len()], vec![3.0; outputs]);
        let (x, dy) = (vec![1.0; op.input_len()], vec![1.0; op.output_len()]);
        let (mut y, mut dx, mut df) = (vec![9.0; dy.len()], vec![9.0; x.len()], f.clone());
        convolve(w, &op, &x, &f, Some(&bias), &mut y).unwrap();
        assert!(y.iter().all(|&y| y == 3.0));
        convolve_backward_input(w, &op, &f, &dy, &mut dx).unwrap();
        assert!(dx.iter().all(|&dx| dx == 0.0));
        convolve_backward_filters(w, &op, &x, &dy, &mut df).unwrap();
        assert_eq!(df, f);
    }
}

/// The zero-padded copy of each image is as wide as the dilation, which far exceeds the extent of
/// the image.
#[test]
fn convolution_that_exceeds_memory_is_an_error() {
    let (w, dilation) = (&Workers::sequential(), 1 << (usize::BITS / 2));
    let axis = SpatialAxis { pad: dilation / 2, dilation, ..SpatialAxis::new(2, 2) };
    let op = convolution(1, 1, 1, 1, &[axis, axis]);
    let [x, f, dy] = [op.input_len(), op.filter_len(), op.output_len()].map(|n| vec![1.0f32; n]);
    let (mut y, mut df) = (dy.clone(), f.clone());
    let is_out_of_memory = |done: Result<()>| matches!(done, Err(Error::OutOfMemory { .. }));
    assert!(is_out_of_memory(convolve(w, &op, &x, &f, None, &mut y)));
    assert!(is_out_of_memory(convolve_backward_filters(w, &op, &x, &dy, &mut df)));
    let mut dx = x.clone();
    convolve_backward_input(w, &op, &f, &dy, &mut dx).unwrap_or_default();
}
