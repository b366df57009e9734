//! Arrays by name in a file: safetensors.

use super::{Tensor, expect_distinct};
use crate::{
    element::DType,
    error::{Error, Result},
    atomic_fs,
};
use safetensors::tensor::{Dtype, Metadata, View, serialize};
use std::{borrow::Cow, fs, path::Path};

/// Bytes that hold the length of the header.
const LENGTH: usize = 8;
/// The one name in a header that is no tensor's.
const RESERVED: &str = "__metadata__";

/// Reads the tensors of a safetensors file, in their order in it: `F16`, `BF16`, `F32`, `F64`. The
/// file's own remarks (`__metadata__`) are not kept.
///
/// Memory: the file and the tensors, at the same time.
///
/// # Errors
/// [`Error::Io`]; [`Error::InvalidData`], with the file's name, for a damaged file, and with the
/// tensor's for elements of another type; [`Error::ShapeOverflow`], for more than 32 axes too.
pub fn read_safetensors(path: impl AsRef<Path>) -> Result<Vec<(String, Tensor)>> {
    let path = path.as_ref();
    let bytes = fs::read(path).map_err(|error| Error::io(path, error))?;
    parse(&bytes).map_err(|error| error.context(path.display().to_string()))
}

/// Writes a safetensors file, whole or not at all.
///
/// Memory: the tensors and the file, at the same time.
///
/// # Errors
/// [`Error::InvalidData`] if two tensors have one name, or one that the format reserves
/// (`__metadata__`); [`Error::Io`].
pub fn write_safetensors(path: impl AsRef<Path>, tensors: &[(String, Tensor)]) -> Result<()> {
    let path = path.as_ref();
    let bytes = to_bytes(tensors).map_err(|error| error.context(path.display().to_string()))?;
    atomic_fs::write_atomically(path, &bytes)
}

fn parse(bytes: &[u8]) -> Result<Vec<(String, Tensor)>> {
    let (header, data) = split(bytes)?;
    // The crate checks here that the tensors follow each other without gaps and have the lengths of
    // their shapes. That they end with the file is checked below: its own function for both adds
    // offsets up without a look at overflow.
    let metadata: Metadata = serde_json::from_slice(header)
        .map_err(|error| Error::InvalidData(format!("its header is damaged: {error}")))?;
    let (want, got) = (metadata.data_len(), data.len());
    if want != got {
        let why = format!("{got} bytes of values, but its header tells of {want}");
        return Err(Error::InvalidData(why));
    }
    let names = metadata.offset_keys().into_iter();
    names.map(|name| tensor(&metadata, data, &name).map(|tensor| (name, tensor))).collect()
}

/// Header and values.
fn split(bytes: &[u8]) -> Result<(&[u8], &[u8])> {
    let no_header = || Error::InvalidData("it does not start as a safetensors file".into());
    let (length, rest) = bytes.split_first_chunk::<LENGTH>().ok_or_else(no_header)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| no_header())?;
    rest.split_at_checked(length).ok_or_else(no_header)
}

fn tensor(metadata: &Metadata, data: &[u8], name: &str) -> Result<Tensor> {
    let within = |error: Error| error.context(format!("tensor `{name}`"));
    let damaged = || within(Error::InvalidData("it lies outside the file".into()));
    let info = metadata.info(name).ok_or_else(damaged)?;
    let dtype = match info.dtype {
        Dtype::F16 => DType::F16,
        Dtype::BF16 => DType::Bf16,
        Dtype::F32 => DType::F32,
        Dtype::F64 => DType::F64,
        other => {
            let why = "only F16, BF16, F32 and F64 are read";
            return Err(within(Error::InvalidData(format!("its elements are {other:?}; {why}"))));
        }
    };
    let (start, end) = info.data_offsets;
    let bytes = data.get(start..end).ok_or_else(damaged)?;
    Tensor::new(dtype, &info.shape, bytes.to_vec()).map_err(within)
}

fn to_bytes(tensors: &[(String, Tensor)]) -> Result<Vec<u8>> {
    expect_distinct(tensors)?;
    if tensors.iter().any(|(name, _)| name == RESERVED) {
        return Err(Error::InvalidData(format!("no tensor can have the name `{RESERVED}`")));
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
