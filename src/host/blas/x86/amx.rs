//! Products of 16-bit elements by AMX, whose tile registers hold matrices of `bf16`.
//!
//! A tile of `C` is 16×16 sums in `f32`; one instruction adds to it what 16 rows of `A` and 16
//! columns of `B` give over 32 terms. Four tiles are computed at a time, each read tile being used
//! twice. Sums are added up in an order that depends on k alone.
//!
//! An `f16` is the sum of two `bf16`, exactly, and a product of two is four products: of the high
//! parts, of each with the other's low part, of the low parts. All four are added to the same
//! sums, 32 terms at a time.
//!
//! The processor takes subnormal operands for zero here and makes subnormal sums zero, whatever
//! is set for other instructions. NaN and infinities propagate. Of `f16` there are no such
//! operands, as both parts are 2⁻²⁴ or more, or zero, nor such sums, which are multiples of 2⁻⁴⁸.
//! But an infinity gives NaN, as what is left of it is: the caller has to put right what is not
//! finite, which no sum of finite `f16` is.

#[cfg(test)]
pub(crate) mod tests;

use crate::{
    element::{DType, Element},
    host::{
        blas::{
            gemm::half::HalfBlock,
            x86::amx_pack::{AmxPackSource, pack},
        },
        cache::scratch::with_scratch,
        simd::vectorized,
    },
    op::{Gemm, Transpose},
};
use std::{
    arch::{asm, x86_64::*},
    sync::LazyLock,
};

/// Rows of a tile, of lines or of sums.
pub(crate) const TILE_ROWS: usize = 16;

/// Terms of a line that a tile has.
pub(crate) const TILE_K: usize = 32;

/// Rows and columns of four tiles of `C`.
pub(crate) const BLOCK_ROWS: usize = 2 * TILE_ROWS;

/// Words of 32 bits that a tile has.
pub(crate) const TILE_WORDS: usize = 256;

/// Terms between two writes of sums. Panels of two tiles' lines stay in the first-level cache: of
/// `B`, and, where each is read twice, of `A` as well.
const fn depth(parts: usize) -> usize {
    if parts == 1 { 512 } else { 192 }
}

/// Columns of `B` packed at a time: a piece of a row that memory likes to be read in.
const B_PACK_COLUMNS: usize = 4 * BLOCK_ROWS;

/// Bytes of a line of a cache, and of a row of a tile.
const TILE_ROW_BYTES: usize = 64;

/// Operations from which on this is faster than to widen operands, as measured.
const MIN_FLOPS: u64 = 1 << 15;

/// Sums from which on products of `bf16` are.
const MIN_OUTPUTS: usize = 256;

/// Whether `op` is computed so: there are such registers, and it is large enough. Only its shape
/// counts, so that all parts of a product are computed the same way.
pub(crate) fn is_profitable<H: Element>(op: &Gemm<H>) -> bool {
    let shape = match H::DTYPE {
        DType::Bf16 => op.m * op.n >= MIN_OUTPUTS,
        DType::F16 => filled(op) > 0.5,
        _ => return false,
    };
    let large = shape && op.flops() >= MIN_FLOPS;
    #[cfg(test)]
    let large =
        (large || tests::ANY_SIZE.get()) && !crate::host::blas::gemm::dispatch::is_narrowed();
    large && is_available()
}

/// The share of what is computed that is not padding.
fn filled<H: Element>(op: &Gemm<H>) -> f64 {
    let share = |len: usize, of: usize| len as f64 / len.next_multiple_of(of) as f64;
    share(op.m, BLOCK_ROWS) * share(op.n, BLOCK_ROWS) * share(op.k, TILE_K)
}

/// How many `bf16` an element is the sum of.
pub(crate) const fn bf16_terms<H: Element>() -> usize {
    if matches!(H::DTYPE, DType::F16) { 2 } else { 1 }
}

/// Whether the processor has the tiles, and the system lets this process use them.
pub(crate) fn is_available() -> bool {
    static THERE: LazyLock<bool> =
        LazyLock::new(|| crate::host::simd::has_avx512() && has_tiles() && permitted());
    *THERE
}

/// Whether there are tiles of `bf16`, and a system that saves them between threads.
fn has_tiles() -> bool {
    const BF16_AND_TILE: u32 = 1 << 22 | 1 << 24;
    const STATE: u64 = 1 << 17 | 1 << 18;
    if __cpuid(0).eax < 7 || __cpuid_count(7, 0).edx & BF16_AND_TILE != BF16_AND_TILE {
        return false;
    }
    let (low, high): (u32, u32);
    // SAFETY: reads register 0 into eax and edx, and nothing else; there is one where AVX-512 was
    // detected.
    #[allow(unsafe_code)]
    unsafe {
        asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") high, options(nomem, nostack));
    }
    (u64::from(high) << 32 | u64::from(low)) & STATE == STATE
}

/// Asks Linux for the tiles, once for a process.
fn permitted() -> bool {
    const ARCH_PRCTL: i64 = 158;
    const REQUEST: u64 = 0x1023;
    const TILE_DATA: u64 = 18;
    let mut result = ARCH_PRCTL;
    // SAFETY: the call takes two numbers and touches no memory of ours; it overwrites rax, rcx and
    // r11.
    #[allow(unsafe_code)]
    unsafe {
        asm!(
            "syscall", inlateout("rax") result, in("rdi") REQUEST, in("rsi") TILE_DATA,
            out("rcx") _, out("r11") _, options(nostack)
        );
    }
    result == 0
}

/// Whether all of them are finite.
pub(crate) fn are_finite(sums: &[f32]) -> bool {
    let most = vectorized(
        #[inline(always)]
        || {
            let mut most = 0;
            for sum in sums {
                // Without their sign, bits are in the order of magnitudes.
                most = most.max(sum.to_bits() << 1);
            }
            most
        },
    );
    most < f32::INFINITY.to_bits() << 1
}

