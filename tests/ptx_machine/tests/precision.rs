//! Tests of results for which the PTX ISA allows several values.

mod support;

use ptx_machine::Precision;
use support::{module, run_on};

/// Runs a kernel of one thread on 8 words, and returns the first word.
fn first_word(body: &str, precision: Precision, memory: [f32; 8]) -> f32 {
    let memory = memory.map(|value| Some(value.to_bits()));
    let memory = run_on(&module("", body), [1; 3], 1, (1, precision), &memory).unwrap();
    f32::from_bits(memory[0])
}

/// Loads `%f0` to `%f2`, runs the code, and stores `%f9`.
fn body(code: &str) -> String {
    format!(
        "\tld.global.f32 %f0, [%rd0];\n\tld.global.f32 %f1, [%rd0+4];\n\
         \tld.global.f32 %f2, [%rd0+8];\n{code}\tst.global.f32 [%rd0], %f9;\n"
    )
}

/// 1 + 2⁻¹², whose square is 1 + 2⁻¹¹ + 2⁻²⁴.
const X: f32 = 1.0 + 1.0 / 4096.0;

#[test]
fn only_products_and_sums_without_rounding_modifiers_are_fused() {
    let memory = [X, X, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    let [separate, fused] = [2f32.powi(-11), 2f32.powi(-11) + 2f32.powi(-24)];
    for (code, best, least) in [
        ("\tmul.f32 %f5, %f0, %f1;\n\tsub.f32 %f9, %f5, %f2;\n", separate, fused),
        ("\tmul.f32 %f5, %f0, %f1;\n\tsub.f32 %f9, %f2, %f5;\n", -separate, -fused),
        ("\tmul.rn.f32 %f5, %f0, %f1;\n\tsub.f32 %f9, %f5, %f2;\n", separate, separate),
        // A factor changes between the product and the sum.
        (
            "\tmul.f32 %f5, %f0, %f1;\n\tmov.f32 %f0, %f2;\n\tsub.f32 %f9, %f5, %f2;\n",
            separate,
            separate,
        ),
    ] {
        assert_eq!(first_word(&body(code), Precision::Best, memory), best, "{code}");
        assert_eq!(first_word(&body(code), Precision::Least, memory), least, "{code}");
    }
}

#[test]
fn approximations_stay_within_the_errors_of_the_isa() {
    let mut largest = [0; 2];
    for i in 0..200 {
        let x = 0.01 + i as f32 * 0.07;
        for (kind, (code, exact)) in [
            ("\tex2.approx.ftz.f32 %f9, %f0;\n", x.exp2()),
            ("\trcp.approx.ftz.f32 %f9, %f0;\n", 1.0 / x),
        ]
        .into_iter()
        .enumerate()
        {
            let found = first_word(&body(code), Precision::Least, [x; 8]);
            largest[kind] = largest[kind].max(found.to_bits().abs_diff(exact.to_bits()));
        }
    }
    // The standard library's power may differ from the exact one by 1 ulp.
    assert!((2..=3).contains(&largest[0]) && largest[1] == 1, "{largest:?}");
}
