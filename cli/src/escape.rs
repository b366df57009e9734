//! Escape sequences for text that comes from files, such as names of layers.

/// Escapes characters that a terminal would interpret, such as `\u{1b}`: control characters, line
/// separators, and characters that change the direction of text.
pub(super) fn escape_control(text: &str) -> String {
    let escape =
        |c: char| if is_interpreted(c) { c.escape_default().to_string() } else { c.into() };
    text.chars().map(escape).collect()
}

/// Escapes each line of `text` like [`escape_control`], but leaves line breaks unchanged.
pub(super) fn escape_lines(text: &str) -> String {
    text.split('\n').map(escape_control).collect::<Vec<_>>().join("\n")
}

/// In the strings of the JSON text `json`, escapes the characters that [`escape_control`] escapes.
/// Leaves the line breaks between JSON values unchanged.
pub(super) fn escape_json(json: &str) -> String {
    let escape = |c: char| match c {
        '\n' => c.into(),
        // All characters that a terminal interprets have code points of at most 16 bits.
        c if is_interpreted(c) => format!("\\u{:04x}", u32::from(c)),
        c => c.into(),
    };
    json.chars().map(escape).collect()
}

fn is_interpreted(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_a_terminal_interprets_are_escaped() {
        let name = "a\u{1b}[2J\tb\u{7f}\u{9b}c\u{202e}é層";
        let escaped_name = "a\\u{1b}[2J\\tb\\u{7f}\\u{9b}c\\u{202e}é層";
        assert_eq!(escape_control(name), escaped_name);
        assert_eq!(escape_control("a\r\nb"), "a\\r\\nb");
        assert_eq!(escape_lines(&format!("x\n{name}\n")), format!("x\n{escaped_name}\n"));
        let json = serde_json::to_string_pretty(&[name]).unwrap();
        let escaped_json = escape_json(&json);
        assert!(!escaped_json.chars().any(|c| c != '\n' && is_interpreted(c)), "{escaped_json}");
        assert_eq!(serde_json::from_str::<[String; 1]>(&escaped_json).unwrap(), [name]);
    }
}
