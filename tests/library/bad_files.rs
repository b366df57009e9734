//! Tests of damaged binary files. Reading a damaged file must return an error with the byte offset,
//! or the decoded message if the file is still valid. The reader must not panic, and must use
//! bounded memory and time.

use std::fmt::Debug;

use cortado::{
    Blob, CpuDevice,
    proto::{
        self, BlobProto, BlobProtoVector, BlobShape, CaffeMessage, Datum, LayerParameter,
        LayerState, Message, NetParameter, NetRunState, RunState, SolverState, UnknownFields,
        parse_binary,
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
        run: Some(RunState {
            random_seed: Some(5),
            net: vec![NetRunState {
                layer: vec![LayerState {
                    name: Some("a".into()),
                    position: Some(300),
                    blobs: vec![blob(&[2], 2)],
                }],
            }],
            shards: Some(2),
            shard: vec![NetRunState { layer: vec![] }],
        }),
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

/// Asserts that reading a message from `bytes` fails and that the error names the file. Returns the
/// text of the error message after `byte `.
fn read_error<M: CaffeMessage + Debug>(bytes: &[u8]) -> String {
    let error = parse_binary::<M>(bytes, "some.file").unwrap_err().to_string();
    let start = format!("some.file: not a {}: byte ", M::full_name());
    assert!(error.starts_with(&start), "{error}");
    assert!(UnknownFields::parse::<M>(bytes, "some.file").is_err());
    error[start.len()..].to_owned()
}

/// Reads each proper prefix of an encoded message. Reading a prefix that ends within a field must
/// fail.
fn check_truncated<M: CaffeMessage + Debug>(message: &M) {
    let bytes = message.encode_to_vec();
    let mut readable_count = 0;
    for end in 0..bytes.len() {
        match parse_binary::<M>(&bytes[..end], "some.file") {
            Ok(part) => {
                assert_eq!(part.encode_to_vec(), bytes[..end]);
                readable_count += 1;
            }
            Err(_) => {
                let error = read_error::<M>(&bytes[..end]);
                let byte: usize = error.split([':', ',']).next().unwrap().parse().unwrap();
                assert!(byte <= end, "{error}");
            }
        }
    }
    assert!((1..=8).contains(&readable_count), "{readable_count} of {}", bytes.len());
}

#[test]
fn truncated_files_are_rejected_or_read_in_part() {
    check_truncated(&net());
    check_truncated(&state());
    check_truncated(&blob(&[2, 3], 6));
    check_truncated(&BlobProtoVector { blobs: vec![blob(&[2, 3], 6), blob(&[2], 2)] });
    check_truncated(&datum());
}

#[test]
fn files_with_a_changed_byte_are_rejected_or_read_in_bounded_memory() {
    fn check_changed<M: CaffeMessage>(message: &M) {
        let bytes = message.encode_to_vec();
        for i in 0..bytes.len() {
            for value in 0..=255 {
                let mut changed_bytes = bytes.clone();
                changed_bytes[i] = value;
                if let Ok((decoded, unknown_fields)) = UnknownFields::parse::<M>(&changed_bytes, "")
                {
                    let written_bytes = unknown_fields.encode(&decoded).unwrap();
                    assert!(written_bytes.len() <= 3 * bytes.len(), "{i} {value}");
                }
            }
        }
    }
    check_changed(&net());
    check_changed(&state());
    check_changed(&datum());
}

#[test]
fn errors_of_damaged_files_name_the_byte_and_the_field() {
    let damaged_blob = field(&[0x2a], &[0; 7]);
    let layer = field(&[0xa2, 0x06], &field(&[0x3a], &damaged_blob));
    let valid_layer = field(&[0xa2, 0x06], &field(&[0x0a], b"a"));
    let error = read_error::<NetParameter>(&[&valid_layer[..], &layer].concat());
    assert_eq!(
        error,
        "13, in layer[1].blobs[0].data: packed length of 7 bytes is not a multiple of 4"
    );

    let unknown_field = field(&[0x3a], &[0xa3, 0x06, 0x08]);
    let error = read_error::<BlobProto>(&unknown_field);
    assert_eq!(error, "5, in shape.field 100: truncated varint");
}

#[test]
fn files_of_another_type_are_rejected() {
    let (net, state) = (net().encode_to_vec(), state().encode_to_vec());
    let (blob, datum) = (blob(&[2, 3], 6).encode_to_vec(), datum().encode_to_vec());
    let blob_vector = BlobProtoVector { blobs: vec![BlobProto::decode(&blob[..]).unwrap()] };
    let blob_vector = blob_vector.encode_to_vec();
    for bytes in [&net, &blob, &blob_vector, &datum[..]] {
        let read = parse_binary::<SolverState>(bytes, "");
        // The bytes of a datum are a valid solver state, because field 1 (`channels`) is read as
        // `iter`.
        assert!(read.is_err() || bytes == datum, "{read:?}");
    }
    for bytes in [&state, &blob] {
        read_error::<NetParameter>(bytes);
    }
    read_error::<BlobProto>(&net);
    assert_eq!(read_error::<Datum>(&blob), "0: no known field");
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
        read_error::<NetParameter>(other);
        read_error::<SolverState>(other);
        read_error::<BlobProto>(other);
        read_error::<BlobProtoVector>(other);
        read_error::<Datum>(other);
    }
    // Like protobuf's C++ library, the reader accepts a name that is not UTF-8.
    let latin1_name = field(&[0x0a], b"caf\xe9");
    assert_eq!(parse_binary::<NetParameter>(&latin1_name, "").unwrap().name(), "caf\u{fffd}");
    read_error::<NetParameter>(&field(&[0x0a], b"caf\xe9\x01"));
}

#[test]
fn fields_longer_than_the_file_are_rejected_without_allocation() {
    let lengths: [&[u8]; 4] = [
        &[0x7f],
        &[0xff, 0xff, 0xff, 0xff, 0x07],
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
    ];
    // The test tries each of the `lengths` for a string, a nested message, packed numbers, bytes
    // and an unknown field.
    for length in lengths {
        read_error::<NetParameter>(&[&[0x0a], length].concat());
        read_error::<NetParameter>(&[&[0xa2, 0x06], length].concat());
        read_error::<BlobProto>(&[&[0x2a], length, &[0; 9]].concat());
        read_error::<BlobProto>(&[&[0x3a], length].concat());
        read_error::<Datum>(&[&[0x22], length].concat());
        read_error::<SolverState>(&[&[0xfa, 0x7f], length].concat());
    }
    let error = read_error::<BlobProto>(&[0x2a, 0xff, 0xff, 0xff, 0xff, 0x07, 0]);
    assert_eq!(error, "1, in data: length 2147483647 exceeds remaining length 1");
}

#[test]
fn overlong_varints_are_rejected() {
    for length in [10, 11, 1000] {
        read_error::<BlobProto>(&[&[0x08], &vec![0xff; length][..]].concat());
        read_error::<BlobProto>(&[&[0x80], &vec![0x80; length][..]].concat());
        read_error::<BlobProto>(&[&[0x2a], &vec![0x80; length][..]].concat());
        read_error::<BlobProto>(&[&[0xf8, 0x7f], &vec![0x80; length][..]].concat());
    }
}

#[test]
fn groups_nested_more_than_100_deep_are_rejected() {
    let nested_groups = |depth: usize| {
        let (open, close) = (vec![0x7b; depth], vec![0x7c; depth]);
        [&field(&[0x2a], &[0; 4])[..], &open, &close].concat()
    };
    assert_eq!(parse_binary::<BlobProto>(&nested_groups(90), "").unwrap().data, [0.0]);
    for depth in [101, 200, 1_000_000] {
        assert!(
            read_error::<BlobProto>(&nested_groups(depth)).ends_with("nested more than 100 deep")
        );
        read_error::<BlobProto>(&nested_groups(depth)[..depth]);
    }
}

#[test]
fn blobs_of_overflowing_or_negative_shapes_are_rejected() {
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
            let mut blob = Blob::<f32, _>::new(&cpu, &[2]).unwrap();
            assert!(blob.from_proto(&read, true).is_err(), "{dims:?} {values}");
            assert_eq!(blob.shape()[..], [2]);
        }
    }
    // Each `BlobProto` of the following cases has more or fewer values than its shape requires.
    let mut target = Blob::<f64, _>::new(&cpu, &[]).unwrap();
    for (dims, values) in [(&[2, 3][..], 5), (&[2, 3], 7), (&[2], 0), (&[], 2)] {
        let error = target.from_proto(&blob(dims, values), true).unwrap_err().to_string();
        assert!(error.contains("values of data for shape"), "{error}");
    }
}

