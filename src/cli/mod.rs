//! The `cortado` command: Caffe's verbs and flags.
//!
//! A verb is a file. Results go to standard output, what happens on the way to standard error:
//! log lines in Caffe's format, or a progress line where a person watches a terminal. Any error is
//! one line and a non-zero exit status: 1 if the work failed, 2 if the command was wrong.

mod classify;
mod compute_image_mean;
mod database_writer;
mod convert_imageset;
mod convert_mnist;
mod definition;
mod device_query;
mod draw;
mod extract_features;
mod inspect;
mod caffe_log;
mod logger;
mod format_g;
mod net_state_args;
mod device_args;
mod progress;
mod run_log;
mod signals;
mod caffe_flags;
mod svg;
mod table;
mod test;
mod time;
mod train;
mod upgrade_net;
mod upgrade_solver;

use crate::error::{Error, Result};
use clap::{Parser, Subcommand, error::ErrorKind};
use log::LevelFilter;
use std::{
    env,
    io::{self, Write},
    process::ExitCode,
};

/// Trains, tests, upgrades and inspects Caffe's models.
#[derive(Parser)]
#[command(name = "cortado", version, arg_required_else_help = true)]
struct Command {
    #[command(subcommand)]
    verb: Verb,
    /// Tells of warnings and errors only
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Tells more, such as how a net is built; at a terminal, too, as a log
    #[arg(long, short, global = true)]
    verbose: bool,
}

#[derive(Subcommand)]
enum Verb {
    Train(train::Train),
    Test(test::Test),
    Classify(classify::Classify),
    Time(time::Time),
    ConvertMnist(convert_mnist::ConvertMnist),
    ConvertImageset(convert_imageset::ConvertImageset),
    ComputeImageMean(compute_image_mean::ComputeImageMean),
    ExtractFeatures(extract_features::ExtractFeatures),
    UpgradeNet(upgrade_net::UpgradeNet),
    UpgradeSolver(upgrade_solver::UpgradeSolver),
    Inspect(inspect::Inspect),
    Draw(draw::Draw),
    DeviceQuery(device_query::DeviceQuery),
}

/// Runs the command that the process's arguments give.
pub fn main() -> ExitCode {
    let command = match Command::try_parse_from(caffe_flags::normalize_args(env::args_os())) {
        Ok(command) => command,
        Err(error) if error.kind() == ErrorKind::ValueValidation => return refused(&error),
        Err(error) => error.exit(),
    };
    logger::install(match (command.quiet, command.verbose) {
        (true, _) => LevelFilter::Warn,
        (_, true) => LevelFilter::Debug,
        _ => LevelFilter::Info,
    });
    let done = match command.verb {
        Verb::Train(train) => train.run(),
        Verb::Test(test) => test.run(),
        Verb::Classify(classify) => classify.run(),
        Verb::Time(time) => time.run(),
        Verb::ConvertMnist(convert) => convert.run(),
        Verb::ConvertImageset(convert) => convert.run(),
        Verb::ComputeImageMean(mean) => mean.run(),
        Verb::ExtractFeatures(extract) => extract.run(),
        Verb::UpgradeNet(upgrade) => upgrade.run(),
        Verb::UpgradeSolver(upgrade) => upgrade.run(),
        Verb::Inspect(inspect) => inspect.run(),
        Verb::Draw(draw) => draw.run(),
        Verb::DeviceQuery(query) => query.run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // An error that cannot be written has the exit status left.
            let _ = writeln!(io::stderr(), "cortado: {error}{}", looked_for(&error));
            ExitCode::FAILURE
        }
    }
}

/// Tells in one line which value cannot be; more would hide it.
fn refused(error: &clap::Error) -> ExitCode {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    let line = line.strip_prefix("error: ").unwrap_or(line);
    let _ = writeln!(io::stderr(), "cortado: {line}; --help tells what can be");
    ExitCode::from(2)
}

/// Where a file is not: the folder is wrong as often as the name.
fn looked_for(error: &Error) -> String {
    match (error.root(), env::current_dir()) {
        (Error::Io { path, source }, Ok(folder))
            if source.kind() == io::ErrorKind::NotFound && path.is_relative() =>
        {
            format!("; the current folder is {}", folder.display())
        }
        _ => String::new(),
    }
}

/// Writes to standard output.
fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    printed.map_err(|error| Error::io("standard output", error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn arguments_are_consistent() {
        Command::command().debug_assert();
    }

    #[test]
    fn every_verb_shows_an_example_that_is_one() {
        for verb in Command::command().get_subcommands() {
            let name = verb.get_name();
            let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            let example =
                help.strip_prefix("Example: ").unwrap_or_else(|| panic!("{name}: {help}"));
            assert!(example.starts_with(&format!("cortado {name}")), "{example}");
            let args = example.split_whitespace().map(Into::into);
            let parsed = Command::try_parse_from(caffe_flags::normalize_args(args));
            parsed.map(drop).unwrap_or_else(|error| panic!("{example}: {error}"));
        }
    }
}
