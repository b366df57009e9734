//! Tests of the library's public interface. All tests form one program, so that they share helpers
//! and run in parallel.

// Helpers that several tests share.
#[cfg(feature = "net")]
mod digits;
#[cfg(feature = "net")]
mod golden;
#[cfg(feature = "net")]
mod net_state;
#[cfg(feature = "conformance")]
mod coverage;
#[cfg(any(feature = "conformance", feature = "net"))]
#[cfg_attr(not(feature = "conformance"), allow(dead_code))] // only tests of the kit use `axpy` bugs
mod remote;
#[path = "../support/mod.rs"]
mod support;
#[cfg(feature = "net")]
#[path = "../support/data_sets.rs"]
mod data_sets;
#[cfg(feature = "net")]
mod shared_data;

// Tests of memory, blobs and devices.
mod blob;
mod blob_operations;
mod buffer_pool;
mod coherence;
#[cfg(feature = "conformance")]
mod communicators;
mod contract;
mod custom_backend;
#[cfg(feature = "conformance")]
mod kit;
mod diagnosis;
mod ledger;
mod memory;
#[cfg(feature = "net")]
mod memory_limit;
mod simulated_device;
#[cfg(all(feature = "net", feature = "tensor-io"))]
mod trace;

// Tests of files.
mod bad_files;
mod caffe_files;
#[cfg(all(feature = "hdf5", feature = "net"))]
mod hdf5;
#[cfg(feature = "net")]
mod leveldb;
#[cfg(feature = "net")]
mod prototxt;
#[cfg(feature = "tensor-io")]
mod tensor_io;
mod unknown_fields;
#[cfg(feature = "net")]
mod upgrade;

// Tests of layers, nets and solvers.
#[cfg(feature = "net")]
mod annotated_data;
#[cfg(feature = "image")]
mod dense_image_data;
#[cfg(feature = "net")]
mod data;
#[cfg(feature = "net")]
mod detection;
#[cfg(feature = "net")]
mod detection_evaluate;
#[cfg(feature = "net")]
mod fillers;
#[cfg(all(feature = "net", feature = "tensor-io"))]
mod fork_layers;
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
mod multi_box_loss;
#[cfg(feature = "net")]
mod net;
#[cfg(feature = "onnx")]
mod onnx;
#[cfg(feature = "net")]
mod recurrent;
#[cfg(feature = "net")]
mod resume;
#[cfg(feature = "net")]
mod shards;
#[cfg(feature = "net")]
mod solver;
#[cfg(feature = "net")]
mod yolo;

// Tests of the source tree.
mod layering;
mod ptx;
