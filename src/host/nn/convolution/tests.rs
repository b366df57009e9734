//! Convolution beside its definition.

use super::*;
use crate::{
    error::Error,
    host::testing::{for_each_element, fractions, integers, operand, rounded, threads, wide},
    op::{SpatialAxis, Window},
};

fn axis(input: usize, kernel: usize, stride: usize, pad: usize, dilation: usize) -> SpatialAxis {
    SpatialAxis { input, kernel, stride, pad, dilation }
}

fn of(
    batch: usize,
    outputs: usize,
    groups: usize,
    channels: usize,
    axes: &[SpatialAxis],
) -> Convolution {
    Convolution::new(batch, outputs, groups, Window::new(channels, axes).unwrap()).unwrap()
}

/// One image and many, groups, depthwise, no axes, one and three, joined images with a rest.
fn cases() -> Vec<Convolution> {
    vec![
        of(1, 2, 1, 1, &[axis(4, 3, 1, 0, 1), axis(5, 2, 1, 0, 1)]),
        of(9, 4, 2, 6, &[axis(7, 3, 2, 1, 1), axis(6, 3, 1, 2, 2)]),
        of(3, 5, 5, 5, &[axis(5, 3, 1, 1, 1), axis(5, 3, 1, 1, 1)]),
        of(2, 3, 1, 4, &[axis(3, 1, 1, 0, 1), axis(3, 1, 1, 0, 1)]),
        of(2, 3, 1, 4, &[]),
        of(5, 2, 1, 3, &[axis(9, 4, 3, 2, 1)]),
        of(2, 2, 1, 2, &[axis(4, 2, 1, 0, 1), axis(3, 2, 1, 1, 1), axis(4, 3, 2, 1, 1)]),
        of(3, 4, 1, 2, &[axis(20, 3, 1, 1, 1), axis(20, 3, 1, 1, 1)]),
        of(0, 2, 1, 2, &[axis(4, 2, 1, 0, 1)]),
        of(2, 2, 1, 2, &[axis(0, 3, 1, 2, 1)]),
        of(2, 2, 1, 0, &[axis(4, 3, 1, 0, 1)]),
    ]
}

/// Calls `body(y, x, w)` with the indices of every product in the definition.
fn each_product(op: &Convolution, mut body: impl FnMut(usize, usize, usize)) {
    let window = op.window();
    let (rows, outputs) = (window.column_rows() / op.groups(), op.outputs() / op.groups());
    // The columns of an image that holds its own indices, counted from 1, say what is where.
    let image: Vec<f64> = (1..=window.image_len()).map(|i| i as f64).collect();
    let mut columns = vec![0.0; window.columns_len()];
    crate::host::im2col(&Workers::sequential(), window, &image, &mut columns).unwrap();
    let positions = window.positions();
    for (i, o, p) in (0..op.batch() * op.outputs() * positions)
        .map(|at| (at / positions / op.outputs(), at / positions % op.outputs(), at % positions))
    {
        for r in 0..rows {
            let place = columns[(o / outputs * rows + r) * positions + p] as usize;
            if place > 0 {
                let y = (i * op.outputs() + o) * positions + p;
                body(y, i * window.image_len() + place - 1, o * rows + r);
            }
        }
    }
}

fn all_three_follow_the_definition<T: Element>() {
    for op in cases() {
        let x: Vec<T> = integers(1, op.input_len());
        let w: Vec<T> = integers(2, op.filter_len());
        let b: Vec<T> = integers(3, op.outputs());
        let dy: Vec<T> = integers(4, op.output_len());
        let before: Vec<T> = integers(5, op.filter_len());
        let (wx, ww, wdy, wb) = (wide(&x), wide(&w), wide(&dy), wide(&b));
        let (mut y, mut dx) = (vec![0.0; dy.len()], vec![0.0; x.len()]);
        let mut dw = vec![0.0; w.len()];
        each_product(&op, |at_y, at_x, at_w| {
            y[at_y] += wx[at_x] * ww[at_w];
            dx[at_x] += wdy[at_y] * ww[at_w];
            dw[at_w] += wdy[at_y] * wx[at_x];
        });
        let positions = op.window().positions();
        let biased: Vec<f64> =
            (0..y.len()).map(|at| y[at] + wb[at / positions % op.outputs()]).collect();
        dw.iter_mut().zip(wide(&before)).for_each(|(dw, before)| *dw += before);
        let nan = T::from_f64(f64::NAN);
        for workers in threads() {
            let mut got = vec![nan; y.len()];
            convolve(&workers, &op, &x, &w, None, &mut got).unwrap();
            assert_eq!(wide(&got), rounded::<T>(&y), "{op:?}");
            convolve(&workers, &op, &x, &w, Some(&b), &mut got).unwrap();
            assert_eq!(wide(&got), rounded::<T>(&biased), "{op:?}");
            let mut got = vec![nan; x.len()];
            convolve_backward_input(&workers, &op, &w, &dy, &mut got).unwrap();
            assert_eq!(wide(&got), rounded::<T>(&dx), "{op:?}");
            let mut got = before.clone();
            convolve_backward_filters(&workers, &op, &x, &dy, &mut got).unwrap();
            assert_eq!(wide(&got), rounded::<T>(&dw), "{op:?}");
        }
    }
}

