use crate::{
    element::Element,
    error::Error,
    host::{
        Workers,
        nn::pooling::{planes::*, *},
        testing::{for_each_element, fractions, integers, operand, threads, wide},
    },
    op::{Pool2d, PoolRounding},
};

/// Planes, input, kernel, stride, padding.
type Geometry = (usize, [usize; 2], [usize; 2], [usize; 2], [usize; 2]);

const GEOMETRIES: [Geometry; 22] = [
    (3, [24, 24], [2, 2], [2, 2], [0, 0]),
    (5, [8, 8], [2, 2], [2, 2], [0, 0]),
    (2, [6, 6], [2, 2], [2, 2], [0, 0]),
    (2, [7, 37], [2, 2], [2, 2], [0, 0]),
    (2, [9, 9], [2, 2], [2, 2], [1, 1]),
    (2, [55, 55], [3, 3], [2, 2], [0, 0]),
    (2, [13, 14], [3, 3], [2, 2], [0, 0]),
    (2, [12, 13], [3, 3], [2, 2], [1, 1]),
    (2, [28, 11], [3, 3], [1, 1], [1, 1]),
    (2, [9, 9], [3, 3], [1, 1], [2, 2]),
    (2, [14, 17], [5, 5], [3, 3], [0, 0]),
    (2, [14, 17], [5, 4], [3, 3], [4, 2]),
    (2, [20, 23], [3, 2], [4, 5], [0, 0]),
    (2, [16, 16], [1, 1], [2, 2], [0, 0]),
    (2, [9, 40], [1, 3], [1, 2], [0, 1]),
    (3, [5, 5], [1, 1], [1, 1], [0, 0]),
    (4, [7, 7], [7, 7], [1, 1], [0, 0]),
    (4, [6, 6], [4, 6], [1, 1], [0, 3]),
    (2, [4, 4], [2, 2], [5, 5], [0, 0]),
    (1, [11, 11], [2, 2], [5, 5], [0, 0]),
    (2, [3, 3], [9, 9], [7, 7], [8, 8]),
    (1, [2, 2], [3, 3], [2, 2], [0, 0]),
];

fn pools() -> impl Iterator<Item = Pool2d> {
    GEOMETRIES.into_iter().flat_map(|(planes, input, kernel, stride, pad)| {
        [PoolRounding::Ceil, PoolRounding::Floor].into_iter().filter_map(move |rounding| {
            Pool2d::new(planes, input, kernel, stride, pad, rounding).ok()
        })
    })
}

/// A window as Caffe takes it: its rows and columns in the input, and its size as a divisor.
fn window(op: &Pool2d, row: usize, column: usize) -> (Vec<usize>, f64) {
    let extent = |axis: usize, p: usize| {
        let (kernel, pad) = (op.kernel[axis] as i64, op.pad[axis] as i64);
        let (input, stride) = (op.input[axis] as i64, op.stride[axis] as i64);
        let start = p as i64 * stride - pad;
        let end = (start + kernel).min(input + pad);
        (start.max(0)..end.min(input), end - start)
    };
    let ((rows, height), (columns, width)) = (extent(0, row), extent(1, column));
    let places = rows.flat_map(|r| columns.clone().map(move |c| (r, c)));
    let places = places.map(|(r, c)| r as usize * op.input[1] + c as usize).collect();
    (places, (height * width) as f64)
}

/// The windows of all planes: where they start in `x`, what they cover and their size.
fn windows(op: &Pool2d) -> Vec<(usize, Vec<usize>, f64)> {
    let ([height, width], plane) = (op.output(), op.input[0] * op.input[1]);
    let places =
        (0..op.planes * height * width).map(|j| (j / width / height, j % (height * width)));
    places
        .map(|(p, j)| {
            let (places, size) = window(op, j / width, j % width);
            (p * plane, places, size)
        })
        .collect()
}

fn nan<T: Element>(len: usize) -> Vec<T> {
    vec![T::from_f64(f64::NAN); len]
}

/// Integers with many equals, and now and then what is not a number or not finite.
fn input<T: Element>(op: &Pool2d) -> Vec<T> {
    let special = [f64::NAN, f64::NEG_INFINITY, f64::INFINITY, -0.0, 0.0];
    let mut x = integers::<T>(1, op.input_len());
    for (i, x) in x.iter_mut().enumerate().filter(|(i, _)| i % 5 == 2) {
        *x = T::from_f64(special[i / 5 % 5]);
    }
    x
}

