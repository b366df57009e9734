//! Lexer of protobuf's text format.

use std::fmt;

use super::error::{TextError, error};
use crate::limits::{QUOTED_CHARS, quoted};

/// A token of protobuf's text format.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// A name: a letter or `_`, followed by letters, digits and `_`.
    Identifier(&'a str),
    /// A decimal, octal (`017`) or hexadecimal (`0x1F`) integer without a sign.
    Integer(&'a str),
    /// A floating-point number without a sign, with a decimal point, an exponent or a trailing `f`.
    Float(&'a str),
    /// The value of a quoted string, with escape sequences replaced.
    String(Vec<u8>),
    /// A punctuation character, such as `{` or `:`.
    Symbol(u8),
    /// The end of the parsed text.
    End,
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Identifier(text) | Self::Integer(text) | Self::Float(text) => {
                write!(f, "`{}`", quoted(text))
            }
            Self::String(value) => {
                let start = &value[..value.len().min(QUOTED_CHARS + 1)];
                write!(f, "the string \"{}\"", quoted(&start.escape_ascii().to_string()))
            }
            Self::Symbol(symbol) => write!(f, "`{}`", char::from(*symbol)),
            Self::End => f.write_str("the end of the text"),
        }
    }
}

/// A lexer, which splits a text into tokens.
pub(super) struct Lexer<'a> {
    text: &'a [u8],
    /// Number of bytes that the lexer has consumed.
    offset: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, offset: 0 }
    }

    /// Returns the next token and the byte offset at which it starts.
    pub(super) fn next(&mut self) -> Result<(Token<'a>, usize), TextError> {
        self.skip_space_and_comments();
        let start = self.offset;
        let token = match self.peek() {
            None => Token::End,
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'_') => {
                self.skip(is_identifier);
                Token::Identifier(self.consumed_since(start))
            }
            Some(b'0'..=b'9') => self.number()?,
            Some(b'.') if self.text.get(start + 1).is_some_and(u8::is_ascii_digit) => {
                self.number()?
            }
            Some(quote @ (b'"' | b'\'')) => Token::String(self.string(quote)?),
            Some(symbol @ b'!'..=b'~') => {
                self.offset += 1;
                Token::Symbol(symbol)
            }
            Some(byte) => return Err(error(start, format!("byte {byte:#04x} outside a string"))),
        };
        Ok((token, start))
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.offset).copied()
    }

    /// Consumes the next byte if `matches` returns `true` for the byte; returns whether a byte was
    /// consumed.
    fn accept(&mut self, matches: impl Fn(u8) -> bool) -> bool {
        let found = self.peek().is_some_and(matches);
        self.offset += usize::from(found);
        found
    }

    /// Consumes bytes as long as `matches` returns `true`; returns the number of consumed bytes.
    fn skip(&mut self, matches: impl Fn(u8) -> bool) -> usize {
        let rest = &self.text[self.offset..];
        let count = rest.iter().position(|&byte| !matches(byte)).unwrap_or(rest.len());
        self.offset += count;
        count
    }

    /// Returns the text consumed since the offset `start`. The callers have checked that the
    /// consumed text is ASCII.
    fn consumed_since(&self, start: usize) -> &'a str {
        str::from_utf8(&self.text[start..self.offset]).unwrap_or_default()
    }

    fn skip_space_and_comments(&mut self) {
        loop {
            self.skip(|byte| matches!(byte, b' ' | b'\t'..=b'\r'));
            if self.peek() != Some(b'#') {
                return;
            }
            self.skip(|byte| byte != b'\n');
        }
    }

    fn number(&mut self) -> Result<Token<'a>, TextError> {
        let start = self.offset;
        let mut float = false;
        if self.accept(|byte| byte == b'0') && self.accept(|byte| matches!(byte, b'x' | b'X')) {
            if self.skip(|byte| byte.is_ascii_hexdigit()) == 0 {
                return Err(error(start, "`0x` without hexadecimal digits"));
            }
        } else {
            self.skip(|byte| byte.is_ascii_digit());
            float = self.fraction(start)?;
        }
        let text = self.consumed_since(start);
        if self.peek().is_some_and(|byte| byte == b'.' || is_identifier(byte)) {
            return Err(error(
                self.offset,
                format!("missing space after the number {}", quoted(text)),
            ));
        }
        if float {
            return Ok(Token::Float(text));
        }
        // A leading zero makes a number octal unless `x` follows.
        if text.starts_with('0') && text.contains(['8', '9']) && !text.contains(['x', 'X']) {
            return Err(error(start, format!("{} starts with 0 but is not octal", quoted(text))));
        }
        Ok(Token::Integer(text))
    }

    /// Consumes the fraction, exponent and suffix of a decimal number, if any; returns whether the
    /// number is a float.
    fn fraction(&mut self, start: usize) -> Result<bool, TextError> {
        let digits = &self.text[start..self.offset];
        if digits.len() > 1 && digits[0] == b'0' {
            return Ok(false);
        }
        let has_point = self.accept(|byte| byte == b'.');
        self.skip(|byte| has_point && byte.is_ascii_digit());
        let has_exponent = self.accept(|byte| matches!(byte, b'e' | b'E'));
        if has_exponent {
            self.accept(|byte| matches!(byte, b'+' | b'-'));
            if self.skip(|byte| byte.is_ascii_digit()) == 0 {
                let number = self.consumed_since(start);
                return Err(error(
                    start,
                    format!("no digits in the exponent of {}", quoted(number)),
                ));
            }
        }
        let has_suffix = self.accept(|byte| matches!(byte, b'f' | b'F'));
        Ok(has_point || has_exponent || has_suffix)
    }

    fn string(&mut self, quote: u8) -> Result<Vec<u8>, TextError> {
        let start = self.offset;
        self.offset += 1;
        let mut value = Vec::new();
        loop {
            let run_start = self.offset;
            self.skip(|byte| !matches!(byte, b'\\' | b'\n' | 0) && byte != quote);
            value.extend_from_slice(&self.text[run_start..self.offset]);
            match self.peek() {
                Some(b'\\') => self.escape(&mut value)?,
                Some(byte) if byte == quote => {
                    self.offset += 1;
                    return Ok(value);
                }
                Some(b'\n') => {
                    return Err(error(start, "unterminated string: a string cannot span lines"));
                }
                _ => return Err(error(start, "unterminated string")),
            }
        }
    }

    fn escape(&mut self, value: &mut Vec<u8>) -> Result<(), TextError> {
        let start = self.offset;
        self.offset += 1;
        let Some(kind) = self.peek() else {
            return Err(error(start, "unterminated string"));
        };
        self.offset += 1;
        let byte = match kind {
            b'a' => 0x07,
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 0x0b,
            b'\\' | b'?' | b'\'' | b'"' => kind,
            // An octal escape has one to three digits, and the lexer has already consumed the first
            // digit. The value of an octal escape is truncated to 8 bits.
            b'0'..=b'7' => {
                self.offset -= 1;
                self.digits(8, 1, 3).unwrap_or(0) as u8
            }
            b'x' => match self.digits(16, 1, 2) {
                Some(byte) => byte as u8,
                None => return Err(error(start, "`\\x` without hexadecimal digits")),
            },
            b'u' | b'U' => {
                let character = self.code_point(start, kind)?;
                value.extend(character.encode_utf8(&mut [0; 4]).bytes());
                return Ok(());
            }
            _ => return Err(error(start, "unknown escape sequence")),
        };
        value.push(byte);
        Ok(())
    }

    /// Reads the digits of an escape `\uXXXX` or `\UXXXXXXXX` and returns the character. Two
    /// successive escapes `\uXXXX` may form a surrogate pair.
    fn code_point(&mut self, start: usize, kind: u8) -> Result<char, TextError> {
        let digits = if kind == b'u' { 4 } else { 8 };
        let mut code = self.digits(16, digits, digits);
        if let Some(high @ 0xd800..=0xdbff) = code
            && self.text[self.offset..].starts_with(b"\\u")
        {
            self.offset += 2;
            code = match self.digits(16, 4, 4) {
                Some(low @ 0xdc00..=0xdfff) => {
                    Some(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))
                }
                _ => None,
            };
        }
        code.and_then(char::from_u32).ok_or_else(|| {
            let kind = char::from(kind);
            error(start, format!("`\\{kind}` without {digits} hex digits of a valid character"))
        })
    }

    /// Reads a number of `min` to `max` digits in base `radix`.
    fn digits(&mut self, radix: u32, min: usize, max: usize) -> Option<u32> {
        let digit = |byte: u8| char::from(byte).to_digit(radix);
        let rest = self.text[self.offset..].iter().take(max);
        let (mut count, mut value) = (0, 0);
        for digit in rest.map_while(|&byte| digit(byte)) {
            value = value * radix + digit;
            count += 1;
        }
        self.offset += count;
        (count >= min).then_some(value)
    }
}

fn is_identifier(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
