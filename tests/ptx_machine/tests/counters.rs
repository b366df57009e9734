//! Counters of kernels whose counts follow from their text.

mod support;

use ptx_machine::{Counters, Kind, Requests};
use support::{count, module};

/// Returns the counters of one warp that loads from the address of its lane, computed by `address`
/// into `%rd2`, and stores nothing.
fn load(address: &str, access: &str) -> Counters {
    count(&module("", &format!("{address}\n\t{access}\n")), 32, &[0; 2048]).unwrap()
}

const SCALED: &str = "\tmul.wide.u32 %rd1, %r0, SCALE;\n\tadd.s64 %rd2, %rd0, %rd1;";

fn scaled(scale: usize) -> String {
    SCALED.replace("SCALE", &scale.to_string())
}

fn requests(requests: u64, transfers: u64, conflicts: u64) -> Requests {
    Requests { requests, transfers, conflicts }
}

#[test]
fn a_request_to_consecutive_words_takes_four_sectors() {
    let counters = load(&scaled(4), "ld.global.u32 %r1, [%rd2];");
    assert_eq!(counters.global_loads, requests(1, 4, 0));
    assert_eq!(counters.global_stores, requests(0, 0, 0));
    assert_eq!(counters.touched_sectors(), [4, 0]);
}

#[test]
fn a_misaligned_row_takes_a_fifth_sector() {
    let counters = load(&scaled(4), "ld.global.u32 %r1, [%rd2+4];");
    assert_eq!(counters.global_loads, requests(1, 5, 0));
}

#[test]
fn a_request_to_distant_words_takes_a_sector_per_lane() {
    let counters = load(&scaled(128), "ld.global.u32 %r1, [%rd2];");
    assert_eq!(counters.global_loads, requests(1, 32, 0));
}

#[test]
fn vectors_of_16_bytes_take_16_sectors_and_one_address_takes_one() {
    let counters = load(&scaled(16), "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd2];");
    assert_eq!(counters.global_loads, requests(1, 16, 0));
    let counters = load(&scaled(0), "ld.global.u32 %r1, [%rd2];");
    assert_eq!(counters.global_loads, requests(1, 1, 0));
}

#[test]
fn sectors_that_are_read_again_are_requested_again_but_touched_once() {
    let twice = "ld.global.u32 %r1, [%rd2];\n\tld.global.u32 %r2, [%rd2];\n\
                 \tst.global.u32 [%rd2+128], %r1;";
    let counters = load(&scaled(4), twice);
    assert_eq!(counters.global_loads, requests(2, 8, 0));
    assert_eq!(counters.global_stores, requests(1, 4, 0));
    assert_eq!(counters.touched_sectors(), [4, 4]);
}

/// Returns the counters of one warp that stores to and loads from shared memory, at multiples of
/// `stride` bytes.
fn shared(stride: usize, bytes: usize) -> [Requests; 2] {
    let (suffix, registers) = match bytes {
        4 => ("u32", "%r0"),
        8 => ("v2.u32", "{%r0, %r0}"),
        _ => ("v4.u32", "{%r0, %r0, %r0, %r0}"),
    };
    let loaded = registers.replace("%r0", "%r3");
    let body = format!(
        "\tmov.u32 %r1, words;\n\tmul.lo.s32 %r2, %r0, {stride};\n\tadd.s32 %r2, %r1, %r2;\n\
         \tst.shared.{suffix} [%r2], {registers};\n\tbar.sync 0;\n\
         \tld.shared.{suffix} {loaded}, [%r2];\n"
    );
    let module = module("\t.shared .align 16 .b8 words[8192];", &body);
    let counters = count(&module, 32, &[0; 4]).unwrap();
    [counters.shared_stores, counters.shared_loads]
}

#[test]
fn consecutive_words_of_shared_memory_do_not_conflict() {
    assert_eq!(shared(4, 4), [requests(1, 1, 0); 2]);
    assert_eq!(shared(8, 8), [requests(1, 2, 0); 2]);
    assert_eq!(shared(16, 16), [requests(1, 4, 0); 2]);
}

#[test]
fn words_of_one_bank_conflict() {
    assert_eq!(shared(8, 4), [requests(1, 2, 1); 2]);
    assert_eq!(shared(16, 4), [requests(1, 4, 3); 2]);
    assert_eq!(shared(128, 4), [requests(1, 32, 31); 2]);
    // A padding word per row of 32 words removes the conflicts.
    assert_eq!(shared(132, 4), [requests(1, 1, 0); 2]);
    // Accesses of 16 bytes form four groups of eight lanes. Each lane of a group accesses another
    // row of 32 words, and needs a separate wavefront.
    assert_eq!(shared(128, 16), [requests(1, 32, 28); 2]);
    assert_eq!(shared(144, 16), [requests(1, 4, 0); 2]);
}

#[test]
fn lanes_that_read_the_same_word_do_not_conflict() {
    let body = "\tmov.u32 %r1, words;\n\tmov.u32 %r2, 7;\n\tsetp.eq.u32 %p1, %r0, 0;\n\
                \t@!%p1 bra WAIT;\n\tst.shared.u32 [%r1], %r2;\nWAIT:\n\tbar.sync 0;\n\
                \tld.shared.u32 %r3, [%r1];\n";
    let module = module("\t.shared .align 4 .b8 words[4];", body);
    let counters = count(&module, 32, &[0; 4]).unwrap();
    assert_eq!(counters.shared_stores, requests(1, 1, 0));
    assert_eq!(counters.shared_loads, requests(1, 1, 0));
}

