//! The command `cortado convert`, which converts trained weights between file formats.

use super::output::print;
use clap::Args;
use cortado::{
    blob::Blob,
    device::CpuDevice,
    element::{DType, Element},
    error::{Error, Result},
    proto::{self, BlobProto, BlobShape, LayerParameter, NetParameter},
    tensor_io::{self, Tensor},
};
use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
};

/// Convert trained weights between .caffemodel, .caffemodel.h5, .safetensors and .npz files
///
/// The values stay exactly equal. The tensors of .safetensors and .npz files have names such as
/// conv1.0: the name of the layer and the index of the parameter. A file in a format other than
/// .caffemodel contains only the names and the parameters of the layers, which is all that loading
/// weights into a net needs. Gradients are kept only in conversions between .caffemodel and
/// .caffemodel.h5.
#[derive(Args)]
#[command(after_help = "Example: cortado convert lenet.caffemodel lenet.safetensors")]
pub(super) struct Convert {
    /// Trained weights
    #[arg(value_name = "IN")]
    from: PathBuf,
    /// File to write; an existing file is replaced
    #[arg(value_name = "OUT")]
    to: PathBuf,
}

/// File format of trained weights, selected by the suffix of the file.
#[derive(Clone, Copy, PartialEq)]
enum Format {
    Caffemodel,
    Hdf5,
    Safetensors,
    Npz,
}

impl Format {
    fn of(path: &Path) -> Result<Self> {
        let suffix = path.extension().map(|suffix| suffix.to_string_lossy().to_lowercase());
        match suffix.as_deref() {
            Some("caffemodel") => Ok(Self::Caffemodel),
            Some("h5") => Ok(Self::Hdf5),
            Some("safetensors") => Ok(Self::Safetensors),
            Some("npz") => Ok(Self::Npz),
            _ => {
                let reason = "unknown suffix; expected .caffemodel, .h5, .safetensors or .npz";
                Err(Error::InvalidData(format!("{}: {reason}", path.display())))
            }
        }
    }
}

impl Convert {
    pub(super) fn run(self) -> Result<()> {
        let Self { from, to } = self;
        let (source, target) = (Format::of(&from)?, Format::of(&to)?);
        if source == target {
            let reason = "both files have the same format; to upgrade a .caffemodel, use \
                          `cortado upgrade-net`";
            return Err(Error::InvalidData(format!("{}: {reason}", to.display())));
        }
        let net = match source {
            Format::Caffemodel | Format::Hdf5 => proto::read_trained_net(&from)?,
            Format::Safetensors => net(tensor_io::read_safetensors(&from)?)
                .map_err(|error| error.context(from.display().to_string()))?,
            Format::Npz => net(tensor_io::read_npz(&from)?)
                .map_err(|error| error.context(from.display().to_string()))?,
        };
        let arrays = match target {
            Format::Caffemodel | Format::Hdf5 => {
                proto::write_trained_net(&to, &net)?;
                net.layer.iter().map(|layer| layer.blobs.len()).sum()
            }
            Format::Safetensors | Format::Npz => {
                let tensors =
                    tensors(&net).map_err(|error| error.context(from.display().to_string()))?;
                match target {
                    Format::Npz => tensor_io::write_npz(&to, &tensors)?,
                    _ => tensor_io::write_safetensors(&to, &tensors)?,
                }
                tensors.len()
            }
        };
        print(&format!("{}: {arrays} arrays\n", to.display()))
    }
}

/// Returns the parameters of all layers as tensors named `<layer>.<index>`. Logs a warning if the
/// net has gradients, or parameters without values, which share the values of other parameters.
fn tensors(net: &NetParameter) -> Result<Vec<(String, Tensor)>> {
    let (mut tensors, mut has_gradients) = (Vec::new(), false);
    for layer in &net.layer {
        for (index, blob) in layer.blobs.iter().enumerate() {
            let name = format!("{}.{index}", layer.name());
            has_gradients |= !blob.diff.is_empty() || !blob.double_diff.is_empty();
            if *blob == BlobProto::default() {
                log::warn!("`{name}` has no values, because it shares those of another parameter");
                continue;
            }
            let tensor = match blob.double_data.is_empty() {
                true => tensor::<f32>(blob),
                false => tensor::<f64>(blob),
            };
            let tensor = tensor.map_err(|error| error.context(format!("`{name}`")))?;
            tensors.push((name, tensor));
        }
    }
    if has_gradients {
        log::warn!("the gradients of the parameters are not converted");
    }
    Ok(tensors)
}

/// Converts a `BlobProto` to a tensor through a `Blob`, which validates the message.
fn tensor<T: Element>(message: &BlobProto) -> Result<Tensor> {
    let mut blob = Blob::<T, _>::new(&CpuDevice::new(), &[])?;
    blob.from_proto(message, true)?;
    blob.to_tensor()
}

/// Returns a net with one layer for each layer name, which is the part of a tensor's name before
/// the last dot.
fn net(tensors: Vec<(String, Tensor)>) -> Result<NetParameter> {
    let mut layers: Vec<(String, BTreeMap<usize, BlobProto>)> = Vec::new();
    let mut positions = HashMap::new();
    for (name, tensor) in tensors {
        let invalid = |reason: &str| Error::InvalidData(format!("tensor `{name}`: {reason}"));
        let split = name.rsplit_once('.').and_then(|(layer, index)| {
            Some((layer, index.parse::<usize>().ok()?)).filter(|(layer, _)| !layer.is_empty())
        });
        let Some((layer, index)) = split else {
            return Err(invalid("expected a layer's name and an index, such as `conv1.0`"));
        };
        let position = *positions.entry(layer.to_owned()).or_insert(layers.len());
        if position == layers.len() {
            layers.push((layer.to_owned(), BTreeMap::new()));
        }
        if layers[position].1.insert(index, message(&tensor)?).is_some() {
            return Err(invalid("the file contains this parameter twice"));
        }
    }
    let layer = layers.into_iter().map(|(name, blobs)| {
        // The indices of a layer's parameters count up from 0 without gaps.
        let missing = blobs.keys().enumerate().find(|&(expected, &index)| index != expected);
        if let Some((index, _)) = missing {
            let reason = format!("tensor `{name}.{index}` is missing");
            return Err(Error::InvalidData(reason));
        }
        let blobs = blobs.into_values().collect();
        Ok(LayerParameter { name: Some(name), blobs, ..Default::default() })
    });
    Ok(NetParameter { layer: layer.collect::<Result<_>>()?, ..Default::default() })
}

/// Converts a tensor to a `BlobProto`. The conversion of 16-bit values to `float` is exact.
fn message(tensor: &Tensor) -> Result<BlobProto> {
    let dim: Vec<i64> = tensor.shape().iter().map(|&extent| extent as i64).collect();
    let shape = (!dim.is_empty()).then_some(BlobShape { dim });
    let mut message = BlobProto { shape, ..Default::default() };
    match tensor.dtype() {
        DType::F64 => message.double_data = tensor.to_vec()?,
        _ => message.data = tensor.to_vec()?,
    }
    Ok(message)
}
