//! Reading and writing of messages in protobuf's binary format.

use std::{io::Cursor, path::Path};

use super::{
    scan::{FieldsByPath, UnknownFieldAction, scan},
    schema::{CaffeMessage, Codec, Schema},
    wire::{ReadSeek, WireError},
};
use crate::{
    atomic_fs,
    error::{Error, Result},
    limits,
};

/// Maximum length in bytes of a message that protobuf allows and Caffe can read.
const MAX_MESSAGE_LEN: usize = i32::MAX as usize;

/// Decodes a message from `bytes` in protobuf's binary format; error messages name `file` as the
/// source.
///
/// The decoded message has the field values that protobuf's C++ library would decode from `bytes`.
/// A field with a known number but an unexpected wire type counts as an unknown field. A zero byte
/// or an end-group tag in place of a field ends the message, with a warning in the log.
/// `parse_binary` drops unknown fields; [`UnknownFields`](super::UnknownFields) keeps them.
///
/// ```
/// use cortado::proto::{BlobShape, Message, parse_binary};
///
/// let bytes = BlobShape { dim: vec![2, 3] }.encode_to_vec();
/// assert_eq!(parse_binary::<BlobShape>(&bytes, "shape")?.dim, [2, 3]);
/// let error = parse_binary::<BlobShape>(&bytes[..2], "shape").unwrap_err().to_string();
/// assert!(error.contains("shape"));
/// # Ok::<(), cortado::Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::InvalidData`], with the offset and the path of the field, if the bytes are
/// truncated or malformed, or if they contain no known field. Also returns [`Error::InvalidData`]
/// if the message would need more than 32 MiB and more than 64 times the length of `bytes`, for
/// example for many empty strings. Truncation between two fields of the outermost message is not
/// detected, because the remaining bytes form a shorter valid message.
pub fn parse_binary<M: CaffeMessage>(bytes: &[u8], file: &str) -> Result<M> {
    Ok(MessageSource::bytes(bytes, file).decode(UnknownFieldAction::Ignore)?.0)
}

/// Like [`parse_binary`], but decodes the message from a binary protobuf file of any length, such
/// as a caffemodel.
///
/// `read_binary` needs memory for the message, but not for the file's bytes unless the file is a
/// pipe.
#[doc(alias = "ReadProtoFromBinaryFile")]
pub fn read_binary<M: CaffeMessage>(path: impl AsRef<Path>) -> Result<M> {
    Ok(MessageSource::file(path.as_ref())?.decode(UnknownFieldAction::Ignore)?.0)
}

/// Writes `message` to a file in protobuf's binary format, atomically, and replaces an existing
/// file.
///
/// `write_binary` needs memory for both the message and its encoded bytes.
///
/// # Errors
/// Returns [`Error::InvalidData`] if the message is longer than protobuf allows (2 GiB), and
/// [`Error::Io`] if the file cannot be written.
#[doc(alias = "WriteProtoToBinaryFile")]
pub fn write_binary<M: CaffeMessage>(path: impl AsRef<Path>, message: &M) -> Result<()> {
    write(path.as_ref(), message)
}

fn write(path: &Path, message: &dyn Codec) -> Result<()> {
    check_message_len(path, message.schema(), message.binary_len())?;
    atomic_fs::write_atomically(path, &message.to_binary())
}

/// Fails if a message of `len` bytes is longer than Caffe can read.
pub(super) fn check_message_len(path: &Path, schema: &Schema, len: usize) -> Result<()> {
    if len > MAX_MESSAGE_LEN {
        return Err(Error::InvalidData(format!(
            "{}: {} of {len} bytes exceeds protobuf's limit of {MAX_MESSAGE_LEN} bytes",
            path.display(),
            schema.name,
        )));
    }
    Ok(())
}

/// The bytes or the file from which a message is decoded.
pub(super) struct MessageSource<'a> {
    /// Name of the source in error messages.
    name: String,
    source: Box<dyn ReadSeek + 'a>,
    len: u64,
}

impl<'a> MessageSource<'a> {
    pub(super) fn bytes(bytes: &'a [u8], name: &str) -> Self {
        let (name, len) = (name.to_owned(), bytes.len() as u64);
        Self { name, source: Box::new(Cursor::new(bytes)), len }
    }

    /// Opens the file at `path` as a source. Reads the whole input into memory if `path` is not a
    /// regular file but, for example, a pipe: decoding reads a source twice, and a pipe can be read
    /// only once.
    pub(super) fn file(path: &Path) -> Result<Self> {
        let (file, metadata) = limits::open(path)?;
        let name = path.display().to_string();
        if metadata.is_file() {
            return Ok(Self { name, source: Box::new(file), len: metadata.len() });
        }
        let bytes = limits::read_opened(path, file, &metadata, u64::MAX)?;
        let len = bytes.len() as u64;
        Ok(Self { name, source: Box::new(Cursor::new(bytes)), len })
    }

