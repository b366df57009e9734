//! Errors for invalid values that kernels find in their operands. A stream records the position of
//! the first invalid value of each kind, and the next wait for the stream returns an error.

use cortado::Error;
use wgpu::BufferUsages;

/// Kinds of invalid values in a kernel's operands. Each kind of invalid value has an error flag, a
/// word in device memory: 0, or the bitwise complement of the position of the first invalid value.
#[derive(Clone, Copy)]
pub(crate) enum KernelError {
    /// A label that is neither a class number nor the ignored label.
    Label,
    /// An index that is outside the table.
    Index,
}

/// Error message of each kind of invalid value: the subject and the problem.
const KINDS: [(&str, &str); 2] = [
    ("label", "is neither a class number nor the ignored label"),
    ("index", "is outside the table"),
];

/// Initial values of the error flags, which report no error.
pub(crate) const CLEARED: [u8; 4 * KINDS.len()] = [0; 4 * KINDS.len()];

/// Creates the buffer for a stream's error flags.
pub(crate) fn buffer(device: &wgpu::Device) -> wgpu::Buffer {
    device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("kernel errors"),
        size: CLEARED.len() as u64,
        usage: BufferUsages::STORAGE | BufferUsages::COPY_SRC | BufferUsages::COPY_DST,
        mapped_at_creation: false,
    })
}

/// Returns the error for the first kind of invalid value that `flags` report, or `None` if there is
/// no invalid value.
pub(crate) fn error(flags: &[u8]) -> Option<Error> {
    let words = flags.chunks_exact(4).map(|word| u32::from_ne_bytes([0, 1, 2, 3].map(|i| word[i])));
    let (word, (subject, problem)) = words.zip(KINDS).find(|&(word, _)| word != 0)?;
    Some(Error::invalid_input(subject, format!("the value at position {} {problem}", !word)))
}
