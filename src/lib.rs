//! A compute kernel library with interchangeable device backends, derived from Caffe.
//!
//! `tests/library/layering.rs` checks that a module imports only modules that `lib.rs` lists before
//! it.

mod suggest; // spelling suggestions
pub mod error; // error type
pub mod atomic_fs; // atomic file writes
mod sync; // thread synchronization
pub mod element; // element types
pub mod shape; // blob shapes
pub mod op; // parameters of kernels
pub mod host; // host kernels on slices
pub mod memory; // host and device memory
#[macro_use]
pub mod kernel; // kernel traits that devices implement
pub mod device; // devices
pub mod proto; // Caffe's protobuf messages
#[cfg(feature = "tensor-io")]
pub mod tensor_io; // NumPy and safetensors files
pub mod blob; // blobs: data and diff
pub mod filler; // initial parameter values
#[cfg(feature = "net")]
pub mod data; // data sources and batches
#[cfg(feature = "net")]
pub mod layer; // layers
#[cfg(feature = "net")]
pub mod net; // nets
#[cfg(feature = "net")]
pub mod solver; // solvers
#[cfg(feature = "conformance")]
pub mod conformance; // conformance kit for devices
pub mod bench_kit; // benchmark kit for devices

pub mod guide; // guide to writing a backend

pub use crate::{
    blob::Blob,
    device::{AnyDevice, CpuDevice, Device, SimulatedDevice},
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

/// Runs the program in the README as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
