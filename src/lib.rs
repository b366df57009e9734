//! A backend-generic compute kernel library in Caffe's lineage.
//!
//! Modules are listed bottom-up; none imports one below it in this list
//! (`tests/layering.rs` checks).

mod words; // what was meant
pub mod error; // what can fail
mod atomic_fs; // … and what is written whole or not at all
mod sync; // … and what threads meet at
pub mod element; // what memory holds
pub mod shape; // extents of it
pub mod op; // what kernels compute
pub mod host; // … on slices
pub mod memory; // where bytes live
pub mod kernel; // … on views, per device
pub mod device; // complete devices
pub mod proto; // Caffe's messages
#[cfg(feature = "tensor-io")]
pub mod tensor_io; // others' tensors
pub mod blob; // data and diff
pub mod filler; // first values
#[cfg(feature = "net")]
pub mod data; // batches for nets
#[cfg(feature = "net")]
pub mod layer; // steps
#[cfg(feature = "net")]
pub mod net; // graphs
#[cfg(feature = "net")]
pub mod solver; // training
#[cfg(feature = "conformance")]
pub mod conformance; // what any device must pass
pub mod bench_kit; // what devices time
#[cfg(feature = "cli")]
pub mod cli; // the command

pub mod guide; // a chapter: writing a backend

pub use crate::{
    blob::Blob,
    device::{CpuDevice, Device},
    element::{DType, Element, Storable, bf16, f16},
    error::{Error, Result},
    filler::Filler,
    memory::{Head, Memory, Src, SyncedMemory, View, ViewMut, ledger},
    shape::Shape,
};
#[cfg(feature = "net")]
pub use crate::{
    layer::{Layer, LayerRegistry},
    net::Net,
    solver::Solver,
};

/// The program in the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
