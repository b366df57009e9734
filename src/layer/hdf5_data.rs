//! Batches out of HDF5 files.

use super::{Arity, Layer, LayerContext, PropagateDown};
use crate::{
    blob::Blob,
    data::Hdf5Rows,
    device::Device,
    element::Element,
    error::{Error, Result},
    proto::LayerParameter,
};

/// Hands out rows of the HDF5 files that `source` lists, one a line: each top is the dataset of its
/// name, `batch_size` rows of it at a time, over the ends of files and round and round.
///
/// With `shuffle` the files are mixed for each round, and the rows within each file.
#[doc(alias = "HDF5DataLayer")]
pub struct Hdf5DataLayer {
    rows: Hdf5Rows,
    batch: usize,
}

impl Hdf5DataLayer {
    /// From the layer's parameters; opens the first file.
    ///
    /// # Errors
    /// Those of [`Hdf5Rows::open`]; [`Error::InvalidData`] for a `batch_size` of 0, and for
    /// `transform_param`, which is for records.
    pub fn new<D: Device>(param: &LayerParameter, cx: &LayerContext<'_, D>) -> Result<Self> {
        let data = param.hdf5_data_param.clone().unwrap_or_default();
        if param.transform_param.is_some() {
            let why = "HDF5Data hands out its rows as they are: it takes no transform_param";
            return Err(Error::InvalidData(why.into()));
        }
        let batch = data.batch_size() as usize;
        if batch == 0 {
            return Err(Error::InvalidData("hdf5_data_param needs a batch_size".into()));
        }
        let shuffle = data.shuffle().then(|| cx.key.named_child("shuffle"));
        let rows = Hdf5Rows::open(data.source(), &param.top, batch, shuffle)?;
        Ok(Self { rows, batch })
    }
}

impl<T: Element, D: Device> Layer<T, D> for Hdf5DataLayer {
    fn kind(&self) -> &'static str {
        "HDF5Data"
    }

    fn arity(&self) -> Arity {
        Arity::between(0..=0, 1..=usize::MAX)
    }

    fn reshape(&mut self, _: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        for (top, shape) in top.iter_mut().zip(self.rows.shapes()) {
            top.reshape(&[&[self.batch], &shape[..]].concat())?;
        }
        Ok(())
    }

    fn forward(&mut self, _: &D, _: &[Blob<T, D>], top: &[Blob<T, D>]) -> Result<()> {
        let mut data: Vec<_> = top.iter().map(Blob::data_mut).collect::<Result<_>>()?;
        let data = data.iter_mut().map(|data| data.host_write_only());
        let mut data: Vec<_> = data.collect::<Result<_>>()?;
        for item in 0..self.batch {
            for (data, row) in data.iter_mut().zip(self.rows.read()?) {
                let to = &mut data[item * row.len()..][..row.len()];
                to.iter_mut().zip(row).for_each(|(to, from)| *to = T::from_f64(*from));
            }
        }
        Ok(())
    }

    fn backward(
        &mut self,
        _: &D,
        _: &[Blob<T, D>],
        _: PropagateDown<'_>,
        _: &[Blob<T, D>],
    ) -> Result<()> {
        Ok(())
    }
}
