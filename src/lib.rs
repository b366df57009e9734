//! Compute kernels that are generic over the device, and Caffe's layers, nets and solvers built on
//! these kernels.
//!
//! ```
//! use cortado::prelude::*;
//!
//! /// Computes `A·Aᵀ` of a 2×3 matrix on any device.
//! fn gram<D: Device>(device: &D) -> Result<Vec<f32>> {
//!     let a = Blob::from_slice(device, &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
//!     matmul(&a, a.t())?.to_vec()
//! }
//!
//! assert_eq!(gram(&CpuDevice::new())?, [14.0, 32.0, 32.0, 77.0]);
//! # Ok::<(), cortado::Error>(())
//! ```
//!
//! # Three principles
//!
//! ```text
//!   Blob<T, D>        values and their gradient, under one shape
//!     │  data, diff
//!   SyncedMemory<D>   the same bytes on the host and on the device, copied only when needed
//!     │
//!   D: Device         kernels: `gemm`, `convolve`, … ; each has a default that runs on the host
//! ```
//!
//! 1. **Memory is coherent.** Each side of a memory, host or device, is valid or stale. Reading a
//!    stale side first copies the current value to that side; writing a side makes the other side
//!    stale. A [`ledger`] records each copy, with the kernel and the source line that caused the
//!    copy.
//! 2. **Every kernel runs on every device.** A device overrides the kernels that it implements
//!    itself. Kernels that the device does not override run on the host, and [`SyncedMemory`]
//!    copies the operands between device and host if needed.
//! 3. **Results do not depend on the number of threads.** The results of a CPU kernel are
//!    bit-identical on one thread and on many threads.
//!
//! # Where to start
//!
//! | task | start at |
//! |---|---|
//! | compute with arrays on any device | [`prelude`] and [`Blob`] |
//! | train or run a Caffe model | `Solver`, `Net` (feature `net`, on by default) |
//! | classify images with a trained net | `classifier::Classifier` (feature `image`) |
//! | find objects in images with a trained net | `detector::Detector` (feature `image`) |
//! | write a layer | `Layer` and `LayerRegistry` (feature `net`) |
//! | write a device | [`guide`], [`Memory`] and [`kernel`] |
//! | find out which data is copied, and why | [`ledger`] |
//! | find needless transfers and their causes | [`ledger::diagnose`] |
//! | see on a timeline what a program does | [`trace`] |
//! | call a kernel on slices, without blobs | [`kernel::slices`] |
//!
//! | type | use it for |
//! |---|---|
//! | [`Blob`] | an array with a shape and, on request, a gradient |
//! | [`CpuDevice`] | the CPU; `with_threads` sets the number of threads |
//! | [`AnyDevice`] | a device that is chosen at run time, for example by [`device::open`] |
//! | [`SimulatedDevice`] | a device for tests, whose separate memory reveals missing copies |
//! | [`SyncedMemory`], [`View`], [`ViewMut`] | implementations of kernels and devices |
//! | [`struct@f16`], [`struct@bf16`] | 16-bit elements, with which kernels compute in `f32` |
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | none | the core: devices, memory, blobs, kernels, fillers |
//! | `net` (default) | Caffe's text format, data, layers, nets and solvers |
//! | `gzip` | data from IDX files that are compressed by gzip, as MNIST is distributed |
//! | `tensor-io` | NumPy and safetensors files |
//! | `hdf5` | weights, solver states and data in HDF5 files |
//! | `image` | data from image files (JPEG, PNG, BMP, PBM, PGM, PPM), and classification of images |
//! | `onnx` | export of nets to ONNX |
//! | `ndarray` | conversion of blobs from and to arrays of the crate `ndarray` |
//! | `cuda` | NVIDIA GPUs; a program builds and starts without CUDA |
//! | `conformance` | the conformance kit for devices |
//! | `report` | reports of benchmarks as HTML pages, and charts as SVG images |
//!
//! The command-line program `cortado` is in the package `cortado-cli`.
#![cfg_attr(docsrs, feature(doc_cfg))]

// `tests/library/layering.rs` checks that each module imports only modules that are declared before
// it in this list.

mod suggest; // spelling suggestions
pub mod error; // error type
mod limits; // limits on the memory and the work that a file can cause
pub mod atomic_fs; // atomic file writes
mod sync; // thread synchronization
pub mod element; // element types
mod cast; // casts between slices of plain data
pub mod communicator; // communication between processes
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
#[cfg(feature = "onnx")]
pub mod onnx; // export of nets to ONNX
#[cfg(feature = "image")]
mod image_input; // inputs of nets that take one image
#[cfg(feature = "image")]
pub mod classifier; // classification of images by a trained net
#[cfg(feature = "image")]
pub mod detector; // detection of objects in images by a trained net
#[cfg(feature = "conformance")]
pub mod conformance; // conformance kit for devices
#[cfg(feature = "report")]
pub mod drawing; // charts and other SVG images
pub mod bench_kit; // benchmark kit for devices

pub mod guide; // guide to writing a backend
pub mod prelude; // the names that most programs need

pub use crate::{
    blob::{Blob, matmul},
    device::{AnyDevice, CpuDevice, Device, SimulatedDevice},
    element::{DType, Element, Storable, bf16, f16},
    error::{Error, Result},
    filler::Filler,
    memory::{Head, Memory, Src, SyncedMemory, View, ViewMut, ledger, trace},
    shape::Shape,
};
#[cfg(feature = "net")]
pub use crate::{
    layer::{Layer, LayerRegistry},
    net::Net,
    solver::Solver,
};

/// Runs the programs in the README and in the chapters of `docs` as doctests.
#[cfg(all(doctest, feature = "image", feature = "tensor-io"))]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../docs/many-machines.md")]
#[doc = include_str!("../docs/use.md")]
#[doc = include_str!("../docs/measure.md")]
#[cfg_attr(feature = "onnx", doc = include_str!("../docs/onnx.md"))]
struct Chapters;
