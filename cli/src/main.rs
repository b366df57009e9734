//! The `cortado` command, with Caffe's subcommands and flags.
//!
//! Each subcommand of the command has its own source file. The command writes results to standard
//! output. The command writes logs to standard error, as lines in Caffe's format, and to the files
//! of `--log_dir`. If standard error is a terminal, a progress line replaces the log lines. The
//! command prints an error as one line. The exit status is 1 if the subcommand failed and 2 if the
//! arguments were wrong.

mod byte_size;
mod classification;
mod classify;
mod compute_image_mean;
mod database_writer;
mod convert;
mod convert_cifar;
mod convert_imageset;
mod convert_mnist;
mod copy_args;
mod detect;
mod device_query;
mod draw;
mod export_onnx;
mod extract_features;
mod escape;
mod inspect;
mod caffe_log;
mod log_args;
mod log_prefix;
mod log_files;
mod logger;
mod failure_report;
mod format_g;
mod net_state_args;
mod output;
mod prefix_lock;
mod preprocessing_args;
mod device_args;
mod launch;
#[cfg(feature = "mpi")]
mod processes;
#[cfg(not(feature = "mpi"))]
#[path = "single_process.rs"]
mod processes;
mod progress;
mod resume_command;
mod run_log;
mod signals;
mod snapshot_keep;
mod caffe_flags;
mod caffe_tools;
mod suffix;
mod table;
mod terminal;
mod test;
mod time;
mod trace_args;
mod train;
mod upgrade_net;
mod upgrade_solver;

use clap::{ColorChoice, CommandFactory, FromArgMatches, Parser, error::ErrorKind};
use cortado::host::limit_simd;
use failure_report::report_failure;
use launch::Launch;
use log_args::LogArgs;
use std::{
    env,
    ffi::OsStr,
    io::{self, Write},
    path::Path,
    process::ExitCode,
};

/// Environment variable that limits the instruction sets of the host kernels.
const SIMD_ENV: &str = "CORTADO_SIMD";

/// Train, test, upgrade and inspect Caffe's models
#[derive(Parser)]
#[command(name = "cortado", version, propagate_version = true, arg_required_else_help = true)]
#[command(args_override_self = true)]
struct Command {
    #[command(subcommand)]
    subcommand: Subcommand,
    /// Log only warnings and errors
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Log more details, such as the construction of a net, and show no progress line
    #[arg(long, short, global = true)]
    verbose: bool,
    #[command(flatten)]
    log: LogArgs,
}

#[derive(clap::Subcommand)]
enum Subcommand {
    Train(train::Train),
    Test(test::Test),
    Classify(classify::Classify),
    Detect(detect::Detect),
    Classification(classification::Classification),
    Time(time::Time),
    Convert(convert::Convert),
    ConvertMnist(convert_mnist::ConvertMnist),
    ConvertCifar(convert_cifar::ConvertCifar),
    ConvertImageset(convert_imageset::ConvertImageset),
    ComputeImageMean(compute_image_mean::ComputeImageMean),
    ExtractFeatures(extract_features::ExtractFeatures),
    ExportOnnx(export_onnx::ExportOnnx),
    UpgradeNet(upgrade_net::UpgradeNet),
    UpgradeSolver(upgrade_solver::UpgradeSolver),
    Inspect(inspect::Inspect),
    Draw(draw::Draw),
    DeviceQuery(device_query::DeviceQuery),
}

impl Subcommand {
    /// Returns the rank of this process if the subcommand runs on several processes together.
    fn rank(&self) -> Option<usize> {
        let launch = Launch::detect()?;
        matches!(self, Self::Train(_) | Self::Time(_)).then_some(launch.rank)
    }
}

