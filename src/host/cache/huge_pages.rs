//! Huge pages for large allocations of host memory, on Linux.

/// Asks Linux to back `memory` with huge pages, which reduces TLB misses. The contents of `memory`
/// do not change.
pub(crate) fn advise_huge_pages(memory: &mut [u8]) {
    #[cfg(target_os = "linux")]
    {
        use crate::host::cache::cache_line::PAGE_4K;
        /// Size of a huge page in bytes. An allocation of fewer bytes cannot contain a huge page.
        const HUGE_PAGE: usize = 2 << 20;
        // Start the range at a page boundary, because `madvise` rejects unaligned addresses.
        let start = memory.as_ptr().align_offset(PAGE_4K).min(memory.len());
        let pages = &mut memory[start..];
        if pages.len() >= HUGE_PAGE {
            // SAFETY: the range lies within `memory`, which is borrowed exclusively.
            // `MADV_HUGEPAGE` does not change the contents of `memory`. A failed `madvise` does
            // not affect `memory`, so the result is ignored.
            unsafe {
                libc::madvise(
                    pages.as_mut_ptr().cast(),
                    pages.len() / PAGE_4K * PAGE_4K,
                    libc::MADV_HUGEPAGE,
                );
            }
        }
    }
    let _ = memory;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_page_advice_keeps_the_contents() {
        for len in [0, 1, 4096, (8 << 20) + 12345] {
            let mut memory: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
            let old_memory = memory.clone();
            for start in [0, 1, 4096] {
                advise_huge_pages(memory.get_mut(start..).unwrap_or_default());
            }
            assert_eq!(memory, old_memory);
        }
    }
}