/// The sums of `block`: `finish(column, sums)` is called for each [`PAIR`] of columns, with rows
/// of so many sums.
pub(crate) fn accumulate_block<H: Element>(
    block: &HalfBlock<'_, H>,
    mut finish: impl FnMut(usize, &mut [f32]),
) {
    let (op, m, n) = (block.op, block.rows.len(), block.columns.len());
    let parts = bf16_terms::<H>();
    let depth = depth(parts).min(op.k.next_multiple_of(TILE_K));
    // Words of a line of an operand.
    let length = depth / 2 * parts;
    let (height, width) = (m.next_multiple_of(BLOCK_ROWS), n.next_multiple_of(BLOCK_ROWS));
    let group = B_PACK_COLUMNS.min(width);
    // Sums of one pair of columns, where each is finished before the next.
    let kept = if op.k > depth { width } else { BLOCK_ROWS };
    let words = (height + group) * length + kept * height;
    with_scratch(words + TILE_ROW_BYTES / 4, |room: &mut [f32]| {
        let aligned = room.as_ptr().align_offset(TILE_ROW_BYTES).min(TILE_ROW_BYTES / 4);
        let room = &mut room[aligned..];
        let (a, room) = room.split_at_mut(height * length);
        let (b, sums) = room.split_at_mut(group * length);
        for start in (0..op.k).step_by(depth) {
            let k = depth.min(op.k - start);
            let (ld, along) = (op.lda, op.trans_a == Transpose::No);
            let corner = [block.rows.start, start];
            pack(&AmxPackSource { x: block.a, ld, along, corner, count: m, k, turn: !along }, a);
            let panel = BLOCK_ROWS / 2 * parts * k.next_multiple_of(TILE_K);
            for column in (0..n).step_by(BLOCK_ROWS) {
                if column % B_PACK_COLUMNS == 0 {
                    let (ld, along) = (op.ldb, op.trans_b == Transpose::Yes);
                    let corner = [block.columns.start + column, start];
                    let count = B_PACK_COLUMNS.min(n - column);
                    pack(
                        &AmxPackSource { x: block.b, ld, along, corner, count, k, turn: along },
                        b,
                    );
                }
                let b = &b[column % B_PACK_COLUMNS / BLOCK_ROWS * panel..][..panel];
                let sums = &mut sums[if op.k > depth { column * height } else { 0 }..];
                let sums = &mut sums[..height * BLOCK_ROWS];
                multiply(parts, &a[..height / BLOCK_ROWS * panel], b, start > 0, sums);
                if start + k == op.k {
                    finish(column, &mut sums[..m * BLOCK_ROWS]);
                }
            }
        }
    });
}

/// What `ldtilecfg` takes: all eight tiles have 16 rows of 64 bytes.
#[repr(C)]
struct TileConfig {
    palette: u8,
    zeros: [u8; 15],
    bytes: [u16; 16],
    rows: [u8; 16],
}

const SHAPES: TileConfig = {
    let mut shapes = TileConfig { palette: 1, zeros: [0; 15], bytes: [0; 16], rows: [0; 16] };
    let mut tile = 0;
    while tile < 8 {
        (shapes.bytes[tile], shapes.rows[tile]) = (TILE_ROW_BYTES as u16, TILE_ROWS as u8);
        tile += 1;
    }
    shapes
};

/// Sums of all rows that `a` has with the [`PAIR`] of columns `b`, onto those there are if `add`.
/// Of two parts, four products are added; tiles are read as seldom as eight registers allow.
fn multiply(parts: usize, a: &[f32], b: &[f32], add: bool, sums: &mut [f32]) {
    let (steps, pairs) = (b.len() / (2 * parts * TILE_WORDS), a.len() / b.len());
    assert!(steps > 0 && b.len() == steps * 2 * parts * TILE_WORDS && a.len() == pairs * b.len());
    assert!(sums.len() == pairs * BLOCK_ROWS * BLOCK_ROWS);
    let panel = steps * parts * TILE_WORDS;
    // SAFETY: `is_there` has seen that there are tiles and that they may be used. They are set up
    // here and given back below; nothing that is called in between, or that the compiler knows of,
    // uses them. Each pass reads two panels of `steps` tiles of each operand, and writes, if `add`
    // reads, 32 rows of 32 sums: `a`, `b` and `sums` have them. The sums of the next pass are asked
    // for ahead, which may name any address. Beside tiles only the registers named and flags are
    // changed.
    #[allow(unsafe_code)]
    unsafe {
        asm!("ldtilecfg [{}]", in(reg) &SHAPES, options(nostack, readonly));
        for pair in 0..pairs {
            let a = a.as_ptr().add(pair * 2 * panel);
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
                next = in(reg) parts * TILE_WORDS * size_of::<f32>(),
                a0 = inout(reg) a => _,
                a1 = inout(reg) a.add(panel) => _,
                b0 = inout(reg) b => _,
                b1 = inout(reg) b.add(panel) => _,
                c0 = in(reg) sums.as_mut_ptr().add(pair * BLOCK_ROWS * BLOCK_ROWS),
                c1 = in(reg) sums.as_mut_ptr().add((pair * BLOCK_ROWS + TILE_ROWS) * BLOCK_ROWS),
                sums = inout(reg) sums.as_mut_ptr().wrapping_add((pair + 1) * BLOCK_ROWS * BLOCK_ROWS) => _,
                steps = inout(reg) steps => _,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack)
            );
        }
        asm!("tilerelease", options(nostack, nomem));
    }
}
