//! Tests that compare Winograd's algorithm with the definition of convolution.

use super::*;
use crate::{
    host::{
        nn::convolution::tests::for_each_product,
        simd::level::{with_each_fused_level, with_each_simd_level},
        testing::{fractions, integers, nan, threads, wide},
        threads::Workers,
    },
    op::Window,
};

/// Returns a convolution of `taps`×`taps` taps over images of `input` elements.
fn convolution(
    taps: usize,
    [batch, channels, outputs, groups]: [usize; 4],
    input: [usize; 2],
    pad: [usize; 2],
) -> Convolution {
    let axis = |i: usize| SpatialAxis { pad: pad[i], ..SpatialAxis::new(input[i], taps) };
    let window = Window::new(channels, &[axis(0), axis(1)]).unwrap();
    Convolution::new(batch, outputs, groups, window).unwrap()
}

/// Returns convolutions of 3×3 taps with every padding from 0 to 3, groups, and even and odd numbers
/// of outputs. Among them are a single output, blocks of several images, several blocks per image, rows
/// with more tiles than a block contains, and operands of several panels.
fn cases_of_3_taps() -> Vec<Convolution> {
    vec![
        convolution(3, [1, 16, 16, 1], [3, 3], [0, 0]),
        convolution(3, [1, 17, 16, 1], [1, 1], [1, 1]),
        convolution(3, [3, 18, 21, 1], [4, 3], [0, 1]),
        convolution(3, [2, 19, 20, 1], [5, 8], [2, 0]),
        convolution(3, [2, 32, 34, 2], [7, 7], [1, 2]),
        convolution(3, [1, 16, 17, 1], [2, 6], [3, 3]),
        convolution(3, [6, 17, 18, 1], [13, 13], [1, 1]),
        convolution(3, [5, 34, 32, 2], [14, 15], [1, 1]),
        convolution(3, [1, 16, 16, 1], [26, 45], [1, 1]),
        convolution(3, [1, 16, 16, 1], [4, 520], [1, 0]),
        // Several panels of output gradients, of the filters for the image gradient, and of the
        // filters for the outputs.
        convolution(3, [11, 16, 150, 1], [6, 6], [1, 1]),
        convolution(3, [11, 32, 300, 2], [6, 6], [1, 1]),
        convolution(3, [1, 40, 130, 1], [4, 5], [0, 0]),
        convolution(3, [1, 130, 40, 1], [4, 5], [1, 1]),
        convolution(3, [1, 260, 80, 2], [4, 5], [1, 1]),
    ]
}

/// Returns convolutions of 5×5 taps like [`cases_of_3_taps`].
fn cases_of_5_taps() -> Vec<Convolution> {
    vec![
        // Four images, because the error of a filter gradient with a single term can reach 54·2⁻²⁴. The
        // library uses the algorithm for at least 64 tiles.
        convolution(5, [4, 16, 16, 1], [5, 5], [0, 0]),
        convolution(5, [1, 17, 16, 1], [1, 1], [2, 2]),
        convolution(5, [3, 18, 21, 1], [6, 4], [0, 1]),
        convolution(5, [2, 32, 34, 2], [9, 8], [3, 4]),
        convolution(5, [6, 17, 18, 1], [13, 13], [2, 2]),
        convolution(5, [5, 20, 50, 1], [12, 12], [0, 0]),
        convolution(5, [1, 16, 16, 1], [26, 45], [2, 2]),
        convolution(5, [1, 16, 16, 1], [6, 520], [2, 0]),
    ]
}

/// Result of a convolution by its definition in `f64`, and for each element the sum of the magnitudes
/// of its terms.
#[derive(Clone)]
struct Sums {
    values: Vec<f64>,
    sizes: Vec<f64>,
}

impl Sums {
    fn zeros(len: usize) -> Self {
        Self { values: vec![0.0; len], sizes: vec![0.0; len] }
    }

    fn add(&mut self, at: usize, term: f64) {
        self.values[at] += term;
        self.sizes[at] += term.abs();
    }

    fn max_size(&self) -> f64 {
        self.sizes.iter().fold(0.0, |most: f64, &size| most.max(size))
    }
}

