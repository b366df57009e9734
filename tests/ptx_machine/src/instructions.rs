//! Instructions whose lanes are independent of each other, by opcode.

use crate::{
    arithmetic::{
        Precision, add_toward_zero, canonical, displace, exp2, find_shift, flush, fma_down,
        imprecise_exp2, imprecise_reciprocal_high, insert_bits, max_f32, max_f64, min_f32, min_f64,
        permute_bytes, reciprocal_ftz, reciprocal_high, shl_u32, shl_u64, shr_i32, shr_u32,
        shr_u64,
    },
    block::Block,
    convert::{
        f16_to_f32, f32_to_bf16, f32_to_f16, f32_to_i32, f32_to_tf32, f32_to_u32, f64_to_f16,
        f64_to_i64, f64_to_u32, saturate,
    },
    kernel::{Execute, Instruction},
    warp::{Class, LANES, Value, Warp},
};
use std::array;

pub(crate) use crate::{
    access::{access, atomic_max, constant_parameter},
    matrix::{load_matrix, matrix_multiply},
    warp_operations::{ballot, shuffle_butterfly},
};

/// The function that executes the instructions of one opcode, and the register classes of the
/// operands.
pub(crate) struct Form {
    pub(crate) execute: Execute,
    pub(crate) to: Class,
    pub(crate) sources: &'static [Class],
}

/// An instruction with one source.
macro_rules! unary {
    ($to:ty, $from:ty, |$a:ident| $value:expr) => {{
        fn run(warp: &mut Warp, _: &mut Block<'_>, instruction: &Instruction) {
            let a = <$from>::read(warp, instruction.a);
            let mut values = [<$to>::default(); LANES];
            for lane in 0..LANES {
                let $a = a[lane];
                values[lane] = $value;
            }
            <$to>::write(warp, instruction.to, &values);
        }
        Form { execute: run, to: <$to>::CLASS, sources: &[<$from>::CLASS] }
    }};
}

/// An instruction with two sources, whose types may differ.
macro_rules! binary {
    ($to:ty, $first:ty, |$a:ident, $b:ident| $value:expr) => {
        binary!($to, $first, $first, |$a, $b| $value)
    };
    ($to:ty, $first:ty, $second:ty, |$a:ident, $b:ident| $value:expr) => {{
        fn run(warp: &mut Warp, _: &mut Block<'_>, instruction: &Instruction) {
            let (a, b) =
                (<$first>::read(warp, instruction.a), <$second>::read(warp, instruction.b));
            let mut values = [<$to>::default(); LANES];
            for lane in 0..LANES {
                let ($a, $b) = (a[lane], b[lane]);
                values[lane] = $value;
            }
            <$to>::write(warp, instruction.to, &values);
        }
        Form { execute: run, to: <$to>::CLASS, sources: &[<$first>::CLASS, <$second>::CLASS] }
    }};
}

macro_rules! ternary {
    ($type:ty, |$a:ident, $b:ident, $c:ident| $value:expr) => {{
        fn run(warp: &mut Warp, _: &mut Block<'_>, instruction: &Instruction) {
            let a = <$type>::read(warp, instruction.a);
            let b = <$type>::read(warp, instruction.b);
            let c = <$type>::read(warp, instruction.c);
            let mut values = [<$type>::default(); LANES];
            for lane in 0..LANES {
                let ($a, $b, $c) = (a[lane], b[lane], c[lane]);
                values[lane] = $value;
            }
            <$type>::write(warp, instruction.to, &values);
        }
        const CLASS: Class = <$type>::CLASS;
        Form { execute: run, to: CLASS, sources: &[CLASS, CLASS, CLASS] }
    }};
}

