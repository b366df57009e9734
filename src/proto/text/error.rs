//! Parse errors with byte offsets.

/// A problem, and the byte offset in the text at which the parser found the problem.
#[derive(Debug)]
pub(super) struct TextError {
    pub(super) offset: usize,
    pub(super) message: String,
}

pub(super) fn error(offset: usize, message: impl Into<String>) -> TextError {
    TextError { offset, message: message.into() }
}
