//! Classification of images by a trained net, like Caffe's example `cpp_classification`.

pub use crate::image_input::{MeanPixel, Preprocessing};

use crate::{
    data::Image,
    device::Device,
    error::{Error, Result},
    image_input::ImageInput,
    limits,
    net::Net,
    proto::Phase,
};
use std::path::Path;

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
    input: ImageInput,
    classes: usize,
    labels: Vec<String>,
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

impl Classifier {
    /// Reads the definition of a net, and trained weights in any format that
    /// [`Net::copy_trained_from_file`] reads.
    ///
    /// # Errors
    /// Errors of [`read_net`](crate::proto::read_net), [`Net::copy_trained_from_file`] and
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
    /// channels; errors of [`read_binary`](crate::proto::read_binary) for a mean image.
    pub fn new(mut net: Net<f32>, preprocessing: &Preprocessing) -> Result<Self> {
        let input = ImageInput::new(&mut net, preprocessing, "classifier")?;
        let outputs: Vec<_> = net.outputs().map(|(_, blob, _)| blob.count()).collect();
        let [classes] = outputs[..] else {
            let reason =
                format!("a classifier needs a net with one output, found {}", outputs.len());
            return Err(Error::InvalidData(reason));
        };
        Ok(Self { net, input, classes, labels: Vec::new() })
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

    /// Classifies an image. Returns the `top_k` classes with the highest scores, highest
    /// first.
    ///
    /// # Errors
    /// Errors of [`Image::read`], with the file's name; errors of the net.
    pub fn classify(&mut self, image: impl AsRef<Path>, top_k: usize) -> Result<Vec<Prediction>> {
        self.classify_image(&self.input.read(image)?, top_k)
    }

    /// Classifies an image with as many channels as the net's input, like
    /// [`classify`](Self::classify).
    ///
    /// # Errors
    /// [`Error::Shape`] if the image and the net's input differ in their number of channels; errors
    /// of the net.
    pub fn classify_image(&mut self, image: &Image, top_k: usize) -> Result<Vec<Prediction>> {
        self.input.store(&self.net, image, "classify")?;
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
