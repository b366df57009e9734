//! Positions in a text.

/// Returns the line and the column of a byte offset, both counted from 1.
pub(super) fn position(text: &[u8], offset: usize) -> (usize, usize) {
    let prefix = &text[..offset.min(text.len())];
    let line = prefix.iter().filter(|&&byte| byte == b'\n').count();
    let start = prefix.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
    // The column number counts each UTF-8 character once, at the character's first byte.
    let column = prefix[start..].iter().filter(|&&byte| byte & 0xc0 != 0x80).count();
    (line + 1, column + 1)
}
