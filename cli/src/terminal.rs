//! The terminal: its type, whether it can redraw a line, and its width.

use std::{env, io, io::IsTerminal};

/// Width that is assumed for a terminal of unknown width, in characters.
const DEFAULT_WIDTH: usize = 80;

/// Returns whether the terminal has the type `dumb`, which understands no escape sequences.
pub(super) fn is_dumb() -> bool {
    env::var_os("TERM").is_some_and(|kind| kind == "dumb")
}

/// Returns whether standard error is a terminal that can redraw a line.
pub(super) fn can_redraw() -> bool {
    io::stderr().is_terminal() && !is_dumb()
}

/// Returns the number of characters that fit in a line of the terminal without wrapping.
pub(super) fn line_width() -> usize {
    let size = terminal_size::terminal_size_of(io::stderr());
    let width = size.map_or(DEFAULT_WIDTH, |(width, _)| width.0.into());
    // Some terminals wrap a line as soon as its last column is written.
    width.saturating_sub(1)
}
