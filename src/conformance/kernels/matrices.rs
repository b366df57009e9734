//! Checks of the matrix kernels of [`Blas`](crate::kernel::Blas).

use super::{cases::SCALARS, prelude::*};
use crate::{
    conformance::{expected::epsilon, oracle::gemm as oracle},
    device::AnyDevice,
    op::{Gemm, GemmBatch, Gemv, Transpose, Unary},
};

checks! {
    "gemv" of "gemv": gemv();
    "gemm" of "gemm": gemm();
    "gemm_batched" of "gemm_batched": gemm_batched();
    "gemm_with_bias" of "gemm": gemm_with_bias();
}

/// Extents of matrices, near the sizes of SIMD vectors and tiles.
const EXTENTS: [usize; 12] = [0, 1, 2, 3, 5, 8, 13, 17, 33, 64, 65, 130];

/// Value of the elements between the rows of `C`, which a kernel must not change.
const GAP_VALUE: f64 = 77.0;

/// Case of a matrix-matrix or matrix-vector product.
#[derive(Clone, Copy, Debug)]
struct MatrixProduct {
    extents: [usize; 3],
    trans: [bool; 2],
    alpha: f64,
    beta: f64,
    /// For each operand, the length of its gaps between rows, between the matrices of a batch, and
    /// at the end.
    gaps: [usize; 3],
}

impl MatrixProduct {
    const SMALL: Self =
        Self { extents: [3, 5, 4], trans: [false; 2], alpha: 1.0, beta: 0.0, gaps: [0; 3] };

    /// Returns cases of matrix products: every extent with several other extents, every
    /// transposition, every pair of scalars and every placement.
    fn cases() -> Cases<Self> {
        let transposes = [[false, false], [false, true], [true, false], [true, true]];
        let mut products = Vec::new();
        for (i, j) in (0..12).flat_map(|i| (0..4).map(move |j| (i, j))) {
            let extents =
                [EXTENTS[i], EXTENTS[(5 * i + j) % 12], EXTENTS[(7 * i + 3 * j + 1) % 12]];
            products.push(Self { extents, trans: transposes[(i + j) % 4], ..Self::SMALL });
        }
        for trans in transposes {
            products.push(Self { trans, extents: [33, 17, 65], gaps: [2, 1, 3], ..Self::SMALL });
            // A square operand and its transpose have the same length, so a wrong transposition
            // changes only the values of the result.
            let squares = [[6, 6, 6], [9, 2, 9], [2, 9, 9], [33, 33, 33]];
            products.extend(squares.map(|extents| Self { trans, extents, ..Self::SMALL }));
            for (alpha, beta) in SCALARS.into_iter().flat_map(|a| SCALARS.map(|b| (a, b))) {
                products.push(Self { trans, alpha, beta, ..Self::SMALL });
            }
        }
        products.extend(Self::large());
        products.extend(Self::with_gaps());
        let mut fixed_cases: Vec<_> =
            products.into_iter().map(|case| (case, CaseSetup::WHOLE)).collect();
        let case = Self { extents: [5, 7, 6], gaps: [1, 2, 3], ..Self::SMALL };
        fixed_cases.push((case, CaseSetup::FAR));
        fixed_cases.extend(CaseSetup::specials().flat_map(|setup| {
            let case = Self { extents: [4, 9, 5], ..Self::SMALL };
            [(case, setup), (Self { alpha: 0.5, beta: 2.0, trans: [true; 2], ..case }, setup)]
        }));
        let placements = Placement::CORNERS;
        for (i, place) in placements.into_iter().enumerate() {
            let places = [place, placements[(i + 1) % 6], placements[(i + 3) % 6], place, place];
            let setup = CaseSetup { places, ..CaseSetup::WHOLE };
            let gaps = Self { beta: 1.0, gaps: [1; 3], ..Self::SMALL };
            fixed_cases.extend([(Self::SMALL, setup), (gaps, setup)]);
        }
        let extent = || prop_oneof![0..20usize, 0..70usize];
        let scalar = || prop::sample::select(&SCALARS[..]);
        let gap = || prop_oneof![Just(0usize), 0..4usize];
        let shape = ([extent(), extent(), extent()], any::<[bool; 2]>(), [gap(), gap(), gap()]);
        let product =
            |((extents, trans, gaps), alpha, beta)| Self { extents, trans, alpha, beta, gaps };
        Cases::from_fixed(fixed_cases, (shape, scalar(), scalar()).prop_map(product))
    }