    /// Decodes a message. Returns the message and the unknown fields that the scan has collected.
    /// Both the scan of the wire format and prost's decoder read the source.
    pub(super) fn decode<M: CaffeMessage>(
        self,
        action: UnknownFieldAction<'_>,
    ) -> Result<(M, FieldsByPath)> {
        let mut message = M::default();
        let unknown = self.merge_into(&mut message, action)?;
        Ok((message, unknown))
    }

    fn merge_into(
        mut self,
        message: &mut dyn Codec,
        action: UnknownFieldAction<'_>,
    ) -> Result<FieldsByPath> {
        let schema = message.schema();
        self.scan_and_merge(message, action).map_err(|error| wire_error(&self.name, schema, error))
    }

    fn scan_and_merge(
        &mut self,
        message: &mut dyn Codec,
        action: UnknownFieldAction<'_>,
    ) -> Result<FieldsByPath, WireError> {
        let scan_result = scan(message.schema(), &mut *self.source, self.len, action)?;
        scan_result.warnings.iter().for_each(|warning| log::warn!("{}: {warning}", self.name));
        let mut reader = scan_result.splices.reader(&mut *self.source, self.len)?;
        let result = message.merge_from(&mut reader);
        reader.finish()?;
        let malformed_error = |error: prost::DecodeError| WireError::Malformed {
            offset: 0,
            reason: error.to_string(),
        };
        result.map_err(malformed_error).map(|()| scan_result.unknown)
    }
}

/// Returns the error for a file that could not be decoded as a message of type `schema`.
pub(super) fn wire_error(file: &str, schema: &Schema, error: WireError) -> Error {
    match error {
        WireError::Io(source) => Error::io(file, source),
        WireError::Malformed { reason, .. } => {
            Error::InvalidData(format!("{file}: not a {}: {reason}", schema.name))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{BlobProto, BlobProtoVector, BlobShape, LayerParameter, NetParameter};
    use prost::Message;

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
    fn a_blob_is_encoded_as_the_format_specifies() {
        // The expected bytes were encoded by hand. Lists are packed, a key is `field number << 3 |
        // wire type`, and numbers are little-endian.
        let want = [
            &[0x2a, 8, 0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc0][..],
            &[0x3a, 5, 0x0a, 3, 2, 0xac, 0x02],
            &[0x4a, 8, 0x9a, 0x99, 0x99, 0x99, 0x99, 0x99, 0xb9, 0x3f],
        ];
        assert_eq!(blob().encode_to_vec(), want.concat());
        assert_eq!(parse_binary::<BlobProto>(&want.concat(), "b").unwrap(), blob());
    }

    #[test]
    fn packed_and_unpacked_lists_are_read() {
        let bytes = [0x2d, 0, 0, 0x80, 0x3f, 0x2a, 4, 0, 0, 0x20, 0xc0, 0x3a, 2, 0x08, 7];
        let read = parse_binary::<BlobProto>(&bytes, "b").unwrap();
        assert_eq!(read.data, [1.0, -2.5]);
        assert_eq!(read.shape.unwrap().dim, [7]);
    }

    #[test]
    fn a_truncated_message_is_rejected_except_between_fields() {
        let bytes = net().encode_to_vec();
        let field_ends = [0, 3]; // `name: "n"` has three bytes.
        for end in 0..bytes.len() {
            match parse_binary::<NetParameter>(&bytes[..end], "net.caffemodel") {
                Ok(partial) => {
                    assert!(field_ends.contains(&end), "{end}");
                    assert_eq!(partial.layer.len(), 0);
                }
                Err(error) => {
                    assert!(!field_ends.contains(&end), "{end}");
                    let error = error.to_string();
                    let prefix = "net.caffemodel: not a caffe.NetParameter: ";
                    assert!(error.starts_with(prefix), "{error}");
                }
            }
        }
        assert_eq!(parse_binary::<NetParameter>(&bytes, "").unwrap(), net());
    }

    #[test]
    fn a_message_with_a_changed_byte_is_read_or_rejected() {
        let bytes = net().encode_to_vec();
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] = value;
                if let Ok(read) = parse_binary::<NetParameter>(&changed, "") {
                    // The decoder must not return a list that is longer than the input, even if a
                    // length in the input is wrong.
                    assert!(read.encoded_len() <= 2 * bytes.len(), "{at} {value}");
                }
            }
        }
    }

    #[test]
    fn excessive_lengths_are_rejected_before_allocation() {
        // The test inserts the lengths 2^63 - 1 and 2^31 - 1 for `data`, for a blob of a
        // `BlobProtoVector` and for an unknown field.
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
    fn deeply_nested_groups_are_rejected() {
        let bytes = vec![0x7b; 100_000]; // 0x7b starts a group of field 15.
        assert!(parse_binary::<BlobProto>(&bytes, "").is_err());
    }

    #[test]
    fn a_missing_file_is_named_in_the_error() {
        let error = read_binary::<NetParameter>("no/such.caffemodel").unwrap_err();
        assert!(error.to_string().starts_with("no/such.caffemodel: "), "{error}");
    }
}
