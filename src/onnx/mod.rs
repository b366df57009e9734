//! Export of nets to ONNX, the format that ONNX Runtime and other inference engines read.
//!
//! [`export`] converts a net and its weights to a [`ModelProto`], and [`write()`] writes a model to a
//! file. The model computes the net's forward pass in the TEST phase. `docs/onnx.md` in the
//! repository lists the operators for each layer type, and the reason for each layer that cannot be
//! exported.
//!
//! ```
//! use cortado::{onnx::{self, ExportOptions}, prelude::*, proto::parse_text};
//!
//! let text = r#"
//!     layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 2 } } }
//!     layer { name: "relu" type: "ReLU" bottom: "data" top: "y" }"#;
//! let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
//! let graph = onnx::export(&mut net, ExportOptions::default())?.graph.unwrap();
//! assert_eq!(graph.node[0].op_type(), "Relu");
//! assert_eq!((&graph.node[0].input[0][..], &graph.node[0].output[0][..]), ("data", "y"));
//! # Ok::<(), cortado::Error>(())
//! ```

mod graph;
mod layer_export;
mod tensors;

mod convolution;
mod elementwise;
mod lookup;
mod matrix;
mod normalization;
mod operators;
mod pooling;
mod recurrent;
mod resampling;
mod shapes;

mod dynamic_batch;
mod net_export;

use crate::{
    error::{Error, Result},
    net::Net,
    proto::{
        self, Phase,
        onnx::{GraphProto, ModelProto, OperatorSetIdProto},
    },
};
use std::path::Path;

/// Version of ONNX's file format, of May 2020.
const IR_VERSION: i64 = 7;
/// Version of ONNX's operator set, of 2020. The oldest set with all operators that the export uses,
/// so that the most runtimes read the models.
const OPERATOR_SET: i64 = 13;

/// Options for the export of a net.
///
/// ```
/// use cortado::{onnx::{self, ExportOptions}, prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 2 } } }
///     layer { name: "relu" type: "ReLU" bottom: "data" top: "y" }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// let model = onnx::export(&mut net, ExportOptions { dynamic_batch: true })?;
/// let input = model.graph.unwrap().input[0].clone();
/// let shape = input.r#type.unwrap().tensor_type.unwrap().shape.unwrap();
/// assert_eq!(shape.dim[0].dim_param(), "batch");
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportOptions {
    /// Whether the batch size is the symbol `batch` instead of a number. The export fails if a layer
    /// depends on the batch size.
    pub dynamic_batch: bool,
}

/// Converts a net and its weights to an ONNX model with the net's forward pass in the TEST phase.
///
/// The inputs of the model are the tops of Input layers and of layers that read data, in the order
/// of the layers. An input that no exported layer reads is left out. The outputs are the values
/// that no exported layer reads. Losses, Accuracy, Dropout, Silence and HDF5Output are left out. A
/// value has the name of its blob. If layers overwrite a blob in place, the last value has the
/// blob's name, and each earlier value has the blob's name, a slash and the name of its layer. An
/// input keeps the blob's name. If layers overwrite this blob, each of their values has the blob's
/// name, a slash and the name of its layer.
///
/// With [`dynamic_batch`](ExportOptions::dynamic_batch), the batch size is the first extent of the
/// first input. The function temporarily reshapes all inputs with this first extent to a batch that
/// is larger by 1, compares the graphs of both shapes, and restores the shapes. After an export
/// with `dynamic_batch`, the values of the net's blobs are unspecified until the next forward pass.
///
/// # Errors
/// Returns [`Error::InvalidData`], with the layer's name, type and the reason, if a layer cannot be
/// expressed in ONNX or if it depends on the batch size despite `dynamic_batch`. Returns
/// [`Error::InvalidData`] if the net's phase is TRAIN, or if nothing remains to export.
pub fn export(net: &mut Net<f32>, options: ExportOptions) -> Result<ModelProto> {
    if net.phase() == Phase::Train {
        let reason = "net: found phase TRAIN, expected TEST; build the net for the TEST phase";
        return Err(Error::InvalidData(reason.into()));
    }
    let graph = match options.dynamic_batch {
        true => dynamic_batch::export(net)?,
        false => net_export::export(net)?.into_proto(net.name(), None),
    };
    Ok(model(graph))
}

fn model(graph: GraphProto) -> ModelProto {
    let opset = OperatorSetIdProto { version: Some(OPERATOR_SET), ..Default::default() };
    ModelProto {
        ir_version: Some(IR_VERSION),
        opset_import: vec![opset],
        producer_name: Some("cortado".into()),
        producer_version: Some(env!("CARGO_PKG_VERSION").into()),
        graph: Some(graph),
        ..Default::default()
    }
}

/// Writes a model to an ONNX file, atomically, and replaces an existing file.
///
/// ```
/// use cortado::{onnx, proto::onnx::ModelProto};
/// # fn main() -> cortado::Result<()> {
/// # let path = std::env::temp_dir().join(format!("cortado-doc-{}.onnx", std::process::id()));
/// let model = ModelProto { ir_version: Some(7), ..Default::default() };
/// onnx::write(&path, &model)?;
/// assert_eq!(cortado::proto::read_binary::<ModelProto>(&path)?, model);
/// # std::fs::remove_file(&path).unwrap();
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::InvalidData`] if the file would exceed protobuf's limit of 2 GiB, and
/// [`Error::Io`] if the file cannot be written. After either error, an existing file stays intact.
pub fn write(path: impl AsRef<Path>, model: &ModelProto) -> Result<()> {
    proto::write_binary(path, model)
}
