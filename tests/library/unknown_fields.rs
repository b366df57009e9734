//! Tests that unknown fields of every wire type and nesting depth are preserved when a message is
//! read and written.

use cortado::proto::{
    self, BlobProto, Message, NetParameter, PathStep, SolverState, UnknownFields, parse_binary,
};
use proptest::{collection::vec, prelude::*};

/// Tree of nested messages, which this test encodes independently of the library.
#[derive(Clone, Debug, Default)]
struct Tree {
    /// Encoded known fields, each with key and value, in the order of field numbers.
    known: Vec<Vec<u8>>,
    /// Nested messages, whose field numbers are higher than those of the `known` fields.
    nested: Vec<(u32, Tree)>,
    /// Encoded unknown fields, each with a position. [`Order::Mixed`] inserts a field before the
    /// known field with the index `position % (number of known fields + 1)`.
    unknown: Vec<(usize, Vec<u8>)>,
}

/// Position at which the unknown fields of a message are encoded.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    /// Encodes the unknown fields of a message between the known fields.
    Mixed,
    /// Encodes the unknown fields of a message after the known fields.
    Last,
    /// Omits the unknown fields of a message.
    Omitted,
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

fn delimited_field(number: u32, content: &[u8]) -> Vec<u8> {
    field(number, 2, &[&varint(content.len() as u64), content].concat())
}

impl Tree {
    fn encode(&self, order: Order) -> Vec<u8> {
        let nested =
            self.nested.iter().map(|(number, tree)| delimited_field(*number, &tree.encode(order)));
        let known: Vec<Vec<u8>> = self.known.iter().cloned().chain(nested).collect();
        let mut bytes = Vec::new();
        let position_count = known.len() + 1;
        for (index, known) in known.into_iter().chain([Vec::new()]).enumerate() {
            if order == Order::Mixed {
                let fields_here =
                    self.unknown.iter().filter(|(position, _)| position % position_count == index);
                fields_here.for_each(|(_, unknown)| bytes.extend(unknown));
            }
            bytes.extend(known);
        }
        if order == Order::Last {
            let mut unknown: Vec<_> = self.unknown.iter().collect();
            unknown.sort_by_key(|(position, _)| position % position_count);
            unknown.into_iter().for_each(|(_, field)| bytes.extend(field));
        }
        bytes
    }
}

/// Encodes a field. The encoding of a group includes its end-of-group tag.
fn field_or_group(number: u32, (wire, value): (u32, Vec<u8>)) -> Vec<u8> {
    let end = if wire == 3 { field(number, 4, &[]) } else { Vec::new() };
    [field(number, wire, &value), end].concat()
}

/// Returns a proptest strategy for a field with the number `number` and a value of any wire type.
/// The value of a group is a sequence of fields.
fn value(number: u32) -> BoxedStrategy<Vec<u8>> {
    let leaf = prop_oneof![
        any::<u64>().prop_map(|value| (0, varint(value))),
        any::<[u8; 8]>().prop_map(|bytes| (1, bytes.to_vec())),
        any::<[u8; 4]>().prop_map(|bytes| (5, bytes.to_vec())),
        vec(any::<u8>(), 0..200).prop_map(|b| (2, [varint(b.len() as u64), b].concat())),
    ];
    let any_value = leaf.prop_recursive(4, 12, 3, |inner| {
        vec((1_u32..5000, inner), 0..3).prop_map(|fields| {
            (
                3,
                fields
                    .into_iter()
                    .flat_map(|(number, value)| field_or_group(number, value))
                    .collect(),
            )
        })
    });
    any_value.prop_map(move |value| field_or_group(number, value)).boxed()
}

fn unknown() -> impl Strategy<Value = Vec<(usize, Vec<u8>)>> {
    // `number` generates field numbers that no message type in this test declares. The encoded keys
    // of the generated fields have two, three or five bytes. No message type of Caffe declares
    // field 1 as a group.
    let number = prop_oneof![900_u32..1900, 19_000_u32..20_000, Just((1_u32 << 29) - 1)];
    let wrong_type = Just([field(1, 3, &[]), field(1, 4, &[])].concat());
    vec((0_usize..9, prop_oneof![9 => number.prop_flat_map(value), 1 => wrong_type]), 0..4)
}