#[test]
fn ldmatrix_reads_eight_rows_per_wavefront() {
    let rows = |stride: usize| {
        let mut body = format!(
            "\tmov.u32 %r1, rows;\n\tmul.lo.s32 %r2, %r0, {stride};\n\tadd.s32 %r2, %r1, %r2;\n"
        );
        body += "\tst.shared.v4.u32 [%r2], {%r0, %r0, %r0, %r0};\n\tbar.sync 0;\n\
                 \tldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r3, %r4, %r5, %r6}, [%r2];\n";
        let module = module("\t.shared .align 16 .b8 rows[8192];", &body);
        count(&module, 32, &[0; 4]).unwrap().shared_loads
    };
    assert_eq!(rows(16), requests(1, 4, 0));
    assert_eq!(rows(32), requests(1, 8, 4));
    assert_eq!(rows(64), requests(1, 16, 12));
}

#[test]
fn diverged_lanes_count_once_per_path() {
    // The branch divides the lanes into 8 and 24.
    let body = "\tmov.u32 %r1, 0;\n\tsetp.lt.u32 %p1, %r0, 8;\n\t@%p1 bra FEW;\n\
                \tadd.s32 %r1, %r1, 1;\n\tbra MEET;\nFEW:\n\tadd.s32 %r1, %r1, 2;\nMEET:\n\
                \tadd.s32 %r1, %r1, 3;\n";
    let counters = count(&module("", body), 32, &[0; 4]).unwrap();
    // To the instructions of the body, `module` adds a load of the parameter, a move and the end of
    // the kernel.
    assert_eq!(counters.instructions_of(Kind::Move), 3);
    assert_eq!(counters.instructions_of(Kind::Integer), 4);
    assert_eq!(counters.instructions_of(Kind::Control), 3);
    assert_eq!(counters.instructions(), 10);
    assert_eq!(counters.active_lanes, 7 * 32 + 2 * 24 + 8);
}

#[test]
fn warps_and_blocks_are_summed() {
    let counters = count(&module("", ""), 40, &[0; 4]).unwrap();
    assert_eq!((counters.instructions(), counters.active_lanes), (6, 3 * 40));
}

#[test]
fn each_instruction_counts_for_the_unit_that_executes_it() {
    let body = "\tmov.f32 %f0, 0f3F800000;\n\tfma.rn.f32 %f1, %f0, %f0, %f0;\n\
                \tmul.f32 %f2, %f0, %f1;\n\tex2.approx.ftz.f32 %f3, %f0;\n\
                \tmov.f64 %fd0, 0d3FF0000000000000;\n\tfma.rn.f64 %fd1, %fd0, %fd0, %fd0;\n\
                \tsetp.lt.f32 %p1, %f0, %f1;\n\tselp.b32 %r1, 1, 0, %p1;\n\
                \tmov.u32 %r2, -1;\n\tvote.sync.ballot.b32 %r3, %p1, %r2;\n";
    let counters = count(&module("", body), 32, &[0; 4]).unwrap();
    let found = [
        Kind::Matrix,
        Kind::Float,
        Kind::Double,
        Kind::Special,
        Kind::Integer,
        Kind::Move,
        Kind::Memory,
        Kind::Exchange,
        Kind::Control,
    ]
    .map(|kind| counters.instructions_of(kind));
    assert_eq!(found, [0, 2, 1, 1, 2, 5, 0, 1, 1]);
}

#[test]
fn the_main_loop_is_the_shortest_one_with_most_arithmetic() {
    let body = "\tmov.u32 %r1, 0;\n\tmov.f32 %f0, 0f00000000;\nOUTER:\n\tmov.u32 %r2, 0;\n\
                \tadd.f32 %f0, %f0, %f0;\nINNER:\n\tfma.rn.f32 %f0, %f0, %f0, %f0;\n\
                \tfma.rn.f32 %f0, %f0, %f0, %f0;\n\tadd.s32 %r2, %r2, 1;\n\
                \tsetp.lt.u32 %p1, %r2, 5;\n\t@%p1 bra INNER;\n\tadd.s32 %r1, %r1, 1;\n\
                \tsetp.lt.u32 %p1, %r1, 3;\n\t@%p1 bra OUTER;\n";
    let counters = count(&module("", body), 32, &[0; 4]).unwrap();
    assert_eq!((counters.loop_instructions, counters.loop_main), (3 * 5 * 5, 3 * 5 * 2));
    assert_eq!(counters.loop_text, [5, 2]);
    // The outer loop has more than twice as much arithmetic as the inner loop.
    let sum = "\tadd.f32 %f0, %f0, %f0;\n";
    let counters = count(&module("", &body.replace(sum, &sum.repeat(3))), 32, &[0; 4]).unwrap();
    assert_eq!(counters.loop_text, [12, 5]);
}

#[test]
fn atomic_operations_count_per_lane() {
    let body = "\tmov.u64 %rd1, 5;\n\tatom.global.max.u64 %rd2, [%rd0], %rd1;\n";
    let counters = count(&module("", body), 32, &[0; 4]).unwrap();
    assert_eq!((counters.atomics, counters.touched_sectors()), (32, [1, 1]));
}
