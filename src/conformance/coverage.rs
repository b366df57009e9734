//! Coverage table: which kernels of a device are native.

use super::check::{CheckResult, DTYPES, Outcome};
use crate::element::DType;
use std::fmt;

/// Coverage table of a device: outcomes by kernel and element type. `Display` writes the table as
/// Markdown, followed by the checks that were skipped.
///
/// ```
/// use cortado::{DType, conformance::{CheckResult, Outcome, Report}};
///
/// let cell = |dtype, outcome| {
///     CheckResult { check: "dot", kernel: Some("dot"), element: Some(dtype), outcome }
/// };
/// let results = vec![cell(DType::F32, Outcome::Native), cell(DType::F16, Outcome::Fallback)];
/// let report = Report { device: "mine".into(), results }; // usually from `Kit::run`
/// assert_eq!(report.coverage().native_cells(), (1, 2));
/// assert!(report.coverage().to_string().contains("| dot | native | untested | fallback |"));
/// ```
#[derive(Clone, Debug)]
pub struct Coverage<'a> {
    device: &'a str,
    rows: Vec<(&'static str, Vec<&'a CheckResult>)>,
    /// Reasons for which checks were skipped, and the names of the checks.
    skipped: Vec<(&'a str, Vec<&'static str>)>,
}

impl<'a> Coverage<'a> {
    pub(super) fn new(device: &'a str, findings: &'a [CheckResult]) -> Self {
        let mut rows: Vec<(_, Vec<_>)> = Vec::new();
        for finding in findings.iter().filter(|finding| finding.kernel.is_some()) {
            match rows.last_mut() {
                Some((check, cells)) if *check == finding.check => cells.push(finding),
                _ => rows.push((finding.check, vec![finding])),
            }
        }
        let mut skipped: Vec<(&str, Vec<_>)> = Vec::new();
        for finding in findings {
            let Outcome::Skipped(reason) = &finding.outcome else { continue };
            match skipped.iter_mut().find(|(other, _)| other == reason) {
                None => skipped.push((reason, vec![finding.check])),
                Some((_, checks)) if checks.last() == Some(&finding.check) => {}
                Some((_, checks)) => checks.push(finding.check),
            }
        }
        Self { device, rows, skipped }
    }

    /// Returns the number of table cells in which the kernel is native, and the number of all table
    /// cells.
    pub fn native_cells(&self) -> (usize, usize) {
        let cells = || self.rows.iter().flat_map(|(_, cells)| cells);
        let native_count = cells().filter(|cell| cell.outcome == Outcome::Native).count();
        (native_count, cells().count())
    }

    /// Returns a JSON object with the device's name and, for each kernel and element type,
    /// `native`, `fallback`, `failed` or `skipped`. In the JSON object, the result of a kernel that
    /// has no element type has the key `u32`. The JSON object omits combinations of kernel and
    /// element type that no check tested.
    pub fn to_json(&self) -> String {
        let cell = |cell: &&CheckResult| {
            let element = cell.element.map_or("u32", DType::name);
            format!("{}: {}", quoted(element), quoted(outcome_word(&cell.outcome)))
        };
        let row = |(name, cells): &(&str, Vec<&CheckResult>)| {
            let cells: Vec<_> = cells.iter().map(cell).collect();
            format!("    {}: {{{}}}", quoted(name), cells.join(", "))
        };
        let rows: Vec<_> = self.rows.iter().map(row).collect();
        let device = quoted(self.device);
        format!("{{\n  \"device\": {device},\n  \"kernels\": {{\n{}\n  }}\n}}\n", rows.join(",\n"))
    }
}

impl fmt::Display for Coverage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = DTYPES.map(DType::name).join(" | ");
        writeln!(f, "| kernel | {names} |\n|---|{}", "---|".repeat(DTYPES.len()))?;
        for (name, cells) in &self.rows {
            let cell = |dtype| {
                // The result of a kernel that has no element type fills all cells of the kernel's
                // row.
                let fits = |cell: &&&CheckResult| cell.element.is_none_or(|e| e == dtype);
                cells.iter().find(fits).map_or("untested", |cell| outcome_word(&cell.outcome))
            };
            writeln!(f, "| {name} | {} |", DTYPES.map(cell).join(" | "))?;
        }
        for (reason, checks) in &self.skipped {
            writeln!(f, "\nSkipped in `{}`: {reason}.", checks.join("`, `"))?;
        }
        Ok(())
    }
}

fn outcome_word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Native => "native",
        Outcome::Fallback => "fallback",
        Outcome::Failed(_) => "failed",
        Outcome::Skipped(_) => "skipped",
    }
}

/// Returns `text` as a JSON string.
fn quoted(text: &str) -> String {
    let mut json = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => json.extend(['\\', c]),
            c if c < ' ' => json.push_str(&format!("\\u{:04x}", c as u32)),
            c => json.push(c),
        }
    }
    json.push('"');
    json
}