/// Parses the arguments of the process and runs the command.
fn main() -> ExitCode {
    let mut definition = Command::command();
    if terminal::is_dumb() {
        // Without this setting, clap would write colours even to a dumb terminal if the variable
        // `CI` is set.
        definition = definition.color(ColorChoice::Never);
    }
    let clap_args = match caffe_flags::rewrite(&definition, env::args_os()) {
        Ok(clap_args) => clap_args,
        Err(problem) => return report_invalid_args(&problem),
    };
    let matches = definition.try_get_matches_from_mut(clap_args.args);
    let command = match matches.and_then(|mut matches| {
        Command::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut definition))
    }) {
        Ok(command) => command,
        Err(error) if error.kind() == ErrorKind::ValueValidation => {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            return report_invalid_args(line.strip_prefix("error: ").unwrap_or(line));
        }
        Err(error) => error.exit(),
    };
    let Command { subcommand, quiet, verbose, log } = command;
    let rank = subcommand.rank();
    match log.options(quiet, verbose, &program_name(), rank) {
        Ok(options) => logger::install(options),
        Err(error) => return report_failure(&error),
    }
    // The command reports an unknown name as an error. The library, which reads the variable at the
    // first kernel, only logs a warning, because kernels cannot return this error.
    if let Some(limit) = env::var_os(SIMD_ENV)
        && let Err(error) = limit_simd(&limit.to_string_lossy())
    {
        return report_failure(&error.context(SIMD_ENV));
    }
    for flag in clap_args.unused_flags {
        log::warn!("{flag}: ignored, because the subcommand does not use it");
    }
    let outcome = match subcommand {
        Subcommand::Train(train) => train.run(),
        Subcommand::Test(test) => test.run(),
        Subcommand::Classify(classify) => classify.run(),
        Subcommand::Detect(detect) => detect.run(),
        Subcommand::Classification(classification) => classification.run(),
        Subcommand::Time(time) => time.run(),
        Subcommand::Convert(convert) => convert.run(),
        Subcommand::ConvertMnist(convert) => convert.run(),
        Subcommand::ConvertCifar(convert) => convert.run(),
        Subcommand::ConvertImageset(convert) => convert.run(),
        Subcommand::ComputeImageMean(mean) => mean.run(),
        Subcommand::ExtractFeatures(extract) => extract.run(),
        Subcommand::ExportOnnx(export) => export.run(),
        Subcommand::UpgradeNet(upgrade) => upgrade.run(),
        Subcommand::UpgradeSolver(upgrade) => upgrade.run(),
        Subcommand::Inspect(inspect) => inspect.run(),
        Subcommand::Draw(draw) => draw.run(),
        Subcommand::DeviceQuery(query) => query.run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report_failure(&error),
    }
}

/// Returns the file name of the program, from the path in `argv[0]`.
fn program_name() -> String {
    let program = env::args_os().next().unwrap_or_default();
    let file = Path::new(&program).file_name();
    file.map_or("cortado".into(), OsStr::to_string_lossy).into_owned()
}

/// Prints a message about invalid arguments as one line, without the usage text.
fn report_invalid_args(problem: &str) -> ExitCode {
    let _ = writeln!(io::stderr(), "cortado: {problem}; see --help");
    ExitCode::from(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clap_accepts_the_argument_definitions() {
        Command::command().debug_assert();
    }

    #[test]
    fn clap_parses_the_example_in_the_help_of_each_subcommand() {
        for subcommand in Command::command().get_subcommands() {
            let name = subcommand.get_name();
            let help = subcommand.get_after_help().map(ToString::to_string).unwrap_or_default();
            let example =
                help.strip_prefix("Example: ").unwrap_or_else(|| panic!("{name}: {help}"));
            assert!(example.starts_with(&format!("cortado {name}")), "{example}");
            let args = example.split_whitespace().map(Into::into);
            let args = caffe_flags::rewrite(&Command::command(), args).unwrap().args;
            let parsed = Command::try_parse_from(args);
            parsed.map(drop).unwrap_or_else(|error| panic!("{example}: {error}"));
        }
    }
}
