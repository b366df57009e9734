//! Decoding of all PTX that ships.

use ptx_machine::{Module, Precision};
use std::{fs, path::Path};

/// Returns the PTX files, as modules.
fn modules() -> Vec<Module> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels/ptx");
    let mut modules = Vec::new();
    for capability in ["sm_75", "sm_80"] {
        for entry in fs::read_dir(root.join(capability)).unwrap() {
            let path = entry.unwrap().path();
            let name = format!("{capability}/{}", path.file_name().unwrap().to_str().unwrap());
            modules.push(Module::new(&name, &fs::read_to_string(path).unwrap()).unwrap());
        }
    }
    modules
}

#[test]
fn every_kernel_decodes() {
    let (mut count, mut errors) = (0, Vec::new());
    for module in modules() {
        for name in module.kernel_names() {
            count += 1;
            errors.extend(module.kernel(name, Precision::Least).err());
        }
    }
    assert!(
        errors.is_empty(),
        "{} errors: {}",
        errors.len(),
        errors[..errors.len().min(20)].join("\n")
    );
    assert!(count > 1000, "{count} kernels");
}
