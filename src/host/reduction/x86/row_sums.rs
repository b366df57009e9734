//! Sums of rows of `f32` by AVX-512.
//!
//! Lines are read whole, wherever rows begin: an element's lane is that of its place in its line,
//! so that lanes are turned by the elements before the row. They are joined in a tree that is the
//! same for each turn, but for the order of what is added: so the bits are those of
//! [`fold_slice`](super::fold_slice).

use std::arch::x86_64::{
    __m512, _mm512_add_ps, _mm512_castpd_ps, _mm512_castps_pd, _mm512_loadu_ps,
    _mm512_mask_loadu_ps, _mm512_permute_ps, _mm512_permutexvar_ps, _mm512_setr_epi32,
    _mm512_setzero_ps, _mm512_shuffle_f32x4, _mm512_shuffle_ps, _mm512_unpackhi_pd,
    _mm512_unpacklo_pd,
};
use std::mem::transmute;

/// Elements of a vector, and of a line.
const LANES: usize = 16;

/// Rows of which lanes are filled before they are joined: as many as a vector of sums holds.
const GROUP: usize = 16;

/// As [`GROUP`], of the rows that are left.
const FEW: usize = 4;

/// `store(Σ term(x[i·extent + j]), y[i])`, with `extent` terms each, at least one; `term(0)` is 0.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(crate) fn sum_rows<Y>(
    x: &[f32],
    extent: usize,
    term: impl Fn(f32) -> f32 + Copy,
    y: &mut [Y],
    store: impl Fn(f32, &mut Y),
) {
    assert!(extent > 0, "rows of something");
    let (mut x, (groups, rest)) = (x, y.as_chunks_mut::<GROUP>());
    for y in groups {
        let sums = joined(lanes_of_rows(x, extent, term));
        y.iter_mut().zip(sums).for_each(|(y, sum)| store(sum, y));
        x = &x[GROUP * extent..];
    }
    let (groups, rest) = rest.as_chunks_mut::<FEW>();
    for y in groups {
        let sums = few_joined(lanes_of_rows(x, extent, term));
        y.iter_mut().zip(sums).for_each(|(y, sum)| store(sum, y));
        x = &x[FEW * extent..];
    }
    for y in rest {
        let [lanes] = lanes_of_rows(x, extent, term);
        let zero = _mm512_setzero_ps();
        let [sum, ..] = few_joined([lanes, zero, zero, zero]);
        store(sum, y);
        x = &x[extent..];
    }
}

/// The lanes of the first rows of `x`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn lanes_of_rows<const ROWS: usize>(
    x: &[f32],
    extent: usize,
    term: impl Fn(f32) -> f32 + Copy,
) -> [__m512; ROWS] {
    let mut lanes = [_mm512_setzero_ps(); ROWS];
    let mut place = RowAlignment::of(x, extent);
    for (row, lanes) in lanes.iter_mut().enumerate() {
        let x = &x[row * extent..][..extent];
        if !extent.is_multiple_of(LANES) {
            place = RowAlignment::of(x, extent);
        }
        // SAFETY: it is the place of this row, or of one as many lines before.
        #[allow(unsafe_code)]
        unsafe {
            *lanes = lanes_of(x, place, term);
        }
    }
    lanes
}

/// Where a row lies among lines.
#[derive(Clone, Copy)]
struct RowAlignment {
    /// Elements of the first line that are before it.
    before: usize,
    /// Lines after the first.
    lines: usize,
    /// Which elements of the first and the last line, apart from others, belong to it.
    first: u16,
    last: u16,
}

impl RowAlignment {
    #[inline(always)]
    fn of(x: &[f32], extent: usize) -> Self {
        let before = x.as_ptr().addr() / size_of::<f32>() % LANES;
        let end = before + extent - 1;
        let (lines, last) = (end / LANES, u16::MAX >> (LANES - 1 - end % LANES));
        let first = u16::MAX << before & if lines == 0 { last } else { u16::MAX };
        Self { before, lines, first, last }
    }
}

