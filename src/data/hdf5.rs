//! Rows of datasets in HDF5 files, as Caffe's HDF5Data layer reads them.

#[cfg(not(feature = "hdf5"))]
mod disabled;
#[cfg(feature = "hdf5")]
mod file;

#[cfg(not(feature = "hdf5"))]
use disabled::Datasets;
#[cfg(feature = "hdf5")]
use file::Datasets;

use crate::{
    error::{Error, Result},
    op::RngKey,
};
use rand::seq::SliceRandom;
use std::{
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

/// A reader of the rows of datasets in HDF5 files. A list file names the HDF5 files, one path per
/// line. After the last row, [`read`](Self::read) continues with the first row.
///
/// A row consists of the elements of each dataset at one index of the first axis. With shuffling,
/// the reader loads whole files, and the order of the rows depends only on the key. Without
/// shuffling, the reader loads a few rows at a time.
///
/// ```no_run
/// use cortado::data::Hdf5Rows;
///
/// let names = ["data".to_owned(), "label".to_owned()];
/// let mut rows = Hdf5Rows::open("train-files.txt", &names, 64, None)?;
/// println!("shapes of a row: {:?}", rows.shapes());
/// assert_eq!(rows.read()?.count(), names.len());
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "HDF5DataLayer")]
pub struct Hdf5Rows {
    files: Vec<PathBuf>,
    names: Vec<String>,
    /// The shape of a row of each dataset.
    shapes: Vec<Vec<usize>>,
    shuffle: Option<RngKey>,
    /// The number of rows read at a time without shuffling.
    slice: usize,
    file_order: Vec<usize>,
    position: usize,
    shuffles: u64,
    file: Datasets,
    rows: usize,
    row: usize,
    /// The order of the rows in the current file; empty without shuffling.
    row_order: Vec<usize>,
    loaded: Range<usize>,
    values: Vec<Vec<f64>>,
}

impl Hdf5Rows {
    /// Opens the datasets called `names` in the first HDF5 file that the list file `list` names.
    /// Without shuffling, the reader loads `slice` rows at a time.
    ///
    /// # Errors
    /// Returns [`Error::Io`] if a file cannot be read. Returns [`Error::InvalidData`] for a list
    /// without files, a missing dataset, a dataset that has no rows or does not hold numbers, and
    /// datasets with different numbers of rows. Always returns [`Error::InvalidData`] without the
    /// feature `hdf5`.
    pub fn open(
        list: impl AsRef<Path>,
        names: &[String],
        slice: usize,
        shuffle: Option<RngKey>,
    ) -> Result<Self> {
        let list = list.as_ref();
        let text = fs::read_to_string(list).map_err(|error| Error::io(list, error))?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let files: Vec<PathBuf> = lines.map(Into::into).collect();
        let mut file_order: Vec<_> = (0..files.len()).collect();
        let mut shuffles = 0;
        shuffle_order(shuffle, &mut shuffles, &mut file_order);
        let Some(first) = file_order.first().map(|&first| &files[first]) else {
            return Err(Error::InvalidData(format!("{}: lists no files", list.display())));
        };
        let (file, rows, shapes) = open(first, names)?;
        let mut opened = Self {
            files,
            names: names.to_vec(),
            shapes,
            shuffle,
            slice: slice.max(1),
            file_order,
            position: 0,
            shuffles,
            file,
            rows,
            row: 0,
            row_order: Vec::new(),
            loaded: 0..0,
            values: vec![Vec::new(); names.len()],
        };
        opened.shuffle_rows();
        Ok(opened)
    }

    /// Returns the shape of a row of each dataset.
    pub fn shapes(&self) -> &[Vec<usize>] {
        &self.shapes
    }

    /// Returns the values of the next row in each dataset.
    ///
    /// # Errors
    /// Returns the errors of [`open`](Self::open) for the next file, and [`Error::Shape`] if the
    /// rows of the next file have a different shape.
    pub fn read(&mut self) -> Result<impl Iterator<Item = &[f64]>> {
        if self.row == self.rows {
            self.next_file()?;
        }
        let row = self.row_order.get(self.row).copied().unwrap_or(self.row);
        if !self.loaded.contains(&row) {
            let range = match self.row_order.is_empty() {
                true => row..self.rows.min(row.saturating_add(self.slice)),
                false => 0..self.rows,
            };
            self.loaded = 0..0;
            for (name, values) in self.names.iter().zip(&mut self.values) {
                *values = self.file.read(name, &range)?;
            }
            self.loaded = range;
        }
        self.row += 1;
        let index = row - self.loaded.start;
        let rows = self.shapes.iter().zip(&self.values);
        Ok(rows.map(move |(shape, values)| {
            let len = shape.iter().product();
            &values[index * len..][..len]
        }))
    }

    fn next_file(&mut self) -> Result<()> {
        let mut position = self.position + 1;
        if position == self.file_order.len() {
            position = 0;
            shuffle_order(self.shuffle, &mut self.shuffles, &mut self.file_order);
        }
        // If the list file names only one HDF5 file, that file is still open and need not be
        // reopened.
        if self.file_order.len() > 1 {
            let path = &self.files[self.file_order[position]];
            let (file, rows, shapes) = open(path, &self.names)?;
            if shapes != self.shapes {
                let reason = format!("expected rows of shapes {:?}, found {shapes:?}", self.shapes);
                return Err(Error::Shape(format!("{}: {reason}", path.display())));
            }
            (self.file, self.rows, self.loaded) = (file, rows, 0..0);
        }
        (self.position, self.row) = (position, 0);
        self.shuffle_rows();
        Ok(())
    }

    fn shuffle_rows(&mut self) {
        if self.shuffle.is_some() {
            self.row_order = (0..self.rows).collect();
            shuffle_order(self.shuffle, &mut self.shuffles, &mut self.row_order);
        }
    }
}

/// Shuffles `order` with the random numbers of stream number `shuffles` under `key`, then
/// increments `shuffles`.
fn shuffle_order(key: Option<RngKey>, shuffles: &mut u64, order: &mut [usize]) {
    if let Some(key) = key {
        order.shuffle(&mut key.child(*shuffles).rng());
        *shuffles += 1;
    }
}

/// Opens a file. Returns the file, the number of rows, and the shape of a row of each dataset.
fn open(path: &Path, names: &[String]) -> Result<(Datasets, usize, Vec<Vec<usize>>)> {
    let file = Datasets::open(path)?;
    let invalid = |reason: String| Error::InvalidData(format!("{}: {reason}", path.display()));
    let (mut rows, mut shapes) = (None, Vec::new());
    for name in names {
        let shape = file.shape(name)?;
        let Some((&count, rest)) = shape.split_first() else {
            return Err(invalid(format!("dataset `{name}` is a scalar, without rows")));
        };
        let first = *rows.get_or_insert(count);
        if count == 0 {
            return Err(invalid(format!("dataset `{name}` has no rows")));
        }
        if count != first {
            let reason =
                format!("dataset `{name}` has {count} rows, but `{}` has {first}", names[0]);
            return Err(invalid(reason));
        }
        shapes.push(rest.to_vec());
    }
    Ok((file, rows.unwrap_or(0), shapes))
}

#[cfg(all(test, feature = "hdf5"))]
mod tests;
