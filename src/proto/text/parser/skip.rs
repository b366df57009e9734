//! Passing over fields that are not known.

use super::{Parser, TextError, Token};

impl Parser<'_> {
    /// Passes over what follows the name of a field: `:` and a value, or a message. Of what is
    /// inside, only the brackets have to fit.
    pub(super) fn skip(&mut self) -> Result<(), TextError> {
        let colon = self.accept(b':')?;
        if !colon && !matches!(self.token, Token::Symbol(b'{' | b'<')) {
            return self.unexpected("`:`");
        }
        self.accept(b'-')?;
        // A loop and not recursion: nobody limits how deep unknown messages nest.
        let mut open = Vec::new();
        loop {
            match self.token {
                Token::Symbol(b'{') => open.push(b'}'),
                Token::Symbol(b'<') => open.push(b'>'),
                Token::Symbol(b'[') => open.push(b']'),
                Token::Symbol(symbol @ (b'}' | b'>' | b']')) if open.last() == Some(&symbol) => {
                    open.pop();
                }
                Token::Symbol(b':' | b',' | b';' | b'-' | b'.' | b'/') if !open.is_empty() => {}
                Token::Symbol(_) | Token::End => return self.unexpected("a value"),
                Token::String(_) => {
                    self.string()?;
                    if open.is_empty() {
                        return Ok(());
                    }
                    continue;
                }
                Token::Identifier(_) | Token::Integer(_) | Token::Float(_) => {}
            }
            self.advance()?;
            if open.is_empty() {
                return Ok(());
            }
        }
    }
}
