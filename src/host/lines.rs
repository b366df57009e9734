//! Where operands begin within a cache line.
//!
//! A vector that lies across two lines is loaded or stored twice. Where elements come from beyond
//! the first-level cache, that halves the rate; stores are slower in it, too.

/// Bytes of a cache line, and of the widest vector.
const LINE: usize = 64;

/// Bytes from which on it pays to read from the beginning of a line.
const LONG: usize = 32 << 10;

/// Bytes from which on it pays to write from the beginning of a line.
const LONG_WRITTEN: usize = 2 << 10;

/// Elements of `x`, which is read, before the first that begins a line; 0 if that does not pay.
#[inline(always)]
pub(super) fn before_line<A>(x: &[A]) -> usize {
    before(x, LONG)
}

/// As [`before_line`], of what is written.
#[inline(always)]
pub(super) fn before_written<A>(y: &[A]) -> usize {
    before(y, LONG_WRITTEN)
}

/// Calls `body` with parts of `y`, which is written, of which all but a short one begin a line.
#[inline(always)]
pub(super) fn by_lines<Y>(y: &mut [Y], mut body: impl FnMut(&mut [Y])) {
    let before = before_written(y);
    let (first, rest) = y.split_at_mut(before);
    if before > 0 {
        body(first);
    }
    body(rest);
}

/// As [`by_lines`], with the same parts of `x`, as long as `y`.
#[inline(always)]
pub(super) fn with_by_lines<X, Y>(x: &[X], y: &mut [Y], mut body: impl FnMut(&[X], &mut [Y])) {
    let (first_x, rest_x) = x.split_at(before_written(y));
    let (first, rest) = y.split_at_mut(first_x.len());
    if !first.is_empty() {
        body(first_x, first);
    }
    body(rest_x, rest);
}

/// Elements for which [`lines_ahead`] and [`with_lines_ahead`] ask at a time.
const BLOCK: usize = 64;

/// As [`by_lines`] of what comes from memory: what follows is asked for meanwhile.
#[inline(always)]
pub(super) fn lines_ahead<Y>(y: &mut [Y], mut body: impl FnMut(&mut [Y])) {
    let (first, y) = y.split_at_mut(before_written(y));
    body(first);
    let (blocks, rest) = y.as_chunks_mut::<BLOCK>();
    for y in blocks {
        ahead(y);
        body(y);
    }
    body(rest);
}

/// As [`lines_ahead`], with the same parts of `x`, as long as `y`.
#[inline(always)]
pub(super) fn with_lines_ahead<X, Y>(x: &[X], y: &mut [Y], mut body: impl FnMut(&[X], &mut [Y])) {
    let (first_x, x) = x.split_at(before_written(y));
    let (first, y) = y.split_at_mut(first_x.len());
    body(first_x, first);
    let ((blocks_x, rest_x), (blocks, rest)) = (x.as_chunks::<BLOCK>(), y.as_chunks_mut::<BLOCK>());
    for (x, y) in blocks_x.iter().zip(blocks) {
        ahead(x);
        ahead(y);
        body(x, y);
    }
    body(rest_x, rest);
}

/// Bytes by which [`ahead`] goes before its reader: past what a processor that watches several
/// rows at a time fetches by itself.
pub(super) const AHEAD: usize = 1 << 10;

/// Says that what follows `x` some way further will soon be read, if the processor listens. It need
/// not exist.
#[inline(always)]
pub(super) fn ahead<A, const N: usize>(x: &[A; N]) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..size_of::<[A; N]>()).step_by(LINE) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let there = x.as_ptr().cast::<i8>().wrapping_add(AHEAD + line);
        // SAFETY: a prefetch reads nothing that a program could see, whatever the address.
        #[allow(unsafe_code)]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(there);
        }
    }
    let _ = x;
}

#[inline(always)]
fn before<A>(x: &[A], long: usize) -> usize {
    if size_of_val(x) < long { 0 } else { x.as_ptr().align_offset(LINE).min(x.len()) }
}
