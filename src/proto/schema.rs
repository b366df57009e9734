//! Tables of the wire encoding of each field in `proto/caffe.proto`.

use prost::encoding::WireType;

/// A message type.
#[derive(Debug)]
pub(super) struct Schema {
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
    pub(super) repeated: bool,
    pub(super) kind: WireEncoding,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum WireEncoding {
    Varint,
    Fixed32,
    Fixed64,
    Text,
    Bytes,
    /// A message; the index of its type in [`MESSAGES`].
    Message(usize),
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

    pub(super) fn field_by_name(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    pub(super) fn len(&self) -> usize {
        self.fields.len()
    }
}

impl Field {
    /// Returns whether a value of this wire type belongs to the field; otherwise it is an unknown
    /// field with a known number. A list of numbers is one packed value or several values.
    pub(super) fn accepts(&self, wire_type: WireType) -> bool {
        let unpacked = match self.kind {
            WireEncoding::Varint => WireType::Varint,
            WireEncoding::Fixed32 => WireType::ThirtyTwoBit,
            WireEncoding::Fixed64 => WireType::SixtyFourBit,
            _ => WireType::LengthDelimited,
        };
        wire_type == unpacked || self.repeated && wire_type == WireType::LengthDelimited
    }

    /// Returns whether errors name a value of the field by its index. Numbers have no index,
    /// because one packed value holds many of them.
    pub(super) fn is_indexed(&self) -> bool {
        use WireEncoding::{Bytes, Message, Text};
        self.repeated && matches!(self.kind, Text | Bytes | Message(_))
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
                assert!(
                    !matches!(field.kind, WireEncoding::Message(index) if index >= MESSAGES.len())
                );
            }
        }
        let (_, data) = Schema::of("caffe.BlobProto").unwrap().field(5).unwrap();
        assert_eq!((data.name, data.repeated, data.kind), ("data", true, WireEncoding::Fixed32));
        assert!(data.accepts(WireType::LengthDelimited) && data.accepts(WireType::ThirtyTwoBit));
        assert!(!data.accepts(WireType::Varint));
        assert!(Schema::of("caffe.Nonsense").is_none());
    }
}
