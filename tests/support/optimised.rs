//! Tests that run only in optimised builds, because others would take minutes.

/// Returns whether the build is optimised. If not, prints a notice that `what` is skipped.
pub(crate) fn optimised(what: &str) -> bool {
    if cfg!(debug_assertions) {
        eprintln!("SKIPPED: add --release to run {what}");
    }
    !cfg!(debug_assertions)
}
