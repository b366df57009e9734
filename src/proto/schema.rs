//! Tables of the messages, fields and enums in `proto/caffe.proto`.

use super::splice::SplicedReader;
use prost::{DecodeError, Message, Name, encoding::WireType};

/// A message type of Caffe or ONNX that this crate can read and write.
///
/// Only the message types in [`proto`](super) implement `CaffeMessage`, so the code that reads and
/// writes messages is compiled in this crate and not in its callers. To decode a message type that
/// does not implement `CaffeMessage`, use [`Message::decode`].
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
    /// Decodes the fields in `bytes` and merges the fields into this message.
    fn merge_from(&mut self, bytes: &mut SplicedReader<'_>) -> Result<(), DecodeError>;
    /// Returns the length in bytes of the message in the binary format.
    fn binary_len(&self) -> usize;
    /// Returns the message in protobuf's binary format.
    fn to_binary(&self) -> Vec<u8>;
}

/// A message type.
#[derive(Debug)]
pub struct Schema {
    /// The full name of the message type, such as `caffe.BlobProto`.
    pub(super) name: &'static str,
    /// The size in bytes of the message type's Rust struct.
    pub(super) size: usize,
    /// The fields of the message type in ascending order of field number.
    fields: &'static [Field],
}

/// A field of a protobuf message type: name, number, label and type.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) number: u32,
    pub(super) label: Label,
    pub(super) kind: FieldType,
}

/// The label of a field: optional, required or repeated.
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

/// An enum type. Only the parser and the printer of the text format read the tables of enum types.
#[cfg_attr(not(feature = "net"), allow(dead_code))]
#[derive(Debug)]
pub(super) struct EnumSchema {
    /// The enum's name without package and enclosing message, such as `PoolMethod`.
    pub(super) name: &'static str,
    /// Names and numbers of the enum's values, in ascending order of number.
    pub(super) values: &'static [(&'static str, i32)],
}

impl Schema {
    /// Creates the schema of the message type `name`, whose struct has `size` bytes. The elements of `fields` must be in ascending
    /// order of field number.
    pub(super) const fn new(name: &'static str, size: usize, fields: &'static [Field]) -> Self {
        let mut index = 1;
        while index < fields.len() {
            assert!(fields[index - 1].number < fields[index].number);
            index += 1;
        }
        Self { name, size, fields }
    }

    /// Returns the field with the number `number`, and the index of this field among the fields of
    /// the message type.
    pub(super) fn field(&self, number: u32) -> Option<(usize, &'static Field)> {
        let index = self.fields.binary_search_by_key(&number, |field| field.number).ok()?;
        Some((index, &self.fields[index]))
    }

    /// Returns the name of the message type without its package.
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

    /// Returns whether the field can have a value of the wire type `wire_type`. The scan treats a
    /// value of any other wire type as an unknown field. A repeated field of numbers is encoded as
    /// one packed value or as several values.
    pub(super) fn accepts(&self, wire_type: WireType) -> bool {
        wire_type == self.kind.wire_type()
            || self.is_repeated() && wire_type == WireType::LengthDelimited
    }

    /// Returns whether error messages give the index of a value in the field, as in `layer[1]`.
    /// Error messages give no index in a repeated field of numbers, because one packed value holds
    /// many numbers.
    pub(super) fn is_indexed(&self) -> bool {
        self.is_repeated() && self.kind.wire_type() == WireType::LengthDelimited
    }
}

impl FieldType {
    /// Returns the wire type of one value of the field type.
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

impl FieldType {
    /// Returns the size in bytes of one element of a repeated field of numbers.
    pub(super) fn element_size(self) -> u64 {
        match self {
            Self::Int64 | Self::Double => 8,
            Self::Bool => 1,
            _ => 4,
        }
    }
}

/// Returns the protobuf name of a field from the field's Rust identifier, such as `type` from
/// `r#type`.
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
        assert!(LayerParameter::SCHEMA.field(50).is_none());
        assert_eq!(LayerParameter::SCHEMA.field_by_name("type").unwrap().number, 2);
    }
}
