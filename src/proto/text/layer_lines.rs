//! Line numbers of the layers in a net definition.

use super::{
    lexer::{Lexer, Token},
    position,
};

/// Returns the line number, counted from 1, of each field `layer` or `layers` of a net definition
/// in text format, in the order of the text. Returns an empty list if the text is not valid.
pub(crate) fn layer_lines(text: &[u8]) -> Vec<usize> {
    let (mut lexer, mut lines, mut depth) = (Lexer::new(text), Vec::new(), 0_usize);
    loop {
        match lexer.next() {
            Ok((Token::End, _)) => return lines,
            Ok((Token::Symbol(b'{' | b'<' | b'['), _)) => depth += 1,
            Ok((Token::Symbol(b'}' | b'>' | b']'), _)) => depth = depth.saturating_sub(1),
            Ok((Token::Identifier("layer" | "layers"), offset)) if depth == 0 => {
                lines.push(position(text, offset).0);
            }
            Ok(_) => {}
            Err(_) => return Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::layer_lines;

    #[test]
    fn layer_lines_are_those_of_the_outermost_layer_fields() {
        let text =
            b"name: 'layer'\nlayer { name: \"a\"\n}\n# layer {\n\nlayer: <\n  layer: 1\n> layer {}";
        assert_eq!(layer_lines(text), [2, 6, 8]);
        assert!(layer_lines(b"layers {}\n\x01").is_empty());
    }
}
