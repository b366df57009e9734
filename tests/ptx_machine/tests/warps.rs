//! Instructions in which the lanes of a warp take part together, and the reconvergence of lanes.

mod support;

use ptx_machine::Precision;
use support::{module, run, run_on};

#[test]
fn a_butterfly_shuffle_exchanges_lanes_within_segments() {
    let body = "\tmul.wide.u32 %rd1, %r0, 8;\n\tadd.s64 %rd2, %rd0, %rd1;\n\
                \tmov.u32 %r2, 3;\n\tmov.u32 %r3, 6175;\n\tmov.u32 %r4, -1;\n\
                \tshfl.sync.bfly.b32 %r5|%p1, %r0, %r2, %r3, %r4;\n\
                \tselp.b32 %r6, 1, 0, %p1;\n\
                \tst.global.u32 [%rd2], %r5;\n\tst.global.u32 [%rd2+4], %r6;\n";
    // 6175 = 0x181f: segments of 8 lanes (mask 0x18), clamped to lane 31.
    let memory = run(&module("", body), 32, &[0; 64]).unwrap();
    for lane in 0..32u32 {
        assert_eq!(memory[2 * lane as usize..][..2], [lane ^ 3, 1], "lane {lane}");
    }
    // If the number of the source lane exceeds the clamp, a lane reads its own value.
    let body = body.replace("6175", "3").replace("%r2, 3;", "%r2, 4;");
    let memory = run(&module("", &body), 32, &[0; 64]).unwrap();
    for lane in 0..32u32 {
        let expected = if lane ^ 4 <= 3 { [lane ^ 4, 1] } else { [lane, 0] };
        assert_eq!(memory[2 * lane as usize..][..2], expected, "lane {lane}");
    }
}

#[test]
fn a_ballot_yields_the_lanes_whose_predicate_is_true() {
    let body = "\tmul.wide.u32 %rd1, %r0, 4;\n\tadd.s64 %rd2, %rd0, %rd1;\n\
                \tand.b32 %r1, %r0, 5;\n\tsetp.eq.s32 %p1, %r1, 5;\n\tmov.u32 %r2, -1;\n\
                \tvote.sync.ballot.b32 %r3, %p1, %r2;\n\tst.global.u32 [%rd2], %r3;\n";
    // The predicate is true for lanes 5, 7, 13, 15, 21, 23, 29 and 31.
    assert_eq!(run(&module("", body), 32, &[0; 32]).unwrap(), [0xa0a0_a0a0; 32]);
}

