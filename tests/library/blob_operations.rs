//! Tests of operations on blobs: results compared with plain loops, errors for shapes that do not
//! match, and the transfers that the operations cause.

use cortado::{
    Src,
    kernel::traits::*,
    ledger::{EventKind, Ledger},
    op::{Axis, Binary, PoolRounding, Reduce, Unary},
    prelude::*,
};

/// Returns a blob of small integers, whose products and sums are exact in every element type.
fn integers<T: Element, D: Device>(device: &D, shape: &[usize]) -> Blob<T, D> {
    Blob::from_fn(device, shape, |i| T::from_f64((i * 7 % 11) as f64 - 4.0)).unwrap()
}

fn values<T: Element, D: Device>(blob: &Blob<T, D>) -> Vec<f64> {
    blob.to_vec().unwrap().into_iter().map(T::to_f64).collect()
}

/// Returns the indices of all elements of a blob with the shape `shape`, in row-major order.
fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    shape.iter().fold(vec![vec![]], |prefixes, &extent| {
        let extend = |prefix: Vec<usize>| (0..extent).map(move |i| [&prefix[..], &[i]].concat());
        prefixes.into_iter().flat_map(extend).collect()
    })
}

fn at<T: Element, D: Device>(blob: &Blob<T, D>, index: &[usize]) -> f64 {
    blob.data_at(index).unwrap().to_f64()
}

fn matrix_products<T: Element>(device: &impl Device) {
    let (m, n, k) = (5, 4, 3);
    for (transpose_a, transpose_b) in [(false, false), (false, true), (true, false), (true, true)] {
        let shape = |transposed: bool, rows, columns| match transposed {
            true => [columns, rows],
            false => [rows, columns],
        };
        let a = integers::<T, _>(device, &shape(transpose_a, m, k));
        let b = integers::<T, _>(device, &shape(transpose_b, k, n));
        let element = |blob: &Blob<T, _>, transposed, i, j| match transposed {
            true => at(blob, &[j, i]),
            false => at(blob, &[i, j]),
        };
        let sum = |i, j| {
            let product = |l| element(&a, transpose_a, i, l) * element(&b, transpose_b, l, j);
            (0..k).map(product).sum::<f64>()
        };
        let expected: Vec<f64> =
            indices(&[m, n]).iter().map(|index| sum(index[0], index[1])).collect();
        let c = match (transpose_a, transpose_b) {
            (false, false) => matmul(&a, &b),
            (false, true) => matmul(&a, b.t()),
            (true, false) => matmul(a.t(), &b),
            (true, true) => matmul(a.t(), b.t()),
        }
        .unwrap();
        assert_eq!(c.shape().to_vec(), [m, n]);
        assert_eq!(values(&c), expected);
        if !transpose_a && !transpose_b {
            matmul_add(&a, &b, &c).unwrap();
            assert_eq!(values(&c), expected.iter().map(|x| 2.0 * x).collect::<Vec<_>>());
            matmul_into(&a, &b, &c).unwrap();
            assert_eq!(values(&c), expected);
        }
    }
}

#[test]
fn matmul_equals_the_definition_for_all_transpositions_types_and_devices() {
    matrix_products::<f32>(&CpuDevice::new());
    matrix_products::<f64>(&CpuDevice::new());
    matrix_products::<f16>(&CpuDevice::new());
    matrix_products::<bf16>(&CpuDevice::new());
    matrix_products::<f32>(&SimulatedDevice::new());
    matrix_products::<f32>(&AnyDevice::new(&SimulatedDevice::new()));
}

#[test]
fn matmul_of_empty_operands_is_zero() {
    let device = CpuDevice::new();
    let (a, b) = (Blob::<f32, _>::new(&device, &[2, 0]), Blob::new(&device, &[0, 3]));
    assert_eq!(matmul(&a.unwrap(), &b.unwrap()).unwrap().to_vec().unwrap(), [0.0; 6]);
}

/// Compares `a.add(b)` with plain loops that repeat `b` along missing axes and axes of extent 1.
fn check_broadcast(device: &impl Device, a: &[usize], b: &[usize]) {
    let (x, y) = (integers::<f32, _>(device, a), integers::<f32, _>(device, b));
    let sum = x.add(&y).unwrap_or_else(|error| panic!("{a:?} {b:?}: {error}"));
    assert_eq!(sum.shape().to_vec(), a);
    let expected: Vec<f64> = indices(a)
        .iter()
        .map(|index| {
            let trailing_index = &index[a.len() - b.len()..];
            let b_index: Vec<usize> = trailing_index
                .iter()
                .zip(b)
                .map(|(&i, &extent)| if extent == 1 { 0 } else { i })
                .collect();
            at(&x, index) + at(&y, &b_index)
        })
        .collect();
    assert_eq!(values(&sum), expected, "{a:?} {b:?}");
    let result = x.combine_into(Binary::Add, &y, &x);
    result.unwrap();
    assert_eq!(values(&x), expected, "{a:?} {b:?} in place");
}

