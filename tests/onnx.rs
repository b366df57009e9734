//! Compares exported ONNX models with ONNX Runtime: the golden cases of Caffe, and whole nets.
//!
//! The environment variable `CORTADO_ONNX_PYTHON` names a Python interpreter with the packages in
//! `tests/onnx/requirements.txt`. The test writes each model with inputs and cortado's outputs to a
//! folder, and `tests/onnx/compare.py` checks the models and compares the outputs.

mod support;

use cortado::{
    Blob, CpuDevice, Net,
    onnx::{self, ExportOptions},
    proto::{self, BlobProto, BlobProtoVector, NetParameter, Phase},
    tensor_io::{self, Tensor},
};
use std::{
    env,
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::Command,
};
use support::{minimum, table, testdata};

/// The folder with the models, and the list of models.
struct Models {
    folder: PathBuf,
    count: usize,
    refused: Vec<String>,
}

impl Models {
    fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Self { folder, count: 0, refused: Vec::new() }
    }

    /// Exports a net, runs it, and stores the model with the net's inputs and outputs. Records the
    /// reason if the net cannot be exported.
    fn add(&mut self, name: &str, net: &mut Net<f32>, options: ExportOptions) {
        let model = match onnx::export(net, options) {
            Ok(model) => model,
            Err(error) => {
                self.refused.push(format!("{name}: {error}"));
                return;
            }
        };
        let graph = model.graph.as_ref().unwrap();
        let name = format!("{}{}", name, if options.dynamic_batch { "_dynamic" } else { "" });
        onnx::write(self.folder.join(format!("{name}.onnx")), &model).unwrap();
        let mut tensors = Vec::new();
        for input in &graph.input {
            let blob = net.blob(input.name()).unwrap();
            tensors.push((format!("input {}", input.name()), tensor(blob)));
        }
        net.forward().unwrap();
        for output in &graph.output {
            // A blob that is overwritten in place has the name of its last value.
            let blob = output.name().rsplit_once('/').map_or(output.name(), |(blob, _)| blob);
            let blob = net.blob(output.name()).or(net.blob(blob)).unwrap();
            tensors.push((format!("output {}", output.name()), tensor(blob)));
        }
        tensor_io::write_npz(self.folder.join(format!("{name}.npz")), &tensors).unwrap();
        self.count += 1;
    }

    /// Runs `compare.py` on the models. Fails if the outputs of a model differ from cortado's.
    fn compare(self, min_count: usize) {
        let mut list = File::create(self.folder.join("refused.txt")).unwrap();
        self.refused.iter().for_each(|reason| writeln!(list, "{reason}").unwrap());
        assert!(self.count >= min_count, "{} of {min_count}: {:#?}", self.count, self.refused);
        let Some(python) = env::var_os("CORTADO_ONNX_PYTHON") else {
            panic!("set CORTADO_ONNX_PYTHON to a Python with tests/onnx/requirements.txt");
        };
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/onnx/compare.py");
        let status = Command::new(python).arg(script).arg(&self.folder).status().unwrap();
        assert!(status.success(), "models in {} differ", self.folder.display());
    }
}

fn tensor(blob: &Blob<f32>) -> Tensor {
    blob.to_tensor().unwrap()
}

/// A linear congruential generator.
struct Noise(u32);

impl Noise {
    /// Returns a number in `[-1, 1)`.
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 8) as f32 / (1 << 23) as f32 - 1.0
    }

    fn fill(&mut self, blob: &Blob<f32>, value: impl Fn(f32) -> f32) {
        let mut data = blob.data_mut().unwrap();
        data.host_mut().unwrap().iter_mut().for_each(|element| *element = value(self.next()));
    }
}

/// Fills the inputs and parameters of a net with noise that keeps the activations in range.
fn randomize(net: &mut Net<f32>) {
    let mut noise = Noise(1);
    for param in net.params().iter().filter(|param| param.owner.is_none()) {
        let blob = param.blob();
        match blob.num_axes() {
            0 | 1 => noise.fill(blob, |x| 0.55 + 0.45 * x),
            _ => {
                let fan_in = (blob.count() / blob.shape()[0].max(1)).max(1) as f32;
                noise.fill(blob, |x| x * (3.0 / fan_in).sqrt());
            }
        }
    }
    // Other inputs, such as labels, stay 0.
    if let Ok(model) = onnx::export(net, ExportOptions::default()) {
        for input in model.graph.unwrap().input {
            noise.fill(net.blob(input.name()).unwrap(), |x| x);
        }
    }
}

/// Reads the kind, name and value of each blob of a golden case.
fn golden(case: &Path) -> Vec<(String, String, BlobProto)> {
    let blobs: BlobProtoVector = proto::read_binary(case.join("golden.binaryproto")).unwrap();
    let index = fs::read_to_string(case.join("index.tsv")).unwrap();
    let names = index.lines().map(|line| line.split_once('\t').unwrap());
    names.zip(blobs.blobs).map(|((kind, name), blob)| (kind.into(), name.into(), blob)).collect()
}

