//! Scan of the bytes of a binary message before prost decodes the message.
//!
//! prost does not report the offset of malformed bytes, drops unknown fields, and is stricter than
//! protobuf's C++ library. The scan skips values without decoding them. The scan collects unknown
//! fields, reports errors with offset and field path, and lists replacements of byte ranges. prost
//! decodes the bytes with these replacements to the same message as protobuf's C++ library.

use std::{collections::BTreeMap, fmt, ops::Range};

use prost::encoding::{WireType, encode_varint};

use crate::limits;

use super::{
    schema::{Field, FieldType, Schema},
    splice::Splices,
    wire::{Key, ReadSeek, WireError, WireReader, WireResult, for_each_field, malformed},
};

/// One step of a path from a message to a nested message.
///
/// ```
/// use cortado::proto::{NetParameter, PathStep, UnknownFields};
///
/// // The layer (field 100) has an unknown field 1000 with the value 1.
/// let bytes = [0xa2, 0x06, 0x03, 0xc0, 0x3e, 0x01];
/// let (_, unknown) = UnknownFields::parse::<NetParameter>(&bytes, "net.caffemodel")?;
/// let first_layer = [PathStep { field: 100, index: 0 }];
/// assert_eq!(unknown.paths().collect::<Vec<_>>(), [&first_layer]);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathStep {
    /// The field's number, such as 100 for the layers of a net.
    pub field: u32,
    /// The index of the nested message among the messages of a repeated field; 0 if the field is
    /// not repeated.
    pub index: usize,
}

/// The bytes of unknown fields, keyed by the path of the message that contains the fields.
pub(super) type FieldsByPath = BTreeMap<Vec<PathStep>, Vec<u8>>;

#[derive(Debug, Default)]
pub(super) struct ScanResult {
    /// Replacements of byte ranges, so that prost decodes the same message as protobuf's C++
    /// library.
    pub(super) splices: Splices,
    pub(super) unknown: FieldsByPath,
    pub(super) warnings: Vec<String>,
}

/// The action that the scan takes on unknown fields.
pub(super) enum UnknownFieldAction<'a> {
    Ignore,
    Collect,
    /// Inserts the unknown fields of each path in the map at the end of the message with this path,
    /// and removes them from the map.
    Insert(&'a mut FieldsByPath),
}

/// Scans the message in the first `len` bytes of a source. Error messages state the byte offset and
/// the field path.
pub(super) fn scan(
    schema: &'static Schema,
    source: &mut dyn ReadSeek,
    len: u64,
    action: UnknownFieldAction<'_>,
) -> Result<ScanResult, WireError> {
    let (reader, path) = (WireReader::new(source), Path::default());
    let result = ScanResult::default();
    let mut scan = Scan { reader, path, action, result, len, needed: 0, dropped_warnings: 0 };
    match scan.message(schema, len) {
        Ok(_) => Ok(scan.finish()),
        Err(WireError::Malformed { offset, reason }) if scan.path.steps.is_empty() => {
            malformed(offset, format!("byte {offset}: {reason}"))
        }
        Err(WireError::Malformed { offset, reason }) => {
            malformed(offset, format!("byte {offset}, in {}: {reason}", scan.path))
        }
        Err(error) => Err(error),
    }
}

#[derive(Default)]
struct Path {
    steps: Vec<PathStep>,
    /// The field of each step of the path; `None` for an unknown field.
    fields: Vec<Option<&'static Field>>,
}

impl Path {
    fn push(&mut self, field: Option<&'static Field>, step: PathStep) {
        self.steps.push(step);
        self.fields.push(field);
    }

    fn pop(&mut self) {
        self.steps.pop();
        self.fields.pop();
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.steps.is_empty() {
            return f.write_str("the message");
        }
        for (depth, (step, field)) in self.steps.iter().zip(&self.fields).enumerate() {
            f.write_str(if depth == 0 { "" } else { "." })?;
            match field {
                Some(field) if field.is_indexed() => write!(f, "{}[{}]", field.name, step.index)?,
                Some(field) => f.write_str(field.name)?,
                None => write!(f, "field {}", step.field)?,
            }
        }
        Ok(())
    }
}

/// The memory in bytes for one replacement of a byte range.
const SPLICE_SIZE: u64 = 64;

