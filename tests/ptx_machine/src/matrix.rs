//! Instructions on matrices that the lanes of a warp hold together (`ldmatrix`, `mma`).
//!
//! The layouts of the fragments are those of the figures in the chapter "Warp-level matrix
//! instructions" of the PTX ISA.

use crate::{
    access,
    arithmetic::{Precision, add_toward_zero, canonical},
    block::Block,
    convert::{bf16_to_f32, f16_to_f32},
    counters::Access,
    kernel::{Execute, Instruction},
    warp::{ALL, LANES, Lanes, Value, Warp},
};

/// Size of the result of `mma`: `M` rows, as in `A`, and `N` columns, as in `B`.
const M: usize = 16;
const N: usize = 8;

/// Records a fault unless all lanes run the instruction together.
fn require_all_lanes(warp: &mut Warp, name: &str) -> bool {
    if warp.active != ALL && warp.faulty == 0 {
        let lane = warp.active.trailing_zeros() as usize;
        warp.fail(lane, format!("{name}: only the lanes {:08x} take part", warp.active));
    }
    warp.active == ALL
}

/// `ldmatrix.x4`: loads four matrices of 8 × 8 elements of 16 bits. Lane `8·i + r` has the address
/// of row `r` of matrix `i`. Lane `l` receives two elements of each matrix: those in row `l/4` from
/// column `2·(l mod 4)`, or of the transposed matrix.
fn load_four<const TRANSPOSED: bool>(
    warp: &mut Warp,
    block: &mut Block<'_>,
    instruction: &Instruction,
) {
    if !require_all_lanes(warp, "ldmatrix") {
        return;
    }
    let addresses = u32::read(warp, instruction.a);
    let addresses =
        addresses.map(|address| u64::from(address).wrapping_add(instruction.offset as u64));
    if let Some(counters) = &mut block.counters {
        let rows =
            Access { active: warp.active, addresses: &addresses, bytes: 16, is_store: false };
        counters.shared(&rows);
    }
    let mut rows = [[0u16; 8]; LANES];
    for lane in 0..LANES {
        let mut bytes = [0; 16];
        let address = addresses[lane];
        access::read_shared(warp, block, lane, address, &mut bytes);
        for (element, pair) in rows[lane].iter_mut().zip(bytes.chunks_exact(2)) {
            *element = u16::from_le_bytes([pair[0], pair[1]]);
        }
    }
    if warp.faulty != 0 {
        return;
    }
    for (matrix, slot) in instruction.list.iter().enumerate() {
        let mut values = [0; LANES];
        for (lane, value) in values.iter_mut().enumerate() {
            let (row, column) = (lane / 4, lane % 4 * 2);
            let element = |i: usize| match TRANSPOSED {
                false => rows[matrix * 8 + row][column + i],
                true => rows[matrix * 8 + column + i][row],
            };
            *value = u32::from(element(1)) << 16 | u32::from(element(0));
        }
        u32::write(warp, *slot, &values);
    }
}

/// Returns the `ldmatrix` instruction of an opcode.
pub(crate) fn load_matrix(opcode: &str) -> Option<Execute> {
    Some(match opcode {
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16" => load_four::<false>,
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16" => load_four::<true>,
        _ => return None,
    })
}

fn unpack(registers: &[Lanes<u32>], i: usize, lane: usize) -> u16 {
    (registers[i / 2][lane] >> (16 * (i % 2))) as u16
}

/// Element types of the operands `A` and `B`.
trait Operand {
    /// Number of columns of `A` and rows of `B`.
    const K: usize;
    /// Number of registers per lane that hold elements of `A`, and of `B`.
    const A: usize;
    const B: usize;

    /// Calls `set` with the row, column and value of each element of `A` that a lane holds.
    fn a(registers: &[Lanes<u32>], lane: usize, set: impl FnMut(usize, usize, f32));
    /// Like [`a`](Self::a), but for `B`.
    fn b(registers: &[Lanes<u32>], lane: usize, set: impl FnMut(usize, usize, f32));
}

/// Defines an operand type with 16-bit elements and an inner dimension of `K`.
macro_rules! operand_16 {
    ($name:ident, $k:expr, $convert:ident) => {
        struct $name;
        impl Operand for $name {
            const K: usize = $k;
            const A: usize = $k / 4;
            const B: usize = $k / 8;

            #[inline(always)]
            fn a(registers: &[Lanes<u32>], lane: usize, mut set: impl FnMut(usize, usize, f32)) {
                for i in 0..2 * Self::A {
                    let row = lane / 4 + i / 2 % 2 * 8;
                    let column = lane % 4 * 2 + i % 2 + i / 4 * 8;
                    set(row, column, $convert(unpack(registers, i, lane)));
                }
            }

            #[inline(always)]
            fn b(registers: &[Lanes<u32>], lane: usize, mut set: impl FnMut(usize, usize, f32)) {
                for i in 0..2 * Self::B {
                    let row = lane % 4 * 2 + i % 2 + i / 2 * 8;
                    set(row, lane / 4, $convert(unpack(registers, i, lane)));
                }
            }
        }
    };
}

