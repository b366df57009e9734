//! A writer of HDF5 files with wrong sizes and cycles, and the tests of such files.

use crate::{command::Folder, formats::zlib};

const UNDEFINED: u64 = u64::MAX;
/// Length in bytes of the superblock, which the file's objects follow.
const SUPERBLOCK_LEN: u64 = 96;

/// The bytes of an HDF5 file, to which objects are appended.
struct File(Vec<u8>);

impl File {
    /// Returns an HDF5 file that consists of a superblock. [`finish`](Self::finish) sets the
    /// address of the root group.
    fn new() -> Self {
        let mut file = Self(Vec::new());
        file.0.extend(b"\x89HDF\r\n\x1a\n\0\0\0\0\0\x08\x08\0\x04\0\x10\0\0\0\0\0");
        file.0
            .extend([0, UNDEFINED, 0, UNDEFINED, 0, SUPERBLOCK_LEN].map(u64::to_le_bytes).concat());
        file.0.resize(SUPERBLOCK_LEN as usize, 0);
        file
    }

    /// Appends `bytes` at the next address that is a multiple of 8, and returns this address.
    fn append(&mut self, bytes: &[u8]) -> u64 {
        self.0.resize(self.0.len().next_multiple_of(8), 0);
        let address = self.0.len() as u64;
        self.0.extend(bytes);
        address
    }

    /// Appends a group with the given links.
    fn group<'a>(&mut self, links: impl IntoIterator<Item = (&'a str, u64)>) -> u64 {
        let info = [&[0, 0][..], &[0xff; 16]].concat();
        let link = |(name, address): (&str, u64)| {
            let name = [&[1, 0, name.len() as u8], name.as_bytes()].concat();
            (6, [&name[..], &address.to_le_bytes()].concat())
        };
        let messages: Vec<_> = [(2, info)].into_iter().chain(links.into_iter().map(link)).collect();
        self.object(&messages)
    }

    /// Appends a dataset of `u8` with the given shape, layout message and other messages.
    fn dataset(&mut self, shape: &[u64], layout: Vec<u8>, more: &[(u16, Vec<u8>)]) -> u64 {
        let extents = shape.iter().flat_map(|extent| extent.to_le_bytes());
        let space = [1, shape.len() as u8, 0, 0, 0, 0, 0, 0].into_iter().chain(extents).collect();
        let kind = vec![0x10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0];
        let messages = [(1, space), (3, kind), (5, vec![2, 2, 0, 0]), (8, layout)];
        self.object(&[&messages[..], more].concat())
    }

    /// Appends an object header that contains `messages`, given as pairs of type and contents.
    fn object(&mut self, messages: &[(u16, Vec<u8>)]) -> u64 {
        let mut body = Vec::new();
        for (kind, content) in messages {
            let len = content.len().next_multiple_of(8);
            body.extend([kind.to_le_bytes(), (len as u16).to_le_bytes()].concat());
            body.extend([0; 4]);
            body.extend(content);
            body.resize(body.len() + len - content.len(), 0);
        }
        let count = (messages.len() as u16).to_le_bytes();
        let header = [&[1, 0], &count[..], &1_u32.to_le_bytes()].concat();
        let header = [&header[..], &(body.len() as u32).to_le_bytes(), &[0; 4]].concat();
        self.append(&[header, body].concat())
    }

    /// Appends a node of a B-tree of chunks with the given children: stored size, offset and
    /// address.
    fn tree(&mut self, level: u8, children: &[(u32, u64, u64)]) -> u64 {
        let mut node = [b"TREE\x01", &[level][..], &(children.len() as u16).to_le_bytes()].concat();
        node.extend([0xff; 16]);
        for (size, offset, address) in children {
            node.extend([&size.to_le_bytes()[..], &[0; 4], &offset.to_le_bytes()].concat());
            node.extend([0; 8]);
            node.extend(address.to_le_bytes());
        }
        node.extend([0; 24]);
        self.append(&node)
    }

    /// Writes the file's length and the address `root` of the root group to the superblock, and
    /// returns the bytes of the file.
    fn finish(mut self, root: u64) -> Vec<u8> {
        let len = self.0.len() as u64;
        self.0[40..48].copy_from_slice(&len.to_le_bytes());
        self.0[64..72].copy_from_slice(&root.to_le_bytes());
        self.0
    }
}

