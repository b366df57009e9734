//! HTML page of the report: sections with charts and tables, without network access.

mod charts;
mod html;
mod peers;

use super::{Part, Record, compare, record::time_text};
use crate::error::Result;
use charts::{rate_charts, roofline_charts, transfer_charts};
use html::{document, row, section, table};
use peers::peers_section;

/// Returns the page of all `parts`, compared with the parts in `baseline`.
pub(super) fn page(parts: &[Part], baseline: &[Part]) -> Result<String> {
    let mut sections = vec![machine_section(parts), peaks_section(parts)];
    sections.push(section(
        "Roofline",
        "Each dot is a kernel at one size, or a pass of a layer of a net. The lines are the measured limits: memory bandwidth limits \
         kernels under the slope, and arithmetic limits kernels under the horizontal part.",
        &roofline_charts(parts)?,
    ));
    sections.push(section(
        "Rate and size",
        "Rates of each kernel on each device, over the problem size. The last column of each table \
         is the share of the least time that the measured peak rates allow: the rest is left to gain.",
        &rate_charts(parts)?,
    ));
    sections.push(section(
        "Transfers",
        "Times of transfers between host and device, over the number of bytes. A copy takes longer \
         for more bytes. A map, of memory that host and device share, copies nothing.",
        &transfer_charts(parts)?,
    ));
    sections.push(break_even_section(parts));
    sections.push(peers_section(parts)?);
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
        bench_kit::{Level, Limits, PeerTimes, Work},
        drawing::SVG_NAMESPACE,
    };

    fn record(kernel: &str, device: &str, size: u64, [bytes, flops]: [u64; 2]) -> Record {
        Record {
            case: format!("{kernel}/{size}"),
            kernel: kernel.into(),
            element: "f32".into(),
            device: device.into(),
            size: Some(size),
            bytes,
            flops,
            seconds: 1e-6,
            interval: [1e-6; 2],
            limit_seconds: None,
            fallback: false,
        }
    }

    #[test]
    fn transfers_have_a_chart_with_copies_and_maps() {
        let copy = |size| record("host_to_device", "gpu, copy, pageable memory", size, [size, 0]);
        let map = |size| record("host_to_device", "cpu, map", size, [0, 0]);
        let records = vec![copy(4096), copy(8192), map(4096), map(8192)];
        let page = page(&[Part { records, ..Part::default() }], &[]).unwrap();
        let transfers = page.split("<h2>").find(|text| text.starts_with("Transfers<")).unwrap();
        assert_eq!(transfers.matches("<figure>").count(), 1);
        for text in [">gpu, copy, pageable memory</text>", ">cpu, map</text>", "copies nothing"] {
            assert!(transfers.contains(text), "{text}: {transfers}");
        }
        // The charts of rates leave transfers out.
        assert_eq!(page.matches("<figure>").count(), 1);
    }

    #[test]
    fn a_roofline_separates_the_parts() {
        let part = |name: &str| Part {
            name: name.into(),
            records: vec![record("gemm", "cpu", 1, [10, 20]), record("gemm", "cpu", 2, [10, 40])],
            limits: vec![Limits {
                device: "cpu".into(),
                flops: vec![("f32".into(), 1e11)],
                levels: Vec::new(),
            }],
            ..Part::default()
        };
        let page = page(&[part("blas"), part("layers-LeNet")], &[]).unwrap();
        let roofline = page.split("<h2>").find(|text| text.starts_with("Roofline<")).unwrap();
        assert!(roofline.contains(">blas</text>") && roofline.contains(">layers-LeNet</text>"));
        // Each part has a dot in the legend and one for each record.
        for color in &crate::drawing::COLORS[..2] {
            let dots =
                roofline.split("<circle").filter(|tag| tag.contains(&format!("\"{color}\"")));
            assert_eq!(dots.count(), 3, "{roofline}");
        }
    }

    #[test]
    fn other_libraries_have_a_ratio_for_each_kernel_and_case() {
        let times = |case: &str, seconds: f64, other: f64| PeerTimes {
            kernel: "sgemm".into(),
            case: case.into(),
            threads: 1,
            work: Work { bytes: 0, flops: 1000 },
            seconds,
            others: vec![("slow".into(), 9.0), ("fast".into(), other)],
        };
        // cortado is twice as fast in one case, and half as fast in the other.
        let peers = vec![times("a", 1e-6, 2e-6), times("b", 4e-6, 2e-6)];
        let part = Part { name: "peers".into(), peers, ..Part::default() };
        assert_eq!(Part::from_json(&part.to_json()), Some(part.clone()));
        let page = page(&[part], &[]).unwrap();
        let row = |cells: [&str; 5]| {
            format!("<tr>{}</tr>", cells.map(|c| format!("<td>{c}</td>")).concat())
        };
        assert!(page.contains(&row(["sgemm, 1 thread", "2", "1.00", "0.50", "b"])), "{page}");
        assert!(page.contains("fast: 0.5 GFLOP/s</td><td>2.00</td>"), "{page}");
    }

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
        assert!(!page.contains("Compared with other libraries"), "no comparison is stored");
        // The page loads nothing: its only URL is the namespace of SVG.
        assert_eq!(page.matches("http").count(), page.matches(SVG_NAMESPACE).count());
    }
}
