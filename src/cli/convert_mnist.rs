//! `cortado convert-mnist`

use super::database_writer::{DatabaseArgs, DatabaseWriter};
use crate::{
    data::{IdxSource, Record, Source},
    error::Result,
    proto::Datum,
};
use clap::Args;
use std::path::PathBuf;

/// Makes a database of MNIST's files, as Caffe's convert_mnist_data does
///
/// Record i has the key i in eight digits.
#[derive(Args)]
#[command(after_help = "Example: cortado convert-mnist train-images-idx3-ubyte.gz \
    train-labels-idx1-ubyte.gz examples/mnist/mnist_train_lmdb")]
pub(super) struct ConvertMnist {
    /// IDX file of images, as it is or gzipped
    images: PathBuf,
    /// IDX file of their labels
    labels: PathBuf,
    /// Folder to be made
    #[arg(value_name = "DB")]
    database: PathBuf,
    #[command(flatten)]
    options: DatabaseArgs,
}

impl ConvertMnist {
    pub(super) fn run(self) -> Result<()> {
        let mut source = IdxSource::open_files(&self.images, &self.labels)?;
        let total = source.records();
        let mut conversion = DatabaseWriter::new(&self.database, self.options, total)?;
        let mut record = Record::default();
        for index in 0..total.unwrap_or_default() {
            source.read(&mut record)?;
            conversion.put(&format!("{index:08}"), &Datum::try_from(&record)?)?;
        }
        conversion.finish()
    }
}
