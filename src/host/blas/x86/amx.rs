//! Products of AMX tiles, which are matrices of `bf16` in tile registers.
//!
//! One AMX instruction multiplies 16 rows of `A` by 16 columns of `B` over 32 steps along k. The
//! AMX instruction adds the products to a tile of 16×16 `f32` sums of `C`. The AMX kernel computes
//! four tiles of `C` at a time, so that each loaded tile of `A` or `B` is used twice. The order of
//! additions depends on k alone, so results do not depend on the number of threads.
//!
//! An `f16` is exactly the sum of two `bf16`, so a product of two `f16` is the sum of four products
//! of `bf16`. For `f16`, the kernel adds the four products of `bf16` terms to the same sum, 32
//! steps along k at a time.
//!
//! AMX instructions treat subnormal operands as zero and flush subnormal sums to zero. AMX
//! instructions propagate `bf16` NaN and infinities. The two `bf16` terms of an `f16` are zero or
//! at least 2⁻²⁴ in magnitude, and sums of products of such terms are multiples of 2⁻⁴⁸, so a GEMM
//! of `f16` matrices has neither subnormal `bf16` terms nor subnormal sums. An infinite `f16`
//! yields NaN sums, because the remainder after the first `bf16` term is NaN. To get the correct
//! infinities, the caller recomputes non-finite sums from elements widened to `f32`. Sums of
//! products of finite `f16` values are finite.

#[cfg(test)]
pub(crate) mod tests;

use crate::host::{
    blas::x86::bf16_tile::{BLOCK_ROWS, TILE_ROW_BYTES, TILE_ROWS, TILE_WORDS},
    simd::{level::SimdLevel, limit::SimdLimit},
};
use std::{
    arch::{asm, x86_64::*},
    sync::LazyLock,
};

/// Returns KC for elements that consist of `terms` (one or two) `bf16` terms. A micro-panel of `B`
/// with KC steps stays in L1. For elements of two `bf16` terms, L1 also holds a micro-panel of `A`,
/// whose tiles are loaded twice.
pub(crate) const fn kc(terms: usize) -> usize {
    if terms == 1 { 512 } else { 192 }
}

/// Returns true if the processor has AMX for `bf16`, and if both Linux and the SIMD limit of this
/// process permit AMX.
pub(crate) fn is_available() -> bool {
    static AVAILABLE: LazyLock<bool> = LazyLock::new(|| {
        SimdLimit::of_process() == SimdLimit::All
            && SimdLevel::highest() == SimdLevel::Avx512
            && has_tiles()
            && request_permission()
    });
    *AVAILABLE
}

/// Returns true if the processor has AMX for `bf16`, and the operating system saves the tile
/// registers at context switches.
fn has_tiles() -> bool {
    const BF16_AND_TILE: u32 = 1 << 22 | 1 << 24;
    const TILE_STATE: u64 = 1 << 17 | 1 << 18;
    if __cpuid(0).eax < 7 || __cpuid_count(7, 0).edx & BF16_AND_TILE != BF16_AND_TILE {
        return false;
    }
    let (low, high): (u32, u32);
    // SAFETY: processors with AVX-512 have the instruction `xgetbv`, which only writes the enabled
    // state components to eax and edx.
    unsafe {
        asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") high, options(nomem, nostack));
    }
    (u64::from(high) << 32 | u64::from(low)) & TILE_STATE == TILE_STATE
}

/// Asks Linux to permit AMX tiles for the whole process, and returns whether Linux agreed.
fn request_permission() -> bool {
    const ARCH_PRCTL: i64 = 158;
    const ARCH_REQ_XCOMP_PERM: u64 = 0x1023;
    const XFEATURE_XTILEDATA: u64 = 18;
    let mut result = ARCH_PRCTL;
    // SAFETY: the system call `arch_prctl` takes two numbers, accesses no memory of the process,
    // and overwrites only rax, rcx and r11.
    unsafe {
        asm!(
            "syscall", inlateout("rax") result,
            in("rdi") ARCH_REQ_XCOMP_PERM, in("rsi") XFEATURE_XTILEDATA,
            out("rcx") _, out("r11") _, options(nostack)
        );
    }
    result == 0
}

/// Operand of `ldtilecfg`.
#[repr(C)]
struct TileConfig {
    palette: u8,
    zeros: [u8; 15],
    bytes: [u16; 16],
    rows: [u8; 16],
}

/// Configuration of eight AMX tiles, each of 16 rows of 64 bytes.
const TILE_CONFIG: TileConfig = {
    let mut config = TileConfig { palette: 1, zeros: [0; 15], bytes: [0; 16], rows: [0; 16] };
    let mut tile = 0;
    while tile < 8 {
        (config.bytes[tile], config.rows[tile]) = (TILE_ROW_BYTES as u16, TILE_ROWS as u8);
        tile += 1;
    }
    config
};