/// Multiplies random small integers by an `mma` instruction and in plain loops. Elements of `A`
/// and `B` have two bytes, or four if `is_tf32`.
fn check_mma(opcode: &str, k: usize, a_registers: usize, encode: fn(i32) -> u32, is_tf32: bool) {
    let a = |row: usize, column: usize| (row * 5 + column * 3) as i32 % 7 - 3;
    let b = |row: usize, column: usize| (row * 2 + column * 5) as i32 % 5 - 2;
    let c = |row: usize, column: usize| (row * 8 + column) as i32;
    let b_registers = a_registers / 2;
    // The layouts of matrix fragments that the figures in the PTX ISA show: a lane's group is
    // `lane >> 2`, and its place in the group is `lane & 3`.
    let mut memory = vec![0; 32 * 16];
    for lane in 0..32 {
        let (group, place) = (lane >> 2, lane & 3);
        let words = &mut memory[16 * lane..16 * (lane + 1)];
        let pair = |low: i32, high: i32| encode(high) << 16 | encode(low);
        for i in 0..a_registers {
            let row = group + if i % 2 == 1 { 8 } else { 0 };
            words[i] = match is_tf32 {
                true => encode(a(row, place + if i >= 2 { 4 } else { 0 })),
                false => {
                    let column = 2 * place + if i >= 2 { 8 } else { 0 };
                    pair(a(row, column), a(row, column + 1))
                }
            };
        }
        for i in 0..b_registers {
            words[4 + i] = match is_tf32 {
                true => encode(b(place + 4 * i, group)),
                false => pair(b(2 * place + 8 * i, group), b(2 * place + 8 * i + 1, group)),
            };
        }
        for i in 0..4 {
            let value = c(group + i / 2 * 8, 2 * place + i % 2);
            words[8 + i] = (value as f32).to_bits();
        }
    }
    let names = |first: usize, count: usize, prefix: &str| {
        let names: Vec<_> = (first..first + count).map(|i| format!("%{prefix}{i}")).collect();
        names.join(", ")
    };
    let mut body = "\tmul.wide.u32 %rd1, %r0, 64;\n\tadd.s64 %rd2, %rd0, %rd1;\n".to_owned();
    for i in 0..6 {
        body += &format!("\tld.global.u32 %r{}, [%rd2+{}];\n", i + 10, 4 * i);
    }
    for i in 0..4 {
        body += &format!("\tld.global.f32 %f{}, [%rd2+{}];\n", i + 10, 32 + 4 * i);
    }
    body += &format!(
        "\tmma.sync.aligned.{opcode} {{{0}}}, {{{1}}}, {{{2}}}, {{{0}}};\n",
        names(10, 4, "f"),
        names(10, a_registers, "r"),
        names(14, b_registers, "r"),
    );
    for i in 0..4 {
        body += &format!("\tst.global.f32 [%rd2+{}], %f{};\n", 48 + 4 * i, i + 10);
    }
    let memory = run(&module("", &body), 32, &memory).unwrap();
    for lane in 0..32 {
        for i in 0..4 {
            let (row, column) = ((lane >> 2) + i / 2 * 8, 2 * (lane & 3) + i % 2);
            let sum: i32 = (0..k).map(|i| a(row, i) * b(i, column)).sum();
            let expected = (sum + c(row, column)) as f32;
            let found = f32::from_bits(memory[16 * lane + 12 + i]);
            assert_eq!(found, expected, "{opcode}: row {row}, column {column}");
        }
    }
}

/// Returns an integer from −4 to 4 as an `f16`.
fn f16(value: i32) -> u32 {
    let magnitude = [0, 0x3c00, 0x4000, 0x4200, 0x4400][value.unsigned_abs() as usize];
    magnitude | if value < 0 { 0x8000 } else { 0 }
}

fn f32_bits(value: i32) -> u32 {
    (value as f32).to_bits()
}

#[test]
fn matrix_products_equal_plain_loops() {
    check_mma("m16n8k8.row.col.f32.f16.f16.f32", 8, 2, f16, false);
    check_mma("m16n8k16.row.col.f32.f16.f16.f32", 16, 4, f16, false);
    check_mma("m16n8k16.row.col.f32.bf16.bf16.f32", 16, 4, |x| f32_bits(x) >> 16, false);
    // The lower 13 bits of a TF32 operand do not affect the result.
    check_mma("m16n8k8.row.col.f32.tf32.tf32.f32", 8, 4, |x| f32_bits(x) | 0x1fff, true);
}

#[test]
fn ldmatrix_distributes_rows_or_columns() {
    // The element in row r and column c of matrix i is 64·i + 8·r + c.
    for (suffix, transposed) in [("", false), (".trans", true)] {
        let body = format!(
            "\tmul.wide.u32 %rd1, %r0, 16;\n\tadd.s64 %rd2, %rd0, %rd1;\n\
             \tld.global.v4.u32 {{%r1, %r2, %r3, %r4}}, [%rd2];\n\
             \tmov.u32 %r5, tile;\n\tshl.b32 %r6, %r0, 4;\n\tadd.s32 %r7, %r5, %r6;\n\
             \tst.shared.v4.u32 [%r7], {{%r1, %r2, %r3, %r4}};\n\tbar.sync 0;\n\
             \tldmatrix.sync.aligned.m8n8.x4{suffix}.shared.b16 {{%r1, %r2, %r3, %r4}}, [%r7];\n\
             \tst.global.v4.u32 [%rd2], {{%r1, %r2, %r3, %r4}};\n"
        );
        let memory: Vec<u32> = (0..128).map(|i| ((2 * i + 1) << 16) | (2 * i)).collect();
        let memory =
            run(&module("\t.shared .align 16 .b8 tile[512];", &body), 32, &memory).unwrap();
        for lane in 0..32 {
            for matrix in 0..4u32 {
                let element = |i| match transposed {
                    false => 64 * matrix + 8 * (lane / 4) + lane % 4 * 2 + i,
                    true => 64 * matrix + 8 * (lane % 4 * 2 + i) + lane / 4,
                };
                let expected = element(1) << 16 | element(0);
                assert_eq!(memory[(4 * lane + matrix) as usize], expected, "lane {lane}");
            }
        }
    }
}

