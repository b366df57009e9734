//! Trained nets and solver states in HDF5 files, laid out as Caffe does.
//!
//! `reader` and `writer` are all that knows the format, for the feature `hdf5`. Without it `disabled`
//! stands in for them, where every file is an error that names the feature.

#[cfg(not(feature = "hdf5"))]
mod disabled;
mod net;
#[cfg(feature = "hdf5")]
mod reader;
mod state;
#[cfg(feature = "hdf5")]
mod writer;

#[cfg(not(feature = "hdf5"))]
use disabled::{Reader, write};
#[cfg(feature = "hdf5")]
use {reader::Reader, writer::write};

pub(super) use net::{read_net, write_net};
pub(super) use state::{read_state, write_state};

use super::BlobProto;
use crate::error::{Error, Result};
use std::{collections::BTreeMap, ffi::OsStr, fs::File, io::Read, path::Path};

/// What every HDF5 file of Caffe's starts with.
const SIGNATURE: [u8; 8] = *b"\x89HDF\r\n\x1a\n";

/// Fails unless a net with layers of these names can be written.
#[cfg(feature = "net")]
pub(crate) fn expect_hdf5<'a>(layers: impl Iterator<Item = &'a str>) -> Result<()> {
    if cfg!(feature = "hdf5") {
        net::expect_names(layers)
    } else {
        Err(Error::InvalidData(ABSENT.into()))
    }
}

/// Writes blobs as datasets of these names.
#[cfg(feature = "net")]
pub(crate) fn write_hdf5_blobs<'a>(
    path: &Path,
    blobs: impl IntoIterator<Item = (&'a str, &'a BlobProto)>,
) -> Result<()> {
    let mut root = Group::new();
    for (name, blob) in blobs {
        root.extend(Node::data(blob)?.map(|node| (name.to_owned(), node)));
    }
    write(path, root)
}

/// Whether the file's name is that of an HDF5 file.
pub(super) fn is_named(path: &Path) -> bool {
    path.extension() == Some(OsStr::new("h5"))
}

/// Whether the file's name, or else its content, is that of an HDF5 file.
pub(super) fn is_hdf5(path: &Path) -> bool {
    let mut start = [0; SIGNATURE.len()];
    // A pipe can be read only once.
    is_named(path)
        || path.is_file()
            && File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok()
            && start == SIGNATURE
}

/// What is said where the crate is built without it.
#[cfg_attr(feature = "hdf5", allow(dead_code))]
const ABSENT: &str = "HDF5 is not part of this build; it needs the feature `hdf5`";

/// What a group holds, by name.
type Group<'a> = BTreeMap<String, Node<'a>>;

/// What is to be written under a name.
#[cfg_attr(not(feature = "hdf5"), allow(dead_code))]
enum Node<'a> {
    Group(Group<'a>),
    /// Floats, or doubles if there are any.
    Array {
        shape: Vec<u64>,
        floats: &'a [f32],
        doubles: &'a [f64],
    },
    Integer(i32),
    Text(&'a str),
}

impl<'a> Node<'a> {
    /// The data of a blob; `None` if it has none.
    fn data(blob: &'a BlobProto) -> Result<Option<Self>> {
        Self::array(blob, &blob.data, &blob.double_data)
    }

    /// The gradient of a blob; `None` if it has none.
    fn diff(blob: &'a BlobProto) -> Result<Option<Self>> {
        Self::array(blob, &blob.diff, &blob.double_diff)
    }

    fn array(blob: &BlobProto, floats: &'a [f32], doubles: &'a [f64]) -> Result<Option<Self>> {
        let shape = shape(blob)?;
        let given = !floats.is_empty() || !doubles.is_empty() || shape.contains(&0);
        Ok(given.then_some(Self::Array { shape, floats, doubles }))
    }
}

/// A message's extents: the four older fields if any of them is given.
fn shape(blob: &BlobProto) -> Result<Vec<u64>> {
    let legacy = [blob.num, blob.channels, blob.height, blob.width];
    let dim = match &blob.shape {
        _ if legacy.iter().any(Option::is_some) => {
            legacy.iter().map(|extent| extent.unwrap_or(0).into()).collect()
        }
        Some(shape) => shape.dim.clone(),
        None => Vec::new(),
    };
    let negative = |_| Error::Shape(format!("negative extent in shape {dim:?}"));
    dim.iter().map(|&extent| u64::try_from(extent).map_err(negative)).collect()
}