#[test]
fn binary_functions_broadcast_the_second_operand() {
    for device in [AnyDevice::new(&CpuDevice::new()), AnyDevice::new(&SimulatedDevice::new())] {
        for (a, b) in [
            (&[2, 3][..], &[2, 3][..]),
            (&[2, 3], &[3]),
            (&[2, 3], &[1, 3]),
            (&[2, 3], &[2, 1]),
            (&[2, 3], &[1]),
            (&[2, 3], &[]),
            (&[2, 3, 4, 5], &[3, 1, 1]),
            (&[2, 3, 4, 5], &[1, 3, 4, 1]),
            (&[2, 3, 4, 5], &[4, 5]),
            (&[2, 1, 4], &[2, 1, 4]),
            (&[2, 1, 4], &[1, 1, 4]),
            (&[0, 3], &[3]),
            (&[], &[]),
        ] {
            check_broadcast(&device, a, b);
        }
    }
}

#[test]
fn unary_functions_equal_their_reference() {
    let x = integers::<f32, _>(&CpuDevice::new(), &[2, 5]);
    let expected = |f: fn(f32) -> f32| x.to_vec().unwrap().into_iter().map(f).collect::<Vec<_>>();
    assert_eq!(x.relu().unwrap().to_vec().unwrap(), expected(|x| x.max(0.0)));
    assert_eq!(x.scale(-0.5).unwrap().to_vec().unwrap(), expected(|x| -0.5 * x));
    let assert_close = |y: Blob<f32, _>, f: fn(f32) -> f32| {
        for (y, want) in y.to_vec().unwrap().into_iter().zip(expected(f)) {
            assert!((y - want).abs() <= 4.0 * f32::EPSILON * want.abs(), "{y} {want}");
        }
    };
    assert_close(x.sigmoid().unwrap(), |x| 1.0 / (1.0 + (-x).exp()));
    assert_close(x.tanh().unwrap(), f32::tanh);
    assert_close(x.exp().unwrap(), f32::exp);
    assert_close(x.exp().unwrap().ln().unwrap(), |x| x);
    x.apply_into(Unary::AddScalar(1.0), &x).unwrap();
    assert_eq!(x.to_vec().unwrap()[0], -3.0);
}

#[test]
fn reductions_equal_loops_along_every_axis() {
    let x = integers::<f64, _>(&CpuDevice::new(), &[2, 3, 4]);
    for axis in 0..3 {
        let mut other_extents = vec![2, 3, 4];
        let extent = other_extents.remove(axis);
        let elements_along_axis = |index: &[usize]| -> Vec<f64> {
            (0..extent).map(|i| at(&x, &[&index[..axis], &[i], &index[axis..]].concat())).collect()
        };
        let check = |found: Blob<f64, _>, f: &dyn Fn(Vec<f64>) -> f64| {
            assert_eq!(found.shape().to_vec(), other_extents);
            let expected: Vec<f64> =
                indices(&other_extents).iter().map(|index| f(elements_along_axis(index))).collect();
            assert_eq!(found.to_vec().unwrap(), expected);
        };
        let signed_axis = axis as isize;
        check(x.sum(signed_axis).unwrap(), &|v| v.iter().sum());
        check(x.mean(signed_axis - 3).unwrap(), &|v| v.iter().sum::<f64>() / v.len() as f64);
        check(x.max(signed_axis).unwrap(), &|v| v.into_iter().fold(f64::MIN, f64::max));
        check(x.min(signed_axis).unwrap(), &|v| v.into_iter().fold(f64::MAX, f64::min));
        let max_indices = x.arg_max(signed_axis).unwrap();
        for (max_index, index) in
            max_indices.to_vec().unwrap().into_iter().zip(indices(&other_extents))
        {
            let values = elements_along_axis(&index);
            let max = values.iter().copied().fold(f64::MIN, f64::max);
            assert_eq!(values[max_index as usize], max);
        }
        let sums = x.softmax(signed_axis).unwrap().sum(signed_axis).unwrap();
        assert!(sums.to_vec().unwrap().iter().all(|sum| (sum - 1.0).abs() < 1e-12));
    }
    assert_eq!(x.sum_all().unwrap(), values(&x).iter().sum::<f64>());
    assert_eq!(x.mean_all().unwrap(), values(&x).iter().sum::<f64>() / 24.0);
}

