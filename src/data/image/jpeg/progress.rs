//! The coefficients that the scans of a JPEG image have decoded.

use super::{super::raw::RawError, scan::Scan};

/// For each component and each coefficient, the position of the lowest bit that has been decoded.
pub(super) struct Progress(Vec<[Option<u32>; 64]>);

impl Progress {
    pub(super) fn new(components: usize) -> Self {
        Self(vec![[None; 64]; components])
    }

    /// Adds a scan. Fails if an earlier scan contains the same bits, or if bits are missing between
    /// the scans. The check limits the number of scans, and so the work that a small file can
    /// cause.
    pub(super) fn add(&mut self, scan: &Scan) -> Result<(), RawError> {
        let wanted = scan.is_refinement.then_some(scan.band.shift + 1);
        for component in &scan.components {
            let bits = &mut self.0[component.index][scan.band.start..=scan.band.end];
            if bits.iter().any(|bit| *bit != wanted) {
                return Err(RawError::Damaged("a scan does not continue the scans before"));
            }
            bits.fill(Some(scan.band.shift));
        }
        Ok(())
    }

    /// Returns whether each component has a DC coefficient.
    pub(super) fn has_all_components(&self) -> bool {
        self.0.iter().all(|bits| bits[0].is_some())
    }
}
