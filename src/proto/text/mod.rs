//! Messages in protobuf's text format (prototxt), as Google's C++ library 3.21 reads and prints it.
//!
//! Text is turned into the binary format and then read as such, and printed the other way round:
//! both follow the descriptors of `proto/caffe.proto`, and neither needs to know the Rust types.

mod lexer;
mod number;
mod parser;
mod printer;
#[cfg(test)]
mod tests;

use std::{fs, path::Path, sync::LazyLock};

use prost::{Message, Name};
use prost_reflect::{DescriptorPool, MessageDescriptor};

use super::atomic_fs;
use crate::error::{Error, Result};
use parser::UnknownFieldPolicy;

/// What is wrong, and at which byte of the text.
#[derive(Debug)]
struct TextError {
    at: usize,
    message: String,
}

/// Reads a message from text; `file` names it in errors.
///
/// Accepts what Caffe accepts: comments from `#` to the end of the line, `:` before a nested message
/// or not, `{ }` or `< >`, lists in brackets, adjacent strings, `,` or `;` after a field. Enums go
/// by name or number. Bytes that are not UTF-8 may stand in comments.
///
/// Fails with [`Error::Parse`], which holds line and column (in characters), at the first thing that
/// does not fit: syntax, an unknown field, a field that is given twice but does not repeat, a value
/// outside its type, a missing required field.
pub fn parse_text<M>(text: impl AsRef<[u8]>, file: &str) -> Result<M>
where
    M: Message + Name + Default,
{
    parse(text.as_ref(), file, UnknownFieldPolicy::Reject)
}

/// Reads a message as [`parse_text`] does, but passes over fields that its type does not have, with a
/// warning in the log for each: as extended Caffes write them. What remains may mean something else.
pub fn parse_text_lossy<M>(text: impl AsRef<[u8]>, file: &str) -> Result<M>
where
    M: Message + Name + Default,
{
    parse(text.as_ref(), file, UnknownFieldPolicy::Skip)
}

fn parse<M>(text: &[u8], file: &str, strangers: UnknownFieldPolicy) -> Result<M>
where
    M: Message + Name + Default,
{
    let error = |TextError { at, message }| {
        let (line, column) = position(text, at);
        Error::Parse { file: file.to_owned(), line, column, message }
    };
    let (wire, skipped) = parser::parse(&descriptor::<M>()?, text, strangers).map_err(error)?;
    skipped.into_iter().for_each(|fault| log::warn!("{}: passed over", error(fault)));
    super::parse_binary(&wire, file)
}

/// Reads a text file, such as a prototxt, as [`parse_text`] does.
#[doc(alias = "ReadProtoFromTextFile")]
pub fn read_text<M: Message + Name + Default>(path: impl AsRef<Path>) -> Result<M> {
    let path = path.as_ref();
    let text = fs::read(path).map_err(|source| Error::io(path, source))?;
    parse_text(text, &path.display().to_string())
}

/// Reads a text file as [`parse_text_lossy`] does.
pub fn read_text_lossy<M: Message + Name + Default>(path: impl AsRef<Path>) -> Result<M> {
    let path = path.as_ref();
    let text = fs::read(path).map_err(|source| Error::io(path, source))?;
    parse_text_lossy(text, &path.display().to_string())
}

/// A message as text, laid out as Caffe does: a field a line in the order of their numbers, two
/// spaces per level, bytes outside printable ASCII as octal escapes.
///
/// Reading it back gives the same message, unless an enum holds a number without a name; that is
/// printed as a number. Fails with [`Error::InvalidData`] if the type is not one of Caffe's.
pub fn to_text<M: Message + Name>(message: &M) -> Result<String> {
    printer::print(&descriptor::<M>()?, &message.encode_to_vec()).ok_or_else(|| {
        Error::InvalidData(format!("this {} does not fit its description", M::full_name()))
    })
}

/// Writes a text file, whole or not at all; an earlier one is replaced.
#[doc(alias = "WriteProtoToTextFile")]
pub fn write_text<M: Message + Name>(path: impl AsRef<Path>, message: &M) -> Result<()> {
    atomic_fs::write_atomically(path.as_ref(), to_text(message)?.as_bytes())
}

/// How a message type is built.
fn descriptor<M: Name>() -> Result<MessageDescriptor> {
    static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
        // `tests/generated.rs` made these bytes from descriptors that had been checked.
        DescriptorPool::decode(&include_bytes!("../generated/caffe.fds")[..]).unwrap_or_default()
    });
    let name = M::full_name();
    POOL.get_message_by_name(&name)
        .ok_or_else(|| Error::InvalidData(format!("{name} is not one of Caffe's messages")))
}

/// Line and column of a byte, from 1.
fn position(text: &[u8], at: usize) -> (usize, usize) {
    let before = &text[..at.min(text.len())];
    let line = before.iter().filter(|&&byte| byte == b'\n').count();
    let start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
    // A character of UTF-8 counts once: at its first byte.
    let column = before[start..].iter().filter(|&&byte| byte & 0xc0 != 0x80).count();
    (line + 1, column + 1)
}
