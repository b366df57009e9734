//! Tests of the device contract. `docs/contract.md` must list every check of the conformance kit.
//! For special values such as NaN, the host kernels must return the documented results.

use cortado::{
    Element, bf16, f16,
    host::Workers,
    kernel::slices,
    op::{
        Accuracy, Axis, Binary, ClassLoss, ClassLossKind, Convolution, Copy2d, Gemm, GemmBatch,
        Gemv, LossNormalization, Lstm, Permute, Pool2d, PoolRounding, Reduce, RngKey, RowIndexing,
        SoftmaxLoss, SpatialAxis, Tile, TopK, Transpose, Unary, Window,
    },
};

/// Returns the checks that `docs/contract.md` lists: the words in backticks in the last column of
/// each row of its tables.
#[cfg(feature = "conformance")]
fn checks_in_contract_page() -> std::collections::BTreeSet<&'static str> {
    let page = include_str!("../../docs/contract.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let columns = rows.filter_map(|row| Some(row.rsplit_once(" | ")?.1));
    columns.flat_map(|checks| checks.split('`').skip(1).step_by(2)).collect()
}

#[cfg(feature = "conformance")]
#[test]
fn the_contract_page_lists_every_check_of_the_kit() {
    let listed_checks = checks_in_contract_page();
    let checks = cortado::conformance::NAMES.iter().copied().collect();
    let unknown_checks: Vec<_> = listed_checks.difference(&checks).collect();
    assert!(
        unknown_checks.is_empty(),
        "docs/contract.md names checks that do not exist: {unknown_checks:?}"
    );
    let missing_checks: Vec<_> = checks.difference(&listed_checks).collect();
    assert!(
        missing_checks.is_empty(),
        "docs/contract.md: add rows for the checks {missing_checks:?}"
    );
}

#[test]
fn the_documentation_of_every_kernel_states_the_lengths_of_its_operands() {
    let sources = [
        include_str!("../../src/kernel/blas.rs"),
        include_str!("../../src/kernel/conv.rs"),
        include_str!("../../src/kernel/elementwise.rs"),
        include_str!("../../src/kernel/indexing.rs"),
        include_str!("../../src/kernel/losses.rs"),
        include_str!("../../src/kernel/normalize.rs"),
        include_str!("../../src/kernel/pooling.rs"),
        include_str!("../../src/kernel/random.rs"),
        include_str!("../../src/kernel/reductions.rs"),
        include_str!("../../src/kernel/update.rs"),
    ]
    .concat();
    let names = cortado::kernel::names().chain(["convolve_with_activation", "gemm_with_bias"]);
    let undocumented_kernels = names.filter(|name| {
        let declaration = [format!("fn {name}<"), format!("fn {name}(")];
        let start = declaration.iter().find_map(|declaration| sources.find(declaration));
        let before = &sources[..start.unwrap_or_else(|| panic!("no declaration of {name}"))];
        let doc = before.rsplit("\n\n").next().unwrap_or_default();
        !doc.contains("/// Lengths: ")
    });
    assert_eq!(
        undocumented_kernels.collect::<Vec<_>>(),
        [""; 0],
        "kernels without a line `Lengths: `"
    );
}

const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;

fn to_elements<T: Element>(values: &[f64]) -> Vec<T> {
    values.iter().map(|&value| T::from_f64(value)).collect()
}

/// Asserts that `got` equals `want`; NaN equals NaN, and −0 equals +0.
#[track_caller]
fn expect<T: Element>(got: &[T], want: &[f64]) {
    let got: Vec<f64> = got.iter().map(|x| x.to_f64()).collect();
    let is_equal = |(got, want): (&f64, &f64)| got == want || got.is_nan() && want.is_nan();
    let all_equal = got.len() == want.len() && got.iter().zip(want).all(is_equal);
    assert!(all_equal, "{}: {got:?}, expected {want:?}", T::DTYPE.name());
}

fn workers() -> &'static Workers {
    Workers::global()
}

