//! Elementwise operations, broadcasts along an axis, and conversion of element types.
//!
//! - [`map`] evaluates an [`op::Unary`](crate::op::Unary) or [`op::Binary`](crate::op::Binary) on
//!   whole operands. Every elementwise function has a separate loop, which is compiled for each
//!   SIMD level. Long square roots and quotients use `math::x86`; results that exceed the caches
//!   use `cache::nontemporal`.
//! - [`broadcast`] repeats the smaller operands and calls the loops of `map`.
//! - [`convert`] converts elements with the widening and narrowing functions of
//!   `simd::accumulator`.
//!
//! All loops in the modules of `elementwise` are portable.

pub(crate) mod broadcast;
pub(crate) mod convert;
pub(crate) mod map;
