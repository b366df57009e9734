//! The entropy decoder for Huffman codes.

use super::{
    super::raw::RawError,
    codes::{Bits, HuffmanTable},
    entropy::{Band, Entropy},
    segments::after_restart_marker,
    zigzag::{Block, ZIGZAG},
};

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
        let bits = Bits::new(bytes, at);
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

    /// Reads one more bit of the nonzero coefficient `value`. If the bit is 1, adds `bit` to the
    /// magnitude of `value`.
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
        self.bits = Bits::new(self.bits.bytes, at);
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
