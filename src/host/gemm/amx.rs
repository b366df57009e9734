//! Products of `bf16` by AMX, whose tile registers hold matrices.
//!
//! A tile of `C` is 16×16 sums in `f32`; one instruction adds to it what 16 rows of `A` and 16
//! columns of `B` give over 32 terms. Four tiles are computed at a time, each read tile being used
//! twice. Sums are added up in an order that depends on k alone.
//!
//! The processor takes subnormal operands for zero here and makes subnormal sums zero, whatever
//! is set for other instructions. NaN and infinities propagate.

use super::half::Block;
use crate::{
    element::{DType, Element},
    host::scratch::with_scratch,
    op::{Gemm, Transpose},
};
use std::{
    arch::{asm, x86_64::*},
    sync::LazyLock,
};

/// Rows of a tile, of lines or of sums.
const LINES: usize = 16;

/// Terms of a line that a tile has.
const TERMS: usize = 32;

/// Rows and columns of four tiles of `C`.
pub(super) const PAIR: usize = 2 * LINES;

/// Words of 32 bits that a tile has.
const TILE: usize = 256;

/// Terms between two writes of sums: panels of two tiles' lines stay in the first-level cache.
const DEPTH: usize = 512;

/// Bytes of a line of a cache, and of a row of a tile.
const LINE: usize = 64;

/// Sums, and operations, from which on this is faster than to widen operands, as measured.
const LEAST: (usize, u64) = (256, 1 << 15);

/// Whether `op` is computed so: there are such registers, and it is large enough. Only its shape
/// counts, so that all parts of a product are computed the same way.
pub(super) fn suits<H: Element>(op: &Gemm<H>) -> bool {
    let (sums, work) = LEAST;
    let large = op.m * op.n >= sums && op.flops() >= work;
    #[cfg(test)]
    let large = (large || tests::ANY_SIZE.get()) && !super::native::is_narrowed();
    H::DTYPE == DType::Bf16 && large && is_there()
}

/// Whether the processor has the tiles, and the system lets this process use them.
pub(super) fn is_there() -> bool {
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

/// The sums of `block`: `finish(column, sums)` is called for each [`PAIR`] of columns, with rows
/// of so many sums. Their type is `bf16`.
pub(super) fn sum<H: Element>(block: &Block<'_, H>, mut finish: impl FnMut(usize, &[f32])) {
    let (op, m, n) = (block.op, block.rows.len(), block.columns.len());
    let depth = DEPTH.min(op.k.next_multiple_of(TERMS));
    let (height, width) = (m.next_multiple_of(PAIR), n.next_multiple_of(PAIR));
    // Sums of one pair of columns, where each is finished before the next.
    let kept = if op.k > depth { width } else { PAIR };
    let words = (height + width) * depth / 2 + kept * height;
    with_scratch(words + LINE / 4, |room: &mut [f32]| {
        let aligned = room.as_ptr().align_offset(LINE).min(LINE / 4);
        let room = &mut room[aligned..];
        let (a, room) = room.split_at_mut(height * depth / 2);
        let (b, sums) = room.split_at_mut(width * depth / 2);
        for start in (0..op.k).step_by(depth) {
            let k = depth.min(op.k - start);
            let (ld, along) = (op.lda, op.trans_a == Transpose::No);
            let corner = [block.rows.start, start];
            pack(&Lines { x: block.a, ld, along, corner, count: m, k, turn: !along }, a);
            let (ld, along) = (op.ldb, op.trans_b == Transpose::Yes);
            let corner = [block.columns.start, start];
            pack(&Lines { x: block.b, ld, along, corner, count: n, k, turn: along }, b);
            let panel = PAIR / 2 * k.next_multiple_of(TERMS);
            for column in (0..n).step_by(PAIR) {
                let b = &b[column / PAIR * panel..][..panel];
                let sums = &mut sums[if op.k > depth { column * height } else { 0 }..];
                let sums = &mut sums[..height * PAIR];
                multiply(&a[..height / PAIR * panel], b, start > 0, sums);
                if start + k == op.k {
                    finish(column, &sums[..m * PAIR]);
                }
            }
        }
    });
}

/// Lines of an operand, rows of `op(A)` or columns of `op(B)`.
struct Lines<'a, H> {
    x: &'a [H],
    ld: usize,
    /// Whether a line is a row of what lies in memory, rather than a column.
    along: bool,
    /// The first line and term.
    corner: [usize; 2],
    count: usize,
    k: usize,
    /// Whether tiles are the other way round than they are read: `A`'s have rows of lines, `B`'s
    /// rows of pairs of terms.
    turn: bool,
}

