//! Charts of the report: rooflines, rates over sizes, and times of transfers over sizes.

use super::{
    super::{Limits, Part, Record, record::time_text, transfers::DIRECTIONS},
    html::{figure, row, table},
};
use crate::{
    drawing::{AxisScale, Chart, Mark, Series, format_number},
    error::Result,
};
use std::collections::BTreeMap;

/// Width and height of a chart, in pixels.
pub(super) const SIZE: [f64; 2] = [440.0, 300.0];

/// Wraps the figures of a section in a grid; empty if the section has no figures.
pub(super) fn grid(figures: &str) -> String {
    match figures {
        "" => String::new(),
        figures => format!("<div class=\"charts\">{figures}</div>\n"),
    }
}

/// Returns a roofline for each device and element type whose peak rates are known: each kernel at
/// each size is a dot, with the arithmetic intensity on the x axis and the rate on the y axis. The
/// dots of each part have their own color or shape.
pub(super) fn roofline_charts(parts: &[Part]) -> Result<String> {
    let mut groups: BTreeMap<(&str, &str), Vec<(&str, &Record)>> = BTreeMap::new();
    for part in parts {
        for record in &part.records {
            if record.flops > 0 && record.bytes > 0 && !record.fallback {
                let group = groups.entry((&record.device, &record.element)).or_default();
                group.push((&part.name, record));
            }
        }
    }
    let mut figures = String::new();
    for ((device, element), records) in groups {
        let mut limits = parts.iter().flat_map(|part| &part.limits);
        let Some(limits) = limits.find(|limits| limits.device == device) else { continue };
        let rates = limits.flops.iter().find(|(name, _)| name == element).map(|(_, rate)| *rate);
        let Some(peak) = rates else { continue };
        let point = |record: &Record| {
            let (flops, bytes) = (record.flops as f64, record.bytes as f64);
            [flops / bytes, flops / record.seconds / 1e9]
        };
        let points: Vec<_> = records.iter().map(|(_, record)| point(record)).collect();
        // The records of each part are adjacent, as `chunk_by` requires.
        let dots = records.chunk_by(|a, b| a.0 == b.0).map(|records| {
            let points = records.iter().map(|(_, record)| point(record)).collect();
            Series { name: records[0].0.into(), mark: Mark::Dots, points }
        });
        let chart = Chart {
            x: "floating-point operations per byte".into(),
            y: "GFLOP/s".into(),
            // A roof consists of two straight lines only if both axes are logarithmic.
            scales: [AxisScale::Logarithmic; 2],
            series: dots.chain(roofs(limits, peak, &points)).collect(),
        };
        let rows: Vec<_> = records
            .iter()
            .zip(&points)
            .map(|((_, record), point)| {
                let [intensity, rate] = point.map(format_number);
                row([&record.case, &intensity, &rate, &record.share()])
            })
            .collect();
        let header = ["case", "operations per byte", "GFLOP/s", "share of the limit"];
        let caption = format!("{device}, {element}");
        figures += &figure(&caption, &chart.svg(SIZE[0], SIZE[1])?, &table(&header, &rows));
    }
    Ok(grid(&figures))
}

/// Returns the roofs of the first level and of the last level of memory, over the range of the
/// arithmetic intensities of `points`.
fn roofs(limits: &Limits, peak: f64, points: &[[f64; 2]]) -> Vec<Series> {
    let ends = points.iter().fold([f64::INFINITY, 0.0f64], |[low, high], point| {
        [low.min(point[0]), high.max(point[0])]
    });
    let mut levels = vec![limits.levels.first(), limits.levels.last()];
    levels.dedup();
    let roof = |level: &super::super::Level| {
        let ridge = peak / level.bandwidth;
        let intensities = [ends[0], ridge.clamp(ends[0], ends[1]), ends[1]];
        let points = intensities.map(|x| [x, (x * level.bandwidth).min(peak) / 1e9]);
        Series {
            name: format!("roof of {}", level.name),
            mark: Mark::Line,
            points: points.to_vec(),
        }
    };
    levels.into_iter().flatten().map(roof).collect()
}

