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

#[derive(Clone, Copy, Debug)]
pub(super) enum FieldType {
    Bool,
    Int32,
    Int64,
    Uint32,
    Float,
    Double,
    String,
    Bytes,
    Enum(#[cfg_attr(not(feature = "net"), allow(dead_code))] &'static EnumSchema),
    Message(&'static Schema),
}

/// An enum type. Only the text format reads this table.
#[cfg_attr(not(feature = "net"), allow(dead_code))]
#[derive(Debug)]
pub(super) struct EnumSchema {
    /// The name without its package and its message, such as `PoolMethod`.
    pub(super) name: &'static str,
    /// Names and numbers in ascending order of number.
    pub(super) values: &'static [(&'static str, i32)],
}

impl Schema {
    /// Creates the table of a message type. The fields must be in ascending order of number.
    pub(super) const fn new(name: &'static str, fields: &'static [Field]) -> Self {
        let mut index = 1;
        while index < fields.len() {
            assert!(fields[index - 1].number < fields[index].number);
            index += 1;
        }
        Self { name, fields }
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

/// Returns the name of a field, given its identifier in Rust, such as `r#type`.
pub(super) const fn field_name(identifier: &'static str) -> &'static str {
    match identifier.as_bytes() {
        [b'r', b'#', ..] => identifier.split_at(2).1,
        _ => identifier,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{BlobProto, LayerParameter};

    #[test]
    fn a_table_states_the_fields_by_number() {
        let (index, data) = BlobProto::SCHEMA.field(5).unwrap();
        assert_eq!((index, data.name, data.label), (4, "data", Label::Repeated));
        assert!(matches!(data.kind, FieldType::Float));
        assert!(data.accepts(WireType::LengthDelimited) && data.accepts(WireType::ThirtyTwoBit));
        assert!(!data.accepts(WireType::Varint));
        assert!(BlobProto::SCHEMA.field(10).is_none());
        assert_eq!(LayerParameter::SCHEMA.field_by_name("type").unwrap().number, 2);
    }
}
