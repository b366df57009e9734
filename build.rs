//! Generates what the crate is not written in by hand; a function per subject.

use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
};

use prost_build::Config;
use protox::{
    prost::Message,
    prost_reflect::{DescriptorPool, FieldDescriptor, Kind, MessageDescriptor},
};

#[path = "build/cuda.rs"]
mod cuda;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    if env::var_os("CARGO_FEATURE_CUDA").is_some() {
        cuda::kernels(&out)?;
    }
    caffe_messages(&out)
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

/// Rust types (`caffe.rs`), tables of fields (`caffe_schema.rs`) and descriptors (`caffe.fds`) of
/// the messages in `proto/caffe.proto`, compiled in Rust: no `protoc` needs to be installed.
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
    fs::write(out.join("caffe_schema.rs"), schema(messages.clone())?)?;

    // Comments have become documentation; the descriptors in the library do without.
    for file in &mut messages.file {
        file.source_code_info = None;
    }
    fs::write(out.join("caffe.fds"), messages.encode_to_vec())?;
    Ok(())
}

/// What `src/proto/schema.rs` includes: its table of messages, as Rust code.
///
/// The descriptors themselves would need a library to read them, which a build without the text
/// format does without.
fn schema(
    messages: protox::prost_reflect::prost_types::FileDescriptorSet,
) -> Result<String, Box<dyn Error>> {
    let pool = DescriptorPool::from_file_descriptor_set(messages)?;
    let all: Vec<MessageDescriptor> = pool.all_messages().collect();
    let mut code = format!("pub(super) static MESSAGES: [Schema; {}] = [\n", all.len());
    for message in &all {
        code += &format!("Schema {{ name: {:?}, fields: &[\n", message.full_name());
        for field in message.fields() {
            code += &format!(
                "Field {{ name: {:?}, number: {}, repeated: {}, kind: Kind::{} }},\n",
                field.name(),
                field.number(),
                field.is_list(),
                kind(&field, &all)?,
            );
        }
        code += "] },\n";
    }
    Ok(code + "];\n")
}

/// How a field's values are encoded; a nested message by its place in the table.
fn kind(field: &FieldDescriptor, all: &[MessageDescriptor]) -> Result<String, Box<dyn Error>> {
    Ok(match field.kind() {
        Kind::Message(message) if !field.is_group() => {
            let place = all.iter().position(|other| *other == message);
            format!("Message({})", place.ok_or("a message that is not in the pool")?)
        }
        Kind::Message(_) => {
            return Err(format!("{}: groups are not supported", field.full_name()).into());
        }
        Kind::String => "Text".into(),
        Kind::Bytes => "Bytes".into(),
        Kind::Float | Kind::Fixed32 | Kind::Sfixed32 => "Fixed32".into(),
        Kind::Double | Kind::Fixed64 | Kind::Sfixed64 => "Fixed64".into(),
        _ => "Varint".into(),
    })
}
