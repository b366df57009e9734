//! The `cortado` command.

fn main() {}