struct Scan<'a> {
    reader: WireReader<'a>,
    /// The path of the field that is being scanned. If the scan fails, the error message of
    /// [`scan`] contains the path of the field.
    path: Path,
    action: UnknownFieldAction<'a>,
    result: ScanResult,
    /// The length of the outermost message in bytes.
    len: u64,
    /// The memory in bytes that prost needs for the messages and strings scanned so far.
    needed: u64,
    dropped_warnings: usize,
}

impl Scan<'_> {
    /// Scans a message that ends at the offset `end`. Returns the number of bytes by which the
    /// replacements lengthen the message.
    ///
    /// The recursion depth is bounded, because no message type of Caffe contains itself.
    fn message(&mut self, schema: &'static Schema, end: u64) -> WireResult<i64> {
        self.charge(schema.size as u64)?;
        let mut counts = vec![0; schema.fields().len()];
        let (mut growth, mut known) = (0, false);
        while self.reader.offset() < end {
            let start = self.reader.offset();
            let key = self.reader.key(end)?;
            if key.ends_message() {
                growth += self.end_outermost(start..end)?;
                break;
            }
            match schema.field(key.number) {
                Some((field_index, field)) if field.accepts(key.wire_type) => {
                    known = true;
                    let index = if field.is_repeated() { counts[field_index] } else { 0 };
                    counts[field_index] += 1;
                    self.path.push(Some(field), PathStep { field: key.number, index });
                    growth += self.value(field, key, end)?;
                    self.path.pop();
                }
                other => growth += self.unknown_field(key, start..end, other.is_some())?,
            }
        }
        if self.path.steps.is_empty()
            && !known
            && end > 0
            && !matches!(self.action, UnknownFieldAction::Insert(_))
        {
            return malformed(0, "no known field");
        }
        Ok(growth + self.insert_unknown(schema))
    }

    /// Ends the outermost message and removes the remaining bytes, like protobuf's C++ library.
    fn end_outermost(&mut self, rest: Range<u64>) -> WireResult<i64> {
        if !self.path.steps.is_empty() {
            return malformed(rest.start, "zero byte or end of a group in place of a field");
        }
        self.warn(format!(
            "the message ends at byte {}; the remaining {} bytes are ignored",
            rest.start,
            rest.end - rest.start
        ));
        let growth = -((rest.end - rest.start) as i64);
        self.result.splices.replace(rest, Vec::new());
        Ok(growth)
    }

    /// Scans an unknown field. If `known_number` is `true`, the message type declares a field with
    /// this number, but with a different wire type. The scan removes a field with a different wire
    /// type, because prost would reject the message.
    fn unknown_field(&mut self, key: Key, rest: Range<u64>, known_number: bool) -> WireResult<i64> {
        self.path.push(None, PathStep { field: key.number, index: 0 });
        self.reader.skip_value(key, rest.end)?;
        self.path.pop();
        if matches!(self.action, UnknownFieldAction::Collect) {
            let bytes = self.reader.reread_from(rest.start)?;
            self.result.unknown.entry(self.path.steps.clone()).or_default().extend(bytes);
        }
        let end = self.reader.offset();
        if !known_number {
            return Ok(0);
        }
        self.charge(SPLICE_SIZE)?;
        self.result.splices.replace(rest.start..end, Vec::new());
        Ok(-((end - rest.start) as i64))
    }

    /// Scans the value of a known field. Returns the number of bytes by which the replacements
    /// lengthen the value.
    fn value(&mut self, field: &Field, key: Key, end: u64) -> WireResult<i64> {
        if key.wire_type != WireType::LengthDelimited {
            if field.is_repeated() {
                self.charge(field.kind.element_size())?;
            }
            return self.reader.skip_value(key, end).map(|()| 0);
        }
        let prefix = self.reader.offset();
        let stop = self.reader.delimited_end(end)?;
        let start = self.reader.offset();
        let growth = match field.kind {
            FieldType::Message(schema) => self.message(schema, stop)?,
            FieldType::String => self.text(stop)?,
            FieldType::Bytes => self.reader.skip_to(stop).map(|()| 0)?,
            FieldType::Float => self.fixed(4, stop)?,
            FieldType::Double => self.fixed(8, stop)?,
            _ => self.varints(field.kind.element_size(), stop)?,
        };
        if growth == 0 {
            return Ok(0);
        }
        let mut len = Vec::new();
        encode_varint((stop - start).wrapping_add_signed(growth), &mut len);
        let prefix_growth = len.len() as i64 - (start - prefix) as i64;
        self.charge(SPLICE_SIZE)?;
        self.result.splices.replace(prefix..start, len);
        Ok(growth + prefix_growth)
    }

    fn varints(&mut self, element_size: u64, stop: u64) -> WireResult<i64> {
        while self.reader.offset() < stop {
            self.charge(element_size)?;
            self.reader.varint(stop)?;
        }
        Ok(0)
    }

    fn fixed(&mut self, size: u64, stop: u64) -> WireResult<i64> {
        let (start, len) = (self.reader.offset(), stop - self.reader.offset());
        if len % size != 0 {
            let reason = format!("packed length of {len} bytes is not a multiple of {size}");
            return malformed(start, reason);
        }
        self.reader.skip_to(stop).map(|()| 0)
    }

    /// Scans a string. Protobuf's C++ library accepts any bytes in a string, but Rust's strings are
    /// UTF-8, so the scan replaces bytes that are not UTF-8. Text in common 8-bit encodings, such
    /// as Latin-1, has no control characters except tabs and line breaks. If a string that is not
    /// UTF-8 contains control characters other than white space, the scan rejects the file, which
    /// probably has another message type.
    fn text(&mut self, stop: u64) -> WireResult<i64> {
        let start = self.reader.offset();
        self.charge(size_of::<String>() as u64)?;
        let bytes = self.reader.read_to(stop)?;
        if str::from_utf8(&bytes).is_ok() {
            return Ok(0);
        }
        if bytes.iter().any(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace()) {
            return malformed(start, "the string is not UTF-8 and contains control characters");
        }
        let replacement = String::from_utf8_lossy(&bytes).into_owned().into_bytes();
        let warning = format!("byte {start}, in {}: string is not UTF-8", self.path);
        self.warn(format!("{warning}; invalid bytes are read as \u{fffd}"));
        self.charge(SPLICE_SIZE + replacement.len() as u64)?;
        let growth = replacement.len() as i64 - bytes.len() as i64;
        self.result.splices.replace(start..stop, replacement);
        Ok(growth)
    }

    /// Counts memory that prost, or a replacement of a byte range, needs in addition to the bytes
    /// of the file. Fails if an empty message or string, which a file stores in two or three bytes,
    /// occurs too often. The limit on memory does not apply to a message that this process has
    /// encoded.
    fn charge(&mut self, bytes: u64) -> WireResult<()> {
        self.needed = self.needed.saturating_add(bytes);
        if self.needed > limits::expanded(self.len)
            && !matches!(self.action, UnknownFieldAction::Insert(_))
        {
            let reason = limits::exceeds_expanded(Some(self.needed), self.len);
            return malformed(self.reader.offset(), reason);
        }
        Ok(())
    }

    fn warn(&mut self, warning: String) {
        match self.result.warnings.len() < limits::WARNINGS {
            true => self.result.warnings.push(warning),
            false => self.dropped_warnings += 1,
        }
    }

    fn finish(mut self) -> ScanResult {
        if self.dropped_warnings > 0 {
            let summary = format!("{} more warnings", self.dropped_warnings);
            self.result.warnings.push(summary);
        }
        self.result
    }

    /// Inserts unknown fields at the end of the current message. Returns the number of inserted
    /// bytes.
    fn insert_unknown(&mut self, schema: &Schema) -> i64 {
        let UnknownFieldAction::Insert(unknown) = &mut self.action else { return 0 };
        let Some(fields) = unknown.remove(&self.path.steps) else { return 0 };
        let (fields, known_count) = without_known(schema, &fields);
        if known_count > 0 {
            self.warn(format!(
                "{}: dropped unknown fields ({known_count}), because {} declares the field numbers",
                self.path, schema.name
            ));
        }
        let (end, growth) = (self.reader.offset(), fields.len() as i64);
        self.result.splices.replace(end..end, fields);
        growth
    }
}

/// Removes from `fields` the fields that the message type declares. Returns the remaining bytes of
/// `fields` and the number of removed fields. An upgrade can move an unknown field to a message
/// type that declares a different field with the same number.
fn without_known(schema: &Schema, fields: &[u8]) -> (Vec<u8>, usize) {
    let (mut unknown, mut known_count) = (Vec::with_capacity(fields.len()), 0);
    // `for_each_field` cannot fail, because the scan has collected only whole fields.
    let _ = for_each_field(fields, |key, bytes| match schema.field(key.number) {
        Some((_, field)) if field.accepts(key.wire_type) => known_count += 1,
        _ => unknown.extend_from_slice(bytes),
    });
    (unknown, known_count)
}
