//! Tests that a training log has the form that Caffe's scripts read. Caffe's log scripts read dates
//! without a year, words at fixed positions in a line, and values after fixed strings. The
//! functions of this file parse a log as Caffe's scripts do.

use crate::command::{Folder, SOLVER};
use std::{fs, process::Command};

/// Returns the time of a line such as `I1123 12:34:56.789012  4321 file.rs:12] message`, in seconds
/// since the start of the month. Reads the line as `extract_seconds.py` does: month and day after
/// the first letter, hours, minutes and seconds between colons, microseconds after the dot. Panics
/// if the line does not have this format.
fn seconds(line: &str) -> f64 {
    let words: Vec<_> = line.split_whitespace().collect();
    let number = |text: &str| text.parse::<u32>().unwrap_or_else(|_| panic!("{line}"));
    let (month, day) = (number(&words[0][1..3]), number(&words[0][3..]));
    assert!((1..=12).contains(&month) && (1..=31).contains(&day), "{line}");
    let (clock, micros) = words[1].rsplit_once('.').unwrap();
    let [hours, minutes, seconds] = clock.split(':').map(number).collect::<Vec<_>>()[..] else {
        panic!("{line}");
    };
    let whole_seconds = ((day * 24 + hours) * 60 + minutes) * 60 + seconds;
    assert_eq!(micros.len(), 6, "{line}");
    f64::from(whole_seconds) + f64::from(number(micros)) / 1e6
}

/// Returns the number that follows the text `before` in the line, if the line contains the text.
fn number_after(line: &str, before: &str) -> Option<f64> {
    let (_, rest) = line.split_once(before)?;
    let number: String =
        rest.chars().take_while(|c| c.is_ascii_digit() || "+-.e".contains(*c)).collect();
    Some(number.parse().unwrap_or_else(|_| panic!("{line}")))
}

/// Returns word `position` of a line as a number. Like awk, counts words from 1.
fn number_at(line: &str, position: usize) -> f64 {
    line.split_whitespace().nth(position - 1).unwrap().parse().unwrap_or_else(|_| panic!("{line}"))
}

/// Row of a table of `parse_log.py`: iteration, learning rate, and the outputs in order.
type Row = (f64, f64, Vec<(String, f64)>);

/// Returns the rows that `parse_log.py` produces from the lines with `{kind} net output #`. The
/// iteration and the learning rate of a row are the last ones in the log before the row's first
/// output, except that the first row has the learning rate of the second row.
fn python_rows(log: &str, kind: &str) -> Vec<Row> {
    let start = log.lines().position(|line| line.contains("Solving")).unwrap();
    let (mut iteration, mut rate, mut rows) = (None, f64::NAN, Vec::<Row>::new());
    for line in log.lines().skip(start) {
        iteration = number_after(line, "Iteration ").or(iteration);
        let Some(iteration) = iteration else { continue };
        seconds(line);
        rate = number_after(line, "lr = ").unwrap_or(rate);
        let Some((_, output)) = line.split_once(&format!("{kind} net output #")) else { continue };
        let (_, output) = output.split_once(": ").unwrap();
        let (name, _) = output.split_once(" = ").unwrap();
        assert!(!name.contains(' '), "{line}");
        let value = (name.to_owned(), number_after(output, " = ").unwrap());
        match rows.last_mut() {
            Some(row) if row.0 == iteration => row.2.push(value),
            _ => rows.push((iteration, rate, vec![value])),
        }
    }
    if rows.len() > 1 {
        rows[0].1 = rows[1].1;
    }
    rows
}

/// Returns the columns of the test table of `parse_log.sh`: iterations, seconds since the line
/// `Solving`, and the outputs 0 and 1.
fn shell_test_columns(log: &str) -> [Vec<f64>; 4] {
    let lines = |part: &str| -> Vec<_> { log.lines().filter(|line| line.contains(part)).collect() };
    let [start] = lines("] Solving ")[..] else { panic!("{log}") };
    let tests = lines("Testing net");
    let output = |number: usize| {
        lines(&format!("Test net output #{number}"))
            .into_iter()
            .map(|line| number_at(line, 11))
            .collect()
    };
    [
        tests.iter().map(|line| number_after(line, "Iteration ").unwrap()).collect(),
        tests.iter().map(|line| seconds(line) - seconds(start)).collect(),
        output(0),
        output(1),
    ]
}

/// Returns the columns of the training table of `parse_log.sh`: iterations, losses and learning
/// rates.
fn shell_train_columns(log: &str) -> [Vec<f64>; 3] {
    let lines = |part: &str| -> Vec<_> { log.lines().filter(|line| line.contains(part)).collect() };
    let losses = lines(", loss = ");
    [
        losses.iter().map(|line| number_after(line, "Iteration ").unwrap()).collect(),
        losses.iter().map(|line| line.split('=').nth(1).unwrap().trim().parse().unwrap()).collect(),
        lines(", lr = ").into_iter().map(|line| number_at(line, 9)).collect(),
    ]
}

/// Learning rates of the policy `inv` of `SOLVER`, with six significant digits.
const RATES: [f64; 4] = [0.01, 0.0099985, 0.009997, 0.0099955];

