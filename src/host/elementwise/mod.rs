//! Elementwise operations, broadcasts along an axis, and conversion of element types.
//!
//! - [`map`] evaluates an [`op::Unary`](crate::op::Unary) or [`op::Binary`](crate::op::Binary) on
//!   whole operands. Every elementwise function has a separate loop, which is compiled for each
//!   SIMD level. Square roots and quotients of long operands use `math::x86`; `cache::nontemporal`
//!   writes results that exceed the caches.
//! - [`map_128_bit`] evaluates sums, differences and products in vectors of 128 bits, which are faster
//!   than wider vectors for some sizes on some processors.
//! - [`broadcast`] repeats operands along an axis and calls the loops of `map`.
//! - [`convert`] converts elements with the widening and narrowing loops of `simd::accumulator`.
//!
//! All loops in the modules of `elementwise` are portable.

pub(crate) mod broadcast;
pub(crate) mod convert;
pub(crate) mod map;
pub(crate) mod map_128_bit;
