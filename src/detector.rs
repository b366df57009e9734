//! Detection of objects in images by a trained net that ends in a DetectionOutput,
//! YoloDetectionOutput or Yolov3DetectionOutput layer, such as SSD or YOLO version 3.

use crate::{
    classifier::Preprocessing,
    data::Image,
    device::Device,
    error::{Error, Result},
    image_input::ImageInput,
    limits,
    net::Net,
    proto::{self, LabelMap, Phase},
};
use std::{collections::BTreeMap, path::Path};

/// A trained net whose only input is a blob of images, with a layer of type DetectionOutput,
/// YoloDetectionOutput or Yolov3DetectionOutput.
///
/// The detector resizes the whole image to the height and width of the net's input. The detector
/// runs the net on the device for which the net was built.
///
/// ```no_run
/// use cortado::{classifier::{MeanPixel, Preprocessing}, detector::Detector, prelude::*};
///
/// // The pixels that MobileNet-SSD expects.
/// let preprocessing = Preprocessing { mean: MeanPixel::Values(vec![127.5]), scale: 0.007843 };
/// let device = CpuDevice::new();
/// let mut detector =
///     Detector::open(&device, "deploy.prototxt", "mobilenet_ssd.caffemodel", &preprocessing)?
///         .with_labels("labelmap_voc.prototxt")?;
/// for detection in detector.detect("street.jpg", 0.5)? {
///     println!("{} {:?}", detection.class_name(), detection.edges);
/// }
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "ssd_detect")]
pub struct Detector {
    net: Net<f32>,
    input: ImageInput,
    /// Name of the top of the layer that returns the boxes.
    output: String,
    classes: usize,
    /// Factors that convert the edges in the output to fractions of the image's width and height.
    edge_scale: [f32; 2],
    labels: BTreeMap<usize, String>,
}

/// An object that a [`Detector`] has found in an image.
///
/// ```
/// use cortado::detector::Detection;
///
/// let cat = Detection {
///     class: 8,
///     label: Some("cat".into()),
///     score: 0.97,
///     edges: [20.0, 30.0, 120.0, 80.0],
/// };
/// assert_eq!(cat.class_name(), "cat");
/// let [left, top, right, bottom] = cat.edges;
/// assert_eq!([right - left, bottom - top], [100.0, 50.0]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Detection {
    /// Index of the object's class.
    pub class: usize,
    /// Name of the class, if the detector has labels.
    pub label: Option<String>,
    /// Score of the class; a probability in SSD.
    pub score: f32,
    /// Left, top, right and bottom edges of the object, in pixels of the image. Edges may lie
    /// outside the image.
    pub edges: [f32; 4],
}

impl Detection {
    /// Returns the label, or the index of the class if there is no label.
    pub fn class_name(&self) -> String {
        self.label.clone().unwrap_or_else(|| self.class.to_string())
    }
}

