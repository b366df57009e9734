//! Sums of rows of `f32` with AVX2. Results are bit-identical to those of `Reducer::reduce_slice`.

use std::{
    arch::x86_64::{
        __m256, _mm256_add_ps, _mm256_castpd_ps, _mm256_castps_pd, _mm256_loadu_ps,
        _mm256_loadu_si256, _mm256_maskload_ps, _mm256_permute_ps, _mm256_permute2f128_ps,
        _mm256_setzero_ps, _mm256_shuffle_ps, _mm256_unpackhi_pd, _mm256_unpacklo_pd,
    },
    mem::transmute,
};

/// Number of `f32` elements in an AVX2 vector.
const WIDTH: usize = 8;

/// Number of vectors in which a row of `x` is accumulated: as many lanes as two accumulator rows of
/// sixteen lanes.
const VECTORS: usize = 4;

/// Number of elements of a row that are added at a time.
pub(crate) const BLOCK: usize = VECTORS * WIDTH;

/// Number of rows whose partial sums are reduced together. The sums of `GROUP` rows fill a vector.
const GROUP: usize = 8;

/// Number of rows whose partial sums are reduced together if four to seven rows remain. Fewer rows
/// are reduced one by one.
const SMALL_GROUP: usize = 4;

/// Calls `store(Σ map(x[i·extent + j]), y[i])` for each row `i` of `extent` elements. `extent` must
/// not be 0, and `map(0)` must be 0.
#[target_feature(enable = "avx2,fma")]
pub(crate) fn sum_rows<Y>(
    x: &[f32],
    extent: usize,
    map: impl Fn(f32) -> f32 + Copy,
    y: &mut [Y],
    store: impl Fn(f32, &mut Y),
) {
    let (mut x, (groups, rest)) = (x, y.as_chunks_mut::<GROUP>());
    for y in groups {
        let sums = reduce_rows(rows_to_lanes(x, extent, map));
        y.iter_mut().zip(sums).for_each(|(y, sum)| store(sum, y));
        x = &x[GROUP * extent..];
    }
    let (groups, rest) = rest.as_chunks_mut::<SMALL_GROUP>();
    for y in groups {
        let sums = reduce_few_rows(rows_to_lanes(x, extent, map));
        y.iter_mut().zip(sums).for_each(|(y, sum)| store(sum, y));
        x = &x[SMALL_GROUP * extent..];
    }
    for y in rest {
        let [lanes] = rows_to_lanes(x, extent, map);
        let zero = _mm256_setzero_ps();
        let [sum, ..] = reduce_few_rows([lanes, zero, zero, zero]);
        store(sum, y);
        x = &x[extent..];
    }
}

/// Returns, for each of the first `ROWS` rows of `x`, a vector of partial sums of the row.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn rows_to_lanes<const ROWS: usize>(
    x: &[f32],
    extent: usize,
    map: impl Fn(f32) -> f32 + Copy,
) -> [__m256; ROWS] {
    let mut lanes = [_mm256_setzero_ps(); ROWS];
    for (row, lanes) in lanes.iter_mut().enumerate() {
        *lanes = row_to_lanes(&x[row * extent..][..extent], map);
    }
    lanes
}

/// Returns a vector of partial sums of the row `x`, after the first rounds of the tree reduction.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn row_to_lanes(x: &[f32], map: impl Fn(f32) -> f32 + Copy) -> __m256 {
    let mut sums = [_mm256_setzero_ps(); VECTORS];
    let (blocks, rest) = x.as_chunks::<BLOCK>();
    for x in blocks {
        for (sum, x) in sums.iter_mut().zip(x.as_chunks::<WIDTH>().0) {
            // SAFETY: `x` has as many elements as a vector, and the load needs no alignment.
            *sum = add_mapped(*sum, unsafe { _mm256_loadu_ps(x.as_ptr()) }, map);
        }
    }
    for (sum, x) in sums.iter_mut().zip(rest.chunks(WIDTH)) {
        *sum = add_mapped(*sum, load_first(x), map);
    }
    let [a, b, c, d] = sums;
    _mm256_add_ps(_mm256_add_ps(a, c), _mm256_add_ps(b, d))
}

/// Returns the elements of `x`, followed by zeros.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn load_first(x: &[f32]) -> __m256 {
    const MASKS: [i32; 2 * WIDTH] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
    let mask = &MASKS[WIDTH - x.len()..][..WIDTH];
    // SAFETY: `mask` has as many elements as a vector, and selects only the elements of `x`.
    unsafe { _mm256_maskload_ps(x.as_ptr(), _mm256_loadu_si256(mask.as_ptr().cast())) }
}

/// Returns `sumᵢ + map(xᵢ)` for each lane.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn add_mapped(sum: __m256, x: __m256, map: impl Fn(f32) -> f32) -> __m256 {
    let mut x = elements(x);
    for x in &mut x {
        *x = map(*x);
    }
    // SAFETY: both types have the same size, and any bit pattern is valid for both.
    _mm256_add_ps(sum, unsafe { transmute::<[f32; WIDTH], __m256>(x) })
}

/// Returns the sum of the lanes of each row, added in the order of `reduce_lanes`. Each addition
/// instruction adds lanes of several rows.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn reduce_rows(rows: [__m256; GROUP]) -> [f32; GROUP] {
    let mut sums4 = [_mm256_setzero_ps(); 4];
    for (i, out) in sums4.iter_mut().enumerate() {
        let (a, b) = (rows[i], rows[i + 4]);
        *out = _mm256_add_ps(
            _mm256_permute2f128_ps::<0x20>(a, b),
            _mm256_permute2f128_ps::<0x31>(a, b),
        );
    }
    let mut sums2 = [_mm256_setzero_ps(); 2];
    for (i, out) in sums2.iter_mut().enumerate() {
        let (a, b) = (_mm256_castps_pd(sums4[2 * i]), _mm256_castps_pd(sums4[2 * i + 1]));
        let (low, high) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
        *out = _mm256_add_ps(_mm256_castpd_ps(low), _mm256_castpd_ps(high));
    }
    let [a, b] = sums2;
    elements(_mm256_add_ps(_mm256_shuffle_ps::<0x88>(a, b), _mm256_shuffle_ps::<0xdd>(a, b)))
}

/// Like [`reduce_rows`], but for [`SMALL_GROUP`] rows.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn reduce_few_rows([a, b, c, d]: [__m256; SMALL_GROUP]) -> [f32; SMALL_GROUP] {
    let [ac, bd] = [(a, c), (b, d)].map(|(a, b)| {
        let (low, high) =
            (_mm256_permute2f128_ps::<0x20>(a, b), _mm256_permute2f128_ps::<0x31>(a, b));
        _mm256_castps_pd(_mm256_add_ps(low, high))
    });
    let (low, high) = (_mm256_unpacklo_pd(ac, bd), _mm256_unpackhi_pd(ac, bd));
    let pairs = _mm256_add_ps(_mm256_castpd_ps(low), _mm256_castpd_ps(high));
    let sums = elements(_mm256_add_ps(pairs, _mm256_permute_ps::<0xb1>(pairs)));
    [sums[0], sums[2], sums[4], sums[6]]
}

/// Returns the elements of `x`.
#[inline(always)]
fn elements(x: __m256) -> [f32; WIDTH] {
    // SAFETY: both types have the same size, and any bit pattern is valid for both.
    unsafe { transmute(x) }
}
