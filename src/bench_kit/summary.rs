//! Summary of a benchmark program: the fastest case of each kernel, and the changes since the
//! baseline.

use super::{Part, Record, compare};
use std::collections::BTreeMap;

/// Largest number of rows of a summary, so that the summary fits on one screen.
const MAX_ROWS: usize = 24;

/// Returns the summary of a program on one screen: the highest rate of each kernel and its share of
/// the limit, and the comparison with the baseline.
pub(super) fn summary(part: &Part, baseline: Option<&Part>) -> String {
    let mut best: BTreeMap<(&str, &str), &Record> = BTreeMap::new();
    let by_device: BTreeMap<_, ()> =
        part.records.iter().map(|record| ((&*record.kernel, &*record.device), ())).collect();
    for record in &part.records {
        let device = if by_device.len() > MAX_ROWS { "" } else { &*record.device };
        let speed = |record: &Record| record.flops.max(record.bytes) as f64 / record.seconds;
        let entry = best.entry((&record.kernel, device)).or_insert(record);
        if speed(record) > speed(entry) {
            *entry = record;
        }
    }
    let mut text = format!("summary of {}: fastest case of each kernel\n", part.name);
    for record in best.values().take(MAX_ROWS) {
        let share = match record.percent_of_limit() {
            Some(_) => format!("{} of the limit", record.share()),
            None => String::new(),
        };
        text += format!("{:<52} {:>16}  {share}", record.case, record.rate()).trim_end();
        text.push('\n');
    }
    if let Some(baseline) = baseline {
        let changes = compare(&baseline.records, &part.records);
        let slower: Vec<_> = changes.iter().filter(|change| change.is_slower()).collect();
        let faster = changes.iter().filter(|change| change.is_faster()).count();
        text += &format!(
            "compared with the baseline: {} of {} cases slower, {faster} faster\n",
            slower.len(),
            changes.len()
        );
        for change in slower.iter().take(5) {
            text += &format!("  {} takes {:.2} times as long\n", change.case, change.ratio);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_has_the_fastest_case_and_the_slower_cases() {
        let record = |size: u64, seconds: f64| Record {
            case: format!("gemm/f32/cpu/{size}"),
            kernel: "gemm".into(),
            element: "f32".into(),
            device: "cpu".into(),
            size: Some(size),
            bytes: 1,
            flops: 1000,
            seconds,
            interval: [seconds; 2],
            limit_seconds: Some(1e-9),
            fallback: false,
        };
        let part = |records| Part { name: "blas".into(), records, ..Part::default() };
        let base = part(vec![record(1, 1e-8), record(2, 2e-9)]);
        let now = part(vec![record(1, 2e-8), record(2, 2e-9)]);
        let text = summary(&now, Some(&base));
        assert!(text.contains("gemm/f32/cpu/2") && text.contains("500.0 GFLOP/s"), "{text}");
        assert!(text.contains("50 % of the limit"), "{text}");
        assert!(
            text.contains("1 of 2 cases slower") && text.contains("cpu/1 takes 2.00"),
            "{text}"
        );
    }
}
