//! Checks of losses and accuracies over class scores, in the kernel family
//! [`Losses`](crate::kernel::Losses).

use super::{harness::as_slices, prelude::*};
use crate::{
    conformance::{oracle::losses as oracle, values::repeated},
    device::AnyDevice,
    element::DType,
    op::{
        Accuracy, ClassLoss,
        ClassLossKind::{self, Hinge, Log, LogWithSoftmaxGradient, SquaredHinge},
        LossNormalization, SoftmaxLoss,
    },
};
use std::fmt::Debug;

checks! {
    "softmax_loss" of "softmax_loss": softmax_loss();
    "softmax_loss_backward" of "softmax_loss_backward": softmax_loss_backward();
    "accuracy" of "accuracy": accuracy();
    "accuracy_by_class" of "accuracy_by_class": accuracy_by_class();
    "class_loss" of "class_loss": class_loss();
    "class_loss_backward" of "class_loss_backward": class_loss_backward();
}

/// Factor by which the kernels scale gradients.
pub(super) const SCALE: f64 = -2.5;

/// Replaces every fifth number of `x` with 0 and every seventh with 1.
fn with_zeros_and_ones<T: Element>(mut x: Vec<T>) -> Vec<T> {
    x.iter_mut().step_by(5).for_each(|x| *x = T::from_f64(0.0));
    x.iter_mut().skip(1).step_by(7).for_each(|x| *x = T::from_f64(1.0));
    x
}

/// Returns class labels. If the loss ignores a label, every third label is the ignored label.
fn labels<T: Element>(axis: &Axis, ignore: Option<i64>, setup: &CaseSetup) -> Vec<T> {
    let classes = setup.stream().indices(axis.extent.max(1), axis.reduced_count());
    let label = |(i, class)| match ignore {
        Some(ignore) if i % 3 == 0 => T::from_f64(ignore as f64),
        _ => T::from_f64(class as f64),
    };
    classes.into_iter().enumerate().map(label).collect()
}

/// Returns class probabilities and labels.
fn probabilities<T: Element>(op: &SoftmaxLoss, setup: &CaseSetup) -> [NamedValues<T>; 2] {
    let p = with_zeros_and_ones(setup.stream().uniform(0.0, 1.0, op.axis.count()));
    [("p", p), ("label", labels(&op.axis, op.ignore, setup))]
}

fn softmax_loss<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    let device = runner.device;
    try_labelled(
        runner,
        &softmax_loss_cases()?,
        |op, setup| (probabilities::<T>(op, setup), [("loss", unset(1))]),
        |op, [p, label], [loss]| device.softmax_loss(op, p, label, loss),
        |op, [p, label], _| [ExpectedOutput::Within(vec![oracle::softmax_loss(op, p, label)])],
    )?;
    // A net that has diverged computes NaN probabilities, for which the loss must be NaN.
    let op = softmax_loss_op([3, 2, 1], None, LossNormalization::Full)?;
    let p = [0.5, 0.5, f64::NAN, f64::NAN, 0.25, 0.75].map(T::from_f64);
    let (inputs, loss) = ([("p", &p[..]), ("label", &[T::default(); 3])], ("loss", &unset(1)[..]));
    let [got] = runner.call(&CaseSetup::WHOLE, inputs, [loss], |[p, label], [loss]| {
        device.softmax_loss(&op, p, label, loss)
    })?;
    expect_nearest("loss of NaN probabilities", &got, &[f64::NAN])?;
    let op = softmax_loss_op([ROWS, 2, 1], None, LossNormalization::None)?;
    let want = Expected::approx(2.0f64.ln(), 8.0);
    check_loss_of_last_row::<T>(runner, want, |p, label, loss| {
        device.softmax_loss(&op, p, label, loss)
    })
}

/// Checks a kernel that sums over more than 65,535 rows. All labels are 0. In all rows but the
/// last, the first operand is [1, 0]. The last row is [1/2, 1], so only that row has a loss or a
/// wrong class.
fn check_loss_of_last_row<T: Element>(
    runner: &CheckRunner<'_>,
    want: Expected,
    kernel: impl Fn(
        View<'_, T, AnyDevice>,
        View<'_, T, AnyDevice>,
        ViewMut<'_, T, AnyDevice>,
    ) -> Result<()>,
) -> Verdict {
    if T::DTYPE != DType::F32 {
        return Ok(());
    }
    let mut x = repeated(&[1.0, 0.0].map(T::from_f64), ROWS);
    x[2 * ROWS - 2..].copy_from_slice(&[0.5, 1.0].map(T::from_f64));
    let label = vec![T::default(); ROWS];
    let inputs = [("x", &x[..]), ("label", &label)];
    let y = ("result of many rows", &unset(1)[..]);
    let [got] =
        runner.call(&CaseSetup::WHOLE, inputs, [y], |[x, label], [y]| kernel(x, label, y))?;
    expect_within(y.0, &got, &[want])
}

