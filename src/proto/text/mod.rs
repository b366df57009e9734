//! Parser and printer of protobuf's text format (prototxt), compatible with Google's C++ library
//! 3.21.
//!
//! The parser converts text to the binary format, which prost decodes; the printer converts the
//! binary format to text. The parser and the printer use tables of the message types in
//! `proto/caffe.proto` and do not depend on the Rust types.

mod error;
mod ignored_fields;
mod layer_lines;
mod lexer;
mod number;
mod parser;
mod position;
mod printer;
#[cfg(test)]
mod tests;

use std::path::Path;

use super::{
    binary::parse_binary,
    schema::{CaffeMessage, Codec, Schema},
};
use crate::{
    atomic_fs,
    error::{Error, Result},
    limits,
};
use error::TextError;
pub(crate) use layer_lines::layer_lines;
use layer_lines::layer_name_at;
use parser::UnknownFieldPolicy;
use position::position;

/// Parses a message in protobuf's text format. Error messages name `file` as the source of the
/// text.
///
/// Accepts the same syntax as Caffe: comments from `#` to the end of the line, an optional `:`
/// before a nested message, `{ }` or `< >`, lists in brackets, adjacent strings, `,` or `;` after a
/// field. An enum value is written as a name or as a number. Comments may contain bytes that are
/// not UTF-8.
///
/// If a net does not need a field of a fork of Caffe to compute its outputs, such as
/// `default_forward_type` of NVIDIA's fork, the parser ignores the field and logs a warning.
///
/// # Errors
/// [`Error::Parse`] with line and column (in characters) of the first problem, and the name of the
/// layer that contains it: a syntax error, an unknown field, a second value of a field that is not
/// repeated, a value out of range, a missing required field.
pub fn parse_text<M: CaffeMessage>(text: impl AsRef<[u8]>, file: &str) -> Result<M> {
    parse(text.as_ref(), file, UnknownFieldPolicy::Reject)
}

/// Parses a message like [`parse_text`], but skips unknown fields, which forks of Caffe write, and
/// logs a warning for each skipped field. Skipping an unknown field can change the meaning of the
/// message.
pub fn parse_text_lossy<M: CaffeMessage>(text: impl AsRef<[u8]>, file: &str) -> Result<M> {
    parse(text.as_ref(), file, UnknownFieldPolicy::Skip)
}

fn parse<M>(text: &[u8], file: &str, unknown_fields: UnknownFieldPolicy) -> Result<M>
where
    M: CaffeMessage,
{
    parse_binary(&to_wire(M::default().schema(), text, file, unknown_fields)?, file)
}

/// Converts a message from the text format to the binary format.
fn to_wire(
    schema: &Schema,
    text: &[u8],
    file: &str,
    unknown_fields: UnknownFieldPolicy,
) -> Result<Vec<u8>> {
    let with_position = |TextError { offset, message }| {
        let (line, column) = position(text, offset);
        Error::Parse { file: file.to_owned(), line, column, message }
    };
    let in_layer = |TextError { offset, message }| {
        let message = match layer_name_at(text, offset) {
            Some(name) => format!("layer `{name}`: {message}"),
            None => message,
        };
        TextError { offset, message }
    };
    let (wire, warnings) = parser::parse(schema, text, unknown_fields)
        .map_err(|error| with_position(in_layer(error)))?;
    warnings.into_iter().for_each(|warning| log::warn!("{}", with_position(warning)));
    Ok(wire)
}

/// Like [`parse_text`], but reads the text from a file of at most 32 MiB, such as a prototxt.
#[doc(alias = "ReadProtoFromTextFile")]
pub fn read_text<M: CaffeMessage>(path: impl AsRef<Path>) -> Result<M> {
    read(path.as_ref(), UnknownFieldPolicy::Reject)
}

/// Reads a message from a text file and skips unknown fields, like [`parse_text_lossy`].
pub fn read_text_lossy<M: CaffeMessage>(path: impl AsRef<Path>) -> Result<M> {
    read(path.as_ref(), UnknownFieldPolicy::Skip)
}

fn read<M: CaffeMessage>(path: &Path, unknown: UnknownFieldPolicy) -> Result<M> {
    let text = limits::read(path, limits::DEFINITION_LEN)?;
    parse(&text, &path.display().to_string(), unknown)
}

/// Formats a message as text in Caffe's layout: one field per line in the order of the field
/// numbers, two spaces of indentation per level, bytes outside printable ASCII as octal escapes.
///
/// Parsing the returned text gives an equal message, except if an enum field has a number that the
/// enum does not declare: the printer prints this number, but the parser rejects it.
///
/// # Errors
/// [`Error::InvalidData`] if the message's encoding does not match the table of its message type.
pub fn to_text<M: CaffeMessage>(message: &M) -> Result<String> {
    print(message)
}

fn print(message: &dyn Codec) -> Result<String> {
    let schema = message.schema();
    printer::print(schema, &message.to_binary()).ok_or_else(|| {
        Error::InvalidData(format!("{}: the encoding does not match the descriptor", schema.name))
    })
}

/// Writes a message to a text file atomically, and replaces an existing file.
#[doc(alias = "WriteProtoToTextFile")]
pub fn write_text<M: CaffeMessage>(path: impl AsRef<Path>, message: &M) -> Result<()> {
    atomic_fs::write_atomically(path.as_ref(), print(message)?.as_bytes())
}
