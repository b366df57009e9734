//! A trained net in an HDF5 file: `data/<layer>/<index>` for each parameter, and `diff/…` for its
//! gradient. A parameter that shares another's values has no data of its own.

use super::{
    super::{LayerParameter, NetParameter},
    BlobProto, Group, Node, Reader, write,
};
use crate::error::{Error, Result};
use std::{collections::BTreeSet, path::Path};

const DATA: &str = "data";
const DIFF: &str = "diff";

/// Reads layers with their names and blobs. A blob that the file leaves out is an empty message.
#[doc(alias = "CopyTrainedLayersFromHDF5")]
pub(in super::super) fn read_net(path: &Path) -> Result<NetParameter> {
    let file = Reader::open(path)?;
    let names = file.groups(DATA)?;
    let with_diffs: BTreeSet<_> = match file.groups("")?.iter().any(|group| group == DIFF) {
        true => file.groups(DIFF)?.into_iter().collect(),
        false => BTreeSet::new(),
    };
    let layer = names.into_iter().map(|name| {
        let mut blobs = Vec::new();
        for (index, blob) in arrays(&file, DATA, &name)? {
            *at(&mut blobs, index) = blob;
        }
        if with_diffs.contains(&name) {
            for (index, diff) in arrays(&file, DIFF, &name)? {
                let blob = at(&mut blobs, index);
                blob.shape.get_or_insert(diff.shape.unwrap_or_default());
                (blob.diff, blob.double_diff) = (diff.data, diff.double_data);
            }
        }
        Ok(LayerParameter { name: Some(name), blobs, ..Default::default() })
    });
    Ok(NetParameter { layer: layer.collect::<Result<_>>()?, ..Default::default() })
}

/// The arrays of a layer with their places among its parameters.
fn arrays(file: &Reader, group: &str, layer: &str) -> Result<Vec<(u8, BlobProto)>> {
    let group = format!("{group}/{layer}");
    let names = file.datasets(&group)?.into_iter().map(|name| {
        let path = format!("{group}/{name}");
        let index = name.parse::<u8>().ok().filter(|index| index.to_string() == name);
        let why = "the parameters of a layer are called 0, 1 and so on";
        let index = index.ok_or_else(|| file.damaged(&path, why))?;
        Ok((index, file.blob(&path)?))
    });
    names.collect()
}

fn at(blobs: &mut Vec<BlobProto>, index: u8) -> &mut BlobProto {
    let index = usize::from(index);
    if blobs.len() <= index {
        blobs.resize_with(index + 1, BlobProto::default);
    }
    &mut blobs[index]
}

/// Writes layers with their names and blobs. Of a blob without data only the gradient is written.
#[doc(alias = "ToHDF5")]
pub(in super::super) fn write_net(path: &Path, net: &NetParameter) -> Result<()> {
    let within = |error: Error| error.context(path.display().to_string());
    if !net.layers.is_empty() {
        let why = "the net is in an old format; upgrade it first (`proto::upgrade::net`)";
        return Err(within(Error::InvalidData(why.into())));
    }
    expect_names(net.layer.iter().map(LayerParameter::name)).map_err(within)?;
    let diffs = net
        .layer
        .iter()
        .flat_map(|layer| &layer.blobs)
        .any(|blob| !blob.diff.is_empty() || !blob.double_diff.is_empty());
    let mut root = Group::from([(DATA.into(), group(net, Node::data).map_err(within)?)]);
    if diffs {
        root.insert(DIFF.into(), group(net, Node::diff).map_err(within)?);
    }
    write(path, root)
}

/// A group for each layer.
fn group<'a>(
    net: &'a NetParameter,
    array: impl Fn(&'a BlobProto) -> Result<Option<Node<'a>>>,
) -> Result<Node<'a>> {
    let mut layers = Group::new();
    for layer in &net.layer {
        let mut arrays = Group::new();
        for (index, blob) in layer.blobs.iter().enumerate() {
            let found =
                array(blob).map_err(|error| error.context(format!("layer `{}`", layer.name())))?;
            arrays.extend(found.map(|array| (index.to_string(), array)));
        }
        layers.insert(layer.name().to_owned(), Node::Group(arrays));
    }
    Ok(Node::Group(layers))
}

/// Fails unless each layer can have a group of its name.
pub(super) fn expect_names<'a>(layers: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut seen = BTreeSet::new();
    for name in layers {
        let why = match name {
            "" | "." => "is no name of a group",
            _ if name.contains('/') => "has a slash, which would make groups of it",
            _ if name.contains('\0') => "has a zero byte, which would end it",
            _ if !seen.insert(name) => "is the name of two layers",
            _ => continue,
        };
        let why = format!("layer `{name}` cannot be written as HDF5: its name {why}");
        return Err(Error::InvalidData(why));
    }
    Ok(())
}
