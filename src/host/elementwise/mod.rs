//! Elementwise.

pub(crate) mod broadcast;
pub(crate) mod convert;
pub(crate) mod map;
