use crate::{
    host::{
        blas::gemm::with_each_width,
        nn::convolution::*,
        testing::{for_each_element, fractions, integers, operand, rounded, threads, wide},
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
    let square = |input, kernel, stride, pad| [axis(input, kernel, stride, pad, 1); 2];
    vec![
        // LeNet's two, in small batches.
        convolution(3, 1, 20, 1, &square(28, 5, 1, 0)),
        convolution(17, 20, 50, 1, &square(12, 5, 1, 0)),
        // Empty in each way there is.
        convolution(0, 3, 4, 1, &square(5, 3, 1, 1)),
        convolution(2, 0, 4, 1, &square(5, 3, 1, 1)),
        convolution(2, 3, 0, 1, &square(5, 3, 1, 1)),
        // One of everything; no axes; one, two, three and four axes.
        convolution(1, 1, 1, 1, &square(1, 1, 1, 0)),
        convolution(3, 4, 5, 1, &[]),
        convolution(2, 3, 4, 1, &[axis(30, 5, 2, 2, 2)]),
        convolution(2, 4, 6, 2, &[axis(7, 3, 2, 1, 1), axis(9, 2, 1, 3, 2)]),
        convolution(2, 2, 3, 1, &[axis(4, 3, 1, 1, 1), axis(5, 2, 2, 0, 1), axis(6, 3, 1, 1, 1)]),
        convolution(1, 1, 2, 1, &[axis(3, 2, 1, 0, 1); 4]),
        // The image is its own columns: alone, grouped, tiny and therefore side by side.
        convolution(2, 6, 5, 1, &square(11, 1, 1, 0)),
        convolution(3, 6, 4, 2, &square(9, 1, 1, 0)),
        convolution(70, 5, 4, 1, &square(2, 1, 1, 0)),
        convolution(2, 4, 4, 1, &square(9, 1, 2, 0)),
        // Depthwise, with a multiplier of two; few positions; padding wider than the image.
        convolution(3, 6, 12, 6, &square(10, 3, 1, 1)),
        // … with strides, a rest of the taps, dilation, one axis, gaps between windows, many
        // windows, more filters than are computed so, and a kernel wider than the image.
        convolution(2, 5, 5, 5, &square(13, 3, 2, 1)),
        convolution(2, 3, 6, 3, &[axis(9, 2, 3, 1, 1), axis(12, 5, 2, 3, 1)]),
        convolution(3, 4, 4, 4, &[axis(11, 3, 1, 2, 2), axis(15, 3, 2, 3, 3)]),
        convolution(2, 7, 14, 7, &[axis(40, 4, 3, 2, 2)]),
        convolution(2, 3, 3, 3, &[axis(14, 2, 5, 0, 1), axis(17, 1, 4, 0, 1)]),
        convolution(9, 3, 3, 3, &square(56, 3, 1, 1)),
        convolution(2, 2, 10, 2, &square(10, 3, 1, 1)),
        convolution(2, 2, 2, 2, &square(2, 3, 1, 1)),
        convolution(70, 3, 7, 1, &square(4, 3, 1, 0)),
        convolution(2, 2, 2, 1, &square(1, 3, 2, 4)),
        // Columns that do not fit the cache: bands.
        convolution(2, 40, 6, 2, &square(80, 4, 1, 1)),
        convolution(1, 96, 8, 1, &[axis(600, 9, 1, 4, 1)]),
        // One image for several threads, and one channel more than is computed at a time.
        convolution(1, 97, 16, 1, &square(56, 1, 2, 0)),
    ]
}

/// Sums over all pairs of an element of x and one of y that a tap of a filter connects.
fn each_term(op: &Convolution, mut term: impl FnMut(usize, usize, usize)) {
    let window = op.window();
    let (channels, outputs) = (window.channels() / op.groups(), op.outputs() / op.groups());
    let (taps, positions, plane) = (window.taps(), window.positions(), window.plane_len());
    // Where a tap at a position lies in the plane.
    let sees = |tap: usize, position: usize| {
        let (mut tap, mut position, mut at, mut pitch) = (tap, position, 0, 1);
        for (axis, &output) in window.axes().iter().zip(window.output()).rev() {
            let padded = position % output * axis.stride + tap % axis.kernel * axis.dilation;
            let inside = padded.checked_sub(axis.pad).filter(|&i| i < axis.input)?;
            at += inside * pitch;
            pitch *= axis.input;
            (tap, position) = (tap / axis.kernel, position / output);
        }
        Some(at)
    };
    for tap in 0..taps {
        for position in 0..positions {
            let Some(at) = sees(tap, position) else { continue };
            for image in 0..op.batch() {
                for out in 0..op.outputs() {
                    let group = out / outputs;
                    for channel in 0..channels {
                        let plane_x = image * window.channels() + group * channels + channel;
                        let y = (image * op.outputs() + out) * positions + position;
                        term(plane_x * plane + at, (out * channels + channel) * taps + tap, y);
                    }
                }
            }
        }
    }
}

/// y, dx and dfilters by the sum over all terms, in f64.
fn naive(op: &Convolution, x: &[f64], f: &[f64], bias: &[f64], dy: &[f64]) -> [Vec<f64>; 3] {
    let positions = op.window().positions();
    let mut y: Vec<_> = (0..op.output_len()).map(|i| bias[i / positions % op.outputs()]).collect();
    let (mut dx, mut df) = (vec![0.0; x.len()], vec![0.0; f.len()]);
    each_term(op, |i, j, k| {
        y[k] += x[i] * f[j];
        dx[i] += dy[k] * f[j];
        df[j] += dy[k] * x[i];
    });
    [y, dx, df]
}

/// Small integers: every sum is exact, so that results compare bit by bit.
fn small<T: Element>(tag: u64, len: usize) -> Vec<T> {
    integers::<T>(tag, len).into_iter().map(|v| T::from_f64((v.to_f64() / 2.0).trunc())).collect()
}

fn matches_the_definition<T: Element>() {
    let workers = threads();
    for op in cases() {
        let x = small::<T>(1, op.input_len());
        let (filters, bias) = (small::<T>(2, op.filter_len()), small::<T>(3, op.outputs()));
        let (dy, df0) = (small::<T>(4, op.output_len()), small::<T>(5, op.filter_len()));
        let [y, dx, df] = naive(&op, &wide(&x), &wide(&filters), &wide(&bias), &wide(&dy));
        let df: Vec<_> = df.iter().zip(wide(&df0)).map(|(a, b)| a + b).collect();
        let nan = T::from_f64(f64::NAN);
        for workers in &workers {
            let mut got = vec![nan; y.len()];
            convolve(workers, &op, &x, &filters, Some(&bias), &mut got).unwrap();
            assert_eq!(wide(&got), rounded::<T>(&y), "y {op:?}");
            let mut got = vec![nan; dx.len()];
            convolve_backward_input(workers, &op, &filters, &dy, &mut got).unwrap();
            assert_eq!(wide(&got), rounded::<T>(&dx), "dx {op:?}");
            let mut got = df0.clone();
            convolve_backward_filters(workers, &op, &x, &dy, &mut got).unwrap();
            assert_eq!(wide(&got), rounded::<T>(&df), "dfilters {op:?}");
        }
    }
}

fn same_bits_for_any_threads<T: Element>() {
    let workers = threads();
    for op in cases() {
        let (x, dy) = (fractions::<T>(1, op.input_len()), fractions::<T>(4, op.output_len()));
        let filters = fractions::<T>(2, op.filter_len());
        let [one, two, three] = workers.each_ref().map(|workers| {
            let mut y = dy.clone();
            convolve(workers, &op, &x, &filters, None, &mut y).unwrap();
            let mut dx = x.clone();
            convolve_backward_input(workers, &op, &filters, &dy, &mut dx).unwrap();
            let mut df = filters.clone();
            convolve_backward_filters(workers, &op, &x, &dy, &mut df).unwrap();
            [wide(&y), wide(&dx), wide(&df)]
        });
        assert!(one == two && one == three, "{op:?}");
    }
}

for_each_element!(matches_the_definition, same_bits_for_any_threads);

#[test]
fn other_processors_vectors_match_the_definition() {
    with_each_width(matches_the_definition::<f32>);
}

#[test]
fn errors_name_the_operand() {
    let w = Workers::sequential();
    let op = convolution(2, 3, 4, 1, &[axis(5, 3, 1, 0, 1)]);
    let zeros = |len: usize| vec![0.0f32; len];
    let forward = |x, f, b, y| {
        operand(convolve(&w, &op, &zeros(x), &zeros(f), Some(&zeros(b)), &mut zeros(y)))
    };
    assert_eq!(forward(29, 36, 4, 24), ("convolve", "x"));
    assert_eq!(forward(30, 35, 4, 24), ("convolve", "filters"));
    assert_eq!(forward(30, 36, 5, 24), ("convolve", "bias"));
    assert_eq!(forward(30, 36, 4, 25), ("convolve", "y"));
    let input = |f, dy, dx| {
        operand(convolve_backward_input(&w, &op, &zeros(f), &zeros(dy), &mut zeros(dx)))
    };
    assert_eq!(input(35, 24, 30), ("convolve_backward_input", "filters"));
    assert_eq!(input(36, 23, 30), ("convolve_backward_input", "dy"));
    assert_eq!(input(36, 24, 31), ("convolve_backward_input", "dx"));
    let weights = |x, dy, df| {
        operand(convolve_backward_filters(&w, &op, &zeros(x), &zeros(dy), &mut zeros(df)))
    };
    assert_eq!(weights(31, 24, 36), ("convolve_backward_filters", "x"));
    assert_eq!(weights(30, 25, 36), ("convolve_backward_filters", "dy"));
    assert_eq!(weights(30, 24, 37), ("convolve_backward_filters", "dfilters"));
}
