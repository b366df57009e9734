//! Line numbers and names of the layers in a net definition.

use super::{
    lexer::{Lexer, Token},
    position::position,
};
use crate::limits::quoted;

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

/// Returns the name of the layer whose definition contains the byte `offset` of a net definition in
/// text format. In the format V0, the name is in the field `layer` of `layers`. Returns `None` if
/// no layer contains the byte, or if the layer has no name.
pub(super) fn layer_name_at(text: &[u8], offset: usize) -> Option<String> {
    let (mut lexer, mut depth, mut name) = (Lexer::new(text), 0_usize, None);
    // The last identifier; whether the message at depth 1 is a layer; and whether the message at
    // depth 2 is the inner message of a layer in the format V0.
    let (mut field, mut is_layer, mut is_v0_layer) = ("", false, false);
    while let Ok((token, start)) = lexer.next() {
        match token {
            Token::End => break,
            Token::Symbol(b'{' | b'<' | b'[') => {
                depth += 1;
                match depth {
                    1 if start > offset => return None,
                    1 => is_layer = matches!(field, "layer" | "layers"),
                    2 => is_v0_layer = field == "layer",
                    _ => {}
                }
            }
            Token::Symbol(b'}' | b'>' | b']') => {
                depth = depth.saturating_sub(1);
                if depth == 0 && start >= offset {
                    break;
                } else if depth == 0 {
                    (name, is_layer) = (None, false);
                }
            }
            Token::Identifier(word) => field = word,
            Token::String(value)
                if field == "name"
                    && is_layer
                    && name.is_none()
                    && (depth == 1 || depth == 2 && is_v0_layer) =>
            {
                name = String::from_utf8(value).ok();
            }
            _ => {}
        }
    }
    name.filter(|name| !name.is_empty()).map(|name| quoted(&name).into_owned())
}

#[cfg(test)]
mod tests {
    use super::{layer_lines, layer_name_at};

    #[test]
    fn the_layer_at_an_offset_is_the_one_whose_brackets_contain_it() {
        let text = "name: 'net' layer { odd name: 'a' param { name: 'p' } type: 'b' }
            # layer {
            layer < include { x: 1 } name: 'late' > other { name: 'o' inner }
            layers { layer { name: 'old' size: 1 } bottom: 'x' } layer { open 'c' } last
            layer { name: 'end' broken";
        let at = |part: &str| layer_name_at(text.as_bytes(), text.find(part).unwrap());
        for part in ["odd", "'p'", "type: 'b'"] {
            assert_eq!(at(part).as_deref(), Some("a"), "{part}");
        }
        for (part, name) in
            [("x: 1", "late"), ("size", "old"), ("bottom", "old"), ("broken", "end")]
        {
            assert_eq!(at(part).as_deref(), Some(name), "{part}");
        }
        for part in ["net", "inner", "other", "open", "last"] {
            assert_eq!(at(part), None, "{part}");
        }
        assert_eq!(
            layer_name_at(b"layer { name: 'a' \x01 } layer { name: 'b' }", 18).unwrap(),
            "a"
        );
    }

    #[test]
    fn layer_lines_are_those_of_the_outermost_layer_fields() {
        let text =
            b"name: 'layer'\nlayer { name: \"a\"\n}\n# layer {\n\nlayer: <\n  layer: 1\n> layer {}";
        assert_eq!(layer_lines(text), [2, 6, 8]);
        assert!(layer_lines(b"layers {}\n\x01").is_empty());
    }
}
