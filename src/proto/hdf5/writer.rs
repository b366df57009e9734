//! HDF5 files as they are written.

use super::{Group, Node};
use crate::{
    error::{Error, Result},
    atomic_fs,
};
use hdf5_pure::{
    CharacterSet, DatasetBuilder, Datatype, FileBuilder, FinishedGroup, GroupBuilder, LibVer,
    StringPadding,
};
use std::path::Path;

/// Writes a file, whole or not at all, that HDF5 1.8 and whatever is newer reads.
///
/// Memory: the arrays twice more.
pub(super) fn write(path: &Path, root: Group<'_>) -> Result<()> {
    let mut builder = FileBuilder::new();
    builder.with_libver_bounds(LibVer::Earliest, LibVer::V18);
    for (name, node) in root {
        match node {
            Node::Group(inner) => {
                let finished = group(builder.create_group(&name), inner);
                builder.add_group(finished);
            }
            leaf => dataset(builder.create_dataset(&name), leaf),
        }
    }
    let bytes = builder.finish();
    let bytes =
        bytes.map_err(|error| Error::InvalidData(format!("{}: {error}", path.display())))?;
    atomic_fs::write_atomically(path, &bytes)
}

fn group(mut builder: GroupBuilder, content: Group<'_>) -> FinishedGroup {
    for (name, node) in content {
        match node {
            Node::Group(inner) => {
                let finished = group(builder.create_group(&name), inner);
                builder.add_group(finished);
            }
            leaf => dataset(builder.create_dataset(&name), leaf),
        }
    }
    builder.finish()
}

/// With the types and shapes that HDF5's own short functions give, which Caffe calls.
fn dataset(builder: &mut DatasetBuilder, leaf: Node<'_>) {
    match leaf {
        Node::Array { shape, floats, doubles: [] } => {
            builder.with_f32_data(floats).with_shape(&shape);
        }
        Node::Array { shape, doubles, .. } => {
            builder.with_f64_data(doubles).with_shape(&shape);
        }
        Node::Integer(value) => {
            builder.with_i32_data(&[value]);
        }
        Node::Text(text) => {
            let bytes = [text.as_bytes(), &[0]].concat();
            let datatype = Datatype::String {
                size: bytes.len() as u32,
                padding: StringPadding::NullTerminate,
                charset: CharacterSet::Ascii,
            };
            builder.with_raw_data(datatype, bytes, 1).with_shape(&[]);
        }
        Node::Group(_) => {}
    }
}