impl Detector {
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
        let definition = definition.as_ref();
        let builder = Net::builder(device).phase(Phase::Test).reuse_memory(true);
        let mut net = builder.from_file(definition)?;
        net.copy_trained_from_file(weights)?;
        let detector = Self::new(net, preprocessing);
        detector.map_err(|error| error.context(definition.display().to_string()))
    }

    /// Creates a detector from a net with trained weights.
    ///
    /// # Errors
    /// [`Error::InvalidData`] unless the net has one Input layer with one top, and one layer of
    /// type DetectionOutput, YoloDetectionOutput or Yolov3DetectionOutput; [`Error::Shape`] unless
    /// the input has four axes and one or three channels; [`Error::InvalidInput`] or
    /// [`Error::Shape`] if the mean does not match the number of channels; errors of
    /// [`proto::read_binary`] for a mean image.
    pub fn new(mut net: Net<f32>, preprocessing: &Preprocessing) -> Result<Self> {
        let input = ImageInput::new(&mut net, preprocessing, "detector")?;
        let kinds = ["DetectionOutput", "YoloDetectionOutput", "Yolov3DetectionOutput"];
        let layers = net.layer_params().filter(|layer| kinds.contains(&layer.r#type()));
        let layers: Vec<_> = layers.collect();
        let [layer] = layers[..] else {
            let reason = format!(
                "a detector needs a net with one {} layer, found {}",
                kinds.join(" or "),
                layers.len()
            );
            return Err(Error::InvalidData(reason));
        };
        let param = layer.detection_output_param.clone().unwrap_or_default();
        let edge_scale = match (param.normalized_bbox(), input.shape) {
            (true, _) => [1.0, 1.0],
            (false, [_, height, width]) => [1.0 / width as f32, 1.0 / height as f32],
        };
        // In the YOLO layers, the field `num_classes` does not count the background, which has the
        // label 0.
        let classes = match layer.r#type() {
            "YoloDetectionOutput" => {
                let param = layer.yolo_detection_output_param.as_ref();
                param.map_or(0, |param| param.num_classes()) as usize + 1
            }
            "Yolov3DetectionOutput" => {
                let param = layer.yolov3_detection_output_param.as_ref();
                param.map_or(0, |param| param.num_classes()) as usize + 1
            }
            _ => param.num_classes() as usize,
        };
        let output = layer.top[0].clone();
        Ok(Self { net, input, output, classes, edge_scale, labels: BTreeMap::new() })
    }

    /// Reads the names of the classes: a `LabelMap` from a file with the suffix `.prototxt`, or one
    /// name per line, including the background, from any other file.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::InvalidData`] unless a file without the suffix `.prototxt` has one
    /// name for each class; errors of [`proto::read_text`] for a `LabelMap`.
    pub fn with_labels(mut self, path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if path.extension().is_some_and(|suffix| suffix == "prototxt") {
            let map: LabelMap = proto::read_text(path)?;
            let labels = map.item.iter().filter_map(|item| {
                let name =
                    if item.display_name.is_some() { item.display_name() } else { item.name() };
                Some((usize::try_from(item.label()).ok()?, name.to_owned()))
            });
            self.labels = labels.collect();
            return Ok(self);
        }
        let text = limits::read_to_string(path, limits::LIST_LEN)?;
        self.labels = text.lines().map(str::to_owned).enumerate().collect();
        if self.labels.len() != self.classes {
            let (expected, found) = (self.classes, self.labels.len());
            let reason = format!(
                "expected {expected} labels, one for each class and the background, found {found}"
            );
            return Err(Error::InvalidData(reason).context(path.display().to_string()));
        }
        Ok(self)
    }

    /// Finds objects with a score of at least `threshold` in an image of any format that
    /// [`Image::read`] supports. Returns the objects by descending score.
    ///
    /// # Errors
    /// Errors of [`Image::read`], with the file's name; errors of the net.
    pub fn detect(&mut self, image: impl AsRef<Path>, threshold: f32) -> Result<Vec<Detection>> {
        self.detect_image(&self.read(image)?, threshold)
    }

    /// Reads an image with as many channels as the net's input.
    ///
    /// # Errors
    /// Errors of [`Image::read`], with the file's name.
    pub fn read(&self, image: impl AsRef<Path>) -> Result<Image> {
        self.input.read(image)
    }

    /// Finds objects in an image with as many channels as the net's input, like
    /// [`detect`](Self::detect).
    ///
    /// # Errors
    /// [`Error::Shape`] if the image and the net's input differ in their number of channels; errors
    /// of the net.
    pub fn detect_image(&mut self, image: &Image, threshold: f32) -> Result<Vec<Detection>> {
        self.input.store(&self.net, image, "detect")?;
        self.net.forward()?;
        let rows = self.net.blob(&self.output).map(|blob| blob.to_vec()).transpose()?;
        let [_, height, width] = image.shape();
        let scale = [self.edge_scale[0] * width as f32, self.edge_scale[1] * height as f32];
        let mut detections = Vec::new();
        for &[_, class, score, left, top, right, bottom] in rows.unwrap_or_default().as_chunks().0 {
            // A row of an image without objects has the class −1.
            if class < 0.0 || score.is_nan() || score < threshold {
                continue;
            }
            let class = class as usize;
            let edges = [left * scale[0], top * scale[1], right * scale[0], bottom * scale[1]];
            let label = self.labels.get(&class).cloned();
            detections.push(Detection { class, label, score, edges });
        }
        detections.sort_by(|a, b| b.score.total_cmp(&a.score));
        Ok(detections)
    }
}
