//! Number formatting like `%g` of C's `printf`, which Caffe's logs use.

/// Formats `value` like C's `printf("%g")`: up to six significant digits without trailing zeros.
pub(super) fn format_g(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        let name = if value.is_nan() { "nan" } else { "inf" };
        let sign = if value.is_sign_negative() { "-" } else { "" };
        return if value == 0.0 { format!("{sign}0") } else { format!("{sign}{name}") };
    }
    let scientific_text = format!("{value:.5e}");
    let (mantissa, exponent) = scientific_text.split_once('e').unwrap_or((&scientific_text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        let decimals = usize::try_from(5 - exponent).unwrap_or(0);
        return trim_zeros(&format!("{value:.decimals$}")).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim_zeros(mantissa), exponent.abs())
}

fn trim_zeros(number: &str) -> &str {
    match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number,
    }
}

#[cfg(test)]
mod tests {
    use super::format_g;

    /// The expected strings are the output of C's `printf("%g")`.
    #[test]
    fn format_g_matches_printf() {
        let cases = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (0.0953, "0.0953"),
            (2.364_674, "2.36467"),
            (1234567.0, "1.23457e+06"),
            (999_999.5, "1e+06"),
            (123456.0, "123456"),
            (-1.12104e-43, "-1.12104e-43"),
            (0.0001, "0.0001"),
            (0.000_099_999_999, "0.0001"),
            (0.00001, "1e-05"),
            (1e100, "1e+100"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
        ];
        for (value, want) in cases {
            assert_eq!(format_g(value), want);
        }
    }
}