/// Returns a chart for each kernel that was timed at several sizes: a line per device and element
/// type.
pub(super) fn rate_charts(parts: &[Part]) -> Result<String> {
    let mut kernels: BTreeMap<&str, Vec<&Record>> = BTreeMap::new();
    for record in parts.iter().flat_map(|part| &part.records) {
        let is_transfer = DIRECTIONS.contains(&&*record.kernel);
        if record.size.is_some() && record.flops.max(record.bytes) > 0 && !is_transfer {
            kernels.entry(&record.kernel).or_default().push(record);
        }
    }
    let mut figures = String::new();
    for (kernel, mut records) in kernels {
        records.sort_by_key(|record| record.size);
        let computes = records.iter().all(|record| record.flops > record.bytes);
        let rate = |record: &Record| {
            let work = if computes { record.flops } else { record.bytes };
            work as f64 / record.seconds / 1e9
        };
        let mut lines: BTreeMap<String, Vec<[f64; 2]>> = BTreeMap::new();
        for record in &records {
            let name = format!("{} {}", record.device, record.element).trim().to_owned();
            let size = record.size.unwrap_or(0) as f64;
            lines.entry(name).or_default().push([size, rate(record)]);
        }
        if lines.values().all(|points| points.len() < 2) {
            continue;
        }
        let series = |(name, points)| Series { name, mark: Mark::Line, points };
        let chart = Chart {
            x: "size (elements, rows, images or bytes)".into(),
            y: if computes { "GFLOP/s" } else { "GB/s" }.into(),
            scales: [AxisScale::Automatic, AxisScale::AutomaticWithZero],
            series: lines.into_iter().map(series).collect(),
        };
        let rows: Vec<_> = records
            .iter()
            .map(|record| {
                let size = record.size.map_or(String::new(), |size| size.to_string());
                let device = format!("{} {}", record.device, record.element);
                row([&device, &size, &record.rate(), &record.share()])
            })
            .collect();
        let header = ["device and element type", "size", "rate", "share of the limit"];
        figures += &figure(kernel, &chart.svg(SIZE[0], SIZE[1])?, &table(&header, &rows));
    }
    Ok(grid(&figures))
}

/// Returns a chart of the time over the number of bytes for each direction of transfers: a line per
/// device and kind of host memory.
pub(super) fn transfer_charts(parts: &[Part]) -> Result<String> {
    let mut figures = String::new();
    for (direction, caption) in DIRECTIONS.into_iter().zip(["host to device", "device to host"]) {
        let records = parts.iter().flat_map(|part| &part.records);
        let mut records: Vec<_> = records.filter(|record| record.kernel == direction).collect();
        if records.is_empty() {
            continue;
        }
        records.sort_by_key(|record| (&record.device, record.size));
        let series = records.chunk_by(|a, b| a.device == b.device).map(|records| {
            let point = |record: &&Record| [record.size.unwrap_or(0) as f64, 1e6 * record.seconds];
            let points = records.iter().map(point).collect();
            Series { name: records[0].device.clone(), mark: Mark::Line, points }
        });
        let chart = Chart {
            x: "bytes".into(),
            y: "microseconds".into(),
            scales: [AxisScale::Logarithmic; 2],
            series: series.collect(),
        };
        let rows: Vec<_> = records
            .iter()
            .map(|record| {
                let size = record.size.map_or(String::new(), |size| size.to_string());
                row([&record.device, &size, &time_text(record.seconds), &record.rate()])
            })
            .collect();
        let header = ["device and kind of transfer", "bytes", "time", "rate"];
        figures += &figure(caption, &chart.svg(SIZE[0], SIZE[1])?, &table(&header, &rows));
    }
    Ok(grid(&figures))
}
