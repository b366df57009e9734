//! The frame header of a JPEG image: size, coding process and color components.

use super::super::raw::RawError;

/// The number of samples along each axis of a block.
pub(super) const BLOCK: usize = 8;

/// A frame. Pairs of numbers have the order vertical, horizontal.
pub(super) struct Frame {
    pub(super) height: usize,
    pub(super) width: usize,
    pub(super) is_progressive: bool,
    pub(super) is_arithmetic: bool,
    pub(super) components: Vec<Component>,
    /// The largest sampling factors of all components.
    pub(super) max_sampling: [usize; 2],
    /// The number of minimum coded units (MCUs) of an interleaved scan.
    pub(super) mcus: [usize; 2],
}

/// A color component of a frame.
pub(super) struct Component {
    pub(super) id: u8,
    pub(super) sampling: [usize; 2],
    /// The index of the quantization table.
    pub(super) quantization: usize,
    /// The number of samples along each axis.
    pub(super) size: [usize; 2],
    /// The number of blocks that contain samples of the image.
    pub(super) blocks: [usize; 2],
    /// The number of blocks, rounded up to whole MCUs.
    pub(super) padded_blocks: [usize; 2],
}

impl Frame {
    /// Parses the frame header `data` after the marker `marker` (SOF0 to SOF15).
    pub(super) fn parse(marker: u8, data: &[u8]) -> Result<Self, RawError> {
        let process = match marker {
            0xC0 | 0xC1 | 0xC2 | 0xC9 | 0xCA => None,
            0xC3 | 0xCB => Some("the lossless process"),
            _ => Some("the hierarchical process"),
        };
        if let Some(process) = process {
            return Err(RawError::Unsupported(process.into()));
        }
        let [precision, h0, h1, w0, w1, count, specs @ ..] = data else { return Err(INVALID) };
        if *precision != 8 {
            return Err(RawError::Unsupported(format!("{precision} bits per sample")));
        }
        let height = usize::from(u16::from_be_bytes([*h0, *h1]));
        let width = usize::from(u16::from_be_bytes([*w0, *w1]));
        if height == 0 || width == 0 {
            return Err(RawError::Damaged("the frame header has no height or no width"));
        }
        if !matches!(count, 1 | 3 | 4) {
            return Err(RawError::Unsupported(format!("{count} color components")));
        }
        let (specs, rest) = specs.as_chunks::<3>();
        if specs.len() != usize::from(*count) || !rest.is_empty() {
            return Err(INVALID);
        }
        let sampling = |spec: &[u8; 3]| [usize::from(spec[1] & 15), usize::from(spec[1] >> 4)];
        if specs.iter().flat_map(sampling).any(|factor| !(1..=4).contains(&factor)) {
            return Err(RawError::Damaged("a sampling factor is not between 1 and 4"));
        }
        let max = |axis| specs.iter().map(|spec| sampling(spec)[axis]).max().unwrap_or(1);
        let max_sampling = [max(0), max(1)];
        let mcus = [0, 1].map(|axis| [height, width][axis].div_ceil(BLOCK * max_sampling[axis]));
        let component = |spec: &[u8; 3]| {
            let sampling = sampling(spec);
            let size = [0, 1]
                .map(|axis| ([height, width][axis] * sampling[axis]).div_ceil(max_sampling[axis]));
            Component {
                id: spec[0],
                sampling,
                quantization: usize::from(spec[2]),
                size,
                blocks: size.map(|size| size.div_ceil(BLOCK)),
                padded_blocks: [0, 1].map(|axis| mcus[axis] * sampling[axis]),
            }
        };
        let components: Vec<_> = specs.iter().map(component).collect();
        let is_fraction = |component: &Component| {
            [0, 1].iter().any(|&axis| max_sampling[axis] % component.sampling[axis] != 0)
        };
        if components.iter().any(is_fraction) {
            let reason = "sampling factors whose ratio is not a whole number";
            return Err(RawError::Unsupported(reason.into()));
        }
        let (is_progressive, is_arithmetic) = (matches!(marker, 0xC2 | 0xCA), marker >= 0xC9);
        Ok(Self { height, width, is_progressive, is_arithmetic, components, max_sampling, mcus })
    }
}

const INVALID: RawError = RawError::Damaged("invalid frame header");
