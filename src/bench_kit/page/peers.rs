//! Section of the report that compares cortado with other libraries.

use super::{
    super::{Part, PeerTimes},
    charts::{SIZE, grid},
    html::{figure, row, section, table},
};
use crate::{
    drawing::{AxisScale, Chart, Mark, Series},
    error::Result,
};
use std::collections::BTreeMap;

/// Cases by kernel and number of threads, each with cortado's rate divided by the rate of the
/// fastest other library.
type Groups<'a> = BTreeMap<(&'a str, usize), Vec<(&'a PeerTimes, f64)>>;

/// Returns the section, or an empty string if no comparison is stored, as on a machine without the
/// other libraries.
pub(super) fn peers_section(parts: &[Part]) -> Result<String> {
    let mut groups: Groups<'_> = BTreeMap::new();
    for times in parts.iter().flat_map(|part| &part.peers) {
        if let Some(ratio) = times.ratio() {
            groups.entry((&times.kernel, times.threads)).or_default().push((times, ratio));
        }
    }
    if groups.is_empty() {
        return Ok(String::new());
    }
    let mut figures = String::new();
    let computes = |(times, _): &&(&PeerTimes, f64)| times.work.flops > times.work.bytes;
    for (caption, label, is_arithmetic) in [
        ("kernels that compute", "floating-point operations of a call", true),
        ("kernels that move data", "bytes of a call", false),
    ] {
        let series = groups.iter().map(|(group, cases)| {
            let cases = cases.iter().filter(|case| computes(case) == is_arithmetic);
            let point = |(times, ratio): &(&PeerTimes, f64)| {
                [times.work.flops.max(times.work.bytes) as f64, *ratio]
            };
            Series {
                name: group_name(*group),
                mark: Mark::Dots,
                points: cases.map(point).collect(),
            }
        });
        let series: Vec<_> = series.filter(|series| !series.points.is_empty()).collect();
        if series.is_empty() {
            continue;
        }
        let chart = Chart {
            x: label.into(),
            y: "rate / best other library".into(),
            scales: [AxisScale::Logarithmic, AxisScale::Automatic],
            series,
        };
        let cases = groups.values().flatten().filter(|case| computes(case) == is_arithmetic);
        let rows: Vec<_> = cases.map(|(times, ratio)| case_row(times, *ratio)).collect();
        let header = ["kernel", "case", "threads", "cortado", "best other library", "ratio"];
        figures += &figure(caption, &chart.svg(SIZE[0], SIZE[1])?, &table(&header, &rows));
    }
    let rows: Vec<_> = groups.iter().map(|(group, cases)| group_row(*group, cases)).collect();
    let header = ["kernel", "cases", "mean ratio", "least ratio", "case of the least ratio"];
    let text = "Rate of cortado divided by the rate of the fastest other library, in one process and \
                on the same operands. A ratio above 1 means that cortado is faster. The mean is the \
                geometric mean.";
    let summary = table(&header, &rows);
    Ok(section("Compared with other libraries", text, &(grid(&figures) + &summary)))
}

fn group_name((kernel, threads): (&str, usize)) -> String {
    format!("{kernel}, {threads} {}", if threads == 1 { "thread" } else { "threads" })
}

fn group_row(group: (&str, usize), cases: &[(&PeerTimes, f64)]) -> Vec<String> {
    let mean = cases.iter().map(|(_, ratio)| ratio.ln()).sum::<f64>() / cases.len() as f64;
    let least = cases.iter().min_by(|a, b| a.1.total_cmp(&b.1));
    let (least, case) = least.map_or((f64::NAN, ""), |(times, ratio)| (*ratio, &*times.case));
    let [count, mean, least] =
        [cases.len().to_string(), format!("{:.2}", mean.exp()), format!("{least:.2}")];
    row([&group_name(group), &count, &mean, &least, case])
}

fn case_row(times: &PeerTimes, ratio: f64) -> Vec<String> {
    let rate = |seconds: f64| {
        let (work, unit) = match times.work.flops > times.work.bytes {
            true => (times.work.flops, "GFLOP/s"),
            false => (times.work.bytes, "GB/s"),
        };
        format!("{:.1} {unit}", work as f64 / seconds / 1e9)
    };
    let best = times
        .best()
        .map_or(String::new(), |(library, seconds)| format!("{library}: {}", rate(seconds)));
    let (threads, own) = (times.threads.to_string(), rate(times.seconds));
    row([&times.kernel, &times.case, &threads, &own, &best, &format!("{ratio:.2}")])
}
