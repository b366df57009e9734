//! ONNX's protobuf messages, of which [`ModelProto`] is the content of an ONNX file.
//!
//! The Rust types of the messages in `proto/onnx.proto`, the part of ONNX's definition that cortado
//! writes. A message that ONNX declares inside another one has both names, such as
//! [`TypeProtoTensor`].
//!
//! ```
//! use cortado::proto::{Message, onnx::{ModelProto, OperatorSetIdProto}};
//!
//! let opset = OperatorSetIdProto { version: Some(13), ..Default::default() };
//! let model = ModelProto { ir_version: Some(7), opset_import: vec![opset], ..Default::default() };
//! assert_eq!(ModelProto::decode(&model.encode_to_vec()[..]).unwrap(), model);
//! ```

use super::*;

include!("../generated/onnx.rs");
