//! The interface of the two entropy decoders, for Huffman codes and for arithmetic coding.

use super::{super::raw::RawError, zigzag::Block};

/// The range of coefficients that a scan decodes, and the lowest of their bits.
#[derive(Clone, Copy)]
pub(super) struct Band {
    /// The first and the last index of the coefficients, in the order of the file.
    pub(super) start: usize,
    pub(super) end: usize,
    /// The position of the lowest bit that the scan decodes.
    pub(super) shift: u32,
}

/// A decoder of the coefficients of a scan. `slot` is the index of a component within the scan.
pub(super) trait Entropy {
    /// Skips a restart marker and resets the state of the decoder.
    fn restart(&mut self) -> Result<(), RawError>;

    /// Decodes all coefficients of a block into `block`, which must hold zeros.
    fn sequential(&mut self, slot: usize, block: &mut Block) -> Result<(), RawError>;

    /// Decodes the DC coefficient of a block without its lowest `shift` bits.
    fn dc_first(&mut self, slot: usize, shift: u32, block: &mut Block) -> Result<(), RawError>;

    /// Decodes the bit `shift` of the DC coefficient.
    fn dc_refine(&mut self, shift: u32, block: &mut Block) -> Result<(), RawError>;

    /// Decodes the AC coefficients of a band without their lowest `band.shift` bits.
    fn ac_first(&mut self, band: Band, block: &mut Block) -> Result<(), RawError>;

    /// Decodes one more bit of the AC coefficients of a band.
    fn ac_refine(&mut self, band: Band, block: &mut Block) -> Result<(), RawError>;

    /// Fails if the coded data were too short for the coefficients decoded so far.
    fn check_end(&self) -> Result<(), RawError>;

    /// Returns a position in the file at or before the next marker.
    fn position(&self) -> usize;
}
