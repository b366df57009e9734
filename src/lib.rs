//! A backend-generic compute kernel library in Caffe's lineage.
//!
//! Modules are listed bottom-up; none imports one below it in this list
//! (`tests/layering.rs` checks).

pub mod error; // what can fail
pub mod element; // what memory holds
pub mod shape; // extents of it
pub mod op; // what kernels compute
pub mod host; // … on slices
pub mod proto; // Caffe's messages
#[cfg(feature = "net")]
pub mod data; // batches for nets

pub use crate::{
    element::{DType, Element, Scalar, bf16, f16},
    error::{Error, Result},
    shape::Shape,
};
