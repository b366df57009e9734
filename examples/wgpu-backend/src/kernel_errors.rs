//! Invalid values that kernels find while they run. A stream records the first position of each
//! kind of invalid value, and the next wait for the stream returns an error.

use cortado::Error;
use wgpu::BufferUsages;

/// A kind of invalid value. Each kind has a word on the device: 0, or the bitwise complement of the
/// first invalid position.
#[derive(Clone, Copy)]
pub(crate) enum KernelError {
    /// A label that is neither a class nor ignored.
    Label,
    /// An index that is outside the table.
    Index,
}

/// Texts of the errors: the subject and the problem of each kind.
const KINDS: [(&str, &str); 2] =
    [("label", "is neither a class nor ignored"), ("index", "is outside the table")];

/// Initial error flags, which report no error.
pub(crate) const CLEARED: [u8; 4 * KINDS.len()] = [0; 4 * KINDS.len()];

/// Creates the error flags of a stream.
pub(crate) fn buffer(device: &wgpu::Device) -> wgpu::Buffer {
    device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("kernel errors"),
        size: CLEARED.len() as u64,
        usage: BufferUsages::STORAGE | BufferUsages::COPY_SRC | BufferUsages::COPY_DST,
        mapped_at_creation: false,
    })
}

/// Returns the error of the first kind that `flags` report.
pub(crate) fn error(flags: &[u8]) -> Option<Error> {
    let words = flags.chunks_exact(4).map(|word| u32::from_ne_bytes([0, 1, 2, 3].map(|i| word[i])));
    let (word, (subject, problem)) = words.zip(KINDS).find(|&(word, _)| word != 0)?;
    Some(Error::invalid_input(subject, format!("the value at position {} {problem}", !word)))
}
