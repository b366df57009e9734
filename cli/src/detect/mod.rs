//! The command `cortado detect`, which finds objects in images.

mod svg;

use super::{
    copy_args::CopyArgs,
    device_args::DeviceArgs,
    escape::escape_json,
    net_state_args::NetStateArgs,
    output::{print, print_unescaped},
    preprocessing_args::{PreprocessingArgs, finite},
    suffix::check_svg,
    table::align_columns,
};
use clap::Args;
use cortado::{
    atomic_fs,
    detector::{Detection, Detector},
    error::{Error, Result},
    net::Net,
    proto::{Phase, read_net},
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Find objects in images with a net that ends in a DetectionOutput layer, such as SSD
///
/// The net must have one input with one or three channels. The command resizes the whole image to
/// the height and width of the net's input. For each object, the command prints the class, the
/// score and the edges in pixels of the image, the highest score first.
#[derive(Args)]
#[command(after_help = "Example: cortado detect --model deploy.prototxt \
    --weights mobilenet_ssd.caffemodel --mean-value 127.5 --scale 0.007843 \
    --labels labelmap_voc.prototxt --svg street.svg street.jpg")]
pub(super) struct Detect {
    /// Net definition in text format, with an Input layer
    #[arg(long, value_name = "FILE")]
    model: PathBuf,
    /// Trained weights in a .safetensors, .npz, .h5 or .caffemodel file, matched by layer name
    #[arg(long, value_name = "FILE", value_delimiter = ',', required = true)]
    weights: Vec<PathBuf>,
    #[command(flatten)]
    preprocessing: PreprocessingArgs,
    /// Label map of SSD in a .prototxt file, or a file with one class name per line, including the
    /// background; without this flag, the command prints the index of each class
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// Print only objects with at least this score
    #[arg(long, value_name = "X", default_value_t = 0.5, value_parser = finite)]
    threshold: f32,
    /// Print the objects as JSON
    #[arg(long)]
    json: bool,
    /// SVG file to write, with the image and a box around each object; allowed only with one image
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,
    /// JPEG, PNG, BMP, PBM, PGM or PPM images to search
    #[arg(value_name = "IMAGE", required = true)]
    images: Vec<PathBuf>,
    #[command(flatten)]
    copy: CopyArgs,
    #[command(flatten)]
    net_state: NetStateArgs,
    #[command(flatten)]
    device: DeviceArgs,
}

impl Detect {
    pub(super) fn run(self) -> Result<()> {
        if let Some(path) = &self.svg {
            check_svg(path)?;
            if self.images.len() > 1 {
                let images = self.images.len();
                return Err(Error::InvalidData(format!(
                    "--svg draws one image, but {images} images are given; run the command once \
                     for each image"
                )));
            }
        }
        let device = self.device.open()?;
        let mut definition = read_net(&self.model)?;
        self.net_state.apply(definition.state.get_or_insert_default());
        let builder = Net::<f32>::builder(&device).phase(Phase::Test).reuse_memory(true);
        let mut net = builder.build_from(&definition, &self.model)?;
        self.copy.copy(&mut net, &self.weights)?;
        let mut detector = Detector::new(net, &self.preprocessing.preprocessing())
            .map_err(|error| error.context(self.model.display().to_string()))?;
        if let Some(labels) = &self.labels {
            detector = detector.with_labels(labels)?;
        }
        let mut documents = Vec::new();
        for path in &self.images {
            let image = detector.read(path)?;
            let detections = detector.detect_image(&image, self.threshold)?;
            if let Some(svg) = &self.svg {
                let drawing = svg::drawing(&image, path, &detections)?;
                atomic_fs::write_atomically(svg, drawing.as_bytes())?;
            }
            match self.json {
                true => documents.push(document(path, &detections)),
                false => print(&table(path, &detections))?,
            }
        }
        match self.json {
            true => {
                print_unescaped(&(escape_json(&format!("{:#}", Value::from(documents))) + "\n"))
            }
            false => Ok(()),
        }
    }
}

/// Formats the objects in an image as a table.
fn table(path: &Path, detections: &[Detection]) -> String {
    let heading = ["class", "score", "left", "top", "right", "bottom"].map(str::to_owned).to_vec();
    let mut rows = vec![heading];
    for detection in detections {
        let mut row = vec![detection.class_name(), format!("{:.4}", detection.score)];
        row.extend(detection.edges.map(|edge| format!("{edge:.1}")));
        rows.push(row);
    }
    format!("{}\n{}", path.display(), align_columns(&rows, 1))
}

/// Returns the objects in an image as JSON.
fn document(path: &Path, detections: &[Detection]) -> Value {
    let objects = detections.iter().map(|detection| {
        let [left, top, right, bottom] = detection.edges;
        json!({
            "class": detection.class,
            "label": detection.label,
            "score": detection.score,
            "left": left,
            "top": top,
            "right": right,
            "bottom": bottom,
        })
    });
    json!({ "image": path.display().to_string(), "objects": objects.collect::<Vec<_>>() })
}
