//! A walk over the bytes of a message before prost reads them.
//!
//! prost says little about where bytes are wrong, drops what it does not know, and is stricter than
//! protobuf's C++ library. The walk passes over values without reading them, tells offset and path
//! of what is wrong, picks up unknown fields, and lists the changes after which prost reads what
//! C++ reads.

use std::{collections::BTreeMap, fmt, ops::Range};

use prost::encoding::encode_varint;

use super::{
    splice::Splices,
    schema::{Field, MESSAGES, Schema, WireEncoding},
    wire::{self, Key, ReadSeek, WireError, WireReader, WireResult, bad},
};

/// One step from a message to one in it: the field's number, and which of its values, counted from
/// 0; always 0 in a field that does not repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathStep {
    /// The field's number, such as 100 for the layers of a net.
    pub field: u32,
    /// Which of the field's messages.
    pub index: usize,
}

/// Bytes of unknown fields by the path of their message.
pub(super) type Fields = BTreeMap<Vec<PathStep>, Vec<u8>>;

/// What a walk found.
#[derive(Debug, Default)]
pub(super) struct ScanResult {
    /// What has to be changed for prost to read the bytes as C++ does.
    pub(super) edits: Splices,
    /// Unknown fields, if they were asked for.
    pub(super) unknown: Fields,
    /// What a reader of the file should hear about.
    pub(super) remarks: Vec<String>,
}

/// What a walk does with unknown fields.
pub(super) enum UnknownFieldAction<'a> {
    Pass,
    Collect,
    /// Puts these at the end of their messages. Those put somewhere are taken out.
    Graft(&'a mut Fields),
}

/// Walks over `length` bytes of a source; an error tells offset and path.
pub(super) fn scan(
    schema: &'static Schema,
    source: &mut dyn ReadSeek,
    length: u64,
    task: UnknownFieldAction<'_>,
) -> Result<ScanResult, WireError> {
    let path = Path::default();
    let mut scan =
        Scan { input: WireReader::new(source), path, task, found: ScanResult::default() };
    match scan.message(schema, length) {
        Ok(_) => Ok(scan.found),
        Err(WireError::Bad { at, why }) if scan.path.steps.is_empty() => {
            bad(at, format!("byte {at}: {why}"))
        }
        Err(WireError::Bad { at, why }) => bad(at, format!("byte {at}, in {}: {why}", scan.path)),
        Err(error) => Err(error),
    }
}

/// Where a walk is.
#[derive(Default)]
struct Path {
    steps: Vec<PathStep>,
    /// The fields of the steps; none for an unknown one.
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
        for (place, (step, field)) in self.steps.iter().zip(&self.fields).enumerate() {
            f.write_str(if place == 0 { "" } else { "." })?;
            match field {
                Some(field) if field.counts() => write!(f, "{}[{}]", field.name, step.index)?,
                Some(field) => f.write_str(field.name)?,
                None => write!(f, "field {}", step.field)?,
            }
        }
        Ok(())
    }
}

struct Scan<'a> {
    input: WireReader<'a>,
    /// Left as it was where the walk fails.
    path: Path,
    task: UnknownFieldAction<'a>,
    found: ScanResult,
}