#[test]
fn convolution_and_pooling_equal_loops_over_windows() {
    let device = CpuDevice::new();
    let x = integers::<f32, _>(&device, &[2, 4, 6, 5]);
    let filters = integers::<f32, _>(&device, &[6, 2, 3, 2]);
    let bias = integers::<f32, _>(&device, &[6]);
    let options = Conv2d { stride: [2, 1], pad: [1, 0], dilation: [1, 2], groups: 2 };
    let y = x.conv2d(&filters, Some(&bias), options).unwrap();
    assert_eq!(y.shape().to_vec(), [2, 6, 3, 3]);
    for index in indices(&[2, 6, 3, 3]) {
        let [n, k, i, j] = index[..] else { unreachable!() };
        let mut sum = at(&bias, &[k]);
        for tap in indices(&[2, 3, 2]) {
            let [c, p, q] = tap[..] else { unreachable!() };
            let (row, column) = ((2 * i + p).wrapping_sub(1), j + 2 * q);
            if row < 6 && column < 5 {
                sum += at(&x, &[n, k / 3 * 2 + c, row, column]) * at(&filters, &[k, c, p, q]);
            }
        }
        assert_eq!(at(&y, &index), sum, "{index:?}");
    }

    let window = PoolWindow { stride: [2, 2], ..PoolWindow::new([3, 3]) };
    let (max, mean) = (x.max_pool2d(window).unwrap(), x.average_pool2d(window).unwrap());
    assert_eq!(max.shape().to_vec(), [2, 4, 3, 2]);
    for index in indices(&[2, 4, 3, 2]) {
        let [n, c, i, j] = index[..] else { unreachable!() };
        let is_inside = |&(row, column): &(usize, usize)| row < 6 && column < 5;
        let taps = indices(&[3, 3]).into_iter().map(|tap| (2 * i + tap[0], 2 * j + tap[1]));
        let taps: Vec<f64> =
            taps.filter(is_inside).map(|(row, column)| at(&x, &[n, c, row, column])).collect();
        assert_eq!(at(&max, &index), taps.iter().copied().fold(f64::MIN, f64::max));
        let expected = (taps.iter().sum::<f64>() / taps.len() as f64) as f32;
        assert_eq!(at(&mean, &index), f64::from(expected));
    }
}

#[test]
fn blobs_are_created_from_values_and_return_them() {
    let device = CpuDevice::new();
    let x = Blob::from_slice(&device, &[2, 2], &[1.0f32, 2.0, 3.0, 4.0]).unwrap();
    assert_eq!(x.rows(1..2).unwrap().to_vec().unwrap(), [3.0, 4.0]);
    assert_eq!(x.rows(1..1).unwrap().shape().to_vec(), [0, 2]);
    assert_eq!(Blob::<f16, _>::ones(&device, &[2]).unwrap().to_vec().unwrap(), [f16::ONE; 2]);
    assert_eq!(Blob::<f32, _>::zeros(&device, &[2]).unwrap().to_vec().unwrap(), [0.0; 2]);
    assert_eq!(Blob::<f64, _>::full(&device, &[], 2.5).unwrap().item().unwrap(), 2.5);
    let flat_blob = x.reshaped(&[4]).unwrap();
    flat_blob.fill(7.0).unwrap();
    assert_eq!(x.to_vec().unwrap(), [7.0; 4], "a reshaped blob shares its data");
}

#[test]
fn debug_output_of_a_blob_causes_no_transfer() {
    let device = SimulatedDevice::new();
    let x = Blob::from_slice(&device, &[2, 5], &[1.5f32; 10]).unwrap();
    let expected = "Blob([2, 5] on simulated: [1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, …])";
    assert_eq!(format!("{x:?}"), expected);
    let y = x.relu().unwrap();
    let ledger = Ledger::new();
    let guard = ledger.open();
    assert_eq!(format!("{y:?}"), "Blob([2, 5] on simulated: values on the device)");
    drop(guard);
    assert!(ledger.entries().is_empty(), "{ledger}");
    assert_eq!(
        format!("{:?}", Blob::<u32, _>::new(&device, &[3]).unwrap()),
        "Blob([3] on simulated: zeros)"
    );
}

