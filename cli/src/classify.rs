//! The command `cortado classify`, which prints the most likely classes of images.

use super::{
    definition::read_net, device_args::DeviceArgs, net_state_args::NetStateArgs, output::print,
    table::plain, train::copy_weights,
};
use clap::Args;
use cortado::{
    blob::Blob,
    data::{Color, DataTransformer, Image, Record},
    device::{AnyDevice, CpuDevice},
    error::{Error, Result},
    net::Net,
    op::RngKey,
    proto::{self, BlobProto, Phase, TransformationParameter},
};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Classify images, as Caffe's cpp_classification does
///
/// The net must have one input, of one or three channels, and one output. The whole image is
/// resized to the input's height and width. A net that was trained on cropped images scores
/// somewhat better if the images are cropped first.
#[derive(Args)]
#[command(after_help = "Example: cortado classify --model deploy.prototxt \
    --weights bvlc_reference_caffenet.caffemodel --mean imagenet_mean.binaryproto \
    --labels synset_words.txt cat.jpg")]
pub(super) struct Classify {
    /// Net definition in text format, with an Input layer
    #[arg(long, value_name = "FILE")]
    model: PathBuf,
    /// Trained weights, matched by layer name: .safetensors, .npz, .h5 or caffemodel
    #[arg(long, value_name = "FILE", value_delimiter = ',', required = true)]
    weights: Vec<PathBuf>,
    /// Mean image in binary format; the mean of each of its channels is subtracted
    #[arg(long, value_name = "FILE.binaryproto", conflicts_with = "mean_value")]
    mean: Option<PathBuf>,
    /// Value to subtract from pixels, which are 0 to 255: one value, or blue, green and red
    #[arg(long, value_name = "X,..", value_delimiter = ',', allow_negative_numbers = true)]
    mean_value: Vec<f32>,
    /// Factor that multiplies pixels after the mean is subtracted; 0.00390625 (1/256) for nets that
    /// expect pixels from 0 to 1
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    scale: f32,
    /// File with one class name per line; without this flag, classes are numbered from 0
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// Number of classes to print, the most likely first
    #[arg(long, alias = "top", value_name = "N", default_value_t = 5)]
    top_k: usize,
    /// JPEG or PNG images to classify
    #[arg(value_name = "IMAGE", required = true)]
    images: Vec<PathBuf>,
    #[command(flatten)]
    net_state: NetStateArgs,
    #[command(flatten)]
    device: DeviceArgs,
}

impl Classify {
    pub(super) fn run(self) -> Result<()> {
        let device = self.device.open()?;
        self.run_on(&device)
    }

    /// Returns the transformer for images with this number of channels.
    fn transformer(&self, channels: usize) -> Result<DataTransformer> {
        let mean_value = match &self.mean {
            Some(path) => channel_means(path, channels)?,
            None => self.mean_value.clone(),
        };
        let param =
            TransformationParameter { mean_value, scale: Some(self.scale), ..Default::default() };
        DataTransformer::new(&param, Phase::Test, RngKey::new(0))
    }

    fn run_on(self, device: &AnyDevice) -> Result<()> {
        let mut definition = read_net(&self.model)?;
        self.net_state.apply(definition.state.get_or_insert_default());
        let with_path = |error: Error| error.context(self.model.display().to_string());
        let builder = Net::<f32>::builder(device).phase(Phase::Test).reuse_memory(true);
        let mut net = builder.build(&definition).map_err(with_path)?;
        for path in &self.weights {
            copy_weights(&mut net, path)?;
        }
        let (input, shape) = reshape_to_one_image(&mut net).map_err(with_path)?;
        let [channels, height, width] = shape;
        let labels =
            self.labels.as_deref().map(|path| labels(path, class_count(&net)?)).transpose()?;
        let transformer = self.transformer(channels)?;
        let color = if channels == 3 { Color::Bgr } else { Color::Gray };
        let mut record = Record::default();
        for path in &self.images {
            let image = Image::read(path, color)?.resize(height, width)?;
            image.store(&mut record)?;
            if let Some(blob) = net.blob(&input) {
                transformer.transform(0, &record, blob.data_mut()?.host_write_only()?)?;
            }
            net.forward()?;
            let scores =
                net.outputs().next().map(|(_, blob, _)| blob.data()?.host().map(<[f32]>::to_vec));
            let scores = scores.transpose()?.unwrap_or_default();
            print(&prediction(path, &scores, labels.as_deref(), self.top_k))?;
        }
        Ok(())
    }
}

