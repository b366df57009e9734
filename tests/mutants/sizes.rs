//! Results of kernels whose indices are too narrow for large operands.

/// Number of different 20-bit indices.
pub(crate) const BITS_20: usize = 1 << 20;

/// Number of different 16-bit indices.
pub(crate) const BITS_16: usize = 1 << 16;

/// Overwrites all elements after the first `count` with repetitions of the first `count` elements,
/// like a kernel that truncates indices.
pub(crate) fn wrap<T: Copy>(y: &mut [T], count: usize) {
    (count..y.len()).for_each(|i| y[i] = y[i % count]);
}

/// Restores the old elements from index `end` on, as if the kernel had stopped at `end`.
pub(crate) fn stop<T: Copy>(y: &mut [T], old: &[T], end: usize) {
    if y.len() > end {
        y[end..].copy_from_slice(&old[end..]);
    }
}
