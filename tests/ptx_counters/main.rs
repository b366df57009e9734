//! Counters of the kernels' launches and of their machine code. The test fails if the counters
//! differ from the tables in `docs/gpu`. With `CORTADO_UPDATE_COUNTERS=1`, the test updates the
//! tables instead of comparing the counters. The script `scripts/counters` runs the test.
//!
//! `CORTADO_MACHINE_CODE` names a folder with the machine code for compute capability 8.0, and
//! `CORTADO_NVDISASM` the disassembler. Without these two variables, the test does not check the
//! machine code.

#[path = "../cuda_on_cpu/mod.rs"]
mod cuda_on_cpu;
mod estimate;
mod launches;
mod machine_code;
mod summary;
mod table;

use cortado::device::CudaDevice;
use std::{
    collections::HashMap,
    env,
    fs::{self, OpenOptions},
    path::Path,
    process::Command,
    thread,
};
use table::{Difference, Row, Table};

/// Environment variable that names the log of the PTX machine in a child process.
const LOG: &str = "PTX_MACHINE_COUNTERS";
/// Environment variable that numbers the part of the calls that a child process makes.
const PART: &str = "PTX_COUNTERS_PART";

const LAUNCHES: &str = "docs/gpu/launches.tsv";
const MACHINE_CODE: &str = "docs/gpu/machine-code.tsv";
const SUMMARY: &str = "docs/gpu/counters.md";

/// Runs in a child process, and makes one part of the kernel calls. The PTX machine writes the log
/// of the child process.
#[test]
fn child() {
    let (Some(log), Ok(part)) = (env::var_os(LOG), env::var(PART)) else { return };
    let driver = cuda_on_cpu::library().expect("g++ is missing");
    let builder = CudaDevice::builder().threads(1).driver_path(driver);
    let builder = builder.multiprocessors(launches::MULTIPROCESSORS);
    let (device, tf32) = (builder.clone().open(0).unwrap(), builder.tf32(true).open(0).unwrap());
    let log = OpenOptions::new().create(true).append(true).open(log).unwrap();
    launches::PARTS[part.parse::<usize>().unwrap()](&device, &tf32, &log).unwrap();
}

/// Runs a child process, and returns the log of the PTX machine.
fn log(part: usize, folder: &Path) -> String {
    let path = folder.join(part.to_string());
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", "child", "--nocapture"]).env(PART, part.to_string());
    child.env(LOG, &path).env("CORTADO_PTX_MACHINE", "1").env_remove("PTX_MACHINE_PRECISION");
    let output = child.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    fs::read_to_string(path).unwrap()
}

/// Returns the table of the launches in a log. A line without a tab names the call whose launches
/// follow.
fn launch_table(log: &str) -> Table {
    let mut columns: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    let mut call = "";
    let mut launches_of_call: HashMap<&str, usize> = HashMap::new();
    for line in log.lines() {
        let mut fields = line.split('\t');
        let name = fields.next().unwrap_or_default();
        let (Some(blocks), Some(threads)) = (fields.next(), fields.next()) else {
            call = name;
            launches_of_call.clear();
            continue;
        };
        let number = launches_of_call.entry(name).and_modify(|number| *number += 1).or_insert(1);
        let mut values = vec![("blocks", blocks), ("threads", threads)];
        values.extend(fields.filter_map(|field| field.split_once('=')));
        columns = values.iter().map(|(column, _)| (*column).to_owned()).collect();
        let values = values.iter().map(|(column, value)| ((*column).into(), (*value).into()));
        let key = vec![call.to_owned(), name.to_owned(), number.to_string()];
        rows.push(Row { key, values: values.collect() });
    }
    let mut table = Table::new(&["call", "kernel", "number"], &columns);
    table.rows = rows;
    table
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn counters_equal_the_committed_tables() {
    if env::var_os(LOG).is_some() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let scratch = scratch.path();
    let log = thread::scope(|scope| {
        let parts = 0..launches::PARTS.len();
        let logs: Vec<_> = parts.map(|part| scope.spawn(move || log(part, scratch))).collect();
        logs.into_iter().map(|log| log.join().unwrap()).collect::<String>()
    });
    let (old_launches, old_code) = (read(LAUNCHES), read(MACHINE_CODE));
    let launches = launch_table(&log);
    let code = match env::var_os("CORTADO_MACHINE_CODE") {
        Some(folder) => machine_code::table(Path::new(&folder)),
        None => {
            println!("SKIPPED: CORTADO_MACHINE_CODE is not set; the machine code is not checked");
            Table::parse(&old_code, 1)
        }
    };
    let old_summary = read(SUMMARY);
    let summary = summary::update(&old_summary, &launches, &code);
    if env::var_os("CORTADO_UPDATE_COUNTERS").is_some_and(|value| value == "1") {
        fs::write(LAUNCHES, launches.to_text()).unwrap();
        fs::write(MACHINE_CODE, code.to_text()).unwrap();
        fs::write(SUMMARY, summary).unwrap();
        return;
    }
    let mut differences = Table::parse(&old_launches, 3).differences(&launches);
    differences.extend(Table::parse(&old_code, 1).differences(&code));
    let message = report(&differences);
    assert!(differences.is_empty(), "{message}");
    assert!(old_launches == launches.to_text(), "{LAUNCHES}: the order of the rows has changed");
    assert!(old_code == code.to_text(), "{MACHINE_CODE}: the order of the rows has changed");
    assert!(old_summary == summary, "{SUMMARY}: outdated; run `scripts/counters update`");
}

/// Returns a text that lists the differences, the worst first.
fn report(differences: &[Difference]) -> String {
    let lines = |pick: fn(&Difference) -> Option<&String>| -> Vec<_> {
        differences.iter().filter_map(pick).collect()
    };
    let groups = [
        ("worse", lines(|d| if let Difference::Worse(line) = d { Some(line) } else { None })),
        ("better", lines(|d| if let Difference::Better(line) = d { Some(line) } else { None })),
        ("changed", lines(|d| if let Difference::Other(line) = d { Some(line) } else { None })),
    ];
    let mut text = "the counters of the kernels differ from docs/gpu\n".to_owned();
    for (name, lines) in &groups {
        text += &format!("\n{} {name}:\n", lines.len());
        lines.iter().for_each(|line| text += &format!("  {line}\n"));
    }
    text + "\nIf the changes are intended, run `scripts/counters update` and commit docs/gpu.\n"
}

#[test]
fn the_report_lists_worse_counters_first() {
    let differences = [
        Difference::Other("a".into()),
        Difference::Better("b".into()),
        Difference::Worse("c".into()),
    ];
    let text = report(&differences);
    let places = ["1 worse:\n  c\n", "1 better:\n  b\n", "1 changed:\n  a\n"];
    let places = places.map(|part| text.find(part).unwrap());
    assert!(places.is_sorted(), "{text}");
}
