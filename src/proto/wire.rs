//! Keys, numbers and lengths, read from bytes or from a file; what is wrong is told by its offset.

use std::io::{self, BufReader, Read, Seek};

use prost::encoding::WireType;

/// Bytes in memory, or a file.
pub(super) trait ReadSeek: Read + Seek {}

impl<S: Read + Seek> ReadSeek for S {}

/// Why bytes are no message.
#[derive(Debug)]
pub(super) enum WireError {
    Io(io::Error),
    Bad { at: u64, why: String },
}

impl From<io::Error> for WireError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

pub(super) type WireResult<T> = Result<T, WireError>;

pub(super) fn bad<T>(at: u64, why: impl Into<String>) -> WireResult<T> {
    Err(WireError::Bad { at, why: why.into() })
}

/// Number and wire type in front of a value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    /// Zero only in what ends a message, see [`Key::ends`].
    pub(super) number: u32,
    pub(super) wire: WireType,
}

impl Key {
    /// Whether protobuf's C++ library takes it as the end of a message of no given length.
    pub(super) fn ends(self) -> bool {
        self.wire == WireType::EndGroup || self.number == 0
    }
}

/// As many levels as protobuf allows, and prost.
const MAX_DEPTH: usize = 100;

/// A place in a source, with buffered bytes behind it.
///
/// Every method that reads is told where the message around it ends. It checks that before it reads
/// or allocates, so that nothing but bytes there are costs anything.
pub(super) struct WireReader<'a> {
    reader: BufReader<&'a mut dyn ReadSeek>,
    at: u64,
}

impl<'a> WireReader<'a> {
    /// From where the source stands, which counts as offset 0.
    pub(super) fn new(source: &'a mut dyn ReadSeek) -> Self {
        Self { reader: BufReader::new(source), at: 0 }
    }

    /// Bytes before the next one.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    pub(super) fn key(&mut self, end: u64) -> WireResult<Key> {
        let at = self.at;
        let raw = self.varint(end)?;
        let wire = match WireType::try_from(raw & 7) {
            Ok(wire) if raw <= u32::MAX.into() => wire,
            _ => return bad(at, format!("no field has the key {raw:#x}")),
        };
        let number = (raw >> 3) as u32;
        // Of the keys with number 0, C++ takes the zero byte alone as an end.
        if number == 0 && raw != 0 && wire != WireType::EndGroup {
            return bad(at, "a field of number 0");
        }
        Ok(Key { number, wire })
    }

    pub(super) fn varint(&mut self, end: u64) -> WireResult<u64> {
        let start = self.at;
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            if self.at >= end {
                return bad(self.at, "the bytes end within a number");
            }
            let mut byte = [0];
            self.reader.read_exact(&mut byte)?;
            self.at += 1;
            if shift == 63 && byte[0] > 1 {
                break;
            }
            value |= u64::from(byte[0] & 0x7f) << shift;
            if byte[0] < 0x80 {
                return Ok(value);
            }
        }
        bad(start, "a number of more than 64 bits")
    }

    /// Where a value ends that tells its length.
    pub(super) fn length(&mut self, end: u64) -> WireResult<u64> {
        let start = self.at;
        let length = self.varint(end)?;
        let left = end - self.at;
        if length > left {
            return bad(start, format!("a length of {length} bytes where {left} are left"));
        }
        Ok(self.at + length)
    }

    /// Goes to `stop`, which lies between here and the end.
    pub(super) fn skip_to(&mut self, stop: u64) -> WireResult<()> {
        self.reader.seek_relative(stop.wrapping_sub(self.at) as i64)?;
        self.at = stop;
        Ok(())
    }

    /// The bytes up to `stop`, which lies between here and the end.
    pub(super) fn take_to(&mut self, stop: u64) -> WireResult<Vec<u8>> {
        let length = usize::try_from(stop - self.at).map_err(io::Error::other)?;
        let mut bytes = vec![0; length];
        self.reader.read_exact(&mut bytes)?;
        self.at = stop;
        Ok(bytes)
    }

    /// Passes over a value of any kind, whatever it means.
    pub(super) fn skip_value(&mut self, key: Key, end: u64) -> WireResult<()> {
        let mut open = Vec::new();
        let mut key = key;
        loop {
            match key.wire {
                WireType::Varint => drop(self.varint(end)?),
                WireType::SixtyFourBit => self.skip_fixed(8, end)?,
                WireType::ThirtyTwoBit => self.skip_fixed(4, end)?,
                WireType::LengthDelimited => {
                    let stop = self.length(end)?;
                    self.skip_to(stop)?;
                }
                WireType::StartGroup if open.len() == MAX_DEPTH => {
                    return bad(self.at, format!("groups nested more than {MAX_DEPTH} deep"));
                }
                WireType::StartGroup => open.push(key.number),
                WireType::EndGroup if open.last() == Some(&key.number) => drop(open.pop()),
                WireType::EndGroup => return bad(self.at, "the end of a group that is not open"),
            }
            if open.is_empty() {
                return Ok(());
            }
            key = self.key(end)?;
            if key.number == 0 {
                return bad(self.at, "a zero byte within a group");
            }
        }
    }

    fn skip_fixed(&mut self, length: u64, end: u64) -> WireResult<()> {
        let left = end - self.at;
        if length > left {
            return bad(self.at, format!("a value of {length} bytes where {left} are left"));
        }
        self.skip_to(self.at + length)
    }

    /// The bytes from `start`, which were passed, up to here.
    pub(super) fn again_from(&mut self, start: u64) -> WireResult<Vec<u8>> {
        let stop = self.at;
        self.skip_to(start)?;
        self.take_to(stop)
    }
}

/// Calls `each` with the number, the wire type and all bytes of every field of `bytes`.
pub(super) fn fields(bytes: &[u8], mut each: impl FnMut(Key, &[u8])) -> WireResult<()> {
    let mut source = io::Cursor::new(bytes);
    let mut input = WireReader::new(&mut source);
    let end = bytes.len() as u64;
    while input.at < end {
        let start = input.at;
        let key = input.key(end)?;
        input.skip_value(key, end)?;
        each(key, &bytes[start as usize..input.at as usize]);
    }
    Ok(())
}
