//! Runs of the command `cortado` on hostile files, with limits on memory and processor time.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};
use wait4::Wait4;

/// Limit on the resident memory of one run, in bytes.
const MAX_MEMORY: u64 = 64 << 20;
/// Limit on the processor time of one run. Unlike the elapsed time, the processor time does not
/// depend on other programs on the machine.
const MAX_TIME: Duration = Duration::from_secs(2);

/// Working directory of one test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile").join(name);
        if path.exists() {
            fs::remove_dir_all(&path).unwrap();
        }
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }

    pub(crate) fn write(&self, file: &str, content: impl AsRef<[u8]>) -> &Self {
        fs::write(self.path(file), content).unwrap();
        self
    }

    /// Asserts that the command fails within the limits, with a short error that contains all
    /// `parts`.
    pub(crate) fn fails(&self, args: &str, parts: &[&str]) {
        let (code, log) = self.run(args);
        assert_eq!(code, Some(1), "`{args}`: {log}");
        assert!(log.len() < 5000, "`{args}` prints {} bytes", log.len());
        let error = log.lines().last().unwrap_or_default();
        assert!(error.starts_with("cortado: "), "`{args}`: {log}");
        for part in parts {
            assert!(error.contains(part), "`{args}`: the error does not contain `{part}`: {error}");
        }
    }

    /// Runs the command and asserts that it stays within the limits. Returns the exit status and
    /// the content of standard error.
    pub(crate) fn run(&self, args: &str) -> (Option<i32>, String) {
        let log = self.path("stderr");
        let mut child = Command::new(env!("CARGO_BIN_EXE_cortado"))
            .args(args.split_whitespace())
            .current_dir(&self.0)
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let usage = child.wait4().unwrap();
        let text = String::from_utf8_lossy(&fs::read(log).unwrap()).into_owned();
        let (memory, time) = (usage.rusage.maxrss, usage.rusage.utime + usage.rusage.stime);
        println!("`{args}`: {} MiB, {time:?}", memory >> 20);
        assert!(memory <= MAX_MEMORY, "`{args}`: {} MiB of memory: {text}", memory >> 20);
        assert!(time <= MAX_TIME, "`{args}`: {time:?} of processor time: {text}");
        (usage.status.code(), text)
    }
}
