//! Files of the report: the parts, the baseline, and the page of all parts.

use super::{Part, page};
use crate::{
    atomic_fs::write_atomically,
    error::{Error, Result},
};
use std::{
    fs,
    path::{Path, PathBuf},
};

impl Part {
    /// Stores the part in `folder`, writes the page `index.html` of all parts in `folder`, and
    /// returns the path of the page. If `as_baseline` is true, also stores the part as the baseline
    /// with which later pages compare this program's results. All files are written atomically.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or written, or if a stored part is damaged.
    pub fn store(&self, folder: &Path, as_baseline: bool) -> Result<PathBuf> {
        let baseline = folder.join("baseline");
        let folders = if as_baseline { vec![folder, &baseline] } else { vec![folder] };
        let text = format!("{:#}\n", self.to_json());
        for folder in folders {
            fs::create_dir_all(folder).map_err(|error| Error::io(folder, error))?;
            write_atomically(folder.join(format!("{}.json", self.name)), text.as_bytes())?;
        }
        let page_path = folder.join("index.html");
        let page = page::page(&Self::read_all(folder)?, &Self::read_all(&baseline)?)?;
        write_atomically(&page_path, page.as_bytes())?;
        Ok(page_path)
    }
}
