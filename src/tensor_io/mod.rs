//! Tensor files: NumPy's `.npy` and `.npz`, and safetensors.
//!
//! A [`Tensor`] is one array of a tensor file. [`Blob::to_tensor`](crate::Blob::to_tensor) and
//! [`Blob::from_tensor`](crate::Blob::from_tensor) convert a blob to and from a tensor.
//! `Net::to_tensors` and `Net::copy_tensors_from` convert all parameters of a net to and from
//! tensors named `<layer>.<index>`.
//!
//! ```
//! use cortado::{Blob, CpuDevice, tensor_io};
//! # fn main() -> cortado::Result<()> {
//! # let path = std::env::temp_dir().join(format!("cortado-doc-{}.npy", std::process::id()));
//! let device = CpuDevice::new();
//! let blob = Blob::from_vec(&device, &[2, 2], vec![1.0f32, 2.0, 3.0, 4.0])?;
//! tensor_io::write_npy(&path, &blob.to_tensor()?)?;
//!
//! let mut half_blob = Blob::<cortado::f16, _>::new(&device, &[])?;
//! half_blob.from_tensor(&tensor_io::read_npy(&path)?, true)?;
//! assert_eq!(half_blob.shape()[..], [2, 2]);
//! # std::fs::remove_file(&path).unwrap();
//! # Ok(())
//! # }
//! ```
//!
//! The writers of tensor files write a file completely or not at all. The error for a damaged
//! tensor file names the file and, if the file holds several tensors, the tensor. A wrong size in
//! the header of a tensor file cannot cause a large allocation, because the readers allocate memory
//! only for data that the file contains.

mod npy_header;
mod npy;
mod npz;
mod safetensors;
mod tensor;

pub use npy::{read_npy, write_npy};
pub use npz::{read_npz, write_npz};
pub use safetensors::{read_safetensors, write_safetensors};
pub use tensor::Tensor;
