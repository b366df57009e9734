//! Parser of protobuf's text format, which converts tokens to a message in the binary format.

use std::{collections::HashSet, mem};

use prost::encoding::{WireType, encode_key, encode_varint};

use super::{
    error::{TextError, error},
    ignored_fields::{ignored_value, reason_to_ignore},
    lexer::{Lexer, Token},
};
use crate::proto::schema::{EnumSchema, Field, FieldType, Label, Schema};
use crate::{limits::quoted, suggest::did_you_mean};

#[derive(Clone, Copy, PartialEq)]
pub(super) enum UnknownFieldPolicy {
    /// The parser returns an error for an unknown field.
    Reject,
    /// The parser skips an unknown field and reports the field.
    Skip,
}

/// Converts a message from text to the binary format. Returns the encoded message, and a warning
/// for each skipped field. If the text contains an ignored field several times, the parser returns
/// only one warning for the field.
pub(super) fn parse(
    message: &Schema,
    text: &[u8],
    unknown_fields: UnknownFieldPolicy,
) -> Result<(Vec<u8>, Vec<TextError>), TextError> {
    let mut lexer = Lexer::new(text);
    let (token, offset) = lexer.next()?;
    let (wire, warnings, ignored) = (Vec::new(), Vec::new(), HashSet::new());
    let mut parser = Parser { lexer, token, offset, unknown_fields, wire, warnings, ignored };
    parser.fields(message, &Token::End)?;
    Ok((parser.wire, parser.warnings))
}

/// Recursive-descent parser with one token of lookahead; `offset` is the byte offset of the
/// lookahead token.
///
/// The recursion depth is bounded, because no message type of Caffe contains itself.
struct Parser<'a> {
    lexer: Lexer<'a>,
    token: Token<'a>,
    offset: usize,
    unknown_fields: UnknownFieldPolicy,
    /// The binary encoding of the current message's fields that the parser has read so far.
    wire: Vec<u8>,
    warnings: Vec<TextError>,
    /// The types and names of the ignored fields and enum values about which the parser has warned.
    ignored: HashSet<(&'static str, &'a str)>,
}

impl<'a> Parser<'a> {
    /// Parses the fields of a message up to the token `end`; does not consume `end`.
    fn fields(&mut self, message: &Schema, end: &Token<'_>) -> Result<(), TextError> {
        let mut seen_fields = HashSet::new();
        while self.token != *end {
            self.field(message, &mut seen_fields)?;
        }
        for field in message.fields() {
            if field.label == Label::Required && !seen_fields.contains(&field.number) {
                let (message, field) = (message.short_name(), field.name);
                return self.fail(format!("`{message}` lacks the required field `{field}`"));
            }
        }
        Ok(())
    }

    fn field(&mut self, message: &Schema, seen: &mut HashSet<u32>) -> Result<(), TextError> {
        let Token::Identifier(name) = self.token else {
            return self.unexpected("a field name");
        };
        let Some(field) = message.field_by_name(name) else {
            return self.unknown_field(message, name);
        };
        if !seen.insert(field.number) && !field.is_repeated() {
            return self.fail(format!(
                "second value of `{name}`, which is not repeated; remove one of the values"
            ));
        }
        self.advance()?;

        if !self.accept(b':')? && !matches!(field.kind, FieldType::Message(_)) {
            return self.unexpected("`:`");
        }
        if field.is_repeated() && self.accept(b'[')? {
            self.list(field)?;
        } else {
            self.value(field)?;
        }
        self.separator()
    }

    /// Skips the optional `,` or `;` after a field.
    fn separator(&mut self) -> Result<(), TextError> {
        if !self.accept(b',')? {
            self.accept(b';')?;
        }
        Ok(())
    }

    /// Parses a bracketed list of values; the caller has consumed the opening `[`.
    fn list(&mut self, field: &Field) -> Result<(), TextError> {
        if self.accept(b']')? {
            return Ok(());
        }
        loop {
            self.value(field)?;
            if self.accept(b']')? {
                return Ok(());
            }
            if !self.accept(b',')? {
                return self.unexpected("`,` or `]`");
            }
        }
    }

