//! Tests that run in optimised builds only, because they would take minutes in others.

/// Returns whether the build is optimised. If not, prints a notice that `what` is skipped.
pub(crate) fn optimised(what: &str) -> bool {
    if cfg!(debug_assertions) {
        eprintln!("SKIPPED: add --release to run {what}");
    }
    !cfg!(debug_assertions)
}
