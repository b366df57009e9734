//! Reader that replaces byte ranges of a file, without holding the file or the result in memory.

use std::{
    io::{self, SeekFrom},
    iter::Peekable,
    ops::Range,
    vec,
};

use prost::bytes::Buf;

use super::wire::ReadSeek;

const CHUNK_LEN: usize = 1 << 16;

#[derive(Debug)]
struct Splice {
    range: Range<u64>,
    replacement: Vec<u8>,
}

/// Replacements of byte ranges of a source. The replaced byte ranges do not overlap.
#[derive(Debug, Default)]
pub(super) struct Splices {
    list: Vec<Splice>,
}

impl Splices {
    /// Adds a replacement of a byte range. Replacements at the same offset are applied in the order
    /// of the calls of `replace`.
    pub(super) fn replace(&mut self, range: Range<u64>, replacement: Vec<u8>) {
        match self.list.last_mut() {
            Some(last)
                if last.range.end == range.start
                    && last.replacement.is_empty()
                    && replacement.is_empty() =>
            {
                last.range.end = range.end;
            }
            _ => self.list.push(Splice { range, replacement }),
        }
    }

    /// Returns a reader that applies the replacements to the first `len` bytes of a source.
    pub(super) fn reader(
        self,
        source: &mut dyn ReadSeek,
        len: u64,
    ) -> io::Result<SplicedReader<'_>> {
        let mut list = self.list;
        list.sort_by_key(|splice| splice.range.start);
        let removed: u64 = list.iter().map(|splice| splice.range.end - splice.range.start).sum();
        let added: u64 = list.iter().map(|splice| splice.replacement.len() as u64).sum();
        let remaining = usize::try_from(len - removed + added).map_err(io::Error::other)?;
        source.seek(SeekFrom::Start(0))?;
        let mut reader = SplicedReader {
            source,
            splices: list.into_iter().peekable(),
            offset: 0,
            end: len,
            chunk: Vec::new(),
            consumed: 0,
            remaining,
            error: None,
        };
        reader.refill();
        Ok(reader)
    }
}

/// A reader for prost that reads a source in chunks and replaces byte ranges.
pub struct SplicedReader<'a> {
    source: &'a mut dyn ReadSeek,
    splices: Peekable<vec::IntoIter<Splice>>,
    offset: u64,
    end: u64,
    /// The chunk of bytes that was read last. Unless `remaining` is 0, the chunk contains bytes
    /// that prost has not consumed.
    chunk: Vec<u8>,
    consumed: usize,
    /// The number of bytes that prost has not consumed yet, in the chunk and after the chunk.
    remaining: usize,
    error: Option<io::Error>,
}

impl SplicedReader<'_> {
    /// Returns an error if a read of the source failed. After a failed read of the source, the
    /// reader supplies zeros to prost.
    pub(super) fn finish(self) -> io::Result<()> {
        self.error.map_or(Ok(()), Err)
    }

    pub(super) fn into_bytes(mut self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.remaining];
        self.copy_to_slice(&mut bytes);
        self.finish().map(|()| bytes)
    }

    fn refill(&mut self) {
        self.consumed = 0;
        self.chunk.clear();
        while self.chunk.is_empty() && self.remaining > 0 {
            if self.error.is_none() {
                self.error = self.read_chunk().err();
            }
            if self.error.is_some() {
                // The methods of the trait `Buf` cannot return errors, so after an error, the
                // reader supplies zeros for the remaining bytes.
                self.chunk.clear();
                self.chunk.resize(self.remaining.min(CHUNK_LEN), 0);
            }
        }
    }

    /// Reads the replacement at the current offset, or source bytes up to the next replacement.
    fn read_chunk(&mut self) -> io::Result<()> {
        if let Some(splice) = self.splices.next_if(|splice| splice.range.start == self.offset) {
            self.offset = splice.range.end;
            self.chunk = splice.replacement;
            return self.source.seek(SeekFrom::Start(self.offset)).map(drop);
        }
        let stop = self.splices.peek().map_or(self.end, |splice| splice.range.start);
        let len = (stop - self.offset).min(CHUNK_LEN as u64);
        self.chunk.resize(len as usize, 0);
        self.source.read_exact(&mut self.chunk)?;
        self.offset += len;
        Ok(())
    }
}

impl Buf for SplicedReader<'_> {
    fn remaining(&self) -> usize {
        self.remaining
    }

    fn chunk(&self) -> &[u8] {
        &self.chunk[self.consumed..]
    }

    fn advance(&mut self, count: usize) {
        let mut count = count.min(self.remaining);
        while count > 0 {
            let step = count.min(self.chunk.len() - self.consumed);
            self.consumed += step;
            self.remaining -= step;
            count -= step;
            if self.consumed == self.chunk.len() {
                self.refill();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn spliced(splices: Splices, bytes: &[u8]) -> Vec<u8> {
        let mut source = Cursor::new(bytes);
        splices.reader(&mut source, bytes.len() as u64).unwrap().into_bytes().unwrap()
    }

    #[test]
    fn replacements_are_applied_in_the_order_of_their_offsets() {
        let mut splices = Splices::default();
        splices.replace(6..6, b"X".to_vec());
        splices.replace(6..6, b"Y".to_vec());
        splices.replace(1..2, Vec::new());
        splices.replace(2..3, Vec::new());
        splices.replace(0..1, b"long".to_vec());
        splices.replace(4..5, b"e".to_vec());
        assert_eq!(spliced(splices, b"abcdEf"), b"longdefXY");
        assert_eq!(spliced(Splices::default(), b""), b"");
    }

    #[test]
    fn a_source_longer_than_a_chunk_is_read_completely() {
        let bytes: Vec<u8> = (0..3 * CHUNK_LEN + 5).map(|i| (i % 251) as u8).collect();
        assert!(spliced(Splices::default(), &bytes) == bytes);
        let mut splices = Splices::default();
        splices.replace(10..(2 * CHUNK_LEN as u64), vec![1, 2]);
        let want = [&bytes[..10], &[1, 2], &bytes[2 * CHUNK_LEN..]].concat();
        assert!(spliced(splices, &bytes) == want);
    }

    /// A source can be shorter than `len`, for example after another process truncated the file.
    #[test]
    fn a_source_that_ends_early_is_an_error_of_finish() {
        let mut source = Cursor::new(b"abc");
        let mut reader = Splices::default().reader(&mut source, 5).unwrap();
        let mut bytes = [1; 5];
        reader.copy_to_slice(&mut bytes);
        assert_eq!(bytes, [0; 5]);
        assert_eq!(reader.finish().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
