//! Damaged binary files: an error that says where, in bounded memory and time, never a panic.

use std::fmt::Debug;

use cortado::{
    Blob, CpuDevice,
    proto::{
        self, BlobProto, BlobProtoVector, BlobShape, Datum, LayerParameter, Message, Name,
        NetParameter, SolverState, UnknownFields, parse_binary,
    },
};

fn blob(dims: &[i64], values: usize) -> BlobProto {
    BlobProto {
        shape: Some(BlobShape { dim: dims.to_vec() }),
        data: (0..values).map(|value| value as f32).collect(),
        ..Default::default()
    }
}

fn net() -> NetParameter {
    let layer = |name: &str| LayerParameter {
        name: Some(name.into()),
        r#type: Some("InnerProduct".into()),
        blobs: vec![blob(&[2, 3], 6), blob(&[2], 2)],
        ..Default::default()
    };
    NetParameter {
        name: Some("n".into()),
        layer: vec![layer("a"), layer("b")],
        ..Default::default()
    }
}

fn state() -> SolverState {
    SolverState {
        iter: Some(300),
        learned_net: Some("a.caffemodel".into()),
        history: vec![blob(&[2, 3], 6), blob(&[2], 2)],
        current_step: Some(1),
    }
}

fn datum() -> Datum {
    Datum {
        channels: Some(1),
        height: Some(2),
        width: Some(2),
        data: Some(vec![1, 2, 3, 255]),
        label: Some(7),
        float_data: vec![0.5],
        encoded: Some(false),
    }
}

fn field(key: &[u8], content: &[u8]) -> Vec<u8> {
    assert!(content.len() < 128);
    [key, &[content.len() as u8], content].concat()
}

/// What reading says, which has to begin with the file's name.
fn refusal<M: Message + Name + Default + Debug>(bytes: &[u8]) -> String {
    let error = parse_binary::<M>(bytes, "some.file").unwrap_err().to_string();
    let start = format!("some.file: not a {}: byte ", M::full_name());
    assert!(error.starts_with(&start), "{error}");
    assert!(UnknownFields::parse::<M>(bytes, "some.file").is_err());
    error[start.len()..].to_owned()
}

/// Cut at every byte, a message is refused or, where a field of its own ends, read in part.
fn cut<M: Message + Name + Default + Debug>(message: &M) {
    let bytes = message.encode_to_vec();
    let mut whole = 0;
    for end in 0..bytes.len() {
        match parse_binary::<M>(&bytes[..end], "some.file") {
            Ok(part) => {
                assert_eq!(part.encode_to_vec(), bytes[..end]);
                whole += 1;
            }
            Err(_) => {
                let error = refusal::<M>(&bytes[..end]);
                let at: usize = error.split([':', ',']).next().unwrap().parse().unwrap();
                assert!(at <= end, "{error}");
            }
        }
    }
    assert!((1..=8).contains(&whole), "{whole} of {}", bytes.len());
}

#[test]
fn files_cut_short() {
    cut(&net());
    cut(&state());
    cut(&blob(&[2, 3], 6));
    cut(&BlobProtoVector { blobs: vec![blob(&[2, 3], 6), blob(&[2], 2)] });
    cut(&datum());
}

#[test]
fn any_byte_changed() {
    fn changed<M: Message + Name + Default>(message: &M) {
        let bytes = message.encode_to_vec();
        for at in 0..bytes.len() {
            for value in 0..=255 {
                let mut changed = bytes.clone();
                changed[at] = value;
                if let Ok((read, unknown)) = UnknownFields::parse::<M>(&changed, "") {
                    let written = unknown.encode(&read).unwrap();
                    assert!(written.len() <= 3 * bytes.len(), "{at} {value}");
                }
            }
        }
    }
    changed(&net());
    changed(&state());
    changed(&datum());
}

#[test]
fn the_place_is_told() {
    let bad = field(&[0x2a], &[0; 7]);
    let layer = field(&[0xa2, 0x06], &field(&[0x3a], &bad));
    let good = field(&[0xa2, 0x06], &field(&[0x0a], b"a"));
    let refused = refusal::<NetParameter>(&[&good[..], &layer].concat());
    assert_eq!(refused, "13, in layer[1].blobs[0].data: 7 bytes of values of 4 bytes each");

    let unknown = field(&[0x3a], &[0xa3, 0x06, 0x08]);
    let refused = refusal::<BlobProto>(&unknown);
    assert_eq!(refused, "5, in shape.field 100: the bytes end within a number");
}

