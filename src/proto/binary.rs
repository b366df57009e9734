//! Messages in protobuf's binary format.

use std::{
    fs::{self, File},
    io::{self, Cursor},
    path::Path,
};

use prost::{Message, Name, bytes::Buf};

use super::{
    splice::{SplicedReader, Splices},
    atomic_fs,
    scan::{self, Fields, UnknownFieldAction},
    schema::Schema,
    wire::{ReadSeek, WireError},
};
use crate::error::{Error, Result};

/// The most bytes that protobuf allows a message, and that Caffe reads.
const MAX_MESSAGE_LEN: usize = i32::MAX as usize;

/// Reads a message from its binary form; `file` names it in errors.
///
/// What protobuf's C++ library reads is read, with the same values: a known number in another wire
/// type counts as unknown, and a zero byte or the end of a group in place of a field ends the
/// message, which the log is told. Unknown fields are dropped; [`Unknown`](super::Unknown) keeps
/// them.
///
/// # Errors
/// [`Error::InvalidData`], with the offset and the path of the field, if the bytes end too early or are
/// no such message; so does a file in which not one known field is. Bytes cut off between two
/// fields of the outermost message cannot be told from a whole one.
pub fn parse_binary<M: Message + Name + Default>(bytes: &[u8], file: &str) -> Result<M> {
    Ok(MessageSource::bytes(bytes, file).decode(UnknownFieldAction::Pass)?.0)
}

/// Reads a binary file, such as a caffemodel, as [`parse_binary`] does. It may be of any length.
///
/// Memory: the message; a pipe's bytes, too.
#[doc(alias = "ReadProtoFromBinaryFile")]
pub fn read_binary<M: Message + Name + Default>(path: impl AsRef<Path>) -> Result<M> {
    Ok(MessageSource::file(path.as_ref())?.decode(UnknownFieldAction::Pass)?.0)
}

/// Writes a binary file, whole or not at all; an earlier one is replaced.
///
/// Memory: the message and the file, at the same time. Fails with [`Error::InvalidData`] if the message
/// is longer than protobuf allows (2 GiB), and with [`Error::Io`].
#[doc(alias = "WriteProtoToBinaryFile")]
pub fn write_binary<M: Message + Name>(path: impl AsRef<Path>, message: &M) -> Result<()> {
    let path = path.as_ref();
    expect_length::<M>(path, message.encoded_len())?;
    atomic_fs::write_atomically(path, &message.encode_to_vec())
}

/// Fails for a message that no Caffe would read.
pub(super) fn expect_length<M: Name>(path: &Path, length: usize) -> Result<()> {
    if length > MAX_MESSAGE_LEN {
        return Err(Error::InvalidData(format!(
            "{}: a {} of {length} bytes is longer than protobuf allows ({MAX_MESSAGE_LEN})",
            path.display(),
            M::full_name(),
        )));
    }
    Ok(())
}

/// Bytes to be read as a message.
pub(super) struct MessageSource<'a> {
    name: String,
    source: Box<dyn ReadSeek + 'a>,
    length: u64,
}

impl<'a> MessageSource<'a> {
    pub(super) fn bytes(bytes: &'a [u8], name: &str) -> Self {
        let (name, length) = (name.to_owned(), bytes.len() as u64);
        Self { name, source: Box::new(Cursor::new(bytes)), length }
    }

    /// A file, which is not read as a whole; what cannot be read twice, such as a pipe, is.
    pub(super) fn file(path: &Path) -> Result<Self> {
        let io = |source| Error::io(path, source);
        let file = File::open(path).map_err(io)?;
        let found = file.metadata().map_err(io)?;
        let name = path.display().to_string();
        if found.is_file() {
            return Ok(Self { name, source: Box::new(file), length: found.len() });
        }
        let bytes = fs::read(path).map_err(io)?;
        let length = bytes.len() as u64;
        Ok(Self { name, source: Box::new(Cursor::new(bytes)), length })
    }

    /// Reads twice: to check, and to take. A type that is none of Caffe's is left to prost.
    pub(super) fn decode<M>(mut self, task: UnknownFieldAction<'_>) -> Result<(M, Fields)>
    where
        M: Message + Name + Default,
    {
        let (edits, unknown) = match Schema::of(&M::full_name()) {
            Some(schema) => self.check::<M>(schema, task)?,
            None => Default::default(),
        };
        let fail = |fault| error::<M>(&self.name, fault);
        let mut feed = edits
            .feed(&mut *self.source, self.length)
            .map_err(|error| fail(WireError::Io(error)))?;
        let decoded = M::decode(&mut feed);
        feed.finish().map_err(|error| fail(WireError::Io(error)))?;
        let message =
            decoded.map_err(|error| fail(WireError::Bad { at: 0, why: error.to_string() }))?;
        Ok((message, unknown))
    }

    fn check<M: Name>(
        &mut self,
        schema: &'static Schema,
        task: UnknownFieldAction<'_>,
    ) -> Result<(Splices, Fields)> {
        let found = scan::scan(schema, &mut *self.source, self.length, task)
            .map_err(|fault| error::<M>(&self.name, fault))?;
        found.remarks.iter().for_each(|remark| log::warn!("{}: {remark}", self.name));
        Ok((found.edits, found.unknown))
    }
}

/// Says which file is no message of a type, and why.
pub(super) fn error<M: Name>(file: &str, fault: WireError) -> Error {
    match fault {
        WireError::Io(source) => Error::io(file, source),
        WireError::Bad { why, .. } => {
            Error::InvalidData(format!("{file}: not a {}: {why}", M::full_name()))
        }
    }
}

/// All bytes there are.
pub(super) fn drain(mut feed: SplicedReader<'_>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(feed.remaining());
    while feed.has_remaining() {
        let length = feed.chunk().len();
        bytes.extend_from_slice(feed.chunk());
        feed.advance(length);
    }
    feed.finish().map(|()| bytes)
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
