//! The command `cortado convert-cifar`, which converts the CIFAR-10 files to LMDB databases.

use super::database_writer::{Backend, DatabaseArgs, DatabaseWriter};
use clap::Args;
use cortado::{
    error::{Error, Result},
    proto::Datum,
};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Convert the CIFAR-10 files to databases, as Caffe's convert_cifar_data does
///
/// The command reads data_batch_1.bin to data_batch_5.bin and test_batch.bin, and writes the
/// databases cifar10_train_lmdb and cifar10_test_lmdb. The key of a record is its index as five
/// digits, starting at 00000.
#[derive(Args)]
#[command(after_help = "Example: cortado convert-cifar data/cifar10 examples/cifar10 lmdb")]
pub(super) struct ConvertCifar {
    /// Folder of the extracted binary version of CIFAR-10
    #[arg(value_name = "FOLDER")]
    input: PathBuf,
    /// Folder in which the databases are created
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// Format of the databases (alternative to --backend)
    #[arg(value_enum, conflicts_with = "backend")]
    db_type: Option<Backend>,
    #[command(flatten)]
    database_args: DatabaseArgs,
}

/// Extents of an image: three channels of 32 rows and 32 columns.
const SHAPE: [i32; 3] = [3, 32, 32];
/// Length of a record in bytes: one byte for the label, then the pixels.
const RECORD_BYTES: usize = 1 + 3 * 32 * 32;

impl ConvertCifar {
    pub(super) fn run(self) -> Result<()> {
        // LMDB is the only format, so the argument cannot differ from the default of --backend.
        let (Backend::Lmdb, args) = (self.db_type.unwrap_or(Backend::Lmdb), self.database_args);
        let training: Vec<_> = (1..=5).map(|part| format!("data_batch_{part}.bin")).collect();
        let sets = [("train", training), ("test", vec!["test_batch.bin".into()])];
        // Create both databases first, so that nothing is converted if one of them exists.
        let writers = sets.map(|(set, files)| {
            let files: Vec<_> = files.iter().map(|file| self.input.join(file)).collect();
            let path = self.output.join(format!("cifar10_{set}_lmdb"));
            let total = files.iter().map(|file| record_count(file)).sum::<Result<u64>>()?;
            Ok((DatabaseWriter::new(&path, args, Some(total))?, files))
        });
        let writers = writers.into_iter().collect::<Result<Vec<_>>>()?;
        writers.into_iter().try_for_each(|(mut writer, files)| {
            let mut index = 0;
            for file in &files {
                store(file, &mut writer, &mut index)?;
            }
            writer.finish()
        })
    }
}

/// Returns the number of records of a file. Fails if the file is empty, or if its size is not a
/// multiple of the size of a record.
fn record_count(file: &Path) -> Result<u64> {
    let bytes = fs::metadata(file).map_err(|error| Error::io(file, error))?.len();
    match (bytes / RECORD_BYTES as u64, bytes % RECORD_BYTES as u64) {
        (1.., 0) => Ok(bytes / RECORD_BYTES as u64),
        _ => Err(Error::InvalidData(format!(
            "{}: {bytes} bytes, expected records of {RECORD_BYTES} bytes; extract the binary \
             version of CIFAR-10",
            file.display()
        ))),
    }
}

/// Appends the records of a file to the database; `next` is the index of the next record.
fn store(file: &Path, writer: &mut DatabaseWriter, next: &mut u64) -> Result<()> {
    let bytes = fs::read(file).map_err(|error| Error::io(file, error))?;
    let [channels, height, width] = SHAPE.map(Some);
    for record in bytes.chunks_exact(RECORD_BYTES) {
        let (label, data) = (Some(i32::from(record[0])), Some(record[1..].to_vec()));
        let datum = Datum { channels, height, width, data, label, ..Default::default() };
        writer.put(&format!("{next:05}"), &datum)?;
        *next += 1;
    }
    Ok(())
}
