//! The entropy decoder for arithmetic coding.

use super::{
    super::raw::RawError,
    entropy::{Band, Entropy},
    probability::{FIXED, STATES},
    segments::{TRUNCATED, after_restart_marker},
    tables::Conditioning,
    zigzag::{Block, ZIGZAG},
};

/// The decoder of binary decisions (ITU-T T.81, D.2).
struct Decisions<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The size of the current interval.
    interval: u32,
    /// The code register. Its upper 16 bits are compared with the interval.
    code: u32,
    /// The number of bits by which `code` can be shifted before the next byte must be read.
    count: u32,
    /// Whether the decoder has read past the end of the file.
    is_truncated: bool,
}

impl<'a> Decisions<'a> {
    fn new(bytes: &'a [u8], at: usize) -> Self {
        let mut new = Self { bytes, at, interval: 1 << 16, code: 0, count: 0, is_truncated: false };
        for _ in 0..2 {
            new.read_byte();
            new.code <<= 8;
        }
        new.count = 0;
        new
    }

    /// Reads a byte into the code register. Reads 0 at a marker, because an encoder drops zeros at
    /// the end of its data.
    fn read_byte(&mut self) {
        let byte = match self.bytes.get(self.at..).unwrap_or_default() {
            [0xFF, rest @ ..] => {
                let fill = rest.iter().take_while(|&&byte| byte == 0xFF).count();
                let is_stuffed = rest.get(fill) == Some(&0);
                self.at += if is_stuffed { fill + 2 } else { 0 };
                if is_stuffed { 0xFF } else { 0 }
            }
            [byte, ..] => {
                self.at += 1;
                *byte
            }
            [] => {
                self.is_truncated = true;
                0
            }
        };
        self.code += u32::from(byte) << 8;
        self.count = 8;
    }

    /// Decodes a decision. The low 7 bits of `state` are an index into [`STATES`], and the highest
    /// bit is the more probable decision.
    fn decide(&mut self, state: &mut u8) -> bool {
        let (estimate, next_if_less, next_if_more, switches) = STATES[usize::from(*state & 0x7F)];
        let more_probable = *state >> 7;
        let estimate = u32::from(estimate);
        self.interval -= estimate;
        let is_lower = self.code < self.interval << 16;
        if is_lower && self.interval >= 0x8000 {
            return more_probable == 1;
        }
        // The smaller part of the interval belongs to the less probable decision.
        let is_more_probable = is_lower == (self.interval >= estimate);
        if !is_lower {
            self.code -= self.interval << 16;
            self.interval = estimate;
        }
        *state = if is_more_probable {
            more_probable << 7 | next_if_more
        } else {
            (more_probable ^ switches) << 7 | next_if_less
        };
        while self.interval < 0x8000 {
            if self.count == 0 {
                self.read_byte();
            }
            self.interval <<= 1;
            self.code <<= 1;
            self.count -= 1;
        }
        (more_probable == 1) == is_more_probable
    }

    /// Decodes a decision whose two values are equally probable.
    fn decide_evenly(&mut self) -> bool {
        self.decide(&mut FIXED.clone())
    }
}

/// The indices of the tables of a component of the scan, for DC and for AC coefficients.
pub(super) type TableIndices = [usize; 2];

/// The DC coefficient of the previous block of a component.
#[derive(Clone, Copy, Default)]
struct Previous {
    value: i32,
    /// The index of the first state for the next difference, which depends on the sign and the size
    /// of the last difference.
    context: usize,
}

/// The decoder of a scan with arithmetic coding (ITU-T T.81, F.2.4 and G.2.3).
pub(super) struct ArithmeticDecoder<'a> {
    decisions: Decisions<'a>,
    tables: Vec<TableIndices>,
    conditioning: &'a Conditioning,
    dc_states: [[u8; 64]; 16],
    ac_states: [[u8; 256]; 16],
    dc: Vec<Previous>,
    restart_count: u8,
}

impl<'a> ArithmeticDecoder<'a> {
    /// Returns the decoder of the scan whose coded data start at `at`.
    pub(super) fn new(
        bytes: &'a [u8],
        at: usize,
        tables: Vec<TableIndices>,
        conditioning: &'a Conditioning,
    ) -> Self {
        Self {
            decisions: Decisions::new(bytes, at),
            conditioning,
            dc_states: [[0; 64]; 16],
            ac_states: [[0; 256]; 16],
            dc: vec![Previous::default(); tables.len()],
            tables,
            restart_count: 0,
        }
    }

    /// Decodes a DC coefficient (figure F.19).
    fn dc(&mut self, slot: usize) -> Result<i32, RawError> {
        let table = self.tables[slot][0];
        let (states, decisions) = (&mut self.dc_states[table], &mut self.decisions);
        let previous = &mut self.dc[slot];
        let first = previous.context;
        if !decisions.decide(&mut states[first]) {
            previous.context = 0;
            return Ok(previous.value);
        }
        let is_negative = decisions.decide(&mut states[first + 1]);
        let mut state = first + 2 + usize::from(is_negative);
        let mut magnitude = i32::from(decisions.decide(&mut states[state]));
        if magnitude > 0 {
            state = 20;
            while decisions.decide(&mut states[state]) {
                magnitude = double(magnitude)?;
                state += 1;
            }
        }
        let [small, large] = self.conditioning.dc_bounds[table].map(|bits| (1 << bits) >> 1);
        previous.context = match magnitude {
            _ if magnitude < small => 0,
            _ if magnitude > large => 12 + 4 * usize::from(is_negative),
            _ => 4 + 4 * usize::from(is_negative),
        };
        let value = low_bits(decisions, &mut states[state + 14], magnitude);
        let difference = if is_negative { -value } else { value };
        previous.value = (previous.value + difference) & 0xFFFF;
        Ok(previous.value)
    }