fn softmax_loss_backward<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    let device = runner.device;
    let rows = |outer| softmax_loss_op([outer, 3, 1], None, LossNormalization::None);
    let rows = [rows(PERIOD)?, rows(PERIOD * ROW_COPIES)?];
    try_labelled(
        runner,
        &softmax_loss_cases()?.and_large(rows, ROW_COPIES, &["scale"]),
        |op, setup| {
            let [p, label] = probabilities::<T>(op, setup);
            let dx = ("dx", unset(p.1.len()));
            ([p, label, ("scale", vec![T::from_f64(SCALE)])], [dx])
        },
        |op, [p, label, scale], [dx]| device.softmax_loss_backward(op, p, label, scale, dx),
        |op, [p, label, _], _| {
            [ExpectedOutput::Within(oracle::softmax_loss_backward(op, p, label, SCALE))]
        },
    )
}

fn accuracy<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    let device = runner.device;
    try_labelled(
        runner,
        &accuracy_cases()?,
        |op, setup| {
            let mut scores = setup.stream().take::<T>(op.axis.count());
            // A score of NaN, which a diverged net computes, must never count as one of the largest
            // scores.
            let last_scores = scores.iter_mut().rev().take(op.axis.inner);
            last_scores.for_each(|score| *score = T::from_f64(f64::NAN));
            let label = labels(&op.axis, op.ignore, setup);
            ([("scores", scores), ("label", label)], [("y", unset(1))])
        },
        |op, [scores, label], [y]| device.accuracy(op, scores, label, y),
        |op, [scores, label], _| {
            [ExpectedOutput::Within(vec![oracle::accuracy(op, scores, label)])]
        },
    )?;
    let op = Accuracy { axis: Axis::new(ROWS, 2, 1)?, top_k: 1, ignore: None };
    let want = Expected::approx((ROWS - 1) as f64 / ROWS as f64, 2.0);
    check_loss_of_last_row::<T>(runner, want, |scores, label, y| {
        device.accuracy(&op, scores, label, y)
    })
}

fn accuracy_by_class<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    let device = runner.device;
    let rows = Accuracy { axis: Axis::new(ROWS, 3, 1)?, top_k: 1, ignore: None };
    try_labelled(
        runner,
        &accuracy_cases()?.and_whole([rows]),
        |op, setup| {
            let scores = setup.stream().take::<T>(op.axis.count());
            let label = labels(&op.axis, op.ignore, setup);
            ([("scores", scores), ("label", label)], [("y", unset(op.axis.extent))])
        },
        |op, [scores, label], [y]| device.accuracy_by_class(op, scores, label, y),
        |op, [scores, label], _| {
            [ExpectedOutput::Within(oracle::accuracy_by_class(op, scores, label))]
        },
    )
}

/// Checks a kernel whose second input holds labels. The kernel must refuse labels that are not
/// class numbers, and then accept valid labels.
fn try_labelled<C: Clone + Debug + 'static, T: Element, const I: usize>(
    runner: &CheckRunner<'_>,
    cases: &Cases<C>,
    operands: impl Fn(&C, &CaseSetup) -> ([NamedValues<T>; I], [NamedValues<T>; 1]),
    kernel: impl Fn(&C, [View<'_, T, AnyDevice>; I], [ViewMut<'_, T, AnyDevice>; 1]) -> Result<()>,
    want: impl Fn(&C, [&[f64]; I], [&[f64]; 1]) -> [ExpectedOutput; 1],
) -> Verdict {
    runner.try_kernel(cases, &operands, &kernel, want)?;
    let invalid = [-1.0, 3.0, 0.5, 60_000.0, f64::NAN, f64::INFINITY];
    let cases = cases.refused_calls.iter().flat_map(|case| invalid.map(|invalid| (case, invalid)));
    runner.try_cases(cases, |&(case, invalid)| {
        let (mut inputs, [(output, y)]) = operands(case, &CaseSetup::WHOLE);
        inputs[1].1 = [0.0, 2.0, invalid, 1.0].map(T::from_f64).into();
        let call =
            |x: [View<'_, T, AnyDevice>; I], y: [ViewMut<'_, T, AnyDevice>; 1]| kernel(case, x, y);
        let invalid = format!("label {invalid} for 3 classes");
        runner.check_late_error(&invalid, as_slices(&inputs), (output, &y), call)?;
        inputs[1].1 = [0.0, 2.0, 1.0, 1.0].map(T::from_f64).into();
        runner.call(&CaseSetup::WHOLE, as_slices(&inputs), [(output, &y)], call).map(drop)
    })
}

