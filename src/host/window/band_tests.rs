use super::*;
use crate::{
    host::testing::{for_each_element, integers, operand, rounded, threads, wide},
    op::Extent,
};

/// For every element of the columns, in order, the element of the image it is a copy of.
fn sources(window: &Window) -> Vec<Option<usize>> {
    let (axes, outputs) = (window.axes(), window.output());
    let mut sources = Vec::new();
    for row in 0..window.rows() {
        for column in 0..window.positions() {
            let (mut taps, mut positions) = (row, column);
            let (mut at, mut pitch, mut inside) = (0, 1, true);
            for (axis, &output) in axes.iter().zip(outputs).rev() {
                let (tap, position) = (taps % axis.kernel, positions % output);
                (taps, positions) = (taps / axis.kernel, positions / output);
                let padded = position * axis.stride + tap * axis.dilation;
                inside &= (axis.pad..axis.pad + axis.input).contains(&padded);
                if inside {
                    at += pitch * (padded - axis.pad);
                }
                pitch *= axis.input;
            }
            sources.push(inside.then_some(at + taps * pitch));
        }
    }
    sources
}

fn axis(input: usize, kernel: usize, stride: usize, pad: usize, dilation: usize) -> Extent {
    Extent { input, kernel, stride, pad, dilation }
}

fn windows() -> Vec<Window> {
    let cases: [(usize, &[Extent]); 18] = [
        (3, &[]),
        (0, &[axis(3, 2, 1, 0, 1)]),
        (2, &[axis(1, 1, 1, 0, 1)]),
        (2, &[axis(20, 3, 1, 1, 1)]),
        (1, &[axis(9, 2, 3, 2, 2)]),
        (1, &[axis(28, 5, 1, 0, 1), axis(28, 5, 1, 0, 1)]),
        (3, &[axis(12, 5, 1, 0, 1), axis(12, 5, 1, 0, 1)]),
        (2, &[axis(7, 3, 2, 1, 1), axis(9, 2, 1, 3, 2)]),
        (2, &[axis(5, 3, 1, 1, 1), axis(200, 3, 1, 1, 1)]),
        (1, &[axis(1, 3, 1, 4, 1), axis(2, 3, 2, 5, 1)]),
        (2, &[axis(0, 1, 1, 1, 1), axis(3, 2, 1, 0, 1)]),
        (1, &[axis(4, 1, 1, 0, 1), axis(4, 1, 1, 0, 1)]),
        (3, &[axis(6, 1, 2, 0, 1), axis(6, 1, 2, 0, 1)]),
        (2, &[axis(3, 2, 1, 1, 1), axis(4, 3, 2, 2, 1), axis(5, 2, 1, 0, 2)]),
        (1, &[axis(2, 2, 1, 1, 1), axis(3, 1, 1, 0, 1), axis(2, 2, 1, 0, 1), axis(6, 3, 1, 1, 1)]),
        (2, &[axis(4, 3, 1, 0, 1), axis(40, 7, 3, 3, 1)]),
        (20, &[axis(30, 5, 1, 2, 1), axis(30, 5, 1, 2, 1)]),
        (9, &[axis(40, 3, 1, 0, 1), axis(17, 3, 1, 0, 1)]),
    ];
    cases.iter().map(|(channels, axes)| Window::new(*channels, axes).unwrap()).collect()
}

fn columns_of_images<T: Element>() {
    let workers = threads();
    for window in windows() {
        let x = integers::<T>(1, window.image());
        let want: Vec<f64> =
            sources(&window).iter().map(|at| at.map_or(0.0, |at| x[at].to_f64())).collect();
        for workers in &workers {
            let mut columns = vec![T::from_f64(f64::NAN); window.columns()];
            im2col(workers, &window, &x, &mut columns).unwrap();
            assert_eq!(wide(&columns), want, "{window:?}");
        }
    }
}

fn images_of_columns<T: Element>() {
    let workers = threads();
    for window in windows() {
        let columns = integers::<T>(1, window.columns());
        let mut want = vec![0.0; window.image()];
        for (at, y) in sources(&window).iter().zip(&columns) {
            if let Some(at) = at {
                want[*at] += y.to_f64();
            }
        }
        let want = rounded::<T>(&want);
        for workers in &workers {
            let mut x = vec![T::from_f64(f64::NAN); window.image()];
            col2im(workers, &window, &columns, &mut x).unwrap();
            assert_eq!(wide(&x), want, "{window:?}");
        }
    }
}

for_each_element!(columns_of_images, images_of_columns);

#[test]
fn a_band_is_a_range_of_positions() {
    for window in windows().into_iter().filter(|window| !window.axes().is_empty()) {
        let x = integers::<f32>(1, window.image());
        let (w, positions) = (Workers::sequential(), window.positions());
        let mut whole = vec![0.0; window.columns()];
        im2col(&w, &window, &x, &mut whole).unwrap();
        let first = window.output()[0];
        let inner = positions / first;
        let (start, end) = (first / 3, first.div_ceil(2));
        let reaches = Reaches::band(&window, start..end);
        let ld = (end - start) * inner + 3;
        let mut band = vec![9.0; window.rows() * ld];
        unroll(&w, &reaches, &x, &mut band, ld);
        for (row, band) in band.chunks(ld).enumerate() {
            let whole = &whole[row * positions..][start * inner..end * inner];
            assert_eq!(&band[..ld - 3], whole, "{window:?}");
            assert_eq!(band[ld - 3..], [9.0; 3]);
        }
        // Folding the bands one by one is folding the whole.
        let (mut parts, mut all) = (vec![0.0; window.image()], vec![0.0; window.image()]);
        col2im(&w, &window, &whole, &mut all).unwrap();
        for band in [0..start, start..end, end..first] {
            let from = band.start * inner;
            fold(
                &w,
                &Reaches::band(&window, band),
                &whole[from.min(whole.len())..],
                positions,
                &mut parts,
            );
        }
        assert_eq!(parts, all, "{window:?}");
    }
}

#[test]
fn errors_name_the_operand() {
    let window = Window::new(1, &[axis(4, 3, 1, 0, 1)]).unwrap();
    let w = Workers::sequential();
    assert_eq!(operand(im2col(&w, &window, &[0.0f32; 3], &mut [0.0; 6])), ("im2col", "x"));
    assert_eq!(operand(im2col(&w, &window, &[0.0f32; 4], &mut [0.0; 5])), ("im2col", "columns"));
    assert_eq!(operand(col2im(&w, &window, &[0.0f32; 6], &mut [0.0; 5])), ("col2im", "x"));
    assert_eq!(operand(col2im(&w, &window, &[0.0f32; 7], &mut [0.0; 4])), ("col2im", "columns"));
}
