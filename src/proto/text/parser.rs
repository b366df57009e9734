//! Tokens to a message in the binary format.

mod skip;

use std::collections::HashSet;

use prost::encoding::{WireType, encode_key, encode_varint};
use prost_reflect::{EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor};

use super::{
    TextError,
    lexer::{Lexer, Token},
};
use crate::words::did_you_mean;

/// What becomes of a field that its message does not have.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum UnknownFieldPolicy {
    /// It is a fault.
    Reject,
    /// It is passed over.
    Skip,
}

/// The message that `text` describes, in the binary format; and what was passed over.
pub(super) fn parse(
    message: &MessageDescriptor,
    text: &[u8],
    strangers: UnknownFieldPolicy,
) -> Result<(Vec<u8>, Vec<TextError>), TextError> {
    let mut lexer = Lexer::new(text);
    let (token, at) = lexer.next()?;
    let mut wire = Vec::new();
    let mut parser = Parser { lexer, token, at, strangers, skipped: Vec::new() };
    parser.fields(message, &Token::End, &mut wire)?;
    Ok((wire, parser.skipped))
}

/// A lexer and the one token that is looked at, which starts at byte `at`.
///
/// Methods that take a field append it to `wire`. They call each other only as deep as messages
/// nest, and none of Caffe's contains itself.
struct Parser<'a> {
    lexer: Lexer<'a>,
    token: Token<'a>,
    at: usize,
    strangers: UnknownFieldPolicy,
    skipped: Vec<TextError>,
}

impl<'a> Parser<'a> {
    /// Fields up to the token `end`, which is not consumed.
    fn fields(
        &mut self,
        message: &MessageDescriptor,
        end: &Token<'_>,
        wire: &mut Vec<u8>,
    ) -> Result<(), TextError> {
        let mut seen = HashSet::new();
        while self.token != *end {
            self.field(message, &mut seen, wire)?;
        }
        for field in message.fields() {
            if field.is_required() && !seen.contains(&field.number()) {
                return self.fault(format!("`{}` lacks `{}`", message.name(), field.name()));
            }
        }
        Ok(())
    }

    fn field(
        &mut self,
        message: &MessageDescriptor,
        seen: &mut HashSet<u32>,
        wire: &mut Vec<u8>,
    ) -> Result<(), TextError> {
        let Token::Identifier(name) = self.token else {
            return self.unexpected("the name of a field");
        };
        let Some(field) = message.get_field_by_name(name) else {
            let fields = message.fields();
            let message = format!("`{}` has no field `{name}`", message.name());
            if self.strangers == UnknownFieldPolicy::Reject {
                let fields: Vec<_> = fields.map(|field| field.name().to_owned()).collect();
                return self
                    .fault(message + &did_you_mean(name, fields.iter().map(String::as_str)));
            }
            self.skipped.push(TextError { at: self.at, message });
            self.advance()?;
            self.skip()?;
            return self.separator();
        };
        if !seen.insert(field.number()) && !field.is_list() {
            return self.fault(format!("`{name}` is given twice, but does not repeat"));
        }
        self.advance()?;

        let kind = field.kind();
        if !self.accept(b':')? && kind.as_message().is_none() {
            return self.unexpected("`:`");
        }
        if field.is_list() && self.accept(b'[')? {
            self.list(&field, &kind, wire)?;
        } else {
            self.value(&field, &kind, wire)?;
        }
        self.separator()
    }

    /// What may stand behind a field.
    fn separator(&mut self) -> Result<(), TextError> {
        if !self.accept(b',')? {
            self.accept(b';')?;
        }
        Ok(())
    }

    /// What follows `[`.
    fn list(
        &mut self,
        field: &FieldDescriptor,
        kind: &Kind,
        wire: &mut Vec<u8>,
    ) -> Result<(), TextError> {
        if self.accept(b']')? {
            return Ok(());
        }
        loop {
            self.value(field, kind, wire)?;
            if self.accept(b']')? {
                return Ok(());
            }
            if !self.accept(b',')? {
                return self.unexpected("`,` or `]`");
            }
        }
    }

    /// One value. Those of packed fields are written one by one, which reads the same.
    fn value(
        &mut self,
        field: &FieldDescriptor,
        kind: &Kind,
        wire: &mut Vec<u8>,
    ) -> Result<(), TextError> {
        match kind {
            Kind::Message(inner) => {
                let body = self.nested(inner)?;
                put_bytes(field, &body, wire);
            }
            Kind::String => {
                let at = self.at;
                let value = self.string()?;
                if str::from_utf8(&value).is_err() {
                    return Err(TextError { at, message: "this string is not UTF-8".into() });
                }
                put_bytes(field, &value, wire);
            }
            Kind::Bytes => put_bytes(field, &self.string()?, wire),
            Kind::Float => {
                let value = self.double()? as f32; // beyond its range: infinite
                encode_key(field.number(), WireType::ThirtyTwoBit, wire);
                wire.extend(value.to_le_bytes());
            }
            Kind::Double => {
                let value = self.double()?;
                encode_key(field.number(), WireType::SixtyFourBit, wire);
                wire.extend(value.to_le_bytes());
            }
            _ => {
                let value = self.varint(field, kind)?;
                encode_key(field.number(), WireType::Varint, wire);
                encode_varint(value, wire);
            }
        }
        Ok(())
    }

