//! Folders that appear whole or not at all.

use super::beside;
use crate::error::{Error, Result};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// A folder that is filled under another name beside its own. Dropped before it is
/// [finished](Self::finish), it is gone.
pub(crate) struct StagedDir {
    target: PathBuf,
    /// Its name until then.
    path: PathBuf,
    replace: bool,
    finished: bool,
}

impl StagedDir {
    /// Begins the folder `target`. Fails if there is something of this name, unless it is a
    /// folder and to be replaced.
    pub(crate) fn create(target: &Path, replace: bool) -> Result<Self> {
        let target = std::path::absolute(target).map_err(|error| Error::io(target, error))?;
        match fs::symlink_metadata(&target) {
            Ok(found) if !found.is_dir() => {
                let why = "there is a file of this name";
                return Err(Error::InvalidData(format!("{}: {why}", target.display())));
            }
            Ok(_) if !replace => return Err(exists(&target)),
            _ => {}
        }
        let ((), path) = beside(&target, |path| fs::create_dir(path))
            .map_err(|error| Error::io(&target, error))?;
        Ok(Self { target, path, replace, finished: false })
    }

    /// Where it is for now.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where it is to be.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// Gives the folder its name; what had it is gone.
    pub(crate) fn finish(mut self) -> Result<()> {
        let named = self.take_place();
        named.map_err(|error| Error::io(&self.target, error))?;
        self.finished = true;
        Ok(())
    }

    fn take_place(&self) -> io::Result<()> {
        let replaced = match self.replace && self.target.exists() {
            // A folder cannot take another's place in one step: there is none for a moment.
            true => Some(beside(&self.target, |path| fs::rename(&self.target, path))?.1),
            false => None,
        };
        let named = fs::rename(&self.path, &self.target);
        if let Some(old) = replaced {
            match named {
                Ok(()) => fs::remove_dir_all(old)?,
                Err(_) => fs::rename(old, &self.target)?,
            }
        }
        named
    }
}

impl Drop for StagedDir {
    fn drop(&mut self) {
        if !self.finished {
            // The error that matters is another.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

fn exists(target: &Path) -> Error {
    Error::InvalidData(format!("{}: it exists already", target.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &Path) -> Vec<String> {
        let entries = fs::read_dir(path).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_folder_appears_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a");
        let folder = StagedDir::create(&target, false).unwrap();
        fs::write(folder.path().join("x"), "1").unwrap();
        assert!(!target.exists());
        drop(folder);
        assert_eq!(names(dir.path()), [""; 0]);

        for (content, replace) in [("1", false), ("2", true)] {
            let folder = StagedDir::create(&target, replace).unwrap();
            fs::write(folder.path().join(content), content).unwrap();
            folder.finish().unwrap();
            assert_eq!(
                (names(dir.path()), names(&target)),
                (vec!["a".into()], vec![content.into()])
            );
        }
    }

    #[test]
    fn what_is_there_is_not_replaced_unasked() {
        let dir = tempfile::tempdir().unwrap();
        let refused = StagedDir::create(dir.path(), false).err().unwrap();
        assert!(refused.to_string().ends_with("it exists already"), "{refused}");
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(StagedDir::create(&file, true).is_err());
        assert!(StagedDir::create(&dir.path().join("no").join("a"), false).is_err());
        assert_eq!(names(dir.path()), ["file"]);
    }
}
