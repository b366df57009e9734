//! Groups and datasets that the writer stores in an HDF5 file.

use crate::{
    error::{Error, Result},
    proto::messages::BlobProto,
};
use std::collections::BTreeMap;

pub(super) type Group<'a> = BTreeMap<String, Node<'a>>;

pub(super) enum Node<'a> {
    Group(Group<'a>),
    /// A dataset with the elements of `doubles`, or of `floats` if `doubles` is empty.
    Array {
        shape: Vec<u64>,
        floats: &'a [f32],
        doubles: &'a [f64],
    },
    Integer(i32),
    Text(&'a str),
}

impl<'a> Node<'a> {
    /// Returns a dataset with a blob's data; `None` if the blob has no data.
    pub(super) fn data(blob: &'a BlobProto) -> Result<Option<Self>> {
        Self::array(blob, &blob.data, &blob.double_data)
    }

    /// Returns a dataset with a blob's gradient; `None` if the blob has no gradient.
    pub(super) fn diff(blob: &'a BlobProto) -> Result<Option<Self>> {
        Self::array(blob, &blob.diff, &blob.double_diff)
    }

    fn array(blob: &BlobProto, floats: &'a [f32], doubles: &'a [f64]) -> Result<Option<Self>> {
        let shape = shape(blob)?;
        let has_data = !floats.is_empty() || !doubles.is_empty() || shape.contains(&0);
        Ok(has_data.then_some(Self::Array { shape, floats, doubles }))
    }
}

/// Returns the extents of a blob: the four legacy fields if any of them is set, otherwise the field
/// `shape`.
fn shape(blob: &BlobProto) -> Result<Vec<u64>> {
    let legacy_extents = [blob.num, blob.channels, blob.height, blob.width];
    let dim = match &blob.shape {
        _ if legacy_extents.iter().any(Option::is_some) => {
            legacy_extents.iter().map(|extent| extent.unwrap_or(0).into()).collect()
        }
        Some(shape) => shape.dim.clone(),
        None => Vec::new(),
    };
    let negative = |_| Error::Shape(format!("shape {dim:?}: negative extent"));
    dim.iter().map(|&extent| u64::try_from(extent).map_err(negative)).collect()
}
