//! Huffman codes, and the bits between two markers.

use super::{super::raw::RawError, segments::TRUNCATED};

/// Largest length, in bits, of a code that one table look-up decodes.
const LOOKUP_BITS: u32 = 9;
const MAX_CODE_BITS: u32 = 16;

/// A table of Huffman codes.
pub(super) struct HuffmanTable {
    /// For each value of the next [`LOOKUP_BITS`] bits, the length and the symbol of the code that
    /// starts with these bits. The length is 0 if the code is longer.
    lookup: [(u8, u8); 1 << LOOKUP_BITS],
    /// For each code length, the first code that is larger than all codes of this length.
    code_end: [u32; MAX_CODE_BITS as usize + 1],
    /// For each code length, the index of the first symbol minus the first code.
    symbol_offset: [i32; MAX_CODE_BITS as usize + 1],
    symbols: Vec<u8>,
}

impl HuffmanTable {
    /// Returns the table with `counts[i]` codes of `i + 1` bits, or `None` if JPEG allows no such
    /// codes or `symbols` is too short.
    pub(super) fn new(counts: &[u8; 16], symbols: &[u8]) -> Option<Self> {
        let mut table = Self {
            lookup: [(0, 0); 1 << LOOKUP_BITS],
            code_end: [0; 17],
            symbol_offset: [0; 17],
            symbols: symbols.to_vec(),
        };
        let (mut code, mut index) = (0, 0);
        for (bits, &count) in (1..).zip(counts) {
            table.symbol_offset[bits as usize] = index as i32 - code as i32;
            for _ in 0..count {
                let symbol = *symbols.get(index)?;
                if bits <= LOOKUP_BITS {
                    let shift = LOOKUP_BITS - bits;
                    let entries = table.lookup.get_mut(code << shift..(code + 1) << shift)?;
                    entries.fill((bits as u8, symbol));
                }
                code += 1;
                index += 1;
            }
            // JPEG allows no code that consists of ones only.
            if count > 0 && code >= 1 << bits {
                return None;
            }
            table.code_end[bits as usize] = code as u32;
            code <<= 1;
        }
        Some(table)
    }
}

/// A reader of the bits between two markers. The reader returns zeros after the last bit.
pub(super) struct Bits<'a> {
    pub(super) bytes: &'a [u8],
    /// The position of the next byte.
    pub(super) at: usize,
    /// The next bits, the first of which is the highest bit.
    buffer: u64,
    /// The number of valid bits in the buffer.
    count: u32,
    /// The number of zeros that have been appended after the last bit.
    padding: u32,
}

impl<'a> Bits<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at, buffer: 0, count: 0, padding: 0 }
    }

    /// Fills the buffer to at least 56 bits.
    #[inline(always)]
    fn refill(&mut self) {
        let word = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk());
        if let Some(word) = word {
            let word = u64::from_be_bytes(*word);
            // Nonzero if any byte is 0xFF, which starts a marker or precedes a stuffed zero.
            let ones = (!word).wrapping_sub(0x0101_0101_0101_0101) & word & 0x8080_8080_8080_8080;
            if ones == 0 {
                self.buffer |= word >> self.count;
                self.at += (63 - self.count as usize) / 8;
                self.count |= 56;
                return;
            }
        }
        self.refill_slowly();
    }

    #[cold]
    fn refill_slowly(&mut self) {
        while self.count <= 56 {
            let byte = match self.bytes.get(self.at..).unwrap_or_default() {
                [0xFF, rest @ ..] => {
                    let fill = rest.iter().take_while(|&&byte| byte == 0xFF).count();
                    let is_stuffed = rest.get(fill) == Some(&0);
                    self.at += if is_stuffed { fill + 2 } else { 0 };
                    is_stuffed.then_some(0xFF)
                }
                [byte, ..] => {
                    self.at += 1;
                    Some(*byte)
                }
                [] => None,
            };
            self.padding += if byte.is_none() { 8 } else { 0 };
            self.buffer |= u64::from(byte.unwrap_or_default()) << (56 - self.count);
            self.count += 8;
        }
    }

    /// Removes the next `bits` bits from the buffer and returns them as a number. `bits` is at most
    /// 16 and at most `count`.
    #[inline(always)]
    fn take(&mut self, bits: u32) -> u32 {
        let value = (self.buffer >> 1 >> (63 - bits)) as u32;
        self.buffer <<= bits;
        self.count -= bits;
        value
    }

    /// Reads the next `bits` bits as a number, and refills the buffer if it has fewer bits. `bits`
    /// is at most 16.
    pub(super) fn number(&mut self, bits: u32) -> u32 {
        if self.count < bits {
            self.refill();
        }
        self.take(bits)
    }

    /// Decodes a symbol. Afterwards, the buffer holds at least 16 bits.
    #[inline(always)]
    pub(super) fn symbol(&mut self, table: &HuffmanTable) -> Result<u8, RawError> {
        if self.count < 32 {
            self.refill();
        }
        let (bits, symbol) = table.lookup[(self.buffer >> (64 - LOOKUP_BITS)) as usize];
        if bits > 0 {
            self.buffer <<= bits;
            self.count -= u32::from(bits);
            return Ok(symbol);
        }
        self.long_symbol(table)
    }

    #[cold]
    fn long_symbol(&mut self, table: &HuffmanTable) -> Result<u8, RawError> {
        for bits in LOOKUP_BITS + 1..=MAX_CODE_BITS {
            let code = (self.buffer >> (64 - bits)) as u32;
            if code < table.code_end[bits as usize] {
                self.take(bits);
                let index = code as i32 + table.symbol_offset[bits as usize];
                return table.symbols.get(index as usize).copied().ok_or(INVALID_CODE);
            }
        }
        self.check_end()?;
        Err(INVALID_CODE)
    }

    /// Decodes a value of `bits` bits after a symbol (ITU-T T.81, figure F.12). The buffer must
    /// hold these bits.
    #[inline(always)]
    pub(super) fn value(&mut self, bits: u32) -> i32 {
        let value = self.take(bits) as i32;
        // A value whose highest bit is 0 is negative.
        let is_negative = bits > 0 && value >> (bits - 1) == 0;
        if is_negative { value + 1 - (1 << bits) } else { value }
    }

    pub(super) fn check_end(&self) -> Result<(), RawError> {
        if self.padding > self.count { Err(TRUNCATED) } else { Ok(()) }
    }
}

const INVALID_CODE: RawError = RawError::Damaged("invalid Huffman code");
