//! Atomic creation of directories: a directory appears at its final path only when it is complete.

use super::file::create_temporary;
use crate::error::{Error, Result};
use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

/// A directory that the caller fills under a temporary name, in the parent directory of the final
/// path.
///
/// [`finish`](Self::finish) renames the directory to its final path. Dropping an unfinished
/// `StagedDir` removes the directory.
pub(crate) struct StagedDir {
    target: PathBuf,
    path: PathBuf,
    replace: bool,
    finished: bool,
}

impl StagedDir {
    /// Creates the temporary directory for `target`. Fails if `target` exists, unless `target` is a
    /// directory and `replace` is set.
    pub(crate) fn create(target: &Path, replace: bool) -> Result<Self> {
        let target = std::path::absolute(target).map_err(|error| Error::io(target, error))?;
        let conflict = match fs::symlink_metadata(&target) {
            Ok(found) if !found.is_dir() => Some("a file with this name exists"),
            Ok(_) if !replace => Some("already exists"),
            _ => None,
        };
        if let Some(reason) = conflict {
            return Err(Error::InvalidData(format!("{}: {reason}", target.display())));
        }
        let ((), path) = create_temporary(&target, |path| fs::create_dir(path))
            .map_err(|error| Error::io(&target, error))?;
        Ok(Self { target, path, replace, finished: false })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// Renames the directory to its final path, and removes the directory that had this path
    /// before, if any.
    pub(crate) fn finish(mut self) -> Result<()> {
        let result = self.rename();
        result.map_err(|error| Error::io(&self.target, error))?;
        self.finished = true;
        Ok(())
    }

    fn rename(&self) -> io::Result<()> {
        let old_path = match self.replace && self.target.exists() {
            // A rename cannot replace a non-empty directory, so the old directory is renamed first.
            // `target` does not exist between the two renames.
            true => Some(create_temporary(&self.target, |path| fs::rename(&self.target, path))?.1),
            false => None,
        };
        let result = fs::rename(&self.path, &self.target);
        if let Some(old) = old_path {
            match result {
                Ok(()) => fs::remove_dir_all(old)?,
                Err(_) => fs::rename(old, &self.target)?,
            }
        }
        result
    }
}

impl Drop for StagedDir {
    fn drop(&mut self) {
        if !self.finished {
            // Ignores errors of the cleanup, because the caller gets the error that caused the
            // cleanup.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Creates and removes a file in `folder`, to check that `folder` is writable. Also removes old
/// temporary files that dead processes left in `folder`. Fails if `folder` is not a writable
/// directory.
pub(crate) fn check_writable(folder: &Path) -> Result<()> {
    #[cfg(target_os = "linux")]
    super::file::remove_stale_temporaries(folder);
    let file = create_temporary(&folder.join("file"), |path| File::create_new(path).map(drop));
    let result = file.and_then(|((), path)| fs::remove_file(path));
    result.map_err(|error| Error::io(folder, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &Path) -> Vec<String> {
        let entries = fs::read_dir(path).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_staged_directory_appears_only_when_it_is_finished() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a");
        let staged_dir = StagedDir::create(&target, false).unwrap();
        fs::write(staged_dir.path().join("x"), "1").unwrap();
        assert!(!target.exists());
        drop(staged_dir);
        assert_eq!(names(dir.path()), [""; 0]);

        for (content, replace) in [("1", false), ("2", true)] {
            let staged_dir = StagedDir::create(&target, replace).unwrap();
            fs::write(staged_dir.path().join(content), content).unwrap();
            staged_dir.finish().unwrap();
            assert_eq!(names(dir.path()), ["a"]);
            assert_eq!(names(&target), [content]);
        }
    }

    #[test]
    fn an_existing_file_or_directory_is_not_replaced_by_default() {
        let dir = tempfile::tempdir().unwrap();
        let error = StagedDir::create(dir.path(), false).err().unwrap();
        assert!(error.to_string().ends_with(": already exists"), "{error}");
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(StagedDir::create(&file, true).is_err());
        assert!(StagedDir::create(&dir.path().join("no").join("a"), false).is_err());
        assert_eq!(names(dir.path()), ["file"]);
    }

    #[test]
    fn check_writable_rejects_a_path_that_is_not_a_directory_and_leaves_no_file() {
        let dir = tempfile::tempdir().unwrap();
        check_writable(dir.path()).unwrap();
        assert_eq!(names(dir.path()), [""; 0]);
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        for path in [file, dir.path().join("missing")] {
            let error = check_writable(&path).unwrap_err();
            assert!(matches!(&error, Error::Io { path: named, .. } if *named == path), "{error}");
        }
    }
}
