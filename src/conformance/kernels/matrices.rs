//! [`Blas`](crate::kernel::Blas): matrices.

use super::vector_cases::{SCALARS, refused};
use crate::{
    conformance::{
        runner::CheckRunner,
        failure::Verdict,
        operand::{Operand, Placement, unset},
        oracle::gemm,
        values::{Values, wide},
    },
    device::Device,
    element::Element,
    op::{Gemm, GemmBatch, Gemv, Transpose},
};
use proptest::prelude::*;

/// Extents about the sizes of vectors and tiles.
const EXTENTS: [usize; 12] = [0, 1, 2, 3, 5, 8, 13, 17, 33, 64, 65, 130];

/// What lies between the rows of a result and must stay.
const GAP: f64 = 77.0;

/// Operands of a product, or of a batch of them.
#[derive(Clone, Copy, Debug)]
struct Case {
    extents: [usize; 3],
    trans: [bool; 2],
    alpha: f64,
    beta: f64,
    /// Elements of each operand between its rows, and between those of a batch and behind them.
    gaps: [usize; 3],
    values: Values,
    seed: u64,
    places: [Placement; 3],
}

impl Case {
    const SMALL: Self = Self {
        extents: [3, 5, 4],
        trans: [false; 2],
        alpha: 1.0,
        beta: 0.0,
        gaps: [0; 3],
        values: Values::Integers,
        seed: 1,
        places: [Placement::WHOLE; 3],
    };

    /// Every extent with several others; every way to transpose, pair of scalars and placement.
    fn corners() -> Vec<Self> {
        let transposes = [[false, false], [false, true], [true, false], [true, true]];
        let mut cases = Vec::new();
        for (i, j) in (0..12).flat_map(|i| (0..4).map(move |j| (i, j))) {
            let extents =
                [EXTENTS[i], EXTENTS[(5 * i + j) % 12], EXTENTS[(7 * i + 3 * j + 1) % 12]];
            cases.push(Self { extents, trans: transposes[(i + j) % 4], ..Self::SMALL });
        }
        for trans in transposes {
            cases.push(Self { trans, extents: [33, 17, 65], gaps: [2, 1, 3], ..Self::SMALL });
            // Square operands have the same lengths transposed.
            let squares = [[6, 6, 6], [9, 2, 9], [2, 9, 9], [33, 33, 33]];
            cases.extend(squares.map(|extents| Self { trans, extents, ..Self::SMALL }));
            for (alpha, beta) in SCALARS.into_iter().flat_map(|a| SCALARS.map(|b| (a, b))) {
                cases.push(Self { trans, alpha, beta, ..Self::SMALL });
            }
        }
        for (i, place) in Placement::CORNERS.into_iter().enumerate() {
            let places = [place, Placement::CORNERS[(i + 1) % 6], Placement::CORNERS[(i + 3) % 6]];
            cases.push(Self { places, ..Self::SMALL });
            cases.push(Self { places, beta: 1.0, gaps: [1; 3], ..Self::SMALL });
        }
        cases
    }

    fn any() -> BoxedStrategy<Self> {
        let extent = || prop_oneof![0..20usize, 0..70usize];
        let scalar = || prop::sample::select(&SCALARS[..]);
        let gap = || prop_oneof![Just(0usize), 0..4usize];
        let shape = ([extent(), extent(), extent()], any::<[bool; 2]>(), [gap(), gap(), gap()]);
        let places = [Placement::any(), Placement::any(), Placement::any()];
        (shape, scalar(), scalar(), Values::any(), any::<u64>(), places)
            .prop_map(|((extents, trans, gaps), alpha, beta, values, seed, places)| Self {
                extents,
                trans,
                alpha,
                beta,
                gaps,
                values,
                seed,
                places,
            })
            .boxed()
    }