    /// Returns matrix products with sums of more than 256, 512 and 4,096 terms, and with more than
    /// 1,024 rows or columns.
    fn large() -> impl Iterator<Item = Self> {
        let extents = [[3, 5, 300], [5, 3, 513], [2, 1030, 3], [1030, 2, 3], [3, 300, 2]];
        let extents = extents.into_iter().chain([[513, 3, 2], [1, 1030, 9], [1030, 1, 9]]);
        let extents = extents.chain([[1, 3, 300], [3, 1, 513], [3, 4, 4099]]);
        let transposes = [[false, false], [true, false], [false, true], [true, true]];
        extents
            .flat_map(move |extents| transposes.map(|trans| Self { trans, extents, ..Self::SMALL }))
    }

    /// Returns matrix products whose `C` has gaps between rows, between matrices and at the end.
    /// Special code in a kernel, for some values of α and β or for k = 0, might overwrite the gaps.
    fn with_gaps() -> impl Iterator<Item = Self> {
        let extents = [[3, 5, 4], [1, 5, 4], [5, 1, 4], [1, 1, 1], [3, 5, 0], [17, 33, 9]];
        let scalars = [[1.0, 0.0], [1.0, 1.0], [0.0, 0.0], [0.0, 2.0], [0.5, 2.0]];
        extents.into_iter().flat_map(move |extents| {
            scalars.into_iter().flat_map(move |[alpha, beta]| {
                [[0, 0, 3], [2, 1, 4]].map(|gaps| Self {
                    extents,
                    alpha,
                    beta,
                    gaps,
                    ..Self::SMALL
                })
            })
        })
    }

    fn gemm<T: Element>(&self) -> Gemm<T> {
        let [m, n, k] = self.extents;
        let [trans_a, trans_b] = self.trans.map(transpose);
        let op = Gemm::new(m, n, k).transpose(trans_a, trans_b);
        let [a, b, c] = self.gaps;
        let op = op.leading_dims(op.lda + a, op.ldb + b, op.ldc + c);
        op.alpha(T::acc(self.alpha)).beta(T::acc(self.beta))
    }

    fn gemv<T: Element>(&self) -> Gemv<T> {
        let [m, n, _] = self.extents;
        let op = Gemv::new(transpose(self.trans[0]), m, n).leading_dim(n + self.gaps[0]);
        op.alpha(T::acc(self.alpha)).beta(T::acc(self.beta))
    }
}

fn transpose(yes: bool) -> Transpose {
    if yes { Transpose::Yes } else { Transpose::No }
}

/// Returns the content of `C` before a matrix product. Elements that the kernel must not read are
/// NaN, and elements that the kernel must not change are [`GAP_VALUE`].
fn initial_c<T: Element>(op: &Gemm<T>, starts: &[usize], values: &[T]) -> Vec<T> {
    let mut c = vec![T::from_f64(GAP_VALUE); values.len()];
    if op.n == 0 {
        return c;
    }
    for row in starts.iter().flat_map(|start| (0..op.m).map(move |i| start + i * op.ldc)) {
        let old_row =
            if op.beta.to_f64() == 0.0 { unset(op.n) } else { values[row..][..op.n].to_vec() };
        c[row..][..op.n].copy_from_slice(&old_row);
    }
    c
}

/// Number of matrix products in a batch, whether all products share one `A`, and whether all
/// products share one `B`.
type Batch = (usize, [bool; 2]);

