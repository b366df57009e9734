//! Atomic replacement of a file's content.

use crate::error::{Error, Result};
use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
};

/// Replaces the content of the file at `path` with `bytes`. On error, the file is unchanged.
///
/// `write_atomically` writes a temporary file in the same directory, flushes this file to the disk
/// and renames the temporary file to `path`. Because a rename is atomic, readers of the file see
/// either the old or the new content, even after a crash. `write_atomically` follows symbolic
/// links, and writes directly to pipes and terminals.
///
/// ```
/// use cortado::atomic_fs::write_atomically;
///
/// let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("weights");
/// write_atomically(&path, b"old")?;
/// write_atomically(&path, b"new")?;
/// assert_eq!(std::fs::read(&path).unwrap(), b"new");
/// # Ok::<(), cortado::Error>(())
/// ```
///
/// # Errors
/// [`Error::Io`] with the path, if the file cannot be written or replaced.
pub fn write_atomically(path: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
    let path = path.as_ref();
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let result = match fs::metadata(&target) {
        Ok(found) if !found.is_file() => fs::write(&target, bytes),
        _ => replace(&target, bytes),
    };
    result.map_err(|source| Error::io(path, source))
}

fn replace(target: &Path, bytes: &[u8]) -> io::Result<()> {
    let (file, temporary) = create_temporary(target, |path| File::create_new(path))?;
    let result = write_and_close(file, bytes).and_then(|()| fs::rename(&temporary, target));
    if result.is_err() {
        // Ignores errors of the cleanup, so that the caller gets the first error.
        let _ = fs::remove_file(&temporary);
    }
    result
}

/// Writes `bytes` to `file`, flushes `file` to the disk and closes `file`, because some operating
/// systems cannot rename an open file.
fn write_and_close(mut file: File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()
}

/// Removes temporary files that dead processes left in `folder`, for example after SIGKILL.
///
/// Removes a file if no process on this machine has the id in the file's name, and if the file has
/// not changed for an hour. The minimum age of an hour protects the files of running processes on
/// other machines that share the file system. Ignores errors, because leftover files do no harm.
#[cfg(all(feature = "net", target_os = "linux"))]
pub(super) fn remove_stale_temporaries(folder: &Path) {
    use std::time::Duration;
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.filter_map(Result::<_, io::Error>::ok) {
        let name = entry.file_name();
        let Some(process) = name.to_str().and_then(process_of) else { continue };
        let age = entry.metadata().and_then(|file| file.modified()).map(|time| time.elapsed());
        let is_stale = matches!(age, Ok(Ok(age)) if age > Duration::from_secs(3600));
        if is_stale && !Path::new("/proc").join(process.to_string()).exists() {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Returns the process id in the name of a temporary file, or `None` for other file names.
#[cfg(all(feature = "net", target_os = "linux"))]
fn process_of(name: &str) -> Option<u32> {
    let (process, count) = name.strip_prefix(".cortado-")?.strip_suffix(".tmp")?.split_once('-')?;
    count.parse::<u64>().ok()?;
    process.parse().ok()
}

/// Calls `create` with an unused temporary path in the directory of `target`. Returns the result of
/// `create` and the temporary path.
pub(super) fn create_temporary<F>(
    target: &Path,
    mut create: impl FnMut(&Path) -> io::Result<F>,
) -> io::Result<(F, PathBuf)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = target.with_file_name(format!(".cortado-{}-{count}.tmp", process::id()));
        match create(&path) {
            // The temporary file already exists if an earlier process with the same process id
            // crashed before it renamed the file.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return created.map(|created| (created, path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A temporary directory for one test, which `drop` removes.
    struct TestDir(PathBuf);

    impl TestDir {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("cortado-{name}-{}", process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).unwrap();
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
        }
    }

    impl Drop for TestDir {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn write_atomically_replaces_the_content_and_leaves_no_temporary_file() {
        let dir = TestDir::new("replace");
        let path = dir.0.join("a");
        for content in ["first", "second, longer", ""] {
            write_atomically(&path, content.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
        assert_eq!(dir.names(), ["a"]);
    }

    #[test]
    fn a_failed_write_names_the_file_and_leaves_no_temporary_file() {
        let dir = TestDir::new("refuse");
        let directory = dir.0.join("directory");
        fs::create_dir(&directory).unwrap();
        for path in [directory.clone(), dir.0.join("missing").join("a")] {
            let error = write_atomically(&path, b"x").unwrap_err();
            assert!(matches!(&error, Error::Io { path: p, .. } if *p == path), "{error}");
        }
        assert_eq!(dir.names(), ["directory"]);
    }

    #[cfg(all(feature = "net", target_os = "linux"))]
    #[test]
    fn only_old_temporary_files_of_dead_processes_are_removed() {
        use std::time::{Duration, SystemTime};
        let dir = TestDir::new("stale");
        let dead_process = u32::MAX;
        let files = [
            (format!(".cortado-{dead_process}-0.tmp"), 7200),
            (format!(".cortado-{dead_process}-1.tmp"), 60),
            (format!(".cortado-{}-2.tmp", process::id()), 7200),
            (format!(".cortado-{dead_process}-x.tmp"), 7200),
            ("a.tmp".to_owned(), 7200),
        ];
        for (name, age) in &files {
            let file = File::create(dir.0.join(name)).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(*age)).unwrap();
        }
        remove_stale_temporaries(&dir.0);
        let mut expected: Vec<_> = files[1..].iter().map(|(name, _)| name.clone()).collect();
        let mut names = dir.names();
        expected.sort();
        names.sort();
        assert_eq!(names, expected);
    }

    #[cfg(unix)]
    #[test]
    fn write_atomically_follows_a_link() {
        let dir = TestDir::new("link");
        let (path, link) = (dir.0.join("a"), dir.0.join("link"));
        fs::write(&path, "old").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        write_atomically(&link, b"new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }
}
