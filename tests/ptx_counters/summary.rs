//! The tables of `docs/gpu/counters.md`, which show the most important counters for readers.

use crate::{
    estimate::{DOUBLE_CYCLES, Estimate, FLOAT_CYCLES, MATRIX_CYCLES, estimate},
    table::{Row, Table},
};
use std::fmt::Write;

/// Returns a quotient with one decimal, or a dash if the divisor is 0.
fn quotient(a: f64, b: f64) -> String {
    if b == 0.0 { "–".to_owned() } else { format!("{:.1}", a / b) }
}

fn percent(fraction: f64) -> String {
    format!("{:.0} %", 100.0 * fraction)
}

/// Returns the table of the launches.
fn launches(launches: &Table, code: &Table) -> String {
    let mut text = "| call and kernel | blocks | warp instructions | active lanes | sectors per \
                    load | sectors per store | bank conflicts | limit | estimate |\n\
                    |---|--:|--:|--:|--:|--:|--:|---|--:|\n"
        .to_owned();
    for launch in &launches.rows {
        let [call, kernel, _] = &launch.key[..] else { continue };
        let code = code.rows.iter().find(|row| row.key[0] == *kernel);
        let count = |column| launch.count(column);
        let conflicts = count("shared_loads_conflicts") + count("shared_stores_conflicts");
        let wavefronts = count("shared_loads_wavefronts") + count("shared_stores_wavefronts");
        let conflicts = match wavefronts {
            0.0 => "–".to_owned(),
            _ => percent(conflicts / wavefronts),
        };
        let Estimate { limit, fraction } = estimate(launch, code);
        writeln!(
            text,
            "| {call}: `{kernel}` | {} | {} | {} | {} | {} | {conflicts} | {limit} | {} |",
            launch.text("blocks").trim_end_matches("x1"),
            count("instructions"),
            quotient(count("active_lanes"), count("instructions")),
            quotient(count("loads_sectors"), count("loads")),
            quotient(count("stores_sectors"), count("stores")),
            percent(fraction),
        )
        .unwrap();
    }
    text
}

/// Returns the table of the machine code of the kernels for matrix products and convolutions.
fn machine_code(code: &Table) -> String {
    let mut text = "| kernel | registers | shared memory in bytes | resident blocks | occupancy | \
                    instructions in the main loop | of these, arithmetic | share | rate |\n\
                    |---|--:|--:|--:|--:|--:|--:|--:|--:|\n"
        .to_owned();
    let is_product = |row: &&Row| {
        let is_product = ["gemm_", "convolve_"].iter().any(|name| row.key[0].starts_with(name));
        is_product && row.count("loop") > 0.0
    };
    for row in code.rows.iter().filter(is_product) {
        let (name, cycles) = match row.text("main") {
            "mma" => ("HMMA", MATRIX_CYCLES),
            "double" => ("DFMA", DOUBLE_CYCLES),
            _ => ("FFMA", FLOAT_CYCLES),
        };
        let share = row.count("loop_main") / row.count("loop");
        let blocks = row.count("resident_blocks");
        writeln!(
            text,
            "| `{}` | {} | {} | {blocks} | {} | {} | {} {name} | {} | {} |",
            row.key[0],
            row.text("registers"),
            row.text("shared"),
            percent(row.count("resident_warps") / 64.0),
            row.text("loop"),
            row.text("loop_main"),
            percent(share),
            percent((share * cycles).min(1.0)),
        )
        .unwrap();
    }
    text
}

/// Replaces the two generated tables of a document.
pub(crate) fn update(document: &str, launch_table: &Table, code: &Table) -> String {
    let mut document = document.to_owned();
    let tables = [("launches", launches(launch_table, code)), ("code", machine_code(code))];
    for (name, table) in tables {
        let (start, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
        let (before, rest) = document.split_once(&start).expect("a mark before the table");
        let (_, after) = rest.split_once(&end).expect("a mark behind the table");
        document = format!("{before}{start}\n{table}\n{end}{after}");
    }
    document
}