pub(super) const NORMALIZATIONS: [LossNormalization; 4] = [
    LossNormalization::Full,
    LossNormalization::Valid,
    LossNormalization::BatchSize,
    LossNormalization::None,
];

fn softmax_loss_op(
    [outer, extent, inner]: [usize; 3],
    ignore: Option<i64>,
    normalization: LossNormalization,
) -> Result<SoftmaxLoss> {
    Ok(SoftmaxLoss { axis: Axis::new(outer, extent, inner)?, ignore, normalization })
}

/// Returns cases of softmax losses: no positions, one ignored position, many positions, and every
/// normalization with and without an ignored label.
fn softmax_loss_cases() -> Result<Cases<SoftmaxLoss>> {
    use LossNormalization::{BatchSize, Full, Valid};
    let mut corner_cases = vec![
        softmax_loss_op([0, 3, 2], None, Valid)?,
        softmax_loss_op([1, 1, 1], Some(-1), Valid)?,
        softmax_loss_op([1, 4, 1], Some(0), Valid)?,
        softmax_loss_op([1, 1, 1], None, Full)?,
        softmax_loss_op([1025, 3, 1], None, Full)?,
        softmax_loss_op([3, 2, 400], Some(1), Valid)?,
        softmax_loss_op([2, 200, 3], None, BatchSize)?,
    ];
    for normalization in NORMALIZATIONS {
        for ignore in [None, Some(2), Some(255)] {
            corner_cases.push(softmax_loss_op([4, 5, 3], ignore, normalization)?);
        }
    }
    let random_cases = (random_shape(), prop::sample::select(&NORMALIZATIONS[..]))
        .prop_map(|((axis, ignore), normalization)| SoftmaxLoss { axis, ignore, normalization });
    Ok(Cases::new(corner_cases, random_cases, softmax_loss_op([2, 3, 2], None, Valid)?))
}

/// Returns a strategy that draws the numbers of positions and classes, and an optional ignored
/// label.
fn random_shape() -> impl Strategy<Value = (Axis, Option<i64>)> {
    let axis = (0..=9usize, 1..=12usize, 1..=9usize);
    let axis = axis.prop_map(|(outer, extent, inner)| Axis { outer, extent, inner });
    (axis, prop::option::of(-1..12i64))
}

/// Returns cases of the kernel `accuracy`: no labels, one label and many labels, and a `top_k` of
/// 0, below, equal to and above the number of classes.
fn accuracy_cases() -> Result<Cases<Accuracy>> {
    let cases = [
        ([0, 3, 2], 1, None),
        ([1, 1, 1], 1, None),
        ([1, 3, 1], 1, Some(-1)),
        ([1025, 10, 1], 1, None),
        ([40, 200, 1], 5, None),
        ([7, 6, 5], 0, None),
        ([7, 6, 5], 6, None),
        ([7, 6, 5], 9, Some(2)),
        ([7, 6, 5], 2, Some(2)),
    ];
    let case = |([outer, extent, inner], top_k, ignore): ([usize; 3], _, _)| {
        Ok(Accuracy { axis: Axis::new(outer, extent, inner)?, top_k, ignore })
    };
    let random_cases = (random_shape(), 1..=4usize).prop_map(|((axis, ignore), top_k)| Accuracy {
        axis,
        top_k,
        ignore,
    });
    let corner_cases = cases.into_iter().map(case).collect::<Result<_>>()?;
    Ok(Cases::new(corner_cases, random_cases, case(([2, 3, 2], 1, None))?))
}

/// Classification loss, and whether the kernel call passes an infogain matrix.
type MatrixLoss = (ClassLoss, bool);

/// Returns class scores (for hinge losses) or class probabilities, labels, and an infogain matrix.
/// Some scores and probabilities are 0 or 1.
fn class_operands<T: Element>((op, _): &MatrixLoss, setup: &CaseSetup) -> [NamedValues<T>; 3] {
    let x = match op.kind {
        Hinge | SquaredHinge => setup.stream().take(op.axis.count()),
        _ => setup.stream().uniform(0.0, 1.0, op.axis.count()),
    };
    let matrix = setup.stream().take(op.axis.extent * op.axis.extent);
    [
        ("x", with_zeros_and_ones(x)),
        ("label", labels(&op.axis, op.ignore, setup)),
        ("matrix", matrix),
    ]
}

