//! One array in a file: NumPy's `.npy`.

use super::{
    Tensor,
    npy_header::{self, Header},
    tensor::swap,
};
use crate::{
    element::DType,
    error::{Error, Result},
    atomic_fs,
    shape::Shape,
};
use std::{
    fs::File,
    io::{ErrorKind, Read},
    path::Path,
};

const MAGIC: [u8; 6] = *b"\x93NUMPY";
/// The values start at a multiple of this.
const ALIGNMENT: usize = 64;
/// Of plain numbers in at most 32 axes no header comes near it.
const LONGEST_HEADER: usize = 1 << 16;

/// Reads a `.npy` file of `float16`, `float32` or `float64`, big- or little-endian, in C or in
/// Fortran order, in which the axes are then reversed.
///
/// # Errors
/// [`Error::Io`]; [`Error::InvalidData`], with the file's name, for elements of another type, a damaged
/// header, and fewer or more bytes than the shape takes (NumPy lets arrays follow each other in one
/// file: split it); [`Error::ShapeOverflow`], for more than 32 axes too.
pub fn read_npy(path: impl AsRef<Path>) -> Result<Tensor> {
    let path = path.as_ref();
    let file = File::open(path).map_err(|error| Error::io(path, error))?;
    parse(file, path, &path.display().to_string())
}

/// Writes a `.npy` file, whole or not at all, with the bytes that NumPy would write. What is `bf16`
/// is written as `float32`, exactly, since NumPy has no such type.
///
/// Memory: the tensor and the file, at the same time.
///
/// # Errors
/// [`Error::Io`], [`Error::OutOfMemory`].
pub fn write_npy(path: impl AsRef<Path>, tensor: &Tensor) -> Result<()> {
    atomic_fs::write_atomically(path.as_ref(), &to_bytes(tensor)?)
}

/// Reads an array from the file at `path`, or from a part of it; `place` names it in errors.
pub(super) fn parse(mut from: impl Read, path: &Path, place: &str) -> Result<Tensor> {
    let cut = |part: &str| Error::InvalidData(format!("{place}: it ends within its {part}"));
    let failed = |error| Error::io(path, error);
    let mut exactly = |bytes: &mut [u8]| match from.read_exact(bytes) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(cut("header")),
        read => read.map_err(failed),
    };
    let mut start = [0; 8];
    exactly(&mut start)?;
    let [magic @ .., major, _] = start;
    if magic != MAGIC {
        return Err(Error::InvalidData(format!("{place}: it does not start as a .npy file")));
    }
    let mut length = [0; 4];
    match major {
        1 => exactly(&mut length[..2])?,
        2 | 3 => exactly(&mut length)?,
        _ => return Err(Error::InvalidData(format!("{place}: .npy version {major} is not known"))),
    }
    let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
    if length > LONGEST_HEADER {
        return Err(Error::InvalidData(format!("{place}: a header of {length} bytes is too long")));
    }
    let mut text = vec![0; length];
    exactly(&mut text)?;
    // Up to version 2 the text is Latin-1, but all of it that is understood is ASCII.
    let header = Header::parse(&String::from_utf8_lossy(&text));
    let header = header.map_err(|error| error.context(place))?;

    let size = header.dtype.size();
    let want = header.shape.count() * size;
    let mut bytes = Vec::new();
    // One more, to see that there is none. What is reserved grows with what has been read.
    from.take(want as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() != want {
        let more = if bytes.len() > want { "more" } else { "fewer" };
        let shape = &header.shape;
        let why = format!("{place}: {more} values than the {want} bytes of its shape {shape}");
        return Err(Error::InvalidData(why));
    }
    if header.big_endian {
        swap(&mut bytes, size);
    }
    if header.fortran_order {
        bytes = to_c_order(&bytes, &header.shape, size);
    }
    Tensor::new(header.dtype, &header.shape, bytes).map_err(|error| error.context(place))
}

/// The content of a `.npy` file.
pub(super) fn to_bytes(tensor: &Tensor) -> Result<Vec<u8>> {
    let Some(mut text) = npy_header::text(tensor.dtype(), tensor.shape()) else {
        return to_bytes(&tensor.to_dtype(DType::F32)?);
    };
    let start = MAGIC.len() + 4;
    let end = (start + text.len() + 1).next_multiple_of(ALIGNMENT);
    text.extend(std::iter::repeat_n(' ', end - start - text.len() - 1));
    text.push('\n');
    // At most 32 axes of 20 digits: far below the 2¹⁶ bytes of a version 1 header.
    let length = (text.len() as u16).to_le_bytes();
    Ok([&MAGIC[..], &[1, 0], &length, text.as_bytes(), tensor.bytes()].concat())
}

/// Elements of which the first axis is innermost, with the last innermost instead.
fn to_c_order(bytes: &[u8], shape: &Shape, size: usize) -> Vec<u8> {
    let strides = shape.iter().scan(1, |stride, extent| {
        let this = *stride;
        *stride *= extent;
        Some(this)
    });
    let strides: Vec<usize> = strides.collect();
    let mut index = vec![0; shape.len()];
    let mut at = 0;
    let mut ordered = Vec::with_capacity(bytes.len());
    for _ in 0..shape.count() {
        ordered.extend_from_slice(&bytes[at * size..(at + 1) * size]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            at += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            at -= strides[axis] * shape[axis];
            index[axis] = 0;
        }
    }
    ordered
}
