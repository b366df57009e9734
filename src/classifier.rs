//! Classification of images by a trained net, like Caffe's example `cpp_classification`.

use crate::{
    blob::Blob,
    data::{Color, DataTransformer, Image, Record},
    device::{CpuDevice, Device},
    error::{Error, Result},
    limits,
    net::Net,
    op::RngKey,
    proto::{self, BlobProto, Phase, TransformationParameter},
};
use std::path::{Path, PathBuf};

/// A trained net whose only input is a blob of images and whose only output is a blob of class
/// scores.
///
/// The classifier resizes the whole image to the height and width of the net's input. The
/// classifier runs the net on the device for which the net was built.
///
/// ```no_run
/// use cortado::{classifier::{Classifier, MeanPixel, Preprocessing}, prelude::*};
///
/// let mean = MeanPixel::Image("imagenet_mean.binaryproto".into());
/// let preprocessing = Preprocessing { mean, ..Default::default() };
/// let device = CpuDevice::new();
/// let mut classifier =
///     Classifier::open(&device, "deploy.prototxt", "caffenet.caffemodel", &preprocessing)?
///         .with_labels("synset_words.txt")?;
/// for prediction in classifier.classify("cat.jpg", 5)? {
///     println!("{:.4} {}", prediction.score, prediction.label.unwrap_or_default());
/// }
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "cpp_classification")]
pub struct Classifier {
    net: Net<f32>,
    /// Name of the input blob.
    input: String,
    /// Channels, height and width of the input image.
    image: [usize; 3],
    classes: usize,
    transformer: DataTransformer,
    labels: Vec<String>,
}

/// Conversion of pixel values (0 to 255) to the net's input values, `(pixel − mean) · scale`.
///
/// ```
/// use cortado::classifier::{MeanPixel, Preprocessing};
///
/// // The mean color of ImageNet's images as blue, green and red.
/// let mean = MeanPixel::Values(vec![104.0, 117.0, 123.0]);
/// let imagenet = Preprocessing { mean, ..Default::default() };
/// assert_eq!(imagenet.scale, 1.0);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Preprocessing {
    /// The mean that is subtracted from each pixel; by default, nothing is subtracted.
    pub mean: MeanPixel,
    /// The factor by which `pixel − mean` is multiplied; by default 1.
    pub scale: f32,
}

/// The mean that [`Preprocessing`] subtracts from each pixel.
///
/// ```
/// use cortado::{classifier::{Classifier, MeanPixel, Preprocessing}, prelude::*, proto};
///
/// let text = r#"
///     layer { type: "Input" top: "data" input_param { shape { dim: [1, 3, 8, 8] } } }
///     layer { type: "Pooling" bottom: "data" top: "y" pooling_param { global_pooling: true } }"#;
/// let net = Net::<f32>::builder(&CpuDevice::new()).build(&proto::parse_text(text, "net")?)?;
/// let two_values = MeanPixel::Values(vec![104.0, 117.0]);
/// let preprocessing = Preprocessing { mean: two_values, ..Default::default() };
/// assert!(Classifier::new(net, &preprocessing).is_err()); // the net's input has three channels
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub enum MeanPixel {
    /// The classifier subtracts no mean from the pixels.
    #[default]
    None,
    /// One mean for all channels, or one mean for each channel, in the order blue, green, red.
    Values(Vec<f32>),
    /// Path of a mean image (a binaryproto file); the mean of each of its channels is subtracted.
    Image(PathBuf),
}

/// A class, and the net's score for the class.
///
/// ```
/// use cortado::classifier::Prediction;
///
/// fn describe(prediction: &Prediction) -> String {
///     let label = prediction.label.clone();
///     let name = label.unwrap_or_else(|| format!("class {}", prediction.class));
///     format!("{name}: {:.2}", prediction.score)
/// }
/// let digit = Prediction { class: 7, label: None, score: 0.98 };
/// assert_eq!(describe(&digit), "class 7: 0.98");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Index of the class, counted from 0.
    pub class: usize,
    /// Name of the class, if the classifier has labels.
    pub label: Option<String>,
    /// Score of the class; a probability if the net ends in a Softmax layer.
    pub score: f32,
}

