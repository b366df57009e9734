use super::*;
use crate::{
    element::bf16,
    host::{
        Workers,
        blas::{
            gemm::gemm,
            x86::{
                bf16_pack::{PairSource, pack},
                bf16_unit::{Bf16Unit, with_unit},
            },
        },
        simd::level::with_level,
        testing::{fractions, threads},
    },
    op::{
        Gemm, RngKey,
        Transpose::{self, No, Yes},
    },
};
use rand_core::Rng;

/// Returns whether the processor has `vdpbf16ps`. If the processor lacks it, prints that the test
/// is skipped.
fn has_vdpbf16ps() -> bool {
    if !is_available() {
        println!("SKIPPED: the processor lacks vdpbf16ps");
    }
    is_available()
}

/// Returns `a·b + sum`, like one of the two multiply-adds of `vdpbf16ps`. A result of less than
/// 2⁻¹²⁶ in magnitude before rounding becomes zero.
fn multiply_add(a: bf16, b: bf16, sum: f32) -> f32 {
    let flush = |x: f32| if x.abs() < f32::MIN_POSITIVE { 0f32.copysign(x) } else { x };
    let [a, b, sum] = [a.to_f32(), b.to_f32(), sum].map(flush);
    flush(a.mul_add(b, sum))
}

/// Returns whether two sums have equal bits or are both NaN.
fn is_same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

/// Returns `len` random `bf16` whose exponent field is less than `exponents`.
fn random_bits(tag: u64, len: usize, exponents: u32) -> Vec<bf16> {
    let mut rng = RngKey::new(9).child(tag).rng();
    let element = |bits: u32| (bits & 0x807f) | (((bits >> 16) % exponents) << 7);
    (0..len).map(|_| bf16::from_bits(element(rng.next_u32()) as u16)).collect()
}

/// Packs rows of `A` or columns of `B` that are contiguous along k.
fn packed(x: &[bf16], mn: usize, k: usize, is_a: bool) -> Vec<f32> {
    let words = mn.next_multiple_of(BLOCK_ROWS) * k.next_multiple_of(2 * TILE_ROWS) / 2;
    let mut tiles = vec![f32::NAN; words];
    let (first, order) = ([0, 0], PAIR_ORDER);
    let source = PairSource { x, ld: k, k_contiguous: true, first, mn, k, transpose: !is_a, order };
    pack(&source, &mut tiles);
    tiles
}

/// Compares sums with an emulation. The three ranges of exponents give subnormal operands, products
/// and sums; ordinary numbers; and infinities and NaN.
#[test]
fn sums_are_chains_of_multiply_adds_that_flush_subnormals() {
    if !has_vdpbf16ps() {
        return;
    }
    for (exponents, (rows, columns, k)) in
        [(66, (37, 32, 9)), (127, (40, 17, 64)), (256, (19, 16, 3)), (256, (1, 1, 1))]
    {
        let a = random_bits(u64::from(exponents), rows * k, exponents);
        let b = random_bits(1000 + u64::from(exponents), columns * k, exponents);
        let (packed_a, packed_b) = (packed(&a, rows, k, true), packed(&b, columns, k, false));
        let mut sums = vec![1.5; rows.next_multiple_of(BLOCK_ROWS) * BLOCK_ROWS];
        let shape = [rows, columns, k.div_ceil(2)];
        multiply_panels(shape, &packed_a, &packed_b, false, &mut sums);
        let mut twice = sums.clone();
        multiply_panels(shape, &packed_a, &packed_b, true, &mut twice);
        let mut zeros = 0;
        for (i, j) in (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))) {
            // If k is odd, zeros complete the last pair. Adding their product turns a sum of -0
            // into 0.
            let zeros_of_last_pair = [bf16::ZERO; 1][..k % 2].iter();
            let factors = a[i * k..][..k].iter().zip(&b[j * k..][..k]);
            let factors = factors.chain(zeros_of_last_pair.clone().zip(zeros_of_last_pair));
            let expected = factors.fold(0.0, |sum, (&a, &b)| multiply_add(a, b, sum));
            let at = i * BLOCK_ROWS + j;
            assert!(
                is_same(sums[at], expected) && is_same(twice[at], expected + expected),
                "exponents below {exponents}, sum {i}, {j}: got {} and {}, expected {expected}",
                sums[at],
                twice[at]
            );
            zeros += usize::from(expected == 0.0);
        }
        assert!(exponents != 66 || zeros > rows);
    }
}

const TRANSPOSES: [(Transpose, Transpose); 4] = [(No, No), (No, Yes), (Yes, No), (Yes, Yes)];

/// The shapes have one or several blocks along k, odd values of k, and tiles of both shapes.
/// Without `vdpbf16ps`, GEMM computes the first shape on the unpacked path.
#[test]
fn gemm_is_bit_identical_with_and_without_vdpbf16ps() {
    if !has_vdpbf16ps() {
        return;
    }
    let shapes =
        [(9, 7, 601), (20, 130, 300), (53, 48, 1025), (33, 200, 513), (3, 1030, 37), (770, 33, 65)];
    let scalars = [(1.0, 0.0), (-0.7, 1.3), (0.5, 1.0)];
    for (case, (m, n, k)) in shapes.into_iter().enumerate() {
        for (trans_a, trans_b) in TRANSPOSES {
            let (alpha, beta) = scalars[case % 3];
            let op = Gemm::<bf16>::new(m, n, k).transpose(trans_a, trans_b);
            let op = op.alpha(alpha).beta(beta);
            let op = op.leading_dims(op.lda + 1, op.ldb + 3, op.ldc + 2);
            let stored_rows = |trans, rows, columns| if trans == No { rows } else { columns };
            let a = fractions::<bf16>(1, stored_rows(trans_a, m, k) * op.lda);
            let b = fractions::<bf16>(2, stored_rows(trans_b, k, n) * op.ldb);
            let c0 = fractions::<bf16>(3, m * op.ldc);
            let run = |workers: &Workers| {
                let mut c = c0.clone();
                gemm(workers, &op, &a, &b, &mut c).unwrap();
                c.into_iter().map(bf16::to_bits).collect::<Vec<_>>()
            };
            let mut widened = Vec::new();
            with_level(SimdLevel::Avx512, || widened = run(&Workers::sequential()));
            with_unit(Bf16Unit::Vdpbf16ps, || {
                for workers in &threads() {
                    assert!(run(workers) == widened, "{op:?}, {} threads", workers.count());
                }
            });
        }
    }
}
