//! Unknown fields of binary files, preserved while a program reads, changes and writes a message.

use std::{fmt, path::Path};

use super::{
    binary::{MessageSource, check_message_len, wire_error},
    scan::{FieldsByPath, PathStep, UnknownFieldAction, scan},
    schema::{CaffeMessage, Codec},
    splice::SplicedReader,
    wire::WireError,
};
use crate::{atomic_fs, error::Result};

/// The unknown fields of a binary file: the encoded bytes of each field, and the path of the
/// message that contained the field. Forks of Caffe write fields that `proto/caffe.proto` does not
/// declare.
///
/// [`read_binary`](super::read_binary) drops unknown fields. [`write`](Self::write) puts unknown
/// fields after the known fields of the same message, as protobuf's C++ library does.
///
/// ```no_run
/// use cortado::proto::{NetParameter, UnknownFields};
///
/// # fn main() -> cortado::Result<()> {
/// let (mut net, unknown) = UnknownFields::read::<NetParameter>("extended.caffemodel")?;
/// net.name = Some("renamed".into());
/// unknown.write("renamed.caffemodel", &net)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct UnknownFields {
    fields: FieldsByPath,
}

impl UnknownFields {
    /// Reads a binary file like [`read_binary`](super::read_binary), together with the file's
    /// unknown fields.
    ///
    /// # Errors
    /// Returns any error from `read_binary`.
    pub fn read<M: CaffeMessage>(path: impl AsRef<Path>) -> Result<(M, Self)> {
        Self::decode(MessageSource::file(path.as_ref())?)
    }

    /// Reads a message like [`parse_binary`](super::parse_binary), together with the unknown
    /// fields. Error messages name `file` as the source of `bytes`.
    ///
    /// # Errors
    /// Returns any error from `parse_binary`.
    pub fn parse<M: CaffeMessage>(bytes: &[u8], file: &str) -> Result<(M, Self)> {
        Self::decode(MessageSource::bytes(bytes, file))
    }

    fn decode<M: CaffeMessage>(source: MessageSource<'_>) -> Result<(M, Self)> {
        let (message, fields) = source.decode(UnknownFieldAction::Collect)?;
        Ok((message, Self { fields }))
    }

    /// Returns whether the file has no unknown fields.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Returns the path of each message that has unknown fields. The path of a message starts at
    /// the outermost message.
    pub fn paths(&self) -> impl Iterator<Item = &[PathStep]> {
        self.fields.keys().map(Vec::as_slice)
    }

    /// Calls `remap` on the path of each message that has unknown fields. If a message has moved,
    /// `remap` replaces its path by the new path. `remap` returns `false` to drop the unknown
    /// fields of the message.
    ///
    /// In the following example, a layer was inserted at the front, layers moved from the older
    /// field `layers` (2) to `layer` (100), and the `blobs` of each layer moved from field 6 to
    /// field 7:
    ///
    /// ```
    /// # let mut unknown = cortado::proto::UnknownFields::default();
    /// unknown.remap_paths(|path| {
    ///     let Some(layer) = path.first_mut().filter(|step| step.field == 2) else { return true };
    ///     (layer.field, layer.index) = (100, layer.index + 1);
    ///     match path.get_mut(1) {
    ///         Some(blobs) if blobs.field == 6 => blobs.field = 7,
    ///         Some(_) => return false,
    ///         None => {}
    ///     }
    ///     true
    /// });
    /// ```
    pub fn remap_paths(&mut self, mut remap: impl FnMut(&mut Vec<PathStep>) -> bool) {
        for (mut path, fields) in std::mem::take(&mut self.fields) {
            if remap(&mut path) {
                self.fields.entry(path).or_default().extend(fields);
            }
        }
    }

    /// Encodes a message together with the unknown fields.
    ///
    /// Drops the unknown fields of messages that no longer exist. After an upgrade, the new type of
    /// a message may declare a field that was unknown in the old type; `encode` drops such a field
    /// too. Logs a warning about the dropped fields.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`](crate::Error::InvalidData) if the scan of the encoded message
    /// fails.
    pub fn encode<M: CaffeMessage>(&self, message: &M) -> Result<Vec<u8>> {
        self.insert_into(message)
    }

    fn insert_into(&self, message: &dyn Codec) -> Result<Vec<u8>> {
        let (bytes, schema) = (message.to_binary(), message.schema());
        if self.is_empty() {
            return Ok(bytes);
        }
        let mut remaining_fields = self.fields.clone();
        let mut source = std::io::Cursor::new(&bytes[..]);
        let len = bytes.len() as u64;
        let scan_error = |error| wire_error("encoded message", schema, error);
        let action = UnknownFieldAction::Insert(&mut remaining_fields);
        let result = scan(schema, &mut source, len, action).map_err(scan_error)?;
        result.warnings.iter().for_each(|warning| log::warn!("{warning}"));
        if !remaining_fields.is_empty() {
            log::warn!(
                "dropped the unknown fields of removed messages ({})",
                remaining_fields.len()
            );
        }
        let result = result.splices.reader(&mut source, len).and_then(SplicedReader::into_bytes);
        result.map_err(|error| scan_error(WireError::Io(error)))
    }

    /// Writes a message together with the unknown fields, like
    /// [`write_binary`](super::write_binary).
    ///
    /// In addition to the message, writing needs memory of up to twice the file size.
    ///
    /// # Errors
    /// Returns any error from [`encode`](Self::encode) and from `write_binary`.
    pub fn write<M: CaffeMessage>(&self, path: impl AsRef<Path>, message: &M) -> Result<()> {
        let path = path.as_ref();
        let bytes = self.insert_into(message)?;
        check_message_len(path, message.schema(), bytes.len())?;
        atomic_fs::write_atomically(path, &bytes)
    }
}

impl fmt::Debug for UnknownFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lengths = self.fields.iter().map(|(path, bytes)| (path, bytes.len()));
        f.write_str("UnknownFields (bytes by path) ")?;
        f.debug_map().entries(lengths).finish()
    }
}