    fn varint(&mut self, field: &FieldDescriptor, kind: &Kind) -> Result<u64, TextError> {
        match kind {
            Kind::Int32 => self.signed(i64::from(i32::MAX)),
            Kind::Int64 => self.signed(i64::MAX),
            Kind::Uint32 => self.unsigned(u64::from(u32::MAX)),
            Kind::Uint64 => self.unsigned(u64::MAX),
            Kind::Bool => self.bool(),
            Kind::Enum(values) => self.enum_number(values),
            _ => self.fault(format!("`{}` is of a type that text cannot hold", field.name())),
        }
    }

    fn nested(&mut self, message: &MessageDescriptor) -> Result<Vec<u8>, TextError> {
        let end = match self.token {
            Token::Symbol(b'{') => Token::Symbol(b'}'),
            Token::Symbol(b'<') => Token::Symbol(b'>'),
            _ => return self.unexpected("`{`"),
        };
        self.advance()?;
        let mut body = Vec::new();
        self.fields(message, &end, &mut body)?;
        self.advance()?;
        Ok(body)
    }

    /// Adjacent strings are one.
    fn string(&mut self) -> Result<Vec<u8>, TextError> {
        if !matches!(self.token, Token::String(_)) {
            return self.unexpected("a string");
        }
        let mut value = Vec::new();
        while let Token::String(part) = &mut self.token {
            value.append(part);
            self.advance()?;
        }
        Ok(value)
    }

    /// The sign is a token of its own, so that spaces may follow it. Whole numbers are decimal.
    fn double(&mut self) -> Result<f64, TextError> {
        let negative = self.accept(b'-')?;
        let value = match self.token {
            Token::Integer(text) if text.len() > 1 && text.starts_with('0') => {
                return self.unexpected("a decimal number");
            }
            Token::Integer(text) | Token::Float(text) => {
                text.trim_end_matches(['f', 'F']).parse().ok()
            }
            Token::Identifier(word) => match word.to_ascii_lowercase().as_str() {
                "inf" | "infinity" => Some(f64::INFINITY),
                "nan" => Some(f64::NAN),
                _ => None,
            },
            _ => None,
        };
        let Some(value) = value else {
            return self.unexpected("a number");
        };
        self.advance()?;
        Ok(if negative { -value } else { value })
    }

    fn unsigned(&mut self, max: u64) -> Result<u64, TextError> {
        let Token::Integer(text) = self.token else {
            return self.unexpected("an integer");
        };
        match integer(text) {
            Some(value) if value <= max => {
                self.advance()?;
                Ok(value)
            }
            _ => self.fault(format!("{text} is out of range: at most {max}")),
        }
    }

    /// From `-max - 1` to `max`, as 64 bits of two's complement.
    fn signed(&mut self, max: i64) -> Result<u64, TextError> {
        if self.accept(b'-')? {
            Ok(self.unsigned(max as u64 + 1)?.wrapping_neg())
        } else {
            self.unsigned(max as u64)
        }
    }

    fn bool(&mut self) -> Result<u64, TextError> {
        let value = match self.token {
            Token::Integer(_) => return self.unsigned(1),
            Token::Identifier("true" | "True" | "t") => 1,
            Token::Identifier("false" | "False" | "f") => 0,
            _ => return self.unexpected("`true` or `false`"),
        };
        self.advance()?;
        Ok(value)
    }

    fn enum_number(&mut self, values: &EnumDescriptor) -> Result<u64, TextError> {
        let at = self.at;
        let (given, value) = match self.token {
            Token::Identifier(name) => {
                self.advance()?;
                (name.to_owned(), values.get_value_by_name(name))
            }
            Token::Integer(_) | Token::Symbol(b'-') => {
                let number = self.signed(i64::from(i32::MAX))? as i32;
                (number.to_string(), values.get_value(number))
            }
            _ => return self.unexpected("a name or a number"),
        };
        let Some(value) = value else {
            let known: Vec<_> = values.values().map(|value| value.name().to_owned()).collect();
            let message =
                format!("`{}` has no value {given}, only {}", values.name(), known.join(", "));
            return Err(TextError { at, message });
        };
        Ok(i64::from(value.number()) as u64)
    }

    fn advance(&mut self) -> Result<(), TextError> {
        (self.token, self.at) = self.lexer.next()?;
        Ok(())
    }

    fn accept(&mut self, symbol: u8) -> Result<bool, TextError> {
        let found = self.token == Token::Symbol(symbol);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn unexpected<T>(&self, expected: &str) -> Result<T, TextError> {
        self.fault(format!("expected {expected}, found {}", self.token))
    }

    fn fault<T>(&self, message: String) -> Result<T, TextError> {
        Err(TextError { at: self.at, message })
    }
}

fn put_bytes(field: &FieldDescriptor, bytes: &[u8], wire: &mut Vec<u8>) {
    encode_key(field.number(), WireType::LengthDelimited, wire);
    encode_varint(bytes.len() as u64, wire);
    wire.extend_from_slice(bytes);
}

/// Decimal, octal or hexadecimal; `None` beyond 64 bits.
fn integer(text: &str) -> Option<u64> {
    let (digits, radix) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&text[2..], 16),
        [b'0', _, ..] => (&text[1..], 8),
        _ => (text, 10),
    };
    u64::from_str_radix(digits, radix).ok()
}