/// Asserts that `result` is an error whose message contains each of `parts`.
fn assert_error<T>(result: Result<T>, parts: &[&str]) {
    let Err(error) = result else { panic!("no error; expected one with {parts:?}") };
    let error = error.to_string();
    for part in parts {
        assert!(error.contains(part), "`{part}` is not in: {error}");
    }
}

#[test]
fn errors_of_mismatched_shapes_name_operation_and_shapes() {
    let device = CpuDevice::new();
    let of = |shape: &[usize]| integers::<f32, _>(&device, shape);
    let (a, b) = (of(&[2, 3]), of(&[4, 5]));
    let (vector, images, empty_blob) = (of(&[3]), of(&[2, 4, 6, 6]), of(&[2, 0]));
    let filters = of(&[8, 4, 3, 3]);
    let options = Conv2d::default();
    let window = PoolWindow::new([2, 2]);

    assert_error(matmul(&a, &b), &["matmul", "A of shape [2, 3]", "B of shape [4, 5]"]);
    assert_error(matmul(&a, &a), &["matmul", "A of shape [2, 3]", "B of shape [2, 3]"]);
    assert_error(matmul(a.t(), a.t()), &["matmul", "Aᵀ of shape [3, 2]", "Bᵀ of shape [3, 2]"]);
    assert_error(matmul(&a, &vector), &["matmul", "A of shape [2, 3]", "B of shape [3]"]);
    assert_error(matmul(&vector, &a), &["matmul", "A of shape [3]", "B of shape [2, 3]"]);
    assert_error(matmul(images.t(), &a), &["matmul", "A of shape [2, 4, 6, 6]", "two axes"]);
    assert_error(
        matmul_into(&a, a.t(), &a),
        &[
            "matmul_into",
            "A of shape [2, 3]",
            "Bᵀ of shape [3, 2]",
            "C of shape [2, 2]",
            "found [2, 3]",
        ],
    );
    assert_error(matmul_add(a.t(), &a, &b), &["matmul_add", "C of shape [3, 3]", "found [4, 5]"]);

    assert_error(a.add(&b), &["add", "a of shape [2, 3]", "b of shape [4, 5]"]);
    assert_error(a.sub(&of(&[2])), &["sub", "a of shape [2, 3]", "b of shape [2]"]);
    assert_error(vector.mul(&a), &["mul", "a of shape [3]", "b of shape [2, 3]"]);
    assert_error(a.div(&of(&[3, 2])), &["div", "a of shape [2, 3]", "b of shape [3, 2]"]);
    assert_error(
        images.add(&of(&[2, 1, 6, 1])),
        &["add", "a of shape [2, 4, 6, 6]", "b of shape [2, 1, 6, 1]"],
    );
    assert_error(
        a.combine_into(Binary::Add, &vector, &b),
        &["add", "a of shape [2, 3]", "b of shape [3]", "y of shape [2, 3]", "found [4, 5]"],
    );
    assert_error(a.apply_into(Unary::Exp, &b), &["exp", "x of shape [2, 3]", "found [4, 5]"]);
    assert_error(a.add_scaled(1.0, &b), &["add_scaled", "a of shape [2, 3]", "b of shape [4, 5]"]);

    assert_error(a.sum(2), &["sum", "x of shape [2, 3]", "axis 2"]);
    assert_error(a.mean(-3), &["mean", "x of shape [2, 3]", "axis -3"]);
    assert_error(empty_blob.max(1), &["max"]);
    assert_error(
        a.reduce_into(Reduce::Sum, 0, &b),
        &["sum", "x of shape [2, 3]", "y of shape [3]", "found [4, 5]"],
    );
    assert_error(a.arg_max(2), &["arg_max", "x of shape [2, 3]", "axis 2"]);
    assert_error(a.softmax(2), &["softmax", "x of shape [2, 3]", "axis 2"]);
    assert_error(a.softmax_into(1, &b), &["softmax", "x of shape [2, 3]", "found [4, 5]"]);

    assert_error(
        a.conv2d(&filters, None, options),
        &["conv2d", "x of shape [2, 3]", "[8, 4, 3, 3]"],
    );
    assert_error(
        images.conv2d(&of(&[8, 3, 3, 3]), None, options),
        &["conv2d", "x of shape [2, 4, 6, 6]", "filters of shape [8, 3, 3, 3]", "channels"],
    );
    assert_error(
        images.conv2d(&filters, Some(&vector), options),
        &["conv2d", "filters of shape [8, 4, 3, 3]", "bias of shape [3]"],
    );
    assert_error(
        images.conv2d(&of(&[8, 4, 7, 7]), None, options),
        &["conv2d", "x of shape [2, 4, 6, 6]", "filters of shape [8, 4, 7, 7]", "does not fit"],
    );
    assert_error(
        images.conv2d(&filters, None, Conv2d { stride: [0, 1], ..options }),
        &["conv2d", "x of shape [2, 4, 6, 6]", "stride"],
    );
    assert_error(
        images.conv2d(&of(&[3, 2, 3, 3]), None, Conv2d { groups: 2, ..options }),
        &["conv2d", "filters of shape [3, 2, 3, 3]", "groups"],
    );
    assert_error(
        images.conv2d_into(&filters, None, options, &a),
        &["conv2d", "y of shape [2, 8, 4, 4]", "found [2, 3]"],
    );
    assert_error(a.max_pool2d(window), &["max_pool2d", "x of shape [2, 3]", "four axes"]);
    assert_error(
        images.average_pool2d(PoolWindow {
            rounding: PoolRounding::Floor,
            ..PoolWindow::new([9, 9])
        }),
        &["average_pool2d", "x of shape [2, 4, 6, 6]"],
    );

    assert_error(Blob::from_slice(&device, &[2, 2], &[1.0f32]), &["from_slice", "4", "1"]);
    assert_error(a.reshaped(&[7]), &["reshaped", "shape [2, 3]", "[7]"]);
    assert_error(a.rows(1..3), &["rows", "1..3", "[2, 3]"]);
    assert_error(of(&[]).rows(0..0), &["rows", "0..0"]);
    assert_error(a.item(), &["item", "[2, 3]"]);
}

