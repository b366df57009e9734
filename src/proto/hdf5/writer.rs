//! Writer of HDF5 files, compiled only with the feature `hdf5`.

use super::node::{Group, Node};
use crate::{
    atomic_fs,
    error::{Error, Result},
};
use hdf5_pure::{
    CharacterSet, DatasetBuilder, Datatype, FileBuilder, FinishedGroup, GroupBuilder, LibVer,
    StringPadding,
};
use std::path::Path;

/// Writes an HDF5 file atomically, in a format that HDF5 1.8 and later can read.
///
/// Writing needs memory for two copies of the arrays in `root`.
pub(super) fn write(path: &Path, root: Group<'_>) -> Result<()> {
    let mut builder = FileBuilder::new();
    builder.with_libver_bounds(LibVer::Earliest, LibVer::V18);
    for (name, node) in root {
        match node {
            Node::Group(inner) => {
                let finished_group = group(builder.create_group(&name), inner);
                builder.add_group(finished_group);
            }
            leaf => dataset(builder.create_dataset(&name), leaf),
        }
    }
    let write_error = |error| Error::InvalidData(format!("{}: {error}", path.display()));
    let bytes = builder.finish().map_err(write_error)?;
    atomic_fs::write_atomically(path, &bytes)
}

fn group(mut builder: GroupBuilder, content: Group<'_>) -> FinishedGroup {
    for (name, node) in content {
        match node {
            Node::Group(inner) => {
                let finished_group = group(builder.create_group(&name), inner);
                builder.add_group(finished_group);
            }
            leaf => dataset(builder.create_dataset(&name), leaf),
        }
    }
    builder.finish()
}

/// Builds a dataset with the type and shape that Caffe creates with `H5LTmake_dataset_*`.
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
