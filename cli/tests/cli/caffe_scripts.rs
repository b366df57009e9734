//! Tests of runs that consist of several commands, as in Caffe's shell scripts for MNIST and
//! CIFAR-10.

use crate::{
    caffe_commands::{cifar_record, make_links, records, shell},
    command::{Folder, SOLVER},
    support::mnist_test_images,
};
use flate2::read::GzDecoder;
use std::{
    fs::{self, File},
    io,
};

/// Returns the definition of a net with a fully connected layer and with data layers that read
/// `database`.
fn net(database: &str, mean: &str) -> String {
    let data = |phase: &str, set: &str| {
        format!(
            r#"layer {{ name: "data" type: "Data" top: "data" top: "label"
                include {{ phase: {phase} }} transform_param {{ scale: 0.004 {mean} }}
                data_param {{ source: "{database}_{set}_lmdb" batch_size: 4 backend: LMDB }} }}"#
        )
    };
    let [train, test] = [data("TRAIN", "train"), data("TEST", "test")];
    format!(
        r#"name: "net" {train} {test}
        layer {{ name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
            inner_product_param {{ num_output: 10 weight_filler {{ type: "xavier" }} }} }}
        layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }}"#
    )
}

/// Returns the definition of a solver that writes snapshots and, like most of Caffe's solvers,
/// selects the GPU.
fn solver(net: &str, max_iter: u32, prefix: &str) -> String {
    format!(
        r#"net: "{net}" test_iter: 2 test_interval: 10 base_lr: 0.01 lr_policy: "fixed" display: 5
        max_iter: {max_iter} snapshot: 10 snapshot_prefix: "{prefix}" solver_mode: GPU"#
    )
}

/// Converts MNIST twice with `--backend`, then trains a net. As in Caffe's script, the command line
/// of `caffe train` ends with the flags that the user passes to the script.
#[test]
fn links_in_caffes_build_folder_convert_mnist_and_train() {
    let folder = Folder::new("caffe-mnist");
    make_links(&folder);
    for path in ["data/mnist", "examples/mnist"] {
        fs::create_dir_all(folder.path(path)).unwrap();
    }
    for part in ["images-idx3", "labels-idx1"] {
        let name = format!("t10k-{part}-ubyte");
        let gzip_file = File::open(mnist_test_images().join(format!("{name}.gz"))).unwrap();
        let mut file = File::create(folder.path("data/mnist").join(name)).unwrap();
        io::copy(&mut GzDecoder::new(gzip_file), &mut file).unwrap();
    }
    folder.write("examples/mnist/net.prototxt", net("examples/mnist/mnist", ""));
    let text = solver("examples/mnist/net.prototxt", 20, "examples/mnist/lenet");
    folder.write("examples/mnist/solver.prototxt", text);
    let script = r#"set -e
        TYPE="lmdb"
        for set in train test; do
            rm -rf examples/mnist/mnist_${set}_${TYPE}
            build/examples/mnist/convert_mnist_data.bin data/mnist/t10k-images-idx3-ubyte \
                data/mnist/t10k-labels-idx1-ubyte examples/mnist/mnist_${set}_${TYPE} \
                --backend=${TYPE}
        done
        ./build/tools/caffe train --solver=examples/mnist/solver.prototxt $FLAGS
    "#;
    for flags in ["", "-logtostderr -v=0 --gpu="] {
        let result = shell(&folder, &format!("FLAGS='{flags}'; {script}")).succeeded();
        assert_eq!(result.log.last().unwrap(), "Optimization Done.");
        assert!(folder.path("examples/mnist/lenet_iter_20.solverstate").exists());
    }
}