/// Copies lines into tiles, those of the first [`LINES`] first, with zeros beyond the last line,
/// up to a [`PAIR`] of tiles, and the last term.
fn pack<H: Element>(lines: &Lines<'_, H>, tiles: &mut [f32]) {
    let Lines { ld, along, corner: [line, term], count, k, .. } = *lines;
    let (first, last) = if along {
        (line * ld + term, (line + count - 1) * ld + term + k)
    } else {
        (term * ld + line, (term + k - 1) * ld + line + count)
    };
    assert!(size_of::<H>() == 2 && last <= lines.x.len(), "{last} of {}", lines.x.len());
    assert!(count.div_ceil(PAIR) * 2 * k.div_ceil(TERMS) * TILE <= tiles.len());
    let x = lines.x[first..].as_ptr();
    // SAFETY: these lines can be read and so many tiles be written; AVX-512 was detected.
    #[allow(unsafe_code)]
    unsafe {
        pack_tiles(lines, x.cast(), tiles.as_mut_ptr().cast());
    }
}

/// # Safety
/// All lines can be read from `x`, their first element, all tiles be written.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[allow(unsafe_code)]
unsafe fn pack_tiles<H>(lines: &Lines<'_, H>, x: *const u16, tiles: *mut u32) {
    let Lines { ld, along, count, k, turn, .. } = *lines;
    let (panels, steps) = (count.div_ceil(PAIR) * 2, k.div_ceil(TERMS));
    for i in 0..panels * steps {
        // As memory likes to be read.
        let (panel, step) = if along { (i / steps, i % steps) } else { (i % panels, i / panels) };
        let (line, term) = (panel * LINES, step * TERMS);
        let (count, k) = (LINES.min(count.saturating_sub(line)), TERMS.min(k - term));
        // SAFETY: only those lines and terms are read that are there.
        unsafe {
            let tile = match along {
                true => read_along(x.wrapping_add(line * ld + term), ld, count, k),
                false => read_across(x.wrapping_add(term * ld + line), ld, count, k),
            };
            let to = tiles.add((panel * steps + step) * TILE);
            for (i, row) in (if turn { turned(tile) } else { tile }).into_iter().enumerate() {
                _mm512_storeu_si512(to.add(i * LINES).cast(), row);
            }
        }
    }
}

/// Rows of terms: the first `k` of `count` lines.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
#[allow(unsafe_code)]
unsafe fn read_along(x: *const u16, ld: usize, count: usize, k: usize) -> [__m512i; LINES] {
    let there = ((1u64 << k) - 1) as __mmask32;
    let mut tile = [_mm512_setzero_si512(); LINES];
    for (line, row) in tile.iter_mut().enumerate().take(count) {
        // SAFETY: the line has `k` elements here, and no others are read.
        *row = unsafe { _mm512_maskz_loadu_epi16(there, x.add(line * ld).cast()) };
    }
    tile
}

/// Rows of pairs of terms, one of each line.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
#[allow(unsafe_code)]
unsafe fn read_across(x: *const u16, ld: usize, count: usize, k: usize) -> [__m512i; LINES] {
    let there = ((1u32 << count) - 1) as __mmask16;
    let mut tile = [_mm512_setzero_si512(); LINES];
    for (pair, row) in tile.iter_mut().enumerate().take(k.div_ceil(2)) {
        // An odd last term has a zero beside it.
        let second = if 2 * pair + 1 < k { there } else { 0 };
        let x = x.wrapping_add(2 * pair * ld);
        // SAFETY: the lines have these elements, and no others are read.
        let [low, high] = unsafe {
            [
                _mm256_maskz_loadu_epi16(there, x.cast()),
                _mm256_maskz_loadu_epi16(second, x.wrapping_add(ld).cast()),
            ]
        };
        let high = _mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(high));
        *row = _mm512_or_si512(_mm512_cvtepu16_epi32(low), high);
    }
    tile
}