/// Exports the golden cases of layers and small nets, with the inputs and parameters of the cases.
#[test]
fn golden_layers_agree() {
    let Some(set) = testdata("golden/layers", "the comparison of layers with ONNX Runtime") else {
        return;
    };
    let mut models = Models::new("onnx_layers");
    for row in table(&set.join("cases.tsv")) {
        let folder = set.join(&row[0]);
        let mut definition: NetParameter = proto::read_net(folder.join("net.prototxt")).unwrap();
        for infogain in definition.layer.iter_mut().filter_map(|l| l.infogain_loss_param.as_mut()) {
            let source = infogain.source.take();
            infogain.source = source.map(|file| folder.join(file).display().to_string());
        }
        let builder = Net::<f32>::builder(&CpuDevice::new()).phase(Phase::Test);
        let mut net = match builder.build(&definition) {
            Ok(net) => net,
            Err(error) => {
                models.refused.push(format!("{}: not built: {error}", row[0]));
                continue;
            }
        };
        for (kind, name, value) in golden(&folder) {
            if kind == "input"
                && let Some(blob) = net.blob_mut(&name)
            {
                blob.from_proto(&value, true).unwrap();
            }
            if kind == "param" {
                let (layer, index) = name.rsplit_once('.').unwrap();
                let params = net.layer(layer).unwrap().params();
                params[index.parse::<usize>().unwrap()].share().from_proto(&value, false).unwrap();
            }
        }
        net.reshape().unwrap();
        models.add(&row[0], &mut net, ExportOptions::default());
        models.add(&row[0], &mut net, ExportOptions { dynamic_batch: true });
    }
    models.compare(minimum(600, 100));
}

/// Exports the nets whose structure Caffe printed, with random weights.
#[test]
fn golden_nets_agree() {
    let Some(set) = testdata("golden/nets/valid", "the comparison of nets with ONNX Runtime")
    else {
        return;
    };
    let mut models = Models::new("onnx_nets");
    for row in table(&set.join("cases.tsv")).iter().filter(|row| row[1] == "net") {
        let definition = proto::read_net(set.join(&row[0]).join("net.prototxt")).unwrap();
        let builder = Net::<f32>::builder(&CpuDevice::new()).phase(Phase::Test);
        match builder.build(&definition) {
            Ok(mut net) => {
                randomize(&mut net);
                models.add(&row[0], &mut net, ExportOptions::default());
            }
            Err(error) => models.refused.push(format!("{}: not built: {error}", row[0])),
        }
    }
    models.compare(minimum(40, 20));
}

/// Exports LeNet and the nets of `examples/imagenet` with a batch of one image, a fully
/// convolutional net and a small SSD. AlexNet and CaffeNet get smaller images, so that their weights are smaller.
#[test]
fn whole_nets_agree() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut models = Models::new("onnx_whole_nets");
    let text = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    let mut nets: Vec<(&str, String)> = ["alexnet", "caffenet", "googlenet", "resnet50"]
        .iter()
        .map(|&name| {
            let text = text(&format!("examples/imagenet/{name}.prototxt"));
            (name, text.replace("[10, 3, 227, 227]", "[10, 3, 99, 99]"))
        })
        .collect();
    nets.push(("lenet", text("examples/digits/deploy.prototxt")));
    nets.push(("fcn", text("tests/onnx/fcn.prototxt")));
    nets.push(("ssd", text("tests/opencv/ssd.prototxt")));
    for (name, text) in nets {
        let text = text.replace("dim: [10, 3, ", "dim: [1, 3, ").replace("dim: 10 }", "dim: 1 }");
        let definition = proto::parse_text(text, name).unwrap();
        let builder = Net::<f32>::builder(&CpuDevice::new()).phase(Phase::Test);
        let mut net = builder.build(&definition).unwrap();
        randomize(&mut net);
        models.add(name, &mut net, ExportOptions::default());
        models.add(name, &mut net, ExportOptions { dynamic_batch: true });
    }
    models.compare(14);
}

/// Exports a net with layers of Caffe's forks and initial parameters, and the nets whose results
/// OpenCV computed.
#[test]
fn layers_of_forks_agree() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut models = Models::new("onnx_forks");
    let mut definitions = vec![root.join("tests/onnx/forks.prototxt")];
    for entry in root.join("tests/opencv/layers").read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "prototxt") {
            definitions.push(path);
        }
    }
    for path in definitions {
        let definition = proto::read_net(&path).unwrap();
        let builder = Net::<f32>::builder(&CpuDevice::new()).phase(Phase::Test).seed(1);
        let mut net = builder.build(&definition).unwrap();
        let mut noise = Noise(1);
        noise.fill(net.blob("x").unwrap_or_else(|| net.blob("scores").unwrap()), |x| 4.0 * x);
        if let Some(rois) = net.blob("rois") {
            let edges = [0.0, 1.0, 2.0, 12.0, 9.0];
            let values: Vec<f32> = (0..rois.count()).map(|i| edges[i % 5]).collect();
            rois.copy_from_slice(&values).unwrap();
        }
        let name = path.file_stem().unwrap().to_str().unwrap();
        models.add(name, &mut net, ExportOptions::default());
        if name == "forks" {
            models.add(name, &mut net, ExportOptions { dynamic_batch: true });
        }
    }
    assert_eq!(models.refused.len(), 2, "PSROIPooling and Proposal: {:#?}", models.refused);
    models.compare(9);
}