#[test]
fn files_of_another_type() {
    let (net, state) = (net().encode_to_vec(), state().encode_to_vec());
    let (blob, datum) = (blob(&[2, 3], 6).encode_to_vec(), datum().encode_to_vec());
    let vector = BlobProtoVector { blobs: vec![BlobProto::decode(&blob[..]).unwrap()] };
    let vector = vector.encode_to_vec();
    for bytes in [&net, &blob, &vector, &datum[..]] {
        let read = parse_binary::<SolverState>(bytes, "");
        // A picture's channels may as well be an iteration.
        assert!(read.is_err() || bytes == datum, "{read:?}");
    }
    for bytes in [&state, &blob] {
        refusal::<NetParameter>(bytes);
    }
    refusal::<BlobProto>(&net);
    assert_eq!(refusal::<Datum>(&blob), "0: no field of a caffe.Datum is here");
    for other in [
        &b"name: \"a\"\nlayer { name: \"b\" }\n"[..],
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        b"\x1f\x8b\x08\0\0\0\0\0",
        b"\x89HDF\r\n\x1a\n\0\0\0\0\0\x08\x08",
        b"<html><body>404</body></html>",
        b"version https://git-lfs.github.com/spec/v1\n",
        &[0; 100],
        &[0xff; 100],
    ] {
        refusal::<NetParameter>(other);
        refusal::<SolverState>(other);
        refusal::<BlobProto>(other);
        refusal::<BlobProtoVector>(other);
        refusal::<Datum>(other);
    }
    // Another encoding of a name is no damage; C++ has no opinion on it.
    let latin = field(&[0x0a], b"caf\xe9");
    assert_eq!(parse_binary::<NetParameter>(&latin, "").unwrap().name(), "caf\u{fffd}");
    refusal::<NetParameter>(&field(&[0x0a], b"caf\xe9\x01"));
}

#[test]
fn claimed_lengths_cost_nothing() {
    let lengths: [&[u8]; 4] = [
        &[0x7f],
        &[0xff, 0xff, 0xff, 0xff, 0x07],
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
    ];
    // A string, a message, packed numbers, an unknown field, in this order of types.
    for length in lengths {
        refusal::<NetParameter>(&[&[0x0a], length].concat());
        refusal::<NetParameter>(&[&[0xa2, 0x06], length].concat());
        refusal::<BlobProto>(&[&[0x2a], length, &[0; 9]].concat());
        refusal::<BlobProto>(&[&[0x3a], length].concat());
        refusal::<Datum>(&[&[0x22], length].concat());
        refusal::<SolverState>(&[&[0xfa, 0x7f], length].concat());
    }
    let refused = refusal::<BlobProto>(&[0x2a, 0xff, 0xff, 0xff, 0xff, 0x07, 0]);
    assert_eq!(refused, "1, in data: a length of 2147483647 bytes where 1 are left");
}

#[test]
fn numbers_that_never_end() {
    for length in [10, 11, 1000] {
        refusal::<BlobProto>(&[&[0x08], &vec![0xff; length][..]].concat());
        refusal::<BlobProto>(&[&[0x80], &vec![0x80; length][..]].concat());
        refusal::<BlobProto>(&[&[0x2a], &vec![0x80; length][..]].concat());
        refusal::<BlobProto>(&[&[0xf8, 0x7f], &vec![0x80; length][..]].concat());
    }
}

#[test]
fn deep_groups() {
    let groups = |depth: usize| {
        let (open, close) = (vec![0x7b; depth], vec![0x7c; depth]);
        [&field(&[0x2a], &[0; 4])[..], &open, &close].concat()
    };
    assert_eq!(parse_binary::<BlobProto>(&groups(90), "").unwrap().data, [0.0]);
    for depth in [101, 200, 1_000_000] {
        assert!(refusal::<BlobProto>(&groups(depth)).ends_with("nested more than 100 deep"));
        refusal::<BlobProto>(&groups(depth)[..depth]);
    }
}