fn least<T: Element>() -> f64 {
    match T::DTYPE.name() {
        "f16" => -65504.0,
        "bf16" => -((2.0 - 2f64.powi(-7)) * 2f64.powi(127)),
        _ => f64::from(-f32::MAX),
    }
}

fn maxima<T: Element>() {
    for op in pools() {
        let x = input::<T>(&op);
        let (mut y, mut mask) = (nan(op.output_len()), vec![77; op.output_len()]);
        max_pool(&Workers::sequential(), &op, &x, &mut y, &mut mask).unwrap();
        for ((start, places, _), (y, mask)) in windows(&op).into_iter().zip(y.iter().zip(&mask)) {
            let (mut want, mut at) = (least::<T>(), -1);
            for place in places {
                if x[start + place].to_f64() > want {
                    (want, at) = (x[start + place].to_f64(), place as i32);
                }
            }
            assert_eq!(y.to_f64().to_bits(), want.to_bits(), "{op:?}");
            assert_eq!(*mask, at, "{op:?}");
        }
        let dy = integers::<T>(2, op.output_len());
        let mut want = vec![0.0; op.input_len()];
        for ((start, ..), (dy, &mask)) in windows(&op).into_iter().zip(dy.iter().zip(&mask)) {
            if mask >= 0 {
                want[start + mask as usize] += dy.to_f64();
            }
        }
        let mut dx = nan(op.input_len());
        max_pool_backward(&Workers::sequential(), &op, &dy, &mask, &mut dx).unwrap();
        assert_eq!(wide(&dx), want, "{op:?}");
    }
}

fn means<T: Element>() {
    for op in pools() {
        let x = integers::<T>(3, op.input_len());
        let mut y = nan(op.output_len());
        average_pool(&Workers::sequential(), &op, &x, &mut y).unwrap();
        for ((start, places, size), y) in windows(&op).into_iter().zip(&y) {
            let sum: f64 = places.into_iter().map(|place| x[start + place].to_f64()).sum();
            let want = T::from_acc(T::acc(sum) / T::acc(size)).to_f64();
            assert!(y.to_f64() == want || y.to_f64().is_nan() && want.is_nan(), "{op:?}");
        }
        let dy = integers::<T>(4, op.output_len());
        let mut want = vec![0.0; op.input_len()];
        for ((start, places, size), dy) in windows(&op).into_iter().zip(&dy) {
            places.into_iter().for_each(|place| want[start + place] += dy.to_f64() / size);
        }
        let mut dx = nan(op.input_len());
        average_pool_backward(&Workers::sequential(), &op, &dy, &mut dx).unwrap();
        let ulp = if T::DTYPE.size() == 2 { 2f64.powi(-8) } else { 2f64.powi(-21) };
        for (dx, want) in dx.iter().zip(want) {
            assert!((dx.to_f64() - want).abs() <= ulp * want.abs().max(1.0), "{op:?}");
        }
    }
}

fn any_number_of_threads<T: Element>() {
    for (kernel, stride, pad) in [(2, 2, 0), (3, 2, 1), (20, 1, 0)] {
        let pool = |planes| {
            let [kernel, stride, pad] = [kernel, stride, pad].map(|v| [v, v]);
            Pool2d::new(planes, [20, 20], kernel, stride, pad, PoolRounding::Ceil).unwrap()
        };
        let op = pool(2 * GRAIN / 400 + 5);
        let x = input::<T>(&op);
        let dy = integers::<T>(5, op.output_len());
        let results = threads().map(|workers| {
            let (mut y, mut mask) = (nan(op.output_len()), vec![0; op.output_len()]);
            let (mut dx, mut mean) = (nan(op.input_len()), nan(op.output_len()));
            let mut shares = nan(op.input_len());
            max_pool(&workers, &op, &x, &mut y, &mut mask).unwrap();
            max_pool_backward(&workers, &op, &dy, &mask, &mut dx).unwrap();
            average_pool(&workers, &op, &dx[..op.input_len()], &mut mean).unwrap();
            average_pool_backward(&workers, &op, &dy, &mut shares).unwrap();
            let all: [&[T]; 4] = [&y, &dx, &mean, &shares];
            (all.map(|v| bytemuck::cast_slice::<T, u8>(v).to_vec()), mask)
        });
        assert!(results[0] == results[1] && results[0] == results[2]);
    }
}

