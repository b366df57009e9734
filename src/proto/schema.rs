//! What `proto/caffe.proto` says about the encoding of each field, as tables.

use prost::encoding::WireType;

/// A message type.
#[derive(Debug)]
pub(super) struct Schema {
    /// With its package: `caffe.BlobProto`.
    pub(super) name: &'static str,
    /// By number, ascending.
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

/// How a value is encoded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum WireEncoding {
    Varint,
    Fixed32,
    Fixed64,
    Text,
    Bytes,
    /// A message, by its place in [`MESSAGES`].
    Message(usize),
}

include!("generated/caffe_schema.rs");

impl Schema {
    /// The message type of this name, unless it is none of Caffe's.
    pub(super) fn of(name: &str) -> Option<&'static Self> {
        MESSAGES.iter().find(|message| message.name == name)
    }

    /// The field of this number, and its place among the fields.
    pub(super) fn field(&self, number: u32) -> Option<(usize, &'static Field)> {
        let place = self.fields.binary_search_by_key(&number, |field| field.number).ok()?;
        Some((place, &self.fields[place]))
    }

    /// The field of this name.
    pub(super) fn named(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// How many fields there are.
    pub(super) fn len(&self) -> usize {
        self.fields.len()
    }
}

impl Field {
    /// Whether a value in this wire type is one of the field. Any other is unknown, though the
    /// number is not. Lists of numbers come packed into one value, or one by one.
    pub(super) fn takes(&self, wire: WireType) -> bool {
        match self.kind {
            WireEncoding::Varint => wire == WireType::Varint || self.packed(wire),
            WireEncoding::Fixed32 => wire == WireType::ThirtyTwoBit || self.packed(wire),
            WireEncoding::Fixed64 => wire == WireType::SixtyFourBit || self.packed(wire),
            WireEncoding::Text | WireEncoding::Bytes | WireEncoding::Message(_) => {
                wire == WireType::LengthDelimited
            }
        }
    }

    /// Whether its values are told apart by an index. Numbers are not: one value may hold many.
    pub(super) fn counts(&self) -> bool {
        self.repeated
            && matches!(
                self.kind,
                WireEncoding::Text | WireEncoding::Bytes | WireEncoding::Message(_)
            )
    }

    fn packed(&self, wire: WireType) -> bool {
        self.repeated && wire == WireType::LengthDelimited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_in_order_and_messages_in_the_table() {
        for message in &MESSAGES {
            assert!(message.fields.is_sorted_by_key(|field| field.number), "{}", message.name);
            for field in message.fields {
                assert!(
                    !matches!(field.kind, WireEncoding::Message(place) if place >= MESSAGES.len())
                );
            }
        }
        let (_, data) = Schema::of("caffe.BlobProto").unwrap().field(5).unwrap();
        assert_eq!((data.name, data.repeated, data.kind), ("data", true, WireEncoding::Fixed32));
        assert!(data.takes(WireType::LengthDelimited) && data.takes(WireType::ThirtyTwoBit));
        assert!(!data.takes(WireType::Varint));
        assert!(Schema::of("caffe.Nonsense").is_none());
    }
}