/// The transposed matrix of words.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
fn turned(rows: [__m512i; LINES]) -> [__m512i; LINES] {
    let mut quads = rows;
    for (from, to) in rows.chunks_exact(4).zip(quads.chunks_exact_mut(4)) {
        let [a, b] = [0, 2].map(|i| _mm512_unpacklo_epi32(from[i], from[i + 1]));
        let [c, d] = [0, 2].map(|i| _mm512_unpackhi_epi32(from[i], from[i + 1]));
        to[0] = _mm512_unpacklo_epi64(a, b);
        to[1] = _mm512_unpackhi_epi64(a, b);
        to[2] = _mm512_unpacklo_epi64(c, d);
        to[3] = _mm512_unpackhi_epi64(c, d);
    }
    // Of four rows, place `i` of each quarter is together now: quarters are put in rows.
    let mut turned = quads;
    for i in 0..4 {
        let even = [0, 8].map(|j| _mm512_shuffle_i32x4::<0x88>(quads[j + i], quads[j + 4 + i]));
        let odd = [0, 8].map(|j| _mm512_shuffle_i32x4::<0xdd>(quads[j + i], quads[j + 4 + i]));
        turned[i] = _mm512_shuffle_i32x4::<0x88>(even[0], even[1]);
        turned[4 + i] = _mm512_shuffle_i32x4::<0x88>(odd[0], odd[1]);
        turned[8 + i] = _mm512_shuffle_i32x4::<0xdd>(even[0], even[1]);
        turned[12 + i] = _mm512_shuffle_i32x4::<0xdd>(odd[0], odd[1]);
    }
    turned
}

/// What `ldtilecfg` takes: all eight tiles have 16 rows of 64 bytes.
#[repr(C)]
struct Shapes {
    palette: u8,
    zeros: [u8; 15],
    bytes: [u16; 16],
    rows: [u8; 16],
}

const SHAPES: Shapes = {
    let mut shapes = Shapes { palette: 1, zeros: [0; 15], bytes: [0; 16], rows: [0; 16] };
    let mut tile = 0;
    while tile < 8 {
        (shapes.bytes[tile], shapes.rows[tile]) = (LINE as u16, LINES as u8);
        tile += 1;
    }
    shapes
};

/// Sums of all rows that `a` has with the [`PAIR`] of columns `b`, onto those there are if `add`.
fn multiply(a: &[f32], b: &[f32], add: bool, sums: &mut [f32]) {
    let (steps, pairs) = (b.len() / (2 * TILE), a.len() / b.len());
    assert!(steps > 0 && b.len() == steps * 2 * TILE && a.len() == pairs * b.len());
    assert!(sums.len() == pairs * PAIR * PAIR);
    let panel = steps * TILE;
    // SAFETY: `is_there` has seen that there are tiles and that they may be used. They are set up
    // here and given back below; nothing that is called in between, or that the compiler knows of,
    // uses them. Each pass reads two panels of `steps` tiles of each operand, and writes, if `add`
    // reads, 32 rows of 32 sums: `a`, `b` and `sums` have them. Beside tiles only the registers
    // named and flags are changed.
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
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                "add {a0}, 1024",
                "add {a1}, 1024",
                "add {b0}, 1024",
                "add {b1}, 1024",
                "dec {steps}",
                "jnz 3b",
                "tilestored [{c0} + 2*{row}], tmm0",
                "tilestored [{c0} + 2*{row} + 64], tmm1",
                "tilestored [{c1} + 2*{row}], tmm2",
                "tilestored [{c1} + 2*{row} + 64], tmm3",
                add = in(reg) u32::from(add),
                row = in(reg) LINE,
                a0 = inout(reg) a => _,
                a1 = inout(reg) a.add(panel) => _,
                b0 = inout(reg) b => _,
                b1 = inout(reg) b.add(panel) => _,
                c0 = in(reg) sums.as_mut_ptr().add(pair * PAIR * PAIR),
                c1 = in(reg) sums.as_mut_ptr().add((pair * PAIR + LINES) * PAIR),
                steps = inout(reg) steps => _,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack)
            );
        }
        asm!("tilerelease", options(nostack, nomem));
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::Cell;

    thread_local! {
        /// Whether products of any size are computed so.
        pub(super) static ANY_SIZE: Cell<bool> = const { Cell::new(false) };
    }

    /// Calls `body`, whose products of any size are computed so.
    pub(in super::super) fn with_any_size(body: impl FnOnce()) {
        ANY_SIZE.set(true);
        body();
        ANY_SIZE.set(false);
    }
}
