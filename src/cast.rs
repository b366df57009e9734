//! Casts between slices of plain data, which reinterpret the bytes without a copy.

use crate::element::Storable;
use std::slice::from_ref;

const MISMATCH: &str = "the bytes of a cast must have the size and alignment of the new type";

/// Reinterprets a slice as a slice of another type with the same bytes.
///
/// # Panics
/// Panics if the bytes are not aligned for `B`, or if the number of bytes is not a multiple of the
/// size of `B`.
#[inline(always)]
pub(crate) fn cast_slice<A: Storable, B: Storable>(a: &[A]) -> &[B] {
    try_cast_slice(a).expect(MISMATCH)
}

/// Reinterprets a mutable slice as a mutable slice of another type with the same bytes.
///
/// # Panics
/// Panics in the same cases as [`cast_slice`].
#[inline(always)]
pub(crate) fn cast_slice_mut<A: Storable, B: Storable>(a: &mut [A]) -> &mut [B] {
    try_cast_slice_mut(a).expect(MISMATCH)
}

/// Reinterprets a slice as a slice of another type with the same bytes. Returns `None` if the bytes
/// are not aligned for `B`, or if the number of bytes is not a multiple of the size of `B`.
#[inline(always)]
pub(crate) fn try_cast_slice<A: Storable, B: Storable>(a: &[A]) -> Option<&[B]> {
    B::from_bytes(A::bytes_of(a))
}

/// Reinterprets a mutable slice as a mutable slice of another type with the same bytes. Returns
/// `None` in the same cases as [`try_cast_slice`].
#[inline(always)]
pub(crate) fn try_cast_slice_mut<A: Storable, B: Storable>(a: &mut [A]) -> Option<&mut [B]> {
    B::from_bytes_mut(A::bytes_of_mut(a))
}

/// Reinterprets the bytes of a value as a value of another type.
///
/// # Panics
/// Panics if the two types differ in size.
#[inline(always)]
pub(crate) fn cast<A: Storable, B: Storable>(a: A) -> B {
    B::read_bytes(A::bytes_of(from_ref(&a))).expect(MISMATCH)
}
