//! Tests that compare im2col and col2im with their definitions.

use super::*;
use crate::{
    host::{
        nn::{col2im::col2im, testing::expect_length_errors},
        simd::level::with_each_simd_level,
        testing::{for_each_element, integers, rounded, threads, wide},
    },
    op::SpatialAxis,
};

fn axis(input: usize, kernel: usize, stride: usize, pad: usize, dilation: usize) -> SpatialAxis {
    SpatialAxis { input, kernel, stride, pad, dilation }
}

/// Returns windows over zero to three axes, including windows whose outer taps read only padding.
fn windows() -> Vec<Window> {
    let window = |channels, axes: &[SpatialAxis]| Window::new(channels, axes).unwrap();
    vec![
        window(3, &[]),
        window(2, &[axis(9, 3, 2, 1, 2)]),
        window(2, &[axis(5, 3, 1, 0, 1), axis(6, 3, 1, 0, 1)]),
        window(3, &[axis(7, 3, 2, 1, 1), axis(5, 2, 1, 1, 3)]),
        window(1, &[axis(3, 3, 1, 5, 1), axis(2, 1, 3, 4, 1)]),
        window(1, &[axis(4, 1, 1, 0, 1), axis(4, 1, 1, 0, 1)]),
        window(2, &[axis(4, 2, 1, 1, 1), axis(5, 3, 2, 0, 1), axis(6, 2, 3, 2, 2)]),
        window(40, &[axis(28, 5, 1, 0, 1), axis(28, 5, 1, 0, 1)]),
        window(0, &[axis(4, 2, 1, 0, 1)]),
    ]
}

/// Returns, for each element of the im2col matrix, the index of the corresponding image element, or
/// `None` for padding.
fn sources(op: &Window) -> Vec<Option<usize>> {
    let digits = |mut number: usize, bases: Vec<usize>| {
        let mut digits = vec![0; bases.len()];
        for (digit, base) in digits.iter_mut().zip(bases).rev() {
            (*digit, number) = (number % base, number / base);
        }
        digits
    };
    let mut sources = Vec::new();
    for row in 0..op.column_rows() {
        let (channel, tap) = (row / op.taps(), row % op.taps());
        let taps = digits(tap, op.axes().iter().map(|axis| axis.kernel).collect());
        for position in 0..op.positions() {
            let positions = digits(position, op.output().to_vec());
            let mut index = Some(channel);
            for ((axis, tap), p) in op.axes().iter().zip(&taps).zip(positions) {
                let element = (p * axis.stride + tap * axis.dilation) as i64 - axis.pad as i64;
                let is_inside = (0..axis.input as i64).contains(&element);
                index =
                    index.filter(|_| is_inside).map(|index| index * axis.input + element as usize);
            }
            sources.push(index);
        }
    }
    sources
}

fn im2col_writes_the_elements_of_the_windows<T: Element>() {
    for op in windows() {
        let x: Vec<T> = integers(1, op.image_len());
        let want: Vec<T> =
            sources(&op).into_iter().map(|i| i.map_or(T::default(), |i| x[i])).collect();
        for workers in threads() {
            let mut columns = vec![T::from_f64(f64::NAN); op.columns_len()];
            im2col(&workers, &op, &x, &mut columns).unwrap();
            assert!(columns == want, "{op:?}");
        }
    }
}

fn col2im_sums_the_copies_of_each_element<T: Element>() {
    for_each_col2im::<T>(|check| check());
}

/// Calls `body` for each case with a function that checks the case.
fn for_each_col2im<T: Element>(body: impl Fn(&dyn Fn())) {
    let workers = threads();
    for op in windows() {
        let columns: Vec<T> = integers(2, op.columns_len());
        let mut want = vec![0.0; op.image_len()];
        for (source, value) in sources(&op).into_iter().zip(wide(&columns)) {
            source.into_iter().for_each(|i| want[i] += value);
        }
        body(&|| {
            for workers in &workers {
                let mut x = vec![T::from_f64(f64::NAN); op.image_len()];
                col2im(workers, &op, &columns, &mut x).unwrap();
                assert_eq!(wide(&x), rounded::<T>(&want), "{op:?}");
            }
        });
    }
}

for_each_element!(
    im2col_writes_the_elements_of_the_windows,
    col2im_sums_the_copies_of_each_element
);

#[test]
fn col2im_at_every_simd_level_matches_the_definition() {
    for_each_col2im::<f32>(|check| with_each_simd_level(check));
    for_each_col2im::<f64>(|check| with_each_simd_level(check));
}

#[test]
fn im2col_length_errors_name_the_operand() {
    let (w, op) = (&Workers::sequential(), &Window::new(1, &[axis(4, 2, 1, 0, 1)]).unwrap());
    let operands = [("x", 4), ("columns", 6)];
    expect_length_errors("im2col", operands, |[x, mut columns]| im2col(w, op, &x, &mut columns));
    expect_length_errors("col2im", operands, |[mut x, columns]| col2im(w, op, &columns, &mut x));
}

#[test]
fn im2col_without_channels_allocates_nothing() {
    let (w, pad) = (&Workers::sequential(), 1 << (usize::BITS - 14));
    let op = Window::new(0, &[axis(2, pad + 1, 1, pad, 1)]);
    assert!(op.is_err(), "expected an error, because taps × positions overflows");
    let op = Window::new(0, &[axis(1, 2 * pad + 1, 1, pad, 1)]).unwrap();
    im2col::<f32>(w, &op, &[], &mut []).unwrap();
    col2im::<f32>(w, &op, &[], &mut []).unwrap();
}

#[test]
fn positions_after_the_last_window_read_padding() {
    let axes = [axis(5, 2, 2, 1, 1), axis(4, 3, 1, 0, 2)];
    let (x, outputs, ld) = (integers::<f32>(1, 40), [5, 7], 38);
    let mut columns = vec![9.0; 2 * 6 * ld];
    let taps = WindowTaps::new(&axes, &outputs);
    im2col_channels(&Workers::sequential(), &taps, &x, &mut columns, ld);
    for (row, columns) in columns.chunks(ld).enumerate() {
        for (position, &got) in columns[..35].iter().enumerate() {
            let (tap, p) = ([row / 3 % 2, row % 3], [position / 7, position % 7]);
            let i = (p[0] * 2 + tap[0]).checked_sub(1).filter(|&i| i < 5);
            let source = i.zip(Some(p[1] + tap[1] * 2).filter(|&j| j < 4));
            let want = source.map_or(0.0, |(i, j)| x[(row / 6 * 5 + i) * 4 + j]);
            assert_eq!(got, want, "im2col row {row}, position {position}");
        }
        assert_eq!(columns[35..], [9.0; 3]);
    }
}
