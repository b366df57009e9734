//! Trains LeNet in processes that are limited to different SIMD levels, and compares the snapshots.

use cortado::{
    CpuDevice,
    proto::{Message, NetParameter},
    solver::{Solver, read_definition},
};
use std::{env, fs, path::Path, process::Command};

const ITERATIONS: i32 = 3;

/// Environment variable that names the folder to which [`lenet_trains`] writes its snapshot.
const FOLDER: &str = "CORTADO_LENET_FOLDER";

/// Trains LeNet on the built-in digits in this process, and writes a snapshot to the folder that
/// `CORTADO_LENET_FOLDER` names, or to a temporary folder without this variable.
#[test]
fn lenet_trains() {
    let temporary_folder = tempfile::tempdir().unwrap();
    let folder = env::var_os(FOLDER).unwrap_or_else(|| temporary_folder.path().into());
    let mut definition = read_definition("examples/digits/solver.prototxt").unwrap();
    definition.max_iter = Some(ITERATIONS);
    definition.test_initialization = Some(false);
    definition.test_interval = Some(ITERATIONS + 1);
    definition.snapshot_prefix = Some(Path::new(&folder).join("lenet").to_string_lossy().into());
    let mut solver = Solver::<f32>::new(definition, &CpuDevice::new()).unwrap();
    solver.solve().unwrap();
    let weights = weights_in(folder.as_ref());
    assert_eq!(weights.len(), 431_080);
    assert!(weights.iter().all(|weight| weight.is_finite()));
}

fn snapshot_in(folder: &Path) -> Vec<u8> {
    fs::read(folder.join(format!("lenet_iter_{ITERATIONS}.caffemodel"))).unwrap()
}

fn weights_in(folder: &Path) -> Vec<f32> {
    let net = NetParameter::decode(snapshot_in(folder).as_slice()).unwrap();
    net.layer.into_iter().flat_map(|layer| layer.blobs).flat_map(|blob| blob.data).collect()
}

#[test]
fn lenet_snapshots_are_bit_identical_under_every_simd_limit() {
    let folders = ["avx512", "avx2", "portable"].map(|level| {
        let folder = tempfile::tempdir().unwrap();
        let output = Command::new(env::current_exe().unwrap())
            .args(["--exact", "lenet_trains"])
            .envs([("CORTADO_SIMD", level.as_ref()), (FOLDER, folder.path().as_os_str())])
            .output()
            .unwrap();
        assert!(output.status.success(), "{level}: {output:?}");
        folder
    });
    let [avx512, avx2, portable] = folders.each_ref().map(|folder| snapshot_in(folder.path()));
    assert!(avx512 == avx2, "AVX-512 and AVX2 differ");
    assert!(avx2 == portable, "AVX2 and portable differ");
}
