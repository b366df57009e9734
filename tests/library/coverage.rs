//! Comparison of a device's coverage with the table in README.md.

use cortado::conformance::Report;

/// Asserts that column `column` of the table in README.md says which kernels of the device are
/// native for all element types.
pub(crate) fn assert_readme_shows(report: &Report, column: usize) {
    let readme = include_str!("../../README.md");
    let table = report.coverage().to_string();
    for row in table.lines().skip(2).take_while(|line| line.starts_with('|')) {
        let kernel = row.split_inclusive('|').take(2).collect::<String>();
        let line = readme.lines().find(|line| line.starts_with(&kernel)).unwrap_or(&kernel);
        let is_native = row.matches("| native ").count() == 4;
        let cell = line.split('|').nth(column).map(str::trim);
        assert_eq!(cell == Some("all"), is_native, "README.md: correct the row {line} to {row}");
    }
}
