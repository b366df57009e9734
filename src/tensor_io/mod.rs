//! Values in the formats that others use now: NumPy's `.npy` and `.npz`, and safetensors.
//!
//! A [`Tensor`] is what such a file holds of one array. [`Blob::to_tensor`](crate::Blob::to_tensor)
//! and [`Blob::from_tensor`](crate::Blob::from_tensor) are the way to it and back;
//! `Net::to_tensors` and `Net::copy_tensors_from` do the same for all parameters of a net, each
//! under the name `<layer>.<index>`.
//!
//! ```
//! use cortado::{Blob, CpuDevice, tensor_io};
//! # fn main() -> cortado::Result<()> {
//! # let path = std::env::temp_dir().join(format!("cortado-doc-{}.npy", std::process::id()));
//! let device = CpuDevice::new();
//! let blob = Blob::from_vec(&device, &[2, 2], vec![1.0f32, 2.0, 3.0, 4.0])?;
//! tensor_io::write_npy(&path, &blob.to_tensor()?)?;
//!
//! let mut half = Blob::<cortado::f16, _>::new(&device, &[])?;
//! half.from_tensor(&tensor_io::read_npy(&path)?, true)?;
//! assert_eq!(half.shape()[..], [2, 2]);
//! # std::fs::remove_file(&path).unwrap();
//! # Ok(())
//! # }
//! ```
//!
//! Files are written whole or not at all. A damaged file is an error that names the file and, where
//! it holds several, the tensor. No more memory is asked for than a file has bytes to fill, whatever
//! it claims.

mod npy_header;
mod npy;
mod npz;
mod safetensors;
mod tensor;

pub use npy::{read_npy, write_npy};
pub use npz::{read_npz, write_npz};
pub use safetensors::{read_safetensors, write_safetensors};
pub use tensor::Tensor;

use crate::error::{Error, Result};
use std::collections::HashSet;

/// Fails if two tensors have one name: a reader would find only one of them.
fn expect_distinct(tensors: &[(String, Tensor)]) -> Result<()> {
    let mut seen = HashSet::new();
    match tensors.iter().find(|(name, _)| !seen.insert(name)) {
        Some((name, _)) => Err(Error::InvalidData(format!("two tensors have the name `{name}`"))),
        None => Ok(()),
    }
}