fn class_loss<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    let device = runner.device;
    try_labelled(
        runner,
        &class_loss_cases(Log)?,
        |case, setup| (class_operands::<T>(case, setup), [("loss", unset(1))]),
        |(op, has_matrix), [x, label, matrix], [loss]| {
            device.class_loss(op, x, label, has_matrix.then_some(matrix), loss)
        },
        |(op, has_matrix), [x, label, matrix], _| {
            [ExpectedOutput::Within(vec![oracle::class_loss(
                op,
                x,
                label,
                has_matrix.then_some(matrix),
            )])]
        },
    )?;
    let (axis, normalization) = (Axis::new(ROWS, 2, 1)?, LossNormalization::None);
    let op = ClassLoss { axis, normalization, ..class_loss_op(Log)? };
    let want = Expected::approx(2.0f64.ln(), 8.0);
    check_loss_of_last_row::<T>(runner, want, |x, label, loss| {
        device.class_loss(&op, x, label, None, loss)
    })?;
    let hinge = class_loss_op(Hinge)?;
    runner.check_refused::<T, T, 1, 1>(
        "an infogain matrix for a hinge loss",
        [("x", 12)],
        [("loss", 1)],
        |[x], [loss]| device.class_loss(&hinge, x, x.slice(0..4)?, Some(x.slice(0..9)?), loss),
    )
}

fn class_loss_backward<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    let device = runner.device;
    let rows = |outer| -> Result<MatrixLoss> {
        let (axis, normalization) = (Axis::new(outer, 3, 1)?, LossNormalization::None);
        Ok((ClassLoss { axis, normalization, ..class_loss_op(SquaredHinge)? }, false))
    };
    let rows = [rows(PERIOD)?, rows(PERIOD * ROW_COPIES)?];
    try_labelled(
        runner,
        &class_loss_cases(LogWithSoftmaxGradient)?.and_large(
            rows,
            ROW_COPIES,
            &["scale", "matrix"],
        ),
        |case, setup| {
            let [x, label, matrix] = class_operands::<T>(case, setup);
            let dx = ("dx", unset(x.1.len()));
            ([x, label, matrix, ("scale", vec![T::from_f64(SCALE)])], [dx])
        },
        |(op, has_matrix), [x, label, matrix, scale], [dx]| {
            device.class_loss_backward(op, x, label, has_matrix.then_some(matrix), scale, dx)
        },
        |(op, has_matrix), [x, label, matrix, _], _| {
            let matrix = has_matrix.then_some(matrix);
            [ExpectedOutput::Within(oracle::class_loss_backward(op, x, label, matrix, SCALE))]
        },
    )
}

const KINDS: [(ClassLossKind, bool); 6] = [
    (Log, false),
    (Log, true),
    (LogWithSoftmaxGradient, false),
    (LogWithSoftmaxGradient, true),
    (Hinge, false),
    (SquaredHinge, false),
];

fn class_loss_op(kind: ClassLossKind) -> Result<ClassLoss> {
    let (axis, normalization) = (Axis::new(2, 3, 2)?, LossNormalization::Valid);
    Ok(ClassLoss { axis, kind, ignore: None, normalization })
}

/// Returns cases of class losses of each kind: no positions, one class, many positions, and every
/// normalization. The tests of wrong operand lengths use the loss kind `refused` and an infogain
/// matrix.
fn class_loss_cases(refused: ClassLossKind) -> Result<Cases<MatrixLoss>> {
    let mut corner_cases = Vec::new();
    for (kind, has_matrix) in KINDS {
        for [outer, extent, inner] in [[0, 3, 2], [1, 1, 1], [1025, 3, 1], [2, 40, 3]] {
            let axis = Axis::new(outer, extent, inner)?;
            corner_cases.push((ClassLoss { axis, ..class_loss_op(kind)? }, has_matrix));
        }
        for normalization in NORMALIZATIONS {
            let axis = Axis::new(4, 5, 3)?;
            corner_cases
                .push((ClassLoss { axis, kind, ignore: Some(2), normalization }, has_matrix));
        }
    }
    let normalization = prop::sample::select(&NORMALIZATIONS[..]);
    let random_cases = (random_shape(), normalization, prop::sample::select(&KINDS[..])).prop_map(
        |((axis, ignore), normalization, (kind, has_matrix))| {
            (ClassLoss { axis, kind, ignore, normalization }, has_matrix)
        },
    );
    Ok(Cases::new(corner_cases, random_cases, (class_loss_op(refused)?, true)))
}
