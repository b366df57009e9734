//! The flag `--snapshot-keep`, which removes old snapshots of a training run.

use cortado::solver::Event;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Removes the oldest snapshots after each snapshot of a training run.
pub(super) struct SnapshotKeep {
    /// Number of latest snapshots to keep.
    pub(super) count: usize,
}

impl SnapshotKeep {
    /// After a snapshot event, removes all snapshots with the same prefix except the last
    /// [`count`](Self::count). Does not touch snapshots of later iterations, which an earlier run
    /// may have written. Logs a warning if a file cannot be removed.
    pub(super) fn observe(&self, event: &Event<'_>) {
        let Event::Snapshot { iteration, model, .. } = event else { return };
        let mut candidates = snapshots(model);
        candidates.retain(|(snapshot, _)| snapshot <= iteration);
        let mut iterations: Vec<_> = candidates.iter().map(|(snapshot, _)| *snapshot).collect();
        iterations.sort_unstable();
        iterations.dedup();
        let Some(removed_count) = iterations.len().checked_sub(self.count) else { return };
        let is_removed =
            |(snapshot, _): &&(usize, PathBuf)| iterations[..removed_count].contains(snapshot);
        for (_, path) in candidates.iter().filter(is_removed) {
            if let Err(error) = fs::remove_file(path) {
                log::warn!("--snapshot-keep: {}: {error}", path.display());
            }
        }
    }
}

/// Returns the iteration and the path of each snapshot file whose prefix is that of `model`.
fn snapshots(model: &Path) -> Vec<(usize, PathBuf)> {
    let name = model.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some((prefix, _)) = name.rsplit_once("_iter_") else { return Vec::new() };
    let folder = match model.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.filter_map(|path| Some((iteration_of(&path, prefix)?, path))).collect()
}

/// Returns the iteration of a snapshot file with the prefix `prefix`, or `None` for other files.
fn iteration_of(path: &Path, prefix: &str) -> Option<usize> {
    let rest = path.file_name()?.to_str()?.strip_prefix(prefix)?.strip_prefix("_iter_")?;
    let (iteration, suffix) = rest.split_once('.')?;
    let suffixes = ["caffemodel", "solverstate", "caffemodel.h5", "solverstate.h5"];
    suffixes.contains(&suffix).then(|| iteration.parse().ok())?
}
