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
//! What differs from Caffe's own reading of files:
//! - Fields that `proto/caffe.proto` does not know, as extended Caffes write them, are dropped when
//!   binary files are read; text with such a field is an error.
//! - Strings are UTF-8; a file with other bytes in a string is refused.
//! - A binary file is read to its end, and a known field in another wire type is an error: Caffe
//!   stops at the first zero byte in place of a field, and skips the other as unknown.
//! - That a `required` field is missing is noticed in text, not in binary files.

mod binary;
mod read;
#[cfg(feature = "net")]
mod text;
pub mod upgrade;

use crate::file;

/// What prost generates; the documentation of each type and field is in `proto/caffe.proto`.
#[allow(missing_docs)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/caffe.rs"));
}

pub use binary::{parse_binary, read_binary, write_binary};
pub use generated::*;
pub use prost::{Message, Name};
#[cfg(feature = "net")]
pub(crate) use read::logged;
pub use read::read_trained_net;
#[cfg(feature = "net")]
pub use read::{read_net, read_solver};
#[cfg(feature = "net")]
pub use text::{parse_text, read_text, to_text, write_text};