/// Reshapes the net's input to a batch of one image. Returns the name of the input and the image's
/// shape.
fn reshape_to_one_image(net: &mut Net<f32>) -> Result<(String, [usize; 3])> {
    let inputs = net.layer_params().filter(|layer| layer.r#type() == "Input");
    let inputs: Vec<_> = inputs.flat_map(|layer| layer.top.clone()).collect();
    let [name] = &inputs[..] else {
        let why = format!("classify needs a net with one input, found {}", inputs.len());
        return Err(Error::InvalidData(
            why + "; pass the deploy definition, not the training definition",
        ));
    };
    let shape = net.blob(name).map(|blob| blob.shape().to_vec()).unwrap_or_default();
    let image = match shape[..] {
        [_, channels @ (1 | 3), height, width] => [channels, height, width],
        _ => {
            let why =
                format!("input `{name}`: shape {shape:?}, expected images with 1 or 3 channels");
            return Err(Error::Shape(why));
        }
    };
    if let Some(blob) = net.blob_mut(name) {
        blob.reshape(&[1, image[0], image[1], image[2]])?;
    }
    net.reshape()?;
    class_count(net)?;
    Ok((name.clone(), image))
}

/// Returns the number of elements of the net's only output.
fn class_count(net: &Net<f32>) -> Result<usize> {
    let outputs: Vec<_> = net.outputs().map(|(_, blob, _)| blob.count()).collect();
    match outputs[..] {
        [count] => Ok(count),
        _ => {
            let why = format!("classify needs a net with one output, found {}", outputs.len());
            Err(Error::InvalidData(why))
        }
    }
}

/// Reads the class names, one per line.
fn labels(path: &Path, classes: usize) -> Result<Vec<String>> {
    let text = fs::read_to_string(path).map_err(|error| Error::io(path, error))?;
    let labels: Vec<_> = text.lines().map(str::to_owned).collect();
    if labels.len() != classes {
        let why = format!("{} labels, but the net has {classes} classes", labels.len());
        return Err(Error::InvalidData(why).context(path.display().to_string()));
    }
    Ok(labels)
}

/// Returns the mean of each channel of a mean image.
fn channel_means(path: &Path, channels: usize) -> Result<Vec<f32>> {
    let with_path = |error: Error| error.context(path.display().to_string());
    let proto: BlobProto = proto::read_binary(path)?;
    let mut mean = Blob::<f32, _>::new(&CpuDevice::new(), &[])?;
    mean.from_proto(&proto, true).map_err(with_path)?;
    let found = match mean.shape()[..] {
        [1, channels, _, _] | [channels, _, _] => channels,
        _ => 0,
    };
    if found != channels {
        let shape = mean.shape();
        let why =
            format!("the mean image has shape {shape}, but the input has {channels} channels");
        return Err(with_path(Error::Shape(why)));
    }
    let values = mean.data()?;
    let planes = values.host()?.chunks((mean.count() / channels).max(1));
    let sum = |plane: &[f32]| plane.iter().map(|&value| f64::from(value)).sum::<f64>();
    Ok(planes.map(|plane| (sum(plane) / plane.len() as f64) as f32).collect())
}

/// Formats the most likely classes like Caffe's example cpp_classification.
fn prediction(path: &Path, scores: &[f32], labels: Option<&[String]>, top_k: usize) -> String {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
    let mut text = format!("---------- Prediction for {} ----------\n", path.display());
    for class in order.into_iter().take(top_k) {
        let name = match labels.and_then(|labels| labels.get(class)) {
            Some(label) => format!("\"{}\"", plain(label)),
            None => class.to_string(),
        };
        text.push_str(&format!("{:.4} - {name}\n", scores[class]));
    }
    text
}
