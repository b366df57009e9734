//! Large pages behind large host memory, where the system has some.

/// Bytes of a large page; less than that of memory has none.
#[cfg(target_os = "linux")]
const HUGE_PAGE: usize = 2 << 20;

/// Asks the system for large pages behind `memory`, where it has some: fewer addresses are looked
/// up then. What `memory` holds stays.
pub(crate) fn advise_huge_pages(memory: &mut [u8]) {
    #[cfg(target_os = "linux")]
    {
        // Whole small pages: the system takes no others.
        const PAGE_4K: usize = 4 << 10;
        let before = memory.as_ptr().align_offset(PAGE_4K).min(memory.len());
        let inner = &mut memory[before..];
        if inner.len() >= HUGE_PAGE {
            // SAFETY: this memory is ours, exclusively, and keeps its content. If the system
            // declines, the memory is as it was.
            #[allow(unsafe_code)]
            unsafe {
                libc::madvise(
                    inner.as_mut_ptr().cast(),
                    inner.len() / PAGE_4K * PAGE_4K,
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
    fn content_stays() {
        for len in [0, 1, 4096, (8 << 20) + 12345] {
            let mut memory: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
            let before = memory.clone();
            for start in [0, 1, 4096] {
                advise_huge_pages(memory.get_mut(start..).unwrap_or_default());
            }
            assert_eq!(memory, before);
        }
    }
}
