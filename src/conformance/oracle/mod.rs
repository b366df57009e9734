//! What kernels should give: plain loops in `f64`, written from the formulas in
//! [`op`](crate::op).

pub(super) mod map;
pub(super) mod product;
pub(super) mod random;
pub(super) mod reduce;
