//! Printer of protobuf's text format, which converts a message from the binary format to text.

use std::fmt::Write;

use prost::encoding::{WireType, decode_key, decode_varint};

use super::number;
use crate::proto::schema::{FieldType, Schema};

/// Returns the text of a message; `None` if `wire` is not a valid encoding of the message type.
pub(super) fn print(message: &Schema, wire: &[u8]) -> Option<String> {
    let mut text = String::new();
    fields(message, wire, 0, &mut text)?;
    Some(text)
}

fn fields(message: &Schema, mut wire: &[u8], level: usize, text: &mut String) -> Option<()> {
    while !wire.is_empty() {
        let (number, wire_type) = decode_key(&mut wire).ok()?;
        let (_, field) = message.field(number)?;
        let start = |text: &mut String| {
            text.extend(std::iter::repeat_n("  ", level));
            text.push_str(field.name);
        };
        match (field.kind, wire_type) {
            (FieldType::Message(inner), WireType::LengthDelimited) => {
                start(text);
                text.push_str(" {\n");
                fields(inner, bytes(&mut wire)?, level + 1, text)?;
                text.extend(std::iter::repeat_n("  ", level));
                text.push_str("}\n");
            }
            (FieldType::String | FieldType::Bytes, WireType::LengthDelimited) => {
                start(text);
                text.push_str(": \"");
                escape(bytes(&mut wire)?, text);
                text.push_str("\"\n");
            }
            (kind, WireType::LengthDelimited) => {
                let mut packed = bytes(&mut wire)?;
                while !packed.is_empty() {
                    start(text);
                    scalar(kind, &mut packed, text)?;
                }
            }
            (kind, _) if kind.wire_type() == wire_type => {
                start(text);
                scalar(kind, &mut wire, text)?;
            }
            _ => return None,
        }
    }
    Some(())
}

fn scalar(kind: FieldType, wire: &mut &[u8], text: &mut String) -> Option<()> {
    let value = match kind {
        FieldType::Float => number::format_f32(f32::from_le_bytes(array(wire)?)),
        FieldType::Double => number::format_f64(f64::from_le_bytes(array(wire)?)),
        FieldType::Int32 => (varint(wire)? as i32).to_string(),
        FieldType::Int64 => (varint(wire)? as i64).to_string(),
        FieldType::Uint32 => (varint(wire)? as u32).to_string(),
        FieldType::Bool => (varint(wire)? != 0).to_string(),
        FieldType::Enum(kind) => {
            let number = varint(wire)? as i32;
            let value = kind.values.iter().find(|value| value.1 == number);
            value.map_or(number.to_string(), |&(name, _)| name.to_owned())
        }
        _ => return None,
    };
    writeln!(text, ": {value}").ok()
}

/// Appends `bytes` to `text`: quotes, backslashes and bytes outside printable ASCII as C escape
/// sequences, and other bytes unchanged.
fn escape(bytes: &[u8], text: &mut String) {
    for &byte in bytes {
        match byte {
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            b'"' | b'\'' | b'\\' => text.extend(['\\', char::from(byte)]),
            b' '..=b'~' => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\{byte:03o}")),
        }
    }
}

fn varint(wire: &mut &[u8]) -> Option<u64> {
    decode_varint(wire).ok()
}

fn array<const N: usize>(wire: &mut &[u8]) -> Option<[u8; N]> {
    wire.split_off(..N)?.try_into().ok()
}

fn bytes<'a>(wire: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(varint(wire)?).ok()?;
    wire.split_off(..len)
}
