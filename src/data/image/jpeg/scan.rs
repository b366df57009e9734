//! The scans of a JPEG image.

use super::{
    super::raw::RawError,
    entropy::{Band, Entropy},
    frame::Frame,
};

/// The header of a scan.
pub(super) struct Scan {
    pub(super) components: Vec<ScanComponent>,
    pub(super) band: Band,
    /// Whether the scan adds a bit to the coefficients of an earlier scan.
    pub(super) is_refinement: bool,
}

/// A component of a scan: its index in the frame, and the indices of its DC and AC tables.
pub(super) struct ScanComponent {
    pub(super) index: usize,
    pub(super) tables: [usize; 2],
}

impl Scan {
    /// Parses a scan header.
    pub(super) fn parse(data: &[u8], frame: &Frame) -> Result<Self, RawError> {
        let [count, specs @ .., start, end, shifts] = data else { return Err(INVALID) };
        let (specs, rest) = specs.as_chunks();
        if specs.len() != usize::from(*count) || specs.is_empty() || !rest.is_empty() {
            return Err(INVALID);
        }
        let mut components: Vec<ScanComponent> = Vec::new();
        for [id, tables] in specs {
            let is_new = |index| components.iter().all(|component| component.index != index);
            let mut indices = 0..frame.components.len();
            let index = indices.find(|&index| frame.components[index].id == *id && is_new(index));
            let tables = [usize::from(tables >> 4), usize::from(tables & 15)];
            components.push(ScanComponent { index: index.ok_or(INVALID)?, tables });
        }
        if !frame.is_progressive {
            let band = Band { start: 0, end: 63, shift: 0 };
            return Ok(Self { components, band, is_refinement: false });
        }
        let (start, end) = (usize::from(*start), usize::from(*end));
        let (previous_shift, shift) = (shifts >> 4, shifts & 15);
        let is_band = if start == 0 { end == 0 } else { start <= end && components.len() == 1 };
        let is_next_bit = previous_shift == 0 || previous_shift == shift + 1;
        if !is_band || end > 63 || shift > 13 || !is_next_bit {
            return Err(INVALID);
        }
        let band = Band { start, end, shift: shift.into() };
        Ok(Self { components, band, is_refinement: previous_shift > 0 })
    }

    /// Calls `decode` for each block of the scan, in the order of the file. `decode` receives the
    /// index of the block's component in the scan, and the row and the column of the block.
    pub(super) fn for_each_block<E: Entropy>(
        &self,
        frame: &Frame,
        restart_interval: usize,
        entropy: &mut E,
        mut decode: impl FnMut(&mut E, usize, [usize; 2]) -> Result<(), RawError>,
    ) -> Result<(), RawError> {
        let sampling: Vec<_> =
            self.components.iter().map(|part| frame.components[part.index].sampling).collect();
        // A scan of one component has an MCU for each block with samples of the image.
        let (mcus, sampling) = match &self.components[..] {
            [only] => (frame.components[only.index].blocks, vec![[1, 1]]),
            _ => (frame.mcus, sampling),
        };
        let mut count = 0;
        for row in 0..mcus[0] {
            for column in 0..mcus[1] {
                if restart_interval > 0 && count == restart_interval {
                    entropy.restart()?;
                    count = 0;
                }
                count += 1;
                for (slot, &[height, width]) in sampling.iter().enumerate() {
                    for y in 0..height {
                        for x in 0..width {
                            decode(entropy, slot, [row * height + y, column * width + x])?;
                        }
                    }
                }
            }
            entropy.check_end()?;
        }
        Ok(())
    }
}

const INVALID: RawError = RawError::Damaged("invalid scan header");
