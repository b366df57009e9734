//! Fields that `proto/caffe.proto` does not know, kept when a file is read, changed and written.

use std::{fmt, path::Path};

use prost::{Message, Name};

use super::{
    binary::{self, MessageSource},
    atomic_fs,
    scan::{self, Fields, PathStep, UnknownFieldAction},
    schema::Schema,
    wire::WireError,
};
use crate::error::{Error, Result};

/// The fields of a file that its message type does not have, as Caffes with extensions of their own
/// write them: their bytes, and in which message they were.
///
/// A message read as [`read_binary`](super::read_binary) does has lost them; one written through
/// this has them again, behind the known fields of the same message, where protobuf's C++ library
/// writes them too.
///
/// ```no_run
/// use cortado::proto::{NetParameter, Unknown};
///
/// # fn main() -> cortado::Result<()> {
/// let (mut net, unknown) = Unknown::read::<NetParameter>("extended.caffemodel")?;
/// net.name = Some("renamed".into());
/// unknown.write("renamed.caffemodel", &net)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct UnknownFields {
    fields: Fields,
}

impl UnknownFields {
    /// Reads a binary file as [`read_binary`](super::read_binary) does, and what is unknown in it.
    ///
    /// # Errors
    /// As `read_binary`; [`Error::InvalidData`] if the type is not one of Caffe's.
    pub fn read<M: Message + Name + Default>(path: impl AsRef<Path>) -> Result<(M, Self)> {
        let path = path.as_ref();
        expect_schema::<M>()?;
        let (message, fields) = MessageSource::file(path)?.decode(UnknownFieldAction::Collect)?;
        Ok((message, Self { fields }))
    }

    /// Reads a message from bytes as [`parse_binary`](super::parse_binary) does, and what is
    /// unknown in it; `file` names the bytes in errors.
    ///
    /// # Errors
    /// As `parse_binary`; [`Error::InvalidData`] if the type is not one of Caffe's.
    pub fn parse<M: Message + Name + Default>(bytes: &[u8], file: &str) -> Result<(M, Self)> {
        expect_schema::<M>()?;
        let (message, fields) =
            MessageSource::bytes(bytes, file).decode(UnknownFieldAction::Collect)?;
        Ok((message, Self { fields }))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Paths from the outermost message to those that have unknown fields.
    pub fn paths(&self) -> impl Iterator<Item = &[PathStep]> {
        self.fields.keys().map(Vec::as_slice)
    }

    /// Changes the paths, for messages that have moved; drops the fields where `to` gives `false`.
    ///
    /// A net whose layers moved from the older `layers` (2) to `layer` (100), behind one that was
    /// inserted, and each layer's `blobs` from 6 to 7:
    ///
    /// ```
    /// # let mut unknown = cortado::proto::Unknown::default();
    /// unknown.relocate(|path| {
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
    pub fn remap_paths(&mut self, mut to: impl FnMut(&mut Vec<PathStep>) -> bool) {
        for (mut path, fields) in std::mem::take(&mut self.fields) {
            if to(&mut path) {
                self.fields.entry(path).or_default().extend(fields);
            }
        }
    }

    /// A message's binary form with these fields.
    ///
    /// What cannot be put back is left out, and told in the log: fields of a message that is no
    /// longer there, and fields that the message at their path does know.
    ///
    /// # Errors
    /// [`Error::InvalidData`] if the type is not one of Caffe's.
    pub fn encode<M: Message + Name>(&self, message: &M) -> Result<Vec<u8>> {
        let bytes = message.encode_to_vec();
        if self.is_empty() {
            return Ok(bytes);
        }
        let schema = expect_schema::<M>()?;
        let mut left = self.fields.clone();
        let mut source = std::io::Cursor::new(&bytes[..]);
        let length = bytes.len() as u64;
        let found = scan::scan(schema, &mut source, length, UnknownFieldAction::Graft(&mut left))
            .map_err(|fault| binary::error::<M>("what was to be written", fault))?;
        found.remarks.iter().for_each(|remark| log::warn!("{remark}"));
        if !left.is_empty() {
            log::warn!("unknown fields of {} messages that are gone are left out", left.len());
        }
        let io = |error| binary::error::<M>("what was to be written", WireError::Io(error));
        binary::drain(found.edits.feed(&mut source, length).map_err(io)?).map_err(io)
    }

    /// Writes a message with these fields as [`write_binary`](super::write_binary) does.
    ///
    /// Memory: the message, and up to twice the file.
    ///
    /// # Errors
    /// Those of [`encode`](Self::encode) and of `write_binary`.
    pub fn write<M: Message + Name>(&self, path: impl AsRef<Path>, message: &M) -> Result<()> {
        let path = path.as_ref();
        let bytes = self.encode(message)?;
        binary::expect_length::<M>(path, bytes.len())?;
        atomic_fs::write_atomically(path, &bytes)
    }
}

impl fmt::Debug for UnknownFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lengths = self.fields.iter().map(|(path, bytes)| (path, bytes.len()));
        f.write_str("Unknown (bytes by path) ")?;
        f.debug_map().entries(lengths).finish()
    }
}

fn expect_schema<M: Name>() -> Result<&'static Schema> {
    let name = M::full_name();
    Schema::of(&name)
        .ok_or_else(|| Error::InvalidData(format!("{name} is not one of Caffe's messages")))
}
