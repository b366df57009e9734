//! Faults of kernels that the machine reports.

mod support;

use ptx_machine::{Module, Precision};
use support::{module, run, run_on};

/// Runs a kernel in blocks of 64 threads on 128 words, of which the first half was written, and
/// checks that the launch fails with all `parts` in its message, for several seeds.
fn fails(body: &str, parts: &[&str]) {
    let shared = "\t.shared .align 4 .b8 tile[256];";
    let mut memory = vec![Some(7); 64];
    memory.resize(128, None);
    for seed in 0..8 {
        let error = run_on(&module(shared, body), [1; 3], 64, (seed, Precision::Best), &memory)
            .unwrap_err();
        for part in ["test.ptx:", "kernel `test`", "thread ["].iter().chain(parts) {
            assert!(error.contains(part), "expected {part:?} in: {error}");
        }
    }
}

/// Runs a kernel like `fails`, but checks that the launch succeeds.
fn succeeds(body: &str) {
    let shared = "\t.shared .align 4 .b8 tile[256];";
    for seed in 0..8 {
        run_on(&module(shared, body), [1; 3], 64, (seed, Precision::Best), &[Some(7); 128])
            .unwrap();
    }
}

/// Sets `%rd2` to the address of the thread's word in device memory, and `%r2` to that in shared
/// memory.
const ADDRESSES: &str = "\tmul.wide.u32 %rd1, %r0, 4;\n\tadd.s64 %rd2, %rd0, %rd1;\n\
                         \tshl.b32 %r1, %r0, 2;\n\tmov.u32 %r3, tile;\n\tadd.s32 %r2, %r3, %r1;\n";

fn body(code: &str) -> String {
    format!("{ADDRESSES}{}", code.replace("; ", ";\n\t"))
}

#[test]
fn accesses_outside_an_allocation_fail() {
    let code =
        body("\tadd.s64 %rd3, %rd2, 260; ld.global.u32 %r5, [%rd2]; st.global.u32 [%rd3], %r5;");
    fails(&code, &["outside every allocation", "thread [63, 0, 0]", "st.global.u32"]);
    let code = body("\tld.global.u32 %r5, [%rd2]; st.global.u32 [%rd2+4096], %r5;");
    fails(&code, &["outside every allocation"]);
}

#[test]
fn reads_of_unwritten_device_memory_fail() {
    fails(&body("\tld.global.u32 %r5, [%rd2+4];"), &["uninitialized", "thread [63, 0, 0]"]);
    let code = body("\tst.global.u32 [%rd2+256], %r0; ld.global.u32 %r5, [%rd2+256];");
    succeeds(&code);
}

#[test]
fn misaligned_accesses_fail() {
    fails(&body("\tld.global.u32 %r5, [%rd2+2];"), &["misaligned"]);
    fails(&body("\tld.global.v2.u32 {%r5, %r6}, [%rd2];"), &["misaligned", "access of 8 bytes"]);
    // The alignment of a variable is no greater than declared.
    fails(&body("\tst.shared.v2.u32 [%r3], {%r0, %r0};"), &["misaligned"]);
    fails(&body("\tst.shared.u16 [%r3+1], %rs1;").replace("%rs1", "%r0"), &["misaligned"]);
}

#[test]
fn accesses_outside_shared_variables_fail() {
    fails(&body("\tst.shared.u32 [%r2+4], %r0;"), &["outside every variable", "thread [63, 0, 0]"]);
    fails(
        &body("\tsub.s32 %r2, %r2, 4; st.shared.u32 [%r2], %r0;"),
        &["outside", "thread [0, 0, 0]"],
    );
}

#[test]
fn reads_of_unwritten_shared_memory_fail() {
    fails(&body("\tld.shared.u32 %r5, [%r2];"), &["uninitialized", "ld.shared.u32"]);
}

#[test]
fn reads_of_unwritten_registers_fail() {
    fails(&body("\tadd.s32 %r5, %r6, 1;"), &["uninitialized register", "add.s32"]);
    // Only odd threads write the register.
    let code = body(
        "\tand.b32 %r5, %r0, 1; setp.eq.s32 %p1, %r5, 0; @%p1 bra $L_1; mov.u32 %r6, 1;\n\
         $L_1:\n\tadd.s32 %r7, %r6, 1;",
    );
    fails(&code, &["uninitialized register", "thread ["]);
    fails(&body("\t@%p3 bra $L_1;\n$L_1:"), &["uninitialized register"]);
}

#[test]
fn conflicting_accesses_between_barriers_fail() {
    // Each thread reads the word of its neighbour without a barrier.
    let exchange =
        "\txor.b32 %r4, %r2, 4; st.shared.u32 [%r2], %r0; BARRIER ld.shared.u32 %r5, [%r4];";
    let exchange = exchange
        .replace("%r2, 4", "%r1, 4")
        .replace("%r4, %r1, 4;", "%r4, %r1, 4; add.s32 %r4, %r3, %r4;");
    fails(&body(&exchange.replace("BARRIER ", "")), &["conflicts with a write of thread"]);
    succeeds(&body(&exchange.replace("BARRIER", "bar.sync 0;")));
    // A write of a word that another thread has read before.
    let code = "\tst.shared.u32 [%r2], %r0; bar.sync 0; ld.shared.u32 %r5, [%r3+8]; BARRIER st.shared.u32 [%r2], %r5;";
    fails(&body(&code.replace("BARRIER ", "")), &["conflicts with a read of several threads"]);
    succeeds(&body(&code.replace("BARRIER", "bar.sync 0;")));
    fails(&body("\tst.shared.u32 [%r3], %r0;"), &["conflicts with a write of thread"]);
}