    /// Parses one value of a field. The parser writes a packed field in the unpacked encoding,
    /// which decodes to the same values.
    fn value(&mut self, field: &Field) -> Result<(), TextError> {
        match field.kind {
            FieldType::Message(message) => {
                let body = self.nested(message)?;
                self.put_bytes(field, &body);
            }
            FieldType::String => {
                let offset = self.offset;
                let value = self.string()?;
                if str::from_utf8(&value).is_err() {
                    return Err(error(offset, "string is not UTF-8"));
                }
                self.put_bytes(field, &value);
            }
            FieldType::Bytes => {
                let value = self.string()?;
                self.put_bytes(field, &value);
            }
            FieldType::Float => {
                let value = self.double()? as f32; // a number out of range becomes infinity
                encode_key(field.number, WireType::ThirtyTwoBit, &mut self.wire);
                self.wire.extend(value.to_le_bytes());
            }
            FieldType::Double => {
                let value = self.double()?;
                encode_key(field.number, WireType::SixtyFourBit, &mut self.wire);
                self.wire.extend(value.to_le_bytes());
            }
            _ => {
                let value = self.varint(field.kind)?;
                encode_key(field.number, WireType::Varint, &mut self.wire);
                encode_varint(value, &mut self.wire);
            }
        }
        Ok(())
    }

    fn varint(&mut self, kind: FieldType) -> Result<u64, TextError> {
        match kind {
            FieldType::Int32 => self.signed(i64::from(i32::MAX)),
            FieldType::Int64 => self.signed(i64::MAX),
            FieldType::Uint32 => self.unsigned(u64::from(u32::MAX)),
            FieldType::Enum(kind) => self.enum_number(kind),
            _ => self.bool(),
        }
    }

    /// Parses a nested message; returns the message in the binary format.
    fn nested(&mut self, message: &Schema) -> Result<Vec<u8>, TextError> {
        let end = match self.token {
            Token::Symbol(b'{') => Token::Symbol(b'}'),
            Token::Symbol(b'<') => Token::Symbol(b'>'),
            _ => return self.unexpected("`{`"),
        };
        self.advance()?;
        let outer_wire = mem::take(&mut self.wire);
        self.fields(message, &end)?;
        self.advance()?;
        Ok(mem::replace(&mut self.wire, outer_wire))
    }

    /// Parses a string; adjacent strings are concatenated.
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

