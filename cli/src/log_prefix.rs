//! Prefix of log lines: severity, time, process and source line, in the format of glog.

use jiff::Zoned;
use log::Level;
use std::process;

/// Text before the message of a log line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Prefix {
    /// No text.
    None,
    /// The prefix of glog up to version 0.4, such as `I0131 23:59:59.123456  4321 file.rs:12] `.
    WithoutYear,
    /// The prefix of later versions of glog, such as
    /// `I20260131 23:59:59.123456  4321 file.rs:12] `.
    WithYear,
}

impl Prefix {
    /// Returns the prefix of a log line that is written now, at line `line` of the source file
    /// `path`.
    pub(super) fn text(self, level: Level, path: &str, line: u32) -> String {
        let format = match self {
            Self::None => return String::new(),
            Self::WithoutYear => "%m%d %H:%M:%S%.6f",
            Self::WithYear => "%Y%m%d %H:%M:%S%.6f",
        };
        let severity = match level {
            Level::Error => 'E',
            Level::Warn => 'W',
            _ => 'I',
        };
        let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
        // Where cortado writes the process id, glog writes the thread id, padded to five
        // characters.
        let (time, pid) = (Zoned::now().strftime(format), process::id());
        format!("{severity}{time} {pid:>5} {file}:{line}] ")
    }

    /// Returns the description of the format at the start of a log file, in glog's words.
    pub(super) fn description(self) -> &'static str {
        match self {
            Self::None => "msg",
            Self::WithoutYear => "[IWEF]mmdd hh:mm:ss.uuuuuu threadid file:line] msg",
            Self::WithYear => "[IWEF]yyyymmdd hh:mm:ss.uuuuuu threadid file:line] msg",
        }
    }
}
