//! Parse errors of the text format, with byte offsets.

/// A parse error: the problem and its byte offset in the text.
#[derive(Debug)]
pub(super) struct TextError {
    pub(super) offset: usize,
    pub(super) message: String,
}

pub(super) fn error(offset: usize, message: impl Into<String>) -> TextError {
    TextError { offset, message: message.into() }
}
