//! The entropy decoder for Huffman codes.

use super::{
    super::raw::RawError,
    entropy::{Band, Entropy},
    segments::{TRUNCATED, find_marker},
    zigzag::{Block, ZIGZAG},
};

/// The length in bits of the codes that one table look-up decodes.
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
    /// Returns the table with `counts[i]` codes of `i + 1` bits, or `None` if there are more codes
    /// than bit patterns.
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
            // No code consists of ones only.
            if count > 0 && code >= 1 << bits {
                return None;
            }
            table.code_end[bits as usize] = code as u32;
            code <<= 1;
        }
        Some(table)
    }
}

/// A reader of the bits between two markers. Zeros follow the last bit.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The next bits, from the highest bit on.
    buffer: u64,
    /// The number of valid bits in the buffer.
    count: u32,
    /// The number of zeros that have been appended after the last bit.
    padding: u32,
}

impl Bits<'_> {
    /// Fills the buffer to at least 56 bits.
    #[inline(always)]
    fn refill(&mut self) {
        let word = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk());
        if let Some(word) = word {
            let word = u64::from_be_bytes(*word);
            // Whether any byte is 0xFF, which starts a marker or a stuffed zero.
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

    /// Returns and consumes `bits` bits. The buffer must hold these bits, of which there are at
    /// most 16.
    #[inline(always)]
    fn take(&mut self, bits: u32) -> u32 {
        let value = (self.buffer >> 1 >> (63 - bits)) as u32;
        self.buffer <<= bits;
        self.count -= bits;
        value
    }

    /// Returns `bits` bits, of which there are at most 16.
    fn number(&mut self, bits: u32) -> u32 {
        if self.count < bits {
            self.refill();
        }
        self.take(bits)
    }

    /// Decodes a symbol. Afterwards, the buffer holds at least 16 bits.
    #[inline(always)]
    fn symbol(&mut self, table: &HuffmanTable) -> Result<u8, RawError> {
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
    fn value(&mut self, bits: u32) -> i32 {
        let value = self.take(bits) as i32;
        // A value whose highest bit is 0 is negative.
        let is_negative = bits > 0 && value >> (bits - 1) == 0;
        if is_negative { value + 1 - (1 << bits) } else { value }
    }

    fn check_end(&self) -> Result<(), RawError> {
        if self.padding > self.count { Err(TRUNCATED) } else { Ok(()) }
    }
}

const INVALID_CODE: RawError = RawError::Damaged("invalid Huffman code");
const NO_TABLE: RawError = RawError::Damaged("a Huffman table is missing");
const TOO_MANY: RawError = RawError::Damaged("a block has too many coefficients");

/// The DC and the AC table of a component of the scan.
pub(super) type TablePair<'a> = [Option<&'a HuffmanTable>; 2];

/// The decoder of a scan with Huffman codes.
pub(super) struct HuffmanDecoder<'a> {
    bits: Bits<'a>,
    tables: Vec<TablePair<'a>>,
    /// The previous DC coefficient of each component.
    dc: Vec<i32>,
    /// The number of further blocks without new coefficients in the band.
    end_of_band_run: u32,
    restart_count: u8,
}

impl<'a> HuffmanDecoder<'a> {
    /// Returns the decoder of the scan whose coded data start at `at`. `tables` has a pair for each
    /// component of the scan.
    pub(super) fn new(bytes: &'a [u8], at: usize, tables: Vec<TablePair<'a>>) -> Self {
        let bits = Bits { bytes, at, buffer: 0, count: 0, padding: 0 };
        let dc = vec![0; tables.len()];
        Self { bits, tables, dc, end_of_band_run: 0, restart_count: 0 }
    }

    fn dc(&mut self, slot: usize) -> Result<i32, RawError> {
        let table = self.tables[slot][0].ok_or(NO_TABLE)?;
        let bits = self.bits.symbol(table)?;
        let difference = self.bits.value(u32::from(bits));
        self.dc[slot] = self.dc[slot].wrapping_add(difference);
        Ok(self.dc[slot])
    }