/// A division of integers, whose result is undefined for a divisor of zero.
macro_rules! division {
    ($type:ty, $divide:ident) => {{
        fn run(warp: &mut Warp, _: &mut Block<'_>, instruction: &Instruction) {
            let a = <$type>::read(warp, instruction.a);
            let b = <$type>::read(warp, instruction.b);
            let mut values = [<$type>::default(); LANES];
            for lane in 0..LANES {
                if b[lane] != 0 {
                    values[lane] = a[lane].$divide(b[lane]);
                } else if warp.is_active(lane) && warp.faulty == 0 {
                    warp.fail(lane, "division by zero");
                }
            }
            <$type>::write(warp, instruction.to, &values);
        }
        const CLASS: Class = <$type>::CLASS;
        Form { execute: run, to: CLASS, sources: &[CLASS, CLASS] }
    }};
}

/// A comparison, whose result is a predicate.
macro_rules! compare {
    ($type:ty, |$a:ident, $b:ident| $value:expr) => {{
        fn run(warp: &mut Warp, _: &mut Block<'_>, instruction: &Instruction) {
            let a = <$type>::read(warp, instruction.a);
            let b = <$type>::read(warp, instruction.b);
            let mut mask = 0;
            for lane in 0..LANES {
                let ($a, $b) = (a[lane], b[lane]);
                mask |= u32::from($value) << lane;
            }
            warp.set_predicate(instruction.to, mask);
        }
        const CLASS: Class = <$type>::CLASS;
        Form { execute: run, to: Class::Predicate, sources: &[CLASS, CLASS] }
    }};
}

/// Defines an instruction that approximates a function: by the correctly rounded value, or by the
/// least precise value that the ISA allows.
macro_rules! approximation {
    ($type:ty, |$a:ident| $best:expr, $least:expr) => {{
        fn run(warp: &mut Warp, block: &mut Block<'_>, instruction: &Instruction) {
            let a = <$type>::read(warp, instruction.a);
            let values = match block.precision {
                Precision::Best => a.map(|$a| $best),
                Precision::Least => a.map(|$a| $least),
            };
            <$type>::write(warp, instruction.to, &values);
        }
        Form { execute: run, to: <$type>::CLASS, sources: &[<$type>::CLASS] }
    }};
}

/// A logical operation on predicates.
macro_rules! logic {
    (|$a:ident| $value:expr) => {{
        fn run(warp: &mut Warp, _: &mut Block<'_>, instruction: &Instruction) {
            let $a = warp.predicate(instruction.a);
            warp.set_predicate(instruction.to, $value);
        }
        Form { execute: run, to: Class::Predicate, sources: &[Class::Predicate] }
    }};
    (|$a:ident, $b:ident| $value:expr) => {{
        fn run(warp: &mut Warp, _: &mut Block<'_>, instruction: &Instruction) {
            let ($a, $b) = (warp.predicate(instruction.a), warp.predicate(instruction.b));
            warp.set_predicate(instruction.to, $value);
        }
        Form { execute: run, to: Class::Predicate, sources: &[Class::Predicate; 2] }
    }};
}

fn select<T: Value>(warp: &mut Warp, _: &mut Block<'_>, instruction: &Instruction) {
    let mask = warp.predicate(instruction.c);
    // A lane may select one operand while the other is not written.
    let active = warp.active;
    warp.active = active & mask;
    let a = T::read(warp, instruction.a);
    warp.active = active & !mask;
    let b = T::read(warp, instruction.b);
    warp.active = active;
    let mut values = [T::default(); LANES];
    for lane in 0..LANES {
        values[lane] = if mask >> lane & 1 != 0 { a[lane] } else { b[lane] };
    }
    T::write(warp, instruction.to, &values);
}

fn moved<T: Value>(warp: &mut Warp, _: &mut Block<'_>, instruction: &Instruction) {
    let values = T::read(warp, instruction.a);
    T::write(warp, instruction.to, &values);
}

/// Returns the instruction that copies a register of a class.
pub(crate) fn register_move(class: Class) -> Execute {
    if class == Class::Word { moved::<u32> } else { moved::<u64> }
}

fn pack_words(warp: &mut Warp, _: &mut Block<'_>, instruction: &Instruction) {
    let low = u16::read(warp, instruction.list[0]);
    let high = u16::read(warp, instruction.list[1]);
    let values = array::from_fn(|lane| u32::from(high[lane]) << 16 | u32::from(low[lane]));
    u32::write(warp, instruction.to, &values);
}