fn gemm<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    check_matrix_products::<T>(
        runner,
        &MatrixProduct::cases().with(&[(1, [false; 2])]),
        1,
        |op, _, [a, b], c| runner.device.gemm(op, a, b, c),
    )?;
    gemm_of_equal_operands::<T>(runner)?;
    gemm_of_special_values::<T>(runner)
}

/// Checks the product of a square matrix with itself, where `A` and `B` are the same view.
fn gemm_of_equal_operands<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    let transposes = [false, true].into_iter().flat_map(|a| [false, true].map(|b| [a, b]));
    let cases = transposes.flat_map(|trans| [4, 33, 130].map(|n| (n, trans)));
    runner.try_cases(cases, |&(n, trans)| {
        let op = MatrixProduct { extents: [n; 3], trans, ..MatrixProduct::SMALL }.gemm::<T>();
        let (a, c) = (Values::Integers.stream(1).take::<T>(n * n), unset::<T>(n * n));
        let want = oracle::gemm(&op, &wide(&a), &wide(&a), &wide(&c));
        let [got] = runner.call(&CaseSetup::WHOLE, [("a", &a)], [("c", &c)], |[a], [c]| {
            runner.device.gemm(&op, a, a, c)
        })?;
        Values::Integers.compare("c", &got, &want)
    })
}

/// Checks that a NaN or infinity in `A` or `B` reaches exactly the dependent elements of `C`, even
/// if the other factors are 0.
fn gemm_of_special_values<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    let values = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    let factors = [0.0, 1.0];
    let extents = [[3, 5, 4], [1, 9, 6], [9, 1, 6], [33, 17, 65], [64, 64, 64]];
    let cases = extents.into_iter().flat_map(|extents| {
        values.into_iter().flat_map(move |value| factors.map(|factor| (extents, value, factor)))
    });
    runner.try_cases(cases, |&(extents, value, factor)| {
        let op = MatrixProduct { extents, ..MatrixProduct::SMALL }.gemm::<T>();
        let Gemm { m, n, k, .. } = op;
        for in_a in [true, false] {
            let mut operands = [m * k, k * n].map(|len| vec![T::from_f64(factor); len]);
            // The NaN or infinity is in the last row of `A` or the last column of `B`, in the
            // middle of the sum over k.
            let (operand, at) =
                if in_a { (0, (m - 1) * k + k / 2) } else { (1, k / 2 * n + n - 1) };
            operands[operand][at] = T::from_f64(value);
            let [a, b] = &operands;
            let c = unset::<T>(m * n);
            let want = oracle::gemm(&op, &wide(a), &wide(b), &wide(&c));
            let [got] = runner.call(
                &CaseSetup::WHOLE,
                [("a", a), ("b", b)],
                [("c", &c)],
                |[a, b], [c]| runner.device.gemm(&op, a, b, c),
            )?;
            let want: Vec<_> = want.iter().map(|want| want.value).collect();
            expect_nearest(if in_a { "c" } else { "c with NaN or ∞ in b" }, &got, &want)?;
        }
        Ok(())
    })
}

fn gemm_batched<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    let batches: Vec<Batch> = (0..105).map(|i| (i % 5, [i % 3 == 0, i % 7 == 0])).collect();
    let mut cases = MatrixProduct::cases();
    cases.fixed_cases.retain(|(case, _)| case.extents.iter().product::<usize>() < 20_000);
    check_matrix_products::<T>(runner, &cases.with(&batches), 3, |op, batch, [a, b], c| {
        runner.device.gemm_batched(op, batch, a, b, c)
    })?;
    let op = Gemm::<T>::new(3, 5, 4);
    let overlapping = GemmBatch { count: 3, stride_a: 12, stride_b: 20, stride_c: 14 };
    let invalid = "a stride_c of 14 for matrices of 15 elements";
    let inputs = [("a", 36), ("b", 60)];
    runner.check_refused::<T, T, 2, 1>(invalid, inputs, [("c", 45)], |[a, b], [c]| {
        runner.device.gemm_batched(&op, &overlapping, a, b, c)
    })?;
    // `A` and `B` may be the same view.
    runner.try_cases([1, 4, 17], |&n| {
        let op = Gemm::<T>::new(n, n, n);
        let (a, c) = (Values::Integers.stream(1).take::<T>(3 * n * n), unset::<T>(3 * n * n));
        let batch = GemmBatch { count: 3, stride_a: n * n, stride_b: n * n, stride_c: n * n };
        let (a_wide, c_wide) = (wide(&a), wide(&c));
        let matrices = a_wide.chunks(n * n).zip(c_wide.chunks(n * n));
        let want = matrices.flat_map(|(a, c)| oracle::gemm(&op, a, a, c)).collect::<Vec<_>>();
        let [got] = runner.call(&CaseSetup::WHOLE, [("a", &a)], [("c", &c)], |[a], [c]| {
            runner.device.gemm_batched(&op, &batch, a, a, c)
        })?;
        Values::Integers.compare("c of equal operands", &got, &want)
    })
}

