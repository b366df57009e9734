//! `cortado inspect`

mod array;
mod kind;
mod read;
mod report;

use crate::error::{Error, Result};
use clap::Args;
use std::{
    io::{self, Write},
    path::PathBuf,
};

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
        let text = if self.json { report.json() } else { report.table() };
        let print = || {
            let mut out = io::stdout().lock();
            out.write_all(text.as_bytes())?;
            out.flush()
        };
        print().map_err(|error: io::Error| Error::io("standard output", error))
    }
}
