//! The command `cortado inspect`, which prints the contents of a file.

mod array;
mod database;
mod file_kind;
mod read;
mod report;

use super::{
    escape::escape_json,
    output::{print, print_unescaped},
};
use clap::Args;
use cortado::error::Result;
use std::path::PathBuf;

/// Print the contents of a file: layers, fields, and arrays with statistics
///
/// Reads definitions of nets and solvers; trained nets and solver states, also as HDF5; Caffe's
/// blobs; NumPy's .npy and .npz files; safetensors files; and LMDB databases. The command detects a
/// file's format by its extension, or else by its content. Statistics include finite values only.
#[derive(Args)]
#[command(after_help = "Example: cortado inspect examples/digits/lenet_iter_1000.caffemodel")]
pub(super) struct Inspect {
    /// File to read, or folder of an LMDB database
    file: PathBuf,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
}

impl Inspect {
    pub(super) fn run(self) -> Result<()> {
        let report = read::report(&self.file)?;
        match self.json {
            true => print_unescaped(&escape_json(&report.json())),
            false => print(&report.table()),
        }
    }
}