fn unpack_words(warp: &mut Warp, _: &mut Block<'_>, instruction: &Instruction) {
    let values = u32::read(warp, instruction.a);
    u16::write(warp, instruction.list[0], &values.map(|value| value as u16));
    u16::write(warp, instruction.list[1], &values.map(|value| (value >> 16) as u16));
}

fn pack_doubles(warp: &mut Warp, _: &mut Block<'_>, instruction: &Instruction) {
    let low = u32::read(warp, instruction.list[0]);
    let high = u32::read(warp, instruction.list[1]);
    let values = array::from_fn(|lane| u64::from(high[lane]) << 32 | u64::from(low[lane]));
    u64::write(warp, instruction.to, &values);
}

fn unpack_doubles(warp: &mut Warp, _: &mut Block<'_>, instruction: &Instruction) {
    let values = u64::read(warp, instruction.a);
    u32::write(warp, instruction.list[0], &values.map(|value| value as u32));
    u32::write(warp, instruction.list[1], &values.map(|value| (value >> 32) as u32));
}

/// Returns the instruction that packs or unpacks a vector of two elements.
pub(crate) fn vector_move(class: Class, is_pack: bool) -> Execute {
    match (class, is_pack) {
        (Class::Word, true) => pack_words,
        (Class::Word, false) => unpack_words,
        (_, true) => pack_doubles,
        (_, false) => unpack_doubles,
    }
}

/// Returns the `Form` of an opcode, or `None` if the opcode is unknown or needs special decoding.
pub(crate) fn form(opcode: &str) -> Option<Form> {
    let (name, types) = opcode.split_once('.')?;
    match name {
        "setp" => comparison(types),
        "cvt" => conversion(types),
        "mov" | "selp" | "cvta" => transfer(name, types),
        _ => integer(opcode).or_else(|| float(opcode)),
    }
}

fn transfer(name: &str, types: &str) -> Option<Form> {
    use Class::{Double, Predicate, Word};
    let moves =
        |execute, class: &'static [Class; 1]| Form { execute, to: class[0], sources: class };
    let selects = |execute, sources: &'static [Class; 3]| Form { execute, to: sources[0], sources };
    Some(match (name, types) {
        ("mov", "pred") => logic!(|a| a),
        ("mov", "u16" | "u32" | "b32" | "f32") => moves(moved::<u32>, &[Word]),
        // Global addresses are the same in the generic address space.
        ("mov", "u64" | "b64" | "f64") | ("cvta", "to.global.u64") => {
            moves(moved::<u64>, &[Double])
        }
        ("selp", "b16" | "u16" | "b32" | "u32" | "s32" | "f32") => {
            selects(select::<u32>, &[Word, Word, Predicate])
        }
        ("selp", "b64" | "u64" | "f64") => selects(select::<u64>, &[Double, Double, Predicate]),
        _ => return None,
    })
}

