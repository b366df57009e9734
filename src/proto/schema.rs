//! Tables of the messages, fields and enums in `proto/caffe.proto`.

use super::splice::SplicedReader;
use prost::{DecodeError, Message, Name, encoding::WireType};

/// A message type of `proto/caffe.proto`, which this crate can read and write.
///
/// Only the types in [`proto`](super) implement this trait, so the library compiles the code that
/// reads and writes them. Decode other messages with [`Message::decode`].
///
/// ```
/// use cortado::proto::{BlobShape, CaffeMessage, parse_text, to_text};
///
/// fn formatted<M: CaffeMessage>(text: &str) -> cortado::Result<String> {
///     to_text(&parse_text::<M>(text, "input")?)
/// }
/// assert_eq!(formatted::<BlobShape>("dim: [1, 3]")?, "dim: 1\ndim: 3\n");
/// # Ok::<(), cortado::Error>(())
/// ```
pub trait CaffeMessage: Message + Name + Default + Codec {}

impl<M: Message + Name + Default + Codec> CaffeMessage for M {}

/// Decoding and encoding of a message whose type is known only at run time.
pub trait Codec {
    /// Returns the table of the message type's fields.
    fn schema(&self) -> &'static Schema;
    /// Decodes fields, and merges them into this message.
    fn merge_from(&mut self, bytes: &mut SplicedReader<'_>) -> Result<(), DecodeError>;
    /// Returns the length of the binary form in bytes.
    fn binary_len(&self) -> usize;
    /// Returns the binary form.
    fn to_binary(&self) -> Vec<u8>;
}

/// A message type.
#[derive(Debug)]
pub struct Schema {
    /// The full name, such as `caffe.BlobProto`.
    pub(super) name: &'static str,
    /// The fields in ascending order of number.
    fields: &'static [Field],
}

/// A field of a message type.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) number: u32,
    pub(super) label: Label,
    pub(super) kind: FieldType,
}

/// The number of values that a field may have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Label {
    Optional,
    Required,
    Repeated,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum FieldType {
    Bool,
    Int32,
    Int64,
    Uint32,
    Float,
    Double,
    String,
    Bytes,
    /// An enum; the index of its type in [`ENUMS`].
    Enum(usize),
    /// A message; the index of its type in [`MESSAGES`].
    Message(usize),
}

/// An enum type.
#[cfg(feature = "net")]
#[derive(Debug)]
pub(super) struct EnumSchema {
    /// The name without its package and its message, such as `PoolMethod`.
    pub(super) name: &'static str,
    /// Names and numbers in the order of their declaration.
    pub(super) values: &'static [(&'static str, i32)],
}

/// Implements [`Codec`] for the message types, which are listed in the order of [`MESSAGES`].
macro_rules! implement_codec {
    ($($index:literal $message:ident)*) => {$(
        impl Codec for super::messages::$message {
            fn schema(&self) -> &'static Schema {
                &MESSAGES[$index]
            }
            fn merge_from(&mut self, bytes: &mut SplicedReader<'_>) -> Result<(), DecodeError> {
                self.merge(bytes)
            }
            fn binary_len(&self) -> usize {
                self.encoded_len()
            }
            fn to_binary(&self) -> Vec<u8> {
                self.encode_to_vec()
            }
        }
    )*};
}

include!("generated/caffe_schema.rs");

impl Schema {
    /// Returns the message type of this full name; `None` if it is not one of Caffe's.
    pub(super) fn of(name: &str) -> Option<&'static Self> {
        MESSAGES.iter().find(|message| message.name == name)
    }

    /// Returns the field of this number, and its index among the fields.
    pub(super) fn field(&self, number: u32) -> Option<(usize, &'static Field)> {
        let index = self.fields.binary_search_by_key(&number, |field| field.number).ok()?;
        Some((index, &self.fields[index]))
    }

    /// Returns the name without the package.
    #[cfg(feature = "net")]
    pub(super) fn short_name(&self) -> &'static str {
        self.name.rsplit_once('.').map_or(self.name, |(_, name)| name)
    }

    pub(super) fn field_by_name(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    pub(super) fn fields(&self) -> &'static [Field] {
        self.fields
    }
}

impl Field {
    pub(super) fn is_repeated(&self) -> bool {
        self.label == Label::Repeated
    }

    /// Returns whether a value of this wire type belongs to the field; otherwise it is an unknown
    /// field with a known number. A list of numbers is one packed value or several values.
    pub(super) fn accepts(&self, wire_type: WireType) -> bool {
        wire_type == self.kind.wire_type()
            || self.is_repeated() && wire_type == WireType::LengthDelimited
    }

    /// Returns whether errors name a value of the field by its index. Numbers have no index,
    /// because one packed value holds many of them.
    pub(super) fn is_indexed(&self) -> bool {
        self.is_repeated() && self.kind.wire_type() == WireType::LengthDelimited
    }
}

impl FieldType {
    /// Returns the wire type of one value.
    pub(super) fn wire_type(self) -> WireType {
        use FieldType::{Bytes, Double, Float, Message, String};
        match self {
            Float => WireType::ThirtyTwoBit,
            Double => WireType::SixtyFourBit,
            String | Bytes | Message(_) => WireType::LengthDelimited,
            _ => WireType::Varint,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_sorted_and_message_indices_are_in_range() {
        for message in &MESSAGES {
            assert!(message.fields.is_sorted_by_key(|field| field.number), "{}", message.name);
            for field in message.fields {
                match field.kind {
                    FieldType::Message(index) => assert!(index < MESSAGES.len()),
                    #[cfg(feature = "net")]
                    FieldType::Enum(index) => assert!(!ENUMS[index].values.is_empty()),
                    _ => {}
                }
            }
        }
        let (_, data) = Schema::of("caffe.BlobProto").unwrap().field(5).unwrap();
        assert_eq!((data.name, data.label, data.kind), ("data", Label::Repeated, FieldType::Float));
        assert!(data.accepts(WireType::LengthDelimited) && data.accepts(WireType::ThirtyTwoBit));
        assert!(!data.accepts(WireType::Varint));
        assert!(Schema::of("caffe.Nonsense").is_none());
    }
}
