//! Command-line flags for logging, named like glog's flags.

use super::{
    caffe_flags::parse_bool, log_files::LogFiles, log_prefix::Prefix, logger::LogOptions, terminal,
};
use clap::Args;
use cortado::error::Result;
use log::LevelFilter;
use std::path::PathBuf;

/// Heading of the logging flags in the help of a subcommand.
const HEADING: &str = "Log options, as in glog";

/// Logging flags. The environment variable `GLOG_x` sets the default of the flag `x`, except for
/// `--alsologtostderr`.
#[derive(Args)]
#[command(next_help_heading = HEADING)]
pub(super) struct LogArgs {
    /// Write the log only to standard error, even if --log-dir is given
    #[arg(long, global = true, hide_short_help = true, env = "GLOG_logtostderr")]
    #[arg(value_parser = parse_bool, hide_env_values = true)]
    logtostderr: bool,
    /// Write all log lines to standard error in addition to the files in --log-dir, and show no
    /// progress line. Default: true, except that a progress line replaces log lines at a terminal.
    /// If false, only messages at or above the severity that --stderrthreshold sets go to standard
    /// error
    #[arg(long, global = true, hide_short_help = true, value_name = "BOOL")]
    #[arg(value_parser = parse_bool, num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "true")]
    alsologtostderr: Option<bool>,
    /// Lowest severity that is written to standard error if --alsologtostderr=false: 0 (info), 1
    /// (warning), 2 (error) or 3 (nothing)
    #[arg(long, global = true, hide_short_help = true, value_name = "N", default_value_t = 2)]
    #[arg(env = "GLOG_stderrthreshold", hide_env_values = true, allow_negative_numbers = true)]
    stderrthreshold: i32,
    /// Lowest severity that is logged: 0 (info), 1 (warning), 2 (error) or 3 (nothing)
    #[arg(long, global = true, hide_short_help = true, value_name = "N", default_value_t = 0)]
    #[arg(env = "GLOG_minloglevel", hide_env_values = true, allow_negative_numbers = true)]
    minloglevel: i32,
    /// Existing folder for log files: a file per severity, and a link to the latest file, such as
    /// caffe.INFO. Without this flag, cortado writes no log files
    #[arg(long, global = true, hide_short_help = true, value_name = "DIR")]
    #[arg(env = "GLOG_log_dir", hide_env_values = true)]
    log_dir: Option<PathBuf>,
    /// Verbosity; a value above 0 has the effect of --verbose
    #[arg(long, global = true, hide_short_help = true, value_name = "N", default_value_t = 0)]
    #[arg(env = "GLOG_v", hide_env_values = true, allow_negative_numbers = true)]
    v: i32,
    /// Start each log line with its severity, time, process and source line; default: true
    #[arg(long, global = true, hide_short_help = true, value_name = "BOOL")]
    #[arg(value_parser = parse_bool, num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "true", env = "GLOG_log_prefix", hide_env_values = true)]
    log_prefix: Option<bool>,
    /// Write the year in the date of each log line, like glog 0.5 and later; Caffe's scripts
    /// expect dates without a year
    #[arg(long, global = true, hide_short_help = true, env = "GLOG_log_year_in_prefix")]
    #[arg(value_parser = parse_bool, hide_env_values = true)]
    log_year_in_prefix: bool,
}

impl LogArgs {
    /// Returns the options of the logger, and creates the first log file if the flags request log
    /// files. `program` is the program name in the names of the files. `rank` is the rank of this
    /// process in a run with several processes. Processes except the first log only warnings and
    /// errors, and only to standard error.
    ///
    /// # Errors
    /// Fails if the log file cannot be created.
    pub(super) fn options(
        &self,
        quiet: bool,
        verbose: bool,
        program: &str,
        rank: Option<usize>,
    ) -> Result<LogOptions> {
        let rank = rank.filter(|rank| *rank > 0);
        let level = match (quiet || rank.is_some(), verbose || self.v > 0) {
            (true, _) => LevelFilter::Warn,
            (_, true) => LevelFilter::Debug,
            _ => LevelFilter::Info,
        };
        let level = level.min(from_severity(self.minloglevel));
        let is_stderr_requested = self.logtostderr || self.alsologtostderr == Some(true);
        let stderr_level = match self.alsologtostderr {
            Some(false) if !self.logtostderr => from_severity(self.stderrthreshold),
            _ => LevelFilter::Trace,
        };
        let prefix = match self.log_prefix {
            Some(false) => Prefix::None,
            _ if self.log_year_in_prefix => Prefix::WithYear,
            _ => Prefix::WithoutYear,
        };
        let folder = self.log_dir.as_ref().filter(|_| !self.logtostderr && rank.is_none());
        let files = folder.map(|folder| LogFiles::create(folder, program, level, prefix));
        Ok(LogOptions {
            level,
            stderr_level,
            progress_line: terminal::can_redraw()
                && level == LevelFilter::Info
                && stderr_level == LevelFilter::Trace
                && !is_stderr_requested,
            prefix,
            files: files.transpose()?,
            rank,
        })
    }
}

/// Returns the filter that passes log lines with the glog severity `severity` or higher. The `log`
/// crate has no level for severity 3, FATAL, at which glog ends the process.
fn from_severity(severity: i32) -> LevelFilter {
    match severity {
        ..=0 => LevelFilter::Trace,
        1 => LevelFilter::Warn,
        2 => LevelFilter::Error,
        3.. => LevelFilter::Off,
    }
}