    /// Decodes the AC coefficients of a band without their lowest `band.shift` bits (figure F.20).
    fn ac(&mut self, slot: usize, band: Band, block: &mut Block) -> Result<(), RawError> {
        let table = self.tables[slot][1];
        let (states, decisions) = (&mut self.ac_states[table], &mut self.decisions);
        let mut index = band.start;
        while index <= band.end {
            if decisions.decide(&mut states[3 * (index - 1)]) {
                break;
            }
            while !decisions.decide(&mut states[3 * (index - 1) + 1]) {
                index += 1;
                if index > band.end {
                    return Err(TOO_MANY);
                }
            }
            let is_negative = decisions.decide_evenly();
            let mut state = 3 * (index - 1) + 2;
            let mut magnitude = i32::from(decisions.decide(&mut states[state]));
            if magnitude > 0 && decisions.decide(&mut states[state]) {
                magnitude = 2;
                let is_low = index <= usize::from(self.conditioning.ac_bound[table]);
                state = if is_low { 189 } else { 217 };
                while decisions.decide(&mut states[state]) {
                    magnitude = double(magnitude)?;
                    state += 1;
                }
            }
            let value = low_bits(decisions, &mut states[state + 14], magnitude);
            let value = if is_negative { -value } else { value };
            block[ZIGZAG[index]] = (value << band.shift) as i16;
            index += 1;
        }
        Ok(())
    }
}

impl Entropy for ArithmeticDecoder<'_> {
    fn restart(&mut self) -> Result<(), RawError> {
        self.check_end()?;
        let (bytes, at) = (self.decisions.bytes, self.decisions.at);
        let at = after_restart_marker(bytes, at, &mut self.restart_count)?;
        self.decisions = Decisions::new(bytes, at);
        self.dc_states = [[0; 64]; 16];
        self.ac_states = [[0; 256]; 16];
        self.dc.fill(Previous::default());
        Ok(())
    }

    fn sequential(&mut self, slot: usize, block: &mut Block) -> Result<(), RawError> {
        block[0] = self.dc(slot)? as i16;
        self.ac(slot, Band { start: 1, end: 63, shift: 0 }, block)
    }

    fn dc_first(&mut self, slot: usize, shift: u32, block: &mut Block) -> Result<(), RawError> {
        block[0] = (self.dc(slot)? << shift) as i16;
        Ok(())
    }

    fn dc_refine(&mut self, shift: u32, block: &mut Block) -> Result<(), RawError> {
        block[0] |= i16::from(self.decisions.decide_evenly()) << shift;
        Ok(())
    }

    fn ac_first(&mut self, band: Band, block: &mut Block) -> Result<(), RawError> {
        self.ac(0, band, block)
    }

    fn ac_refine(&mut self, band: Band, block: &mut Block) -> Result<(), RawError> {
        let bit = 1 << band.shift;
        let (states, decisions) = (&mut self.ac_states[self.tables[0][1]], &mut self.decisions);
        // The end of the band is coded only after the last coefficient that earlier scans made
        // nonzero.
        let last = (1..=band.end).rev().find(|&index| block[ZIGZAG[index]] != 0).unwrap_or(0);
        let mut index = band.start;
        while index <= band.end {
            if index > last && decisions.decide(&mut states[3 * (index - 1)]) {
                break;
            }
            loop {
                let value = &mut block[ZIGZAG[index]];
                if *value != 0 {
                    if decisions.decide(&mut states[3 * (index - 1) + 2]) {
                        *value = value.wrapping_add(if *value < 0 { -bit } else { bit });
                    }
                    break;
                }
                if decisions.decide(&mut states[3 * (index - 1) + 1]) {
                    *value = if decisions.decide_evenly() { -bit } else { bit };
                    break;
                }
                index += 1;
                if index > band.end {
                    return Err(TOO_MANY);
                }
            }
            index += 1;
        }
        Ok(())
    }

    fn check_end(&self) -> Result<(), RawError> {
        if self.decisions.is_truncated { Err(TRUNCATED) } else { Ok(()) }
    }

    fn position(&self) -> usize {
        self.decisions.at
    }
}

const TOO_MANY: RawError = RawError::Damaged("a block has too many coefficients");

/// Doubles a magnitude. Fails if the result is not below 2¹⁵.
fn double(magnitude: i32) -> Result<i32, RawError> {
    let doubled = 2 * magnitude;
    (doubled < 1 << 15).then_some(doubled).ok_or(RawError::Damaged("a coefficient is too large"))
}

/// Decodes the bits below the highest bit of `magnitude`, and returns `magnitude` with these bits,
/// plus 1 (figure F.24).
fn low_bits(decisions: &mut Decisions<'_>, state: &mut u8, magnitude: i32) -> i32 {
    let (mut value, mut bit) = (magnitude, magnitude >> 1);
    while bit > 0 {
        if decisions.decide(state) {
            value |= bit;
        }
        bit >>= 1;
    }
    value + 1
}