fn integer(opcode: &str) -> Option<Form> {
    Some(match opcode {
        "add.s16" => binary!(u16, u16, |a, b| a.wrapping_add(b)),
        "add.s32" => binary!(u32, u32, |a, b| a.wrapping_add(b)),
        "add.s64" => binary!(u64, u64, |a, b| a.wrapping_add(b)),
        "sub.s32" => binary!(u32, u32, |a, b| a.wrapping_sub(b)),
        "sub.s64" => binary!(u64, u64, |a, b| a.wrapping_sub(b)),
        "neg.s64" => unary!(u64, u64, |a| a.wrapping_neg()),
        "mul.lo.s32" => binary!(u32, u32, |a, b| a.wrapping_mul(b)),
        "mul.lo.s64" => binary!(u64, u64, |a, b| a.wrapping_mul(b)),
        "mul.wide.u32" => binary!(u64, u32, |a, b| u64::from(a) * u64::from(b)),
        "mul.wide.s32" => binary!(i64, i32, |a, b| i64::from(a) * i64::from(b)),
        "mad.lo.s32" => ternary!(u32, |a, b, c| a.wrapping_mul(b).wrapping_add(c)),
        "div.s32" => division!(i32, wrapping_div),
        "div.u32" => division!(u32, wrapping_div),
        "div.u64" => division!(u64, wrapping_div),
        "rem.u32" => division!(u32, wrapping_rem),
        "rem.u64" => division!(u64, wrapping_rem),
        "min.u32" => binary!(u32, u32, |a, b| a.min(b)),
        "min.u64" => binary!(u64, u64, |a, b| a.min(b)),
        "min.s64" => binary!(i64, i64, |a, b| a.min(b)),
        "max.u32" => binary!(u32, u32, |a, b| a.max(b)),
        "max.u64" => binary!(u64, u64, |a, b| a.max(b)),
        "max.s64" => binary!(i64, i64, |a, b| a.max(b)),
        "and.b16" => binary!(u16, u16, |a, b| a & b),
        "and.b32" => binary!(u32, u32, |a, b| a & b),
        "and.b64" => binary!(u64, u64, |a, b| a & b),
        "or.b32" => binary!(u32, u32, |a, b| a | b),
        "or.b64" => binary!(u64, u64, |a, b| a | b),
        "xor.b32" => binary!(u32, u32, |a, b| a ^ b),
        "xor.b64" => binary!(u64, u64, |a, b| a ^ b),
        "not.b32" => unary!(u32, u32, |a| !a),
        "not.b64" => unary!(u64, u64, |a| !a),
        "and.pred" => logic!(|a, b| a & b),
        "or.pred" => logic!(|a, b| a | b),
        "xor.pred" => logic!(|a, b| a ^ b),
        "not.pred" => logic!(|a| !a),
        "shl.b32" => binary!(u32, u32, |a, b| shl_u32(a, b)),
        "shl.b64" => binary!(u64, u64, u32, |a, b| shl_u64(a, b)),
        "shr.u32" => binary!(u32, u32, |a, b| shr_u32(a, b)),
        "shr.u64" => binary!(u64, u64, u32, |a, b| shr_u64(a, b)),
        "shr.s32" => binary!(i32, i32, u32, |a, b| shr_i32(a, b)),
        "brev.b32" => unary!(u32, u32, |a| a.reverse_bits()),
        "bfind.shiftamt.u32" => unary!(u32, u32, |a| find_shift(a)),
        "prmt.b32" => ternary!(u32, |a, b, c| permute_bytes(a, b, c)),
        "bfi.b32" => bit_field_insert(),
        _ => return None,
    })
}

fn bit_field_insert() -> Form {
    fn run(warp: &mut Warp, _: &mut Block<'_>, instruction: &Instruction) {
        let [a, b, c] =
            [instruction.a, instruction.b, instruction.c].map(|slot| u32::read(warp, slot));
        let length = u32::read(warp, instruction.list[0]);
        let values = array::from_fn(|lane| insert_bits(a[lane], b[lane], c[lane], length[lane]));
        u32::write(warp, instruction.to, &values);
    }
    Form { execute: run, to: Class::Word, sources: &[Class::Word; 4] }
}