/// Converts CIFAR-10, computes the mean image, trains a net, and continues training from the last
/// snapshot with another solver.
#[test]
fn cifar_is_converted_and_trained_in_two_steps() {
    let folder = Folder::new("caffe-cifar");
    make_links(&folder);
    for path in ["data/cifar10", "examples/cifar10"] {
        fs::create_dir_all(folder.path(path)).unwrap();
    }
    let images = |seed: u8| (0..10).flat_map(move |i| cifar_record(i, 20 * i + seed)).collect();
    for batch in 1..=5 {
        let content: Vec<u8> = images(batch);
        folder.write(&format!("data/cifar10/data_batch_{batch}.bin"), content);
    }
    let content: Vec<u8> = images(9);
    folder.write("data/cifar10/test_batch.bin", content);
    let mean = r#"mean_file: "examples/cifar10/mean.binaryproto""#;
    folder.write("examples/cifar10/net.prototxt", net("examples/cifar10/cifar10", mean));
    for (name, max_iter) in [("solver", 10), ("solver_lr1", 20)] {
        let text = solver("examples/cifar10/net.prototxt", max_iter, "examples/cifar10/quick");
        folder.write(&format!("examples/cifar10/{name}.prototxt"), text);
    }
    let script = r#"set -e
        EXAMPLE=examples/cifar10
        rm -rf $EXAMPLE/cifar10_train_lmdb $EXAMPLE/cifar10_test_lmdb
        ./build/examples/cifar10/convert_cifar_data.bin data/cifar10 $EXAMPLE lmdb
        ./build/tools/compute_image_mean -backend=lmdb \
            $EXAMPLE/cifar10_train_lmdb $EXAMPLE/mean.binaryproto
        ./build/tools/caffe train --solver=$EXAMPLE/solver.prototxt
        ./build/tools/caffe train --solver=$EXAMPLE/solver_lr1.prototxt \
            --snapshot=$EXAMPLE/quick_iter_10.solverstate
    "#;
    let result = shell(&folder, script).succeeded();
    let end_count = result.log.iter().filter(|line| *line == "Optimization Done.").count();
    assert_eq!(end_count, 2, "{result:#?}");
    assert!(folder.path("examples/cifar10/quick_iter_20.caffemodel").exists());
    assert_eq!(records(&folder, "examples/cifar10/cifar10_train_lmdb").len(), 50);
    assert!(result.out.contains("mean_value channel [2]: 93"), "{result:#?}"); // 20 · 4.5 + 3

    // If one of the two databases exists, the conversion fails before it writes the other.
    // Conversion of a damaged CIFAR-10 file fails, too.
    let convert = "build/examples/cifar10/convert_cifar_data.bin data/cifar10";
    fs::remove_dir_all(folder.path("examples/cifar10/cifar10_train_lmdb")).unwrap();
    shell(&folder, &format!("{convert} examples/cifar10 lmdb"))
        .failed_with(&["cifar10_test_lmdb: already exists"]);
    assert!(!folder.path("examples/cifar10/cifar10_train_lmdb").exists());
    shell(&folder, &format!("{convert} . leveldb")).refused_with(&["'leveldb'", "lmdb"]);
    folder.write("data/cifar10/data_batch_2.bin", [0; 3074]);
    shell(&folder, &format!("{convert} . lmdb"))
        .failed_with(&["data_batch_2.bin: 3074 bytes, expected records of 3073 bytes"]);
    fs::remove_file(folder.path("data/cifar10/data_batch_2.bin")).unwrap();
    shell(&folder, &format!("{convert} . lmdb")).failed_with(&["data_batch_2.bin: No such file"]);
}

/// One of Caffe's scripts resumes from a `.solverstate`, although its solver writes HDF5 snapshots.
#[cfg(feature = "hdf5")]
#[test]
fn a_snapshot_is_found_without_the_extension_h5() {
    let folder = Folder::new("caffe-hdf5");
    make_links(&folder);
    folder.write("solver.prototxt", format!("{SOLVER} snapshot_format: HDF5"));
    let caffe = "caffe train -solver solver.prototxt";
    shell(&folder, caffe).succeeded();
    let resume = format!("{caffe} -snapshot lenet_iter_4.solverstate");
    let result = shell(&folder, &resume).succeeded();
    for line in [
        "--snapshot: lenet_iter_4.solverstate does not exist; using lenet_iter_4.solverstate.h5",
        "Resuming from lenet_iter_4.solverstate.h5",
        "Optimization Done.",
    ] {
        assert!(result.log.iter().any(|logged| logged == line), "{line}: {result:#?}");
    }
    // If the file that `-snapshot` names exists, the command does not try the name with `.h5`.
    folder.write("lenet_iter_4.solverstate", "");
    shell(&folder, &resume).failed_with(&["lenet_iter_4.solverstate: history"]);
}