    fn gemm<T: Element>(&self) -> Gemm<T> {
        let [m, n, k] = self.extents;
        let [trans_a, trans_b] = self.trans.map(transpose);
        let op = Gemm::with_transpose(trans_a, trans_b, m, n, k);
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

/// Fills the parts of a result that a product writes: with NaN if it overwrites them. What is
/// between them holds [`GAP`].
fn result<T: Element>(op: &Gemm<T>, starts: &[usize], values: &[T]) -> Vec<T> {
    let mut c = vec![T::from_f64(GAP); values.len()];
    if op.n == 0 {
        return c;
    }
    for row in starts.iter().flat_map(|start| (0..op.m).map(move |i| start + i * op.ldc)) {
        let old =
            if op.beta.to_f64() == 0.0 { unset(op.n) } else { values[row..][..op.n].to_vec() };
        c[row..][..op.n].copy_from_slice(&old);
    }
    c
}

pub(super) fn gemm<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let test = |case: &Case| {
        let op = case.gemm::<T>();
        let spans = op.spans()?;
        let mut draw = case.values.from(case.seed);
        let spans = [spans.0, spans.1, spans.2];
        let [mut xs, mut ys, zs] = [0, 1, 2].map(|i| draw.take::<T>(spans[i] + case.gaps[i]));
        if case.alpha == 0.0 || op.k == 0 {
            (xs, ys) = (unset(xs.len()), unset(ys.len())); // not read
        }
        let zs = result(&op, &[0], &zs);
        let a = Operand::input(bench.device, &xs, case.places[0])?;
        let b = Operand::input(bench.device, &ys, case.places[1])?;
        let mut c = Operand::output(bench.device, &zs, case.places[2])?;
        bench.device.gemm(&op, a.view()?, b.view()?, c.view_mut()?)?;
        a.unchanged("a")?;
        b.unchanged("b")?;
        let want = gemm::gemm(&op, &wide(&xs), &wide(&ys), &wide(&zs));
        case.values.judge("c", &c.finish()?, &want)
    };
    bench.all(Case::corners(), test)?;
    bench.each(Case::any(), test)?;
    refuses_products(bench, Gemm::<T>::new(3, 5, 4), None)
}

/// Tries that a product refuses operands that are too short, and leading dimensions.
fn refuses_products<T: Element, D: Device>(
    bench: &CheckRunner<'_, D>,
    op: Gemm<T>,
    batch: Option<GemmBatch>,
) -> Verdict {
    let count = batch.map_or(1, |batch| batch.count);
    let whole = [12 * count, 20 * count, 15 * count];
    let short = |i: usize| {
        let mut lengths = whole;
        lengths[i] -= 1;
        (lengths, op)
    };
    let narrow = [op.leading_dims(3, 5, 5), op.leading_dims(4, 4, 5), op.leading_dims(4, 5, 4)];
    let cases = [short(0), short(1), short(2)].into_iter().chain(narrow.map(|op| (whole, op)));
    bench.all(cases, |(lengths, op)| {
        let [a, b, c] = lengths.map(|len| vec![T::from_f64(1.0); len]);
        let a = Operand::input(bench.device, &a, Placement::WHOLE)?;
        let b = Operand::input(bench.device, &b, Placement::WHOLE)?;
        let mut c = Operand::output(bench.device, &c, Placement::WHOLE)?;
        let (a, b, out) = (a.view()?, b.view()?, c.view_mut()?);
        let result = match &batch {
            None => bench.device.gemm(op, a, b, out),
            Some(batch) => bench.device.gemm_batched(op, batch, a, b, out),
        };
        refused(result, "an operand or a leading dimension that is too short")?;
        c.unchanged("c")
    })
}

pub(super) fn gemm_batched<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let test = |&(case, count, shared): &(Case, usize, [bool; 2])| {
        let op = case.gemm::<T>();
        let (a, b, c) = op.spans()?;
        let stride = |i: usize, span| if shared[i] { 0 } else { span + case.gaps[i] };
        let (stride_a, stride_b, stride_c) = (stride(0, a), stride(1, b), c + case.gaps[2]);
        let batch = GemmBatch { count, stride_a, stride_b, stride_c };
        let len = |stride: usize, span| count.checked_sub(1).map_or(0, |last| last * stride + span);
        let mut draw = case.values.from(case.seed);
        let (mut xs, mut ys) = (draw.take::<T>(len(stride_a, a)), draw.take(len(stride_b, b)));
        if case.alpha == 0.0 || op.k == 0 {
            (xs, ys) = (unset(xs.len()), unset(ys.len()));
        }
        let starts: Vec<_> = (0..count).map(|i| i * stride_c).collect();
        let zs = result(&op, &starts, &draw.take(len(stride_c, c)));
        let a = Operand::input(bench.device, &xs, case.places[0])?;
        let b = Operand::input(bench.device, &ys, case.places[1])?;
        let mut c = Operand::output(bench.device, &zs, case.places[2])?;
        bench.device.gemm_batched(&op, &batch, a.view()?, b.view()?, c.view_mut()?)?;
        let (xs, ys, zs) = (wide(&xs), wide(&ys), wide(&zs));
        let mut want = gemm::gemm(&Gemm { m: 0, ..op }, &[], &[], &zs);
        for (i, start) in starts.into_iter().enumerate() {
            let (x, y) = (&xs[i * stride_a..], &ys[i * stride_b..]);
            let one = gemm::gemm(&op, x, y, &zs[start..]);
            let end = want.len().min(start + op.spans()?.2);
            want[start..end].copy_from_slice(&one[..end - start]);
        }
        case.values.judge("c", &c.finish()?, &want)
    };
    let small = |case: &Case| case.extents.iter().product::<usize>() < 40_000;
    let corners = Case::corners().into_iter().filter(small).enumerate();
    bench.all(corners.map(|(i, case)| (case, i % 5, [i % 3 == 0, i % 7 == 0])), test)?;
    bench.each((Case::any(), 0..5usize, any::<[bool; 2]>()), test)?;
    let batch = GemmBatch { count: 3, stride_a: 12, stride_b: 20, stride_c: 15 };
    refuses_products(bench, Gemm::<T>::new(3, 5, 4), Some(batch))
}

