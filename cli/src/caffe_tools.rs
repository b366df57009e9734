//! Names of Caffe's programs, and the subcommands that replace them.

use std::{ffi::OsStr, path::Path};

/// One of Caffe's programs: its name, the subcommand that replaces it, and the flags with which the
/// subcommand behaves like the program.
pub(super) struct Tool {
    name: &'static str,
    pub(super) subcommand: &'static str,
    pub(super) flags: &'static [&'static str],
}

/// Caffe's programs other than `caffe`.
const TOOLS: [Tool; 9] = [
    Tool { name: "classification", subcommand: "classification", flags: &[] },
    Tool { name: "compute_image_mean", subcommand: "compute-image-mean", flags: &[] },
    Tool { name: "convert_cifar_data", subcommand: "convert-cifar", flags: &[] },
    Tool { name: "convert_imageset", subcommand: "convert-imageset", flags: &[] },
    Tool { name: "convert_mnist_data", subcommand: "convert-mnist", flags: &[] },
    Tool { name: "extract_features", subcommand: "extract-features", flags: &[] },
    Tool { name: "upgrade_net_proto_binary", subcommand: "upgrade-net", flags: &["--binary"] },
    Tool { name: "upgrade_net_proto_text", subcommand: "upgrade-net", flags: &["--text"] },
    Tool { name: "upgrade_solver_proto_text", subcommand: "upgrade-solver", flags: &[] },
];

/// Returns the tool with the given name, in which hyphens may replace underscores.
pub(super) fn by_name(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name.replace('-', "_"))
}

/// Returns the tool whose name is the file name in the path `program`. The file name may have the
/// extension `.bin`, as in Caffe's build folder, or `.exe`.
pub(super) fn by_program(program: &OsStr) -> Option<&'static Tool> {
    let file = Path::new(program).file_name()?.to_str()?;
    let stem = file.strip_suffix(".bin").or_else(|| file.strip_suffix(".exe")).unwrap_or(file);
    by_name(stem)
}