#[test]
fn matmul_into_one_of_its_operands_is_an_error() {
    let a = integers::<f32, _>(&CpuDevice::new(), &[2, 2]);
    assert_error(matmul_into(&a, &a, &a), &["borrowed"]);
}

/// Three training steps of logistic regression must upload `x` and `target` once each, and download
/// only the final weights.
#[test]
fn blob_operations_transfer_no_intermediate_result() {
    let device = SimulatedDevice::new();
    let x = integers::<f32, _>(&device, &[8, 3]);
    let target = integers::<f32, _>(&device, &[8, 1]);
    let weights = Blob::<f32, _>::zeros(&device, &[3, 1]).unwrap();
    let ledger = Ledger::new();
    let guard = ledger.open();
    for _ in 0..3 {
        let error = matmul(&x, &weights).unwrap().sigmoid().unwrap().sub(&target).unwrap();
        weights.add_scaled(-0.1, &matmul(x.t(), &error).unwrap()).unwrap();
    }
    weights.to_vec().unwrap();
    drop(guard);
    assert_eq!(ledger.total(EventKind::Upload).count, 2, "{ledger}");
    assert_eq!(ledger.total(EventKind::Download).count, 1, "{ledger}");
    assert_eq!(ledger.total(EventKind::Fallback).count, 0, "{ledger}");
    for entry in ledger.entries() {
        assert!(entry.site.file().ends_with("blob_operations.rs"), "{}", entry.site);
    }
}

#[test]
fn errors_of_kernels_name_the_kernel_as_ledgers_do() {
    let device = CpuDevice::new();
    let [x, short] = [4, 3].map(|len| Blob::<f32, _>::ones(&device, &[len]).unwrap());
    let (a, b) = (x.data().unwrap(), short.data().unwrap());
    let y = Blob::<f32, _>::zeros(&device, &[4]).unwrap();
    let mut y = y.data_mut().unwrap();
    let axis = Axis::new(2, 2, 1).unwrap();
    let (add, sum) = (Binary::Add, Reduce::Sum);
    let errors = [
        (
            device.broadcast(add, &axis, Src::View(a.view()), b.view(), y.view_mut()),
            "broadcast: operand `b`",
        ),
        (
            device.binary(add, Src::View(a.view()), b.view(), y.view_mut()),
            "binary_add: operand `b`",
        ),
        (device.unary(Unary::Exp, Src::View(b.view()), y.view_mut()), "unary_exp: operand `y`"),
        (device.reduce(sum, &axis, b.view(), y.view_mut()), "reduce_sum: operand `x`"),
    ];
    for (result, want) in errors {
        let message = result.unwrap_err().to_string();
        assert!(message.starts_with(want), "{message}");
    }
    let empty = Blob::<f32, _>::zeros(&device, &[2, 0]).unwrap();
    let message = empty.max(1).unwrap_err().to_string();
    assert_eq!(message, "reduce_max: the axis has no elements");
}
