//! Condition for tests that run only in optimized builds, because unoptimized tests would take
//! minutes.

/// Returns whether the build is optimized. In an unoptimized build, prints a notice that `what` is
/// skipped.
pub(crate) fn optimized(what: &str) -> bool {
    if cfg!(debug_assertions) {
        eprintln!("SKIPPED: add --release to run {what}");
    }
    !cfg!(debug_assertions)
}