fn linear_algebra<T: Element>() {
    let (w, acc) = (workers(), T::acc);
    let special_values = to_elements::<T>(&[NAN, INF, -INF, 2.0]);
    let mut x = special_values.clone();
    slices::scal(w, acc(0.0), &mut x).unwrap();
    expect(&x, &[NAN, NAN, NAN, 0.0]);
    let mut y = to_elements::<T>(&[1.0; 4]);
    slices::axpy(w, acc(0.0), &special_values, &mut y).unwrap();
    expect(&y, &[NAN, NAN, NAN, 1.0]);
    for (beta, last) in [(0.0, 0.0), (2.0, 2.0)] {
        let mut y = to_elements::<T>(&[if beta == 0.0 { NAN } else { 1.0 }; 4]);
        slices::axpby(w, acc(0.0), &special_values, acc(beta), &mut y).unwrap();
        expect(&y, &[NAN, NAN, NAN, last]);
    }
    let empty: [T; 0] = [];
    assert_eq!(slices::dot(w, &empty, &empty).unwrap(), acc(0.0));
    assert_eq!(slices::asum(w, &empty).unwrap(), acc(0.0));
    assert_eq!(slices::sumsq(w, &empty).unwrap(), acc(0.0));
    assert_eq!(slices::amax(w, &empty).unwrap(), acc(0.0));
    expect(&[slices::amax(w, &special_values).unwrap()], &[NAN]);
    let strided_values = to_elements::<T>(&[3.0, NAN, 4.0, NAN]);
    assert_eq!(
        slices::dot_strided(w, 2, &strided_values, 2, &strided_values, 0).unwrap(),
        acc(21.0)
    );
    assert_eq!(slices::dot_strided(w, 0, &empty, 3, &empty, 1).unwrap(), acc(0.0));

    for trans in [Transpose::No, Transpose::Yes] {
        let op = Gemv::<T>::new(trans, 2, 2).leading_dim(3);
        let a = to_elements::<T>(&[1.0, 2.0, NAN, 3.0, 4.0]);
        let mut y = to_elements::<T>(&[NAN; 2]);
        slices::gemv(w, &op, &a, &to_elements(&[1.0, 1.0]), &mut y).unwrap();
        expect(&y, if trans == Transpose::No { &[3.0, 7.0] } else { &[4.0, 6.0] });
        let mut y = to_elements::<T>(&[1.0; 2]);
        let op = op.alpha(acc(0.0)).beta(acc(2.0));
        slices::gemv(w, &op, &to_elements(&[NAN; 5]), &to_elements(&[NAN; 2]), &mut y).unwrap();
        expect(&y, &[2.0; 2]);
    }

    // If α = 0 or k = 0, GEMM computes `C ← β·C`. GEMM must not change elements outside `C`.
    for (alpha, k, beta, want) in
        [(0.0, 2, 0.0, 0.0), (0.0, 2, 2.0, 6.0), (1.0, 0, 2.0, 6.0), (INF, 0, 0.0, 0.0)]
    {
        let op = Gemm::<T>::new(2, 2, k).leading_dims(k, 2, 3).alpha(acc(alpha)).beta(acc(beta));
        let mut c = to_elements::<T>(&[3.0, 3.0, 7.0, 3.0, 3.0, 8.0]);
        slices::gemm(w, &op, &to_elements(&[NAN; 4]), &to_elements(&[NAN; 4]), &mut c).unwrap();
        expect(&c, &[want, want, 7.0, want, want, 8.0]);
    }
    for n in [2, 40] {
        let op = Gemm::<T>::new(n, n, n).leading_dims(n + 1, n + 1, n + 1);
        let element = |i: usize| if i % (n + 1) == n { NAN } else { 1.0 };
        let a = to_elements::<T>(&(0..(n + 1) * n).map(element).collect::<Vec<_>>());
        let mut c = to_elements::<T>(&vec![7.0; (n + 1) * n]);
        slices::gemm(w, &op, &a, &a, &mut c).unwrap();
        let want = |i: usize| if i % (n + 1) == n { 7.0 } else { n as f64 };
        expect(&c, &(0..(n + 1) * n).map(want).collect::<Vec<_>>());
    }
    let batch = GemmBatch { count: 0, stride_a: 1, stride_b: 1, stride_c: 1 };
    let mut c = to_elements::<T>(&[5.0]);
    slices::gemm_batched(w, &Gemm::new(9, 9, 9), &batch, &empty, &empty, &mut c).unwrap();
    expect(&c, &[5.0]);
}

