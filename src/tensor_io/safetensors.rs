//! The file format safetensors: a file with named arrays.

use super::tensor::{Tensor, check_distinct_names};
use crate::{
    atomic_fs,
    element::DType,
    error::{Error, Result},
    limits,
};
use safetensors::tensor::{Dtype, Metadata, View, serialize};
use std::{borrow::Cow, path::Path};

/// Size in bytes of the first field of a safetensors file, which is the length of the header.
const LENGTH_BYTES: usize = 8;
/// Key of the metadata in a safetensors header. No tensor may have the name `__metadata__`.
const METADATA_KEY: &str = "__metadata__";

/// Reads the tensors of a safetensors file, in the order of the tensors' data in the file. The
/// supported element types are `F16`, `BF16`, `F32` and `F64`. The reader ignores the file's
/// metadata (`__metadata__`).
///
/// Reading needs memory for both the content of the file and the tensors.
///
/// # Errors
/// Returns [`Error::Io`] if the file cannot be read. Returns [`Error::ShapeOverflow`] for a shape
/// that is too large or has more than 32 axes. Returns [`Error::InvalidData`], with the name of the
/// file or the tensor, for a damaged file or an unsupported element type.
pub fn read_safetensors(path: impl AsRef<Path>) -> Result<Vec<(String, Tensor)>> {
    let path = path.as_ref();
    let bytes = limits::read(path, u64::MAX)?;
    parse(&bytes).map_err(|error| error.context(path.display().to_string()))
}

/// Writes a safetensors file, completely or not at all.
///
/// Writing needs memory for both the tensors and the content of the file.
///
/// # Errors
/// Returns [`Error::InvalidData`] if two tensors have the same name, or a tensor has the reserved
/// name `__metadata__`. Returns [`Error::Io`] if the file cannot be written.
pub fn write_safetensors(path: impl AsRef<Path>, tensors: &[(String, Tensor)]) -> Result<()> {
    let path = path.as_ref();
    let bytes = to_bytes(tensors).map_err(|error| error.context(path.display().to_string()))?;
    atomic_fs::write_atomically(path, &bytes)
}

fn parse(bytes: &[u8]) -> Result<Vec<(String, Tensor)>> {
    let (header, data) = split(bytes)?;
    // Deserializing the header checks that the tensors are contiguous and that each tensor's length
    // matches its shape. The code below checks the file's length itself, because the check in
    // `SafeTensors::deserialize` adds offsets without an overflow check.
    let metadata: Metadata = serde_json::from_slice(header)
        .map_err(|error| Error::InvalidData(format!("damaged header: {error}")))?;
    let (want, got) = (metadata.data_len(), data.len());
    if want != got {
        let reason = format!("found {got} bytes of values, but the header describes {want} bytes");
        return Err(Error::InvalidData(reason));
    }
    let names = metadata.offset_keys().into_iter();
    names.map(|name| tensor(&metadata, data, &name).map(|tensor| (name, tensor))).collect()
}

/// Splits the content of a safetensors file into the JSON header and the bytes of all tensors.
fn split(bytes: &[u8]) -> Result<(&[u8], &[u8])> {
    let no_header_error = || Error::InvalidData("not a safetensors file".into());
    let (length, rest) = bytes.split_first_chunk::<LENGTH_BYTES>().ok_or_else(no_header_error)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| no_header_error())?;
    rest.split_at_checked(length).ok_or_else(no_header_error)
}

fn tensor(metadata: &Metadata, data: &[u8], name: &str) -> Result<Tensor> {
    let name_tensor = |error: Error| error.context(format!("tensor `{name}`"));
    let damaged_error =
        || name_tensor(Error::InvalidData("the values lie outside the file".into()));
    let info = metadata.info(name).ok_or_else(damaged_error)?;
    let dtype = match info.dtype {
        Dtype::F16 => DType::F16,
        Dtype::BF16 => DType::Bf16,
        Dtype::F32 => DType::F32,
        Dtype::F64 => DType::F64,
        other => {
            let reason = "only F16, BF16, F32 and F64 are supported";
            let reason = format!("the elements are {other:?}; {reason}");
            return Err(name_tensor(Error::InvalidData(reason)));
        }
    };
    let (start, end) = info.data_offsets;
    let bytes = data.get(start..end).ok_or_else(damaged_error)?;
    Tensor::new(dtype, &info.shape, bytes.to_vec()).map_err(name_tensor)
}

fn to_bytes(tensors: &[(String, Tensor)]) -> Result<Vec<u8>> {
    check_distinct_names(tensors)?;
    if tensors.iter().any(|(name, _)| name == METADATA_KEY) {
        return Err(Error::InvalidData(format!("the name `{METADATA_KEY}` is reserved")));
    }
    let tensors = tensors.iter().map(|(name, tensor)| (name, tensor));
    serialize(tensors, None).map_err(|error| Error::InvalidData(error.to_string()))
}

impl View for &Tensor {
    fn dtype(&self) -> Dtype {
        match Tensor::dtype(self) {
            DType::F16 => Dtype::F16,
            DType::Bf16 => Dtype::BF16,
            DType::F32 => Dtype::F32,
            DType::F64 => Dtype::F64,
        }
    }

    fn shape(&self) -> &[usize] {
        Tensor::shape(self)
    }

    fn data(&self) -> Cow<'_, [u8]> {
        self.bytes().into()
    }

    fn data_len(&self) -> usize {
        self.bytes().len()
    }
}
