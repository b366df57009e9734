//! Tests of instructions, whose expected values follow from IEEE 754 and from the text of the PTX
//! ISA.

mod support;

use support::{module, run};

/// Register prefix, type of loads and stores, and width in words of a type.
fn register(kind: &str) -> (&'static str, &'static str, usize) {
    match kind {
        "16" => ("%rs", "u16", 1),
        "32" => ("%r", "u32", 1),
        "f32" => ("%f", "f32", 1),
        "64" => ("%rd", "u64", 2),
        "f64" => ("%fd", "f64", 2),
        "pred" => ("%p", "", 1),
        _ => panic!("{kind}"),
    }
}

/// Runs an instruction with one lane per row of bit patterns, and returns the results.
fn results(opcode: &str, to: &str, from: &[&str], rows: &[Vec<u64>]) -> Vec<u64> {
    let mut body = "\tmul.wide.u32 %rd30, %r0, 64;\n\tadd.s64 %rd31, %rd0, %rd30;\n".to_owned();
    let mut operands = Vec::new();
    for (i, kind) in from.iter().enumerate() {
        let (prefix, load, _) = register(kind);
        let name = format!("{prefix}{}", i + 2);
        if *kind == "pred" {
            body += &format!("\tld.global.u32 %r50, [%rd31+{}];\n", 16 * i);
            body += &format!("\tsetp.ne.s32 {name}, %r50, 0;\n");
        } else {
            body += &format!("\tld.global.{load} {name}, [%rd31+{}];\n", 16 * i);
        }
        operands.push(name);
    }
    let (prefix, store, words) = register(to);
    body += &format!("\t{opcode} {prefix}1, {};\n", operands.join(", "));
    if to == "pred" {
        body += "\tselp.b32 %r51, 1, 0, %p1;\n\tst.global.u32 [%rd31+48], %r51;\n";
    } else {
        body += &format!("\tst.global.{store} [%rd31+48], {prefix}1;\n");
    }
    let mut memory = vec![0; 16 * rows.len()];
    for (lane, row) in rows.iter().enumerate() {
        for (i, value) in row.iter().enumerate() {
            memory[16 * lane + 4 * i] = *value as u32;
            memory[16 * lane + 4 * i + 1] = (value >> 32) as u32;
        }
    }
    let memory = run(&module("", &body), rows.len() as u32, &memory).unwrap();
    let result = |words: &[u32]| match words {
        [low, high] => u64::from(*high) << 32 | u64::from(*low),
        _ => words[0].into(),
    };
    (0..rows.len()).map(|lane| result(&memory[16 * lane + 12..][..words])).collect()
}

/// Checks an instruction on each row, which contains the sources and then the expected result.
fn check(opcode: &str, to: &str, from: &[&str], rows: &[&[u64]]) {
    let sources: Vec<_> = rows.iter().map(|row| row[..from.len()].to_vec()).collect();
    let found = results(opcode, to, from, &sources);
    for (row, found) in rows.iter().zip(found) {
        let expected = row[from.len()];
        assert_eq!(found, expected, "{opcode} {row:x?}: found {found:x}, expected {expected:x}");
    }
}

fn single(x: f32) -> u64 {
    x.to_bits().into()
}

/// Checks an instruction on `f32` numbers: each row contains the sources and then the expected
/// result.
fn check_f32(opcode: &str, rows: &[&[f32]]) {
    let bits: Vec<Vec<u64>> =
        rows.iter().map(|row| row.iter().copied().map(single).collect()).collect();
    let rows: Vec<&[u64]> = bits.iter().map(Vec::as_slice).collect();
    check(opcode, "f32", &vec!["f32"; rows[0].len() - 1], &rows);
}

fn check_f64(opcode: &str, rows: &[&[f64]]) {
    let bits: Vec<Vec<u64>> =
        rows.iter().map(|row| row.iter().map(|x| x.to_bits()).collect()).collect();
    let rows: Vec<&[u64]> = bits.iter().map(Vec::as_slice).collect();
    check(opcode, "f64", &vec!["f64"; rows[0].len() - 1], &rows);
}