fn elementwise<T: Element>() {
    let (w, acc) = (workers(), T::acc);
    let unary = |op: Unary<f64>, x: f64| {
        let mut y = to_elements::<T>(&[x]);
        slices::unary_in_place(w, op.cast(), &mut y).unwrap();
        y[0].to_f64()
    };
    for op in [Unary::Sign, Unary::Threshold(1.0)] {
        assert_eq!(unary(op, NAN), 0.0, "{op:?}");
    }
    assert_eq!((unary(Unary::SignBit, -0.0), unary(Unary::SignBit, 0.0)), (1.0, 0.0));
    for op in [Unary::Pow(0.0), Unary::PowAffine { scale: 1.0, shift: 0.0, power: 0.0 }] {
        assert_eq!(unary(op, NAN), 1.0, "{op:?}");
    }
    let functions = [
        Unary::Abs,
        Unary::Neg,
        Unary::Exp,
        Unary::Ln,
        Unary::Sqr,
        Unary::Sqrt,
        Unary::Recip,
        Unary::Tanh,
        Unary::Sigmoid,
        Unary::Softplus,
        Unary::Pow(0.5),
        Unary::AddScalar(1.0),
        Unary::Scale(0.0),
        Unary::Relu { slope: 0.0 },
        Unary::Elu { alpha: 1.0 },
        Unary::Swish { beta: 1.0 },
        Unary::Clip { low: -1.0, high: 1.0 },
        Unary::ExpAffine { scale: 0.0, shift: 0.0 },
        Unary::LnAffine { scale: 0.0, shift: 1.0, factor: 1.0 },
    ];
    for op in functions {
        assert!(unary(op, NAN).is_nan(), "{op:?}");
    }
    let zeros = [unary(Unary::Abs, -0.0), unary(Unary::Neg, -0.0), unary(Unary::Neg, 0.0)];
    assert_eq!(zeros.map(f64::is_sign_negative), [false, false, true]);

    let binary = |op: Binary<f64>, a: f64, b: f64| {
        let mut y = to_elements::<T>(&[0.0]);
        slices::binary(w, op.cast(), &to_elements(&[a]), &to_elements(&[b]), &mut y).unwrap();
        y[0].to_f64()
    };
    assert_eq!((binary(Binary::Max, NAN, 2.0), binary(Binary::Min, NAN, 2.0)), (2.0, 2.0));
    assert!(binary(Binary::Max, 2.0, NAN).is_nan() && binary(Binary::Min, 2.0, NAN).is_nan());
    assert_eq!((binary(Binary::Greater, NAN, 1.0), binary(Binary::Greater, 1.0, NAN)), (0.0, 0.0));
    assert_eq!(binary(Binary::ClipGrad { low: 0.0, high: 1.0 }, 3.0, NAN), 0.0);
    assert_eq!(binary(Binary::ReluGrad { slope: 0.5 }, 3.0, NAN), 1.5);
    assert_eq!(binary(Binary::DivOrZero, NAN, 0.0), 0.0);
    for op in [Binary::Add, Binary::Sub, Binary::Mul, Binary::MulScaled(2.0), Binary::Div] {
        assert!(binary(op, NAN, 0.0).is_nan() && binary(op, 0.0, NAN).is_nan(), "{op:?}");
    }
    for op in [Binary::SigmoidGrad, Binary::TanhGrad, Binary::SoftplusGrad] {
        assert!(binary(op, NAN, 0.0).is_nan() && binary(op, 0.0, NAN).is_nan(), "{op:?}");
    }

    let op = Lstm::new(1, 1).unwrap();
    let (mut gates, mut c, mut h) =
        (to_elements::<T>(&[0.0; 4]), to_elements(&[0.0]), to_elements(&[0.0]));
    let (c_prev, cont) = (to_elements(&[NAN]), to_elements(&[0.0]));
    slices::lstm(w, &op, &c_prev, &cont, &mut gates, &mut c, &mut h).unwrap();
    expect(&c, &[NAN]);

    let key = RngKey::new(1);
    let mut mask = [0; 64];
    slices::bernoulli(w, key, 0.5, &mut mask).unwrap();
    let mut y = to_elements::<T>(&[INF; 64]);
    slices::dropout_in_place(w, key, 0.5, &mut y).unwrap();
    expect(&y, &mask.map(|kept| if kept == 1 { INF } else { 0.0 }));
    let _ = acc;
}