operand_16!(F16K8, 8, f16_to_f32);
operand_16!(F16K16, 16, f16_to_f32);
operand_16!(Bf16K16, 16, bf16_to_f32);

/// Operands in TF32, whose lower 13 bits do not affect the result.
struct Tf32K8;

impl Operand for Tf32K8 {
    const K: usize = 8;
    const A: usize = 4;
    const B: usize = 2;

    #[inline(always)]
    fn a(registers: &[Lanes<u32>], lane: usize, mut set: impl FnMut(usize, usize, f32)) {
        for i in 0..Self::A {
            let value = f32::from_bits(registers[i][lane] & !0x1fff);
            set(lane / 4 + i % 2 * 8, lane % 4 + i / 2 * 4, value);
        }
    }

    #[inline(always)]
    fn b(registers: &[Lanes<u32>], lane: usize, mut set: impl FnMut(usize, usize, f32)) {
        for i in 0..Self::B {
            let value = f32::from_bits(registers[i][lane] & !0x1fff);
            set(lane % 4 + i * 4, lane / 4, value);
        }
    }
}

/// `mma`: adds the product of a 16×K and a K×8 matrix to a 16×8 matrix of `f32`. The ISA leaves the
/// order of the additions open, and requires at least single precision. With [`Precision::Best`],
/// the sums are computed in `f64` and rounded once.
fn multiply<T: Operand>(warp: &mut Warp, block: &mut Block<'_>, instruction: &Instruction) {
    if !require_all_lanes(warp, "mma") {
        return;
    }
    let mut registers = [[0; LANES]; 16];
    let sources = &instruction.list[4..];
    for (values, slot) in registers.iter_mut().zip(sources) {
        *values = u32::read(warp, *slot);
    }
    if warp.faulty != 0 {
        return;
    }
    let (a_registers, rest) = registers.split_at(T::A);
    let (b_registers, c_registers) = rest.split_at(T::B);
    let (mut a, mut b) = ([[0.0; 16]; M], [[0.0; N]; 16]);
    for lane in 0..LANES {
        T::a(a_registers, lane, |row, column, value| a[row][column] = f64::from(value));
        T::b(b_registers, lane, |row, column, value| b[row][column] = f64::from(value));
    }
    let mut c = [[0.0; N]; M];
    for lane in 0..LANES {
        for i in 0..4 {
            c[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2] =
                f64::from(f32::from_bits(c_registers[i][lane]));
        }
    }
    for (c, a) in c.iter_mut().zip(&a) {
        for (a, b) in a[..T::K].iter().zip(&b) {
            for (c, b) in c.iter_mut().zip(b) {
                *c = match block.precision {
                    Precision::Best => *c + a * b,
                    // The product is exact in `f32`, except in the range of subnormals of bf16.
                    Precision::Least => add_toward_zero(*c as f32, (a * b) as f32).into(),
                };
            }
        }
    }
    for i in 0..4 {
        let mut values = [0.0; LANES];
        for (lane, value) in values.iter_mut().enumerate() {
            let sum = c[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
            *value = canonical(sum as f32);
        }
        f32::write(warp, instruction.list[i], &values);
    }
}

/// Returns the `mma` instruction of an opcode, and the numbers of registers of its four operands in
/// each lane.
pub(crate) fn matrix_multiply(opcode: &str) -> Option<(Execute, [usize; 4])> {
    fn form<T: Operand>() -> (Execute, [usize; 4]) {
        (multiply::<T>, [4, T::A, T::B, 4])
    }
    let shape = opcode.strip_prefix("mma.sync.aligned.")?;
    Some(match shape {
        "m16n8k8.row.col.f32.f16.f16.f32" => form::<F16K8>(),
        "m16n8k16.row.col.f32.f16.f16.f32" => form::<F16K16>(),
        "m16n8k16.row.col.f32.bf16.bf16.f32" => form::<Bf16K16>(),
        "m16n8k8.row.col.f32.tf32.tf32.f32" => form::<Tf32K8>(),
        _ => return None,
    })
}
