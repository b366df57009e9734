//! The `cortado` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    cortado::cli::main()
}
