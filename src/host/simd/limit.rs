//! The limit that a user sets on the instruction sets of host kernels.

use crate::error::{Error, Result};
use std::{env, sync::OnceLock};

/// Environment variable that sets the limit of a process.
const LIMIT_ENV: &str = "CORTADO_SIMD";

/// Instruction sets that host kernels may use if the processor has them. Each limit also allows all
/// instruction sets of the lower limits.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(crate) enum SimdLimit {
    /// Only the instructions that the compilation target guarantees. Results are bit-identical to
    /// those of the SIMD kernels. On AArch64, this limit also excludes the NEON kernels, although
    /// the target guarantees NEON.
    Portable,
    /// AVX2, FMA and F16C.
    Avx2,
    /// AVX-512 F, BW, DQ and VL.
    Avx512,
    /// All instruction sets that kernels are written for, which include AMX and `vdpbf16ps`.
    All,
}

static LIMIT: OnceLock<SimdLimit> = OnceLock::new();

impl SimdLimit {
    const NAMES: [(&str, Self); 3] =
        [("portable", Self::Portable), ("avx2", Self::Avx2), ("avx512", Self::Avx512)];

    /// Returns the limit of the process. The first call makes the limit final, because kernels that
    /// run under different limits would disagree on the layout of packed matrices.
    pub(crate) fn of_process() -> Self {
        *LIMIT.get_or_init(|| match env::var_os(LIMIT_ENV) {
            None => Self::All,
            Some(name) => Self::parse(&name.to_string_lossy()).unwrap_or_else(|error| {
                log::warn!(
                    "environment variable {LIMIT_ENV}: {error}; all instruction sets are used"
                );
                Self::All
            }),
        })
    }

    fn parse(name: &str) -> Result<Self> {
        let found = Self::NAMES.into_iter().find(|(known, _)| *known == name);
        found.map(|(_, limit)| limit).ok_or_else(|| {
            let names = Self::NAMES.map(|(known, _)| known).join(", ");
            Error::invalid_input("limit_simd", format!("expected one of {names}, found `{name}`"))
        })
    }
}

/// Limits the instruction sets of the host kernels of this process, for example to compare the
/// speed of instruction sets or to check a result. `name` is one of:
///
/// - `portable`: only what the compilation target guarantees; on AArch64, without the NEON kernels.
/// - `avx2`: AVX2, FMA and F16C.
/// - `avx512`: AVX-512, without AMX and the instruction `vdpbf16ps`.
///
/// A limit above what the processor supports has no effect.
///
/// On a processor with FMA, results are bit-identical under all three limits. The limit `portable`
/// makes matrix products emulate the FMA instruction if the compilation target lacks it. On Zen 5,
/// an emulated matrix product takes about 35 times as long as with AVX2 for `f32`, and 60 times for
/// `f64`. On a processor without FMA, matrix products without the limit `portable` round each
/// product of two elements, so their results differ in the last bits.
///
/// A call overrides the environment variable `CORTADO_SIMD`, which takes the same names. Call
/// `limit_simd` before the first kernel runs.
///
/// # Errors
/// [`Error::InvalidInput`] if `name` is none of these names, or if a kernel has already run under
/// another limit or an earlier call has set another limit.
///
/// ```
/// use cortado::host::{limit_simd, simd_instruction_set};
///
/// limit_simd("portable")?;
/// assert!(!["AVX-512", "AVX2"].contains(&simd_instruction_set()));
/// assert!(limit_simd("avx2").is_err(), "the limit is final");
/// # Ok::<(), cortado::Error>(())
/// ```
pub fn limit_simd(name: &str) -> Result<()> {
    let limit = SimdLimit::parse(name)?;
    if *LIMIT.get_or_init(|| limit) == limit {
        return Ok(());
    }
    let reason = format!("`{name}`: set the limit before the first kernel runs, and only once");
    Err(Error::invalid_input("limit_simd", reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_ordered_by_what_they_allow() {
        let limits = ["portable", "avx2", "avx512"].map(|name| SimdLimit::parse(name).unwrap());
        assert!(limits.is_sorted_by(|lower, higher| lower < higher));
        assert!(limits[2] < SimdLimit::All);
    }

    #[test]
    fn unknown_instruction_set_is_an_error_that_lists_the_names() {
        let error = SimdLimit::parse("AVX2").unwrap_err().to_string();
        let expected = "expected one of portable, avx2, avx512, found `AVX2`";
        assert!(error.contains(expected), "{error}");
    }
}
