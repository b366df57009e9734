//! Checks whether cortado loads, runs and exports a net, and prints a line with the result.
//!
//! ```sh
//! cargo run --profile quick --features image,onnx,tensor-io --example check_model -- NET.prototxt FOLDER
//! ```
//!
//! The example builds the net for the TEST phase, fills its parameters and inputs with random
//! numbers, runs a forward pass and exports the net to ONNX. The printed line has four fields with
//! tabs between them: whether the net loads, runs and can be exported, each `yes` or `no`, and the
//! reason if one of them is `no`. A net runs if all elements of its outputs are finite. `FOLDER`
//! receives the ONNX model, and the values of its inputs and outputs as an .npz file, for
//! `tests/onnx/compare.py`.

use cortado::{
    Blob, Net,
    device::{self, DeviceOptions},
    error::{Error, Result},
    layer::MemoryDataLayer,
    onnx::{self, ExportOptions},
    proto::{NetParameter, Phase, onnx::ModelProto, read_net},
    tensor_io::{Tensor, write_npz},
};
use std::{collections::HashMap, env, fs, path::Path};

/// The most memory that the blobs of a net may occupy, in bytes.
const MEMORY_LIMIT: usize = 12 << 30;

/// The values of a net's inputs before the forward pass, by name. A layer that works in place
/// overwrites the blob of an input.
type Inputs = HashMap<String, Tensor>;

/// A linear congruential generator.
struct Noise(u32);

impl Noise {
    /// Returns a number in `[-1, 1)`.
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 8) as f32 / (1 << 23) as f32 - 1.0
    }

    fn fill(&mut self, blob: &Blob<f32>, value: impl Fn(usize, f32) -> f32) -> Result<()> {
        let mut data = blob.data_mut()?;
        let elements = data.host_mut()?.iter_mut().enumerate();
        elements.for_each(|(i, element)| *element = value(i, self.next()));
        Ok(())
    }

    /// Fills the parameters of a net with numbers that keep the values of later layers in range.
    fn fill_params(&mut self, net: &Net<f32>) -> Result<()> {
        for param in net.params().iter().filter(|param| param.owner.is_none()) {
            let blob = param.blob();
            // Biases, scales and batch statistics are positive, because some are divisors.
            if blob.shape().iter().filter(|&&extent| extent > 1).count() < 2 {
                self.fill(blob, |_, x| 0.55 + 0.45 * x)?;
            } else {
                let fan_in = (blob.count() / blob.shape()[0].max(1)).max(1) as f32;
                self.fill(blob, |_, x| x * (3.0 / fan_in).sqrt())?;
            }
        }
        Ok(())
    }

    /// Gives each MemoryData layer one batch.
    fn fill_memory_data(&mut self, net: &mut Net<f32>) -> Result<()> {
        let layers = net.layer_params().len();
        for index in 0..layers {
            let Some((_, tops)) = net.bottoms_and_tops(index) else { continue };
            let counts: Vec<usize> =
                tops.iter().filter_map(|top| net.blob(top)).map(Blob::count).collect();
            let name = net.layer_params().nth(index).map(|layer| layer.name().to_owned());
            let layer = net.layer_as::<MemoryDataLayer<f32>>(&name.unwrap_or_default());
            if let (Some(layer), [data, labels]) = (layer, &counts[..]) {
                let data = (0..*data).map(|_| self.next()).collect();
                layer.reset(data, vec![0.0; *labels])?;
            }
        }
        Ok(())
    }

    /// Fills the inputs of a net, and returns their values. The names of some inputs imply which
    /// values they hold.
    fn fill_inputs(&mut self, net: &Net<f32>) -> Result<Inputs> {
        let layers = net.layer_params().enumerate();
        let inputs: Vec<usize> =
            layers.filter(|(_, l)| l.r#type() == "Input").map(|(i, _)| i).collect();
        let mut values = Inputs::new();
        for name in inputs.iter().filter_map(|&i| net.bottoms_and_tops(i)).flat_map(|(_, t)| t) {
            let Some(blob) = net.blob(name) else { continue };
            match name {
                // Height and width of the image, and the scale at which it is resized.
                "im_info" => self.fill(blob, |i, _| if i < 2 { 224.0 } else { 1.0 })?,
                // The index of an image, and the corners of a region.
                "rois" => self.fill(blob, |i, x| match i % 5 {
                    0 => 0.0,
                    1 | 2 => (24.0 + 24.0 * x).round(),
                    _ => (120.0 + 60.0 * x).round(),
                })?,
                // Words, and whether a sequence continues.
                _ if blob.num_axes() <= 2
                    && (name.contains("sentence") || name.starts_with("cont")) =>
                {
                    self.fill(blob, |_, _| 0.0)?;
                }
                _ => self.fill(blob, |_, x| x)?,
            }
            values.insert(name.to_owned(), blob.to_tensor()?);
        }
        Ok(values)
    }
}