/// 2 to the power of `n`.
fn power(n: i32) -> f32 {
    f32::from_bits(((n + 127) as u32) << 23)
}

/// The canonical NaN.
const NAN: u64 = 0x7fff_ffff;

#[test]
fn sums_and_products_round_to_nearest_even() {
    let ulp = power(-23);
    check_f32(
        "add.f32",
        &[
            &[1.0, power(-24), 1.0],
            &[1.0 + ulp, power(-24), 1.0 + 2.0 * ulp],
            &[1.0, -1.0, 0.0],
            &[f32::MAX, f32::MAX, f32::INFINITY],
            &[power(-126), -power(-126) * 0.5, power(-126) * 0.5],
        ],
    );
    check_f32("sub.f32", &[&[3.0, 5.0, -2.0], &[0.0, 0.0, 0.0]]);
    // (1 + 2^-12)² = 1 + 2^-11 + 2^-24, which lies half-way between two numbers.
    check_f32("mul.rn.f32", &[&[1.0 + power(-12), 1.0 + power(-12), 1.0 + power(-11)]]);
    check_f64("add.rn.f64", &[&[1.0, 2f64.powi(-53), 1.0], &[0.1, 0.2, 0.30000000000000004]]);
    check_f64("mul.f64", &[&[3.0, 0.1, 0.30000000000000004]]);
    check_f64("sub.f64", &[&[0.3, 0.1, 0.19999999999999998]]);
}

#[test]
fn single_precision_results_have_the_canonical_nan() {
    let (inf, other_nan) = (single(f32::INFINITY), 0xffc0_1234);
    let pair = ["f32"; 2];
    check("add.f32", "f32", &pair, &[&[inf, inf | 1 << 31, NAN], &[other_nan, 0, NAN]]);
    check("mul.f32", "f32", &pair, &[&[inf, 0, NAN]]);
    check("div.rn.f32", "f32", &pair, &[&[0, 0, NAN]]);
    check("sqrt.rn.f32", "f32", &["f32"], &[&[single(-1.0), NAN], &[1 << 31, 1 << 31]]);
    check("fma.rn.f32", "f32", &["f32"; 3], &[&[inf, 0, 0, NAN]]);
    check("cvt.f32.f16", "f32", &["16"], &[&[0xfe01, NAN]]);
}

#[test]
fn fused_operations_round_once() {
    // (1 + 2^-12)² − 1 = 2^-11 + 2^-24 exactly.
    let x = 1.0 + power(-12);
    check_f32("fma.rn.f32", &[&[x, x, -1.0, power(-11) + power(-24)], &[2.0, 3.0, 4.0, 10.0]]);
    let x = 1.0 + 2f64.powi(-27);
    check_f64("fma.rn.f64", &[&[x, x, -1.0, 2f64.powi(-26) + 2f64.powi(-54)]]);
}

#[test]
fn directed_rounding_moves_towards_zero_and_down() {
    let ulp = power(-23);
    let (tiny, above) = (power(-60), 1.0 + ulp);
    check_f32(
        "add.rz.f32",
        &[
            &[1.0, tiny, 1.0],
            &[1.0, -tiny, 1.0 - ulp / 2.0],
            &[-1.0, tiny, -1.0 + ulp / 2.0],
            &[-1.0, -tiny, -1.0],
            &[1.0, ulp * 0.75, 1.0],
            &[above, -power(-90), 1.0],
            &[f32::MAX, f32::MAX, f32::MAX],
            &[1.0, 2.0, 3.0],
        ],
    );
    check_f32(
        "fma.rm.f32",
        &[
            &[1.0, 1.0, tiny, 1.0],
            &[1.0, 1.0, -tiny, 1.0 - ulp / 2.0],
            &[-1.0, 1.0, tiny, -1.0],
            &[-1.0, 1.0, -tiny, -1.0 - ulp],
            &[1.0, 1.0, -1.0, -0.0],
            &[0.0, 1.0, 0.0, 0.0],
            &[f32::MAX, 2.0, 0.0, f32::MAX],
            &[f32::MAX, -2.0, 0.0, f32::NEG_INFINITY],
        ],
    );
}

