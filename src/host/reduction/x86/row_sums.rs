//! Sums of rows of `f32` with AVX-512.
//!
//! Every vector is loaded from a whole cache line, wherever a row begins. The lane of an element is
//! its position in the cache line, so lanes are rotated by the row's offset from a cache-line
//! boundary. The tree reduction of the lanes is symmetric, so a rotation only swaps operands of
//! additions, and results are bit-identical to those of `Reducer::reduce_slice`.

use std::arch::x86_64::{
    __m512, _mm512_add_ps, _mm512_castpd_ps, _mm512_castps_pd, _mm512_loadu_ps,
    _mm512_mask_loadu_ps, _mm512_permute_ps, _mm512_permutexvar_ps, _mm512_setr_epi32,
    _mm512_setzero_ps, _mm512_shuffle_f32x4, _mm512_shuffle_ps, _mm512_unpackhi_pd,
    _mm512_unpacklo_pd,
};
use std::mem::transmute;

/// Number of `f32` elements in an AVX-512 vector, and in a cache line.
const LANES: usize = 16;

/// Number of rows whose partial sums are reduced together. The sums of `GROUP` rows fill a vector.
const GROUP: usize = 16;

/// Number of rows whose partial sums are reduced together if fewer than [`GROUP`] rows remain.
const SMALL_GROUP: usize = 4;

/// Calls `store(Σ map(x[i·extent + j]), y[i])` for each row `i` of `extent` elements. `extent` must
/// not be 0, and `map(0)` must be 0.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(crate) fn sum_rows<Y>(
    x: &[f32],
    extent: usize,
    map: impl Fn(f32) -> f32 + Copy,
    y: &mut [Y],
    store: impl Fn(f32, &mut Y),
) {
    assert!(extent > 0, "sum_rows: rows must not be empty");
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
        let zero = _mm512_setzero_ps();
        let [sum, ..] = reduce_few_rows([lanes, zero, zero, zero]);
        store(sum, y);
        x = &x[extent..];
    }
}

/// Returns, for each of the first `ROWS` rows of `x`, a vector of partial sums of the row.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn rows_to_lanes<const ROWS: usize>(
    x: &[f32],
    extent: usize,
    map: impl Fn(f32) -> f32 + Copy,
) -> [__m512; ROWS] {
    let mut lanes = [_mm512_setzero_ps(); ROWS];
    let mut alignment = RowAlignment::new(x, extent);
    for (row, lanes) in lanes.iter_mut().enumerate() {
        let x = &x[row * extent..][..extent];
        if !extent.is_multiple_of(LANES) {
            alignment = RowAlignment::new(x, extent);
        }
        // SAFETY: `alignment` was computed for this row, or for a row of equal length that begins a
        // multiple of 64 bytes before this row.
        *lanes = unsafe { row_to_lanes(x, alignment, map) };
    }
    lanes
}

/// Position of a row of `x` relative to the cache lines in memory.
#[derive(Clone, Copy)]
struct RowAlignment {
    /// Number of elements between the start of the first cache line and the start of the row.
    offset: usize,
    /// Number of cache lines of the row after the first cache line.
    lines: usize,
    /// Mask of the elements of the first cache line that belong to the row.
    first_mask: u16,
    /// Mask of the elements of the last cache line that belong to the row, if `lines` is not 0.
    last_mask: u16,
}

impl RowAlignment {
    #[inline(always)]
    fn new(x: &[f32], extent: usize) -> Self {
        let offset = x.as_ptr().addr() / size_of::<f32>() % LANES;
        let end = offset + extent - 1;
        let (lines, last_mask) = (end / LANES, u16::MAX >> (LANES - 1 - end % LANES));
        let first_mask = u16::MAX << offset & if lines == 0 { last_mask } else { u16::MAX };
        Self { offset, lines, first_mask, last_mask }
    }
}

