//! Logger that writes to standard error in the format of Caffe's logs.

use super::progress::CLEAR_LINE;
use jiff::Zoned;
use log::{Level, LevelFilter, Log, Metadata, Record};
use std::{
    io::{self, IsTerminal, Write},
    process,
};

/// Logger of lines such as `I20260131 23:59:59.123456 4321 file.rs:12] message`.
struct Logger;

/// Installs the command's logger with the maximum level `level`, unless the process already has a
/// logger.
pub(super) fn install(level: LevelFilter) {
    if log::set_logger(&Logger).is_ok() {
        log::set_max_level(level);
    }
}

impl Log for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let severity = match record.level() {
            Level::Error => 'E',
            Level::Warn => 'W',
            _ => 'I',
        };
        let path = record.file().unwrap_or("cortado");
        let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
        let line = record.line().unwrap_or(0);
        let time = Zoned::now().strftime("%Y%m%d %H:%M:%S%.6f").to_string();
        let (pid, message) = (process::id(), record.args());
        let clear = if io::stderr().is_terminal() { CLEAR_LINE } else { "" };
        // Ignore the error of a failed write, because the log is the only place to report errors.
        let _ = writeln!(io::stderr(), "{clear}{severity}{time} {pid} {file}:{line}] {message}");
    }

    fn flush(&self) {}
}
