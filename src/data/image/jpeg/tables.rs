//! Tables of a JPEG file: quantization, Huffman codes, conditioning of the arithmetic decoder, and
//! the restart interval.

use super::{super::raw::RawError, codes::HuffmanTable, zigzag::ZIGZAG};

/// A quantization table in row-major order.
pub(super) type Quantization = [u16; 64];

#[derive(Default)]
pub(super) struct Tables {
    pub(super) quantization: [Option<Quantization>; 4],
    /// The Huffman tables of DC and of AC coefficients.
    pub(super) huffman: [[Option<Box<HuffmanTable>>; 4]; 2],
    pub(super) conditioning: Conditioning,
    /// The number of MCUs in a restart interval, or 0 without restart markers.
    pub(super) restart_interval: usize,
}

/// Conditioning of the arithmetic decoder, for each of the 16 tables (ITU-T T.81, F.1.4.4.1.4).
#[derive(Clone, Copy)]
pub(super) struct Conditioning {
    /// The bounds of small differences between DC coefficients, as exponents of 2.
    pub(super) dc_bounds: [[u8; 2]; 16],
    /// The index of the last AC coefficient that is decoded with the states for low frequencies.
    pub(super) ac_bound: [u8; 16],
}

impl Default for Conditioning {
    fn default() -> Self {
        Self { dc_bounds: [[0, 1]; 16], ac_bound: [5; 16] }
    }
}

impl Tables {
    /// Parses a DQT segment.
    pub(super) fn parse_quantization(&mut self, mut data: &[u8]) -> Result<(), RawError> {
        const INVALID: RawError = RawError::Damaged("invalid quantization table");
        while let [kind, rest @ ..] = data {
            let size = match kind >> 4 {
                0 => 1,
                1 => 2,
                _ => return Err(INVALID),
            };
            let (values, rest) = rest.split_at_checked(64 * size).ok_or(INVALID)?;
            let table = self.quantization.get_mut(usize::from(kind & 15)).ok_or(INVALID)?;
            let table = table.insert([0; 64]);
            for (value, position) in values.chunks_exact(size).zip(ZIGZAG) {
                table[position] = value.iter().fold(0, |value, byte| value << 8 | u16::from(*byte));
            }
            data = rest;
        }
        Ok(())
    }

    /// Parses a DHT segment.
    pub(super) fn parse_huffman(&mut self, mut data: &[u8]) -> Result<(), RawError> {
        while let [kind, rest @ ..] = data {
            let (counts, rest) = rest.split_first_chunk().ok_or(INVALID_HUFFMAN)?;
            let len = counts.iter().map(|&count| usize::from(count)).sum();
            let (symbols, rest) = rest.split_at_checked(len).ok_or(INVALID_HUFFMAN)?;
            let class = self.huffman.get_mut(usize::from(kind >> 4)).ok_or(INVALID_HUFFMAN)?;
            let table = class.get_mut(usize::from(kind & 15)).ok_or(INVALID_HUFFMAN)?;
            // The symbol of a DC coefficient is the number of bits of its difference from the
            // previous one.
            if kind >> 4 == 0 && symbols.iter().any(|&bits| bits > 15) {
                return Err(INVALID_HUFFMAN);
            }
            let new = HuffmanTable::new(counts, symbols).ok_or(INVALID_HUFFMAN)?;
            *table = Some(Box::new(new));
            data = rest;
        }
        Ok(())
    }

    /// Parses a DAC segment.
    pub(super) fn parse_conditioning(&mut self, data: &[u8]) -> Result<(), RawError> {
        const INVALID: RawError = RawError::Damaged("invalid conditioning of arithmetic coding");
        let (pairs, rest) = data.as_chunks();
        for &[kind, value] in pairs {
            let index = usize::from(kind & 15);
            match kind >> 4 {
                0 if value & 15 <= value >> 4 => {
                    self.conditioning.dc_bounds[index] = [value & 15, value >> 4];
                }
                1 => self.conditioning.ac_bound[index] = value,
                _ => return Err(INVALID),
            }
        }
        if rest.is_empty() { Ok(()) } else { Err(INVALID) }
    }

    /// Parses a DRI segment.
    pub(super) fn parse_restart_interval(&mut self, data: &[u8]) -> Result<(), RawError> {
        let data = data.try_into().map_err(|_| RawError::Damaged("invalid restart interval"))?;
        self.restart_interval = usize::from(u16::from_be_bytes(data));
        Ok(())
    }
}

const INVALID_HUFFMAN: RawError = RawError::Damaged("invalid Huffman table");
