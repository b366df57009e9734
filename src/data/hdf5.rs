//! Rows of the datasets in HDF5 files.

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

/// The rows of datasets in the files that a list names, one a line, round and round.
///
/// A row is what lies at one place of the first axis, in each dataset. In order, rows are read some
/// at a time; shuffled, a file at a time. What comes when depends on the key alone.
#[doc(alias = "HDF5DataLayer")]
pub struct Hdf5Rows {
    files: Vec<PathBuf>,
    names: Vec<String>,
    /// Of a row of each dataset.
    shapes: Vec<Vec<usize>>,
    shuffle: Option<RngKey>,
    /// Rows read at once, where they come in order.
    slice: usize,
    /// The files' order in this round, and the place in it.
    order: Vec<usize>,
    place: usize,
    /// How often an order was drawn.
    drawn: u64,
    file: Datasets,
    rows: usize,
    row: usize,
    /// The rows' order in this file, if shuffled, else empty.
    mixed: Vec<usize>,
    /// Which rows are held, and their values for each dataset.
    held: Range<usize>,
    values: Vec<Vec<f64>>,
}

impl Hdf5Rows {
    /// The datasets of these `names`, read `slice` rows at a time.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::InvalidData`] for a list without files, a dataset that is not there or
    /// not of numbers, datasets of unlike numbers of rows, or no rows; without the feature `hdf5`,
    /// for all.
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
        let mut order: Vec<_> = (0..files.len()).collect();
        let mut drawn = 0;
        mix(shuffle, &mut drawn, &mut order);
        let Some(first) = order.first().map(|&first| &files[first]) else {
            return Err(Error::InvalidData(format!("{}: it lists no files", list.display())));
        };
        let (file, rows, shapes) = open(first, names)?;
        let mut opened = Self {
            files,
            names: names.to_vec(),
            shapes,
            shuffle,
            slice: slice.max(1),
            order,
            place: 0,
            drawn,
            file,
            rows,
            row: 0,
            mixed: Vec::new(),
            held: 0..0,
            values: vec![Vec::new(); names.len()],
        };
        opened.mix_rows();
        Ok(opened)
    }

    /// Shapes of a row of each dataset.
    pub fn shapes(&self) -> &[Vec<usize>] {
        &self.shapes
    }

    /// The next row: its values in each dataset.
    ///
    /// # Errors
    /// Those of opening the next file; [`Error::Shape`] if its rows have another shape.
    pub fn read(&mut self) -> Result<impl Iterator<Item = &[f64]>> {
        if self.row == self.rows {
            self.next_file()?;
        }
        let row = self.mixed.get(self.row).copied().unwrap_or(self.row);
        if !self.held.contains(&row) {
            let held = match self.mixed.is_empty() {
                true => row..self.rows.min(row.saturating_add(self.slice)),
                false => 0..self.rows,
            };
            self.held = 0..0;
            for (name, values) in self.names.iter().zip(&mut self.values) {
                *values = self.file.read(name, &held)?;
            }
            self.held = held;
        }
        self.row += 1;
        let at = row - self.held.start;
        let rows = self.shapes.iter().zip(&self.values);
        Ok(rows.map(move |(shape, values)| {
            let len = shape.iter().product();
            &values[at * len..][..len]
        }))
    }

    /// Goes to the start of the next file.
    fn next_file(&mut self) -> Result<()> {
        let mut place = self.place + 1;
        if place == self.order.len() {
            place = 0;
            mix(self.shuffle, &mut self.drawn, &mut self.order);
        }
        // The one file there is stays open.
        if self.order.len() > 1 {
            let path = &self.files[self.order[place]];
            let (file, rows, shapes) = open(path, &self.names)?;
            if shapes != self.shapes {
                let why = format!("rows of shapes {shapes:?} after {:?}", self.shapes);
                return Err(Error::Shape(format!("{}: {why}", path.display())));
            }
            (self.file, self.rows, self.held) = (file, rows, 0..0);
        }
        (self.place, self.row) = (place, 0);
        self.mix_rows();
        Ok(())
    }

    fn mix_rows(&mut self) {
        if self.shuffle.is_some() {
            self.mixed = (0..self.rows).collect();
            mix(self.shuffle, &mut self.drawn, &mut self.mixed);
        }
    }
}

/// Mixes an order with the stream of the next number.
fn mix(key: Option<RngKey>, drawn: &mut u64, order: &mut [usize]) {
    if let Some(key) = key {
        order.shuffle(&mut key.child(*drawn).rng());
        *drawn += 1;
    }
}

/// A file, the rows of its datasets, and the shape of a row of each.
fn open(path: &Path, names: &[String]) -> Result<(Datasets, usize, Vec<Vec<usize>>)> {
    let file = Datasets::open(path)?;
    let invalid = |why: String| Error::InvalidData(format!("{}: {why}", path.display()));
    let (mut rows, mut shapes) = (None, Vec::new());
    for name in names {
        let shape = file.shape(name)?;
        let Some((&count, rest)) = shape.split_first() else {
            return Err(invalid(format!("`{name}` is one number, without rows")));
        };
        let first = *rows.get_or_insert(count);
        if count != first || count == 0 {
            let why = format!("`{name}` has {count} rows, `{}` {first}", names[0]);
            return Err(invalid(if count == 0 { format!("`{name}` has no rows") } else { why }));
        }
        shapes.push(rest.to_vec());
    }
    Ok((file, rows.unwrap_or(0), shapes))
}

#[cfg(all(test, feature = "hdf5"))]
mod tests;