#[test]
fn quotients_and_roots_are_correctly_rounded() {
    check_f32("div.rn.f32", &[&[1.0, 3.0, 0.333_333_34], &[-1.0, 0.0, f32::NEG_INFINITY]]);
    check_f32("rcp.rn.f32", &[&[4.0, 0.25], &[-0.0, f32::NEG_INFINITY]]);
    check_f32("sqrt.rn.f32", &[&[2.0, std::f32::consts::SQRT_2], &[9.0, 3.0]]);
    check_f64("div.rn.f64", &[&[1.0, 3.0, 0.3333333333333333]]);
    check_f64("rcp.rn.f64", &[&[3.0, 0.3333333333333333]]);
    check_f64("sqrt.rn.f64", &[&[2.0, std::f64::consts::SQRT_2]]);
}

#[test]
fn approximations_follow_the_tables_of_special_values() {
    let subnormal = power(-126) / 4.0;
    let infinity = f32::INFINITY;
    check_f32(
        "ex2.approx.ftz.f32",
        &[
            &[f32::NEG_INFINITY, 0.0],
            &[-subnormal, 1.0],
            &[subnormal, 1.0],
            &[0.0, 1.0],
            &[3.0, 8.0],
            &[-127.0, 0.0],
            &[128.0, infinity],
            &[infinity, infinity],
        ],
    );
    check_f32("ex2.approx.f32", &[&[-127.0, power(-126) / 2.0], &[-1.0, 0.5], &[0.0, 1.0]]);
    check("ex2.approx.f32", "f32", &["f32"], &[&[0x7fc0_0001, NAN]]);
    check_f32(
        "rcp.approx.ftz.f32",
        &[
            &[f32::NEG_INFINITY, -0.0],
            &[-subnormal, f32::NEG_INFINITY],
            &[0.0, infinity],
            &[infinity, 0.0],
            &[-2.0, -0.5],
            &[power(127), 0.0],
        ],
    );
    // The instruction ignores the lower word of the operand, and the lower word of the result is 0.
    check(
        "rcp.approx.ftz.f64",
        "f64",
        &["f64"],
        &[
            &[2f64.to_bits() | 0xffff, 0.5f64.to_bits()],
            &[0, f64::INFINITY.to_bits()],
            &[f64::NEG_INFINITY.to_bits(), (-0.0f64).to_bits()],
            &[3f64.to_bits(), 0x3fd5_5555_0000_0000],
        ],
    );
}

#[test]
fn extrema_prefer_numbers_to_nan_and_order_zeros() {
    let (nan, one, zero, minus_zero) = (0x7fc0_0000, single(1.0), 0, 1 << 31);
    let pair = ["f32"; 2];
    check(
        "min.f32",
        "f32",
        &pair,
        &[
            &[nan, one, one],
            &[one, nan, one],
            &[nan, nan, NAN],
            &[zero, minus_zero, minus_zero],
            &[minus_zero, zero, minus_zero],
            &[single(-3.0), one, single(-3.0)],
        ],
    );
    check(
        "max.f32",
        "f32",
        &pair,
        &[
            &[nan, one, one],
            &[one, nan, one],
            &[nan, nan, NAN],
            &[zero, minus_zero, zero],
            &[minus_zero, zero, zero],
            &[single(-3.0), one, one],
        ],
    );
    check_f64("min.f64", &[&[f64::NAN, 2.0, 2.0], &[0.0, -0.0, -0.0], &[1.0, 2.0, 1.0]]);
    check_f64("max.f64", &[&[2.0, f64::NAN, 2.0], &[-0.0, 0.0, 0.0], &[1.0, 2.0, 2.0]]);
}

