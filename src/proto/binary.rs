//! Messages in protobuf's binary format.

use std::{fs, path::Path};

use prost::{Message, Name};

use super::file;
use crate::error::{Error, Result};

/// The most bytes that protobuf allows a message, and that Caffe reads.
const LONGEST: usize = i32::MAX as usize;

/// Reads a message from its binary form; `file` names it in errors.
///
/// Every byte is read. Fields that the type does not know are dropped. Fails with
/// [`Error::Invalid`] if the bytes end too early or are no such message; bytes cut off between two
/// fields of the outermost message cannot be told from a whole one.
pub fn parse_binary<M: Message + Name + Default>(bytes: &[u8], file: &str) -> Result<M> {
    M::decode(bytes)
        .map_err(|error| Error::Invalid(format!("{file}: not a {}: {error}", M::full_name())))
}

/// Reads a binary file, such as a caffemodel, as [`parse_binary`] does.
///
/// Memory: the file and the message, at the same time.
#[doc(alias = "ReadProtoFromBinaryFile")]
pub fn read_binary<M: Message + Name + Default>(path: impl AsRef<Path>) -> Result<M> {
    let path = path.as_ref();
    let bytes = fs::read(path).map_err(|source| Error::io(path, source))?;
    parse_binary(&bytes, &path.display().to_string())
}

/// Writes a binary file, whole or not at all; an earlier one is replaced.
///
/// Memory: the message and the file, at the same time. Fails with [`Error::Invalid`] if the message
/// is longer than protobuf allows (2 GiB), and with [`Error::Io`].
#[doc(alias = "WriteProtoToBinaryFile")]
pub fn write_binary<M: Message + Name>(path: impl AsRef<Path>, message: &M) -> Result<()> {
    let path = path.as_ref();
    let length = message.encoded_len();
    if length > LONGEST {
        return Err(Error::Invalid(format!(
            "{}: a {} of {length} bytes is longer than protobuf allows ({LONGEST})",
            path.display(),
            M::full_name(),
        )));
    }
    file::replace(path, &message.encode_to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{BlobProto, BlobProtoVector, BlobShape, LayerParameter, NetParameter};

    fn blob() -> BlobProto {
        BlobProto {
            shape: Some(BlobShape { dim: vec![2, 300] }),
            data: vec![1.0, -2.5],
            double_diff: vec![0.1],
            ..Default::default()
        }
    }

    fn net() -> NetParameter {
        let layer = LayerParameter {
            name: Some("ip".into()),
            loss_weight: vec![1.0],
            blobs: vec![blob()],
            ..Default::default()
        };
        NetParameter { name: Some("n".into()), layer: vec![layer], ..Default::default() }
    }

    #[test]
    fn bytes_are_those_of_the_format() {
        // Worked out by hand: packed lists, key = number << 3 | wire type, little endian.
        let want = [
            &[0x2a, 8, 0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc0][..],
            &[0x3a, 5, 0x0a, 3, 2, 0xac, 0x02],
            &[0x4a, 8, 0x9a, 0x99, 0x99, 0x99, 0x99, 0x99, 0xb9, 0x3f],
        ];
        assert_eq!(blob().encode_to_vec(), want.concat());
        assert_eq!(parse_binary::<BlobProto>(&want.concat(), "b").unwrap(), blob());
    }

    #[test]
    fn lists_are_read_packed_or_not() {
        let bytes = [0x2d, 0, 0, 0x80, 0x3f, 0x2a, 4, 0, 0, 0x20, 0xc0, 0x3a, 2, 0x08, 7];
        let read = parse_binary::<BlobProto>(&bytes, "b").unwrap();
        assert_eq!(read.data, [1.0, -2.5]);
        assert_eq!(read.shape.unwrap().dim, [7]);
    }

    #[test]
    fn a_cut_is_noticed_except_between_fields() {
        let bytes = net().encode_to_vec();
        let between = [0, 3]; // name: "n" takes three bytes; the layer is the rest
        for end in 0..bytes.len() {
            match parse_binary::<NetParameter>(&bytes[..end], "net.caffemodel") {
                Ok(partial) => {
                    assert!(between.contains(&end), "{end}");
                    assert_eq!(partial.layer.len(), 0);
                }
                Err(error) => {
                    assert!(!between.contains(&end), "{end}");
                    let said = error.to_string();
                    assert!(
                        said.starts_with("net.caffemodel: not a caffe.NetParameter: "),
                        "{said}"
                    );
                }
            }
        }
        assert_eq!(parse_binary::<NetParameter>(&bytes, "").unwrap(), net());
    }

    #[test]
    fn any_changed_byte_is_read_or_refused() {
        let bytes = net().encode_to_vec();
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] = value;
                if let Ok(read) = parse_binary::<NetParameter>(&changed, "") {
                    // Nothing is made up: no list grows beyond the bytes there are.
                    assert!(read.encoded_len() <= 2 * bytes.len(), "{at} {value}");
                }
            }
        }
    }

    #[test]
    fn absurd_lengths_are_refused_before_memory_is_asked_for() {
        // Data, a blob in a vector, and an unknown field, said to hold 2^63 - 1 and 2^31 - 1 bytes.
        for length in [&[0xff; 8][..], &[0xff, 0xff, 0xff, 0xff]] {
            for key in [0x2a, 0x0a, 0xfa] {
                let mut bytes = vec![key];
                bytes.extend(if key == 0xfa { &[0x01][..] } else { &[] });
                bytes.extend(length);
                bytes.push(0x07);
                assert!(parse_binary::<BlobProto>(&bytes, "").is_err());
                assert!(parse_binary::<BlobProtoVector>(&bytes, "").is_err());
            }
        }
    }

    #[test]
    fn deep_groups_are_refused() {
        let bytes = vec![0x7b; 100_000]; // field 15, start of a group, never closed
        assert!(parse_binary::<BlobProto>(&bytes, "").is_err());
    }

    #[test]
    fn missing_file_is_named() {
        let error = read_binary::<NetParameter>("no/such.caffemodel").unwrap_err();
        assert!(error.to_string().starts_with("no/such.caffemodel: "), "{error}");
    }
}
