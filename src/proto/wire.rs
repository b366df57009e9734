//! Reader of protobuf's wire format: keys, varints and lengths. Errors state the byte offset of the
//! invalid data.

use std::io::{self, BufReader, Read, Seek};

use prost::encoding::WireType;

/// A source of encoded bytes with random access: bytes in memory, or a file.
pub(super) trait ReadSeek: Read + Seek {}

impl<S: Read + Seek> ReadSeek for S {}

/// The reason why a message could not be read.
#[derive(Debug)]
pub(super) enum WireError {
    Io(io::Error),
    Malformed { offset: u64, reason: String },
}

impl From<io::Error> for WireError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

pub(super) type WireResult<T> = Result<T, WireError>;

pub(super) fn malformed<T>(offset: u64, reason: impl Into<String>) -> WireResult<T> {
    Err(WireError::Malformed { offset, reason: reason.into() })
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    /// The field number; 0 only in a key that ends a message (see [`Key::ends_message`]).
    pub(super) number: u32,
    pub(super) wire_type: WireType,
}

impl Key {
    /// Returns whether protobuf's C++ library ends the outermost message at this key.
    pub(super) fn ends_message(self) -> bool {
        self.wire_type == WireType::EndGroup || self.number == 0
    }
}

/// The maximum nesting depth of groups, as in protobuf and prost.
const MAX_DEPTH: usize = 100;

/// A buffered reader that tracks its offset in the source.
///
/// The methods check every varint and length against the end of the enclosing message before they
/// read or allocate, so a wrong length in the source cannot cause an allocation larger than the
/// source.
pub(super) struct WireReader<'a> {
    reader: BufReader<&'a mut dyn ReadSeek>,
    offset: u64,
}

impl<'a> WireReader<'a> {
    /// Creates a reader whose offset 0 is the current position of the source.
    pub(super) fn new(source: &'a mut dyn ReadSeek) -> Self {
        Self { reader: BufReader::new(source), offset: 0 }
    }

    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    pub(super) fn key(&mut self, end: u64) -> WireResult<Key> {
        let offset = self.offset;
        let raw_key = self.varint(end)?;
        let wire_type = match WireType::try_from(raw_key & 7) {
            Ok(wire_type) if raw_key <= u32::MAX.into() => wire_type,
            _ => return malformed(offset, format!("invalid field key {raw_key:#x}")),
        };
        let number = (raw_key >> 3) as u32;
        // Protobuf's C++ library ends a message at a zero byte, but rejects every other key with
        // field number 0.
        if number == 0 && raw_key != 0 && wire_type != WireType::EndGroup {
            return malformed(offset, "field number 0");
        }
        Ok(Key { number, wire_type })
    }

    pub(super) fn varint(&mut self, end: u64) -> WireResult<u64> {
        let start = self.offset;
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            if self.offset >= end {
                return malformed(self.offset, "truncated varint");
            }
            let mut byte = [0];
            self.reader.read_exact(&mut byte)?;
            self.offset += 1;
            if shift == 63 && byte[0] > 1 {
                break;
            }
            value |= u64::from(byte[0] & 0x7f) << shift;
            if byte[0] < 0x80 {
                return Ok(value);
            }
        }
        malformed(start, "varint longer than 64 bits")
    }

    /// Reads the length of a length-delimited value. Returns the offset of the end of the
    /// length-delimited value.
    pub(super) fn delimited_end(&mut self, end: u64) -> WireResult<u64> {
        let start = self.offset;
        let len = self.varint(end)?;
        let remaining = end - self.offset;
        if len > remaining {
            return malformed(start, format!("length {len} exceeds remaining length {remaining}"));
        }
        Ok(self.offset + len)
    }

    /// Skips to the offset `stop`, which must not exceed the end of the current message.
    pub(super) fn skip_to(&mut self, stop: u64) -> WireResult<()> {
        self.reader.seek_relative(stop.wrapping_sub(self.offset) as i64)?;
        self.offset = stop;
        Ok(())
    }

    /// Reads the bytes up to the offset `stop`, which must not exceed the end of the current
    /// message.
    pub(super) fn read_to(&mut self, stop: u64) -> WireResult<Vec<u8>> {
        let len = usize::try_from(stop - self.offset).map_err(io::Error::other)?;
        let mut bytes = vec![0; len];
        self.reader.read_exact(&mut bytes)?;
        self.offset = stop;
        Ok(bytes)
    }

    /// Skips a value of any wire type, including a whole group.
    pub(super) fn skip_value(&mut self, key: Key, end: u64) -> WireResult<()> {
        let mut open_groups = Vec::new();
        let mut key = key;
        loop {
            match key.wire_type {
                WireType::Varint => drop(self.varint(end)?),
                WireType::SixtyFourBit => self.skip_fixed(8, end)?,
                WireType::ThirtyTwoBit => self.skip_fixed(4, end)?,
                WireType::LengthDelimited => {
                    let stop = self.delimited_end(end)?;
                    self.skip_to(stop)?;
                }
                WireType::StartGroup if open_groups.len() == MAX_DEPTH => {
                    let reason = format!("groups nested more than {MAX_DEPTH} deep");
                    return malformed(self.offset, reason);
                }
                WireType::StartGroup => open_groups.push(key.number),
                WireType::EndGroup if open_groups.last() == Some(&key.number) => {
                    open_groups.pop();
                }
                WireType::EndGroup => {
                    return malformed(self.offset, "end-group tag without a start-group tag");
                }
            }
            if open_groups.is_empty() {
                return Ok(());
            }
            key = self.key(end)?;
            if key.number == 0 {
                return malformed(self.offset, "zero byte inside a group");
            }
        }
    }

    fn skip_fixed(&mut self, len: u64, end: u64) -> WireResult<()> {
        let remaining = end - self.offset;
        if len > remaining {
            let reason = format!("value of {len} bytes exceeds remaining length {remaining}");
            return malformed(self.offset, reason);
        }
        self.skip_to(self.offset + len)
    }

    /// Rereads the bytes from the offset `start` to the current offset.
    pub(super) fn reread_from(&mut self, start: u64) -> WireResult<Vec<u8>> {
        let stop = self.offset;
        self.skip_to(start)?;
        self.read_to(stop)
    }
}

/// Calls `visit` for each field in `bytes`, with the decoded key and the bytes of the whole field.
pub(super) fn for_each_field(bytes: &[u8], mut visit: impl FnMut(Key, &[u8])) -> WireResult<()> {
    let mut source = io::Cursor::new(bytes);
    let mut reader = WireReader::new(&mut source);
    let end = bytes.len() as u64;
    while reader.offset < end {
        let start = reader.offset;
        let key = reader.key(end)?;
        reader.skip_value(key, end)?;
        visit(key, &bytes[start as usize..reader.offset as usize]);
    }
    Ok(())
}
