//! Poison, the byte pattern of uninitialized and stale memory.

/// Byte pattern that fills uninitialized and stale memory. In every element type, the pattern is
/// NaN; as an index, the pattern is out of range.
pub const POISON: [u8; 2] = [0xfd, 0x7f];

/// Overwrites `bytes` with [`POISON`].
pub(super) fn poison(bytes: &mut [u8]) {
    const BLOCK: &[u8] = [POISON; 512].as_flattened();
    for chunk in bytes.chunks_mut(BLOCK.len()) {
        chunk.copy_from_slice(&BLOCK[..chunk.len()]);
    }
}