/// The lanes of a row.
///
/// # Safety
/// `place` is that of `x`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[allow(unsafe_code)]
unsafe fn lanes_of(x: &[f32], place: RowAlignment, term: impl Fn(f32) -> f32 + Copy) -> __m512 {
    let zero = _mm512_setzero_ps();
    let mut x = x.as_ptr().wrapping_sub(place.before);
    // SAFETY: what belongs to the row can be read, and the masks leave out the rest.
    let first = unsafe { _mm512_mask_loadu_ps(zero, place.first, x) };
    let (mut even, mut odd) = (add(zero, first, term), zero);
    let mut left = place.lines;
    x = x.wrapping_add(LANES);
    while left > 2 {
        // SAFETY: these are whole lines before the last.
        unsafe {
            odd = add(odd, _mm512_loadu_ps(x), term);
            even = add(even, _mm512_loadu_ps(x.wrapping_add(LANES)), term);
        }
        x = x.wrapping_add(2 * LANES);
        left -= 2;
    }
    if left == 2 {
        // SAFETY: this is the line before the last.
        odd = add(odd, unsafe { _mm512_loadu_ps(x) }, term);
        // SAFETY: as of the first.
        let last = unsafe { _mm512_mask_loadu_ps(zero, place.last, x.wrapping_add(LANES)) };
        even = add(even, last, term);
    } else if left == 1 {
        // SAFETY: as of the first.
        odd = add(odd, unsafe { _mm512_mask_loadu_ps(zero, place.last, x) }, term);
    }
    _mm512_add_ps(even, odd)
}

/// `sumᵢ + term(xᵢ)`
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn add(sum: __m512, x: __m512, term: impl Fn(f32) -> f32) -> __m512 {
    let mut x = elements(x);
    for x in &mut x {
        *x = term(*x);
    }
    // SAFETY: as many elements are a vector.
    #[allow(unsafe_code)]
    _mm512_add_ps(sum, unsafe { transmute::<[f32; LANES], __m512>(x) })
}

/// The sum of each row's lanes: those at half the distance are added until one is left, of two
/// rows at a time.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn joined(rows: [__m512; GROUP]) -> [f32; GROUP] {
    let mut eight = [_mm512_setzero_ps(); 8];
    for (i, out) in eight.iter_mut().enumerate() {
        let (a, b) = (rows[i], rows[i + 8]);
        *out =
            _mm512_add_ps(_mm512_shuffle_f32x4::<0x44>(a, b), _mm512_shuffle_f32x4::<0xee>(a, b));
    }
    let mut four = [_mm512_setzero_ps(); 4];
    for (i, out) in four.iter_mut().enumerate() {
        let (a, b) = (eight[i], eight[i + 4]);
        *out =
            _mm512_add_ps(_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0xdd>(a, b));
    }
    let mut two = [_mm512_setzero_ps(); 2];
    for (i, out) in two.iter_mut().enumerate() {
        let (a, b) = (_mm512_castps_pd(four[i]), _mm512_castps_pd(four[i + 2]));
        let (low, high) = (_mm512_unpacklo_pd(a, b), _mm512_unpackhi_pd(a, b));
        *out = _mm512_add_ps(_mm512_castpd_ps(low), _mm512_castpd_ps(high));
    }
    let [a, b] = two;
    let sums = _mm512_add_ps(_mm512_shuffle_ps::<0x88>(a, b), _mm512_shuffle_ps::<0xdd>(a, b));
    let order = _mm512_setr_epi32(0, 2, 1, 3, 8, 10, 9, 11, 4, 6, 5, 7, 12, 14, 13, 15);
    elements(_mm512_permutexvar_ps(order, sums))
}

/// As [`joined`], of few rows.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn few_joined([a, b, c, d]: [__m512; FEW]) -> [f32; FEW] {
    let two = [(a, b), (c, d)];
    let [ab, cd] = two.map(|(a, b)| {
        let (low, high) = (_mm512_shuffle_f32x4::<0x44>(a, b), _mm512_shuffle_f32x4::<0xee>(a, b));
        _mm512_add_ps(low, high)
    });
    let (low, high) = (_mm512_shuffle_f32x4::<0x88>(ab, cd), _mm512_shuffle_f32x4::<0xdd>(ab, cd));
    // A quarter of each row from here on.
    let quarters = _mm512_add_ps(low, high);
    let halves = _mm512_add_ps(quarters, _mm512_permute_ps::<0x4e>(quarters));
    let sums = elements(_mm512_add_ps(halves, _mm512_permute_ps::<0xb1>(halves)));
    [sums[0], sums[4], sums[8], sums[12]]
}

#[inline(always)]
fn elements(x: __m512) -> [f32; LANES] {
    // SAFETY: a vector is as many elements.
    #[allow(unsafe_code)]
    unsafe {
        transmute(x)
    }
}
