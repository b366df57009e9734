//! Tests of the command's output: progress line, escape sequences and colours in a terminal, and
//! standard output in place of a file.

use crate::command::{Folder, NET, SOLVER};
use cortado::proto::{self, LayerParameter, NetParameter};

/// A name with characters that a terminal would interpret: as written in text format, and as
/// printed.
const CONTROL_NAME: [&str; 2] = [r"a\033[31m\007\nb", r"a\u{1b}[31m\u{7}\nb"];

#[test]
fn names_from_files_are_escaped_in_all_output() {
    let folder = Folder::new("escapes");
    let [written_name, printed_name] = CONTROL_NAME;
    let quoted_name = format!("\"{written_name}\"");
    let net = NET.replace("\"LeNet\"", &quoted_name).replace("\"ip\"", &quoted_name);
    folder.write("net.prototxt", net.replace("\"accuracy\"", "\"\\033]0;title\\007\""));
    let is_safe = |text: &str| !text.chars().any(|c| c.is_control() && c != '\n');
    let run = |args: &str| {
        let result = folder.run(args);
        let all_text =
            [&result.log[..], &result.err[..], std::slice::from_ref(&result.out)].concat();
        assert!(all_text.iter().all(|text| is_safe(text)), "{result:#?}");
        (all_text.concat(), result)
    };
    for args in [
        "-v train --solver solver.prototxt",
        "test --model net.prototxt --weights lenet_iter_8.caffemodel --iterations 1",
        "time --model net.prototxt --iterations 1",
        "inspect net.prototxt",
        "inspect lenet_iter_8.caffemodel",
    ] {
        let (all_text, result) = run(args);
        assert_eq!(result.code, Some(0), "{result:#?}");
        assert!(all_text.contains(printed_name) || args.starts_with("test"), "{result:#?}");
    }
    run("draw net.prototxt -o -");
    run("train --solver solver.prototxt --plot run.svg");
    let plot = String::from_utf8(folder.read("run.svg")).unwrap();
    assert!(is_safe(&plot) && plot.contains(printed_name), "{plot}");
    let (_, json) = run("inspect lenet_iter_8.caffemodel --json");
    let report: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(report["fields"]["name"], "a\u{1b}[31m\u{7}\nb");

    // Errors have one line, even if a name has line breaks.
    folder.write("net.prototxt", net.replace("num_output: 10", "num_output: 0"));
    let (all_text, _) = run("time --model net.prototxt");
    assert!(all_text.contains(&format!("layer `{printed_name}`")), "{all_text}");
    folder.write(
        "net.prototxt",
        [b"layer { type: \"".as_slice(), &[0x9b, 0x1b, 0xff], b"\" }"].concat(),
    );
    run("time --model net.prototxt");
    folder.write("\u{1b}[2J", "");
    run("inspect \u{1b}[2J");

    // Characters between U+0080 and U+009F control terminals, too.
    let layer = LayerParameter { name: Some("\u{9b}2J".into()), ..Default::default() };
    let net = NetParameter { layer: vec![layer], ..Default::default() };
    proto::write_binary(folder.path("c1.caffemodel"), &net).unwrap();
    assert!(run("inspect c1.caffemodel").0.contains(r"\u{9b}2J"));
    let (_, json) = run("inspect c1.caffemodel --json");
    let report: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(report["layers"][0]["name"], "\u{9b}2J");
}

#[test]
fn a_dash_is_standard_output_and_suffixes_of_other_formats_are_refused() {
    let folder = Folder::new("draw-output");
    folder.run("draw net.prototxt -o net.SVG").succeeded();
    let out = folder.run("draw net.prototxt -o -").succeeded().out;
    assert_eq!(out.as_bytes(), folder.read("net.SVG"));
    assert!(!folder.path("-").exists());
    for (args, suffix) in [
        ("draw net.prototxt -o net.png", ".png"),
        ("draw net.prototxt -o net.dot", ".dot"),
        ("train --solver solver.prototxt --plot net.pdf", ".pdf"),
    ] {
        let reason = format!("net{suffix}: cannot write `{suffix}`, only SVG; use the suffix .svg");
        folder.run(args).failed_with(&[&reason]);
        assert!(!folder.path(&format!("net{suffix}")).exists());
    }
    folder.run("draw net.prototxt -o drawing").succeeded();
    let mean = folder.run("compute-image-mean digits:train?count=3 mean.npy");
    let reason = "mean.npy: cannot write `.npy`, only Caffe's binary format; use the suffix";
    mean.failed_with(&[reason, ".binaryproto"]);
    folder.run("compute-image-mean digits:train?count=3 mean.bin").succeeded();

    folder.write("log.json", "an earlier log");
    folder
        .run("train --solver solver.prototxt --log-json log.json --plot net.pdf")
        .failed_with(&[".pdf"]);
    assert_eq!(folder.read("log.json"), b"an earlier log");
    let plot = folder.run("train --solver solver.prototxt --plot -");
    plot.failed_with(&["--plot: cannot redraw the plot on standard output", "pass a file"]);
    let log = folder.run("train --solver solver.prototxt --log-json -").succeeded().out;
    let events: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events[0]["event"], "start", "{log}");
    assert_eq!(events.last().unwrap()["event"], "end", "{log}");
    assert!(!folder.path("-").exists());
}

#[cfg(unix)]
mod in_a_terminal {
    use super::*;
    use rustix::{
        pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
        termios::{Winsize, tcsetwinsize},
    };
    use std::{
        fs::{File, OpenOptions},
        io::Read,
        os::unix::ffi::OsStrExt,
        process::{Command, Stdio},
    };