/// Counts in a loop that each lane leaves after as many rounds as its number, and then adds the
/// counts of the warp.
#[test]
fn lanes_that_leave_a_loop_early_meet_the_others_again() {
    let body = "\tmul.wide.u32 %rd1, %r0, 4;\n\tadd.s64 %rd2, %rd0, %rd1;\n\tmov.u32 %r1, 0;\n\
                $L_1:\n\tsetp.ge.u32 %p1, %r1, %r0;\n\t@%p1 bra $L_2;\n\
                \tadd.s32 %r1, %r1, 1;\n\tbra.uni $L_1;\n\
                $L_2:\n\tmov.u32 %r2, 1;\n\tmov.u32 %r3, 31;\n\tmov.u32 %r4, -1;\n\
                \tshfl.sync.bfly.b32 %r5|%p2, %r1, %r2, %r3, %r4;\n\
                \tadd.s32 %r6, %r5, %r1;\n\tst.global.u32 [%rd2], %r6;\n";
    let memory = run(&module("", body), 32, &[0; 32]).unwrap();
    for lane in 0..32 {
        assert_eq!(memory[lane], (lane + (lane ^ 1)) as u32);
    }
}

#[test]
fn a_call_runs_the_function_and_returns_its_result() {
    let text = ".version 7.0\n.target sm_80\n.address_size 64\n\
        .func  (.param .b64 func_retval0) half\n(\n\t.param .b64 half_param_0\n)\n;\n\
        .visible .entry test(\n\t.param .u64 memory\n)\n{\n\
        \t.reg .b64 %rd<4>;\n\t.reg .f64 %fd<4>;\n\
        \tld.param.u64 %rd1, [memory];\n\tld.global.f64 %fd1, [%rd1];\n\
        \t{ // callseq 0, 0\n\t.reg .b32 temp_param_reg;\n\t.param .b64 param0;\n\
        \tst.param.f64 \t[param0+0], %fd1;\n\t.param .b64 retval0;\n\
        \tcall.uni (retval0), \n\thalf, \n\t(\n\tparam0\n\t);\n\
        \tld.param.f64 \t%fd2, [retval0+0];\n\t} // callseq 0\n\
        \tst.global.f64 [%rd1], %fd2;\n\tret;\n}\n\
        .func  (.param .b64 func_retval0) half(\n\t.param .b64 half_param_0\n)\n{\n\
        \t.reg .f64 %fd<4>;\n\tld.param.f64 %fd1, [half_param_0];\n\
        \tmul.f64 %fd2, %fd1, 0d3FE0000000000000;\n\
        \tst.param.f64 [func_retval0+0], %fd2;\n\tret;\n}\n";
    let module = ptx_machine::Module::new("test.ptx", text).unwrap();
    let bits = 5.0f64.to_bits();
    let memory = run(&module, 1, &[bits as u32, (bits >> 32) as u32]).unwrap();
    let result = f64::from_bits(u64::from(memory[1]) << 32 | u64::from(memory[0]));
    assert_eq!(result, 2.5);
}

#[test]
fn atomics_and_shuffled_blocks_give_the_same_maximum() {
    let body = "\tmov.u32 %r1, %ctaid.x;\n\tmov.u32 %r2, %ntid.x;\n\
                \tmad.lo.s32 %r3, %r1, %r2, %r0;\n\tcvt.u64.u32 %rd1, %r3;\n\
                \tatom.global.max.u64 %rd2, [%rd0], %rd1;\n";
    for seed in 0..5 {
        let memory =
            run_on(&module("", body), [7, 1, 1], 40, (seed, Precision::Best), &[Some(0); 2])
                .unwrap();
        assert_eq!(memory, [279, 0]);
    }
}
