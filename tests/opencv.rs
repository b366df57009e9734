//! Compares images and the layers of the SSD fork with OpenCV, which reads Caffe's files with its
//! own code.
//!
//! The environment variable `CORTADO_OPENCV_PYTHON` names a Python interpreter with the packages in
//! `tests/opencv/requirements.txt`. The test writes each net with inputs and cortado's outputs to a
//! folder, and `tests/opencv/compare.py` runs the nets with OpenCV and compares the outputs. The
//! environment variable `CORTADO_OPENCV_NETS` may name a folder with further net definitions, for
//! which the test generates random weights.

#[path = "opencv/images.rs"]
mod images;

use cortado::{
    Blob, CpuDevice, Net,
    proto::{self, Phase},
    tensor_io,
};
use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Returns the path of a Python interpreter that has OpenCV.
fn python() -> OsString {
    env::var_os("CORTADO_OPENCV_PYTHON").unwrap_or_else(|| {
        panic!("set CORTADO_OPENCV_PYTHON to a Python with tests/opencv/requirements.txt")
    })
}

/// Runs a script in `tests/opencv` with the path of a folder.
fn run(script: &str, folder: &Path) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/opencv").join(script);
    let status = Command::new(python()).arg(script).arg(folder).status().unwrap();
    assert!(status.success(), "the files in {} differ", folder.display());
}

/// Returns an empty folder.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A linear congruential generator.
struct Noise(u32);

impl Noise {
    /// Returns a number in `[low, high)`.
    fn float(&mut self, low: f32, high: f32) -> f32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        low + (high - low) * ((self.0 >> 8) as f32 / (1 << 24) as f32)
    }

    /// Returns a number in `low..=high`.
    fn integer(&mut self, low: usize, high: usize) -> usize {
        low + (self.float(0.0, (high - low + 1) as f32) as usize).min(high - low)
    }

    fn flag(&mut self) -> bool {
        self.integer(0, 1) == 1
    }

    fn fill(&mut self, blob: &Blob<f32>, low: f32, high: f32) {
        let values: Vec<f32> = (0..blob.count()).map(|_| self.float(low, high)).collect();
        blob.copy_from_slice(&values).unwrap();
    }
}

/// The folder with the nets.
struct Nets(PathBuf);

impl Nets {
    fn new() -> Self {
        Self(folder("opencv"))
    }

