//! Block of a 16-bit GEMM: a part of `op(A)·op(B)` that a thread accumulates in `f32` before
//! rounding.

use crate::{element::Element, op::Gemm};
use std::ops::Range;

/// Range of rows and columns of `op(A)·op(B)`, with operands that have passed [`Gemm::check`].
pub(crate) struct HalfBlock<'a, H: Element> {
    pub(crate) op: &'a Gemm<H>,
    pub(crate) a: &'a [H],
    pub(crate) b: &'a [H],
    pub(crate) rows: Range<usize>,
    pub(crate) columns: Range<usize>,
}
