//! Unknown fields, at any depth and of any kind, survive reading and writing.

use cortado::proto::{
    self, BlobProto, Message, NetParameter, PathStep, SolverState, UnknownFields, parse_binary,
};
use proptest::{collection::vec, prelude::*};

/// A message as a tree, encoded here without the crate's help.
#[derive(Clone, Debug, Default)]
struct Tree {
    /// Known fields in the order of their numbers, each whole.
    known: Vec<Vec<u8>>,
    /// Messages in fields of higher numbers than all of `known`, in order.
    nested: Vec<(u32, Tree)>,
    /// Unknown fields, each whole, and before how many of the others they stand.
    unknown: Vec<(usize, Vec<u8>)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Order {
    Mixed,
    Behind,
    Without,
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn field(number: u32, wire: u32, value: &[u8]) -> Vec<u8> {
    [&varint((number << 3 | wire).into()), value].concat()
}

fn delimited(number: u32, content: &[u8]) -> Vec<u8> {
    field(number, 2, &[&varint(content.len() as u64), content].concat())
}

impl Tree {
    fn encode(&self, order: Order) -> Vec<u8> {
        let nested =
            self.nested.iter().map(|(number, tree)| delimited(*number, &tree.encode(order)));
        let known: Vec<Vec<u8>> = self.known.iter().cloned().chain(nested).collect();
        let mut bytes = Vec::new();
        let count = known.len() + 1;
        for (place, known) in known.into_iter().chain([Vec::new()]).enumerate() {
            for (_, unknown) in self.unknown.iter().filter(|(before, _)| before % count == place) {
                if order == Order::Mixed {
                    bytes.extend(unknown);
                }
            }
            bytes.extend(known);
        }
        if order == Order::Behind {
            let mut unknown: Vec<_> = self.unknown.iter().collect();
            unknown.sort_by_key(|(before, _)| before % count);
            unknown.into_iter().for_each(|(_, field)| bytes.extend(field));
        }
        bytes
    }
}

/// Any value of any wire type, in a field of this number; groups hold values in turn.
fn value(number: u32) -> BoxedStrategy<Vec<u8>> {
    let leaf = prop_oneof![
        any::<u64>().prop_map(|value| (0, varint(value))),
        any::<[u8; 8]>().prop_map(|bytes| (1, bytes.to_vec())),
        any::<[u8; 4]>().prop_map(|bytes| (5, bytes.to_vec())),
        vec(any::<u8>(), 0..200).prop_map(|b| (2, [varint(b.len() as u64), b].concat())),
    ];
    let leaf = leaf.prop_map(|(wire, value)| (wire, value));
    let any_value = leaf.prop_recursive(4, 12, 3, |inner| {
        vec((1_u32..5000, inner), 0..3).prop_map(|fields| {
            let fields =
                fields.into_iter().flat_map(|(number, (wire, value)): (u32, (u32, Vec<u8>))| {
                    let close = if wire == 3 { field(number, 4, &[]) } else { Vec::new() };
                    [field(number, wire, &value), close].concat()
                });
            (3, fields.collect())
        })
    });
    any_value
        .prop_map(move |(wire, value): (u32, Vec<u8>)| {
            let close = if wire == 3 { field(number, 4, &[]) } else { Vec::new() };
            [field(number, wire, &value), close].concat()
        })
        .boxed()
}

fn unknown() -> impl Strategy<Value = Vec<(usize, Vec<u8>)>> {
    // Numbers that none of Caffe's messages has, of two, three and five bytes a key; and 1, where
    // a wire type does not fit: a group is no field that Caffe has.
    let number = prop_oneof![900_u32..1900, 19_000_u32..20_000, Just((1_u32 << 29) - 1)];
    let misfit = Just([field(1, 3, &[]), field(1, 4, &[])].concat());
    vec((0_usize..9, prop_oneof![9 => number.prop_flat_map(value), 1 => misfit]), 0..4)
}

fn shape() -> impl Strategy<Value = Tree> {
    (vec(0_u64..300, 1..5), unknown()).prop_map(|(dims, unknown)| {
        let dims: Vec<u8> = dims.into_iter().flat_map(varint).collect();
        Tree { known: vec![delimited(1, &dims)], nested: Vec::new(), unknown }
    })
}

fn blob() -> impl Strategy<Value = Tree> {
    (vec(any::<[u8; 4]>(), 1..40), shape(), unknown()).prop_map(|(data, shape, unknown)| Tree {
        known: vec![delimited(5, &data.concat())],
        nested: vec![(7, shape)],
        unknown,
    })
}

fn layer() -> impl Strategy<Value = Tree> {
    ("[a-z]{0,9}", vec(blob(), 0..3), unknown()).prop_map(|(name, blobs, unknown)| Tree {
        known: vec![delimited(1, name.as_bytes())],
        nested: blobs.into_iter().map(|blob| (7, blob)).collect(),
        unknown,
    })
}

fn net() -> impl Strategy<Value = Tree> {
    ("[a-z]{0,9}", vec(layer(), 0..4), unknown()).prop_map(|(name, layers, unknown)| Tree {
        known: vec![delimited(1, name.as_bytes())],
        nested: layers.into_iter().map(|layer| (100, layer)).collect(),
        unknown,
    })
}

proptest! {
    #[test]
    fn survive(tree in net()) {
        let bytes = tree.encode(Order::Mixed);
        let without = tree.encode(Order::Without);
        let (net, unknown) = UnknownFields::parse::<NetParameter>(&bytes, "net").unwrap();
        prop_assert_eq!(&net.encode_to_vec(), &without);
        prop_assert_eq!(&parse_binary::<NetParameter>(&bytes, "net").unwrap().encode_to_vec(), &without);

        let written = unknown.encode(&net).unwrap();
        prop_assert_eq!(&written, &tree.encode(Order::Behind));
        prop_assert_eq!(unknown.is_empty(), written == without);
        let (again, same) = UnknownFields::parse::<NetParameter>(&written, "net").unwrap();
        prop_assert_eq!(again.encode_to_vec(), without);
        prop_assert_eq!(same, unknown);
    }
}

fn layers(number: u32) -> Vec<u8> {
    let layer = |name: &str, extra: &[u8]| {
        let name_number = if number == 2 { 4 } else { 1 };
        delimited(number, &[&delimited(name_number, name.as_bytes()), extra].concat())
    };
    [layer("a", &field(901, 0, &[1])), layer("b", &[]), layer("c", &field(902, 0, &[2]))].concat()
}

#[test]
fn follow_messages_that_move() {
    let (old, mut unknown) = UnknownFields::parse::<NetParameter>(&layers(2), "net").unwrap();
    let path = |field, index| vec![PathStep { field, index }];
    assert_eq!(unknown.paths().collect::<Vec<_>>(), [path(2, 0), path(2, 2)]);
    unknown.remap_paths(|path| {
        (path[0].field, path[0].index) = (100, path[0].index + 1);
        true
    });

    let mut new = NetParameter::default();
    let names = ["input", old.layers[0].name(), old.layers[1].name(), old.layers[2].name()];
    new.layer.extend(
        names.map(|name| proto::LayerParameter {
            name: Some(name.to_owned()),
            ..Default::default()
        }),
    );
    let want = [delimited(100, &delimited(1, b"input")), layers(100)].concat();
    assert_eq!(unknown.encode(&new).unwrap(), want);
    // What has nowhere to go is left out.
    new.layer.truncate(2);
    assert_eq!(unknown.encode(&new).unwrap(), want[..10 + 9]);
    unknown.remap_paths(|_| false);
    assert!(unknown.is_empty());
}

/// A net of the V0 format with an unknown field in every message, a varint of this number.
fn v0_net() -> Vec<u8> {
    let text = |number, text: &str| delimited(number, text.as_bytes());
    let padding = [text(1, "pad"), text(2, "padding"), field(7, 0, &[2]), field(901, 0, &[1])];
    let blob = [field(5, 5, &[0, 0, 128, 63]), field(902, 0, &[2])].concat();
    let conv = [text(1, "conv"), text(2, "conv"), delimited(50, &blob), field(903, 0, &[3])];
    let layer = |from: &str, to: &str, v0: &[Vec<u8>], unknown: u8| {
        let unknown = field(900 + u32::from(unknown), 0, &[unknown]);
        delimited(2, &[delimited(1, &v0.concat()), text(2, from), text(3, to), unknown].concat())
    };
    let shape = delimited(8, &[field(1, 0, &[5]), field(906, 0, &[6])].concat());
    [
        layer("data", "padded", &padding, 4),
        layer("padded", "conv", &conv, 5),
        text(3, "data"),
        shape,
        field(907, 0, &[7]),
    ]
    .concat()
}

#[test]
fn follow_an_upgrade() {
    let (old, mut unknown) = UnknownFields::parse::<NetParameter>(&v0_net(), "net").unwrap();
    assert_eq!(unknown.paths().count(), 7);
    let upgraded = proto::upgrade::net(old).unwrap();
    upgraded.relocate(&mut unknown);
    let bytes = unknown.encode(&upgraded.message).unwrap();

    let (new, unknown) = UnknownFields::parse::<NetParameter>(&bytes, "net").unwrap();
    assert_eq!(new, upgraded.message);
    let names: Vec<&str> = new.layer.iter().map(|layer| layer.name()).collect();
    assert_eq!(names, ["input", "conv"]);
    let at = |path: &[(u32, usize)]| -> Vec<PathStep> {
        path.iter().map(|&(field, index)| PathStep { field, index }).collect()
    };
    // The net's, the shape's in the new layer, the blob's, and both of the layer that is still there.
    let shape = at(&[(100, 0), (143, 0), (1, 0)]);
    let want = [at(&[]), shape, at(&[(100, 1)]), at(&[(100, 1), (7, 0)])];
    assert_eq!(unknown.paths().collect::<Vec<_>>(), want);
    let both = [field(903, 0, &[3]), field(905, 0, &[5])].concat();
    let count =
        |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).filter(|w| *w == part).count();
    assert!(count(&bytes, &both) == 1 || count(&bytes, &[&both[3..], &both[..3]].concat()) == 1);
    for (kept, number) in [(false, 901), (true, 902), (false, 904), (true, 906), (true, 907)] {
        let field = field(number, 0, &[(number - 900) as u8]);
        assert_eq!(count(&bytes, &field), usize::from(kept), "{number}");
    }

    let (old, mut unknown) = UnknownFields::parse::<NetParameter>(&layers(2), "net").unwrap();
    let upgraded = proto::upgrade::net(old).unwrap();
    upgraded.relocate(&mut unknown);
    assert_eq!(unknown.encode(&upgraded.message).unwrap(), layers(100));
}

#[test]
fn never_become_known() {
    // 50 is unknown to a shape; a BlobProto's 5 would become data where it moved.
    let bytes = delimited(7, &[field(50, 0, &[1]), field(5, 5, &[0, 0, 128, 63])].concat());
    let (mut blob, mut unknown) = UnknownFields::parse::<BlobProto>(&bytes, "blob").unwrap();
    assert_eq!(unknown.encode(&blob).unwrap(), bytes);
    unknown.remap_paths(|path| {
        path.clear();
        true
    });
    blob.shape = None;
    assert_eq!(unknown.encode(&blob).unwrap(), field(50, 0, &[1]));
}

#[test]
fn survive_in_files() {
    let folder = tempfile_folder("unknown_fields");
    let path = folder.join("a.solverstate");
    let bytes = [field(1, 0, &[7]), delimited(77, b"momentum of a fork")].concat();
    std::fs::write(&path, &bytes).unwrap();
    let (mut state, unknown) = UnknownFields::read::<SolverState>(&path).unwrap();
    state.iter = Some(8);
    unknown.write(&path, &state).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), [&[8, 8], &bytes[2..]].concat());
    assert_eq!(proto::read_binary::<SolverState>(&path).unwrap(), state);
    std::fs::remove_dir_all(folder).unwrap();
}

fn tempfile_folder(name: &str) -> std::path::PathBuf {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
