//! Text to tokens.

use std::fmt;

use super::TextError;

/// A word of the text format.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// A letter or `_`, then letters, digits and `_`.
    Identifier(&'a str),
    /// Decimal, octal (`017`) or hexadecimal (`0x1F`), without a sign.
    Integer(&'a str),
    /// With a point, an exponent or an `f` at its end, without a sign.
    Float(&'a str),
    /// What a quoted string stands for.
    String(Vec<u8>),
    /// Any other character.
    Symbol(u8),
    /// The end of the text.
    End,
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Identifier(text) | Self::Integer(text) | Self::Float(text) => {
                write!(f, "`{text}`")
            }
            Self::String(value) => write!(f, "the string \"{}\"", value.escape_ascii()),
            Self::Symbol(symbol) => write!(f, "`{}`", char::from(*symbol)),
            Self::End => f.write_str("the end of the text"),
        }
    }
}

/// The text that has not become tokens yet.
pub(super) struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// The next token and the byte it starts at.
    pub(super) fn next(&mut self) -> Result<(Token<'a>, usize), TextError> {
        self.skip_space_and_comments();
        let start = self.at;
        let token = match self.peek() {
            None => Token::End,
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'_') => {
                self.skip(is_word);
                Token::Identifier(self.since(start))
            }
            Some(b'0'..=b'9') => self.number()?,
            Some(b'.') if self.text.get(start + 1).is_some_and(u8::is_ascii_digit) => {
                self.number()?
            }
            Some(quote @ (b'"' | b'\'')) => Token::String(self.string(quote)?),
            Some(symbol @ b'!'..=b'~') => {
                self.at += 1;
                Token::Symbol(symbol)
            }
            Some(byte) => return Err(fault(start, format!("byte {byte:#04x} outside a string"))),
        };
        Ok((token, start))
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn accept(&mut self, wanted: impl Fn(u8) -> bool) -> bool {
        let found = self.peek().is_some_and(wanted);
        self.at += usize::from(found);
        found
    }

    /// Goes past the bytes that are wanted, and says how many they were.
    fn skip(&mut self, wanted: impl Fn(u8) -> bool) -> usize {
        let rest = &self.text[self.at..];
        let count = rest.iter().position(|&byte| !wanted(byte)).unwrap_or(rest.len());
        self.at += count;
        count
    }

    /// The text from `start` on; only called where all of it is ASCII.
    fn since(&self, start: usize) -> &'a str {
        str::from_utf8(&self.text[start..self.at]).unwrap_or_default()
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
        let start = self.at;
        let mut float = false;
        if self.accept(|byte| byte == b'0') && self.accept(|byte| matches!(byte, b'x' | b'X')) {
            if self.skip(|byte| byte.is_ascii_hexdigit()) == 0 {
                return Err(fault(start, "`0x` without hexadecimal digits"));
            }
        } else {
            self.skip(|byte| byte.is_ascii_digit());
            float = self.fraction(start)?;
        }
        let text = self.since(start);
        if self.peek().is_some_and(|byte| byte == b'.' || is_word(byte)) {
            return Err(fault(self.at, format!("a space is missing after the number {text}")));
        }
        if float {
            return Ok(Token::Float(text));
        }
        // `0x` is fine: only a decimal digit after the zero makes a number octal.
        if text.starts_with('0') && text.contains(['8', '9']) && !text.contains(['x', 'X']) {
            return Err(fault(start, format!("{text} starts with 0 but is not octal")));
        }
        Ok(Token::Integer(text))
    }

    /// What may follow the digits of a decimal number; whether there was any of it.
    fn fraction(&mut self, start: usize) -> Result<bool, TextError> {
        let digits = &self.text[start..self.at];
        if digits.len() > 1 && digits[0] == b'0' {
            return Ok(false);
        }
        let point = self.accept(|byte| byte == b'.');
        self.skip(|byte| point && byte.is_ascii_digit());
        let exponent = self.accept(|byte| matches!(byte, b'e' | b'E'));
        if exponent {
            self.accept(|byte| matches!(byte, b'+' | b'-'));
            if self.skip(|byte| byte.is_ascii_digit()) == 0 {
                return Err(fault(
                    start,
                    format!("no digits in the exponent of {}", self.since(start)),
                ));
            }
        }
        let suffix = self.accept(|byte| matches!(byte, b'f' | b'F'));
        Ok(point || exponent || suffix)
    }

    fn string(&mut self, quote: u8) -> Result<Vec<u8>, TextError> {
        let start = self.at;
        self.at += 1;
        let mut value = Vec::new();
        loop {
            let plain = self.at;
            self.skip(|byte| !matches!(byte, b'\\' | b'\n' | 0) && byte != quote);
            value.extend_from_slice(&self.text[plain..self.at]);
            match self.peek() {
                Some(b'\\') => self.escape(&mut value)?,
                Some(byte) if byte == quote => {
                    self.at += 1;
                    return Ok(value);
                }
                Some(b'\n') => return Err(fault(start, "this string does not end on its line")),
                _ => return Err(fault(start, "this string does not end")),
            }
        }
    }

    fn escape(&mut self, value: &mut Vec<u8>) -> Result<(), TextError> {
        let start = self.at;
        self.at += 1;
        let Some(kind) = self.peek() else {
            return Err(fault(start, "this string does not end"));
        };
        self.at += 1;
        let byte = match kind {
            b'a' => 0x07,
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 0x0b,
            b'\\' | b'?' | b'\'' | b'"' => kind,
            // Up to three digits, of which the first has been read; 8 bits are kept.
            b'0'..=b'7' => {
                self.at -= 1;
                self.digits(8, 1, 3).unwrap_or(0) as u8
            }
            b'x' | b'X' => match self.digits(16, 1, 2) {
                Some(byte) => byte as u8,
                None => return Err(fault(start, "`\\x` without hexadecimal digits")),
            },
            b'u' | b'U' => {
                let character = self.code_point(start, kind)?;
                value.extend(character.encode_utf8(&mut [0; 4]).bytes());
                return Ok(());
            }
            _ => return Err(fault(start, "unknown escape sequence")),
        };
        value.push(byte);
        Ok(())
    }

    /// Character of `\uXXXX` or `\UXXXXXXXX`; two of the former may form a pair as in UTF-16.
    fn code_point(&mut self, start: usize, kind: u8) -> Result<char, TextError> {
        let length = if kind == b'u' { 4 } else { 8 };
        let mut code = self.digits(16, length, length);
        if let Some(high @ 0xd800..=0xdbff) = code
            && self.text[self.at..].starts_with(b"\\u")
        {
            self.at += 2;
            code = match self.digits(16, 4, 4) {
                Some(low @ 0xdc00..=0xdfff) => {
                    Some(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))
                }
                _ => None,
            };
        }
        code.and_then(char::from_u32).ok_or_else(|| {
            let kind = char::from(kind);
            fault(start, format!("`\\{kind}` without {length} digits that make a character"))
        })
    }

    /// A number of `least` to `most` digits.
    fn digits(&mut self, radix: u32, least: usize, most: usize) -> Option<u32> {
        let digit = |byte: u8| char::from(byte).to_digit(radix);
        let rest = self.text[self.at..].iter().take(most);
        let (mut count, mut value) = (0, 0);
        for digit in rest.map_while(|&byte| digit(byte)) {
            value = value * radix + digit;
            count += 1;
        }
        self.at += count;
        (count >= least).then_some(value)
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn fault(at: usize, message: impl Into<String>) -> TextError {
    TextError { at, message: message.into() }
}