impl Scan<'_> {
    /// A message that ends at `end`. Returns by how many bytes the changes make it longer.
    ///
    /// Recurses as Caffe's messages nest, which none does in itself.
    fn message(&mut self, schema: &'static Schema, end: u64) -> WireResult<i64> {
        let mut counts = vec![0; schema.len()];
        let (mut growth, mut known) = (0, false);
        while self.input.at() < end {
            let start = self.input.at();
            let key = self.input.key(end)?;
            if key.ends() {
                growth += self.stop(start..end)?;
                break;
            }
            match schema.field(key.number) {
                Some((place, field)) if field.takes(key.wire) => {
                    known = true;
                    let index = if field.repeated { counts[place] } else { 0 };
                    counts[place] += 1;
                    self.path.push(Some(field), PathStep { field: key.number, index });
                    growth += self.value(field, key, end)?;
                    self.path.pop();
                }
                misfit => growth += self.stray(key, start..end, misfit.is_some())?,
            }
        }
        if self.path.steps.is_empty()
            && !known
            && end > 0
            && !matches!(self.task, UnknownFieldAction::Graft(_))
        {
            return bad(0, format!("no field of a {} is here", schema.name));
        }
        Ok(growth + self.graft(schema))
    }

    /// What C++ takes as the end of the outermost message, whatever follows.
    fn stop(&mut self, rest: Range<u64>) -> WireResult<i64> {
        if !self.path.steps.is_empty() {
            return bad(rest.start, "a zero byte or the end of a group in place of a field");
        }
        self.found.remarks.push(format!(
            "the message ends at byte {}, and {} bytes are not read",
            rest.start,
            rest.end - rest.start
        ));
        let growth = -((rest.end - rest.start) as i64);
        self.found.edits.replace(rest, Vec::new());
        Ok(growth)
    }

    /// An unknown field; `misfit` if it has the number of a known one, which prost does not take.
    fn stray(&mut self, key: Key, rest: Range<u64>, misfit: bool) -> WireResult<i64> {
        self.path.push(None, PathStep { field: key.number, index: 0 });
        self.input.skip_value(key, rest.end)?;
        self.path.pop();
        if matches!(self.task, UnknownFieldAction::Collect) {
            let bytes = self.input.again_from(rest.start)?;
            self.found.unknown.entry(self.path.steps.clone()).or_default().extend(bytes);
        }
        let here = self.input.at();
        if !misfit {
            return Ok(0);
        }
        self.found.edits.replace(rest.start..here, Vec::new());
        Ok(-((here - rest.start) as i64))
    }

    /// The value of a known field. Returns by how many bytes the changes make it longer.
    fn value(&mut self, field: &Field, key: Key, end: u64) -> WireResult<i64> {
        if key.wire != prost::encoding::WireType::LengthDelimited {
            return self.input.skip_value(key, end).map(|()| 0);
        }
        let prefix = self.input.at();
        let stop = self.input.length(end)?;
        let start = self.input.at();
        let growth = match field.kind {
            WireEncoding::Message(place) => self.message(&MESSAGES[place], stop)?,
            WireEncoding::Text => self.text(stop)?,
            WireEncoding::Varint => self.varints(stop)?,
            WireEncoding::Fixed32 => self.fixed(4, stop)?,
            WireEncoding::Fixed64 => self.fixed(8, stop)?,
            WireEncoding::Bytes => self.input.skip_to(stop).map(|()| 0)?,
        };
        if growth == 0 {
            return Ok(0);
        }
        let mut length = Vec::new();
        encode_varint((stop - start).wrapping_add_signed(growth), &mut length);
        let longer = length.len() as i64 - (start - prefix) as i64;
        self.found.edits.replace(prefix..start, length);
        Ok(growth + longer)
    }

    fn varints(&mut self, stop: u64) -> WireResult<i64> {
        while self.input.at() < stop {
            self.input.varint(stop)?;
        }
        Ok(0)
    }

    fn fixed(&mut self, size: u64, stop: u64) -> WireResult<i64> {
        let (at, length) = (self.input.at(), stop - self.input.at());
        if length % size != 0 {
            return bad(at, format!("{length} bytes of values of {size} bytes each"));
        }
        self.input.skip_to(stop).map(|()| 0)
    }

    /// A string. C++ takes any bytes; Rust's strings are UTF-8, so other encodings of text are
    /// replaced. Text has no control characters but tabs and line ends: with them, this is some
    /// other kind of file.
    fn text(&mut self, stop: u64) -> WireResult<i64> {
        let at = self.input.at();
        let bytes = self.input.take_to(stop)?;
        if str::from_utf8(&bytes).is_ok() {
            return Ok(0);
        }
        if bytes.iter().any(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace()) {
            return bad(at, "this string is no text");
        }
        let with = String::from_utf8_lossy(&bytes).into_owned().into_bytes();
        let replaced = format!("byte {at}, in {}: this string is not UTF-8", self.path);
        self.found.remarks.push(format!("{replaced}; what is not is read as \u{fffd}"));
        let growth = with.len() as i64 - bytes.len() as i64;
        self.found.edits.replace(at..stop, with);
        Ok(growth)
    }

    /// Puts unknown fields at the end of the message that is here, if there are some for it.
    fn graft(&mut self, schema: &Schema) -> i64 {
        let UnknownFieldAction::Graft(unknown) = &mut self.task else { return 0 };
        let Some(fields) = unknown.remove(&self.path.steps) else { return 0 };
        let (fields, known) = unknown_to(schema, &fields);
        if known > 0 {
            self.found.remarks.push(format!(
                "{known} unknown fields are left out of {}: a {} knows their numbers",
                self.path, schema.name
            ));
        }
        let (here, growth) = (self.input.at(), fields.len() as i64);
        self.found.edits.replace(here..here, fields);
        growth
    }
}

/// Those of some fields that a message does not know, and how many it knows. A message that moved
/// to another type may carry such: written as they are, they would change the values there.
fn unknown_to(schema: &Schema, fields: &[u8]) -> (Vec<u8>, usize) {
    let (mut unknown, mut known) = (Vec::with_capacity(fields.len()), 0);
    // Only whole fields were collected.
    let _ = wire::fields(fields, |key, bytes| match schema.field(key.number) {
        Some((_, field)) if field.takes(key.wire) => known += 1,
        _ => unknown.extend_from_slice(bytes),
    });
    (unknown, known)
}
