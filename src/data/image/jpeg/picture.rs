//! The picture that the scans of a JPEG file build up.

use super::{
    super::raw::{Raw, RawError},
    arithmetic::ArithmeticDecoder,
    color::ColorSpace,
    entropy::Entropy,
    frame::{Component, Frame},
    huffman::HuffmanDecoder,
    plane::{Plane, zeros},
    progress::Progress,
    scan::Scan,
    tables::{Quantization, Tables},
    upsample::Upsampling,
    zigzag::Block,
};
use crate::host::vectorized;

/// A frame with the samples or the coefficients that have been decoded.
pub(super) struct Picture {
    frame: Frame,
    progress: Progress,
    components: Vec<Content>,
}

/// The decoded data of a component.
#[derive(Default)]
struct Content {
    /// The quantization table that is in effect at the component's first scan.
    quantization: Option<Quantization>,
    /// The coefficients of all blocks, in a progressive file.
    coefficients: Box<[Block]>,
    /// The samples, in a sequential file, unless the output does not need this component.
    plane: Option<Plane>,
}

impl Picture {
    /// Allocates the picture. The output needs only the first `needed` components.
    pub(super) fn new(frame: Frame, needed: usize) -> Result<Self, RawError> {
        let mut components = Vec::new();
        for (index, component) in frame.components.iter().enumerate() {
            let mut content = Content::default();
            if frame.is_progressive {
                content.coefficients = zeros(component.padded_blocks.iter().product())?;
            } else if index < needed {
                content.plane = Some(Plane::new(component)?);
            }
            components.push(content);
        }
        Ok(Self { components, progress: Progress::new(frame.components.len()), frame })
    }

    pub(super) fn frame(&self) -> &Frame {
        &self.frame
    }

    /// Returns whether no further scan can change the picture.
    pub(super) fn is_complete(&self) -> bool {
        !self.frame.is_progressive && self.progress.has_all_components()
    }

    /// Decodes the scan whose coded data start at the position `at` of the file. Returns a position
    /// at or before the marker that follows the coded data.
    pub(super) fn add_scan(
        &mut self,
        scan: &Scan,
        tables: &Tables,
        bytes: &[u8],
        at: usize,
    ) -> Result<usize, RawError> {
        self.progress.add(scan)?;
        for part in &scan.components {
            let component = &self.frame.components[part.index];
            let table = tables.quantization.get(component.quantization).copied().flatten();
            let quantization = &mut self.components[part.index].quantization;
            *quantization = quantization.or(table);
            if quantization.is_none() {
                return Err(RawError::Damaged("a quantization table is missing"));
            }
        }
        if self.frame.is_arithmetic {
            let indices = scan.components.iter().map(|part| part.tables).collect();
            let conditioning = &tables.conditioning;
            let mut decoder = ArithmeticDecoder::new(bytes, at, indices, conditioning);
            self.decode(scan, tables.restart_interval, &mut decoder)
        } else {
            let table = |class: usize, index: usize| tables.huffman[class].get(index)?.as_deref();
            let pairs = scan.components.iter().map(|part| {
                let [dc, ac] = part.tables;
                [table(0, dc), table(1, ac)]
            });
            let mut decoder = HuffmanDecoder::new(bytes, at, pairs.collect());
            self.decode(scan, tables.restart_interval, &mut decoder)
        }
    }

    fn decode<E: Entropy>(
        &mut self,
        scan: &Scan,
        restart_interval: usize,
        entropy: &mut E,
    ) -> Result<usize, RawError> {
        let (frame, components) = (&self.frame, &mut self.components);
        let shift = scan.band.shift;
        scan.for_each_block(frame, restart_interval, entropy, |entropy, slot, [row, column]| {
            let index = scan.components[slot].index;
            let content = &mut components[index];
            if !frame.is_progressive {
                let mut block = [0; 64];
                entropy.sequential(slot, &mut block)?;
                if let (Some(plane), Some(table)) = (&mut content.plane, &content.quantization) {
                    plane.store([row, column], &block, table);
                }
                return Ok(());
            }
            let position = row * frame.components[index].padded_blocks[1] + column;
            let block = &mut content.coefficients[position];
            match (scan.band.start, scan.is_refinement) {
                (0, false) => entropy.dc_first(slot, shift, block),
                (0, true) => entropy.dc_refine(shift, block),
                (_, false) => entropy.ac_first(scan.band, block),
                (_, true) => entropy.ac_refine(scan.band, block),
            }
        })?;
        Ok(entropy.position())
    }

    /// Computes the pixels of the decoded picture: gray if `is_gray` or if the file is gray,
    /// otherwise red, green and blue.
    pub(super) fn finish(mut self, space: ColorSpace, is_gray: bool) -> Result<Raw, RawError> {
        if !self.progress.has_all_components() {
            return Err(RawError::Damaged("a color component is missing"));
        }
        let is_gray = is_gray || space == ColorSpace::Gray;
        let needed = if is_gray { space.gray_components() } else { self.components.len() };
        let mut planes = Vec::new();
        for (content, component) in self.components.iter_mut().zip(&self.frame.components) {
            if planes.len() < needed {
                planes.push(content.take_plane(component)?);
            }
        }
        let Frame { height, width, .. } = self.frame;
        let channels = if is_gray { 1 } else { 3 };
        let mut pixels = zeros(height * width * channels)?;
        let components = self.frame.components.iter();
        let mut upsampling: Vec<_> =
            components.map(|component| Upsampling::of(component, &self.frame)).collect();
        vectorized(
            #[inline(always)]
            |_| {
                for (y, to) in pixels.chunks_exact_mut(width * channels).enumerate() {
                    let rows: Vec<&[u8]> = upsampling
                        .iter_mut()
                        .zip(&planes)
                        .map(|(upsampling, plane)| upsampling.row(plane, y))
                        .collect();
                    match is_gray {
                        true => space.to_gray(&rows, to),
                        false => space.to_rgb(&rows, to),
                    }
                }
            },
        );
        Ok(Raw { pixels: pixels.into_vec(), channels, height, width })
    }
}

impl Content {
    /// Returns the samples. For a progressive file, computes them from the coefficients.
    fn take_plane(&mut self, component: &Component) -> Result<Plane, RawError> {
        if let Some(plane) = self.plane.take() {
            return Ok(plane);
        }
        let mut plane = Plane::new(component)?;
        let quantization = self.quantization.unwrap_or([0; 64]);
        let columns = component.padded_blocks[1];
        for (position, block) in std::mem::take(&mut self.coefficients).iter().enumerate() {
            plane.store([position / columns, position % columns], block, &quantization);
        }
        Ok(plane)
    }
}
