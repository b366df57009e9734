//! What kernels find wrong with values: a stream keeps the first of each kind, and whoever waits
//! for its work next is told.

use cortado::Error;
use wgpu::BufferUsages;

/// A kind of complaint; each has a word on the device, 0 or the complement of a position.
#[derive(Clone, Copy)]
pub(crate) enum Complaint {
    Label,
    Index,
}

/// Kernels and what they may find.
const KINDS: [(&str, &str); 2] =
    [("label", "is no class, nor one that is ignored"), ("index", "is outside the table")];

/// No complaint.
pub(crate) const NONE: [u8; 4 * KINDS.len()] = [0; 4 * KINDS.len()];

/// Room for a stream's.
pub(crate) fn buffer(device: &wgpu::Device) -> wgpu::Buffer {
    device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("complaints"),
        size: NONE.len() as u64,
        usage: BufferUsages::STORAGE | BufferUsages::COPY_SRC | BufferUsages::COPY_DST,
        mapped_at_creation: false,
    })
}

/// The first complaint.
pub(crate) fn error(words: &[u8]) -> Option<Error> {
    let words = words.chunks_exact(4).map(|word| u32::from_ne_bytes([0, 1, 2, 3].map(|i| word[i])));
    let (word, (op, what)) = words.zip(KINDS).find(|&(word, _)| word != 0)?;
    Some(Error::value(op, format!("that at position {} {what}", !word)))
}
