//! Caffe's messages, and files of them: binary (caffemodel, solverstate, binaryproto) and text
//! (prototxt, with the feature `net`).
//!
//! The types are generated from `proto/caffe.proto` by [prost](https://docs.rs/prost). Rust spells
//! some names in its own way: `LRNParameter` is [`LrnParameter`], `ReLUParameter` is
//! [`ReLuParameter`], and what is declared inside a message lives in a module of its name, such as
//! [`pooling_parameter::PoolMethod`]. A field with a default has a method that gives it:
//! `filler.std()` is 1 unless `filler.std` says otherwise.
//!
//! Files in formats that Caffe has left behind are [upgraded](upgrade) by [`read_trained_net`] and, in
//! text, by `read_net` and `read_solver`; the other functions give what the file says.
//!
//! [`read_trained_net`] and [`read_solver_state`] also take HDF5 (`.caffemodel.h5`, `.solverstate.h5`),
//! with the feature `hdf5`.
//!
//! Binary files hold what Google's C++ library reads in them, with these differences:
//! - Fields that `proto/caffe.proto` does not know, as extended Caffes write them, are dropped
//!   unless a file is read and written through [`Unknown`]; text with such a field is an error
//!   unless it is read by `read_text_lossy`. An enum's unknown number stays in its field, whose method then gives the default.
//! - Strings are UTF-8. What is not, in text of another encoding, is read as U+FFFD, with a warning
//!   in the log; so it is written. In prototxt it is an error.
//! - A file is refused that has bytes but no known field, or a string that is neither UTF-8 nor
//!   text: it is of another kind.
//! - A file may be longer than 2 GiB.
//! - That a `required` field is missing is noticed in text, not in binary files.

mod binary;
mod splice;
mod hdf5;
mod files;
mod scan;
mod schema;
#[cfg(feature = "net")]
mod text;
mod unknown;
pub mod upgrade;
mod wire;

use crate::atomic_fs;

/// What prost generates, committed; the documentation of each type and field is in
/// `proto/caffe.proto`, and `tests/generated.rs` brings this up to date.
#[allow(missing_docs)]
mod generated {
    include!("generated/caffe.rs");
}

pub use binary::{parse_binary, read_binary, write_binary};
pub use generated::*;
pub use prost::{Message, Name};
#[cfg(feature = "net")]
pub use files::{read_net, read_solver};
pub use files::{read_solver_state, read_trained_net, write_solver_state, write_trained_net};
pub use scan::PathStep;
#[cfg(feature = "net")]
pub use text::{parse_text, parse_text_lossy, read_text, read_text_lossy, to_text, write_text};
pub use unknown::UnknownFields;
#[cfg(feature = "net")]
pub(crate) use {
    hdf5::{expect_hdf5, write_hdf5_blobs},
    files::logged,
};
