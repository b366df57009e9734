//! The HDF5Output layer, which writes blobs to an HDF5 file.

use super::prelude::*;
use crate::proto::{BlobProto, BlobShape, check_hdf5_names, write_hdf5_blobs};
use std::{
    iter,
    path::{Path, PathBuf},
};

/// The names of the HDF5 datasets to which the layer writes its two bottoms.
const DATASET_NAMES: [&str; 2] = ["data", "label"];

/// A layer that writes its two bottoms to the datasets `data` and `label` of the HDF5 file
/// `file_name`. As in Caffe, each dataset has four axes. Each forward pass appends the items of the
/// two bottoms to the datasets.
///
/// The layer keeps the items of all forward passes in memory. The layer writes the HDF5 file in the
/// first forward pass, in [`write`](Self::write), and when the layer is dropped. If the write on
/// drop fails, the error is only logged.
///
/// ```no_run
/// use cortado::{layer::Hdf5OutputLayer, prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" top: "t" input_param { shape { dim: 2 } } }
///     layer { name: "out" type: "HDF5Output" bottom: "x" bottom: "t"
///       hdf5_output_param { file_name: "features.h5" } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// (0..5).try_for_each(|_| net.forward().map(drop))?; // 10 items
/// net.layer_as::<Hdf5OutputLayer>("out").unwrap().write()?;
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "HDF5OutputLayer")]
pub struct Hdf5OutputLayer {
    path: PathBuf,
    datasets: [BlobProto; 2],
    passes: u64,
    unwritten: bool,
}

impl Hdf5OutputLayer {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if the definition gives no `file_name`, if the net belongs to
    /// a run with several shards, or if the crate is built without the feature `hdf5`.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        let path = param.hdf5_output_param.clone().unwrap_or_default().file_name().to_owned();
        if path.is_empty() {
            return invalid("hdf5_output_param: file_name is required");
        }
        if cx.shard.count > 1 {
            let count = cx.shard.count;
            return invalid(format!(
                "HDF5Output cannot write one file in a run with {count} shards; remove the layer \
                 or train with one shard"
            ));
        }
        check_hdf5_names(iter::empty())?;
        let datasets = [BlobProto::default(), BlobProto::default()];
        Ok(Self { path: path.into(), datasets, passes: 0, unwritten: false })
    }

    /// Returns the path of the HDF5 file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the items of all forward passes to the HDF5 file. If the write fails, an existing
    /// HDF5 file at [`path`](Self::path) is unchanged.
    ///
    /// # Errors
    /// Returns [`Error::Io`] if the HDF5 file cannot be written.
    #[doc(alias = "SaveBlobs")]
    pub fn write(&mut self) -> Result<()> {
        if self.unwritten {
            write_hdf5_blobs(&self.path, DATASET_NAMES.into_iter().zip(&self.datasets))?;
            self.unwritten = false;
        }
        Ok(())
    }
}

fn append<T: Element>(dataset: &mut BlobProto, blob: &Blob<T>) -> Result<()> {
    let item = [blob.channels()?, blob.height()?, blob.width()?].map(|extent| extent as i64);
    let shape = dataset.shape.get_or_insert_with(|| BlobShape { dim: [&[0], &item[..]].concat() });
    if shape.dim[1..] != item {
        return wrong_shape(format!("items: expected shape {:?}, found {item:?}", &shape.dim[1..]));
    }
    let values = blob.to_proto(false)?;
    shape.dim[0] += blob.num()? as i64;
    dataset.data.extend(values.data);
    dataset.double_data.extend(values.double_data);
    Ok(())
}

impl<T: Element> Layer<T> for Hdf5OutputLayer {
    fn kind(&self) -> &'static str {
        "HDF5Output"
    }

    fn arity(&self) -> Arity {
        Arity::exactly(2, 0)
    }

    fn reshape(&mut self, bottom: &[Blob<T>], _: &mut [Blob<T>]) -> Result<()> {
        let (data, labels) = (bottom[0].num()?, bottom[1].num()?);
        if data != labels {
            return wrong_shape(format!("{data} items do not match {labels} labels"));
        }
        Ok(())
    }

    fn forward(&mut self, _: &AnyDevice, bottom: &[Blob<T>], _: &[Blob<T>]) -> Result<()> {
        for (dataset, bottom) in self.datasets.iter_mut().zip(bottom) {
            append(dataset, bottom)?;
        }
        self.unwritten = true;
        self.passes += 1;
        // Write the HDF5 file in the first forward pass, so that an unwritable path is reported
        // early.
        if self.passes == 1 { self.write() } else { Ok(()) }
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        _: &[Blob<T>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        zero_gradients(device, propagate, bottom)
    }
}

impl Drop for Hdf5OutputLayer {
    fn drop(&mut self) {
        if let Err(error) = self.write() {
            log::error!("HDF5Output: {error}");
        }
    }
}
