//! Formatting of floating-point numbers for protobuf's text format.

/// Formats an `f32` like C's `%g`: with 6 significant digits if these digits parse to the same
/// number, else with 9 digits.
///
/// Subnormal numbers are printed with 9 digits, because Google's printer calls `strtof`, which
/// rejects subnormal numbers.
pub(super) fn format_f32(value: f32) -> String {
    let short_text = format_general(f64::from(value), 6);
    if !value.is_subnormal() && short_text.parse() == Ok(value) {
        short_text
    } else {
        format_general(f64::from(value), 9)
    }
}

/// Formats an `f64` like C's `%g`: with 15 significant digits if these digits parse to the same
/// number, else with 17 digits.
pub(super) fn format_f64(value: f64) -> String {
    let short_text = format_general(value, 15);
    if short_text.parse() == Ok(value) { short_text } else { format_general(value, 17) }
}

/// Formats a number like C's `%.{digits}g`, with `digits` significant digits and without trailing
/// zeros. Uses scientific notation if the exponent is below -4 or at least `digits`.
fn format_general(value: f64, digits: usize) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    let scientific_text = format!("{value:.*e}", digits - 1);
    let Some((mantissa, exponent)) = scientific_text.split_once('e') else {
        return scientific_text; // inf, -inf
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let decimal_places = digits as i32 - 1 - exponent;
    if exponent < -4 || decimal_places < 0 {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", trim_trailing_zeros(mantissa), exponent.abs())
    } else {
        trim_trailing_zeros(&format!("{value:.*}", decimal_places as usize)).to_owned()
    }
}

fn trim_trailing_zeros(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f32_values_print_as_in_c() {
        let cases = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (0.1, "0.1"),
            (-0.75, "-0.75"),
            (100000.0, "100000"),
            (999999.0, "999999"),
            (1e6, "1e+06"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (16777216.0, "16777216"),
            (1.0 / 3.0, "0.333333343"),
            (1.220_703_1e-4, "0.000122070312"), // 2^-13: the tenth digit is 5, rounded to even
            (3.662_109_4e-4, "0.000366210938"), // 3 * 2^-13: the tenth digit is 5, rounded to even
            (f32::MAX, "3.40282347e+38"),
            (f32::MIN_POSITIVE, "1.17549435e-38"),
            (1e-40, "9.9999461e-41"),
            (1e-45, "1.40129846e-45"),
            (f32::INFINITY, "inf"),
            (f32::NEG_INFINITY, "-inf"),
            (f32::NAN, "nan"),
        ];
        for (value, want) in cases {
            assert_eq!(format_f32(value), want);
        }
    }

    #[test]
    fn f64_values_print_as_in_c() {
        let cases = [
            (0.1, "0.1"),
            (1.0 / 3.0, "0.33333333333333331"),
            (1e15, "1e+15"),
            (123456789012345.0, "123456789012345"),
            (9007199254740993.0, "9007199254740992"),
            (f64::MAX, "1.7976931348623157e+308"),
            (5e-324, "4.94065645841247e-324"),
        ];
        for (value, want) in cases {
            assert_eq!(format_f64(value), want);
        }
    }
}
