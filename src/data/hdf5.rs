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
    limits,
    op::RngKey,
};
use rand::seq::SliceRandom;
use std::{
    ops::Range,
    path::{Path, PathBuf},
};

/// A reader of rows from the datasets of HDF5 files. A list file names the HDF5 files, one path per
/// line. After the last row, [`read`](Self::read) continues with the first row.
///
/// A row consists of the elements of each dataset at one index of the first axis. With shuffling,
/// the reader loads whole files, and the order of the rows depends only on the random key. Without
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
    /// The number of rows that the reader loads at a time without shuffling.
    slice: usize,
    /// The order of the files in the current epoch.
    file_order: Vec<usize>,
    /// The number of rows in each file; empty until [`seek`](Self::seek) needs these numbers.
    file_rows: Vec<usize>,
    epoch: u64,
    /// The index of the open file in `file_order`.
    order_index: usize,
    /// The number of the next row, counted from 0 over all epochs.
    position: u64,
    file: Datasets,
    rows: usize,
    row: usize,
    /// The order of the rows in the current file; empty without shuffling.
    row_order: Vec<usize>,
    loaded_rows: Range<usize>,
    values: Vec<Vec<f64>>,
}

impl Hdf5Rows {
    /// Opens the datasets with the given `names` in the first HDF5 file of the list file `list`.
    /// Without shuffling, the reader loads `slice` rows at a time.
    ///
    /// # Errors
    /// Returns [`Error::Io`] if a file cannot be read. Returns [`Error::InvalidData`] for no `names`, a
    /// list without files, a missing dataset, a dataset that has no rows or does not hold numbers, and
    /// datasets with different numbers of rows. Always returns [`Error::InvalidData`] without the
    /// feature `hdf5`.
    pub fn open(
        list: impl AsRef<Path>,
        names: &[String],
        slice: usize,
        shuffle: Option<RngKey>,
    ) -> Result<Self> {
        let list = list.as_ref();
        if names.is_empty() {
            let reason = format!("{}: expected the name of at least one dataset", list.display());
            return Err(Error::InvalidData(reason));
        }
        let text = limits::read_to_string(list, limits::LIST_LEN)?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let files: Vec<PathBuf> = lines.map(Into::into).collect();
        if files.is_empty() {
            return Err(Error::InvalidData(format!("{}: lists no files", list.display())));
        }
        let file_order = order(shuffle, 0, files.len());
        let (file, rows, shapes) = open(&files[file_order[0]], names)?;
        let mut reader = Self {
            files,
            names: names.to_vec(),
            shapes,
            shuffle,
            slice: slice.max(1),
            file_order,
            file_rows: Vec::new(),
            epoch: 0,
            order_index: 0,
            position: 0,
            file,
            rows,
            row: 0,
            row_order: Vec::new(),
            loaded_rows: 0..0,
            values: vec![Vec::new(); names.len()],
        };
        reader.shuffle_rows();
        Ok(reader)
    }

    /// Returns the shape of a row of each dataset.
    pub fn shapes(&self) -> &[Vec<usize>] {
        &self.shapes
    }

    /// Returns the values of the next row in each dataset.
    ///
    /// # Errors
    /// Returns any error from [`open`](Self::open) for the next file, and [`Error::Shape`] if the
    /// rows of the next file have a different shape.
    pub fn read(&mut self) -> Result<impl Iterator<Item = &[f64]>> {
        if self.row == self.rows {
            let is_last_file = self.order_index + 1 == self.files.len();
            let next =
                if is_last_file { (self.epoch + 1, 0) } else { (self.epoch, self.order_index + 1) };
            self.open_file(next)?;
        }
        let row = self.row_order.get(self.row).copied().unwrap_or(self.row);
        if !self.loaded_rows.contains(&row) {
            let range = match self.row_order.is_empty() {
                true => row..self.rows.min(row.saturating_add(self.slice)),
                false => 0..self.rows,
            };
            self.loaded_rows = 0..0;
            for (name, values) in self.names.iter().zip(&mut self.values) {
                *values = self.file.read(name, &range)?;
            }
            self.loaded_rows = range;
        }
        (self.row, self.position) = (self.row + 1, self.position + 1);
        let index = row - self.loaded_rows.start;
        let rows = self.shapes.iter().zip(&self.values);
        Ok(rows.map(move |(shape, values)| {
            let len = shape.iter().product();
            &values[index * len..][..len]
        }))
    }

