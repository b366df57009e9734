//! A parser for LevelDB's integers and strings.

/// The bytes that have not been parsed yet. Each method removes a value from the front, and returns
/// `None` if the bytes end within the value.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Removes a varint: an integer stored with seven bits per byte, lowest bits first. Also
    /// returns `None` if the integer does not fit in `u64`.
    pub(super) fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7F);
            if shift == 63 && bits > 1 {
                return None;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// Removes a length: a varint of at most `u32::MAX`.
    pub(super) fn len(&mut self) -> Option<usize> {
        u32::try_from(self.varint()?).ok()?.try_into().ok()
    }

    /// Removes a length and a string of this length.
    pub(super) fn string(&mut self) -> Option<&'a [u8]> {
        let len = self.len()?;
        self.bytes(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_and_strings_end_within_the_bytes() {
        for (bytes, want) in [
            (&[0][..], Some(0)),
            (&[0x7F], Some(127)),
            (&[0xAC, 0x02], Some(300)),
            (&[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1], Some(u64::MAX)),
            (&[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2], None),
            (&[0x80; 11], None),
            (&[0x80], None),
            (&[], None),
        ] {
            assert_eq!(Fields(bytes).varint(), want, "{bytes:?}");
        }
        assert_eq!(Fields(&[2, b'a', b'b', b'c']).string(), Some(&b"ab"[..]));
        assert_eq!(Fields(&[4, b'a', b'b', b'c']).string(), None);
        assert_eq!(Fields(&[0xFF, 0xFF, 0xFF, 0xFF, 0x1F]).len(), None);
        let mut fields = Fields(&[1, 2, 0, 3, 0, 0, 0, 4]);
        assert_eq!((fields.u8(), fields.u16(), fields.u32()), (Some(1), Some(2), Some(3)));
        assert_eq!((fields.u64(), fields.u8(), fields.is_empty()), (None, Some(4), true));
    }
}
