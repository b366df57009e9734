//! Markers and segments of a JPEG file.

use super::super::raw::RawError;

/// A reader of markers and of the segments that follow them.
pub(super) struct Segments<'a> {
    pub(super) bytes: &'a [u8],
    /// The position of the next byte.
    pub(super) at: usize,
}

impl<'a> Segments<'a> {
    /// Returns the next marker, or `None` at the end of the file. Skips bytes before the marker.
    pub(super) fn marker(&mut self) -> Option<u8> {
        let (marker, after) = find_marker(self.bytes, self.at)?;
        self.at = after;
        Some(marker)
    }

    /// Returns the contents of the segment after a marker.
    pub(super) fn contents(&mut self) -> Result<&'a [u8], RawError> {
        let [first, second, rest @ ..] = &self.bytes[self.at..] else { return Err(TRUNCATED) };
        let len = usize::from(u16::from_be_bytes([*first, *second]));
        let len = len.checked_sub(2).ok_or(RawError::Damaged("a segment has no length"))?;
        self.at += 2 + len;
        rest.get(..len).ok_or(TRUNCATED)
    }
}

/// Returns the first marker at or after the position `at`, and the position after the marker.
pub(super) fn find_marker(bytes: &[u8], at: usize) -> Option<(u8, usize)> {
    // A marker is 0xFF, possibly repeated, and a byte that is neither 0 nor 0xFF.
    let rest = bytes.get(at..)?;
    let is_marker = |pair: &[u8]| pair[0] == 0xFF && !matches!(pair[1], 0 | 0xFF);
    let offset = rest.windows(2).position(is_marker)?;
    Some((rest[offset + 1], at + offset + 2))
}

/// Returns the position after the next marker, which must be the restart marker with the number
/// `count` modulo 8. Increments `count`.
pub(super) fn after_restart_marker(
    bytes: &[u8],
    at: usize,
    count: &mut u8,
) -> Result<usize, RawError> {
    let (marker, after) = find_marker(bytes, at).ok_or(TRUNCATED)?;
    if marker != 0xD0 + *count {
        return Err(RawError::Damaged("a restart marker is missing"));
    }
    *count = (*count + 1) % 8;
    Ok(after)
}

pub(super) const TRUNCATED: RawError = RawError::Damaged("the file ends before the last pixel");
