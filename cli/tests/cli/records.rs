//! Tests of the JSON Lines log, the plot and the progress line of a training run.

use crate::command::{Folder, NET, SOLVER};
use serde_json::{Value, json};
use std::process::Command;

fn lines(folder: &Folder, file: &str) -> Vec<Value> {
    let text = String::from_utf8(folder.read(file)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the values of the member `member` in all JSON objects of one kind of event.
fn members(lines: &[Value], event: &str, member: &str) -> Vec<Value> {
    let events = lines.iter().filter(|line| line["event"] == event);
    events.map(|line| line[member].clone()).collect()
}

/// Returns the numbers that follow the text `before` in log lines.
fn logged(log: &[String], before: &str) -> Vec<f64> {
    let rests = log.iter().filter_map(|line| line.split_once(before));
    rests.map(|(_, rest)| rest.split(' ').next().unwrap().parse().unwrap()).collect()
}

/// Asserts that recorded and logged numbers agree to six significant digits, the precision of the
/// log.
fn assert_agree(recorded: &[Value], logged: &[f64]) {
    assert_eq!(recorded.len(), logged.len());
    for (recorded, logged) in recorded.iter().zip(logged) {
        let recorded = recorded.as_f64().unwrap();
        assert!((recorded - logged).abs() <= 1e-5 * logged.abs(), "{recorded} {logged}");
    }
}

#[test]
fn json_lines_agree_with_the_log() {
    let folder = Folder::new("json");
    let train = "train --solver solver.prototxt --log_json run.jsonl";
    let result = folder.run(train).succeeded();
    let run = lines(&folder, "run.jsonl");
    let start = json!({
        "event": "start", "net": "LeNet", "policy": "inv", "iteration": 0, "end": 8,
        "seconds": run[0]["seconds"],
    });
    assert_eq!(run[0], start);
    assert_eq!(members(&run, "display", "iteration"), [0, 2, 4, 6].map(Value::from));
    assert_agree(&members(&run, "display", "rate"), &logged(&result.log, "lr = "));
    let losses = logged(&result.log, "iters), loss = ");
    assert_agree(&members(&run, "display", "loss"), &losses);
    let outputs = members(&run, "display", "outputs");
    assert_agree(&outputs.iter().map(|o| o["loss"].clone()).collect::<Vec<_>>(), &losses);
    let speeds = members(&run, "display", "iterations_per_second");
    assert!(speeds[1..].iter().all(|speed| speed.as_f64().unwrap() > 0.0), "{speeds:?}");
    let waited = members(&run, "display", "waited");
    assert!(waited.iter().all(|waited| waited.as_f64() >= Some(0.0)), "{waited:?}");

    assert_eq!(members(&run, "test", "iteration"), [0, 4, 8].map(Value::from));
    assert_eq!(members(&run, "test", "net"), [0, 0, 0].map(Value::from));
    for (number, name) in ["accuracy", "loss"].iter().enumerate() {
        let outputs = members(&run, "test", "outputs");
        let values: Vec<_> = outputs.iter().map(|outputs| outputs[name].clone()).collect();
        assert_agree(
            &values,
            &logged(&result.log, &format!("Test net output #{number}: {name} = ")),
        );
    }
    assert_eq!(members(&run, "snapshot", "iteration"), [4, 8].map(Value::from));
    assert_eq!(members(&run, "snapshot", "state")[1], "lenet_iter_8.solverstate");
    let end = run.last().unwrap();
    assert_eq!(
        (&end["event"], &end["iteration"], &end["early"]),
        (&"end".into(), &8.into(), &false.into())
    );
    let seconds: Vec<_> = run.iter().map(|line| line["seconds"].as_f64().unwrap()).collect();
    assert!(seconds.is_sorted() && seconds[0] >= 0.0);

    // A resumed run appends to the JSON Lines log, even if the log's last line has no newline. A
    // new training run replaces the JSON Lines log of an earlier run.
    let truncated_log = [&folder.read("run.jsonl")[..], b"{}"].concat();
    folder.write("run.jsonl", truncated_log);
    folder.run(&format!("{train} --snapshot lenet_iter_4.solverstate")).succeeded();
    let all_lines = lines(&folder, "run.jsonl");
    assert_eq!(all_lines[..run.len()], run);
    let rest = &all_lines[run.len() + 1..];
    assert_eq!((&rest[0]["event"], &rest[0]["iteration"]), (&"start".into(), &4.into()));
    assert_eq!(members(rest, "display", "iteration"), [4, 6].map(Value::from));
    folder.run(train).succeeded();
    assert_eq!(lines(&folder, "run.jsonl").len(), run.len());
}

#[test]
fn outputs_with_several_elements_are_json_arrays() {
    let folder = Folder::new("json-arrays");
    let per_class = NET.replace("top: \"accuracy\"", "top: \"accuracy\" top: \"classes\"");
    folder.write("net.prototxt", per_class);
    folder.run("train --solver solver.prototxt --log-json run.jsonl").succeeded();
    let outputs = members(&lines(&folder, "run.jsonl"), "test", "outputs");
    assert_eq!(outputs[0]["classes"].as_array().unwrap().len(), 10);
    assert!(outputs[0]["accuracy"].is_number());
}

/// Returns the names and points of the curves stored in a plot.
fn curves(folder: &Folder, file: &str) -> Vec<(String, Vec<[f64; 2]>)> {
    let svg = String::from_utf8(folder.read(file)).unwrap();
    let data = svg.split("<metadata>").nth(1).unwrap().split("</metadata>").next().unwrap();
    let data: Value = serde_json::from_str(data).unwrap();
    let panels = ["losses", "scores"].map(|panel| data[panel].as_array().unwrap().clone());
    let curve = |curve: &Value| {
        let points = serde_json::from_value(curve["points"].clone()).unwrap();
        (curve["name"].as_str().unwrap().to_owned(), points)
    };
    panels.concat().iter().map(curve).collect()
}

#[test]
fn a_resumed_run_continues_the_plot() {
    let folder = Folder::new("plot");
    // Each batch contains all records, so the curves do not depend on where a run resumes.
    let net = NET.replace("count=200", "count=8").replace("\"LeNet\"", "\"<LeNet> & co\"");
    folder.write("net.prototxt", net);
    let result = folder.run("train --solver solver.prototxt --plot whole.svg").succeeded();
    let uninterrupted_curves = curves(&folder, "whole.svg");
    let names: Vec<_> = uninterrupted_curves.iter().map(|(name, _)| &name[..]).collect();
    assert_eq!(names, ["test loss", "train loss", "test accuracy"]);
    let iterations = |curve: usize| {
        uninterrupted_curves[curve].1.iter().map(|point| point[0]).collect::<Vec<_>>()
    };
    assert_eq!(iterations(0), [0.0, 4.0, 8.0]);
    assert_eq!(iterations(1), [0.0, 2.0, 4.0, 6.0, 8.0]);
    let losses: Vec<_> =
        uninterrupted_curves[1].1[..4].iter().map(|point| point[1].into()).collect();
    assert_agree(&losses, &logged(&result.log, "iters), loss = "));

    let svg = String::from_utf8(folder.read("whole.svg")).unwrap();
    // The first color is that of the first curve of each of the two charts.
    let lines = |color: &str| {
        let is_line = |tag: &&str| tag.starts_with("polyline ") && tag.contains(color);
        svg.split('<').filter(is_line).count()
    };
    assert_eq!([lines("stroke=\"#1F5FBF\""), lines("stroke=\"#B3261E\"")], [2, 1]);
    let labels = ["\nloss\n", "\niteration\n", "\n6\n"];
    for part in [">&lt;LeNet&gt; &amp; co<", ">test accuracy "].into_iter().chain(labels) {
        assert!(svg.contains(part), "{part}: {svg}");
    }
    let coordinates = svg.split("points=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
    let is_in_plot = |number: &str| (0.0..1000.0).contains(&number.parse::<f64>().unwrap());
    assert!(
        coordinates.flat_map(|points| points.trim().split([' ', ','])).all(is_in_plot),
        "{svg}"
    );

    // An interrupted and resumed training run ends with the same curves as an uninterrupted run.
    folder.write_replaced("half.prototxt", SOLVER, "max_iter: 8", "max_iter: 4");
    folder.run("train --solver half.prototxt --plot parts.svg").succeeded();
    assert_eq!(curves(&folder, "parts.svg")[0].1.len(), 2);
    let resume = "train --solver solver.prototxt --snapshot lenet_iter_4.solverstate --plot";
    folder.run(&format!("{resume} parts.svg")).succeeded();
    assert_eq!(curves(&folder, "parts.svg"), uninterrupted_curves);

    folder.write("other.svg", "<svg/>");
    folder.run(&format!("{resume} other.svg")).failed_with(&["other.svg: contains no curves"]);
    assert_eq!(folder.read("other.svg"), b"<svg/>");
}

/// Without `display` in the solver definition, the plot shows the objective at every iteration.
#[test]
fn a_plot_needs_neither_displays_nor_tests() {
    let folder = Folder::new("plot-bare");
    let solver = SOLVER.replace("display: 2", "").replace("test_iter: 2\ntest_interval: 4\n", "");
    folder.write("solver.prototxt", solver);
    folder.run("train --solver solver.prototxt --plot run.svg").succeeded();
    let [(name, points)] = &curves(&folder, "run.svg")[..] else { panic!() };
    assert_eq!((&name[..], points.len()), ("train loss", 8));
}

#[test]
#[cfg(target_os = "linux")]
fn a_terminal_gets_a_progress_line() {
    if Command::new("script").arg("--version").output().is_err() {
        eprintln!("SKIPPED: `script` not found; needed to run the command in a terminal");
        return;
    }
    let folder = Folder::new("progress");
    // The training run lasts long enough for the progress line to be redrawn.
    let iterations = if cfg!(debug_assertions) { 2000 } else { 40_000 };
    let long_solver = SOLVER.replace("max_iter: 8", &format!("max_iter: {iterations}"));
    let long_solver = long_solver.replace("snapshot: 4", "");
    let test_interval = format!("test_interval: {}", iterations / 2);
    folder.write("longer.prototxt", long_solver.replace("test_interval: 4", &test_interval));
    let run = |solver: &str, flags: &str| {
        let binary = env!("CARGO_BIN_EXE_cortado");
        let train = format!("{binary} train --solver {solver}.prototxt {flags}");
        let mut script = Command::new("script");
        script.args(["-qec", &train, "/dev/null"]).current_dir(folder.path(""));
        let output = script.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let terminal_text = run("longer", "");
    let end = format!("/{iterations}  loss ");
    for part in ["training LeNet", "█", &end, "rate 0.0", " it/s  ", " left", "test net #0"] {
        assert!(terminal_text.contains(part), "{part}: {terminal_text}");
    }
    assert!(
        terminal_text.contains(&format!("done after {iterations} iterations"))
            && !terminal_text.contains("lr = "),
        "{terminal_text}"
    );
    assert_eq!(run("solver", "--quiet"), "");
    let log_text = run("solver", "-alsologtostderr");
    assert!(log_text.contains("lr = ") && !log_text.contains('█'), "{log_text}");
    // The log files contain the lines that the progress line replaces in the terminal.
    let terminal_text = run("solver", "-log_dir=.");
    assert!(
        terminal_text.contains("done after 8 iterations") && !terminal_text.contains("lr = "),
        "{terminal_text}"
    );
    let log = String::from_utf8(folder.read("cortado.INFO")).unwrap();
    assert_eq!(log.matches(", lr = ").count(), 4, "{log}");
    let verbose_text = run("solver", "--verbose");
    assert!(verbose_text.contains("lr = ") && !verbose_text.contains('█'));
}
