//! Caffe's protobuf messages, in binary form (caffemodel, solverstate, binaryproto), as text
//! (prototxt, with the feature `net`) and as HDF5 (with the feature `hdf5`).
//!
//! The Rust types of the messages in `proto/caffe.proto` have the form that
//! [prost](https://docs.rs/prost) generates. Some type names differ from Caffe's in capitalization:
//! Caffe's `LRNParameter` is [`LrnParameter`], and Caffe's `ReLUParameter` is [`ReLuParameter`]. An
//! enum declared inside a message is in a module with the message's name, such as
//! [`pooling_parameter::PoolMethod`]. A field of type number, string or enum has a getter, which
//! returns the default if the field is unset; for example, `filler.std()` returns 1 unless
//! `filler.std` is `Some`. An enum field stores the number of its value, and has a setter besides
//! the getter, such as `set_pool`.
//!
//! [`read_trained_net`], `read_net` and `read_solver` [upgrade] files in Caffe's older formats.
//! [`read_binary`] and similar readers leave the message in the file's format, without an upgrade.
//!
//! [`read_trained_net`] and [`read_solver_state`] also read HDF5 files (`.caffemodel.h5`,
//! `.solverstate.h5`).
//!
//! The reader of binary files differs from protobuf's C++ library:
//! - The reader drops unknown fields, which forks of Caffe write, unless the caller reads and
//!   writes the file through [`UnknownFields`]. In prototxt, an unknown field is an error unless
//!   the caller uses `read_text_lossy` or `parse_text_lossy`.
//! - An enum field keeps a number that the enum does not declare; for such a number, the field's
//!   getter returns the default.
//! - Strings are UTF-8. In a binary file, the reader replaces bytes that are not UTF-8 by U+FFFD
//!   and logs a warning. In prototxt, a string that is not UTF-8 is an error.
//! - The reader rejects a file that cannot be a message of the requested type: a non-empty file
//!   without a known field, or a file with a string that is not UTF-8 and contains control
//!   characters.
//! - The reader accepts a binary file that is longer than 2 GiB.
//! - A missing `required` field is an error in text, but not in binary files.

mod binary;
mod files;
mod hdf5;
mod messages;
mod scan;
mod schema;
mod splice;
#[cfg(feature = "net")]
mod text;
mod unknown;
pub mod upgrade;
mod wire;

pub use binary::{parse_binary, read_binary, write_binary};
#[cfg(feature = "net")]
pub use files::{read_net, read_solver};
pub use files::{read_solver_state, read_trained_net, write_solver_state, write_trained_net};
#[cfg(all(feature = "hdf5", feature = "net"))]
pub(crate) use hdf5::{LimitedFile, read_half};
pub use messages::*;
pub use prost::{Message, Name};
pub use scan::PathStep;
pub use schema::CaffeMessage;
#[cfg(feature = "net")]
pub use text::{parse_text, parse_text_lossy, read_text, read_text_lossy, to_text, write_text};
pub use unknown::UnknownFields;
#[cfg(feature = "net")]
pub(crate) use {
    files::log_changes,
    hdf5::{check_hdf5_names, write_hdf5_blobs},
    text::layer_lines,
};