impl Default for Preprocessing {
    fn default() -> Self {
        Self { mean: MeanPixel::None, scale: 1.0 }
    }
}

impl MeanPixel {
    /// Returns the means to subtract from images of `channels` channels: none, one mean or one mean
    /// per channel.
    fn values(&self, channels: usize) -> Result<Vec<f32>> {
        match self {
            Self::None => Ok(Vec::new()),
            Self::Values(values) if [1, channels].contains(&values.len()) => Ok(values.clone()),
            Self::Values(values) => {
                let reason =
                    format!("found {} values of the mean, expected {channels}", values.len());
                Err(Error::invalid_input("classifier", reason))
            }
            Self::Image(path) => channel_means(path, channels),
        }
    }
}

/// Returns the mean of each channel of a mean image.
fn channel_means(path: &Path, channels: usize) -> Result<Vec<f32>> {
    let add_path = |error: Error| error.context(path.display().to_string());
    let proto: BlobProto = proto::read_binary(path)?;
    let mut mean = Blob::<f32, _>::new(&CpuDevice::new(), &[])?;
    mean.from_proto(&proto, true).map_err(add_path)?;
    let mean_channels = match mean.shape()[..] {
        [1, channels, _, _] | [channels, _, _] => channels,
        _ => 0,
    };
    if mean_channels != channels {
        let shape = mean.shape();
        let reason =
            format!("the mean image has shape {shape}, but the input has {channels} channels");
        return Err(add_path(Error::Shape(reason)));
    }
    let values = mean.data()?;
    let planes = values.host()?.chunks((mean.count() / channels).max(1));
    let sum = |plane: &[f32]| plane.iter().map(|&value| f64::from(value)).sum::<f64>();
    Ok(planes.map(|plane| (sum(plane) / plane.len() as f64) as f32).collect())
}

impl Classifier {
    /// Reads the definition of a net, and trained weights in any format that
    /// [`Net::copy_trained_from_file`] reads.
    ///
    /// # Errors
    /// Errors of [`proto::read_net`], [`Net::copy_trained_from_file`] and
    /// [`NetBuilder::build`](crate::net::NetBuilder::build), with the file's name; errors of
    /// [`new`](Self::new).
    pub fn open(
        device: &impl Device,
        definition: impl AsRef<Path>,
        weights: impl AsRef<Path>,
        preprocessing: &Preprocessing,
    ) -> Result<Self> {
        let add_path = |path: &Path| {
            let path = path.display().to_string();
            move |error: Error| error.context(path.clone())
        };
        let definition = definition.as_ref();
        let builder = Net::builder(device).phase(Phase::Test).reuse_memory(true);
        let mut net = builder.from_file(definition)?;
        net.copy_trained_from_file(weights)?;
        Self::new(net, preprocessing).map_err(add_path(definition))
    }

    /// Creates a classifier from a net with trained weights.
    ///
    /// # Errors
    /// [`Error::InvalidData`] unless the net has one Input layer with one top, and one output;
    /// [`Error::Shape`] unless the input has four axes and one or three channels;
    /// [`Error::InvalidInput`] or [`Error::Shape`] if the mean does not match the number of
    /// channels; errors of [`proto::read_binary`] for a mean image.
    pub fn new(mut net: Net<f32>, preprocessing: &Preprocessing) -> Result<Self> {
        let (input, image) = reshape_to_one_image(&mut net)?;
        let outputs: Vec<_> = net.outputs().map(|(_, blob, _)| blob.count()).collect();
        let [classes] = outputs[..] else {
            let reason =
                format!("a classifier needs a net with one output, found {}", outputs.len());
            return Err(Error::InvalidData(reason));
        };
        let param = TransformationParameter {
            mean_value: preprocessing.mean.values(image[0])?,
            scale: Some(preprocessing.scale),
            ..Default::default()
        };
        let transformer = DataTransformer::new(&param, Phase::Test, RngKey::new(0))?;
        Ok(Self { net, input, image, classes, transformer, labels: Vec::new() })
    }