for_each_element!(maxima, means, any_number_of_threads);

#[test]
fn what_is_wrong_is_named() {
    let w = Workers::sequential();
    let op = Pool2d::new(2, [4, 4], [2, 2], [2, 2], [0, 0], PoolRounding::Ceil).unwrap();
    let (x, dy, mask) = ([1.0f32; 32], [1.0; 8], [0; 8]);
    let max = |x: usize, y: usize, mask: usize| {
        let (mut y, mut mask) = (vec![0.0; y], vec![0; mask]);
        operand(max_pool(&w, &op, &[1.0f32; 32][..x], &mut y, &mut mask))
    };
    assert_eq!(max(31, 8, 8), ("max_pool", "x"));
    assert_eq!(max(32, 7, 8), ("max_pool", "y"));
    assert_eq!(max(32, 8, 9), ("max_pool", "mask"));
    let back = |dy: &[f32], mask: &[i32], dx: usize| {
        max_pool_backward(&w, &op, dy, mask, &mut vec![0.0; dx])
    };
    assert_eq!(operand(back(&dy[1..], &mask, 32)), ("max_pool_backward", "dy"));
    assert_eq!(operand(back(&dy, &mask[1..], 32)), ("max_pool_backward", "mask"));
    assert_eq!(operand(back(&dy, &mask, 33)), ("max_pool_backward", "dx"));
    for bad in [16, -2, i32::MAX, i32::MIN] {
        let result = back(&dy, &[0, 15, -1, 3, 0, bad, 99, 0], 32);
        let Err(Error::InvalidInput { op: "max_pool_backward", why }) = result else { panic!() };
        assert!(why.contains(&format!("mask {bad} ")), "{why}");
    }
    let mean = |x: &[f32], y| operand(average_pool(&w, &op, x, &mut vec![0.0; y]));
    assert_eq!(mean(&x[1..], 8), ("average_pool", "x"));
    assert_eq!(mean(&x, 9), ("average_pool", "y"));
    let back = |dy: &[f32], dx| operand(average_pool_backward(&w, &op, dy, &mut vec![0.0; dx]));
    assert_eq!(back(&dy[1..], 32), ("average_pool_backward", "dy"));
    assert_eq!(back(&dy, 31), ("average_pool_backward", "dx"));
}

#[test]
fn nothing_to_pool() {
    let w = Workers::sequential();
    let op = Pool2d::new(0, [4, 4], [2, 2], [2, 2], [0, 0], PoolRounding::Ceil).unwrap();
    max_pool::<f32>(&w, &op, &[], &mut [], &mut []).unwrap();
    max_pool_backward::<f32>(&w, &op, &[], &[], &mut []).unwrap();
    average_pool::<f32>(&w, &op, &[], &mut []).unwrap();
    average_pool_backward::<f32>(&w, &op, &[], &mut []).unwrap();
    let op = Pool2d::new(2, [0, 3], [2, 1], [2, 2], [1, 0], PoolRounding::Ceil).unwrap();
    let (mut y, mut mask) = (vec![0.0; op.output_len()], vec![0; op.output_len()]);
    max_pool::<f32>(&w, &op, &[], &mut y, &mut mask).unwrap();
    assert!(y.iter().all(|&y| y == f32::MIN) && mask.iter().all(|&mask| mask == -1));
    // Planes too large to be there, of which there are none.
    let (wide, far) = (1 << 28, [1 << 28; 2]);
    for (input, kernel, pad) in [([1; 2], [wide + 1; 2], far), (far, [wide / 2; 2], [0; 2])] {
        let op = Pool2d::new(0, input, kernel, [1; 2], pad, PoolRounding::Ceil).unwrap();
        let _ = max_pool::<f32>(&w, &op, &[], &mut [], &mut []);
        max_pool_backward::<f32>(&w, &op, &[], &[], &mut []).unwrap();
        average_pool::<f32>(&w, &op, &[], &mut []).unwrap();
        average_pool_backward::<f32>(&w, &op, &[], &mut []).unwrap();
        let _ = stochastic_pool::<f32>(&w, &op, &[], &[], &mut [], &mut []);
    }
}