fn assert_scripts_read(log: &str) {
    let train = python_rows(log, "Train");
    let iterations: Vec<_> = train.iter().map(|(iteration, ..)| *iteration).collect();
    assert_eq!(iterations, [0.0, 2.0, 4.0, 6.0]);
    assert!(train.iter().all(|(.., outputs)| outputs.len() == 1 && outputs[0].0 == "loss"));
    // The log shows the rate after the outputs, so a row has the rate of the preceding iteration.
    let rates: Vec<_> = train.iter().map(|(_, rate, _)| *rate).collect();
    assert_eq!(rates, [RATES[0], RATES[0], RATES[1], RATES[2]]);

    let test = python_rows(log, "Test");
    let iterations: Vec<_> = test.iter().map(|(iteration, ..)| *iteration).collect();
    assert_eq!(iterations, [0.0, 4.0, 8.0]);
    for (.., outputs) in &test {
        let [(accuracy, share), (loss, value)] = &outputs[..] else { panic!("{outputs:?}") };
        assert_eq!([accuracy, loss], ["accuracy", "loss"]);
        assert!((0.0..=1.0).contains(share) && *value > 0.0, "{outputs:?}");
    }

    let [iterations, seconds, accuracies, losses] = shell_test_columns(log);
    assert_eq!(iterations, [0.0, 4.0, 8.0]);
    assert!(seconds.len() == 3 && seconds[0] >= 0.0 && seconds.is_sorted(), "{seconds:?}");
    let outputs =
        |index: usize| test.iter().map(|(.., outputs)| outputs[index].1).collect::<Vec<_>>();
    assert_eq!((accuracies, losses), (outputs(0), outputs(1)));

    let [iterations, losses, rates] = shell_train_columns(log);
    assert_eq!(iterations, [0.0, 2.0, 4.0, 6.0, 8.0]);
    assert_eq!(rates, RATES);
    let outputs = train.iter().map(|(.., outputs)| outputs[0].1);
    assert_eq!(losses[..4], outputs.collect::<Vec<_>>()); // average_loss is 1
}

#[test]
fn caffes_scripts_can_read_the_log_of_a_run() {
    let folder = Folder::new("caffe-logs");
    fs::create_dir(folder.path("logs")).unwrap();
    let args = "train -solver solver.prototxt -log_dir logs";
    let output = folder.command(args).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let log = String::from_utf8(output.stderr).unwrap();
    assert_scripts_read(&log);

    // After its header, the log file has the same lines as standard error.
    let logs = fs::read_dir(folder.path("logs")).unwrap();
    let is_file = |path: &std::path::PathBuf| !path.symlink_metadata().unwrap().is_symlink();
    let files: Vec<_> = logs.map(|entry| entry.unwrap().path()).filter(is_file).collect();
    let [file] = &files[..] else { panic!("{files:?}") };
    assert!(file.file_name().unwrap().to_str().unwrap().contains(".log.INFO."), "{file:?}");
    let text = fs::read_to_string(file).unwrap();
    assert_eq!(text.lines().skip(3).collect::<Vec<_>>(), log.lines().collect::<Vec<_>>());
    assert_scripts_read(&text);
}

/// A line of a higher severity is also in the files of all lower severities.
#[test]
#[cfg(unix)]
fn log_files_are_separated_by_severity() {
    let folder = Folder::new("caffe-log-files");
    folder.write("solver.prototxt", SOLVER.replace("max_iter: 8", "max_iter: 0"));
    let severities = ["INFO", "WARNING", "ERROR"];
    let lines = |severity: &str| {
        let text = fs::read_to_string(folder.path(&format!("cortado.{severity}")));
        text.unwrap_or_default()
            .lines()
            .skip(3)
            .map(|line| line[..1].to_owned())
            .collect::<String>()
    };
    folder.run("train -solver solver.prototxt -log_dir .").succeeded();
    let [info, warning, error] = severities.map(lines);
    assert!(info.contains('W') && info.contains('I') && !info.contains('E'), "{info}");
    assert_eq!((&*warning, &*error), ("W", ""));

    // The error that ends a run is in the log files, too.
    folder.run("train -solver gone.prototxt -log_dir .").failed_with(&["gone.prototxt"]);
    let [info, warning, error] = severities.map(lines);
    assert_eq!((&info[info.len() - 1..], &*warning, &*error), ("E", "E", "E"));

    folder
        .run("train -solver solver.prototxt -log_dir gone")
        .failed_with(&["cortado: --log_dir: gone/cortado.", "No such file"]);
}

/// glog reads environment variables as the defaults of its flags.
#[test]
fn environment_variables_set_the_defaults_of_the_log_flags() {
    let folder = Folder::new("caffe-log-variables");
    folder.write("solver.prototxt", SOLVER.replace("max_iter: 8", "max_iter: 0"));
    let logged = |variable: &str, value: &str, flags: &str| {
        let mut command: Command =
            folder.command(&format!("train -solver solver.prototxt {flags}"));
        let output = command.env(variable, value).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let log = String::from_utf8(output.stderr).unwrap();
        log.lines().map(|line| line[..1].to_owned()).collect::<String>()
    };
    let default_log = logged("GLOG_minloglevel", "0", "");
    assert!(default_log.contains('I') && default_log.contains('W'), "{default_log}");
    assert_eq!(logged("GLOG_minloglevel", "1", ""), "W");
    assert_eq!(logged("GLOG_minloglevel", "3", ""), "");
    assert_eq!(logged("GLOG_minloglevel", "2", "-minloglevel=0"), default_log);
    assert_eq!(logged("GLOG_stderrthreshold", "1", "-noalsologtostderr"), "W");
    assert_eq!(logged("GLOG_logtostderr", "1", "-noalsologtostderr"), default_log);
    assert!(logged("GLOG_v", "1", "").len() > default_log.len());
}
