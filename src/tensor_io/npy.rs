//! NumPy's file format `.npy`: a file with one array.

use super::{
    npy_header::{self, Header},
    tensor::{Tensor, reverse_bytes},
};
use crate::{
    atomic_fs,
    element::DType,
    error::{Error, Result},
    limits,
    shape::Shape,
};
use std::{
    io::{ErrorKind, Read},
    path::Path,
};

const MAGIC: [u8; 6] = *b"\x93NUMPY";
/// Alignment in bytes of the first array element in a `.npy` file.
const ALIGNMENT: usize = 64;
/// Maximum length of a `.npy` header, in bytes. cortado supports at most 32 axes, and the header of
/// such an array is far shorter than this limit.
const MAX_HEADER_LEN: usize = 1 << 16;

/// Reads a `.npy` file of `float16`, `float32` or `float64`, big- or little-endian, in C or Fortran
/// order. Converts an array in Fortran order to C order.
///
/// ```
/// use cortado::tensor_io::{Tensor, read_npy, write_npy};
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("x.npy");
/// let tensor = Tensor::from_values(&[2], &[1.0_f32, 2.0])?;
/// write_npy(&path, &tensor)?; // `numpy.load` reads this file
/// assert_eq!(read_npy(&path)?, tensor);
/// # Ok::<(), cortado::Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Io`] if the file cannot be read. Returns [`Error::ShapeOverflow`] for a shape
/// that is too large or has more than 32 axes. Returns [`Error::InvalidData`], with the file's
/// name, for an unsupported element type, a damaged header, or a file with fewer or more bytes than
/// the shape needs. A `.npy` file with several arrays, which NumPy can write, is not supported.
pub fn read_npy(path: impl AsRef<Path>) -> Result<Tensor> {
    let path = path.as_ref();
    let (file, _) = limits::open(path)?;
    parse(file, path, &path.display().to_string(), |_| Ok(()))
}

/// Writes a `.npy` file, completely or not at all, with the bytes that NumPy would write. The
/// writer converts `bf16`, which NumPy does not have, to `float32` without rounding.
///
/// Writing needs memory for both the tensor and the content of the file.
///
/// # Errors
/// Returns [`Error::Io`] if the file cannot be written, and [`Error::OutOfMemory`] if the
/// conversion of a `bf16` tensor to `float32` runs out of memory.
pub fn write_npy(path: impl AsRef<Path>, tensor: &Tensor) -> Result<()> {
    atomic_fs::write_atomically(path.as_ref(), &to_bytes(tensor)?)
}

/// Reads an array from `input`, which is the file at `path` or a member of the archive at `path`.
/// `name` identifies the array in error messages. `check_len` receives the length of the array in
/// bytes, computed from the header, and fails if the array is too long.
pub(super) fn parse(
    mut input: impl Read,
    path: &Path,
    name: &str,
    check_len: impl FnOnce(u64) -> Result<()>,
) -> Result<Tensor> {
    let invalid = |reason: &str| Error::InvalidData(format!("{name}: {reason}"));
    let io = |error| Error::io(path, error);
    let mut read_exact = |bytes: &mut [u8]| match input.read_exact(bytes) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
            Err(invalid("the file is truncated: it ends within the header"))
        }
        read => read.map_err(io),
    };
    let mut start = [0; 8];
    read_exact(&mut start)?;
    let [magic @ .., major, _] = start;
    if magic != MAGIC {
        return Err(invalid("not a .npy file"));
    }
    let mut length = [0; 4];
    match major {
        1 => read_exact(&mut length[..2])?,
        2 | 3 => read_exact(&mut length)?,
        _ => return Err(invalid(&format!("unknown .npy version {major}; 1 to 3 are supported"))),
    }
    let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
    if length > MAX_HEADER_LEN {
        let reason =
            format!("the header has {length} bytes, but at most {MAX_HEADER_LEN} are supported");
        return Err(invalid(&reason));
    }
    let mut text = vec![0; length];
    read_exact(&mut text)?;
    // In versions 1 and 2 of the `.npy` format, the header is Latin-1 text. Every accepted header
    // is ASCII, so decoding the header as UTF-8 is correct for all versions.
    let header = Header::parse(&String::from_utf8_lossy(&text));
    let header = header.map_err(|error| error.context(name))?;

    let size = header.dtype.size();
    let expected_len = header.shape.count().checked_mul(size);
    let expected_len = expected_len.ok_or_else(|| invalid("the number of bytes overflows"))?;
    check_len(expected_len as u64)?;
    let mut bytes = Vec::new();
    // Read one byte more than the shape needs, to detect a file that is too long. `bytes` grows
    // with the data that are read, so a wrong shape in the header does not cause a large
    // allocation.
    input.take((expected_len as u64).saturating_add(1)).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() != expected_len {
        let comparison = if bytes.len() > expected_len { "more" } else { "fewer" };
        let reason = format!(
            "found {comparison} values than the {expected_len} bytes of shape {}",
            header.shape
        );
        return Err(invalid(&reason));
    }
    if header.big_endian {
        reverse_bytes(&mut bytes, size);
    }
    if header.fortran_order {
        bytes = to_c_order(&bytes, &header.shape, size);
    }
    Tensor::new(header.dtype, &header.shape, bytes).map_err(|error| error.context(name))
}

/// Returns the content of a `.npy` file that stores the tensor.
pub(super) fn to_bytes(tensor: &Tensor) -> Result<Vec<u8>> {
    let Some(mut text) = npy_header::text(tensor.dtype(), tensor.shape()) else {
        return to_bytes(&tensor.to_dtype(DType::F32)?);
    };
    let start = MAGIC.len() + 4;
    let end = (start + text.len() + 1).next_multiple_of(ALIGNMENT);
    text.extend(std::iter::repeat_n(' ', end - start - text.len() - 1));
    text.push('\n');
    // Version 1 of the `.npy` format stores the header's length in 16 bits. The longest header,
    // with 32 extents of 20 digits, is far shorter than 2¹⁶ bytes.
    let length = (text.len() as u16).to_le_bytes();
    Ok([&MAGIC[..], &[1, 0], &length, text.as_bytes(), tensor.bytes()].concat())
}

/// Reorders array elements from Fortran order (the first axis innermost) to C order.
fn to_c_order(bytes: &[u8], shape: &Shape, size: usize) -> Vec<u8> {
    let strides: Vec<usize> = (0..shape.len()).map(|axis| shape[..axis].iter().product()).collect();
    let mut index = vec![0; shape.len()];
    let mut offset = 0;
    let mut c_order_bytes = Vec::with_capacity(bytes.len());
    for _ in 0..shape.count() {
        c_order_bytes.extend_from_slice(&bytes[offset * size..][..size]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            offset += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            offset -= strides[axis] * shape[axis];
            index[axis] = 0;
        }
    }
    c_order_bytes
}
