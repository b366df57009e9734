//! Generates what the crate is not written in by hand; a function per subject.

use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
};

use prost_build::Config;
use protox::prost::Message;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    caffe_messages(&PathBuf::from(env::var("OUT_DIR")?))
}

/// Messages whose Rust names differ from Caffe's in capitals; documented under both.
const RENAMED: [&str; 8] = [
    "ELUParameter",
    "HDF5DataParameter",
    "HDF5OutputParameter",
    "LRNParameter",
    "MVNParameter",
    "PReLUParameter",
    "ReLUParameter",
    "SPPParameter",
];

/// Rust types (`caffe.rs`) and descriptors (`caffe.fds`) of the messages in `proto/caffe.proto`,
/// compiled in Rust: no `protoc` needs to be installed.
fn caffe_messages(out: &Path) -> Result<(), Box<dyn Error>> {
    const SOURCE: &str = "proto/caffe.proto";
    println!("cargo::rerun-if-changed={SOURCE}");

    let mut messages = protox::compile([SOURCE], ["proto"])?;
    let mut config = Config::new();
    config.out_dir(out).enable_type_names();
    for name in RENAMED {
        config.message_attribute(format!(".caffe.{name}"), format!("#[doc(alias = \"{name}\")]"));
    }
    config.compile_fds(messages.clone())?;

    // Comments have become documentation; the descriptors in the library do without.
    for file in &mut messages.file {
        file.source_code_info = None;
    }
    fs::write(out.join("caffe.fds"), messages.encode_to_vec())?;
    Ok(())
}