/// Returns `y`, `dfilters` and `dx` by the definition in `f64`.
fn definition(op: &Convolution, x: &[f32], filters: &[f32], dy: &[f32]) -> [Sums; 3] {
    let (x, filters, dy) = (wide(x), wide(filters), wide(dy));
    let [mut y, mut df, mut dx] = [dy.len(), filters.len(), x.len()].map(Sums::zeros);
    {
        // Slices, because indexing a vector is a call in an unoptimized build.
        let (x, filters, dy) = (&x[..], &filters[..], &dy[..]);
        for_each_product(op, |i, j, k| {
            y.add(k, x[i] * filters[j]);
            df.add(j, x[i] * dy[k]);
            dx.add(i, filters[j] * dy[k]);
        });
    }
    [y, df, dx]
}

/// Names of the results of [`by_winograd`].
const RESULTS: [&str; 3] = ["y", "dfilters", "dx"];

/// Returns `y`, `dfilters` and `dx` as computed by Winograd's algorithm. `dx` is `None` for images of
/// more than one block.
fn by_winograd(
    workers: &Workers,
    op: &Convolution,
    x: &[f32],
    filters: &[f32],
    dy: &[f32],
) -> [Option<Vec<f32>>; 3] {
    let winograd = Winograd::new(op).unwrap();
    let (mut y, mut df) = (nan(op.output_len()), vec![0.0; op.filter_len()]);
    winograd.convolve(workers, x, filters, None, None, &mut y).unwrap();
    winograd.accumulate_filter_gradient(workers, x, dy, &mut df).unwrap();
    let dx = winograd.blocks_have_whole_images().then(|| {
        let mut dx = nan(op.input_len());
        winograd.convolve_backward_input(workers, filters, dy, &mut dx).unwrap();
        dx
    });
    [Some(y), Some(df), dx]
}

/// Calls `check(name, got, expected)` for each result that [`by_winograd`] returned.
fn for_each_result(
    got: &[Option<Vec<f32>>; 3],
    expected: &[Sums; 3],
    check: impl Fn(&str, &[f32], &Sums),
) {
    for ((name, got), expected) in RESULTS.iter().zip(got).zip(expected) {
        if let Some(got) = got {
            check(name, got, expected);
        }
    }
}

/// The only factors of the transforms of 3×3 taps are ½ and ¼, so results of small integers are
/// exact.
#[test]
fn winograd_of_3_taps_is_exact_for_integers_at_every_simd_level() {
    for op in cases_of_3_taps() {
        let x = integers(1, op.input_len());
        let filters = integers(2, op.filter_len());
        let dy = integers(3, op.output_len());
        let expected = definition(&op, &x, &filters, &dy);
        with_each_simd_level(|| {
            let got = by_winograd(&Workers::sequential(), &op, &x, &filters, &dy);
            for_each_result(&got, &expected, |name, got, expected| {
                assert_eq!(wide(got), expected.values, "{name} of {op:?}");
            });
        });
    }
}

#[test]
fn winograd_is_bit_identical_on_any_number_of_threads_and_at_every_level_with_fma() {
    let workers = threads();
    for op in cases_of_3_taps().into_iter().chain(cases_of_5_taps()) {
        let x = fractions(1, op.input_len());
        let filters = fractions(2, op.filter_len());
        let dy = fractions(3, op.output_len());
        let [one, two, three] =
            workers.each_ref().map(|workers| by_winograd(workers, &op, &x, &filters, &dy));
        assert!(one == two && one == three, "{op:?}");
        with_each_fused_level(|| {
            assert!(one == by_winograd(&Workers::sequential(), &op, &x, &filters, &dy), "{op:?}");
        });
    }
}

