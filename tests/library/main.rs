//! Tests of the library's public interface, in one program: its parts share helpers, and run in
//! parallel.

// Helpers.
#[cfg(feature = "net")]
mod digits;
#[cfg(feature = "net")]
mod golden;
#[cfg(feature = "net")]
mod net_state;
#[cfg(any(feature = "conformance", feature = "net"))]
#[cfg_attr(not(feature = "conformance"), allow(dead_code))] // the bugs are for the kit
mod remote;
#[path = "../support/mod.rs"]
mod support;

// Memory, blobs and devices.
mod blob;
mod coherence;
mod custom_backend;
#[cfg(feature = "conformance")]
mod kit;
mod ledger;
mod memory;
mod simulated_device;

// Files.
mod bad_files;
mod caffe_files;
#[cfg(all(feature = "hdf5", feature = "net"))]
mod hdf5;
#[cfg(feature = "net")]
mod prototxt;
#[cfg(feature = "tensor-io")]
mod tensor_io;
mod unknown_fields;
#[cfg(feature = "net")]
mod upgrade;

// Layers, nets and solvers.
#[cfg(feature = "net")]
mod data;
#[cfg(feature = "net")]
mod fillers;
#[cfg(feature = "net")]
mod fused;
#[cfg(feature = "net")]
mod golden_layers;
#[cfg(feature = "net")]
mod golden_nets;
#[cfg(feature = "net")]
mod golden_refused;
#[cfg(feature = "net")]
mod golden_solvers;
#[cfg(all(feature = "conformance", feature = "net"))]
mod gradients;
#[cfg(feature = "net")]
mod half_precision;
#[cfg(feature = "net")]
mod layers;
#[cfg(feature = "net")]
mod net;
#[cfg(feature = "net")]
mod recurrent;
#[cfg(feature = "net")]
mod solver;

// The source tree.
mod layering;
mod ptx;