/// Checks the results of a kernel for batches of matrix products. The kernel must refuse a batch of
/// `refused_count` matrix products if an operand or a leading dimension is too small.
fn check_matrix_products<T: Element>(
    runner: &CheckRunner<'_>,
    cases: &Cases<(MatrixProduct, Batch)>,
    refused_count: usize,
    kernel: impl Fn(
        &Gemm<T>,
        &GemmBatch,
        [View<'_, T, AnyDevice>; 2],
        ViewMut<'_, T, AnyDevice>,
    ) -> Result<()>,
) -> Verdict {
    runner.try_all(cases, |&(case, (count, shared)), setup| {
        let op = case.gemm::<T>();
        let spans = <[usize; 3]>::from(op.spans()?);
        let is_shared = [shared[0], shared[1], false];
        let stride = |i: usize| if is_shared[i] { 0 } else { spans[i] + case.gaps[i] };
        let [stride_a, stride_b, stride_c] = [0, 1, 2].map(stride);
        let mut stream = setup.stream();
        let [mut a, mut b, c] = [0, 1, 2].map(|i| {
            let len = count.checked_sub(1).map_or(0, |last| last * stride(i) + spans[i]);
            stream.take::<T>(len + case.gaps[i])
        });
        if case.alpha == 0.0 || op.k == 0 {
            // With α = 0 or k = 0, the kernel must read neither `A` nor `B`.
            (a, b) = (unset(a.len()), unset(b.len()));
        }
        let starts: Vec<_> = (0..count).map(|i| i * stride_c).collect();
        let c = initial_c(&op, &starts, &c);
        let (a_wide, b_wide, c_wide) = (wide(&a), wide(&b), wide(&c));
        let mut want = oracle::gemm(&Gemm { m: 0, ..op }, &[], &[], &c_wide);
        for (i, start) in starts.into_iter().enumerate() {
            let (a, b) = (&a_wide[i * stride_a..], &b_wide[i * stride_b..]);
            let product = oracle::gemm(&op, a, b, &c_wide[start..]);
            want[start..start + spans[2]].copy_from_slice(&product[..spans[2]]);
        }
        let batch = GemmBatch { count, stride_a, stride_b, stride_c };
        let [got] = runner.call(setup, [("a", &a), ("b", &b)], [("c", &c)], |inputs, [c]| {
            kernel(&op, &batch, inputs, c)
        })?;
        setup.values.compare("c", &got, &want)
    })?;
    let (op, batch) =
        (Gemm::<T>::new(3, 5, 4), GemmBatch { count: 3, stride_a: 12, stride_b: 20, stride_c: 15 });
    let [a, b, c] = [12, 20, 15].map(|len| len * refused_count);
    let short_operands = [("a", a), ("b", b), ("c", c)].map(|(name, len)| {
        let max_len = |other| if other == name { len - 1 } else { usize::MAX };
        let lengths = [a.min(max_len("a")), b.min(max_len("b")), c.min(max_len("c"))];
        (op, lengths, format!("`{name}` of {} elements instead of at least {len}", len - 1))
    });
    let narrow_matrices = [("lda", [3, 5, 5], 4), ("ldb", [4, 4, 5], 5), ("ldc", [4, 5, 4], 5)];
    let narrow_matrices = narrow_matrices.map(|(name, [lda, ldb, ldc], least)| {
        let invalid = format!("{name} {} instead of at least {least}", least - 1);
        (op.leading_dims(lda, ldb, ldc), [a, b, c], invalid)
    });
    runner.try_cases(
        short_operands.into_iter().chain(narrow_matrices),
        |(op, [a, b, c], invalid)| {
            let inputs = [("a", *a), ("b", *b)];
            runner.check_refused::<T, T, 2, 1>(invalid, inputs, [("c", *c)], |ab, [c]| {
                kernel(op, &batch, ab, c)
            })
        },
    )
}

/// Returns the expected result of a GEMM with bias, given the expected result of the GEMM. A device
/// may round each element to `T` after the sum and again after the bias is added.
fn with_bias<T: Element>(sum: Expected, bias: f64, function: Option<Unary<f64>>) -> Expected {
    let mut want = sum;
    want.add(bias);
    want.roundings += epsilon::<T>() / epsilon::<T::Acc>() + 2.0;
    want.inexact = size_of::<T>() == 2;
    if let Some(function) = function {
        // The slopes are at most 1, so that ReLU does not increase the error.
        want.value = function.eval(want.value);
        want.inexact |= function == LEAKY_RELU;
    }
    want
}

const RELU: Unary<f64> = Unary::Relu { slope: 0.0 };
const LEAKY_RELU: Unary<f64> = Unary::Relu { slope: 0.3 };

fn gemm_with_bias<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    let device = runner.device;
    // The check `gemm` tests the products, so a quarter of its small cases is enough.
    let cases = MatrixProduct::cases().fixed_cases.into_iter();
    let cases = cases.filter(|(case, _)| case.extents.iter().product::<usize>() < 20_000);
    runner.try_cases(cases.step_by(4), |(case, setup)| {
        let case = MatrixProduct { gaps: [case.gaps[0], case.gaps[1], 0], ..*case };
        let (op, [m, n, k]) = (case.gemm::<T>(), case.extents);
        // ReLU of −∞ may be 0 or NaN, so special values are tested without ReLU.
        let functions = [None, Some(RELU), Some(LEAKY_RELU)];
        let of_specials = setup.values == Values::Specials;
        let function = if of_specials { None } else { functions[(m + n + k) % 3] };
        let (a_len, b_len, _) = op.spans()?;
        let mut stream = setup.stream();
        let [mut a, mut b, bias] =
            [a_len + case.gaps[0], b_len + case.gaps[1], n].map(|len| stream.take::<T>(len));
        if case.alpha == 0.0 || k == 0 {
            (a, b) = (unset(a.len()), unset(b.len()));
        }
        let (_, c) = output_before_kernel(("c", stream.take(m * n)), case.beta);
        let sums = oracle::gemm(&op, &wide(&a), &wide(&b), &wide(&c)).into_iter();
        let columns = wide(&bias).into_iter().cycle();
        let want: Vec<_> =
            sums.zip(columns).map(|(sum, bias)| with_bias::<T>(sum, bias, function)).collect();
        let inputs = [("a", &a[..]), ("b", &b), ("bias", &bias)];
        let [got] = runner.call(setup, inputs, [("c", &c)], |[a, b, bias], [c]| {
            device.gemm_with_bias(&op, a, b, bias, function.map(Unary::cast), c)
        })?;
        setup.values.compare("c", &got, &want)
    })?;
    // A NaN in `A` reaches its row of `C` through ReLU.
    let mut a = [T::from_f64(1.0); 12];
    a[5] = T::from_f64(f64::NAN);
    let (b, bias, c) = (vec![T::from_f64(1.0); 20], vec![T::from_f64(-9.0); 5], unset(15));
    let want = [[0.0; 5], [f64::NAN; 5], [0.0; 5]].concat();
    let inputs = [("a", &a[..]), ("b", &b), ("bias", &bias)];
    let op = Gemm::<T>::new(3, 5, 4);
    let call = |op: &Gemm<T>, [a, b, bias]: [View<'_, T, AnyDevice>; 3], c: ViewMut<'_, T, _>| {
        device.gemm_with_bias(op, a, b, bias, Some(RELU.cast()), c)
    };
    let [got] = runner
        .call(&CaseSetup::WHOLE, inputs, [("c", &c[..])], |inputs, [c]| call(&op, inputs, c))?;
    expect_nearest("c with NaN in a", &got, &want)?;
    let wide_c = op.leading_dims(4, 5, 6);
    let refused = [
        (op, [11, 20, 5, 15], "`a` of 11 elements instead of at least 12"),
        (op, [12, 19, 5, 15], "`b` of 19 elements instead of at least 20"),
        (op, [12, 20, 4, 15], "`bias` of 4 elements instead of 5"),
        (op, [12, 20, 6, 15], "`bias` of 6 elements instead of 5"),
        (op, [12, 20, 5, 14], "`c` of 14 elements instead of 15"),
        (op, [12, 20, 5, 16], "`c` of 16 elements instead of 15"),
        (wide_c, [12, 20, 5, 18], "a `C` with gaps between rows"),
    ];
    runner.try_cases(refused, |(op, [a, b, bias, c], invalid)| {
        let inputs = [("a", *a), ("b", *b), ("bias", *bias)];
        runner.check_refused::<T, T, 3, 1>(invalid, inputs, [("c", *c)], |inputs, [c]| {
            call(op, inputs, c)
        })
    })
}

fn gemv<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    runner.try_all(&MatrixProduct::cases(), |case, setup| {
        let op = case.gemv::<T>();
        let mut stream = setup.stream();
        let (x_len, y_len) = op.lengths();
        let mut a = stream.take::<T>(op.m.saturating_sub(1) * op.lda + op.n + case.gaps[1]);
        let mut x = stream.take::<T>(x_len);
        if case.alpha == 0.0 {
            // With α = 0, the kernel must read neither `A` nor `x`.
            (a, x) = (unset(a.len()), unset(x.len()));
        }
        let (_, y) = output_before_kernel(("y", stream.take(y_len)), case.beta);
        let want = oracle::gemv(&op, &wide(&a), &wide(&x), &wide(&y));
        let [got] = runner.call(setup, [("a", &a), ("x", &x)], [("y", &y)], |[a, x], [y]| {
            runner.device.gemv(&op, a, x, y)
        })?;
        setup.values.compare("y", &got, &want)
    })?;
    // `x` may be a part of the view of `A`.
    runner.try_cases([Transpose::No, Transpose::Yes], |&trans| {
        let op = Gemv::<T>::new(trans, 9, 9);
        let (a, y) = (Values::Integers.stream(1).take::<T>(81), unset::<T>(9));
        let want = oracle::gemv(&op, &wide(&a), &wide(&a[18..27]), &wide(&y));
        let [got] = runner.call(&CaseSetup::WHOLE, [("a", &a)], [("y", &y)], |[a], [y]| {
            runner.device.gemv(&op, a, a.slice(18..27)?, y)
        })?;
        Values::Integers.compare("y with `x` in `a`", &got, &want)
    })?;
    let op = Gemv::<T>::new(Transpose::No, 3, 4);
    let wrong_lengths = [("a", 11, 12), ("x", 5, 4), ("x", 3, 4), ("y", 4, 3), ("y", 2, 3)];
    runner.try_cases(wrong_lengths, |&(name, found, wanted)| {
        let len = |operand, len| if operand == name { found } else { len };
        let (inputs, y) = ([("a", len("a", 12)), ("x", len("x", 4))], [("y", len("y", 3))]);
        let invalid = format!("`{name}` of {found} elements instead of {wanted}");
        runner.check_refused::<T, T, 2, 1>(&invalid, inputs, y, |[a, x], [y]| {
            runner.device.gemv(&op, a, x, y)
        })
    })
}
