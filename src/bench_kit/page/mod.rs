//! HTML page of the report: sections with charts and tables, without network access.

mod charts;
mod html;

use super::{Part, Record, compare, record::time_text};
use crate::error::Result;
use charts::{rate_charts, roofline_charts};
use html::{document, row, section, table};

/// Returns the page of all `parts`, compared with the parts in `baseline`.
pub(super) fn page(parts: &[Part], baseline: &[Part]) -> Result<String> {
    let mut sections = vec![machine_section(parts), peaks_section(parts)];
    sections.push(section(
        "Roofline",
        "Each dot is a kernel at one size. The lines are the measured limits: memory bandwidth limits \
         kernels under the slope, and arithmetic limits kernels under the horizontal part.",
        &roofline_charts(parts)?,
    ));
    sections.push(section(
        "Rate and size",
        "Rates of each kernel on each device, over the problem size. The last column of each table \
         is the share of the least time that the measured peak rates allow: the rest is left to gain.",
        &rate_charts(parts)?,
    ));
    sections.push(break_even_section(parts));
    sections.push(left_to_gain_section(parts));
    sections.push(comparison_section(parts, baseline));
    sections.push(all_cases_section(parts));
    Ok(document(&sections.concat()))
}

/// Describes the machine of the part that was stored with the most properties.
fn machine_section(parts: &[Part]) -> String {
    let machine = parts.iter().map(|part| &part.machine).max_by_key(|machine| machine.len());
    let rows = machine.into_iter().flatten().map(|(name, value)| row([name, value]));
    section("Machine", "", &table(&["property", "value"], &rows.collect::<Vec<_>>()))
}

fn peaks_section(parts: &[Part]) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for limits in parts.iter().flat_map(|part| &part.limits) {
        let flops = limits.flops.iter().map(|(element, rate)| {
            row([&limits.device, element, &format!("{:.1} GFLOP/s", rate / 1e9)])
        });
        let levels = limits.levels.iter().map(|level| {
            row([&limits.device, &level.name, &format!("{:.1} GB/s", level.bandwidth / 1e9)])
        });
        for new_row in flops.chain(levels) {
            if !rows.iter().any(|old| old[..2] == new_row[..2]) {
                rows.push(new_row);
            }
        }
    }
    section(
        "Measured peak rates",
        "Highest rates that this machine reached: multiply-adds on registers, and memory accesses \
         with operands that fit in one level of the caches.",
        &table(&["device", "element type or level", "peak rate"], &rows),
    )
}

fn break_even_section(parts: &[Part]) -> String {
    let rows: Vec<_> = parts.iter().flat_map(|part| &part.break_even).map(|r| r.to_vec()).collect();
    section(
        "Break-even sizes",
        "Smallest size from which the device is always faster than one CPU thread, without and with \
         the transfer of the operands. A dash means never, or that the kernel runs on the host.",
        &table(&["device", "kernel", "operands on device", "with transfers"], &rows),
    )
}

/// Lists the cases whose speed is farthest below the limit.
fn left_to_gain_section(parts: &[Part]) -> String {
    const ROWS: usize = 20;
    let records = parts.iter().flat_map(|part| &part.records);
    let mut shares: Vec<(f64, &Record)> = records
        .filter(|record| !record.fallback)
        .filter_map(|record| Some((record.percent_of_limit()?, record)))
        .collect();
    shares.sort_by(|a, b| a.0.total_cmp(&b.0));
    let rows = shares.iter().take(ROWS).map(|(_, record)| {
        let factor = record.limit_seconds.map_or(0.0, |limit| record.seconds / limit);
        let factor = format!("{factor:.1} times");
        row([&record.case, &time_text(record.seconds), &record.rate(), &record.share(), &factor])
    });
    section(
        "Left to gain",
        "Cases that are farthest from their limit. Small cases pay the fixed cost of a call.",
        &table(
            &["case", "time", "rate", "share of the limit", "possible speedup"],
            &rows.collect::<Vec<_>>(),
        ),
    )
}

