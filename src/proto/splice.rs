//! Bytes read with changes made on the way, so that neither they nor the result lie in memory.

use std::{
    io::{self, SeekFrom},
    iter::Peekable,
    ops::Range,
    vec,
};

use prost::bytes::Buf;

use super::wire::ReadSeek;

/// Bytes read at a time.
const WINDOW: usize = 1 << 16;

/// Other bytes for a range of a source.
#[derive(Debug)]
struct Edit {
    at: Range<u64>,
    with: Vec<u8>,
}

/// Changes to a source; their ranges do not overlap.
#[derive(Debug, Default)]
pub(super) struct Splices {
    list: Vec<Edit>,
}

impl Splices {
    /// Puts `with` in place of a range; of those at one place, earlier ones go first.
    pub(super) fn replace(&mut self, at: Range<u64>, with: Vec<u8>) {
        match self.list.last_mut() {
            Some(last) if last.at.end == at.start && last.with.is_empty() && with.is_empty() => {
                last.at.end = at.end;
            }
            _ => self.list.push(Edit { at, with }),
        }
    }

    /// Reads `length` bytes of a source, from its beginning, with the changes made.
    pub(super) fn feed(
        self,
        source: &mut dyn ReadSeek,
        length: u64,
    ) -> io::Result<SplicedReader<'_>> {
        let mut list = self.list;
        list.sort_by_key(|edit| edit.at.start);
        let gone: u64 = list.iter().map(|edit| edit.at.end - edit.at.start).sum();
        let new: u64 = list.iter().map(|edit| edit.with.len() as u64).sum();
        let left = usize::try_from(length - gone + new).map_err(io::Error::other)?;
        source.seek(SeekFrom::Start(0))?;
        let edits = list.into_iter().peekable();
        let mut feed = SplicedReader {
            source,
            edits,
            at: 0,
            end: length,
            window: Vec::new(),
            from: 0,
            left,
            failed: None,
        };
        feed.refill();
        Ok(feed)
    }
}

/// The changed bytes, as prost reads them: through a window of bounded size.
pub(super) struct SplicedReader<'a> {
    source: &'a mut dyn ReadSeek,
    edits: Peekable<vec::IntoIter<Edit>>,
    /// Where the source stands, and ends.
    at: u64,
    end: u64,
    /// Bytes are taken from `from` on; there are some unless nothing is left.
    window: Vec<u8>,
    from: usize,
    /// Bytes to come, those in the window included.
    left: usize,
    failed: Option<io::Error>,
}

impl SplicedReader<'_> {
    /// What went wrong while reading, in which case the bytes were made up from there on.
    pub(super) fn finish(self) -> io::Result<()> {
        self.failed.map_or(Ok(()), Err)
    }

    fn refill(&mut self) {
        self.from = 0;
        self.window.clear();
        while self.window.is_empty() && self.left > 0 {
            if self.failed.is_none() {
                self.failed = self.next().err();
            }
            if self.failed.is_some() {
                // Whoever reads has been promised `left` bytes, and no way to hear of errors.
                self.window.clear();
                self.window.resize(self.left.min(WINDOW), 0);
            }
        }
    }

    /// Reads the next change, or bytes up to it.
    fn next(&mut self) -> io::Result<()> {
        if let Some(edit) = self.edits.next_if(|edit| edit.at.start == self.at) {
            self.at = edit.at.end;
            self.window = edit.with;
            return self.source.seek(SeekFrom::Start(self.at)).map(drop);
        }
        let stop = self.edits.peek().map_or(self.end, |edit| edit.at.start);
        let length = (stop - self.at).min(WINDOW as u64);
        self.window.resize(length as usize, 0);
        self.source.read_exact(&mut self.window)?;
        self.at += length;
        Ok(())
    }
}

impl Buf for SplicedReader<'_> {
    fn remaining(&self) -> usize {
        self.left
    }

    fn chunk(&self) -> &[u8] {
        &self.window[self.from..]
    }

    fn advance(&mut self, count: usize) {
        let mut count = count.min(self.left);
        while count > 0 {
            let step = count.min(self.window.len() - self.from);
            self.from += step;
            self.left -= step;
            count -= step;
            if self.from == self.window.len() {
                self.refill();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn all(edits: Splices, bytes: &[u8]) -> Vec<u8> {
        let mut source = Cursor::new(bytes);
        let mut feed = edits.feed(&mut source, bytes.len() as u64).unwrap();
        let mut out = vec![0; feed.remaining()];
        feed.copy_to_slice(&mut out);
        feed.finish().unwrap();
        out
    }

    #[test]
    fn changes_are_made_in_the_order_of_their_places() {
        let mut edits = Splices::default();
        edits.replace(6..6, b"X".to_vec());
        edits.replace(6..6, b"Y".to_vec());
        edits.replace(1..2, Vec::new());
        edits.replace(2..3, Vec::new());
        edits.replace(0..1, b"long".to_vec());
        edits.replace(4..5, b"e".to_vec());
        assert_eq!(all(edits, b"abcdEf"), b"longdefXY");
        assert_eq!(all(Splices::default(), b""), b"");
    }

    #[test]
    fn windows_are_joined() {
        let bytes: Vec<u8> = (0..3 * WINDOW + 5).map(|i| (i % 251) as u8).collect();
        assert!(all(Splices::default(), &bytes) == bytes);
        let mut edits = Splices::default();
        edits.replace(10..(2 * WINDOW as u64), vec![1, 2]);
        assert!(all(edits, &bytes) == [&bytes[..10], &[1, 2], &bytes[2 * WINDOW..]].concat());
    }

    /// A source that ends earlier than it said, as a file does that is cut while it is read.
    #[test]
    fn a_source_cut_short_is_told_at_the_end() {
        let mut source = Cursor::new(b"abc");
        let mut feed = Splices::default().feed(&mut source, 5).unwrap();
        let mut out = [1; 5];
        feed.copy_to_slice(&mut out);
        assert_eq!(out, [0; 5]);
        assert_eq!(feed.finish().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