/// Multiplies all micro-panels of `a` by the micro-panel `b`. Adds the products to `sums` if `add`
/// is true, else overwrites `sums`. With two `bf16` terms per element, 32 steps along k take four
/// tile products, ordered to reduce tile loads.
pub(crate) fn multiply_panels(terms: usize, a: &[f32], b: &[f32], add: bool, sums: &mut [f32]) {
    let (steps, a_panels) = (b.len() / (2 * terms * TILE_WORDS), a.len() / b.len());
    assert!(
        steps > 0 && b.len() == steps * 2 * terms * TILE_WORDS && a.len() == a_panels * b.len()
    );
    assert!(sums.len() == a_panels * BLOCK_ROWS * BLOCK_ROWS);
    assert!(is_available());
    let panel = steps * terms * TILE_WORDS;
    // SAFETY: AMX is available, and `ldtilecfg` configures the tiles. No other code uses the tiles
    // before `tilerelease`. Each iteration reads two panels of `steps` tiles from each of `a` and
    // `b`. Each iteration writes 32 rows of 32 sums, and reads these sums only if `add` is true.
    // The assertions show that the slices hold the tiles and sums. Prefetching the sums of the next
    // iteration never faults. The assembly code changes only tile registers, its operand registers
    // and the flags.
    unsafe {
        asm!("ldtilecfg [{}]", in(reg) &TILE_CONFIG, options(nostack, readonly));
        for a_panel in 0..a_panels {
            let a = a.as_ptr().add(a_panel * 2 * panel);
            let b = b.as_ptr();
            asm!(
                "test {add:e}, {add:e}",
                "jnz 2f",
                "tilezero tmm0",
                "tilezero tmm1",
                "tilezero tmm2",
                "tilezero tmm3",
                "jmp 3f",
                "2:",
                "tileloadd tmm0, [{c0} + 2*{row}]",
                "tileloadd tmm1, [{c0} + 2*{row} + 64]",
                "tileloadd tmm2, [{c1} + 2*{row}]",
                "tileloadd tmm3, [{c1} + 2*{row} + 64]",
                "3:",
                "tileloadd tmm4, [{a0} + {row}]",
                "tileloadd tmm6, [{b0} + {row}]",
                "tileloadd tmm5, [{a1} + {row}]",
                "tileloadd tmm7, [{b1} + {row}]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "prefetcht0 [{sums}]",
                "prefetcht0 [{sums} + 64]",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "prefetcht0 [{sums} + 128]",
                "prefetcht0 [{sums} + 192]",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "prefetcht0 [{sums} + 256]",
                "prefetcht0 [{sums} + 320]",
                "tdpbf16ps tmm3, tmm5, tmm7",
                "prefetcht0 [{sums} + 384]",
                "prefetcht0 [{sums} + 448]",
                "add {sums}, 512",
                "cmp {next}, 1024",
                "je 4f",
                "tileloadd tmm6, [{b0} + {row} + 1024]",
                "tileloadd tmm7, [{b1} + {row} + 1024]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                "tileloadd tmm4, [{a0} + {row} + 1024]",
                "tileloadd tmm5, [{a1} + {row} + 1024]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                "tileloadd tmm6, [{b0} + {row}]",
                "tileloadd tmm7, [{b1} + {row}]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                "4:",
                "add {a0}, {next}",
                "add {a1}, {next}",
                "add {b0}, {next}",
                "add {b1}, {next}",
                "dec {steps}",
                "jnz 3b",
                "tilestored [{c0} + 2*{row}], tmm0",
                "tilestored [{c0} + 2*{row} + 64], tmm1",
                "tilestored [{c1} + 2*{row}], tmm2",
                "tilestored [{c1} + 2*{row} + 64], tmm3",
                add = in(reg) u32::from(add),
                row = in(reg) TILE_ROW_BYTES,
                next = in(reg) terms * TILE_WORDS * size_of::<f32>(),
                a0 = inout(reg) a => _,
                a1 = inout(reg) a.add(panel) => _,
                b0 = inout(reg) b => _,
                b1 = inout(reg) b.add(panel) => _,
                c0 = in(reg) sums.as_mut_ptr().add(a_panel * BLOCK_ROWS * BLOCK_ROWS),
                c1 = in(reg) sums.as_mut_ptr().add((a_panel * BLOCK_ROWS + TILE_ROWS) * BLOCK_ROWS),
                sums = inout(reg) sums.as_mut_ptr().wrapping_add((a_panel + 1) * BLOCK_ROWS * BLOCK_ROWS) => _,
                steps = inout(reg) steps => _,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack)
            );
        }
        asm!("tilerelease", options(nostack, nomem));
    }
}