/// Returns a vector of partial sums of the row `x`, one per lane.
///
/// # Safety
/// `alignment` is the alignment of the row at `x`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn row_to_lanes(
    x: &[f32],
    alignment: RowAlignment,
    map: impl Fn(f32) -> f32 + Copy,
) -> __m512 {
    let zero = _mm512_setzero_ps();
    let mut x = x.as_ptr().wrapping_sub(alignment.offset);
    // SAFETY: the mask selects only elements of the row, and the load reads no other elements.
    let first_line = unsafe { _mm512_mask_loadu_ps(zero, alignment.first_mask, x) };
    let (mut even_sums, mut odd_sums) = (add_mapped(zero, first_line, map), zero);
    let mut rest_lines = alignment.lines;
    x = x.wrapping_add(LANES);
    while rest_lines > 2 {
        // SAFETY: the two cache lines from `x` on precede the last cache line of the row, so they
        // hold only elements of the row.
        unsafe {
            odd_sums = add_mapped(odd_sums, _mm512_loadu_ps(x), map);
            even_sums = add_mapped(even_sums, _mm512_loadu_ps(x.wrapping_add(LANES)), map);
        }
        x = x.wrapping_add(2 * LANES);
        rest_lines -= 2;
    }
    if rest_lines == 2 {
        // SAFETY: the cache line at `x` precedes the last cache line of the row, so it holds only
        // elements of the row.
        odd_sums = add_mapped(odd_sums, unsafe { _mm512_loadu_ps(x) }, map);
        // SAFETY: the mask selects only elements of the row.
        let last_line =
            unsafe { _mm512_mask_loadu_ps(zero, alignment.last_mask, x.wrapping_add(LANES)) };
        even_sums = add_mapped(even_sums, last_line, map);
    } else if rest_lines == 1 {
        // SAFETY: the mask selects only elements of the row.
        odd_sums = add_mapped(
            odd_sums,
            unsafe { _mm512_mask_loadu_ps(zero, alignment.last_mask, x) },
            map,
        );
    }
    _mm512_add_ps(even_sums, odd_sums)
}

/// Returns `sumᵢ + map(xᵢ)` for each lane.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn add_mapped(sum: __m512, x: __m512, map: impl Fn(f32) -> f32) -> __m512 {
    let mut x = elements(x);
    for x in &mut x {
        *x = map(*x);
    }
    // SAFETY: `__m512` and `[f32; LANES]` have the same size, and every bit pattern is valid for
    // both.
    _mm512_add_ps(sum, unsafe { transmute::<[f32; LANES], __m512>(x) })
}

/// Returns the sum of the lanes of each row, added in the order of `reduce_lanes`. Each addition
/// instruction adds lanes of at least two rows.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn reduce_rows(rows: [__m512; GROUP]) -> [f32; GROUP] {
    let mut sums8 = [_mm512_setzero_ps(); 8];
    for (i, out) in sums8.iter_mut().enumerate() {
        let (a, b) = (rows[i], rows[i + 8]);
        *out =
            _mm512_add_ps(_mm512_shuffle_f32x4::<0x44>(a, b), _mm512_shuffle_f32x4::<0xee>(a, b));
    }
    let mut sums4 = [_mm512_setzero_ps(); 4];
    for (i, out) in sums4.iter_mut().enumerate() {
        let (a, b) = (sums8[i], sums8[i + 4]);
        *out =
            _mm512_add_ps(_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0xdd>(a, b));
    }
    let mut sums2 = [_mm512_setzero_ps(); 2];
    for (i, out) in sums2.iter_mut().enumerate() {
        let (a, b) = (_mm512_castps_pd(sums4[i]), _mm512_castps_pd(sums4[i + 2]));
        let (low, high) = (_mm512_unpacklo_pd(a, b), _mm512_unpackhi_pd(a, b));
        *out = _mm512_add_ps(_mm512_castpd_ps(low), _mm512_castpd_ps(high));
    }
    let [a, b] = sums2;
    let sums = _mm512_add_ps(_mm512_shuffle_ps::<0x88>(a, b), _mm512_shuffle_ps::<0xdd>(a, b));
    let order = _mm512_setr_epi32(0, 2, 1, 3, 8, 10, 9, 11, 4, 6, 5, 7, 12, 14, 13, 15);
    elements(_mm512_permutexvar_ps(order, sums))
}

/// Like [`reduce_rows`], but for [`SMALL_GROUP`] rows.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn reduce_few_rows([a, b, c, d]: [__m512; SMALL_GROUP]) -> [f32; SMALL_GROUP] {
    let row_pairs = [(a, b), (c, d)];
    let [ab, cd] = row_pairs.map(|(a, b)| {
        let (low, high) = (_mm512_shuffle_f32x4::<0x44>(a, b), _mm512_shuffle_f32x4::<0xee>(a, b));
        _mm512_add_ps(low, high)
    });
    let (low, high) = (_mm512_shuffle_f32x4::<0x88>(ab, cd), _mm512_shuffle_f32x4::<0xdd>(ab, cd));
    // Each 128-bit quarter of `quarters` holds the partial sums of one row.
    let quarters = _mm512_add_ps(low, high);
    let halves = _mm512_add_ps(quarters, _mm512_permute_ps::<0x4e>(quarters));
    let sums = elements(_mm512_add_ps(halves, _mm512_permute_ps::<0xb1>(halves)));
    [sums[0], sums[4], sums[8], sums[12]]
}

#[inline(always)]
fn elements(x: __m512) -> [f32; LANES] {
    // SAFETY: `__m512` and `[f32; LANES]` have the same size, and every bit pattern is valid for
    // both.
    unsafe { transmute(x) }
}