fn conversions<T: Element>() {
    let (w, x) = (workers(), [NAN, INF, -INF, 1e300, -1e300, -0.0]);
    let mut y = to_elements::<T>(&[0.0; 6]);
    slices::convert(w, &x, &mut y).unwrap();
    let large_value = if T::DTYPE == f64::DTYPE { 1e300 } else { INF };
    expect(&y, &[NAN, INF, -INF, large_value, -large_value, 0.0]);
}

fn reductions<T: Element>() {
    let (w, axis) = (workers(), Axis::new(1, 3, 2).unwrap());
    let x = to_elements::<T>(&[NAN, NAN, 2.0, NAN, -1.0, NAN]);
    for (op, want) in [(Reduce::Max, 2.0), (Reduce::Min, -1.0), (Reduce::Sum, NAN)] {
        let mut y = to_elements::<T>(&[5.0; 2]);
        slices::reduce(w, op, &axis, &x, &mut y).unwrap();
        expect(&y, &[want, NAN]);
    }
    let empty_axis = Axis::new(1, 0, 1).unwrap();
    let reduce_empty = |op| {
        let mut y = to_elements::<T>(&[5.0]);
        slices::reduce(w, op, &empty_axis, &[], &mut y).map(|()| y[0].to_f64())
    };
    assert_eq!(reduce_empty(Reduce::Sum).unwrap(), 0.0);
    assert!(reduce_empty(Reduce::Mean).unwrap().is_nan());
    assert!(reduce_empty(Reduce::Max).is_err() && reduce_empty(Reduce::Min).is_err());
    let mut max_indices = [9; 2];
    slices::arg_max(w, &axis, &x, &mut max_indices).unwrap();
    assert_eq!(max_indices, [1, 0]);
    assert!(slices::arg_max::<T>(w, &empty_axis, &[], &mut [0]).is_err());
    let (mut values, mut at) = (to_elements::<T>(&[0.0; 4]), to_elements::<T>(&[0.0; 4]));
    slices::top_k(w, &TopK { axis, k: 2 }, &x, &mut values, &mut at).unwrap();
    expect(&values, &[2.0, NAN, -1.0, NAN]);
    expect(&at, &[1.0, 2.0, 2.0, 1.0]);
    for beta in [0.0, 2.0] {
        let mut y = to_elements::<T>(&[if beta == 0.0 { NAN } else { 3.0 }]);
        let axis = Axis::new(0, 1, 4).unwrap();
        slices::sum_to_axis(w, &axis, T::acc(beta), &[], &mut y).unwrap();
        expect(&y, &[3.0 * beta]);
        let mut y = to_elements::<T>(&[if beta == 0.0 { NAN } else { 3.0 }]);
        slices::dot_to_axis(w, &axis, T::acc(beta), &[], &[], &mut y).unwrap();
        expect(&y, &[3.0 * beta]);
    }
    let moments = |axis: [usize; 3], x: &[f64]| {
        let axis = Axis::new(axis[0], axis[1], axis[2]).unwrap();
        let (mut mean, mut variance) = (to_elements(&vec![0.0; axis.extent]), vec![]);
        variance.clone_from(&mean);
        slices::moments::<T>(w, &axis, &to_elements(x), &mut mean, &mut variance)
            .map(|()| (mean, variance))
    };
    let (mean, variance) = moments([2, 2, 1], &[NAN, 1.0, 2.0, 3.0]).unwrap();
    expect(&mean, &[NAN, 2.0]);
    expect(&variance, &[NAN, 1.0]);
    assert!(moments([0, 1, 1], &[]).is_err() && moments([1, 0, 1], &[]).is_ok());
}

