//! `cortado inspect`

mod array;
mod file_kind;
mod read;
mod report;

use super::print;
use crate::error::Result;
use clap::Args;
use std::path::PathBuf;

/// Prints what is in a file: layers, fields, and arrays with statistics of their values
///
/// Reads definitions of nets and solvers, trained nets and solver states, also as HDF5, and blobs of
/// Caffe's, NumPy's .npy and .npz, and safetensors. The name's ending tells the kind, or else the content.
/// Statistics are those of the finite values.
#[derive(Args)]
#[command(after_help = "Example: cortado inspect examples/digits/lenet_iter_1000.caffemodel")]
pub(super) struct Inspect {
    /// File to read
    file: PathBuf,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

impl Inspect {
    pub(super) fn run(self) -> Result<()> {
        let report = read::report(&self.file)?;
        print(&if self.json { report.json() } else { report.table() })
    }
}