pub(super) fn gemv<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let test = |case: &Case| {
        let op = case.gemv::<T>();
        let mut draw = case.values.from(case.seed);
        let (len_x, len_y) = op.lengths();
        let (rows, columns) = (op.m.saturating_sub(1), op.n);
        let xs = draw.take::<T>(rows * op.lda + columns + case.gaps[1]);
        let (ys, mut zs) = (draw.take::<T>(len_x), draw.take::<T>(len_y));
        if case.beta == 0.0 {
            zs = unset(len_y);
        }
        let a = Operand::input(bench.device, &xs, case.places[0])?;
        let x = Operand::input(bench.device, &ys, case.places[1])?;
        let mut y = Operand::output(bench.device, &zs, case.places[2])?;
        bench.device.gemv(&op, a.view()?, x.view()?, y.view_mut()?)?;
        let want = gemm::gemv(&op, &wide(&xs), &wide(&ys), &wide(&zs));
        case.values.judge("y", &y.finish()?, &want)
    };
    bench.all(Case::corners(), test)?;
    bench.each(Case::any(), test)?;
    let op = Gemv::<T>::new(Transpose::No, 3, 4);
    let wrong = [[11, 4, 3], [12, 5, 3], [12, 3, 3], [12, 4, 4], [12, 4, 2]];
    bench.all(wrong, |lengths: &[usize; 3]| {
        let [a, x, y] = lengths.map(|len| vec![T::from_f64(1.0); len]);
        let a = Operand::input(bench.device, &a, Placement::WHOLE)?;
        let x = Operand::input(bench.device, &x, Placement::WHOLE)?;
        let mut y = Operand::output(bench.device, &y, Placement::WHOLE)?;
        refused(bench.device.gemv(&op, a.view()?, x.view()?, y.view_mut()?), "wrong lengths")?;
        y.unchanged("y")
    })
}
