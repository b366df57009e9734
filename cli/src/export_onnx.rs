//! The command `cortado export-onnx`, which writes a trained net as an ONNX model.

use super::{
    copy_args::CopyArgs, device_args::main_memory, net_state_args::NetStateArgs, suffix::check_onnx,
};
use clap::Args;
use cortado::{
    device::{self, DeviceOptions},
    error::Result,
    net::Net,
    onnx::{self, ExportOptions},
    proto::{Phase, read_net},
};
use std::path::PathBuf;

/// Write a trained net as an ONNX model
///
/// The model computes the net's forward pass in the TEST phase. The inputs are the tops of Input
/// layers and data layers; images must be transformed before they are passed to the model. Losses,
/// Accuracy, Dropout and DetectionOutput are left out. Values have the names of their blobs. If a
/// layer cannot be expressed in ONNX, the command names the layer and the reason, and writes no
/// file.
#[derive(Args)]
#[command(after_help = "Example: cortado export-onnx --model deploy.prototxt \
    --weights lenet_iter_10000.caffemodel -o lenet.onnx")]
pub(super) struct ExportOnnx {
    /// Net definition in text format
    #[arg(long, value_name = "FILE")]
    model: PathBuf,
    /// Trained weights in .safetensors, .npz, .h5 or .caffemodel files, matched by layer name
    #[arg(long, value_name = "FILE,..", value_delimiter = ',', required = true)]
    weights: Vec<PathBuf>,
    /// ONNX file to write
    #[arg(short, long, value_name = "FILE.onnx")]
    output: PathBuf,
    /// Let the caller of the model choose the batch size; fails if a layer depends on the batch
    /// size
    #[arg(long)]
    dynamic_batch: bool,
    #[command(flatten)]
    copy: CopyArgs,
    #[command(flatten)]
    net_state: NetStateArgs,
}

impl ExportOnnx {
    pub(super) fn run(self) -> Result<()> {
        check_onnx(&self.output)?;
        let mut definition = read_net(&self.model)?;
        self.net_state.apply(definition.state.get_or_insert_default());
        let device_options = DeviceOptions { memory_limit: main_memory(), ..Default::default() };
        let device = device::open("cpu", device_options)?;
        let builder = Net::<f32>::builder(&device).phase(Phase::Test);
        let mut net = builder.build_from(&definition, &self.model)?;
        self.copy.copy(&mut net, &self.weights)?;
        let options = ExportOptions { dynamic_batch: self.dynamic_batch };
        let model = onnx::export(&mut net, options)
            .map_err(|error| builder.locate(error, &definition, &self.model))?;
        onnx::write(&self.output, &model)
    }
}
