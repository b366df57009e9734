//! An array as files hold it.

use crate::{
    element::{DType, Element, bf16, f16},
    error::{Error, Result, check_len},
    shape::Shape,
};

/// Element type, shape and values of an array, on no device: bytes in C order (the last axis
/// innermost), each element little-endian.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    dtype: DType,
    shape: Shape,
    bytes: Vec<u8>,
}

impl Tensor {
    /// A tensor of these bytes.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`] as [`Shape::new`]; [`Error::Length`], in bytes, unless there are as
    /// many as the shape takes.
    pub fn new(dtype: DType, shape: &[usize], bytes: Vec<u8>) -> Result<Self> {
        let shape = Shape::new(shape)?;
        check_len("Tensor::new", "bytes", shape.count() * dtype.size(), bytes.len())?;
        Ok(Self { dtype, shape, bytes })
    }

    /// A tensor that holds a copy of `values`.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`]; [`Error::Length`] unless there are as many values as the shape
    /// counts.
    pub fn from_values<T: Element>(shape: &[usize], values: &[T]) -> Result<Self> {
        let mut bytes = bytemuck::cast_slice(values).to_vec();
        if cfg!(target_endian = "big") {
            swap(&mut bytes, T::DTYPE.size());
        }
        Self::new(T::DTYPE, shape, bytes)
    }

    /// Type of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Extents, outermost first.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The elements, little-endian, in C order.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The elements, in C order.
    pub fn values(&self) -> impl ExactSizeIterator<Item = f64> {
        self.bytes.chunks_exact(self.dtype.size()).map(|bytes| match self.dtype {
            DType::F16 => element::<f16>(bytes).to_f64(),
            DType::Bf16 => element::<bf16>(bytes).to_f64(),
            DType::F32 => element::<f32>(bytes).to_f64(),
            DType::F64 => element(bytes),
        })
    }

    /// Writes the elements to `out`, each rounded to nearest.
    ///
    /// # Errors
    /// [`Error::Length`] unless `out` has as many elements.
    pub fn copy_to<T: Element>(&self, out: &mut [T]) -> Result<()> {
        check_len("Tensor::copy_to", "out", self.shape.count(), out.len())?;
        if T::DTYPE == self.dtype {
            // Bit for bit, so that NaNs keep what they carry.
            let bytes = bytemuck::cast_slice_mut(out);
            bytes.copy_from_slice(&self.bytes);
            if cfg!(target_endian = "big") {
                swap(bytes, T::DTYPE.size());
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

    /// The elements, each rounded to nearest.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        let mut values = Vec::new();
        let count = self.shape.count();
        values.try_reserve_exact(count).map_err(|_| {
            let bytes = count.saturating_mul(T::DTYPE.size());
            Error::OutOfMemory { device: "host".into(), bytes }
        })?;
        values.resize(count, T::default());
        self.copy_to(&mut values)?;
        Ok(values)
    }

    /// This tensor with its elements rounded to another type.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn to_dtype(&self, dtype: DType) -> Result<Self> {
        match dtype {
            DType::F16 => Self::from_values(&self.shape, &self.to_vec::<f16>()?),
            DType::Bf16 => Self::from_values(&self.shape, &self.to_vec::<bf16>()?),
            DType::F32 => Self::from_values(&self.shape, &self.to_vec::<f32>()?),
            DType::F64 => Self::from_values(&self.shape, &self.to_vec::<f64>()?),
        }
    }
}

/// Reverses the bytes of each element.
pub(super) fn swap(bytes: &mut [u8], size: usize) {
    bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
}

fn convert<U: Element, T: Element>(bytes: &[u8], out: &mut [T]) {
    for (out, bytes) in out.iter_mut().zip(bytes.chunks_exact(U::DTYPE.size())) {
        *out = T::from_f64(element::<U>(bytes).to_f64());
    }
}

/// The element of exactly these bytes.
fn element<U: Element>(bytes: &[u8]) -> U {
    let mut value = U::default();
    let native = bytemuck::bytes_of_mut(&mut value);
    native.copy_from_slice(bytes);
    if cfg!(target_endian = "big") {
        native.reverse();
    }
    value
}
