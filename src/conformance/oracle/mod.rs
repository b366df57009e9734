//! What kernels should give: plain loops in `f64`, written from the formulas in
//! [`op`](crate::op).