/// Runs a forward pass. Fails if an output is not finite.
fn run(net: &mut Net<f32>) -> Result<()> {
    net.forward()?;
    for (name, blob, _) in net.outputs() {
        if let Some(index) = blob.to_vec()?.iter().position(|x| !x.is_finite()) {
            let reason = format!("output `{name}`: element {index} is not finite");
            return Err(Error::InvalidData(reason));
        }
    }
    Ok(())
}

/// Writes a model to `stem` with the extension `onnx`, and the inputs and outputs of the last
/// forward pass to `stem` with the extension `npz`.
fn write(net: &Net<f32>, inputs: &Inputs, model: &ModelProto, stem: &str) -> Result<()> {
    onnx::write(format!("{stem}.onnx"), model)?;
    let graph = model.graph.as_ref().expect("an exported model has a graph");
    let mut tensors = Vec::new();
    for name in graph.input.iter().map(|value| value.name()) {
        let tensor = match (inputs.get(name), net.blob(name)) {
            (Some(tensor), _) => tensor.clone(),
            (None, blob) => blob.expect("an input has the name of a blob").to_tensor()?,
        };
        tensors.push((format!("input {name}"), tensor));
    }
    for name in graph.output.iter().map(|value| value.name()) {
        // A blob that is overwritten in place has the name of its last value.
        let in_place = name.rsplit_once('/').map_or(name, |(blob, _)| blob);
        let blob = net.blob(name).or(net.blob(in_place)).expect("a value has the name of a blob");
        tensors.push((format!("output {name}"), blob.to_tensor()?));
    }
    write_npz(format!("{stem}.npz"), &tensors)
}

fn check(path: &Path, folder: &str) -> ([bool; 3], Option<Error>) {
    let build = || -> Result<(NetParameter, Net<f32>)> {
        let definition = read_net(path)?;
        let options = DeviceOptions { memory_limit: Some(MEMORY_LIMIT), ..Default::default() };
        let builder = Net::builder(&device::open("cpu", options)?).phase(Phase::Test);
        let net = builder.build_from(&definition, path)?;
        Ok((definition, net))
    };
    let (definition, mut net) = match build() {
        Ok(net) => net,
        Err(error) => return ([false; 3], Some(error)),
    };
    let mut noise = Noise(1);
    let filled = noise
        .fill_params(&net)
        .and_then(|()| noise.fill_memory_data(&mut net))
        .and_then(|()| noise.fill_inputs(&net));
    let (inputs, ran) = match filled {
        Ok(inputs) => (inputs, run(&mut net)),
        Err(error) => (Inputs::new(), Err(error)),
    };
    let name = path.file_stem().map_or("net".into(), |stem| stem.to_string_lossy());
    let stem = format!("{folder}/{name}");
    let exported = onnx::export(&mut net, ExportOptions::default())
        .map_err(|error| Net::<f32>::builder(net.device()).locate(error, &definition, path))
        .and_then(|model| write(&net, &inputs, &model, &stem));
    ([true, ran.is_ok(), exported.is_ok()], ran.and(exported).err())
}

fn main() -> Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [path, folder] = &args[..] else {
        return Err(Error::InvalidData("usage: check_model NET.prototxt FOLDER".into()));
    };
    fs::create_dir_all(folder).map_err(|error| Error::InvalidData(format!("{folder}: {error}")))?;
    let (results, error) = check(Path::new(path), folder);
    let [loads, runs, exports] = results.map(|yes| if yes { "yes" } else { "no" });
    let reason = error.map_or(String::new(), |error| error.to_string());
    println!("{loads}\t{runs}\t{exports}\t{}", reason.replace(['\t', '\n'], " "));
    Ok(())
}