    /// Builds a net, fills inputs and parameters with `fill`, and stores the net with its inputs and
    /// outputs.
    fn add(&self, name: &str, text: &str, fill: impl FnOnce(&Net<f32>)) {
        let definition = proto::parse_text(text, name).unwrap();
        let builder = Net::<f32>::builder(&CpuDevice::new()).phase(Phase::Test);
        let mut net = builder.build(&definition).unwrap_or_else(|error| panic!("{text}: {error}"));
        fill(&net);
        net.forward().unwrap();
        fs::write(self.0.join(format!("{name}.prototxt")), text).unwrap();
        let weights = self.0.join(format!("{name}.caffemodel"));
        proto::write_binary(weights, &net.to_proto(false).unwrap()).unwrap();
        let inputs = net.layer_params().filter(|layer| layer.r#type() == "Input");
        let inputs = inputs.flat_map(|layer| layer.top.iter().map(|top| ("input", top.clone())));
        let outputs = net.outputs().map(|(name, ..)| ("output", name.to_owned()));
        let tensors: Vec<_> = inputs
            .chain(outputs)
            .map(|(role, blob)| {
                let tensor = net.blob(&blob).unwrap().to_tensor().unwrap();
                (format!("{role} {blob}"), tensor)
            })
            .collect();
        tensor_io::write_npz(self.0.join(format!("{name}.npz")), &tensors).unwrap();
    }
}

fn input(name: &str, shape: &[usize]) -> String {
    format!(
        "layer {{ name: '{name}' type: 'Input' top: '{name}' \
         input_param {{ shape {{ dim: {shape:?} }} }} }}\n"
    )
}

fn permute(noise: &mut Noise) -> String {
    let shape: Vec<usize> = (0..4).map(|_| noise.integer(1, 5)).collect();
    let mut order = [0, 1, 2, 3];
    for i in (1..4).rev() {
        order.swap(i, noise.integer(0, i));
    }
    let layer = "layer { name: 'y' type: 'Permute' bottom: 'x' top: 'y'";
    format!("{}{layer} permute_param {{ order: {order:?} }} }}\n", input("x", &shape))
}

fn normalize(noise: &mut Noise) -> String {
    let shape: Vec<usize> = (0..4).map(|_| noise.integer(1, 5)).collect();
    let across_spatial = noise.flag();
    // OpenCV does not support factors per channel if the norm includes all positions.
    let channel_shared = across_spatial || noise.flag();
    let eps = [1e-10, 1e-3, 0.5][noise.integer(0, 2)];
    let layer = "layer { name: 'y' type: 'Normalize' bottom: 'x' top: 'y'";
    format!(
        "{}{layer} norm_param {{ across_spatial: {across_spatial} \
         channel_shared: {channel_shared} eps: {eps} }} }}\n",
        input("x", &shape)
    )
}

fn prior_box(noise: &mut Noise) -> String {
    let features = [1, 4, noise.integer(1, 5), noise.integer(1, 5)];
    let image = [1, 3, noise.integer(20, 60), noise.integer(20, 60)];
    let mut param = format!("clip: {} ", noise.flag());
    if noise.integer(0, 3) == 0 {
        param += "width: [10, 20.5] height: [4.5, 7] ";
    } else {
        let sizes = noise.integer(1, 2);
        let has_max = noise.flag();
        for i in 0..sizes {
            // The sizes are whole numbers, because OpenCV, unlike the fork, does not truncate
            // fractions.
            let min = noise.integer(4, 20) + 10 * i;
            param += &format!("min_size: {min} ");
            if has_max {
                param += &format!("max_size: {} ", min + noise.integer(1, 20));
            }
        }
        param += &format!("flip: {} ", noise.flag());
        for _ in 0..noise.integer(0, 3) {
            param += &format!("aspect_ratio: {} ", [1.0, 2.0, 3.0, 0.5, 1.5][noise.integer(0, 4)]);
        }
    }
    match noise.integer(0, 2) {
        0 => param += &format!("variance: {} ", noise.float(0.05, 0.3)),
        _ => param += "variance: [0.1, 0.2, 0.3, 0.4] ",
    }
    match noise.integer(0, 2) {
        0 => param += &format!("step: {} ", noise.float(4.0, 12.0)),
        1 => param += &format!("step_h: {} step_w: 5.5 ", noise.float(4.0, 12.0)),
        _ => {}
    }
    match noise.integer(0, 3) {
        0 => param += &format!("offset: {} ", noise.float(0.0, 1.0)),
        1 => param += "offset_h: 0.25 offset_w: 0.75 ",
        2 => param += "offset_h: [0.25, 0.5] offset_w: [0.75, 1] ",
        _ => {}
    }
    let layer = "layer { name: 'y' type: 'PriorBox' bottom: 'f' bottom: 'x' top: 'y'";
    format!(
        "{}{}{layer} prior_box_param {{ {param} }} }}\n",
        input("f", &features),
        input("x", &image)
    )
}

/// Returns the definition of a net with a DetectionOutput layer, and whether the edges of its prior
/// boxes are in pixels.
fn detection_output(noise: &mut Noise) -> (String, bool) {
    let (images, boxes, classes) = (noise.integer(1, 3), noise.integer(1, 40), noise.integer(2, 5));
    let (shares, encoded) = (noise.flag(), noise.flag());
    let in_pixels = noise.integer(0, 3) == 0;
    let locations = if shares { 1 } else { classes };
    // OpenCV and the fork fail without a background class if all classes share offsets.
    let background =
        if shares { noise.integer(0, 1) as i32 } else { noise.integer(0, 2) as i32 - 1 };
    let code = ["CORNER", "CENTER_SIZE"][noise.integer(0, 1)];
    let text = input("l", &[images, boxes * locations * 4])
        + &input("s", &[images, boxes * classes])
        // OpenCV expects no variances if they are part of the offsets.
        + &input("p", &[1, if encoded { 1 } else { 2 }, boxes * 4])
        + &input("x", &[images, 3, 40, 60]);
    let text = format!(
        "{text}layer {{ name: 'y' type: 'DetectionOutput' bottom: 'l' bottom: 's' bottom: 'p' \
         bottom: 'x' top: 'y' detection_output_param {{ num_classes: {classes} \
         share_location: {shares} background_label_id: {background} code_type: {code} \
         variance_encoded_in_target: {encoded} keep_top_k: {} confidence_threshold: {} \
         nms_param {{ nms_threshold: {} top_k: {} }} clip: {} normalized_bbox: {} }} }}\n",
        noise.integer(1, 60),
        noise.float(0.0, 0.6),
        noise.float(0.2, 0.8),
        noise.integer(1, 50),
        noise.flag(),
        !in_pixels,
    );
    (text, in_pixels)
}

/// Fills the bottoms of a DetectionOutput layer: offsets, scores, and prior boxes with variances.
fn fill_detections(noise: &mut Noise, net: &Net<f32>, in_pixels: bool) {
    noise.fill(net.blob("l").unwrap(), -1.0, 1.0);
    noise.fill(net.blob("s").unwrap(), 0.0, 1.0);
    let priors = net.blob("p").unwrap();
    let scale = if in_pixels { 40.0 } else { 1.0 };
    let mut values = Vec::new();
    for _ in 0..priors.shape()[2] / 4 {
        let [left, top] = [noise.float(-0.1, 0.8), noise.float(-0.1, 0.8)];
        let [right, bottom] = [left + noise.float(0.05, 0.5), top + noise.float(0.05, 0.5)];
        values.extend([left, top, right, bottom].map(|edge| edge * scale));
    }
    while values.len() < priors.count() {
        values.push(noise.float(0.05, 0.3));
    }
    priors.copy_from_slice(&values).unwrap();
}

/// Fills the inputs and parameters of an SSD with noise that keeps the activations in range.
fn fill_ssd(noise: &mut Noise, net: &Net<f32>) {
    noise.fill(net.blob("data").unwrap(), -1.0, 1.0);
    for param in net.params() {
        let blob = param.blob();
        let fan_in = blob.count() / blob.shape().first().map_or(1, |&extent| extent.max(1));
        let bound = (6.0 / fan_in.max(1) as f32).sqrt();
        match blob.num_axes() {
            0 | 1 => noise.fill(blob, -0.2, 0.8),
            _ => noise.fill(blob, -bound, bound),
        }
    }
}

#[test]
fn ssd_layers_agree_with_opencv() {
    let (nets, noise) = (Nets::new(), &mut Noise(1));
    for i in 0..40 {
        let text = permute(noise);
        nets.add(&format!("permute_{i}"), &text, |net| {
            noise.fill(net.blob("x").unwrap(), -1.0, 1.0)
        });
        let text = normalize(noise);
        nets.add(&format!("normalize_{i}"), &text, |net| {
            noise.fill(net.blob("x").unwrap(), -1.0, 1.0);
            net.params().iter().for_each(|param| noise.fill(param.blob(), 0.5, 2.0));
        });
        nets.add(&format!("prior_box_{i}"), &prior_box(noise), |_| {});
        let (text, in_pixels) = detection_output(noise);
        let name = format!("detection_output_{i}");
        nets.add(&name, &text, |net| fill_detections(noise, net, in_pixels));
    }
    let ssd = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/opencv/ssd.prototxt");
    let ssd = fs::read_to_string(ssd).unwrap();
    for i in 0..5 {
        nets.add(&format!("ssd_{i}"), &ssd, |net| fill_ssd(noise, net));
    }
    if let Some(folder) = env::var_os("CORTADO_OPENCV_NETS") {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = format!("ssd_{}", path.file_stem().unwrap().display());
            let definition: proto::NetParameter = proto::read_net(&path).unwrap();
            nets.add(&name, &proto::to_text(&definition).unwrap(), |net| fill_ssd(noise, net));
        }
    }
    run("compare.py", &nets.0);
}

#[test]
fn images_agree_with_opencv() {
    let folder = folder("opencv-images");
    run("images.py", &folder);
    let different = images::compare(&folder);
    assert!(different.is_empty(), "these files differ: {different:#?}");
}
