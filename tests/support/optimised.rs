//! What is run in optimised builds only.

/// Whether this is one; else it is said loudly what is skipped, for it would take minutes.
pub(crate) fn optimised(what: &str) -> bool {
    if cfg!(debug_assertions) {
        eprintln!("SKIPPED: add --release to run {what}");
    }
    !cfg!(debug_assertions)
}
