//! The `cortado` command: Caffe's verbs and flags.
//!
//! A verb is a file. Results go to standard output, what happens on the way to standard error:
//! log lines in Caffe's format, or a progress line where a person watches a terminal. Any error is
//! one line and a non-zero exit status: 1 if the work failed, 2 if the command was wrong.

mod draw;
mod inspect;
mod lines;
mod logger;
mod number;
mod progress;
mod table;
mod test;
mod time;
mod train;
mod upgrade_net;
mod upgrade_solver;

use clap::{Args, Parser, Subcommand, builder::TypedValueParser};
use std::{
    ffi::OsString,
    io::{self, Write},
    process::ExitCode,
};

/// Trains, tests, upgrades and inspects Caffe's models.
#[derive(Parser)]
#[command(name = "cortado", version, arg_required_else_help = true)]
struct Command {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Train(train::Train),
    Test(test::Test),
    Time(time::Time),
    UpgradeNet(upgrade_net::UpgradeNet),
    UpgradeSolver(upgrade_solver::UpgradeSolver),
    Inspect(inspect::Inspect),
    Draw(draw::Draw),
}

/// Where the work is done.
#[derive(Args)]
struct Place {
    /// Device to run on
    #[arg(long, value_name = "NAME", default_value = "cpu")]
    device: String,
    /// Host threads; 0 takes as many as the machine runs at once
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = threads())]
    threads: u16,
}

/// More than any machine runs at once, and few enough to be started.
fn threads() -> impl TypedValueParser<Value = u16> {
    clap::value_parser!(u16).range(..=1024)
}

/// Runs the command that the process's arguments give.
pub fn main() -> ExitCode {
    let command = Command::parse_from(std::env::args_os().map(two_dashes));
    logger::install();
    let done = match command.verb {
        Verb::Train(train) => train.run(),
        Verb::Test(test) => test.run(),
        Verb::Time(time) => time.run(),
        Verb::UpgradeNet(upgrade) => upgrade.run(),
        Verb::UpgradeSolver(upgrade) => upgrade.run(),
        Verb::Inspect(inspect) => inspect.run(),
        Verb::Draw(draw) => draw.run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // An error that cannot be written has the exit status left.
            let _ = writeln!(io::stderr(), "cortado: {error}");
            ExitCode::FAILURE
        }
    }
}

/// `-solver` means `--solver`, as in Caffe's scripts; `-h` stays.
fn two_dashes(arg: OsString) -> OsString {
    match arg.to_str().map(str::as_bytes) {
        Some([b'-', first, _, ..]) if first.is_ascii_alphabetic() => {
            let mut long = OsString::from("-");
            long.push(arg);
            long
        }
        _ => arg,
    }
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
    fn one_dash_or_two() {
        let read = |arg: &str| two_dashes(arg.into()).into_string().unwrap();
        let args = ["-solver=a.prototxt", "--solver", "-h", "-1", "a-b", "-"];
        let want = ["--solver=a.prototxt", "--solver", "-h", "-1", "a-b", "-"];
        assert_eq!(args.map(read), want);
    }
}