#[test]
fn signs_are_copied_and_changed() {
    check_f32("copysign.f32", &[&[-0.0, 3.0, -3.0], &[1.0, -3.0, 3.0]]);
    check_f64("copysign.f64", &[&[-1.0, 3.0, -3.0], &[0.0, -3.0, 3.0]]);
    check_f32("neg.f32", &[&[0.0, -0.0], &[-2.0, 2.0]]);
    check_f64("neg.f64", &[&[2.0, -2.0]]);
    check_f32("abs.f32", &[&[-0.0, 0.0], &[-2.0, 2.0]]);
    check_f64("abs.f64", &[&[-2.0, 2.0]]);
}

#[test]
fn conversions_between_floating_point_formats_round_as_stated() {
    let half = |x: f64| x.to_bits();
    check(
        "cvt.rn.f16.f64",
        "16",
        &["f64"],
        &[
            &[half(1.0), 0x3c00],
            &[half(65504.0), 0x7bff],
            &[half(65519.99), 0x7bff],
            &[half(65520.0), 0x7c00],
            &[half(-1e9), 0xfc00],
            &[half(2f64.powi(-24)), 0x0001],
            &[half(2f64.powi(-25)), 0x0000],
            &[half(3.0 * 2f64.powi(-25)), 0x0002],
            &[half(2f64.powi(-14) - 2f64.powi(-26)), 0x0400],
            // Just above half-way between two numbers; rounding to f32 first would lose the excess.
            &[half(1.0 + 2f64.powi(-11) + 2f64.powi(-40)), 0x3c01],
            &[half(1.0 + 2f64.powi(-11)), 0x3c00],
            &[half(f64::NAN), 0x7fff],
        ],
    );
    check(
        "cvt.rn.f16.f32",
        "16",
        &["f32"],
        &[
            &[single(0.333_333_34), 0x3555],
            &[single(-2.0), 0xc000],
            &[single(f32::INFINITY), 0x7c00],
            &[1, 0],
        ],
    );
    check(
        "cvt.rn.bf16.f32",
        "16",
        &["f32"],
        &[
            &[single(1.0), 0x3f80],
            &[0x3f80_8000, 0x3f80],
            &[0x3f81_8000, 0x3f82],
            &[0x3f80_8001, 0x3f81],
            &[single(f32::MAX), 0x7f80],
            &[0xffff_ffff, 0x7fff],
        ],
    );
    check(
        "cvt.f32.f16",
        "f32",
        &["16"],
        &[
            &[0x3555, single(0.333_251_95)],
            &[0x0001, single(power(-24))],
            &[0x83ff, single(-1023.0 * power(-24))],
            &[0xfc00, single(f32::NEG_INFINITY)],
            &[0x8000, 1 << 31],
        ],
    );
    // Ties away from zero at bit 13.
    check(
        "cvt.rna.tf32.f32",
        "32",
        &["f32"],
        &[
            &[0x3f80_1000, 0x3f80_2000],
            &[0x3f80_0fff, 0x3f80_0000],
            &[0xbf80_1000, 0xbf80_2000],
            &[single(f32::INFINITY), 0x7f80_0000],
        ],
    );
    check(
        "cvt.rn.f32.f64",
        "f32",
        &["f64"],
        &[
            &[0.1f64.to_bits(), single(0.1)],
            &[1e300f64.to_bits(), single(f32::INFINITY)],
            &[f64::NAN.to_bits(), NAN],
        ],
    );
    check("cvt.f64.f32", "f64", &["f32"], &[&[single(0.5), 0.5f64.to_bits()]]);
    check_f32("cvt.sat.f32.f32", &[&[1.5, 1.0], &[-0.5, 0.0], &[0.25, 0.25], &[f32::NAN, 0.0]]);
}