fn contiguous(address: u64, size: u64) -> Vec<u8> {
    [&[3, 1][..], &address.to_le_bytes(), &size.to_le_bytes()].concat()
}

/// Returns the layout of a dataset with one axis and chunks of `chunk` elements.
fn chunked(tree: u64, chunk: u32) -> Vec<u8> {
    [&[3, 2, 2][..], &tree.to_le_bytes(), &chunk.to_le_bytes(), &1_u32.to_le_bytes()].concat()
}

fn deflate() -> (u16, Vec<u8>) {
    (11, vec![1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0])
}

/// Appends the groups of a trained net whose layer `ip` has one parameter: the dataset at the
/// address `parameter`. Returns the address of the root group.
fn append_net(file: &mut File, parameter: u64) -> u64 {
    let layer = file.group([("0", parameter)]);
    let data = file.group([("ip", layer)]);
    file.group([("data", data)])
}

fn write_net(folder: &Folder, parameter: impl FnOnce(&mut File) -> u64) {
    let mut file = File::new();
    let parameter = parameter(&mut file);
    let root = append_net(&mut file, parameter);
    folder.write("a.caffemodel.h5", file.finish(root));
}

const LIMIT_ERROR: [&str; 2] = ["a.caffemodel.h5: `data/ip/0`: ", "the limit for "];

#[test]
fn a_small_hdf5_net_is_read() {
    let folder = Folder::new("hdf5-valid");
    write_net(&folder, |file| {
        let values = file.append(&[7; 10]);
        file.dataset(&[10], contiguous(values, 10), &[])
    });
    assert_eq!(folder.run("inspect a.caffemodel.h5").0, Some(0));
    write_net(&folder, |file| {
        let values = zlib(&[7; 10], 1000);
        let address = file.append(&values);
        let tree = file.tree(0, &[(values.len() as u32, 0, address)]);
        file.dataset(&[1010], chunked(tree, 1010), &[deflate()])
    });
    assert_eq!(folder.run("inspect a.caffemodel.h5").0, Some(0));
}

#[test]
fn a_deflated_hdf5_dataset_of_100_mb_is_refused() {
    let folder = Folder::new("hdf5-deflate");
    write_net(&folder, |file| {
        let values = zlib(&[], 100_000_000);
        let address = file.append(&values);
        let tree = file.tree(0, &[(values.len() as u32, 0, address)]);
        file.dataset(&[100_000_000], chunked(tree, 100_000_000), &[deflate()])
    });
    folder.fails("inspect a.caffemodel.h5", &LIMIT_ERROR);
    folder.fails("test --model net.prototxt --weights a.caffemodel.h5", &["net.prototxt"]);
}

#[test]
fn a_small_hdf5_dataset_in_a_chunk_of_100_mb_is_refused() {
    let folder = Folder::new("hdf5-chunk");
    write_net(&folder, |file| {
        let values = zlib(&[], 100_000_000);
        let address = file.append(&values);
        let tree = file.tree(0, &[(values.len() as u32, 0, address)]);
        file.dataset(&[1], chunked(tree, 100_000_000), &[deflate()])
    });
    folder.fails(
        "inspect a.caffemodel.h5",
        &["1 chunks of shape [100000000]", LIMIT_ERROR[0], LIMIT_ERROR[1]],
    );
}

#[test]
fn an_hdf5_chunk_that_is_listed_1000_times_is_refused() {
    let folder = Folder::new("hdf5-same-chunk");
    write_net(&folder, |file| {
        let values = zlib(&[], 1_000_000);
        let address = file.append(&values);
        let tree = file.tree(0, &[(values.len() as u32, 0, address); 1000]);
        file.dataset(&[1_000_000], chunked(tree, 1_000_000), &[deflate()])
    });
    folder.fails(
        "inspect a.caffemodel.h5",
        &["1000 chunks of shape", LIMIT_ERROR[0], LIMIT_ERROR[1]],
    );
}

