//! Checks of the suffixes of output files, which select the output format.

use cortado::error::{Error, Result};
use std::path::Path;

/// Fails if the suffix of `path` is not `.svg`. A path without a suffix is valid.
pub(super) fn check_svg(path: &Path) -> Result<()> {
    match suffix(path) {
        Some(suffix) if suffix != "svg" => Err(refusal(path, &suffix, "SVG", "svg")),
        _ => Ok(()),
    }
}

/// Fails if the suffix of `path` is not `.onnx`. A path without a suffix is valid.
pub(super) fn check_onnx(path: &Path) -> Result<()> {
    match suffix(path) {
        Some(suffix) if suffix != "onnx" => Err(refusal(path, &suffix, "ONNX", "onnx")),
        _ => Ok(()),
    }
}

/// Fails if the suffix of `path` belongs to a format other than Caffe's binary protobuf format.
/// Caffe accepts any suffix, so unknown suffixes are valid.
pub(super) fn check_binaryproto(path: &Path) -> Result<()> {
    const OTHER_SUFFIXES: [&str; 8] =
        ["h5", "jpeg", "jpg", "npy", "npz", "png", "prototxt", "safetensors"];
    match suffix(path) {
        Some(suffix) if OTHER_SUFFIXES.contains(&&*suffix) => {
            Err(refusal(path, &suffix, "Caffe's binary format", "binaryproto"))
        }
        _ => Ok(()),
    }
}

fn suffix(path: &Path) -> Option<String> {
    path.extension().map(|suffix| suffix.to_string_lossy().to_lowercase())
}

fn refusal(path: &Path, suffix: &str, format: &str, expected: &str) -> Error {
    let reason = format!("cannot write `.{suffix}`, only {format}; use the suffix .{expected}");
    Error::InvalidData(reason).context(path.display().to_string())
}
