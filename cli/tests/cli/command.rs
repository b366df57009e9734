//! Test helpers that run the command `cortado` in a separate folder for each test.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// Solver definition with eight iterations.
pub(crate) const SOLVER: &str = r#"net: "net.prototxt"
test_iter: 2
test_interval: 4
base_lr: 0.01
momentum: 0.9
weight_decay: 0.0005
lr_policy: "inv"
gamma: 0.0001
power: 0.75
display: 2
max_iter: 8
snapshot: 4
snapshot_prefix: "lenet"
random_seed: 7
"#;

/// Definition of a net that has one fully connected layer and reads small batches of synthetic
/// digits.
pub(crate) const NET: &str = r#"name: "LeNet"
layer {
  name: "data"
  type: "Data"
  top: "data"
  top: "label"
  transform_param { scale: 0.00390625 }
  data_param { source: "digits:train?count=200&seed=1" batch_size: 8 }
}
layer {
  name: "ip"
  type: "InnerProduct"
  bottom: "data"
  top: "ip"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } }
}
layer {
  name: "accuracy"
  type: "Accuracy"
  bottom: "ip"
  bottom: "label"
  top: "accuracy"
  include { phase: TEST }
}
layer {
  name: "loss"
  type: "SoftmaxWithLoss"
  bottom: "ip"
  bottom: "label"
  top: "loss"
}
"#;

/// Working directory in which a test runs the command `cortado`.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Creates the folder `name`, which contains only `solver.prototxt` and `net.prototxt`.
    pub(crate) fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cli").join(name);
        if path.exists() {
            fs::remove_dir_all(&path).unwrap();
        }
        fs::create_dir_all(&path).unwrap();
        let folder = Self(path);
        folder.write("solver.prototxt", SOLVER);
        folder.write("net.prototxt", NET);
        folder
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }

    pub(crate) fn write(&self, file: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(file), content).unwrap();
    }

    /// Replaces `from` by `to` in `text` and writes the result to a file. Panics if `text` does not
    /// contain `from`.
    pub(crate) fn write_replaced(&self, file: &str, text: &str, from: &str, to: &str) {
        assert!(text.contains(from), "{from}");
        self.write(file, text.replace(from, to));
    }

    pub(crate) fn read(&self, file: &str) -> Vec<u8> {
        fs::read(self.path(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    }

    /// Returns the names of the folder's files that end with `suffix`, in ascending order.
    pub(crate) fn files(&self, suffix: &str) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| name.ends_with(suffix)).collect();
        names.sort();
        names
    }

    pub(crate) fn command(&self, args: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cortado"));
        // Hide the machine's GPUs, so that test results do not depend on the machine.
        command.env("CORTADO_LIBCUDA", "/nowhere/libcuda.so.1");
        command.args(args.split_whitespace()).current_dir(&self.0);
        command
    }

    pub(crate) fn run(&self, args: &str) -> RunResult {
        RunResult::new(args, self.command(args).output().unwrap())
    }
}

/// Exit status and output of a finished `cortado` process.
#[derive(Debug)]
pub(crate) struct RunResult {
    pub(crate) args: String,
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    /// Messages of the log lines, without the prefix that ends in `file:line]`.
    pub(crate) log: Vec<String>,
    /// Lines on standard error that are not log lines.
    pub(crate) err: Vec<String>,
}

impl RunResult {
    pub(crate) fn new(args: &str, output: Output) -> Self {
        let out = String::from_utf8(output.stdout).unwrap();
        let (mut log, mut err) = (Vec::new(), Vec::new());
        for line in String::from_utf8(output.stderr).unwrap().lines() {
            match message(line) {
                Some(message) => log.push(message.to_owned()),
                None => err.push(line.to_owned()),
            }
        }
        Self { args: args.to_owned(), code: output.status.code(), out, log, err }
    }

    pub(crate) fn succeeded(self) -> Self {
        assert_eq!((self.code, &self.err[..]), (Some(0), &[][..]), "{self:#?}");
        self
    }

    /// Asserts that the command failed with a one-line error that contains all `parts`.
    pub(crate) fn failed_with(&self, parts: &[&str]) {
        assert_eq!((self.code, self.err.len()), (Some(1), 1), "{self:#?}");
        self.assert_error_contains(parts);
    }

    /// Asserts that the command rejected its arguments, with an error that contains all `parts`.
    pub(crate) fn refused_with(&self, parts: &[&str]) {
        assert_eq!(self.code, Some(2), "{self:#?}");
        self.assert_error_contains(parts);
    }

    fn assert_error_contains(&self, parts: &[&str]) {
        let err = self.err.join("\n");
        assert!(!err.contains("panicked"), "{self:#?}");
        for part in parts {
            assert!(
                err.contains(part),
                "`{}`: the error does not contain `{part}`: {err}",
                self.args
            );
        }
    }
}

/// Returns the message of a log line such as `I0131 23:59:59.123456  4321 file.rs:12] message`,
/// and `None` for other lines.
pub(crate) fn message(line: &str) -> Option<&str> {
    let (head, message) = line.split_once("] ")?;
    let [date, time, pid, location] = head.split_whitespace().collect::<Vec<_>>()[..] else {
        return None;
    };
    let digits = |text: &str| text.bytes().map(|byte| byte.is_ascii_digit()).collect::<Vec<_>>();
    let time_pattern = digits("00:00:00.000000");
    let (file, number) = location.rsplit_once(':')?;
    let is_log_line = date.starts_with(['I', 'W', 'E', 'F'])
        && digits(&date[1..]) == [true; 4]
        && digits(time) == time_pattern
        && pid.parse::<u32>().is_ok()
        && !file.is_empty()
        && number.parse::<u32>().is_ok();
    is_log_line.then_some(message)
}

/// Replaces each number in a log message by `N`.
pub(crate) fn shape(message: &str) -> String {
    let mut shape = String::new();
    let mut rest = message;
    while let Some(next) = rest.chars().next() {
        let digits = rest.strip_prefix('-').unwrap_or(rest);
        if digits.starts_with(|next: char| next.is_ascii_digit()) {
            let is_number_char = |next: char| next.is_ascii_digit() || "-+.e".contains(next);
            let number = digits.trim_start_matches(is_number_char);
            let token = &rest[..rest.len() - number.len()];
            // A dot after the last digit starts a file extension and is not part of the number.
            rest = if token.ends_with('.') { &rest[token.len() - 1..] } else { number };
            shape.push('N');
        } else {
            shape.push(next);
            rest = &rest[next.len_utf8()..];
        }
    }
    shape
}