fn shape() -> impl Strategy<Value = Tree> {
    (vec(0_u64..300, 1..5), unknown()).prop_map(|(dims, unknown)| {
        let dims: Vec<u8> = dims.into_iter().flat_map(varint).collect();
        Tree { known: vec![delimited_field(1, &dims)], nested: Vec::new(), unknown }
    })
}

fn blob() -> impl Strategy<Value = Tree> {
    (vec(any::<[u8; 4]>(), 1..40), shape(), unknown()).prop_map(|(data, shape, unknown)| Tree {
        known: vec![delimited_field(5, &data.concat())],
        nested: vec![(7, shape)],
        unknown,
    })
}

/// Returns a proptest strategy for a message with a name in field 1 and nested messages in the
/// field with the number `number`.
fn named_message(number: u32, nested: impl Strategy<Value = Tree>) -> impl Strategy<Value = Tree> {
    ("[a-z]{0,9}", vec(nested, 0..4), unknown()).prop_map(move |(name, nested, unknown)| Tree {
        known: vec![delimited_field(1, name.as_bytes())],
        nested: nested.into_iter().map(|tree| (number, tree)).collect(),
        unknown,
    })
}

fn net() -> impl Strategy<Value = Tree> {
    let layer = named_message(7, blob());
    named_message(100, layer)
}

proptest! {
    #[test]
    fn unknown_fields_are_written_after_the_known_fields(tree in net()) {
        let bytes = tree.encode(Order::Mixed);
        let known_bytes = tree.encode(Order::Omitted);
        let (net, unknown) = UnknownFields::parse::<NetParameter>(&bytes, "net").unwrap();
        prop_assert_eq!(&net.encode_to_vec(), &known_bytes);
        let parsed_net = parse_binary::<NetParameter>(&bytes, "net").unwrap();
        prop_assert_eq!(&parsed_net.encode_to_vec(), &known_bytes);

        let written_bytes = unknown.encode(&net).unwrap();
        prop_assert_eq!(&written_bytes, &tree.encode(Order::Last));
        prop_assert_eq!(unknown.is_empty(), written_bytes == known_bytes);
        let reread = UnknownFields::parse::<NetParameter>(&written_bytes, "net");
        let (reread_net, reread_unknown) = reread.unwrap();
        prop_assert_eq!(reread_net.encode_to_vec(), known_bytes);
        prop_assert_eq!(reread_unknown, unknown);
    }
}

fn layers(number: u32) -> Vec<u8> {
    let layer = |name: &str, extra: &[u8]| {
        let name_number = if number == 2 { 4 } else { 1 };
        delimited_field(number, &[&delimited_field(name_number, name.as_bytes()), extra].concat())
    };
    [layer("a", &field(901, 0, &[1])), layer("b", &[]), layer("c", &field(902, 0, &[2]))].concat()
}

#[test]
fn unknown_fields_stay_with_their_message_when_paths_are_remapped() {
    let (old, mut unknown) = UnknownFields::parse::<NetParameter>(&layers(2), "net").unwrap();
    let path = |field, index| vec![PathStep { field, index }];
    assert_eq!(unknown.paths().collect::<Vec<_>>(), [path(2, 0), path(2, 2)]);
    unknown.remap_paths(|path| {
        (path[0].field, path[0].index) = (100, path[0].index + 1);
        true
    });

    let mut net = NetParameter::default();
    let names = ["input", old.layers[0].name(), old.layers[1].name(), old.layers[2].name()];
    net.layer.extend(
        names.map(|name| proto::LayerParameter {
            name: Some(name.to_owned()),
            ..Default::default()
        }),
    );
    let want = [delimited_field(100, &delimited_field(1, b"input")), layers(100)].concat();
    assert_eq!(unknown.encode(&net).unwrap(), want);
    // Unknown fields of a message that no longer exists must be dropped.
    net.layer.truncate(2);
    assert_eq!(unknown.encode(&net).unwrap(), want[..10 + 9]);
    unknown.remap_paths(|_| false);
    assert!(unknown.is_empty());
}

