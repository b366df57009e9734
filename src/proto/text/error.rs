//! Parse errors, located by byte offset.

/// The problem, and the byte offset of the text at which it was found.
#[derive(Debug)]
pub(super) struct TextError {
    pub(super) offset: usize,
    pub(super) message: String,
}

pub(super) fn error(offset: usize, message: impl Into<String>) -> TextError {
    TextError { offset, message: message.into() }
}
