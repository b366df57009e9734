//! Arguments of a benchmark program.

use super::{Sampling, passes::PASSES};
use crate::error::{Error, Result};

/// Arguments of a benchmark program.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) sampling: Sampling,
    /// Number of times that the program measures each case.
    pub(super) passes: usize,
    pub(super) json: bool,
    pub(super) save_baseline: bool,
    /// Selects the cases whose names contain at least one of these texts; empty to select all
    /// cases.
    pub(super) filters: Vec<String>,
}

const USAGE: &str = "usage: cargo bench --bench PROGRAM -- [FILTER..] [FLAGS]
  FILTER           time only the cases whose names contain this text
  --quick          take shorter samples
  --json           print one JSON object per case instead of text
  --save-baseline  also store the results as the baseline of later reports
  --test           run each case once, and store nothing";

impl Options {
    /// Returns the options for a measurement of all cases with the given sampling.
    pub(super) fn new(sampling: Sampling) -> Self {
        let filters = Vec::new();
        Self { sampling, passes: PASSES, json: false, save_baseline: false, filters }
    }

    pub(super) fn parse(args: impl Iterator<Item = String>) -> Result<Self> {
        let (mut bench, mut test) = (false, false);
        let mut options = Self::new(Sampling::FULL);
        for arg in args {
            match &*arg {
                "--bench" => bench = true, // from cargo
                "--test" => test = true,
                "--quick" => options.sampling = Sampling::QUICK,
                "--json" => options.json = true,
                "--save-baseline" => options.save_baseline = true,
                flag if flag.starts_with('-') => {
                    return Err(Error::InvalidData(format!("unknown flag {flag}\n{USAGE}")));
                }
                _ => options.filters.push(arg),
            }
        }
        // `cargo bench` passes `--bench`, and `cargo test` does not.
        if test || !bench {
            options.sampling = Sampling::ONCE;
            options.passes = 1;
        }
        Ok(options)
    }

    /// Returns whether the filters select a case or kernel of this name.
    pub(super) fn selects(&self, name: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|filter| name.contains(&**filter))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_select_the_sampling_the_passes_and_the_cases() {
        let options = |args: &[&str]| Options::parse(args.iter().map(|arg| (*arg).to_owned()));
        let sampling = |args: &[&str]| {
            let options = options(args).unwrap();
            (options.sampling, options.passes)
        };
        assert_eq!(sampling(&[]), (Sampling::ONCE, 1));
        assert_eq!(sampling(&["--bench"]), (Sampling::FULL, 3));
        assert_eq!(sampling(&["--bench", "--quick"]), (Sampling::QUICK, 3));
        assert_eq!(sampling(&["--bench", "--test"]), (Sampling::ONCE, 1));
        let filtered = options(&["--bench", "gemm", "dot"]).unwrap();
        assert!(filtered.selects("gemm/f32/64") && !filtered.selects("axpy"));
        let error = options(&["--qick"]).unwrap_err().to_string();
        assert!(error.contains("--qick") && error.contains("--quick"), "{error}");
    }
}