#[test]
fn an_hdf5_dataset_without_stored_values_is_refused() {
    let folder = Folder::new("hdf5-fill");
    write_net(&folder, |file| file.dataset(&[1 << 40], contiguous(UNDEFINED, 0), &[]));
    folder.fails(
        "inspect a.caffemodel.h5",
        &["shape [1099511627776]", LIMIT_ERROR[0], LIMIT_ERROR[1]],
    );
}

#[test]
fn hdf5_links_from_many_layers_to_one_dataset_are_refused() {
    let folder = Folder::new("hdf5-links");
    let mut file = File::new();
    let values = zlib(&[], 1_000_000);
    let address = file.append(&values);
    let tree = file.tree(0, &[(values.len() as u32, 0, address)]);
    let parameter = file.dataset(&[1_000_000], chunked(tree, 1_000_000), &[deflate()]);
    let layer = file.group([("0", parameter)]);
    let names: Vec<_> = (0..100).map(|index| format!("layer{index}")).collect();
    let data = file.group(names.iter().map(|name| (&name[..], layer)));
    let root = file.group([("data", data)]);
    folder.write("a.caffemodel.h5", file.finish(root));
    folder.fails("inspect a.caffemodel.h5", &["a.caffemodel.h5: `data/layer", LIMIT_ERROR[1]]);
}

#[test]
fn a_cycle_of_hdf5_groups_ends_with_an_error() {
    let folder = Folder::new("hdf5-cycle");
    let mut file = File::new();
    // The root group is the next object, so the link `data` refers to the root group itself.
    let next = (file.0.len() as u64).next_multiple_of(8);
    let root = file.group([("data", next)]);
    assert_eq!(root, next);
    folder.write("a.caffemodel.h5", file.finish(root));
    // The group `data/data` is a layer without parameters.
    assert_eq!(folder.run("inspect a.caffemodel.h5").0, Some(0));
    folder.fails("inspect a.solverstate.h5", &["a.solverstate.h5: "]);
}

#[test]
fn a_cyclic_btree_of_hdf5_chunks_ends_with_an_error() {
    let folder = Folder::new("hdf5-tree");
    write_net(&folder, |file| {
        // Both child pointers of the B-tree's node refer to the node itself, so the B-tree has a
        // cycle.
        let node = (file.0.len() as u64).next_multiple_of(8);
        let tree = file.tree(1, &[(10, 0, node), (10, 5, node)]);
        assert_eq!(tree, node);
        file.dataset(&[10], chunked(tree, 10), &[deflate()])
    });
    folder.fails("inspect a.caffemodel.h5", &["a.caffemodel.h5: `data/ip/0`: "]);
}

#[test]
fn an_hdf5_data_layer_refuses_a_deflated_dataset_of_100_mb() {
    let folder = Folder::new("hdf5-data");
    let mut file = File::new();
    let values = zlib(&[], 100_000_000);
    let address = file.append(&values);
    let tree = file.tree(0, &[(values.len() as u32, 0, address)]);
    let dataset =
        file.dataset(&[10, 10_000_000], chunked_rows(tree, [10, 10_000_000]), &[deflate()]);
    let root = file.group([("data", dataset)]);
    folder.write("a.h5", file.finish(root)).write("list.txt", "a.h5").write(
        "net.prototxt",
        r#"layer { name: "x" type: "HDF5Data" top: "data"
             hdf5_data_param { source: "list.txt" batch_size: 1 } }"#,
    );
    folder.fails("time --model net.prototxt", &["a.h5: dataset `data`: ", "the limit for "]);
}

/// Returns the layout of a dataset with two axes.
fn chunked_rows(tree: u64, chunk: [u32; 2]) -> Vec<u8> {
    let extents = [chunk[0], chunk[1], 1].map(u32::to_le_bytes).concat();
    [&[3, 2, 3][..], &tree.to_le_bytes(), &extents].concat()
}