    /// Reads one more bit of the nonzero coefficient `value`.
    fn correct(&mut self, value: &mut i16, bit: i16) {
        if self.bits.number(1) == 1 && *value & bit == 0 {
            *value = value.wrapping_add(if *value >= 0 { bit } else { -bit });
        }
    }
}

impl Entropy for HuffmanDecoder<'_> {
    fn restart(&mut self) -> Result<(), RawError> {
        self.bits.check_end()?;
        let at = after_restart_marker(self.bits.bytes, self.bits.at, &mut self.restart_count)?;
        self.bits = Bits { at, buffer: 0, count: 0, padding: 0, ..self.bits };
        self.dc.fill(0);
        self.end_of_band_run = 0;
        Ok(())
    }

    fn sequential(&mut self, slot: usize, block: &mut Block) -> Result<(), RawError> {
        block[0] = self.dc(slot)? as i16;
        let table = self.tables[slot][1].ok_or(NO_TABLE)?;
        let mut index = 1;
        while index < 64 {
            let symbol = self.bits.symbol(table)?;
            let (run, bits) = (usize::from(symbol >> 4), u32::from(symbol & 15));
            if bits == 0 {
                if run < 15 {
                    break;
                }
                index += 16;
                continue;
            }
            index += run;
            let position = *ZIGZAG.get(index).ok_or(TOO_MANY)?;
            block[position] = self.bits.value(bits) as i16;
            index += 1;
        }
        Ok(())
    }

    fn dc_first(&mut self, slot: usize, shift: u32, block: &mut Block) -> Result<(), RawError> {
        block[0] = (self.dc(slot)? << shift) as i16;
        Ok(())
    }

    fn dc_refine(&mut self, shift: u32, block: &mut Block) -> Result<(), RawError> {
        block[0] |= (self.bits.number(1) << shift) as i16;
        Ok(())
    }

    fn ac_first(&mut self, band: Band, block: &mut Block) -> Result<(), RawError> {
        if self.end_of_band_run > 0 {
            self.end_of_band_run -= 1;
            return Ok(());
        }
        let table = self.tables[0][1].ok_or(NO_TABLE)?;
        let mut index = band.start;
        while index <= band.end {
            let symbol = self.bits.symbol(table)?;
            let (run, bits) = (u32::from(symbol >> 4), u32::from(symbol & 15));
            if bits == 0 && run < 15 {
                self.end_of_band_run = (1 << run) - 1 + self.bits.number(run);
                break;
            }
            index += run as usize;
            if bits > 0 {
                let position = *ZIGZAG.get(index).ok_or(TOO_MANY)?;
                block[position] = (self.bits.value(bits) << band.shift) as i16;
            }
            index += 1;
        }
        Ok(())
    }

    fn ac_refine(&mut self, band: Band, block: &mut Block) -> Result<(), RawError> {
        let bit = 1 << band.shift;
        let table = self.tables[0][1].ok_or(NO_TABLE)?;
        let mut index = band.start;
        while self.end_of_band_run == 0 && index <= band.end {
            let symbol = self.bits.symbol(table)?;
            let (mut run, bits) = (u32::from(symbol >> 4), symbol & 15);
            let mut new = 0;
            if bits > 0 {
                new = if self.bits.number(1) == 1 { bit } else { -bit };
            } else if run < 15 {
                self.end_of_band_run = (1 << run) + self.bits.number(run);
                break;
            }
            // Skip `run` zeros, and correct the nonzero coefficients on the way.
            while index <= band.end {
                let value = &mut block[ZIGZAG[index]];
                if *value != 0 {
                    self.correct(value, bit);
                } else if run == 0 {
                    *value = new;
                    break;
                } else {
                    run -= 1;
                }
                index += 1;
            }
            index += 1;
        }
        if self.end_of_band_run > 0 {
            for position in &ZIGZAG[index..=band.end] {
                if block[*position] != 0 {
                    self.correct(&mut block[*position], bit);
                }
            }
            self.end_of_band_run -= 1;
        }
        Ok(())
    }

    fn check_end(&self) -> Result<(), RawError> {
        self.bits.check_end()
    }

    fn position(&self) -> usize {
        self.bits.at
    }
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
