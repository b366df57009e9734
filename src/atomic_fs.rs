//! Files that are replaced as a whole, and folders.

#[cfg(feature = "net")]
mod dir;

#[cfg(feature = "net")]
pub(crate) use dir::StagedDir;

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::error::{Error, Result};

/// Makes `bytes` the content of the file, or leaves it as it was.
///
/// The bytes go to a new file in the same folder, are flushed to the disk, and take the file's
/// place in one step: a reader, or a crash, finds the old content or the new. A link is followed. A
/// pipe or a terminal is written to directly.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let written = match fs::metadata(&target) {
        Ok(found) if !found.is_file() => fs::write(&target, bytes),
        _ => write_beside(&target, bytes),
    };
    written.map_err(|source| Error::io(path, source))
}

fn write_beside(target: &Path, bytes: &[u8]) -> io::Result<()> {
    let (file, temporary) = create_beside(target)?;
    let written = fill(file, bytes).and_then(|()| fs::rename(&temporary, target));
    if written.is_err() {
        // The error that matters is the first one.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Closes the file, too: some systems do not rename open ones.
fn fill(mut file: File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()
}

/// A new file in the folder of `target`, with the permissions any new file gets.
fn create_beside(target: &Path) -> io::Result<(File, PathBuf)> {
    beside(target, |path| File::create_new(path))
}

/// What `create` makes under a name that is new in the folder of `target`, and its path.
fn beside<F>(
    target: &Path,
    mut create: impl FnMut(&Path) -> io::Result<F>,
) -> io::Result<(F, PathBuf)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = target.with_file_name(format!(".cortado-{}-{count}.tmp", process::id()));
        match create(&path) {
            // Left behind by a process of the same number.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return created.map(|created| (created, path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of its own for each test, gone afterwards.
    struct Folder(PathBuf);

    impl Folder {
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

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn replaces_and_leaves_nothing_behind() {
        let folder = Folder::new("replace");
        let path = folder.0.join("a");
        for content in ["first", "second, longer", ""] {
            write_atomically(&path, content.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
        assert_eq!(folder.names(), ["a"]);
    }

    #[test]
    fn failure_names_the_file_and_leaves_nothing_behind() {
        let folder = Folder::new("refuse");
        let directory = folder.0.join("directory");
        fs::create_dir(&directory).unwrap();
        for path in [directory.clone(), folder.0.join("missing").join("a")] {
            let error = write_atomically(&path, b"x").unwrap_err();
            assert!(matches!(&error, Error::Io { path: p, .. } if *p == path), "{error}");
        }
        assert_eq!(folder.names(), ["directory"]);
    }

    #[cfg(unix)]
    #[test]
    fn follows_a_link() {
        let folder = Folder::new("link");
        let (path, link) = (folder.0.join("a"), folder.0.join("link"));
        fs::write(&path, "old").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        write_atomically(&link, b"new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }
}
