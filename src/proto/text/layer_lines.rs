//! Line numbers and names of the layers in a net definition.

use super::{
    lexer::{Lexer, Token},
    position::position,
};
use crate::limits::quoted;

/// Returns the line number, counted from 1, of each layer of a net definition in text format, in
/// the order of the text: the line of the field `layer` or `layers`, or of the opening bracket of
/// an element of a list of layers. Returns an empty list if the text is not valid.
pub(crate) fn layer_lines(text: &[u8]) -> Vec<usize> {
    let (mut lexer, mut lines, mut depth) = (Lexer::new(text), Vec::new(), 0_usize);
    let (mut is_layer, mut in_list) = (false, false);
    loop {
        match lexer.next() {
            Ok((Token::End, _)) => return lines,
            Ok((Token::Symbol(b'['), _)) if depth == 0 => {
                in_list = is_layer;
                if in_list {
                    lines.pop();
                }
            }
            Ok((Token::Symbol(b']'), _)) if depth == 0 => in_list = false,
            Ok((Token::Symbol(b'{' | b'<' | b'['), offset)) => {
                if depth == 0 && in_list {
                    lines.push(position(text, offset).0);
                }
                depth += 1;
            }
            Ok((Token::Symbol(b'}' | b'>' | b']'), _)) => depth = depth.saturating_sub(1),
            Ok((Token::Identifier(field), offset)) if depth == 0 => {
                is_layer = matches!(field, "layer" | "layers");
                if is_layer {
                    lines.push(position(text, offset).0);
                }
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
    // The last identifier, at any depth and at depth 0; whether the message at depth 1 is a layer;
    // and whether the message at depth 2 is the inner message of a layer in the format V0.
    let (mut field, mut outer_field, mut is_layer, mut is_v0_layer) = ("", "", false, false);
    while let Ok((token, start)) = lexer.next() {
        match token {
            Token::End => break,
            // The elements of a list of layers are at the depth of other layers.
            Token::Symbol(b'[' | b']') if depth == 0 => {}
            Token::Symbol(b'{' | b'<' | b'[') => {
                depth += 1;
                match depth {
                    1 if start > offset => return None,
                    1 => is_layer = matches!(outer_field, "layer" | "layers"),
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
            Token::Identifier(word) => {
                field = word;
                if depth == 0 {
                    outer_field = word;
                }
            }
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
        let list = "layer: [ { name: 'a' }, { name: 'b' odd: 1 } ] state { level: 1 }";
        let at_list = |part: &str| layer_name_at(list.as_bytes(), list.find(part).unwrap());
        assert_eq!(at_list("odd").as_deref(), Some("b"));
        assert_eq!(at_list("level"), None);
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
        let list = b"input_dim: [1, 2]\nlayer: [ {}\n, { param: [ {}, {} ] }\n]\nlayer {}";
        assert_eq!(layer_lines(list), [2, 3, 5]);
        assert!(layer_lines(b"layers {}\n\x01").is_empty());
    }
}