#[test]
fn conversions_to_integral_values_round_as_stated() {
    check_f32("cvt.rni.f32.f32", &[&[0.5, 0.0], &[1.5, 2.0], &[2.5, 2.0], &[-2.5, -2.0]]);
    check_f32("cvt.rmi.f32.f32", &[&[0.5, 0.0], &[-0.5, -1.0], &[2.0, 2.0]]);
    check_f32("cvt.rzi.f32.f32", &[&[1.9, 1.0], &[-1.9, -1.0]]);
    check_f64("cvt.rmi.f64.f64", &[&[-0.5, -1.0], &[1e300, 1e300]]);
    check_f64("cvt.rzi.f64.f64", &[&[-1.9, -1.0]]);
    let nan = single(f32::NAN);
    check(
        "cvt.rzi.s32.f32",
        "32",
        &["f32"],
        &[
            &[single(-1.9), 0xffff_ffff],
            &[single(1e20), 0x7fff_ffff],
            &[single(-1e20), 0x8000_0000],
            &[nan, 0],
        ],
    );
    check(
        "cvt.rzi.u32.f32",
        "32",
        &["f32"],
        &[&[single(-1.0), 0], &[single(1e20), 0xffff_ffff], &[nan, 0]],
    );
    // A 64-bit NaN is converted to the integer of which only the highest bit is set.
    check(
        "cvt.rzi.s64.f64",
        "64",
        &["f64"],
        &[
            &[(-3.7f64).to_bits(), -3i64 as u64],
            &[1e300f64.to_bits(), i64::MAX as u64],
            &[f64::NAN.to_bits(), 1 << 63],
        ],
    );
    check(
        "cvt.rzi.u32.f64",
        "32",
        &["f64"],
        &[&[3.7f64.to_bits(), 3], &[f64::NAN.to_bits(), 1 << 31]],
    );
}

#[test]
fn conversions_of_integers_extend_truncate_and_round() {
    check("cvt.s64.s32", "64", &["32"], &[&[0xffff_fffe, -2i64 as u64], &[5, 5]]);
    check("cvt.u64.u32", "64", &["32"], &[&[0xffff_fffe, 0xffff_fffe]]);
    check("cvt.u32.u64", "32", &["64"], &[&[0x1_2345_6789, 0x2345_6789]]);
    check("cvt.u16.u32", "16", &["32"], &[&[0x12345, 0x2345]]);
    check("cvt.u16.u64", "16", &["64"], &[&[0x1_0000_2345, 0x2345]]);
    // 2^24 + 1 lies half-way between two numbers.
    check(
        "cvt.rn.f32.s32",
        "f32",
        &["32"],
        &[&[16_777_217, single(16_777_216.0)], &[-3i32 as u32 as u64, single(-3.0)]],
    );
    check("cvt.rn.f32.u32", "f32", &["32"], &[&[0xffff_ffff, single(4_294_967_296.0)]]);
    check("cvt.rn.f32.s64", "f32", &["64"], &[&[-1i64 as u64, single(-1.0)]]);
    check("cvt.rn.f64.s16", "f64", &["16"], &[&[0xfffe, (-2f64).to_bits()]]);
    check("cvt.rn.f64.u16", "f64", &["16"], &[&[0xfffe, 65534f64.to_bits()]]);
    check("cvt.rn.f64.s32", "f64", &["32"], &[&[0xffff_fffe, (-2f64).to_bits()]]);
    check("cvt.rn.f64.u32", "f64", &["32"], &[&[0xffff_fffe, 4_294_967_294f64.to_bits()]]);
    check("cvt.rn.f64.s64", "f64", &["64"], &[&[(1 << 53) + 1, 2f64.powi(53).to_bits()]]);
    check("cvt.rn.f64.u64", "f64", &["64"], &[&[u64::MAX, 2f64.powi(64).to_bits()]]);
}

