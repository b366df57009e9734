//! Trained nets in HDF5 files. `data/<layer>/<index>` holds the values of a parameter, and
//! `diff/<layer>/<index>` holds the parameter's gradient. A parameter that shares the values of
//! another parameter has no dataset under `data`.

#[cfg(feature = "net")]
use super::detect::has_signature;
use super::{
    node::{Group, Node},
    reader::Reader,
    writer::write,
};
use crate::{
    error::{Error, Result},
    proto::messages::{BlobProto, LayerParameter, NetParameter},
};
#[cfg(feature = "net")]
use std::fs;
use std::{collections::BTreeSet, path::Path};

const DATA: &str = "data";
const DIFF: &str = "diff";

/// Reads the names and blobs of a net's layers from an HDF5 file. A blob that the file omits
/// becomes an empty `BlobProto`.
#[doc(alias = "CopyTrainedLayersFromHDF5")]
pub(in crate::proto) fn read_net(path: &Path) -> Result<NetParameter> {
    let file = Reader::open(path)?;
    let names = file.groups(DATA)?;
    let with_diffs: BTreeSet<_> = match file.groups("")?.iter().any(|group| group == DIFF) {
        true => file.groups(DIFF)?.into_iter().collect(),
        false => BTreeSet::new(),
    };
    let layer = names.into_iter().map(|name| {
        let mut blobs = Vec::new();
        for (index, blob) in arrays(&file, DATA, &name)? {
            *blob_at(&mut blobs, index) = blob;
        }
        if with_diffs.contains(&name) {
            for (index, diff) in arrays(&file, DIFF, &name)? {
                let blob = blob_at(&mut blobs, index);
                blob.shape.get_or_insert(diff.shape.unwrap_or_default());
                (blob.diff, blob.double_diff) = (diff.data, diff.double_data);
            }
        }
        Ok(LayerParameter { name: Some(name), blobs, ..Default::default() })
    });
    Ok(NetParameter { layer: layer.collect::<Result<_>>()?, ..Default::default() })
}

/// Reads the datasets of a layer in `group`, each with the index of its parameter.
fn arrays(file: &Reader, group: &str, layer: &str) -> Result<Vec<(u8, BlobProto)>> {
    let group = format!("{group}/{layer}");
    let names = file.datasets(&group)?.into_iter().map(|name| {
        let path = format!("{group}/{name}");
        let index = name.parse::<u8>().ok().filter(|index| index.to_string() == name);
        let reason =
            "the name is not a parameter index; the parameters of a layer have the names 0, 1, …";
        let index = index.ok_or_else(|| file.damaged(&path, reason))?;
        Ok((index, file.blob(&path)?))
    });
    names.collect()
}

/// Returns the blob at `index`, after extending `blobs` with empty blobs if necessary.
fn blob_at(blobs: &mut Vec<BlobProto>, index: u8) -> &mut BlobProto {
    let index = usize::from(index);
    if blobs.len() <= index {
        blobs.resize_with(index + 1, BlobProto::default);
    }
    &mut blobs[index]
}

/// Writes the names and the blobs of a net's layers to an HDF5 file. Writes only the gradient of a
/// blob without data.
#[doc(alias = "ToHDF5")]
pub(in crate::proto) fn write_net(path: &Path, net: &NetParameter) -> Result<()> {
    let root = root_group(net).map_err(|error| error.context(path.display().to_string()))?;
    write(path, root)
}

fn root_group(net: &NetParameter) -> Result<Group<'_>> {
    if !net.layers.is_empty() {
        let reason = "the net has an old format; upgrade it first with `proto::upgrade::net`";
        return Err(Error::InvalidData(reason.into()));
    }
    check_hdf5_names(net.layer.iter().map(LayerParameter::name))?;
    let mut blobs = net.layer.iter().flat_map(|layer| &layer.blobs);
    let has_diffs = blobs.any(|blob| !blob.diff.is_empty() || !blob.double_diff.is_empty());
    let mut root = Group::from([(DATA.into(), layer_groups(net, Node::data)?)]);
    if has_diffs {
        root.insert(DIFF.into(), layer_groups(net, Node::diff)?);
    }
    Ok(root)
}

/// Writes an HDF5 file that contains each blob's data as a dataset with the given name. Fails if
/// `path`, which comes from a definition, is an existing file that is neither empty nor HDF5.
#[cfg(feature = "net")]
pub(crate) fn write_hdf5_blobs<'a>(
    path: &Path,
    blobs: impl IntoIterator<Item = (&'a str, &'a BlobProto)>,
) -> Result<()> {
    let is_empty = |path: &Path| fs::metadata(path).is_ok_and(|metadata| metadata.len() == 0);
    if path.is_file() && !has_signature(path) && !is_empty(path) {
        let reason = "the file exists and is not an HDF5 file; choose another `file_name`";
        return Err(Error::InvalidData(format!("{}: {reason}", path.display())));
    }
    let mut root = Group::new();
    for (name, blob) in blobs {
        root.extend(Node::data(blob)?.map(|node| (name.to_owned(), node)));
    }
    write(path, root)
}

/// Returns an HDF5 group for each layer of a net, with the datasets that `array` creates from the
/// layer's blobs.
fn layer_groups<'a>(
    net: &'a NetParameter,
    array: impl Fn(&'a BlobProto) -> Result<Option<Node<'a>>>,
) -> Result<Node<'a>> {
    let mut layers = Group::new();
    for layer in &net.layer {
        let mut arrays = Group::new();
        for (index, blob) in layer.blobs.iter().enumerate() {
            let in_layer = |error: Error| error.context(format!("layer `{}`", layer.name()));
            let array = array(blob).map_err(in_layer)?;
            arrays.extend(array.map(|array| (index.to_string(), array)));
        }
        layers.insert(layer.name().to_owned(), Node::Group(arrays));
    }
    Ok(Node::Group(layers))
}

/// Fails if a name in `layers` is not a valid HDF5 group name or occurs twice.
pub(crate) fn check_hdf5_names<'a>(layers: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut seen_names = BTreeSet::new();
    for name in layers {
        let problem = match name {
            "" | "." => "HDF5 does not allow `.` or an empty name",
            _ if name.contains('/') => "a slash separates groups",
            _ if name.contains('\0') => "a zero byte ends an HDF5 name",
            _ if !seen_names.insert(name) => "two layers have the name",
            _ => continue,
        };
        let reason = format!("layer `{name}`: HDF5 cannot store the name: {problem}");
        return Err(Error::InvalidData(reason));
    }
    Ok(())
}
