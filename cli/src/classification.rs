//! The command `cortado classification`, with the arguments of Caffe's example program.

use super::{
    classify::Classify, copy_args::CopyArgs, device_args::DeviceArgs, net_state_args::NetStateArgs,
    preprocessing_args::PreprocessingArgs,
};
use clap::Args;
use cortado::error::Result;
use std::path::PathBuf;

/// Classify an image, with the arguments of Caffe's example program `classification`
///
/// `cortado classify` accepts several images, and has a flag for each file that is not an image.
#[derive(Args)]
#[command(
    hide = true,
    after_help = "Example: cortado classification deploy.prototxt \
    bvlc_reference_caffenet.caffemodel imagenet_mean.binaryproto synset_words.txt cat.jpg"
)]
pub(super) struct Classification {
    /// Net definition in text format, with an Input layer
    #[arg(value_name = "NET.prototxt")]
    model: PathBuf,
    /// Trained weights in a .safetensors, .npz, .h5 or .caffemodel file, matched by layer name
    weights: PathBuf,
    /// Mean image in binary format; the mean of each channel is subtracted from the input
    #[arg(value_name = "MEAN.binaryproto")]
    mean: PathBuf,
    /// File with one class name per line
    labels: PathBuf,
    /// Image to classify
    image: PathBuf,
    #[command(flatten)]
    copy: CopyArgs,
    #[command(flatten)]
    net_state: NetStateArgs,
    #[command(flatten)]
    device: DeviceArgs,
}

impl Classification {
    pub(super) fn run(self) -> Result<()> {
        let Self { model, weights, mean, labels, image, copy, net_state, device } = self;
        let classify = Classify {
            model,
            weights: vec![weights],
            preprocessing: PreprocessingArgs {
                mean: Some(mean),
                mean_value: Vec::new(),
                scale: 1.0,
            },
            labels: Some(labels),
            top_k: 5,
            images: vec![image],
            copy,
            net_state,
            device,
        };
        classify.run()
    }
}
