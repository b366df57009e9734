//! Half-precision numbers in HDF5 files. The HDF5 library returns their bytes.

use half::f16;
use hdf5_pure::{DType, Datatype, DatatypeByteOrder, Error, FloatingPointLayout};

/// The IEEE format of 16 bits, which h5py writes for NumPy's `float16`.
const IEEE_HALF: FloatingPointLayout = FloatingPointLayout {
    bit_offset: 0,
    bit_precision: 16,
    exponent_location: 10,
    exponent_size: 5,
    mantissa_location: 0,
    mantissa_size: 10,
    exponent_bias: 15,
};

/// Reads half-precision numbers through `read`, which returns their bytes. Returns `None` if
/// elements of the type `dtype` are not IEEE half-precision numbers.
pub(crate) fn read_half(
    dtype: &DType,
    read: impl FnOnce() -> Result<Vec<u8>, Error>,
) -> Option<Result<Vec<f16>, Error>> {
    let DType::Other(datatype) = dtype else { return None };
    let Datatype::FloatingPoint { size: 2, byte_order, layout: IEEE_HALF } = **datatype else {
        return None;
    };
    let from_bytes = match byte_order {
        DatatypeByteOrder::LittleEndian => f16::from_le_bytes,
        DatatypeByteOrder::BigEndian => f16::from_be_bytes,
        DatatypeByteOrder::Vax => return None,
    };
    let values = |bytes: Vec<u8>| bytes.as_chunks().0.iter().copied().map(from_bytes).collect();
    Some(read().map(values))
}
