//! Blobs into an HDF5 file.

use super::{Arity, Layer, LayerContext, PropagateDown};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    proto::{BlobProto, BlobShape, LayerParameter, expect_hdf5, write_hdf5_blobs},
};
use std::{
    iter,
    path::{Path, PathBuf},
};

/// The datasets' names, for each bottom.
const NAMES: [&str; 2] = ["data", "label"];

/// Writes its bottoms as the datasets `data` and `label` of `file_name`, with four axes, as Caffe
/// does; the items of each forward pass after those of the one before.
///
/// They are held in memory. The file is written at the first pass, and with all items by
/// [`write`](Self::write) or when the net is dropped, which tells an error to the log only.
#[doc(alias = "HDF5OutputLayer")]
pub struct Hdf5OutputLayer {
    path: PathBuf,
    held: [BlobProto; 2],
    passes: u64,
    /// Whether items came that are not written yet.
    stale: bool,
}

impl Hdf5OutputLayer {
    /// From the layer's parameters.
    ///
    /// # Errors
    /// [`Error::InvalidData`] without a `file_name`, and without the feature `hdf5`.
    pub fn new<D: Device>(param: &LayerParameter, _: &LayerContext<'_, D>) -> Result<Self> {
        let path = param.hdf5_output_param.clone().unwrap_or_default().file_name().to_owned();
        if path.is_empty() {
            return Err(Error::InvalidData("hdf5_output_param needs a file_name".into()));
        }
        expect_hdf5(iter::empty())?;
        let held = [BlobProto::default(), BlobProto::default()];
        Ok(Self { path: path.into(), held, passes: 0, stale: false })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the items that came so far: the file has them all or is as it was.
    ///
    /// # Errors
    /// [`Error::Io`].
    #[doc(alias = "SaveBlobs")]
    pub fn write(&mut self) -> Result<()> {
        if self.stale {
            write_hdf5_blobs(&self.path, NAMES.into_iter().zip(&self.held))?;
            self.stale = false;
        }
        Ok(())
    }
}

/// Adds a blob's items to those held.
fn add<T: Element, D: Device>(held: &mut BlobProto, blob: &Blob<T, D>) -> Result<()> {
    let item = [blob.channels()?, blob.height()?, blob.width()?].map(|extent| extent as i64);
    let shape = held.shape.get_or_insert_with(|| BlobShape { dim: [&[0], &item[..]].concat() });
    if shape.dim[1..] != item {
        let why = format!("items of {item:?} after {:?}", &shape.dim[1..]);
        return Err(Error::Shape(why));
    }
    let values = blob.to_proto(false)?;
    shape.dim[0] += blob.num()? as i64;
    held.data.extend(values.data);
    held.double_data.extend(values.double_data);
    Ok(())
}

impl<T: Element, D: Device> Layer<T, D> for Hdf5OutputLayer {
    fn kind(&self) -> &'static str {
        "HDF5Output"
    }

    fn arity(&self) -> Arity {
        Arity::exactly(2, 0)
    }

    fn reshape(&mut self, bottom: &[Blob<T, D>], _: &mut [Blob<T, D>]) -> Result<()> {
        let (data, labels) = (bottom[0].num()?, bottom[1].num()?);
        if data != labels {
            return Err(Error::Shape(format!("{data} items, but {labels} labels")));
        }
        Ok(())
    }

    fn forward(&mut self, _: &D, bottom: &[Blob<T, D>], _: &[Blob<T, D>]) -> Result<()> {
        for (held, bottom) in self.held.iter_mut().zip(bottom) {
            add(held, bottom)?;
        }
        self.stale = true;
        self.passes += 1;
        // What is wrong with the file is said before it has all been computed.
        if self.passes == 1 { self.write() } else { Ok(()) }
    }

    fn backward(
        &mut self,
        device: &D,
        _: &[Blob<T, D>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T, D>],
    ) -> Result<()> {
        for (bottom, _) in bottom.iter().zip(propagate.bottom).filter(|(_, wanted)| **wanted) {
            device.fill(T::default(), bottom.diff_mut()?.view_mut())?;
        }
        Ok(())
    }
}

impl Drop for Hdf5OutputLayer {
    fn drop(&mut self) {
        if let Err(error) = self.write() {
            log::error!("HDF5Output: {error}");
        }
    }
}
