//! The command `cortado convert-mnist`, which converts MNIST's files to an LMDB database.

use super::database_writer::{DatabaseArgs, DatabaseWriter};
use clap::Args;
use cortado::{
    data::{IdxSource, Record, Source},
    error::Result,
    proto::Datum,
};
use std::path::PathBuf;

/// Convert MNIST's files to a database, as Caffe's convert_mnist_data does
///
/// The key of a record is its index as eight digits, starting at 00000000.
#[derive(Args)]
#[command(after_help = "Example: cortado convert-mnist train-images-idx3-ubyte.gz \
    train-labels-idx1-ubyte.gz examples/mnist/mnist_train_lmdb")]
pub(super) struct ConvertMnist {
    /// IDX file of images, optionally gzip-compressed
    images: PathBuf,
    /// IDX file of labels, optionally gzip-compressed
    labels: PathBuf,
    /// Folder of the new database
    #[arg(value_name = "DB")]
    database: PathBuf,
    #[command(flatten)]
    database_args: DatabaseArgs,
}

impl ConvertMnist {
    pub(super) fn run(self) -> Result<()> {
        let mut source = IdxSource::open_files(&self.images, &self.labels)?;
        let total = source.records();
        let mut writer = DatabaseWriter::new(&self.database, self.database_args, total)?;
        let mut record = Record::default();
        for index in 0..total.unwrap_or_default() {
            source.read(&mut record)?;
            writer.put(&format!("{index:08}"), &Datum::try_from(&record)?)?;
        }
        writer.finish()
    }
}
