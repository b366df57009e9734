//! The HDF5Data layer: batches from HDF5 files.

use super::{position, prelude::*, shard::Shard};
use crate::{data::Hdf5Rows, proto::LayerState};

/// A layer whose tops hold batches of rows from HDF5 files. The text file `source` lists the HDF5
/// files, one per line. Each top holds `batch_size` rows of the dataset with the same name as the
/// top. A batch may span several HDF5 files. After the last HDF5 file, the layer continues with the
/// first file.
///
/// In a run with several shards, the layer takes the rows of its [`Shard`].
///
/// With `shuffle`, the layer shuffles the files, and the rows within each file, in every epoch.
///
/// ```no_run
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"layer { type: "HDF5Data" top: "x" top: "t"
///     hdf5_data_param { source: "train-files.txt" batch_size: 32 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.forward()?;
/// assert_eq!(net.blob("x").unwrap().shape()[0], 32);
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "HDF5DataLayer")]
pub struct Hdf5DataLayer {
    rows: Hdf5Rows,
    batch: usize,
    tops: usize,
    shard: Shard,
}

impl Hdf5DataLayer {
    /// Creates the layer and opens the first HDF5 file.
    ///
    /// # Errors
    /// Returns any error from [`Hdf5Rows::open`]. Returns [`Error::InvalidData`] if `batch_size` is
    /// 0, or if `transform_param` is set, because `transform_param` applies only to layers that
    /// read records.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        let data = param.hdf5_data_param.clone().unwrap_or_default();
        if param.transform_param.is_some() {
            return invalid("HDF5Data does not support transform_param");
        }
        let batch = data.batch_size() as usize;
        if batch == 0 {
            return invalid("hdf5_data_param: batch_size must be positive");
        }
        let shuffle = data.shuffle().then(|| cx.key.named_child("shuffle"));
        let mut rows = Hdf5Rows::open(data.source(), &param.top, batch, shuffle)?;
        let shard = cx.shard.in_phase(cx.phase);
        rows.skip(shard.index)?;
        Ok(Self { rows, batch, tops: param.top.len(), shard })
    }
}

impl<T: Element> Layer<T> for Hdf5DataLayer {
    fn kind(&self) -> &'static str {
        "HDF5Data"
    }

    fn arity(&self) -> Arity {
        Arity::exactly(0, self.tops.max(1))
    }

    fn reshape(&mut self, _: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        for (top, shape) in top.iter_mut().zip(self.rows.shapes()) {
            top.reshape(&[&[self.batch], &shape[..]].concat())?;
        }
        Ok(())
    }

    fn state(&self) -> Result<Option<LayerState>> {
        position::state(self.rows.position())
    }

    fn set_state(&mut self, state: &LayerState) -> Result<()> {
        self.rows.seek(self.shard.first_record_from(position::of(state)?))
    }

    fn skip_passes(&mut self, passes: u64) -> Result<bool> {
        let rows = (self.batch as u64).saturating_mul(self.shard.count).saturating_mul(passes);
        self.rows.seek(self.rows.position().saturating_add(rows))?;
        Ok(true)
    }

    fn forward(&mut self, _: &AnyDevice, _: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let mut data: Vec<_> = top.iter().map(Blob::data_mut).collect::<Result<_>>()?;
        let data = data.iter_mut().map(|data| data.host_write_only());
        let mut data: Vec<_> = data.collect::<Result<_>>()?;
        for item in 0..self.batch {
            for (data, row) in data.iter_mut().zip(self.rows.read()?) {
                let to = &mut data[item * row.len()..][..row.len()];
                to.iter_mut().zip(row).for_each(|(to, from)| *to = T::from_f64(*from));
            }
            self.rows.skip(self.shard.count.saturating_sub(1))?;
        }
        Ok(())
    }
}