fn pooling_and_convolution<T: Element>() {
    let w = workers();
    // The maximum of a window starts at the lowest finite number, which no element of window 0
    // exceeds. Window 2 begins beyond the input.
    let op = Pool2d::new(1, [1, 8], [1, 2], [1, 5], [0, 0], PoolRounding::Ceil).unwrap();
    let lowest_number = match T::DTYPE.name() {
        "f16" => f16::MIN.to_f64(),
        "bf16" => bf16::MIN.to_f64(),
        _ => f64::from(f32::MIN),
    };
    let x = to_elements::<T>(&[NAN, -INF, 0.0, 0.0, 0.0, 4.0, 4.0, 0.0]);
    let (mut y, mut mask) = (to_elements::<T>(&[0.0; 3]), [9; 3]);
    slices::max_pool(w, &op, &x, &mut y, &mut mask).unwrap();
    expect(&y, &[lowest_number, 4.0, lowest_number]);
    assert_eq!(mask, [-1, 5, -1]);
    let mut dx = to_elements::<T>(&[NAN; 8]);
    slices::max_pool_backward(w, &op, &to_elements(&[1.0, 2.0, 3.0]), &mask, &mut dx).unwrap();
    expect(&dx, &[0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0]);
    let mut y = to_elements::<T>(&[5.0; 3]);
    slices::average_pool(w, &op, &x, &mut y).unwrap();
    assert!(y[2].to_f64().is_nan() || y[2].to_f64() == 0.0);
    slices::stochastic_pool(w, &op, &x, &[0.5; 3], &mut y, &mut mask).unwrap();
    assert_eq!((y[2].to_f64(), mask[2]), (0.0, -1));
    let mut dx = to_elements::<T>(&[NAN; 8]);
    slices::average_pool_backward(w, &op, &to_elements(&[2.0; 3]), &mut dx).unwrap();
    expect(&dx, &[1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0]);

    let window = |channels| Window::new(channels, &[SpatialAxis::new(3, 2)]).unwrap();
    let op = Convolution::new(1, 1, 1, window(0)).unwrap();
    for (bias, want) in [(Some(to_elements::<T>(&[3.0])), 3.0), (None, 0.0)] {
        let mut y = to_elements::<T>(&[NAN; 2]);
        slices::convolve(w, &op, &[], &[], bias.as_deref(), &mut y).unwrap();
        expect(&y, &[want; 2]);
    }
    let op = Convolution::new(1, 1, 1, window(1)).unwrap();
    let mut y = to_elements::<T>(&[0.0; 2]);
    let (x, filters) = (to_elements(&[1.0, 1.0, INF]), to_elements(&[1.0, 0.0]));
    slices::convolve(w, &op, &x, &filters, None, &mut y).unwrap();
    expect(&y, &[1.0, NAN]);
    let op = Convolution::new(0, 1, 1, window(1)).unwrap();
    let mut dfilters = to_elements::<T>(&[4.0; 2]);
    slices::convolve_backward_filters(w, &op, &[], &[], &mut dfilters).unwrap();
    expect(&dfilters, &[4.0; 2]);
}

fn losses<T: Element>() {
    let w = workers();
    let softmax = |x: &[f64]| {
        let mut y = to_elements::<T>(x);
        slices::softmax_in_place(w, &Axis::new(2, 2, 1).unwrap(), &mut y).unwrap();
        y
    };
    expect(&softmax(&[-INF, 1.0, NAN, 1.0]), &[0.0, 1.0, NAN, NAN]);
    expect(&softmax(&[-INF, -INF, INF, 1.0]), &[NAN; 4]);
    let (axis, normalization) = (Axis::new(2, 2, 1).unwrap(), LossNormalization::Valid);
    let op = SoftmaxLoss { axis, ignore: Some(-1), normalization };
    let loss_of = |p: &[f64], label: &[f64]| {
        let mut loss = to_elements::<T>(&[NAN]);
        slices::softmax_loss(w, &op, &to_elements(p), &to_elements(label), &mut loss).map(|()| loss)
    };
    expect(&loss_of(&[NAN, 1.0, 0.5, 0.5], &[0.0, -1.0]).unwrap(), &[NAN]);
    expect(&loss_of(&[1.0, 0.0, NAN, NAN], &[0.0, -1.0]).unwrap(), &[0.0]);
    expect(&loss_of(&[0.5; 4], &[-1.0; 2]).unwrap(), &[0.0]);
    for label in [-2.0, 2.0, 0.5, NAN] {
        assert!(loss_of(&[0.5; 4], &[0.0, label]).is_err(), "{label}");
    }
    let (p, label) = (to_elements(&[0.5, 0.5, NAN, NAN]), to_elements(&[0.0, -1.0]));
    let mut dx = to_elements::<T>(&[NAN; 4]);
    slices::softmax_loss_backward(w, &op, &p, &label, &to_elements(&[1.0]), &mut dx).unwrap();
    expect(&dx, &[-0.5, 0.5, 0.0, 0.0]);
    let op = ClassLoss { axis, kind: ClassLossKind::Hinge, ignore: Some(-1), normalization };
    let (x, mut dx) = (to_elements(&[1.0, -1.0, NAN, NAN]), to_elements::<T>(&[NAN; 4]));
    slices::class_loss_backward(w, &op, &x, &label, None, &to_elements(&[1.0]), &mut dx).unwrap();
    expect(&dx, &[0.0; 4]);
    let op = Accuracy { axis, top_k: 2, ignore: None };
    let (mut y, scores) = (to_elements::<T>(&[NAN]), to_elements(&[NAN, 0.0, 0.0, 0.0]));
    slices::accuracy(w, &op, &scores, &to_elements(&[0.0, 0.0]), &mut y).unwrap();
    expect(&y, &[0.5]);
}