    /// Parses the value of a `float` or `double` field. The minus sign of a number is a separate
    /// token, so spaces may follow the sign. An integer in a `float` or `double` field must be
    /// decimal.
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
            _ => self.fail(format!("{} is out of range: at most {max}", quoted(text))),
        }
    }

    /// Parses an integer from `-max - 1` to `max`; returns the integer in two's complement.
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

    fn enum_number(&mut self, kind: &EnumSchema) -> Result<u64, TextError> {
        let offset = self.offset;
        let find = |wanted: &dyn Fn(&str, i32) -> bool| {
            kind.values.iter().find(|&&(name, number)| wanted(name, number))
        };
        let (given_value, value) = match self.token {
            Token::Identifier(given_value) => {
                self.advance()?;
                (given_value.to_owned(), find(&|name, _| name == given_value))
            }
            Token::Integer(_) | Token::Symbol(b'-') => {
                let given_value = self.signed(i64::from(i32::MAX))? as i32;
                (given_value.to_string(), find(&|_, number| number == given_value))
            }
            _ => return self.unexpected("a name or a number"),
        };
        if let Some(&(_, number)) = value {
            return Ok(i64::from(number) as u64);
        }
        if let Some((entry, reason)) = ignored_value(kind.name, &given_value) {
            if self.ignored.insert(entry) {
                let (kind, value) = entry;
                let warning = format!("the value {value} of `{kind}` is ignored: {reason}");
                self.warnings.push(error(offset, warning));
            }
            return Ok(0);
        }
        let known_values: Vec<_> = kind.values.iter().map(|&(name, _)| name).collect();
        let remedy = match kind.name {
            "LayerType" => {
                "; to use a layer type of a fork of Caffe, write the net in the current format, in \
                 which the type is a string, and register the type with `LayerRegistry::with`"
            }
            _ => "",
        };
        let (name, given_value) = (kind.name, quoted(&given_value));
        let message = format!(
            "`{name}` has no value {given_value}{remedy}; known values: {}",
            known_values.join(", ")
        );
        Err(error(offset, message))
    }

    /// Skips a field that `message` does not declare, or returns an error for the field.
    fn unknown_field(&mut self, message: &Schema, name: &'a str) -> Result<(), TextError> {
        let short_name = message.short_name();
        if let Some(reason) = reason_to_ignore(short_name, name) {
            if self.ignored.insert((short_name, name)) {
                let warning = format!("`{name}` of `{short_name}` is ignored: {reason}");
                self.warnings.push(error(self.offset, warning));
            }
        } else {
            let problem = format!("`{short_name}` has no field `{}`", quoted(name));
            if self.unknown_fields == UnknownFieldPolicy::Reject {
                let suggestion =
                    did_you_mean(name, message.fields().iter().map(|field| field.name));
                let remedy = remedy(short_name, name, &suggestion);
                return self.fail(format!("{problem}{suggestion}{remedy}"));
            }
            self.warnings.push(error(self.offset, format!("{problem}; skipped")));
        }
        self.advance()?;
        self.skip_value()?;
        self.separator()
    }

    /// Skips the rest of an unknown field, which is `:` and a value, or a nested message. Inside an
    /// unknown nested message, the parser checks only the tokens and the matching of brackets.
    fn skip_value(&mut self) -> Result<(), TextError> {
        let colon = self.accept(b':')?;
        if !colon && !matches!(self.token, Token::Symbol(b'{' | b'<')) {
            return self.unexpected("`:`");
        }
        self.accept(b'-')?;
        // The parser loops instead of recursing, because unknown messages may nest arbitrarily
        // deep.
        let mut closing_brackets = Vec::new();
        loop {
            match self.token {
                Token::Symbol(b'{') => closing_brackets.push(b'}'),
                Token::Symbol(b'<') => closing_brackets.push(b'>'),
                Token::Symbol(b'[') => closing_brackets.push(b']'),
                Token::Symbol(symbol @ (b'}' | b'>' | b']'))
                    if closing_brackets.last() == Some(&symbol) =>
                {
                    closing_brackets.pop();
                }
                Token::Symbol(b':' | b',' | b';' | b'-' | b'.' | b'/')
                    if !closing_brackets.is_empty() => {}
                Token::Symbol(_) | Token::End => return self.unexpected("a value"),
                Token::String(_) => {
                    self.string()?;
                    if closing_brackets.is_empty() {
                        return Ok(());
                    }
                    continue;
                }
                Token::Identifier(_) | Token::Integer(_) | Token::Float(_) => {}
            }
            self.advance()?;
            if closing_brackets.is_empty() {
                return Ok(());
            }
        }
    }

    fn put_bytes(&mut self, field: &Field, bytes: &[u8]) {
        encode_key(field.number, WireType::LengthDelimited, &mut self.wire);
        encode_varint(bytes.len() as u64, &mut self.wire);
        self.wire.extend_from_slice(bytes);
    }

    fn advance(&mut self) -> Result<(), TextError> {
        (self.token, self.offset) = self.lexer.next()?;
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
        self.fail(format!("expected {expected}, found {}", self.token))
    }

    fn fail<T>(&self, message: String) -> Result<T, TextError> {
        Err(error(self.offset, message))
    }
}

/// Returns the remedy in the error for the unknown field `name` of a message of type `message`.
/// `suggestion` is the error's text about a field with a similar name, or empty if there is none.
fn remedy(message: &str, name: &str, suggestion: &str) -> &'static str {
    if matches!(message, "LayerParameter" | "V1LayerParameter") && name.ends_with("_param") {
        "; if a layer type that cortado lacks needs this field, register the type with \
         `LayerRegistry::with`, and write the settings to `python_param { param_str: … }`"
    } else if suggestion.is_empty() {
        "; remove the field if the results do not depend on it"
    } else {
        ""
    }
}

/// Parses a decimal, octal or hexadecimal integer; `None` if the integer exceeds 64 bits.
fn integer(text: &str) -> Option<u64> {
    let (digits, radix) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&text[2..], 16),
        [b'0', _, ..] => (&text[1..], 8),
        _ => (text, 10),
    };
    u64::from_str_radix(digits, radix).ok()
}