fn comparison_section(parts: &[Part], baseline: &[Part]) -> String {
    let (mut rows, mut compared) = (Vec::new(), 0);
    for part in parts {
        let Some(earlier) = baseline.iter().find(|earlier| earlier.name == part.name) else {
            continue;
        };
        let changes = compare(&earlier.records, &part.records);
        compared += changes.len();
        rows.extend(changes.iter().filter(|c| c.is_slower() || c.is_faster()).map(|change| {
            let [before, after] = change.seconds.map(time_text);
            let verdict = if change.is_slower() { "slower" } else { "faster" };
            let percent = format!("{:+.0} %", 100.0 * (change.ratio - 1.0));
            let noise = format!("±{:.0} %", 100.0 * change.noise);
            row([&change.case, &before, &after, &percent, &noise, verdict])
        }));
    }
    let text = match (compared, rows.len()) {
        (0, _) => {
            "No baseline is stored. Run a benchmark with --save-baseline to store one.".into()
        }
        (cases, 0) => format!("None of {cases} cases changed by more than the noise."),
        (cases, changed) => format!("{changed} of {cases} cases changed by more than the noise."),
    };
    let header = ["case", "baseline", "now", "change of time", "noise", "verdict"];
    section("Comparison with the baseline", &text, &table(&header, &rows))
}

fn all_cases_section(parts: &[Part]) -> String {
    let tables = parts.iter().map(|part| {
        let rows = part.records.iter().map(|record| {
            let [low, high] = record.interval;
            let noise = format!("±{:.1} %", 50.0 * (high - low) / record.seconds);
            row([&record.case, &time_text(record.seconds), &noise, &record.rate(), &record.share()])
        });
        let header = ["case", "median time", "noise", "rate", "share of the limit"];
        let title = format!("{}: {} cases", part.name, part.records.len());
        html::details(&title, &table(&header, &rows.collect::<Vec<_>>()))
    });
    section("All cases", "", &tables.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        bench_kit::{Level, Limits},
        drawing::SVG_NAMESPACE,
    };

    #[test]
    fn the_page_escapes_names_and_has_a_table_for_each_chart() {
        let record = |size: u64, seconds: f64| Record {
            case: format!("<gemm>/{size}"),
            kernel: "<gemm>".into(),
            element: "f32".into(),
            device: "cpu (1 thread)".into(),
            size: Some(size),
            bytes: 12 * size * size,
            flops: 2 * size * size * size,
            seconds,
            interval: [seconds; 2],
            limit_seconds: Some(0.5 * seconds),
            fallback: false,
        };
        let level = Level { name: "L1".into(), capacity: u64::MAX, bandwidth: 1e11 };
        let limits = Limits {
            device: "cpu (1 thread)".into(),
            flops: vec![("f32".into(), 2e11)],
            levels: vec![level],
        };
        let part = Part {
            name: "blas".into(),
            limits: vec![limits],
            records: vec![record(64, 1e-5), record(512, 3e-3)],
            break_even: vec![["cpu".into(), "<gemm>".into(), "64".into(), "–".into()]],
            ..Part::default()
        };
        let mut slower = part.clone();
        slower.records[1].seconds *= 1.2;
        slower.records[1].interval = [slower.records[1].seconds; 2];
        let page = page(&[slower], &[part]).unwrap();
        assert!(page.contains("&lt;gemm&gt;") && !page.contains("<gemm>"));
        assert!(page.contains("1 of 2 cases changed") && page.contains("+20 %"), "{page}");
        let charts = page.matches("<figure>").count();
        assert!(charts >= 2 && page.matches("<summary>").count() >= charts);
        // The page loads nothing: its only URL is the namespace of SVG.
        assert_eq!(page.matches("http").count(), page.matches(SVG_NAMESPACE).count());
    }
}