    /// Runs `command` with a terminal of `columns` columns as standard error. Returns the text that
    /// the terminal receives.
    fn terminal_text(mut command: Command, columns: u16) -> String {
        let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&main).unwrap();
        unlockpt(&main).unwrap();
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&main, size).unwrap();
        let name = ptsname(&main, Vec::new()).unwrap();
        let path = std::ffi::OsStr::from_bytes(name.as_bytes());
        let terminal = OpenOptions::new().read(true).write(true).open(path).unwrap();
        let mut child = command.stdout(Stdio::null()).stderr(terminal).spawn().unwrap();
        drop(command); // closes this process's end of the terminal
        let (mut main, mut text) = (File::from(main), Vec::new());
        // On Linux, reading the terminal fails after the process has exited.
        let _ = main.read_to_end(&mut text);
        child.wait().unwrap();
        String::from_utf8(text).unwrap()
    }

    fn train_command(folder: &Folder, kind: &str) -> Command {
        let mut command = folder.command("train --solver solver.prototxt");
        command.env("TERM", kind).env_remove("NO_COLOR");
        command
    }

    /// Returns the texts that the terminal shows as its progress line.
    fn progress_lines(text: &str) -> Vec<&str> {
        let lines = text.split("\r\u{1b}[K");
        lines.filter(|line| !line.contains('\n') && !line.is_empty()).collect()
    }

    #[test]
    fn the_progress_line_fits_the_width_of_the_terminal() {
        let folder = Folder::new("terminal-width");
        for (columns, has_bar) in [(100, true), (40, true), (24, false), (10, false), (3, false)] {
            let text = terminal_text(train_command(&folder, "xterm"), columns);
            let lines = progress_lines(&text);
            assert!(lines.iter().any(|line| line.contains("0/")), "{columns}: {text:?}");
            for line in lines {
                assert!(line.chars().count() < usize::from(columns), "{columns}: {line:?}");
                assert_eq!(line.contains('░'), has_bar && line.contains("loss"), "{line:?}");
            }
            assert!(text.contains("wrote lenet_iter_8.caffemodel"), "{text:?}");
        }
    }

    #[test]
    fn a_dumb_terminal_gets_log_lines_without_escape_sequences() {
        let folder = Folder::new("terminal-dumb");
        let text = terminal_text(train_command(&folder, "dumb"), 80);
        assert!(text.contains("] Iteration 2, lr = ") && !text.contains('\u{1b}'), "{text:?}");
        let xterm_text = terminal_text(train_command(&folder, "xterm"), 80);
        assert!(
            !xterm_text.contains("] Iteration 2, lr = ") && xterm_text.contains('\u{1b}'),
            "{xterm_text:?}"
        );
        let usage = |kind: &str| {
            let mut command = folder.command("train");
            // If `CI` is set, clap would by default write colours to a terminal of any type.
            command.env("TERM", kind).env_remove("NO_COLOR").env("CI", "true");
            terminal_text(command, 80)
        };
        for (kind, has_escapes) in [("xterm", true), ("dumb", false)] {
            let text = usage(kind);
            assert!(text.contains("--solver"), "{kind}: {text:?}");
            assert_eq!(text.contains('\u{1b}'), has_escapes, "{kind}: {text:?}");
        }
    }

    #[test]
    fn no_color_removes_all_colours() {
        let folder = Folder::new("terminal-colour");
        let has_colours = |text: &str| {
            text.split("\u{1b}[").skip(1).any(|rest| {
                rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m')
            })
        };
        let mut usage = folder.command("train");
        usage.env("TERM", "xterm").env_remove("NO_COLOR");
        assert!(has_colours(&terminal_text(usage, 80)));
        for args in ["train", "--halp", "train --solver solver.prototxt", "time --model gone"] {
            let mut command = folder.command(args);
            command.env("TERM", "xterm").env("NO_COLOR", "1");
            let text = terminal_text(command, 80);
            assert!(!text.is_empty() && !has_colours(&text), "{args}: {text:?}");
        }
    }

    #[test]
    fn an_error_replaces_the_progress_line_of_a_conversion() {
        let folder = Folder::new("terminal-error");
        folder.write("list", "color.png 1\npalette.png 1\n");
        let images = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/images/");
        let mut command =
            folder.command(&format!("convert-imageset --encode_type jpg {images} list db"));
        command.env("TERM", "xterm");
        let text = terminal_text(command, 80);
        assert!(text.contains("\u{1b}[Kcortado: ") && text.contains("cannot encode"), "{text:?}");
    }

    #[test]
    fn names_in_the_progress_display_are_escaped() {
        let folder = Folder::new("terminal-escapes");
        let [written_name, printed_name] = CONTROL_NAME;
        let name = format!("\"{written_name}\"");
        folder
            .write("net.prototxt", NET.replace("\"LeNet\"", &name).replace("\"accuracy\"", &name));
        folder.write_replaced("solver.prototxt", SOLVER, "test_iter: 2", "test_iter: 1");
        let text = terminal_text(train_command(&folder, "xterm"), 80);
        assert!(text.contains(&format!("training {printed_name}")), "{text:?}");
        assert!(text.contains(&format!("test net #0: {printed_name} ")), "{text:?}");
        assert!(!text.contains("\u{1b}[31m") && !text.contains('\u{7}'), "{text:?}");
    }
}