#[test]
fn integer_arithmetic_wraps_and_widens() {
    let (words, doubles) = (["32"; 2], ["64"; 2]);
    check("add.s16", "16", &["16"; 2], &[&[0xffff, 2, 1]]);
    check("add.s32", "32", &words, &[&[0xffff_ffff, 2, 1]]);
    check("add.s64", "64", &doubles, &[&[u64::MAX, 2, 1]]);
    check("sub.s32", "32", &words, &[&[1, 2, 0xffff_ffff]]);
    check("sub.s64", "64", &doubles, &[&[1, 2, u64::MAX]]);
    check("neg.s64", "64", &["64"], &[&[1, u64::MAX], &[1 << 63, 1 << 63]]);
    check("mul.lo.s32", "32", &words, &[&[0x10001, 0x10001, 0x20001]]);
    check("mul.lo.s64", "64", &doubles, &[&[1 << 40, 1 << 30, 0], &[7, 6, 42]]);
    check("mul.wide.u32", "64", &words, &[&[0xffff_ffff, 2, 0x1_ffff_fffe]]);
    check("mul.wide.s32", "64", &words, &[&[0xffff_ffff, 2, -2i64 as u64]]);
    check("mad.lo.s32", "32", &["32"; 3], &[&[0x10000, 0x10000, 5, 5], &[3, 4, 5, 17]]);
    check("div.s32", "32", &words, &[&[-7i32 as u32 as u64, 2, -3i32 as u32 as u64]]);
    check("div.u32", "32", &words, &[&[0xffff_fff9, 2, 0x7fff_fffc]]);
    check("rem.u32", "32", &words, &[&[17, 5, 2]]);
    check("div.u64", "64", &doubles, &[&[1 << 40, 3, 366_503_875_925]]);
    check("rem.u64", "64", &doubles, &[&[1 << 40, 3, 1]]);
    check("min.u32", "32", &words, &[&[0xffff_ffff, 2, 2]]);
    check("max.u32", "32", &words, &[&[0xffff_ffff, 2, 0xffff_ffff]]);
    check("min.s64", "64", &doubles, &[&[u64::MAX, 2, u64::MAX]]);
    check("max.s64", "64", &doubles, &[&[u64::MAX, 2, 2]]);
    check("min.u64", "64", &doubles, &[&[u64::MAX, 2, 2]]);
    check("max.u64", "64", &doubles, &[&[u64::MAX, 2, u64::MAX]]);
}

#[test]
fn shifts_beyond_the_width_clear_or_copy_the_sign() {
    let words = ["32"; 2];
    check("shl.b32", "32", &words, &[&[3, 31, 0x8000_0000], &[1, 32, 0], &[1, 0xffff_ffff, 0]]);
    check("shr.u32", "32", &words, &[&[0x8000_0000, 31, 1], &[0x8000_0000, 32, 0]]);
    check(
        "shr.s32",
        "32",
        &words,
        &[&[0x8000_0000, 4, 0xf800_0000], &[0x8000_0000, 40, 0xffff_ffff]],
    );
    check("shl.b64", "64", &["64", "32"], &[&[1, 40, 1 << 40], &[1, 64, 0]]);
    check("shr.u64", "64", &["64", "32"], &[&[1 << 40, 40, 1], &[1 << 40, 64, 0]]);
}

#[test]
fn bits_are_combined_moved_and_found() {
    let words = ["32"; 2];
    check("and.b32", "32", &words, &[&[0b1100, 0b1010, 0b1000]]);
    check("or.b32", "32", &words, &[&[0b1100, 0b1010, 0b1110]]);
    check("xor.b32", "32", &words, &[&[0b1100, 0b1010, 0b0110]]);
    check("not.b32", "32", &["32"], &[&[0xf0f0_f0f0, 0x0f0f_0f0f]]);
    check("and.b16", "16", &["16"; 2], &[&[0x1234, 0xff00, 0x1200]]);
    check("xor.b64", "64", &["64"; 2], &[&[1 << 40, 1, 1 << 40 | 1]]);
    check("not.b64", "64", &["64"], &[&[0, u64::MAX]]);
    check("brev.b32", "32", &["32"], &[&[1, 0x8000_0000], &[0x1234_5678, 0x1e6a_2c48]]);
    check("bfind.shiftamt.u32", "32", &["32"], &[&[1, 31], &[0x8000_0000, 0], &[0, 0xffff_ffff]]);
    // The selectors count the bytes of the second word from 4; 0xc replicates the sign of byte 4.
    check(
        "prmt.b32",
        "32",
        &["32"; 3],
        &[
            &[0x3322_1100, 0x7766_5544, 0x3210, 0x3322_1100],
            &[0x3322_1100, 0x7766_5544, 0x7654, 0x7766_5544],
            &[0x3322_1100, 0x7766_5544, 0x1054, 0x1100_5544],
            &[0x3322_1100, 0x7766_55f4, 0x000c, 0x0000_00ff],
            &[0x3322_1100, 0x7766_5574, 0x000c, 0x0000_0000],
        ],
    );
}