/// Sums that round: the order of additions must not depend on the threads.
fn same_bits_for_any_threads<T: Element>() {
    // Images whose columns one thread makes a part at a time, the last of one row or for a vector.
    let large = [
        of(1, 128, 1, 260, &[axis(8, 8, 1, 0, 1), axis(8, 8, 1, 0, 1)]),
        of(1, 64, 1, 257, &[axis(15, 1, 2, 0, 1), axis(15, 1, 2, 0, 1)]),
    ];
    for op in cases().into_iter().chain(large) {
        let x: Vec<T> = fractions(1, op.input_len());
        let w: Vec<T> = fractions(2, op.filter_len());
        let dy: Vec<T> = fractions(3, op.output_len());
        let run = |workers: &Workers| {
            let (mut y, mut dx, mut dw) = (dy.clone(), x.clone(), w.clone());
            convolve(workers, &op, &x, &w, None, &mut y).unwrap();
            convolve_backward_input(workers, &op, &w, &dy, &mut dx).unwrap();
            convolve_backward_filters(workers, &op, &x, &dy, &mut dw).unwrap();
            (y, dx, dw)
        };
        let [one, two, three] = threads().map(|workers| run(&workers));
        assert!(one == two && one == three, "{op:?}");
    }
}

/// A function of results gives the bits that it gives afterwards, of what was rounded.
fn functions_of_results_are_those_of_results<T: Element>() {
    let slope = T::acc(0.3);
    for op in cases() {
        let x: Vec<T> = fractions(1, op.input_len());
        let w: Vec<T> = fractions(2, op.filter_len());
        let b: Vec<T> = fractions(3, op.outputs());
        for workers in threads() {
            for bias in [None, Some(&b[..])] {
                for function in [Unary::Relu { slope }, Unary::Tanh, Unary::Exp] {
                    let mut want = vec![T::from_f64(f64::NAN); op.output_len()];
                    let mut got = want.clone();
                    convolve(&workers, &op, &x, &w, bias, &mut want).unwrap();
                    unary_in_place(&workers, function, &mut want).unwrap();
                    convolve_with_activation(&workers, &op, &x, &w, bias, function, &mut got)
                        .unwrap();
                    let bits = |y: &[T]| bytemuck::cast_slice::<T, u8>(y).to_vec();
                    assert!(bits(&got) == bits(&want), "{op:?} {function:?}");
                }
            }
        }
    }
}

for_each_element!(
    all_three_follow_the_definition,
    same_bits_for_any_threads,
    functions_of_results_are_those_of_results
);

#[test]
fn lengths_are_checked() {
    let window = Window::new(1, &[SpatialAxis::new(4, 2)]).unwrap();
    let op = Convolution::new(1, 2, 1, window).unwrap();
    let w = &Workers::sequential();
    let (x, f, y) = (&mut [0.0f32; 4][..], &mut [0.0f32; 4][..], &mut [0.0f32; 6][..]);
    let short = &[0.0f32; 3][..];
    assert_eq!(operand(convolve(w, &op, short, f, None, y)), ("convolve", "x"));
    assert_eq!(operand(convolve(w, &op, x, short, None, y)), ("convolve", "filters"));
    assert_eq!(operand(convolve(w, &op, x, f, Some(short), y)), ("convolve", "bias"));
    assert_eq!(operand(convolve(w, &op, x, f, None, &mut [0.0; 5])), ("convolve", "y"));
    let name = "convolve_backward_input";
    assert_eq!(operand(convolve_backward_input(w, &op, short, y, x)), (name, "filters"));
    assert_eq!(operand(convolve_backward_input(w, &op, f, short, x)), (name, "dy"));
    let name = "convolve_backward_filters";
    assert_eq!(operand(convolve_backward_filters(w, &op, short, y, f)), (name, "x"));
    assert_eq!(operand(convolve_backward_filters(w, &op, x, y, &mut [0.0; 3])), (name, "dfilters"));
}

/// Nothing is made of taps or positions that there is nothing for.
#[test]
fn convolutions_of_nothing_need_no_memory() {
    let (w, pad) = (&Workers::sequential(), 1 << 50);
    let wide = SpatialAxis { pad, ..SpatialAxis::new(1, 2 * pad + 1) };
    let far = SpatialAxis { stride: 3, ..SpatialAxis::new(1 << 28, 3) };
    for (batch, channels, outputs, axes) in
        [(1, 0, 2, &[wide][..]), (1, 2, 0, &[wide]), (0, 1, 2, &[far, far])]
    {
        let op = Convolution::new(batch, outputs, 1, Window::new(channels, axes).unwrap()).unwrap();
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

/// A frame as wide as the dilation is far larger than what it is made of.
#[test]
fn frames_that_memory_cannot_hold_are_refused() {
    let w = &Workers::sequential();
    let axis = SpatialAxis { pad: 1 << 31, dilation: 1 << 32, ..SpatialAxis::new(2, 2) };
    let op = Convolution::new(1, 1, 1, Window::new(1, &[axis, axis]).unwrap()).unwrap();
    let [x, f, dy] = [op.input_len(), op.filter_len(), op.output_len()].map(|n| vec![1.0f32; n]);
    let (mut y, mut df) = (dy.clone(), f.clone());
    let refused = |done: Result<()>| matches!(done, Err(Error::OutOfMemory { .. }));
    assert!(refused(convolve(w, &op, &x, &f, None, &mut y)));
    assert!(refused(convolve_backward_filters(w, &op, &x, &dy, &mut df)));
    let mut dx = x.clone();
    convolve_backward_input(w, &op, &f, &dy, &mut dx).unwrap_or_default();
}
