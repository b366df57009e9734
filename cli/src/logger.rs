//! Logger that writes to standard error and to log files, in the format of Caffe's logs.

use super::{
    caffe_log, escape::escape_control, log_files::LogFiles, log_prefix::Prefix,
    progress::CLEAR_LINE, terminal,
};
use log::{Level, LevelFilter, Log, Metadata, Record};
use std::{
    io::{self, Write},
    sync::OnceLock,
};

/// Destinations, levels and format of the log.
pub(super) struct LogOptions {
    /// Maximum level of the lines that are logged.
    pub(super) level: LevelFilter,
    /// Maximum level of the lines that are written to standard error.
    pub(super) stderr_level: LevelFilter,
    /// Whether a progress line on standard error replaces the log lines of a solver's events.
    pub(super) progress_line: bool,
    pub(super) prefix: Prefix,
    pub(super) files: Option<LogFiles>,
    /// Rank of this process, if it is not the first of a run with several processes.
    pub(super) rank: Option<usize>,
}

static LOGGER: OnceLock<LogOptions> = OnceLock::new();

/// Installs the command's logger, unless the process already has a logger.
pub(super) fn install(options: LogOptions) {
    let options = LOGGER.get_or_init(|| options);
    if log::set_logger(options).is_ok() {
        log::set_max_level(options.level);
    }
}

/// Returns whether a progress line on standard error replaces the log lines of a solver's events.
pub(super) fn shows_progress_line() -> bool {
    LOGGER.get().is_some_and(|options| options.progress_line)
}

/// Writes an error to the log files only. The caller prints the error on standard error, without
/// the log prefix.
pub(super) fn log_to_files(message: &str) {
    let Some(LogOptions { level, prefix, files: Some(files), .. }) = LOGGER.get() else { return };
    if *level >= Level::Error {
        let prefix = prefix.text(Level::Error, file!(), line!());
        files.write(Level::Error, &format!("{prefix}{message}"));
    }
}

impl LogOptions {
    fn writes_to_stderr(&self, metadata: &Metadata<'_>) -> bool {
        let is_replaced = self.progress_line && metadata.target() == caffe_log::TARGET;
        metadata.level() <= self.stderr_level && !is_replaced
    }
}

impl Log for LogOptions {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= self.level && (self.files.is_some() || self.writes_to_stderr(metadata))
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let (level, file) = (record.level(), record.file().unwrap_or("cortado"));
        let prefix = self.prefix.text(level, file, record.line().unwrap_or(0));
        let process = self.rank.map_or(String::new(), |rank| format!("process {rank}: "));
        let line = format!("{prefix}{process}{}", escape_control(&record.args().to_string()));
        if self.writes_to_stderr(record.metadata()) {
            let clear = if terminal::can_redraw() { CLEAR_LINE } else { "" };
            // Ignore the error of a failed write, because the log is the only place to report
            // errors.
            let _ = writeln!(io::stderr(), "{clear}{line}");
        }
        if let Some(files) = &self.files {
            files.write(level, &line);
        }
    }

    fn flush(&self) {}
}