    /// Reads the names of the classes from a file with one name per line.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::InvalidData`] unless the file has one name for each class.
    pub fn with_labels(mut self, path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let text = limits::read_to_string(path, limits::LIST_LEN)?;
        let labels: Vec<_> = text.lines().map(str::to_owned).collect();
        if labels.len() != self.classes {
            let (expected, found) = (self.classes, labels.len());
            let reason = format!("expected {expected} labels, one for each class, found {found}");
            return Err(Error::InvalidData(reason).context(path.display().to_string()));
        }
        self.labels = labels;
        Ok(self)
    }

    /// Returns the number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Classifies a JPEG or PNG image. Returns the `top_k` classes with the highest scores, highest
    /// first.
    ///
    /// # Errors
    /// Errors of [`Image::read`], with the file's name; errors of the net.
    pub fn classify(&mut self, image: impl AsRef<Path>, top_k: usize) -> Result<Vec<Prediction>> {
        let color = if self.image[0] == 3 { Color::Bgr } else { Color::Gray };
        self.classify_image(&Image::read(image, color)?, top_k)
    }

    /// Classifies an image with as many channels as the net's input, like
    /// [`classify`](Self::classify).
    ///
    /// # Errors
    /// [`Error::Shape`] if the image and the net's input differ in their number of channels; errors
    /// of the net.
    pub fn classify_image(&mut self, image: &Image, top_k: usize) -> Result<Vec<Prediction>> {
        let [channels, height, width] = self.image;
        if image.shape()[0] != channels {
            let found = image.shape()[0];
            let reason =
                format!("classify: expected an image of {channels} channels, found {found}");
            return Err(Error::Shape(reason));
        }
        let mut record = Record::default();
        image.resize(height, width)?.store(&mut record)?;
        if let Some(input) = self.net.blob(&self.input) {
            self.transformer.transform(0, &record, input.data_mut()?.host_write_only()?)?;
        }
        self.net.forward()?;
        let output = self.net.outputs().next().map(|(_, blob, _)| blob.to_vec()).transpose()?;
        let scores = output.unwrap_or_default();
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        let prediction = |class: usize| Prediction {
            class,
            label: self.labels.get(class).cloned(),
            score: scores[class],
        };
        Ok(order.into_iter().take(top_k).map(prediction).collect())
    }
}

/// Reshapes the net's input to a batch of one image. Returns the name of the input blob and the
/// shape of one image.
fn reshape_to_one_image(net: &mut Net<f32>) -> Result<(String, [usize; 3])> {
    let inputs = net.layer_params().filter(|layer| layer.r#type() == "Input");
    let inputs: Vec<_> = inputs.flat_map(|layer| layer.top.clone()).collect();
    let [name] = &inputs[..] else {
        let reason = format!("a classifier needs a net with one input, found {}", inputs.len());
        return Err(Error::InvalidData(
            reason + "; pass the deploy definition, not the training definition",
        ));
    };
    let shape = net.blob(name).map(|blob| blob.shape().to_vec()).unwrap_or_default();
    let [_, channels @ (1 | 3), height, width] = shape[..] else {
        let reason =
            format!("input `{name}`: shape {shape:?}, expected images with 1 or 3 channels");
        return Err(Error::Shape(reason));
    };
    if let Some(blob) = net.blob_mut(name) {
        blob.reshape(&[1, channels, height, width])?;
    }
    net.reshape()?;
    Ok((name.clone(), [channels, height, width]))
}