#[test]
fn conflicting_accesses_to_device_memory_fail() {
    let conflict = "conflicts with a write of another thread";
    fails(&body("\tst.global.u32 [%rd0], %r0;"), &[conflict, "device memory"]);
    // Each thread reads the word that another warp writes.
    let code = "\txor.b32 %r4, %r1, 128; cvt.u64.u32 %rd3, %r4; add.s64 %rd3, %rd0, %rd3; \
                st.global.u32 [%rd2], %r0; BARRIER ld.global.u32 %r5, [%rd3];";
    fails(&body(&code.replace("BARRIER ", "")), &[conflict, "ld.global"]);
    succeeds(&body(&code.replace("BARRIER", "bar.sync 0;")));
    // Barriers do not order accesses of different blocks.
    let code = body("\tbar.sync 0; st.global.u32 [%rd2], %r0;").replace("tile", "0");
    let memory = [Some(7); 128];
    let run = |grid| run_on(&module("", &code), grid, 64, (1, Precision::Best), &memory);
    let error = run([2, 1, 1]).unwrap_err();
    assert!(error.contains(conflict), "{error}");
    run([1; 3]).unwrap();
}

#[test]
fn barriers_that_not_all_threads_reach_fail() {
    let branch = |condition: &str| {
        body(&format!("\tsetp.lt.u32 %p1, %r0, {condition}; @%p1 bra $L_1; bar.sync 0;\n$L_1:"))
    };
    fails(&branch("3"), &["bar.sync"]);
    fails(&branch("32"), &["bar.sync", "ended without reaching the barrier"]);
    let code = body(
        "\tsetp.lt.u32 %p1, %r0, 32; @%p1 bra $L_1; bar.sync 0; bra $L_2;\n$L_1:\n\tbar.sync 0;\n$L_2:",
    );
    fails(&code, &["bar.sync: another warp waits"]);
}

#[test]
fn warp_instructions_in_divergent_flow_fail() {
    let code = body(
        "\tsetp.lt.u32 %p1, %r0, 3; mov.u32 %r4, 1; mov.u32 %r5, 31; mov.u32 %r6, -1; \
         @%p1 bra $L_1; shfl.sync.bfly.b32 %r7|%p2, %r0, %r4, %r5, %r6;\n$L_1:",
    );
    fails(&code, &["shfl.sync: the mask is ffffffff, but the lanes fffffff8"]);
    let code = body(
        "\tsetp.lt.u32 %p1, %r0, 3; mov.u32 %r6, -1; @%p1 bra $L_1; \
         vote.sync.ballot.b32 %r7, %p1, %r6;\n$L_1:",
    );
    fails(&code, &["vote.sync: the mask is ffffffff"]);
}

#[test]
fn division_by_zero_fails() {
    fails(&body("\tdiv.u32 %r5, 7, %r0;"), &["division by zero", "thread [0, 0, 0]"]);
}

#[test]
fn unknown_text_is_an_error_with_its_line() {
    for (code, problem) in [
        ("\tfrobnicate.u32 %r1, %r0;", "unknown instruction"),
        ("\tadd.s32 %r1, %rd0, 1;", "found class Double, expected Word"),
        ("\tadd.s32 %r1, %r99, 1;", "unknown register `%r99`"),
        ("\tadd.s32 %r1, %r0;", "wrong number of operands"),
        ("\tadd.s32 %r1, %r0, 0f3F800000x;", "unknown operand"),
        ("\t@%p1 add.s32 %r1, %r0, 1;", "unknown predicated instruction"),
        ("\tbra $L_9;", "a branch to an undefined label"),
        ("\tbar.sync 1;", "unknown instruction"),
        ("\t.maxnreg 4;", "unknown directive"),
    ] {
        let error = module("", code).kernel("test", Precision::Best).err().unwrap();
        assert!(error.starts_with("test.ptx:") && error.contains(problem), "{code}: {error}");
    }
}

#[test]
fn a_fault_names_the_lines_of_the_source_if_the_ptx_has_line_information() {
    let body = "\t.loc\t1 92 41\n\tmov.u32 %r1, 1;\n\
                \t.loc\t2 20 5, function_name $L__info_string0, inlined_at 1 95 7\n\
                \tst.global.u32 [%rd0+400], %r1;\n\t.loc\t1 0 3\n\tst.global.u32 [%rd0+404], %r1;\n";
    let files = "\t.file\t1 \"/home/user/cortado/kernels/softmax.cu\"\n\
                 \t.file\t2 \"/home/user/cortado/kernels/block.cuh\"\n\
                 \t.section\t.debug_str\n\t{\n$L__info_string0:\n.b8 95,90,55,0\n\n\t}\n";
    let fault = |body: &str| {
        let text = support::text("", body) + files;
        run(&Module::new("test.ptx", &text).unwrap(), 1, &[0; 4]).unwrap_err()
    };
    let place = " (kernels/block.cuh:20, inlined at kernels/softmax.cu:95)";
    assert!(fault(body).ends_with(place), "{}", fault(body));
    // Line 0 stands for an unknown line, so the message names the line of an earlier instruction.
    let later = body.replace("\tst.global.u32 [%rd0+400], %r1;\n", "");
    assert!(fault(&later).ends_with(place), "{}", fault(&later));
    let caller = body.replace(", function_name $L__info_string0, inlined_at 1 95 7", "");
    assert!(fault(&caller).ends_with(" (kernels/block.cuh:20)"), "{}", fault(&caller));
    let without = body.lines().filter(|line| !line.contains(".loc"));
    let message = fault(&without.map(|line| format!("{line}\n")).collect::<String>());
    assert!(message.ends_with("`st.global.u32 [%rd0+400], %r1;`"), "{message}");
}
