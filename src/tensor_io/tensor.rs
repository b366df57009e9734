//! Tensors: arrays in host memory, with the element types and the byte order of tensor files.

use crate::{
    element::{DType, Element, bf16, f16},
    error::{Error, Result, check_len},
    shape::Shape,
};
use std::collections::HashSet;

/// Element type, shape and values of an array in host memory.
///
/// The elements are little-endian, in C order (the last axis innermost).
///
/// ```
/// use cortado::{DType, f16, tensor_io::Tensor};
///
/// let tensor = Tensor::from_values(&[2, 2], &[1.0_f32, 2.0, 3.0, 4.0])?;
/// let half_tensor = tensor.to_dtype(DType::F16)?;
/// assert_eq!((tensor.bytes().len(), half_tensor.bytes().len()), (16, 8));
/// assert_eq!(half_tensor.to_vec::<f16>()?[3], f16::from_f32(4.0));
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    dtype: DType,
    shape: Shape,
    bytes: Vec<u8>,
}

impl Tensor {
    /// Returns a tensor of the given element type and shape, whose elements are stored in `bytes`.
    ///
    /// # Errors
    /// Returns any error from [`Shape::new`], and [`Error::Length`] if the length of `bytes` does
    /// not match the shape.
    pub fn new(dtype: DType, shape: &[usize], bytes: Vec<u8>) -> Result<Self> {
        let shape = Shape::new(shape)?;
        check_len("Tensor::new", "bytes", shape.count() * dtype.size(), bytes.len())?;
        Ok(Self { dtype, shape, bytes })
    }

    /// Returns a tensor of the given shape with a copy of `values`.
    ///
    /// # Errors
    /// Returns any error from [`Shape::new`], and [`Error::Length`] if the length of `values` does
    /// not match the shape.
    pub fn from_values<T: Element>(shape: &[usize], values: &[T]) -> Result<Self> {
        let mut bytes = crate::cast::cast_slice(values).to_vec();
        if cfg!(target_endian = "big") {
            reverse_bytes(&mut bytes, T::DTYPE.size());
        }
        Self::new(T::DTYPE, shape, bytes)
    }

    /// Returns the element type of the tensor.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the shape of the tensor, with the outermost axis first.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the bytes of the tensor's elements, little-endian, in C order.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the tensor's elements in C order, converted to `f64`.
    pub fn values(&self) -> impl ExactSizeIterator<Item = f64> {
        self.bytes.chunks_exact(self.dtype.size()).map(|bytes| match self.dtype {
            DType::F16 => element::<f16>(bytes).to_f64(),
            DType::Bf16 => element::<bf16>(bytes).to_f64(),
            DType::F32 => element::<f32>(bytes).to_f64(),
            DType::F64 => element(bytes),
        })
    }

    /// Writes the tensor's elements to `out`, each rounded to the nearest value of `T`.
    ///
    /// # Errors
    /// Returns [`Error::Length`] unless `out` has as many elements as the tensor.
    pub fn copy_to<T: Element>(&self, out: &mut [T]) -> Result<()> {
        check_len("Tensor::copy_to", "out", self.shape.count(), out.len())?;
        if T::DTYPE == self.dtype {
            // For equal element types, copy the bytes, because a conversion could change the
            // payload of a NaN.
            let bytes = crate::cast::cast_slice_mut(out);
            bytes.copy_from_slice(&self.bytes);
            if cfg!(target_endian = "big") {
                reverse_bytes(bytes, T::DTYPE.size());
            }
            return Ok(());
        }
        match self.dtype {
            DType::F16 => convert::<f16, T>(&self.bytes, out),
            DType::Bf16 => convert::<bf16, T>(&self.bytes, out),
            DType::F32 => convert::<f32, T>(&self.bytes, out),
            DType::F64 => convert::<f64, T>(&self.bytes, out),
        }
        Ok(())
    }

    /// Returns the tensor's elements, each rounded to the nearest value of `T`.
    ///
    /// # Errors
    /// Returns [`Error::OutOfMemory`].
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        let mut values = Vec::new();
        let count = self.shape.count();
        values
            .try_reserve_exact(count)
            .map_err(|_| Error::out_of_host_memory(count.saturating_mul(T::DTYPE.size())))?;
        values.resize(count, T::default());
        self.copy_to(&mut values)?;
        Ok(values)
    }

    /// Returns a copy of the tensor with the elements rounded to the element type `dtype`.
    ///
    /// # Errors
    /// Returns [`Error::OutOfMemory`].
    pub fn to_dtype(&self, dtype: DType) -> Result<Self> {
        match dtype {
            DType::F16 => Self::from_values(&self.shape, &self.to_vec::<f16>()?),
            DType::Bf16 => Self::from_values(&self.shape, &self.to_vec::<bf16>()?),
            DType::F32 => Self::from_values(&self.shape, &self.to_vec::<f32>()?),
            DType::F64 => Self::from_values(&self.shape, &self.to_vec::<f64>()?),
        }
    }
}

/// Fails if two tensors have the same name, because a reader would find only one of the two
/// tensors.
pub(super) fn check_distinct_names(tensors: &[(String, Tensor)]) -> Result<()> {
    let mut seen_names = HashSet::new();
    match tensors.iter().find(|(name, _)| !seen_names.insert(name)) {
        Some((name, _)) => Err(Error::InvalidData(format!("two tensors have the name `{name}`"))),
        None => Ok(()),
    }
}

/// Reverses the byte order of each element.
pub(super) fn reverse_bytes(bytes: &mut [u8], size: usize) {
    bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
}

fn convert<U: Element, T: Element>(bytes: &[u8], out: &mut [T]) {
    for (out, bytes) in out.iter_mut().zip(bytes.chunks_exact(U::DTYPE.size())) {
        *out = T::from_f64(element::<U>(bytes).to_f64());
    }
}

/// Converts the little-endian bytes of one element to a number.
fn element<U: Element>(bytes: &[u8]) -> U {
    let mut value = [U::default()];
    let value_bytes = U::bytes_of_mut(&mut value);
    value_bytes.copy_from_slice(bytes);
    if cfg!(target_endian = "big") {
        value_bytes.reverse();
    }
    value[0]
}