/// Returns elements whose bits a kernel might change if it did more than move the elements.
fn unusual_elements<T: Element>() -> Vec<T> {
    let size = size_of::<T>();
    // NaN with a payload, a negative NaN, −0, and the smallest subnormal number.
    let [mut payload, mut negative, mut zero, mut subnormal] = [[0; 8]; 4];
    let exponent = match T::DTYPE.name() {
        "f16" => 0x7c,
        _ => 0x7f,
    };
    (payload[size - 1], negative[size - 1]) = (exponent, exponent | 0x80);
    (payload[size - 2], negative[size - 2]) = (0xf5, 0xf3);
    zero[size - 1] = 0x80;
    subnormal[0] = 1;
    let element = |bytes: [u8; 8]| T::read_bytes(&bytes[..size]).unwrap();
    [payload, negative, zero, subnormal].map(element).to_vec()
}

fn move_kernels<T: Element>() {
    fn expect_bits<T: Element>(name: &str, got: &[T], want: &[T]) {
        assert_eq!(T::bytes_of(got), T::bytes_of(want), "{name}, {}", T::DTYPE.name());
    }
    let (w, x) = (workers(), unusual_elements::<T>());
    let ones = || to_elements::<T>(&[1.0; 4]);
    let mut y = ones();
    slices::copy(w, &x, &mut y).unwrap();
    expect_bits("copy", &y, &x);
    let mut y = ones();
    slices::copy_2d(w, &Copy2d { rows: 2, columns: 2, ldx: 2, ldy: 2 }, &x, &mut y).unwrap();
    expect_bits("copy_2d", &y, &x);
    let mut y = ones();
    let op = RowIndexing { table: 4, width: 1, count: 4 };
    slices::gather(w, &op, &x, &[0, 1, 2, 3], &mut y).unwrap();
    expect_bits("gather", &y, &x);
    let mut y = ones();
    let op = Permute::new(cortado::Shape::new(&[2, 2]).unwrap(), &[1, 0]).unwrap();
    slices::permute(w, &op, &x, &mut y).unwrap();
    expect_bits("permute", &y, &[x[0], x[2], x[1], x[3]]);
    let mut y = ones();
    slices::tile(w, &Tile { outer: 1, inner: 4, tiles: 1 }, &x, &mut y).unwrap();
    expect_bits("tile", &y, &x);
    let mut y = ones();
    let window = Window::new(1, &[SpatialAxis::new(4, 1)]).unwrap();
    slices::im2col(w, &window, &x, &mut y).unwrap();
    expect_bits("im2col", &y, &x);
    for x in x {
        let mut y = ones();
        slices::fill(w, x, &mut y).unwrap();
        expect_bits("fill", &y, &[x; 4]);
        let (mut value, mut place) = ([T::default()], [T::default()]);
        let op = TopK { axis: Axis::new(1, 1, 1).unwrap(), k: 1 };
        slices::top_k(w, &op, &[x], &mut value, &mut place).unwrap();
        expect_bits("top_k", &value, &[x]);
    }
}

/// Defines tests, each of which calls a function for every element type.
macro_rules! for_each_element {
    ($($test:ident: $function:ident;)*) => {
        $(
            #[test]
            fn $test() {
                $function::<f32>();
                $function::<f64>();
                $function::<f16>();
                $function::<bf16>();
            }
        )*
    };
}

for_each_element! {
    linear_algebra_of_special_values_follows_the_contract: linear_algebra;
    elementwise_functions_of_special_values_follow_the_contract: elementwise;
    conversions_of_special_values_follow_the_contract: conversions;
    reductions_of_special_values_follow_the_contract: reductions;
    pooling_and_convolution_of_special_values_follow_the_contract: pooling_and_convolution;
    losses_of_special_values_follow_the_contract: losses;
    kernels_that_move_elements_keep_every_bit: move_kernels;
}
