//! `cortado classify`

use super::{
    definition::read_net, net_state_args::NetStateArgs, device_args::DeviceArgs, print, table::plain,
    train::copy_weights,
};
use crate::{
    blob::Blob,
    data::{Color, DataTransformer, Image, Record},
    device::{CpuDevice, Device, DeviceJob},
    error::{Error, Result},
    net::Net,
    op::RngKey,
    proto::{self, BlobProto, Phase, TransformationParameter},
};
use clap::Args;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Tells what images show, as Caffe's cpp_classification does
///
/// The net has one input, of one channel or three, and one output. An image is brought to the
/// input's height and width as a whole; a net that was trained on parts of larger images scores
/// somewhat better on such parts.
#[derive(Args)]
#[command(after_help = "Example: cortado classify --model deploy.prototxt \
    --weights bvlc_reference_caffenet.caffemodel --mean imagenet_mean.binaryproto \
    --labels synset_words.txt cat.jpg")]
pub(super) struct Classify {
    /// Net definition, in text format, that begins with an Input layer
    #[arg(long, value_name = "FILE")]
    model: PathBuf,
    /// Trained weights, copied by layer name: .safetensors, .npz, .h5, or else a caffemodel
    #[arg(long, value_name = "FILE", value_delimiter = ',', required = true)]
    weights: Vec<PathBuf>,
    /// Mean image in binary format, of which each channel's mean is subtracted
    #[arg(long, value_name = "FILE.binaryproto", conflicts_with = "mean_value")]
    mean: Option<PathBuf>,
    /// What is subtracted from pixels, which are 0 to 255: one value, or blue, green, red
    #[arg(long, value_name = "X,..", value_delimiter = ',', allow_negative_numbers = true)]
    mean_value: Vec<f32>,
    /// Factor of pixels, once the mean is subtracted: 0.00390625 for nets that expect 0 to 1
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    scale: f32,
    /// Names of the classes, one a line; numbers from 0 without
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// How many classes to tell, the most likely first
    #[arg(long, value_name = "N", default_value_t = 5)]
    top: usize,
    /// Images, as JPEG or PNG
    #[arg(value_name = "IMAGE", required = true)]
    images: Vec<PathBuf>,
    #[command(flatten)]
    stages: NetStateArgs,
    #[command(flatten)]
    place: DeviceArgs,
}

impl Classify {
    pub(super) fn run(self) -> Result<()> {
        self.place.clone().run(self)
    }

    /// What is done to an image of so many channels.
    fn transformer(&self, channels: usize) -> Result<DataTransformer> {
        let mean_value = match &self.mean {
            Some(path) => channel_means(path, channels)?,
            None => self.mean_value.clone(),
        };
        let param =
            TransformationParameter { mean_value, scale: Some(self.scale), ..Default::default() };
        DataTransformer::new(&param, Phase::Test, RngKey::new(0))
    }
}

impl DeviceJob for Classify {
    type Output = ();

    fn run<D: Device>(self, device: D) -> Result<()> {
        let mut definition = read_net(&self.model)?;
        self.stages.put(definition.state.get_or_insert_default());
        let within = |error: Error| error.context(self.model.display().to_string());
        let builder = Net::<f32, D>::builder(&device).phase(Phase::Test).reuse_memory(true);
        let mut net = builder.build(&definition).map_err(within)?;
        for path in &self.weights {
            copy_weights(&mut net, path)?;
        }
        let (input, shape) = one_image(&mut net).map_err(within)?;
        let [channels, height, width] = shape;
        let labels = self.labels.as_deref().map(|path| labels(path, classes(&net)?)).transpose()?;
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
            print(&prediction(path, &scores, labels.as_deref(), self.top))?;
        }
        Ok(())
    }
}

/// Makes the net one of a single image; returns its input's name, and the image's shape.
fn one_image<D: Device>(net: &mut Net<f32, D>) -> Result<(String, [usize; 3])> {
    let inputs = net.layer_params().filter(|layer| layer.r#type() == "Input");
    let inputs: Vec<_> = inputs.flat_map(|layer| layer.top.clone()).collect();
    let [name] = &inputs[..] else {
        let why = format!("classify needs a net of one input, not {}", inputs.len());
        return Err(Error::InvalidData(
            why + ": the definition for deployment has it, not for training",
        ));
    };
    let shape = net.blob(name).map(|blob| blob.shape().to_vec()).unwrap_or_default();
    let image = match shape[..] {
        [_, channels @ (1 | 3), height, width] => [channels, height, width],
        _ => {
            let why =
                format!("input `{name}` of shape {shape:?} takes no images of 1 or 3 channels");
            return Err(Error::Shape(why));
        }
    };
    if let Some(blob) = net.blob_mut(name) {
        blob.reshape(&[1, image[0], image[1], image[2]])?;
    }
    net.reshape()?;
    classes(net)?;
    Ok((name.clone(), image))
}

/// Elements of the one output.
fn classes<D: Device>(net: &Net<f32, D>) -> Result<usize> {
    let outputs: Vec<_> = net.outputs().map(|(_, blob, _)| blob.count()).collect();
    match outputs[..] {
        [count] => Ok(count),
        _ => {
            let why = format!("classify needs a net of one output, not {}", outputs.len());
            Err(Error::InvalidData(why))
        }
    }
}

/// A name for each class.
fn labels(path: &Path, classes: usize) -> Result<Vec<String>> {
    let text = fs::read_to_string(path).map_err(|error| Error::io(path, error))?;
    let labels: Vec<_> = text.lines().map(str::to_owned).collect();
    if labels.len() != classes {
        let why = format!("{} names for {classes} classes", labels.len());
        return Err(Error::InvalidData(why).context(path.display().to_string()));
    }
    Ok(labels)
}

/// The mean of each channel of a mean image.
fn channel_means(path: &Path, channels: usize) -> Result<Vec<f32>> {
    let within = |error: Error| error.context(path.display().to_string());
    let proto: BlobProto = proto::read_binary(path)?;
    let mut mean = Blob::<f32, _>::new(&CpuDevice::new(), &[])?;
    mean.from_proto(&proto, true).map_err(within)?;
    let theirs = match mean.shape()[..] {
        [1, channels, _, _] | [channels, _, _] => channels,
        _ => 0,
    };
    if theirs != channels {
        let shape = mean.shape();
        let why = format!("a mean image of shape {shape} for an input of {channels} channels");
        return Err(within(Error::Shape(why)));
    }
    let values = mean.data()?;
    let planes = values.host()?.chunks((mean.count() / channels).max(1));
    let sum = |plane: &[f32]| plane.iter().map(|&value| f64::from(value)).sum::<f64>();
    Ok(planes.map(|plane| (sum(plane) / plane.len() as f64) as f32).collect())
}

/// In the words of Caffe's example.
fn prediction(path: &Path, scores: &[f32], labels: Option<&[String]>, top: usize) -> String {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a])); // the first of equal ones comes first
    let mut text = format!("---------- Prediction for {} ----------\n", path.display());
    for class in order.into_iter().take(top) {
        let name = match labels.and_then(|labels| labels.get(class)) {
            Some(label) => format!("\"{}\"", plain(label)),
            None => class.to_string(),
        };
        text.push_str(&format!("{:.4} - {name}\n", scores[class]));
    }
    text
}
