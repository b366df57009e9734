//! Columns beside their definition.

use super::*;
use crate::{
    host::{
        blas::gemm::with_each_width,
        nn::col2im::col2im,
        testing::{for_each_element, integers, operand, rounded, threads, wide},
    },
    op::SpatialAxis,
};

fn extent(input: usize, kernel: usize, stride: usize, pad: usize, dilation: usize) -> SpatialAxis {
    SpatialAxis { input, kernel, stride, pad, dilation }
}

/// Windows over no, one, two and three axes; some taps see nothing but padding.
fn windows() -> Vec<Window> {
    let of = |channels, axes: &[SpatialAxis]| Window::new(channels, axes).unwrap();
    vec![
        of(3, &[]),
        of(2, &[extent(9, 3, 2, 1, 2)]),
        of(2, &[extent(5, 3, 1, 0, 1), extent(6, 3, 1, 0, 1)]),
        of(3, &[extent(7, 3, 2, 1, 1), extent(5, 2, 1, 1, 3)]),
        of(1, &[extent(3, 3, 1, 5, 1), extent(2, 1, 3, 4, 1)]),
        of(1, &[extent(4, 1, 1, 0, 1), extent(4, 1, 1, 0, 1)]),
        of(2, &[extent(4, 2, 1, 1, 1), extent(5, 3, 2, 0, 1), extent(6, 2, 3, 2, 2)]),
        of(40, &[extent(28, 5, 1, 0, 1), extent(28, 5, 1, 0, 1)]),
        of(0, &[extent(4, 2, 1, 0, 1)]),
    ]
}

/// Index of the place that each element of the columns comes from; `None` for padding.
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
            let at = digits(position, op.output().to_vec());
            let mut index = Some(channel);
            for ((axis, tap), at) in op.axes().iter().zip(&taps).zip(at) {
                let place = (at * axis.stride + tap * axis.dilation) as i64 - axis.pad as i64;
                let inside = (0..axis.input as i64).contains(&place);
                index = index.filter(|_| inside).map(|index| index * axis.input + place as usize);
            }
            sources.push(index);
        }
    }
    sources
}

fn columns_hold_the_windows<T: Element>() {
    for op in windows() {
        let x: Vec<T> = integers(1, op.image_len());
        let want: Vec<T> =
            sources(&op).into_iter().map(|at| at.map_or(T::default(), |at| x[at])).collect();
        for workers in threads() {
            let mut columns = vec![T::from_f64(f64::NAN); op.columns_len()];
            im2col(&workers, &op, &x, &mut columns).unwrap();
            assert!(columns == want, "{op:?}");
        }
    }
}

fn images_hold_the_sums<T: Element>() {
    for op in windows() {
        let columns: Vec<T> = integers(2, op.columns_len());
        let mut want = vec![0.0; op.image_len()];
        for (at, value) in sources(&op).into_iter().zip(wide(&columns)) {
            at.into_iter().for_each(|at| want[at] += value);
        }
        for workers in threads() {
            let mut x = vec![T::from_f64(f64::NAN); op.image_len()];
            col2im(&workers, &op, &columns, &mut x).unwrap();
            assert_eq!(wide(&x), rounded::<T>(&want), "{op:?}");
        }
    }
}

for_each_element!(columns_hold_the_windows, images_hold_the_sums);

#[test]
fn other_processors_vectors_sum_alike() {
    with_each_width(images_hold_the_sums::<f32>);
    with_each_width(images_hold_the_sums::<f64>);
}

#[test]
fn lengths_are_checked() {
    let op = Window::new(1, &[extent(4, 2, 1, 0, 1)]).unwrap();
    let (four, six) = (&mut [0.0f32; 4][..], &mut [0.0f32; 6][..]);
    let w = &Workers::sequential();
    assert_eq!(operand(im2col(w, &op, &[0.0f32; 3], six)), ("im2col", "x"));
    assert_eq!(operand(im2col(w, &op, &[0.0f32; 4], four)), ("im2col", "columns"));
    assert_eq!(operand(col2im(w, &op, &[0.0f32; 5], four)), ("col2im", "columns"));
    assert_eq!(operand(col2im(w, &op, &[0.0f32; 6], six)), ("col2im", "x"));
}

#[test]
fn windows_of_no_channels_need_no_memory() {
    let (w, pad) = (&Workers::sequential(), 1 << 50);
    let op = Window::new(0, &[extent(2, pad + 1, 1, pad, 1)]);
    assert!(op.is_err(), "as many taps as positions, too many to count");
    let op = Window::new(0, &[extent(1, 2 * pad + 1, 1, pad, 1)]).unwrap();
    im2col::<f32>(w, &op, &[], &mut []).unwrap();
    col2im::<f32>(w, &op, &[], &mut []).unwrap();
}

#[test]
fn positions_beyond_the_last_window_see_padding() {
    let axes = [extent(5, 2, 2, 1, 1), extent(4, 3, 1, 0, 2)];
    let (x, outputs, ld) = (integers::<f32>(1, 40), [5, 7], 38);
    let mut columns = vec![9.0; 2 * 6 * ld];
    im2col_channels(
        &Workers::sequential(),
        &WindowTaps::new(&axes, &outputs),
        &x,
        &mut columns,
        ld,
    );
    for (row, columns) in columns.chunks(ld).enumerate() {
        for (position, &got) in columns[..35].iter().enumerate() {
            let (tap, at) = ([row / 3 % 2, row % 3], [position / 7, position % 7]);
            let place = (at[0] * 2 + tap[0]).checked_sub(1).filter(|&place| place < 5);
            let place = place.zip(Some(at[1] + tap[1] * 2).filter(|&place| place < 4));
            let want = place.map_or(0.0, |(down, along)| x[(row / 6 * 5 + down) * 4 + along]);
            assert_eq!(got, want, "row {row}, position {position}");
        }
        assert_eq!(columns[35..], [9.0; 3]);
    }
}
