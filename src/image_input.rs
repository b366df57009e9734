//! The input of a net that takes one image, and the conversion of an image to the values of the
//! input blob.

use crate::{
    blob::Blob,
    data::{Color, DataTransformer, Image, Record},
    device::CpuDevice,
    error::{Error, Result},
    net::Net,
    op::RngKey,
    proto::{self, BlobProto, Phase, TransformationParameter},
};
use std::path::{Path, PathBuf};

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

impl Default for Preprocessing {
    fn default() -> Self {
        Self { mean: MeanPixel::None, scale: 1.0 }
    }
}

impl MeanPixel {
    /// Returns the means to subtract from images of `channels` channels: none, one mean or one mean
    /// per channel.
    fn values(&self, channels: usize, user: &'static str) -> Result<Vec<f32>> {
        match self {
            Self::None => Ok(Vec::new()),
            Self::Values(values) if [1, channels].contains(&values.len()) => Ok(values.clone()),
            Self::Values(values) => {
                let reason =
                    format!("found {} values of the mean, expected {channels}", values.len());
                Err(Error::invalid_input(user, reason))
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

/// The input blob of a net, which holds a batch of one image.
pub(crate) struct ImageInput {
    /// Name of the input blob.
    name: String,
    /// Channels, height and width of the input image.
    pub(crate) shape: [usize; 3],
    transformer: DataTransformer,
}

impl ImageInput {
    /// Reshapes the only input of a net to one image. `user` names the kind of program that needs
    /// the net, such as `detector`, in error messages.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] unless the net has one Input layer with one top, and
    /// [`Error::Shape`] unless the input has four axes and one or three channels. Returns an error
    /// if the mean does not match the number of channels, and the errors of [`proto::read_binary`]
    /// for a mean image.
    pub(crate) fn new(
        net: &mut Net<f32>,
        preprocessing: &Preprocessing,
        user: &'static str,
    ) -> Result<Self> {
        let (name, shape) = reshape_to_one_image(net, user)?;
        let param = TransformationParameter {
            mean_value: preprocessing.mean.values(shape[0], user)?,
            scale: Some(preprocessing.scale),
            ..Default::default()
        };
        let transformer = DataTransformer::new(&param, Phase::Test, RngKey::new(0))?;
        Ok(Self { name, shape, transformer })
    }

    /// Reads an image with as many channels as the net's input.
    ///
    /// # Errors
    /// Returns errors of [`Image::read`], with the file's name.
    pub(crate) fn read(&self, path: impl AsRef<Path>) -> Result<Image> {
        Image::read(path, if self.shape[0] == 3 { Color::Bgr } else { Color::Gray })
    }

    /// Resizes `image` to the size of the net's input, and writes its pixels to the input blob. The
    /// error for a wrong number of channels starts with `operation`.
    ///
    /// # Errors
    /// Returns [`Error::Shape`] if the image and the net's input differ in their number of channels.
    pub(crate) fn store(&self, net: &Net<f32>, image: &Image, operation: &str) -> Result<()> {
        let [channels, height, width] = self.shape;
        if image.shape()[0] != channels {
            let found = image.shape()[0];
            let reason =
                format!("{operation}: expected an image of {channels} channels, found {found}");
            return Err(Error::Shape(reason));
        }
        let mut record = Record::default();
        image.resize(height, width)?.store(&mut record)?;
        match net.blob(&self.name) {
            Some(input) => {
                self.transformer.transform(0, &record, input.data_mut()?.host_write_only()?)
            }
            None => Ok(()),
        }
    }
}

/// Reshapes the net's input to a batch of one image. Returns the name of the input blob and the
/// shape of one image.
fn reshape_to_one_image(net: &mut Net<f32>, user: &str) -> Result<(String, [usize; 3])> {
    let inputs = net.layer_params().filter(|layer| layer.r#type() == "Input");
    let inputs: Vec<_> = inputs.flat_map(|layer| layer.top.clone()).collect();
    let [name] = &inputs[..] else {
        let reason = format!("a {user} needs a net with one input, found {}", inputs.len());
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