#[test]
fn errors_of_damaged_files_start_with_the_path() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("bad_files.caffemodel");
    std::fs::write(&path, &net().encode_to_vec()[..40]).unwrap();
    let error = proto::read_binary::<NetParameter>(&path).unwrap_err().to_string();
    assert!(error.starts_with(path.to_str().unwrap()) && error.contains("byte "), "{error}");
    std::fs::remove_file(path).unwrap();
    let directory = env!("CARGO_TARGET_TMPDIR");
    assert!(proto::read_binary::<NetParameter>(directory).is_err());
}

#[cfg(feature = "net")]
mod weights {
    use super::*;
    use cortado::{Net, net::CopyOptions};

    fn inner_product_net() -> Net<f32> {
        let text = r#"
            layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 1 dim: 3 } } }
            layer { name: "a" type: "InnerProduct" bottom: "x" top: "y"
                    inner_product_param { num_output: 2 } }
        "#;
        let param = proto::parse_text::<NetParameter>(text, "net.prototxt").unwrap();
        Net::builder(&CpuDevice::with_threads(1).unwrap()).build(&param).unwrap()
    }

    fn check_rejected(blobs: Vec<BlobProto>) {
        let layer = LayerParameter { name: Some("a".into()), blobs, ..Default::default() };
        let weights = NetParameter { layer: vec![layer], ..Default::default() };
        let read = parse_binary::<NetParameter>(&weights.encode_to_vec(), "").unwrap();
        let error = inner_product_net().copy_trained_from(&read).unwrap_err().to_string();
        assert!(error.contains("`a`"), "{error}");
    }

    #[test]
    fn weights_with_wrong_shapes_or_blob_counts_are_rejected() {
        assert_eq!(inner_product_net().copy_trained_from(&net()).unwrap(), ["a"]);
        check_rejected(vec![]);
        check_rejected(vec![blob(&[2, 3], 6)]);
        check_rejected(vec![blob(&[3, 2], 6), blob(&[2], 2)]);
        check_rejected(vec![blob(&[2, 3], 5), blob(&[2], 2)]);
        check_rejected(vec![blob(&[2, 3], 6), blob(&[2], 0)]);
        check_rejected(vec![blob(&[i64::MAX, 3], 6), blob(&[2], 2)]);
        check_rejected(vec![blob(&[-2, -3], 6), blob(&[2], 2)]);
    }

    #[test]
    fn truncated_weights_are_rejected_or_copied_for_complete_layers() {
        let bytes = net().encode_to_vec();
        for end in 0..bytes.len() {
            if let Ok(weights) = parse_binary::<NetParameter>(&bytes[..end], "") {
                let options = CopyOptions { allow_no_match: true };
                inner_product_net().copy_trained_from_with(&weights, options).unwrap();
            }
        }
    }

    #[test]
    fn a_truncated_lenet_is_rejected_or_read_in_part() {
        let bytes = std::fs::read(crate::support::lenet_weights()).unwrap();
        let bytes_near = |byte: usize| byte.saturating_sub(40)..(byte + 40).min(bytes.len());
        let steps = (0..bytes.len()).step_by(bytes.len() / 97);
        let mut readable_count = 0;
        for end in steps.chain(bytes_near(0)).chain(bytes_near(bytes.len())) {
            match parse_binary::<NetParameter>(&bytes[..end], "some.file") {
                Ok(part) => {
                    assert_eq!(part.encode_to_vec(), bytes[..end]);
                    readable_count += 1;
                }
                Err(_) => drop(read_error::<NetParameter>(&bytes[..end])),
            }
        }
        assert!(readable_count < 9, "{readable_count}");
    }
}