    /// Reads and discards `count` rows.
    ///
    /// # Errors
    /// Returns any error from [`read`](Self::read).
    pub(crate) fn skip(&mut self, count: u64) -> Result<()> {
        (0..count).try_for_each(|_| self.read().map(drop))
    }

    /// Returns the number of the next row, counted from 0 over all epochs.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Moves to row number `position`, counted from 0 over all epochs: the next
    /// [`read`](Self::read) returns the row that a new reader would return after `position` rows.
    /// The first `seek` opens each file once, to learn its number of rows.
    ///
    /// # Errors
    /// Returns any error from [`open`](Self::open) and [`read`](Self::read) for each file. If
    /// `seek` fails, the position does not change.
    #[doc(alias = "Skip")]
    pub fn seek(&mut self, position: u64) -> Result<()> {
        if position == self.position {
            return Ok(());
        }
        if self.file_rows.is_empty() {
            let rows = |path: &PathBuf| open(path, &self.names).map(|(_, rows, _)| rows);
            self.file_rows = self.files.iter().map(rows).collect::<Result<_>>()?;
        }
        let total: u64 = self.file_rows.iter().map(|&rows| rows as u64).sum();
        let (epoch, mut row) = (position / total, position % total);
        let file_order = order(self.shuffle, self.first_shuffle(epoch), self.files.len());
        let mut order_index = 0;
        while row >= self.file_rows[file_order[order_index]] as u64 {
            row -= self.file_rows[file_order[order_index]] as u64;
            order_index += 1;
        }
        self.open_file((epoch, order_index))?;
        (self.row, self.position) = (row as usize, position);
        Ok(())
    }

    /// Opens the file with index `order_index` in the file order of epoch `epoch`, and moves to the
    /// first row of the file.
    fn open_file(&mut self, (epoch, order_index): (u64, usize)) -> Result<()> {
        let file_order = match epoch == self.epoch {
            true => self.file_order.clone(),
            false => order(self.shuffle, self.first_shuffle(epoch), self.files.len()),
        };
        // If the list file names only one HDF5 file, that file is already open.
        if self.files.len() > 1 {
            let path = &self.files[file_order[order_index]];
            let (file, rows, shapes) = open(path, &self.names)?;
            if shapes != self.shapes {
                let reason = format!("expected rows of shapes {:?}, found {shapes:?}", self.shapes);
                return Err(Error::Shape(format!("{}: {reason}", path.display())));
            }
            (self.file, self.rows, self.loaded_rows) = (file, rows, 0..0);
        }
        (self.epoch, self.order_index, self.file_order, self.row) =
            (epoch, order_index, file_order, 0);
        self.shuffle_rows();
        Ok(())
    }

    /// Returns the index of the random number stream that shuffles the files in epoch `epoch`.
    /// Stream `first_shuffle(epoch) + i` shuffles the rows of the epoch's `i`-th file, counted from
    /// 1.
    fn first_shuffle(&self, epoch: u64) -> u64 {
        epoch.wrapping_mul(self.files.len() as u64 + 1)
    }

    fn shuffle_rows(&mut self) {
        if self.shuffle.is_some() {
            let stream = self.first_shuffle(self.epoch).wrapping_add(1 + self.order_index as u64);
            self.row_order = order(self.shuffle, stream, self.rows);
        }
    }
}

/// Returns the indices `0..len`, shuffled with random number stream `stream` of `key`, or in
/// ascending order without a key.
fn order(key: Option<RngKey>, stream: u64, len: usize) -> Vec<usize> {
    let mut order: Vec<_> = (0..len).collect();
    if let Some(key) = key {
        order.shuffle(&mut key.child(stream).rng());
    }
    order
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
