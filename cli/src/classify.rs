//! The command `cortado classify`, which prints the most likely classes of images.

use super::{
    copy_args::CopyArgs, device_args::DeviceArgs, escape::escape_control,
    net_state_args::NetStateArgs, output::print, preprocessing_args::PreprocessingArgs,
};
use clap::Args;
use cortado::{
    classifier::{Classifier, Prediction},
    error::{Error, Result},
    net::Net,
    proto::{Phase, read_net},
};
use std::path::{Path, PathBuf};

/// Classify images, as Caffe's cpp_classification does
///
/// The net must have one input with one or three channels, and one output. The command resizes the
/// whole image to the height and width of the net's input. A net that was trained on cropped images
/// gives somewhat better results if you crop the images first.
#[derive(Args)]
#[command(after_help = "Example: cortado classify --model deploy.prototxt \
    --weights bvlc_reference_caffenet.caffemodel --mean imagenet_mean.binaryproto \
    --labels synset_words.txt cat.jpg")]
pub(super) struct Classify {
    /// Net definition in text format, with an Input layer
    #[arg(long, value_name = "FILE")]
    pub(super) model: PathBuf,
    /// Trained weights in a .safetensors, .npz, .h5 or .caffemodel file, matched by layer name
    #[arg(long, value_name = "FILE", value_delimiter = ',', required = true)]
    pub(super) weights: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) preprocessing: PreprocessingArgs,
    /// File with one class name per line; without this flag, classes are named by numbers from 0
    #[arg(long, value_name = "FILE")]
    pub(super) labels: Option<PathBuf>,
    /// Number of classes to print, the most likely first
    #[arg(long, alias = "top", value_name = "N", default_value_t = 5)]
    pub(super) top_k: usize,
    /// Images to classify
    #[arg(value_name = "IMAGE", required = true)]
    pub(super) images: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) copy: CopyArgs,
    #[command(flatten)]
    pub(super) net_state: NetStateArgs,
    #[command(flatten)]
    pub(super) device: DeviceArgs,
}

impl Classify {
    pub(super) fn run(self) -> Result<()> {
        let device = self.device.open()?;
        let mut definition = read_net(&self.model)?;
        self.net_state.apply(definition.state.get_or_insert_default());
        let with_path = |error: Error| error.context(self.model.display().to_string());
        let builder = Net::<f32>::builder(&device).phase(Phase::Test).reuse_memory(true);
        let mut net = builder.build_from(&definition, &self.model)?;
        self.copy.copy(&mut net, &self.weights)?;
        let preprocessing = self.preprocessing.preprocessing();
        let mut classifier = Classifier::new(net, &preprocessing).map_err(with_path)?;
        if let Some(labels) = &self.labels {
            classifier = classifier.with_labels(labels)?;
        }
        for path in &self.images {
            print(&format_predictions(path, &classifier.classify(path, self.top_k)?))?;
        }
        Ok(())
    }
}

/// Formats the predictions for an image as Caffe's example cpp_classification does.
fn format_predictions(path: &Path, predictions: &[Prediction]) -> String {
    let mut text = format!("---------- Prediction for {} ----------\n", path.display());
    for Prediction { class, label, score } in predictions {
        let name = match label {
            Some(label) => format!("\"{}\"", escape_control(label)),
            None => class.to_string(),
        };
        text.push_str(&format!("{score:.4} - {name}\n"));
    }
    text
}
