//! Trained nets and solver states in HDF5 files, in Caffe's layout.
//!
//! Only the modules `half_precision`, `limited_file`, `reader` and `writer` depend on the HDF5 library
//! (feature `hdf5`). Without the feature `hdf5`, the module `disabled` replaces all modules except `detect`,
//! and reading or writing an HDF5 file returns an error.

mod detect;
#[cfg(not(feature = "hdf5"))]
mod disabled;
#[cfg(feature = "hdf5")]
mod half_precision;
#[cfg(feature = "hdf5")]
mod limited_file;
#[cfg(feature = "hdf5")]
mod net;
#[cfg(feature = "hdf5")]
mod node;
#[cfg(feature = "hdf5")]
mod reader;
#[cfg(feature = "hdf5")]
mod state;
#[cfg(feature = "hdf5")]
mod writer;

pub(super) use detect::{has_extension, is_hdf5};
#[cfg(feature = "net")]
pub(crate) use net::{check_hdf5_names, write_hdf5_blobs};
pub(super) use net::{read_net, write_net};
pub(super) use state::{read_state, write_state};
#[cfg(not(feature = "hdf5"))]
use {disabled as net, disabled as state};
#[cfg(all(feature = "hdf5", feature = "net"))]
pub(crate) use {half_precision::read_half, limited_file::LimitedFile};
