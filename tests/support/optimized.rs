//! Notice for tests that run only in optimized builds, because they would take minutes otherwise.

/// Returns whether the build is optimized, and prints a notice that the test of `what` is skipped
/// if it is not.
pub(crate) fn optimized(what: &str) -> bool {
    if cfg!(debug_assertions) {
        eprintln!("SKIPPED: add --release to run {what}");
    }
    !cfg!(debug_assertions)
}
