//! Caffe's message types, which prost generates from `proto/caffe.proto`. That file documents each
//! field.
#![allow(missing_docs)]

include!("generated/caffe.rs");