fn float(opcode: &str) -> Option<Form> {
    Some(match opcode {
        "add.f32" | "add.rn.f32" => binary!(f32, f32, |a, b| canonical(a + b)),
        "add.rz.f32" => binary!(f32, f32, |a, b| add_toward_zero(a, b)),
        "add.f64" | "add.rn.f64" => binary!(f64, f64, |a, b| a + b),
        "sub.f32" => binary!(f32, f32, |a, b| canonical(a - b)),
        "sub.f64" => binary!(f64, f64, |a, b| a - b),
        "mul.f32" | "mul.rn.f32" => binary!(f32, f32, |a, b| canonical(a * b)),
        "mul.f64" | "mul.rn.f64" => binary!(f64, f64, |a, b| a * b),
        "div.rn.f32" => binary!(f32, f32, |a, b| canonical(a / b)),
        "div.rn.f64" => binary!(f64, f64, |a, b| a / b),
        "fma.rn.f32" => ternary!(f32, |a, b, c| canonical(a.mul_add(b, c))),
        "fma.rn.f64" => ternary!(f64, |a, b, c| a.mul_add(b, c)),
        "fma.rm.f32" => ternary!(f32, |a, b, c| fma_down(a, b, c)),
        "sqrt.rn.f32" => unary!(f32, f32, |a| canonical(a.sqrt())),
        "sqrt.rn.f64" => unary!(f64, f64, |a| a.sqrt()),
        "rcp.rn.f32" => unary!(f32, f32, |a| canonical(1.0 / a)),
        "rcp.rn.f64" => unary!(f64, f64, |a| 1.0 / a),
        "rcp.approx.ftz.f32" => {
            approximation!(f32, |a| reciprocal_ftz(a), displace(reciprocal_ftz(a), 1))
        }
        "rcp.approx.ftz.f64" => {
            approximation!(f64, |a| reciprocal_high(a), imprecise_reciprocal_high(a))
        }
        "ex2.approx.f32" => approximation!(f32, |a| exp2(a), imprecise_exp2(a)),
        "ex2.approx.ftz.f32" => {
            approximation!(f32, |a| flush(exp2(flush(a))), flush(imprecise_exp2(flush(a))))
        }
        "min.f32" => binary!(f32, f32, |a, b| canonical(min_f32(a, b))),
        "min.f64" => binary!(f64, f64, |a, b| min_f64(a, b)),
        "max.f32" => binary!(f32, f32, |a, b| canonical(max_f32(a, b))),
        "max.f64" => binary!(f64, f64, |a, b| max_f64(a, b)),
        "neg.f32" => unary!(f32, f32, |a| -a),
        "neg.f64" => unary!(f64, f64, |a| -a),
        "abs.f32" => unary!(f32, f32, |a| a.abs()),
        "abs.f64" => unary!(f64, f64, |a| a.abs()),
        // The sign is that of the first operand, the magnitude that of the second.
        "copysign.f32" => binary!(f32, f32, |a, b| b.copysign(a)),
        "copysign.f64" => binary!(f64, f64, |a, b| b.copysign(a)),
        _ => return None,
    })
}

/// Returns the instruction that computes a product and a sum with one rounding, in place of `mul` and
/// the instruction `sum`. `is_first` states whether the product is the first operand of the sum. The
/// sources are the factors and the other operand of the sum.
pub(crate) fn fused(sum: &str, is_first: bool) -> Option<Form> {
    Some(match (sum, is_first) {
        ("add.f32", _) => ternary!(f32, |a, b, c| canonical(a.mul_add(b, c))),
        ("sub.f32", true) => ternary!(f32, |a, b, c| canonical(a.mul_add(b, -c))),
        ("sub.f32", false) => ternary!(f32, |a, b, c| canonical((-a).mul_add(b, c))),
        ("add.f64", _) => ternary!(f64, |a, b, c| a.mul_add(b, c)),
        ("sub.f64", true) => ternary!(f64, |a, b, c| a.mul_add(b, -c)),
        ("sub.f64", false) => ternary!(f64, |a, b, c| (-a).mul_add(b, c)),
        _ => return None,
    })
}