#[test]
fn blobs_of_absurd_shapes() {
    let cpu = CpuDevice::with_threads(1).unwrap();
    let (max, int) = (i64::MAX, i64::from(i32::MAX));
    let shapes: [&[i64]; 10] = [
        &[max],
        &[max, max],
        &[1 << 32, 1 << 32],
        &[1 << 62, 4],
        &[int, int, int],
        &[-1],
        &[i64::MIN],
        &[-1, -1],
        &[2, -3],
        &[1; 33],
    ];
    for dims in shapes {
        for values in [0, 1, 6] {
            let bytes = blob(dims, values).encode_to_vec();
            let read: BlobProto = parse_binary(&bytes, "").unwrap();
            let mut into = Blob::<f32, _>::new(&cpu, &[2]).unwrap();
            assert!(into.from_proto(&read, true).is_err(), "{dims:?} {values}");
            assert_eq!(into.shape()[..], [2]);
        }
    }
    // Shape and data that disagree, either way.
    let mut into = Blob::<f64, _>::new(&cpu, &[]).unwrap();
    for (dims, values) in [(&[2, 3][..], 5), (&[2, 3], 7), (&[2], 0), (&[], 2)] {
        let error = into.from_proto(&blob(dims, values), true).unwrap_err().to_string();
        assert!(error.contains("values of data for shape"), "{error}");
    }
}

#[test]
fn files_are_named() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("bad_files.caffemodel");
    std::fs::write(&path, &net().encode_to_vec()[..40]).unwrap();
    let error = proto::read_binary::<NetParameter>(&path).unwrap_err().to_string();
    assert!(error.starts_with(path.to_str().unwrap()) && error.contains("byte "), "{error}");
    std::fs::remove_file(path).unwrap();
    let folder = env!("CARGO_TARGET_TMPDIR");
    assert!(proto::read_binary::<NetParameter>(folder).is_err());
}

#[cfg(feature = "net")]
mod weights {
    use super::*;
    use cortado::Net;

    fn built() -> Net<f32, CpuDevice> {
        let text = r#"
            layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 1 dim: 3 } } }
            layer { name: "a" type: "InnerProduct" bottom: "x" top: "y"
                    inner_product_param { num_output: 2 } }
        "#;
        let param = proto::parse_text::<NetParameter>(text, "net.prototxt").unwrap();
        Net::builder(&CpuDevice::with_threads(1).unwrap()).build(&param).unwrap()
    }

    /// Loads the weights, which have to be refused with the layer's name.
    fn refused(blobs: Vec<BlobProto>) -> String {
        let layer = LayerParameter { name: Some("a".into()), blobs, ..Default::default() };
        let weights = NetParameter { layer: vec![layer], ..Default::default() };
        let read = parse_binary::<NetParameter>(&weights.encode_to_vec(), "").unwrap();
        let error = built().copy_trained_from(&read).unwrap_err().to_string();
        assert!(error.contains("`a`"), "{error}");
        error
    }

    #[test]
    fn of_other_shapes_or_numbers_are_refused() {
        assert_eq!(built().copy_trained_from(&net()).unwrap(), ["a"]);
        refused(vec![]);
        refused(vec![blob(&[2, 3], 6)]);
        refused(vec![blob(&[3, 2], 6), blob(&[2], 2)]);
        refused(vec![blob(&[2, 3], 5), blob(&[2], 2)]);
        refused(vec![blob(&[2, 3], 6), blob(&[2], 0)]);
        refused(vec![blob(&[i64::MAX, 3], 6), blob(&[2], 2)]);
        refused(vec![blob(&[-2, -3], 6), blob(&[2], 2)]);
    }

    #[test]
    fn cut_short_are_refused_or_load_whole_layers() {
        let bytes = net().encode_to_vec();
        for end in 0..bytes.len() {
            if let Ok(weights) = parse_binary::<NetParameter>(&bytes[..end], "") {
                built().copy_trained_from(&weights).unwrap();
            }
        }
    }

    #[test]
    fn lenet_cut_anywhere() {
        let Some(folder) = std::env::var_os("CORTADO_TESTDATA") else {
            eprintln!("SKIPPED: set CORTADO_TESTDATA to run cut files of LeNet");
            return;
        };
        let lenet = "golden/lenet/lenet_iter_10000.caffemodel";
        let bytes = std::fs::read(std::path::Path::new(&folder).join(lenet)).unwrap();
        let near = |at: usize| at.saturating_sub(40)..(at + 40).min(bytes.len());
        let steps = (0..bytes.len()).step_by(bytes.len() / 97);
        let mut whole = 0;
        for end in steps.chain(near(0)).chain(near(bytes.len())) {
            match parse_binary::<NetParameter>(&bytes[..end], "some.file") {
                Ok(part) => {
                    assert_eq!(part.encode_to_vec(), bytes[..end]);
                    whole += 1;
                }
                Err(_) => drop(refusal::<NetParameter>(&bytes[..end])),
            }
        }
        assert!(whole < 9, "{whole}");
    }
}