/// Returns an encoded net of the V0 format. The messages in the net have the unknown fields 901 to
/// 907, which are varints with the values 1 to 7.
fn v0_net() -> Vec<u8> {
    let text = |number, text: &str| delimited_field(number, text.as_bytes());
    let padding = [text(1, "pad"), text(2, "padding"), field(7, 0, &[2]), field(901, 0, &[1])];
    let blob = [field(5, 5, &[0, 0, 128, 63]), field(902, 0, &[2])].concat();
    let conv = [text(1, "conv"), text(2, "conv"), delimited_field(50, &blob), field(903, 0, &[3])];
    let layer = |from: &str, to: &str, v0: &[Vec<u8>], unknown: u8| {
        let unknown = field(900 + u32::from(unknown), 0, &[unknown]);
        delimited_field(
            2,
            &[delimited_field(1, &v0.concat()), text(2, from), text(3, to), unknown].concat(),
        )
    };
    let shape = delimited_field(8, &[field(1, 0, &[5]), field(906, 0, &[6])].concat());
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
fn unknown_fields_stay_with_their_message_in_an_upgrade() {
    let (old, mut unknown) = UnknownFields::parse::<NetParameter>(&v0_net(), "net").unwrap();
    assert_eq!(unknown.paths().count(), 7);
    let upgraded = proto::upgrade::net(old).unwrap();
    upgraded.relocate(&mut unknown);
    let bytes = unknown.encode(&upgraded.message).unwrap();

    let (net, unknown) = UnknownFields::parse::<NetParameter>(&bytes, "net").unwrap();
    assert_eq!(net, upgraded.message);
    let names: Vec<&str> = net.layer.iter().map(|layer| layer.name()).collect();
    assert_eq!(names, ["input", "conv"]);
    let path = |path: &[(u32, usize)]| -> Vec<PathStep> {
        path.iter().map(|&(field, index)| PathStep { field, index }).collect()
    };
    // After the upgrade, unknown fields remain in four messages: the net, the shape in the new
    // Input layer, the remaining layer, and the blob of the remaining layer.
    let shape = path(&[(100, 0), (143, 0), (1, 0)]);
    let want = [path(&[]), shape, path(&[(100, 1)]), path(&[(100, 1), (7, 0)])];
    assert_eq!(unknown.paths().collect::<Vec<_>>(), want);
    // The remaining layer must have the unknown fields of its former V0 and V1 messages, in either
    // order.
    let merged_fields = [field(903, 0, &[3]), field(905, 0, &[5])].concat();
    let count =
        |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).filter(|w| *w == part).count();
    assert!(
        count(&bytes, &merged_fields) == 1
            || count(&bytes, &[&merged_fields[3..], &merged_fields[..3]].concat()) == 1
    );
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
fn unknown_fields_never_become_values_of_known_fields() {
    // `BlobShape` declares no field 5 or 50. `BlobProto` declares field 5 (`data`), so the unknown
    // field 5 must not be written to a `BlobProto`.
    let bytes = delimited_field(7, &[field(50, 0, &[1]), field(5, 5, &[0, 0, 128, 63])].concat());
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
fn unknown_fields_are_kept_when_a_file_is_rewritten() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("unknown_fields");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("a.solverstate");
    let bytes = [field(1, 0, &[7]), delimited_field(77, b"momentum of a fork")].concat();
    std::fs::write(&path, &bytes).unwrap();
    let (mut state, unknown) = UnknownFields::read::<SolverState>(&path).unwrap();
    state.iter = Some(8);
    unknown.write(&path, &state).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), [&[8, 8], &bytes[2..]].concat());
    assert_eq!(proto::read_binary::<SolverState>(&path).unwrap(), state);
    std::fs::remove_dir_all(folder).unwrap();
}