fn conversion(types: &str) -> Option<Form> {
    Some(match types {
        "u16.u32" => unary!(u16, u32, |a| a as u16),
        "u16.u64" => unary!(u16, u64, |a| a as u16),
        "u32.u64" => unary!(u32, u64, |a| a as u32),
        "u64.u32" => unary!(u64, u32, |a| u64::from(a)),
        "s64.s32" => unary!(i64, i32, |a| i64::from(a)),
        "f32.f16" => unary!(f32, u16, |a| f16_to_f32(a)),
        "f64.f32" => unary!(f64, f32, |a| f64::from(a)),
        "rn.f16.f32" => unary!(u16, f32, |a| f32_to_f16(a)),
        "rn.f16.f64" => unary!(u16, f64, |a| f64_to_f16(a)),
        "rn.bf16.f32" => unary!(u16, f32, |a| f32_to_bf16(a)),
        "rna.tf32.f32" => unary!(u32, f32, |a| f32_to_tf32(a)),
        "rn.f32.f64" => unary!(f32, f64, |a| canonical(a as f32)),
        "rn.f32.s32" => unary!(f32, i32, |a| a as f32),
        "rn.f32.s64" => unary!(f32, i64, |a| a as f32),
        "rn.f32.u32" => unary!(f32, u32, |a| a as f32),
        "rn.f64.s16" => unary!(f64, i16, |a| f64::from(a)),
        "rn.f64.s32" => unary!(f64, i32, |a| f64::from(a)),
        "rn.f64.s64" => unary!(f64, i64, |a| a as f64),
        "rn.f64.u16" => unary!(f64, u16, |a| f64::from(a)),
        "rn.f64.u32" => unary!(f64, u32, |a| f64::from(a)),
        "rn.f64.u64" => unary!(f64, u64, |a| a as f64),
        "rmi.f32.f32" => unary!(f32, f32, |a| canonical(a.floor())),
        "rmi.f64.f64" => unary!(f64, f64, |a| a.floor()),
        "rni.f32.f32" => unary!(f32, f32, |a| canonical(a.round_ties_even())),
        "rzi.f32.f32" => unary!(f32, f32, |a| canonical(a.trunc())),
        "rzi.f64.f64" => unary!(f64, f64, |a| a.trunc()),
        "rzi.s32.f32" => unary!(i32, f32, |a| f32_to_i32(a)),
        "rzi.u32.f32" => unary!(u32, f32, |a| f32_to_u32(a)),
        "rzi.s64.f64" => unary!(i64, f64, |a| f64_to_i64(a)),
        "rzi.u32.f64" => unary!(u32, f64, |a| f64_to_u32(a)),
        "sat.f32.f32" => unary!(f32, f32, |a| saturate(a)),
        _ => return None,
    })
}

/// Comparisons of integers of one type.
macro_rules! integer_comparison {
    ($type:ty, $name:expr) => {
        match $name {
            "eq" => compare!($type, |a, b| a == b),
            "ne" => compare!($type, |a, b| a != b),
            "lt" => compare!($type, |a, b| a < b),
            "le" => compare!($type, |a, b| a <= b),
            "gt" => compare!($type, |a, b| a > b),
            "ge" => compare!($type, |a, b| a >= b),
            _ => return None,
        }
    };
}

/// Comparisons of floating-point numbers of one type. A comparison with NaN is false, or true for
/// the names that end in `u`.
macro_rules! float_comparison {
    ($type:ty, $name:expr) => {
        match $name {
            "eq" => compare!($type, |a, b| a == b),
            "lt" => compare!($type, |a, b| a < b),
            "le" => compare!($type, |a, b| a <= b),
            "gt" => compare!($type, |a, b| a > b),
            "ge" => compare!($type, |a, b| a >= b),
            "neu" => compare!($type, |a, b| a != b),
            "ltu" => compare!($type, |a, b| !(a >= b)),
            "leu" => compare!($type, |a, b| !(a > b)),
            "gtu" => compare!($type, |a, b| !(a <= b)),
            "geu" => compare!($type, |a, b| !(a < b)),
            "num" => compare!($type, |a, b| !(a.is_nan() | b.is_nan())),
            "nan" => compare!($type, |a, b| a.is_nan() | b.is_nan()),
            _ => return None,
        }
    };
}

fn comparison(types: &str) -> Option<Form> {
    let (name, element) = types.split_once('.')?;
    Some(match element {
        "b16" => integer_comparison!(u16, name),
        "s16" => integer_comparison!(i16, name),
        "u32" => integer_comparison!(u32, name),
        "s32" => integer_comparison!(i32, name),
        "b64" | "u64" => integer_comparison!(u64, name),
        "s64" => integer_comparison!(i64, name),
        "f32" => float_comparison!(f32, name),
        "f64" => float_comparison!(f64, name),
        _ => return None,
    })
}