#[test]
fn fields_that_were_changed_are_checked_again() {
    let made = Pool2d::new(2, [4, 4], [2, 2], [2, 2], [0, 0], PoolRounding::Ceil).unwrap();
    let (w, x) = (&Workers::sequential(), &[1.0f32; 32][..]);
    let (mut y, mut mask) = ([0.0; 8], [0; 8]);
    let changes: [fn(&mut Pool2d); 5] = [
        |op| op.stride = [0, 2],
        |op| op.kernel = [5, 5],
        |op| op.input = [8, 2],
        |op| op.pad = [2, 2],
        |op| op.planes = usize::MAX,
    ];
    for change in changes {
        let mut op = made;
        change(&mut op);
        assert!(max_pool(w, &op, x, &mut y, &mut mask).is_err(), "{op:?}");
        assert!(average_pool(w, &op, x, &mut y).is_err(), "{op:?}");
    }
    let mut op = made;
    op.kernel = [3, 3];
    max_pool(w, &op, x, &mut y, &mut mask).unwrap();
}

#[test]
fn steps_past_the_end_of_numbers_are_refused() {
    let (input, stride) = (usize::MAX - 10, usize::MAX / 2 + 1);
    assert!(Pool2d::new(1, [input, 1], [2, 1], [stride, 1], [1, 0], PoolRounding::Ceil).is_err());
}

/// Of many numbers, each element's share of a window is drawn as often as it should be.
#[test]
fn elements_are_drawn_in_proportion() {
    let op = Pool2d::new(1, [2, 3], [2, 3], [1, 1], [0, 0], PoolRounding::Floor).unwrap();
    let x = [1.0f32, -5.0, 3.0, 0.0, f32::NAN, 4.0];
    let mut counts = [0; 6];
    for i in 0..800 {
        let (u, mut y, mut mask) = ([i as f32 / 800.0], [0.0], [0]);
        stochastic_pool(&Workers::sequential(), &op, &x, &u, &mut y, &mut mask).unwrap();
        let place = usize::try_from(mask[0]).unwrap();
        assert_eq!(y[0], x[place]);
        counts[place] += 1;
    }
    assert_eq!(counts, [100, 0, 300, 0, 0, 400]);
}

/// Where nothing is positive the first is drawn; a window that holds nothing yields zero.
#[test]
fn draws_that_are_none() {
    let op = Pool2d::new(1, [1, 4], [1, 2], [1, 3], [0, 0], PoolRounding::Ceil).unwrap();
    let (mut y, mut mask) = ([9.0f64; 2], [9; 2]);
    let x = [-1.0, 0.0, 5.0, -7.0];
    stochastic_pool(&Workers::sequential(), &op, &x, &[0.9; 2], &mut y, &mut mask).unwrap();
    assert_eq!((y, mask), ([-1.0, -7.0], [0, 3]));
    let op = Pool2d::new(1, [1, 4], [1, 1], [1, 4], [0, 0], PoolRounding::Ceil).unwrap();
    assert_eq!(op.output(), [1, 2]);
    stochastic_pool(&Workers::sequential(), &op, &x, &[0.9; 2], &mut y, &mut mask).unwrap();
    assert_eq!((y, mask), ([-1.0, 0.0], [0, -1]));
}

#[test]
fn draws_on_any_number_of_threads() {
    let op =
        Pool2d::new(GRAIN / 200, [20, 20], [3, 3], [2, 2], [0, 0], PoolRounding::Ceil).unwrap();
    let (x, u) = (integers::<f32>(6, op.input_len()), fractions::<f32>(7, op.output_len()));
    let results = threads().map(|workers| {
        let (mut y, mut mask) = (nan(op.output_len()), vec![0; op.output_len()]);
        stochastic_pool(&workers, &op, &x, &u, &mut y, &mut mask).unwrap();
        (y, mask)
    });
    assert!(results[0] == results[1] && results[0] == results[2]);
    let (mut y, mut mask): (Vec<f32>, _) = (nan(op.output_len()), vec![0; op.output_len()]);
    let mut draw = |u: &[f32], masks| {
        let (w, masks) = (Workers::sequential(), &mut mask[..masks]);
        operand(stochastic_pool(&w, &op, &x, u, &mut y, masks))
    };
    assert_eq!(draw(&u[1..], u.len()), ("stochastic_pool", "u"));
    assert_eq!(draw(&u, u.len() - 1), ("stochastic_pool", "mask"));
}