#[test]
fn bit_fields_are_inserted_within_the_word() {
    let insert = |start, length| format!("bfi.b32 %r1, %r2, %r3, {start}, {length};");
    for (start, length, expected) in [
        (4, 8, 0xffff_fabf),
        (0, 32, 0x1234_5aab_u32),
        (28, 8, 0xbfff_ffff),
        (4, 0, 0xffff_ffff),
        (40, 4, 0xffff_ffff),
    ] {
        let body = format!(
            "\tld.global.u32 %r2, [%rd0];\n\tld.global.u32 %r3, [%rd0+4];\n\t{}\n\
             \tst.global.u32 [%rd0+8], %r1;",
            insert(start, length)
        );
        let memory = run(&module("", &body), 1, &[0x1234_5aab, 0xffff_ffff, 0]).unwrap();
        assert_eq!(memory[2], expected, "start {start}, length {length}: {:x}", memory[2]);
    }
}

#[test]
fn comparisons_order_numbers_and_recognize_nan() {
    let (nan, one, two) = (single(f32::NAN), single(1.0), single(2.0));
    // Opcode, and the results for 1 and 2, 1 and 1, 2 and 1, and NaN and 1.
    for (name, results) in [
        ("eq", [0, 1, 0, 0]),
        ("lt", [1, 0, 0, 0]),
        ("le", [1, 1, 0, 0]),
        ("gt", [0, 0, 1, 0]),
        ("ge", [0, 1, 1, 0]),
        ("neu", [1, 0, 1, 1]),
        ("ltu", [1, 0, 0, 1]),
        ("leu", [1, 1, 0, 1]),
        ("gtu", [0, 0, 1, 1]),
        ("geu", [0, 1, 1, 1]),
        ("num", [1, 1, 1, 0]),
        ("nan", [0, 0, 0, 1]),
    ] {
        let pairs = [[one, two], [one, one], [two, one], [nan, one]];
        let rows: Vec<_> = pairs.iter().zip(results).map(|([a, b], to)| [*a, *b, to]).collect();
        let rows: Vec<&[u64]> = rows.iter().map(|row| row.as_slice()).collect();
        check(&format!("setp.{name}.f32"), "pred", &["f32"; 2], &rows);
    }
    let (minus_one, one) = (0xffff_ffff, 1);
    check("setp.lt.s32", "pred", &["32"; 2], &[&[minus_one, one, 1]]);
    check("setp.lt.u32", "pred", &["32"; 2], &[&[minus_one, one, 0]]);
    check("setp.gt.s64", "pred", &["64"; 2], &[&[u64::MAX, one, 0]]);
    check("setp.gt.u64", "pred", &["64"; 2], &[&[u64::MAX, one, 1]]);
    check("setp.lt.s16", "pred", &["16"; 2], &[&[0xffff, one, 1]]);
    check("setp.ne.s32", "pred", &["32"; 2], &[&[1, 1, 0], &[1, 2, 1]]);
}

#[test]
fn selections_and_logic_follow_predicates() {
    check("selp.f32", "f32", &["f32", "f32", "pred"], &[&[1, 2, 1, 1], &[1, 2, 0, 2]]);
    check("and.pred", "pred", &["pred"; 2], &[&[1, 1, 1], &[1, 0, 0]]);
    check("or.pred", "pred", &["pred"; 2], &[&[0, 0, 0], &[1, 0, 1]]);
    check("xor.pred", "pred", &["pred"; 2], &[&[1, 1, 0], &[1, 0, 1]]);
    check("not.pred", "pred", &["pred"], &[&[1, 0], &[0, 1]]);
}