/// Returns a bound of the sum of the magnitudes of the terms of an element of `dx`, which counts all
/// taps of the filters: the transposed steps combine them even if most reach only the padding.
fn max_dx_size(op: &Convolution, filters: &[f32], dy: &[f32]) -> f64 {
    let taps = op.window().taps();
    let channels = op.window().channels() / op.groups();
    let outputs = op.outputs() / op.groups();
    let sizes = filters.chunks(channels * outputs * taps).flat_map(|filters| {
        (0..channels).map(move |channel| {
            let filters = filters.chunks(taps).skip(channel).step_by(channels);
            filters.flatten().map(|&tap| f64::from(tap).abs()).sum::<f64>()
        })
    });
    let max = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
    max(&mut { sizes }) * max(&mut dy.iter().map(|&dy| f64::from(dy).abs()))
}

/// The error of 5×5 taps must stay below the bound of the direct algorithm for convolutions with few
/// terms too.
#[test]
fn winograd_of_5_taps_agrees_with_f64_at_every_simd_level() {
    for op in cases_of_5_taps() {
        let x = fractions(1, op.input_len());
        let filters = fractions(2, op.filter_len());
        let dy = fractions(3, op.output_len());
        let expected = definition(&op, &x, &filters, &dy);
        let max_dx_size = max_dx_size(&op, &filters, &dy);
        with_each_simd_level(|| {
            let got = by_winograd(&Workers::sequential(), &op, &x, &filters, &dy);
            for_each_result(&got, &expected, |name, got, expected| {
                let most = if name == "dx" { max_dx_size } else { expected.max_size() };
                for (got, expected) in got.iter().zip(&expected.values) {
                    let error = (f64::from(*got) - expected).abs();
                    let is_close = error <= 25.0 * 2f64.powi(-24) * most;
                    assert!(is_close, "{name} of {op:?}: {error:e} of {most}");
                }
            });
        });
    }
}

/// The direct algorithm rounds once per term, so its error is at most 2⁻²⁴ of the sum of the
/// magnitudes of all terms, times the number of terms. The errors of Winograd's algorithm on random
/// operands must stay below a quarter of this bound.
#[test]
fn errors_of_winograd_stay_below_a_quarter_of_the_bound_of_the_direct_algorithm() {
    for op in [
        convolution(3, [2, 32, 32, 1], [13, 13], [1, 1]),
        convolution(3, [1, 128, 32, 1], [14, 14], [1, 1]),
        convolution(5, [2, 64, 64, 2], [13, 13], [2, 2]),
        convolution(5, [3, 48, 32, 1], [15, 12], [1, 3]),
    ] {
        let filters = fractions(2, op.filter_len());
        let dy = fractions(3, op.output_len());
        let signed: Vec<f32> = fractions(1, op.input_len());
        // ReLU sets half of the operands to zero.
        let rectified: Vec<f32> = signed.iter().map(|x| x.max(0.0)).collect();
        for x in [signed, rectified] {
            let expected = definition(&op, &x, &filters, &dy);
            let [y, df, _] = by_winograd(&Workers::sequential(), &op, &x, &filters, &dy);
            let terms_of_y = op.window().column_rows() / op.groups();
            let terms_of_df = op.batch() * op.window().positions();
            for_each_result(&[y, df, None], &expected, |name, got, expected| {
                let terms = if name == "y" { terms_of_y } else { terms_of_df };
                let errors = got.iter().zip(&expected.values).zip(&expected.sizes);
                let error = errors.fold(0.0, |max: f64, ((got, expected), size)| {
                    max.max((f64::from(*got) - expected).abs() / size)
                });
                let bound = 0.25 * terms as f64 * 2f64.powi(-24);
                assert!(error < bound, "{name} of {op:?}: {error:e}");
            });
        }
    }
}

/// An output depends only on the elements of its own window. NaN and infinity
/// therefore do not spread to other outputs, and a window of zeros gives exactly zero.
#[test]
fn nan_and_infinity_affect_only_outputs_whose_windows_contain_them() {
    for op in [
        convolution(3, [1, 32, 32, 1], [14, 15], [1, 1]),
        convolution(5, [1, 32, 32, 1], [14, 15], [2, 2]),
    ] {
        let filters: Vec<f32> = fractions(2, op.filter_len());
        let dy = vec![0.0; op.output_len()];
        for at in [0, 16, 97, 209] {
            let mut in_window = vec![false; op.output_len()];
            for_each_product(&op, |i, _, k| in_window[k] |= i == at);
            for special in [f32::NAN, f32::INFINITY, 3.0] {
                let mut x = vec![0.0; op.input_len()];
                x[at] = special;
                let [y, ..] = by_winograd(&Workers::sequential(), &op, &x, &filters, &dy);
                for (y, &in_window) in y.unwrap().iter().zip(&in_window) {
                    assert_eq!(*y != 0.0, in_window, "{special} at {at}");
                    assert_eq!(y.is_finite(), !in_window || special.is_finite());
                }
            }
        }
    }
}

