//! Results of kernels whose indices are too narrow for large operands.

/// Number of indices of 20 bits.
pub(crate) const BITS_20: usize = 1 << 20;

/// Number of indices of 16 bits.
pub(crate) const BITS_16: usize = 1 << 16;

/// Replaces the elements after the first `indices` by the first elements, as a kernel does that
/// truncates an index.
pub(crate) fn wrap<T: Copy>(y: &mut [T], indices: usize) {
    (indices..y.len()).for_each(|i| y[i] = y[i % indices]);
}

/// Restores the elements after the first `end`, as a kernel does that stops at `end`.
pub(crate) fn stop<T: Copy>(y: &mut [T], old: &[T], end: usize) {
    if y.len() > end {
        y[end..].copy_from_slice(&old[end..]);
    }
}
