//! In place of HDF5, where the crate is built without it.

use super::{ABSENT, BlobProto, Group};
use crate::error::{Error, Result};
use std::path::Path;

/// A file that is read: there is none.
pub(super) enum Reader {}

impl Reader {
    pub(super) fn open(path: &Path) -> Result<Self> {
        Err(refusal(path))
    }

    pub(super) fn groups(&self, _group: &str) -> Result<Vec<String>> {
        match *self {}
    }

    pub(super) fn datasets(&self, _group: &str) -> Result<Vec<String>> {
        match *self {}
    }

    pub(super) fn blob(&self, _dataset: &str) -> Result<BlobProto> {
        match *self {}
    }

    pub(super) fn integer(&self, _dataset: &str) -> Result<i32> {
        match *self {}
    }

    pub(super) fn text(&self, _dataset: &str) -> Result<String> {
        match *self {}
    }

    pub(super) fn damaged(&self, _place: &str, _why: &str) -> Error {
        match *self {}
    }
}

pub(super) fn write(path: &Path, _root: Group<'_>) -> Result<()> {
    Err(refusal(path))
}

fn refusal(path: &Path) -> Error {
    Error::Invalid(format!("{}: {ABSENT}", path.display()))
}