/// An element of the image gradient depends only on the output gradients that its taps reach.
#[test]
fn nan_and_infinity_affect_only_image_gradients_whose_taps_reach_them() {
    for op in [
        convolution(3, [2, 16, 17, 1], [10, 11], [0, 0]),
        convolution(5, [2, 17, 16, 1], [12, 13], [0, 1]),
    ] {
        let filters: Vec<f32> = fractions(2, op.filter_len());
        let x = vec![0.0; op.input_len()];
        for at in [0, 9, 35, op.output_len() - 1] {
            let mut is_reached = vec![false; op.input_len()];
            for_each_product(&op, |i, _, k| is_reached[i] |= k == at);
            for special in [f32::NAN, f32::INFINITY, 3.0] {
                let mut dy = vec![0.0; op.output_len()];
                dy[at] = special;
                let [.., dx] = by_winograd(&Workers::sequential(), &op, &x, &filters, &dy);
                for (dx, &is_reached) in dx.unwrap().iter().zip(&is_reached) {
                    assert_eq!(*dx != 0.0, is_reached, "{special} at {at}");
                    assert_eq!(dx.is_finite(), !is_reached || special.is_finite());
                }
            }
        }
    }
}

#[test]
fn the_choice_depends_on_channels_outputs_and_tiles() {
    let is_chosen = |op: &Convolution| Winograd::if_faster(op).is_some();
    assert!(is_chosen(&convolution(3, [10, 256, 384, 1], [13, 13], [1, 1])));
    assert!(is_chosen(&convolution(3, [10, 384, 256, 2], [13, 13], [1, 1])));
    assert!(is_chosen(&convolution(3, [4, 32, 32, 1], [8, 8], [1, 1])));
    assert!(is_chosen(&convolution(5, [10, 96, 256, 2], [27, 27], [2, 2])));
    assert!(is_chosen(&convolution(5, [10, 32, 96, 1], [28, 28], [2, 2])));
    let lenet = convolution(5, [64, 20, 50, 1], [12, 12], [0, 0]);
    assert!(is_chosen(&lenet) && Winograd::if_input_gradient_is_faster(&lenet).is_some());
    assert!(!is_chosen(&convolution(5, [10, 48, 128, 1], [7, 7], [2, 2])));
    assert!(is_chosen(&convolution(3, [10, 16, 64, 1], [13, 13], [1, 1])));
    assert!(is_chosen(&convolution(3, [10, 64, 16, 1], [9, 9], [1, 1])));
    // Too few channels, output planes or tiles, or planes for which a quarter of the computed outputs
    // is unused.
    assert!(!is_chosen(&convolution(3, [10, 15, 64, 1], [13, 13], [1, 1])));
    assert!(!is_chosen(&convolution(3, [10, 64, 15, 1], [13, 13], [1, 1])));
    assert!(!is_chosen(&convolution(3, [1, 256, 384, 1], [13, 13], [1, 1])));
    assert!(!is_chosen(&convolution(3, [10, 192, 384, 1], [7, 7], [1, 1])));
    for changed in [
        SpatialAxis { stride: 2, ..SpatialAxis::new(28, 3) },
        SpatialAxis { dilation: 2, ..SpatialAxis::new(28, 3) },
        SpatialAxis::new(28, 7),
    ] {
        let window = Window::new(64, &[changed, SpatialAxis::new(28, 3)]).unwrap();
        assert!(!is_chosen(&Convolution::new(10, 64, 1, window).unwrap()));
    }
}
