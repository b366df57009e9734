//! Tests of common user mistakes, each of which must cause a one-line error that names the file,
//! line or layer.

use crate::command::{Folder, NET, RunResult, SOLVER};
use std::fs;

#[test]
fn wrong_arguments_print_the_usage() {
    let folder = Folder::new("usage");
    folder.run("").refused_with(&["Usage:", "train", "test", "upgrade-net", "upgrade-solver"]);
    folder.run("tarin").refused_with(&["'tarin'", "Usage:"]);
    folder.run("train").refused_with(&["--solver"]);
    folder.run("test --model net.prototxt").refused_with(&["--weights"]);
    folder.run("train --solver solver.prototxt --threads two").refused_with(&["two", "--threads"]);
    let many_threads = "train --solver solver.prototxt --threads 100000";
    folder.run(many_threads).refused_with(&["100000", "--threads", "1024"]);
    let help = folder.run("train --help").succeeded();
    assert!(help.out.contains("--solver") && help.out.contains("Ctrl-C"), "{}", help.out);
}

/// Each case consists of a substring of the solver definition, its replacement, and parts of the
/// expected error.
#[test]
fn an_invalid_solver_is_an_error_that_names_file_and_field() {
    let folder = Folder::new("solver");
    let cases: [(&str, &str, &[&str]); 11] = [
        ("base_lr", "base_lrr", &["bad.prototxt:4:1", "`base_lrr`"]),
        ("max_iter: 8", "max_iter: ten", &["bad.prototxt:11:11", "`ten`"]),
        ("max_iter: 8", "", &["bad.prototxt", "max_iter is missing", "`max_iter: 1000`"]),
        ("net.prototxt", "gone.prototxt", &["bad.prototxt: gone.prototxt: No such file"]),
        ("net: \"net.prototxt\"", "", &["bad.prototxt", "net_param"]),
        ("\"lenet\"", "\"gone/lenet\"", &["bad.prototxt", "snapshot_prefix", "gone: No such"]),
        ("test_iter: 2", "test_iter: 0", &["bad.prototxt", "test_iter 0"]),
        ("test_interval: 4", "", &["bad.prototxt", "test_interval"]),
        ("inv", "vni", &["bad.prototxt", "lr_policy `vni`", "multistep"]),
        ("gamma: 0.0001", "", &["bad.prototxt", "`inv`", "gamma"]),
        (
            "display: 2",
            "type: \"SDG\"",
            &[
                "bad.prototxt",
                "solver type `SDG`",
                "known types: AdaDelta, AdaGrad, Adam, Nesterov, RMSProp, SGD",
            ],
        ),
    ];
    for (from, to, parts) in cases {
        folder.write_replaced("bad.prototxt", SOLVER, from, to);
        let result = folder.run("train --solver bad.prototxt");
        result.failed_with(parts);
        let is_named_twice = result.err[0].matches("bad.prototxt").count() > 1;
        assert!(!is_named_twice, "names the file twice: {}", result.err[0]);
    }
    folder.run("train --solver gone.prototxt").failed_with(&["cortado: gone.prototxt: No such"]);
    folder
        .run("train --solver solver.prototxt --device abacus")
        .failed_with(&["unknown device `abacus`", "cpu"]);
    assert_eq!(folder.files(".caffemodel"), [""; 0]);
}

/// Each case consists of a substring of the net definition, its replacement, and parts of the
/// expected error.
#[test]
fn an_invalid_net_is_an_error_that_names_the_layer() {
    let folder = Folder::new("net");
    let inner_product = "inner_product_param { num_output: 10 weight_filler { type: \"xavier\" } }";
    let wide_convolution = "convolution_param { num_output: 2 kernel_size: 50 }";
    let convolution =
        NET.replace("InnerProduct", "Convolution").replace(inner_product, wide_convolution);
    let source = "digits:train?count=200&seed=1";
    let cases: [(&str, &str, &str, &[&str]); 13] = [
        (NET, "num_output", "num_outptu", &["net.prototxt:15:25", "`num_outptu`"]),
        (NET, "InnerProduct", "InerProduct", &["`ip`", "`InerProduct`", "known", "InnerProduct,"]),
        (NET, "type: \"InnerProduct\"", "", &["layer `ip`", "no type given"]),
        (NET, "bottom: \"data\"", "bottom: \"dta\"", &["layer `ip`", "`dta`"]),
        (NET, "xavier", "xaviar", &["layer `ip`", "`xaviar`", "xavier"]),
        (NET, "num_output: 10", "", &["layer `ip`", "num_output"]),
        (NET, "num_output: 10", "num_output: 5", &["layer `accuracy`", "5 classes"]),
        (NET, source, "digts:train", &["layer `data`", "`digts`", "digits, idx"]),
        (NET, source, "mnist_train_lmdb", &["layer `data`", "`mnist_train_lmdb`", "scheme"]),
        (NET, source, "idx:gone/train", &["layer `data`", "gone/train", "file not found"]),
        (NET, "batch_size: 8", "", &["layer `data`", "batch_size"]),
        (&convolution, "", "", &["layer `ip`", "kernel", "50", "28"]),
        ("name: \"LeNet\"", "", "", &["solver.prototxt", "no layers"]),
    ];
    for (net, from, to, parts) in cases {
        folder.write_replaced("net.prototxt", net, from, to);
        folder.run("train --solver solver.prototxt").failed_with(parts);
    }
}

#[test]
fn errors_name_a_wrong_snapshot_or_model() {
    let folder = Folder::new("weights");
    folder.run("train --solver solver.prototxt").succeeded();
    let (model, state) = ("lenet_iter_8.caffemodel", "lenet_iter_8.solverstate");
    folder.write("garbage", [0xff; 300]);
    folder.write("cut", &folder.read(model)[..200]);
    let test =
        |weights: &str| folder.run(&format!("test --model net.prototxt --weights {weights}"));
    test("gone").failed_with(&["gone: No such file"]);
    test("garbage").failed_with(&["garbage: not a caffe.NetParameter"]);
    test("cut").failed_with(&["cut: not a caffe.NetParameter"]);
    test(state).failed_with(&[state, "found a solver state, expected trained weights"]);
    test(&format!("{model} --iterations 0")).refused_with(&["'0'", "--iterations"]);
    let resume =
        |state: &str| folder.run(&format!("train --solver solver.prototxt --snapshot {state}"));
    resume("gone").failed_with(&["gone: No such file"]);
    resume("garbage").failed_with(&["garbage: not a caffe.SolverState"]);
    resume(model).failed_with(&[model, "not a solver state", ".solverstate", "--weights"]);
    let finetune =
        |model: &str| folder.run(&format!("train --solver solver.prototxt -weights {model}"));
    finetune("garbage").failed_with(&["garbage: not a caffe.NetParameter"]);

    folder.write_replaced("net.prototxt", NET, "num_output: 10", "num_output: 12");
    test(model).failed_with(&[model, "layer `ip`", "[10, 784]", "[12, 784]"]);
    resume(state).failed_with(&[state, "[10, 784]", "[12, 784]"]);
    folder.write_replaced("net.prototxt", NET, "\"ip\"", "\"other\"");
    test(model).failed_with(&[model, "no layer"]);
    finetune(model).failed_with(&[model, "no layer"]);
    resume(state).failed_with(&[state, model, "no layer"]);
    fs::remove_file(folder.path(model)).unwrap();
    resume(state).failed_with(&[state, model, "No such file"]);
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_an_error() {
    let folder = Folder::new("full");
    folder.run("train --solver solver.prototxt").succeeded();
    let args = "test --model net.prototxt --weights lenet_iter_8.caffemodel --iterations 1";
    let full_device = fs::File::create("/dev/full").unwrap();
    let output = folder.command(args).stdout(full_device).output().unwrap();
    RunResult::new(args, output).failed_with(&["standard output: "]);

    // If writing the JSON Lines log fails, training continues without the log.
    fs::remove_file(folder.path("lenet_iter_8.caffemodel")).unwrap();
    let result = folder.run("train --solver solver.prototxt --log-json /dev/full");
    result.failed_with(&["cortado: /dev/full: No space left"]);
    assert!(
        result.log.iter().any(|line| line.contains("training continues without this file")),
        "{result:#?}"
    );
    assert!(folder.path("lenet_iter_8.caffemodel").exists());
    for flag in ["--plot", "--log-json"] {
        let train = format!("train --solver solver.prototxt {flag} gone/file");
        folder.run(&train).failed_with(&["cortado: gone/file: No such file"]);
    }
}

/// A snapshot that cannot be written does not end the run. A failed snapshot leaves no temporary
/// file.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_during_snapshots_is_an_error_only_at_the_end() {
    let folder = Folder::new("filling");
    let train = format!("exec {} train --solver solver.prototxt", env!("CARGO_BIN_EXE_cortado"));
    let small_files_only = format!("trap '' XFSZ; ulimit -f 8; {train}");
    let mut shell = std::process::Command::new("sh");
    let output =
        shell.args(["-c", &small_files_only]).current_dir(folder.path("")).output().unwrap();
    let result = RunResult::new(&small_files_only, output);
    let warning = "snapshot of iteration 4: lenet_iter_4.caffemodel: File too large";
    assert!(result.log.iter().any(|line| line.contains(warning)), "{result:#?}");
    assert!(result.log.iter().any(|line| line.starts_with("Iteration 6, lr = ")), "{result:#?}");
    result.failed_with(&["cortado: lenet_iter_8.caffemodel: File too large"]);
    assert_eq!([folder.files(".caffemodel"), folder.files(".tmp")], [[""; 0]; 2]);
}

/// Each case consists of a substring of the net definition, its replacement, the arguments, and
/// parts of the expected error: problem, location and remedy.
#[test]
fn errors_of_common_mistakes_name_the_remedy() {
    let folder = Folder::new("first-mistakes");
    folder.run("train --solver solver.prototxt").succeeded();
    let (train, test) = ("train --solver solver.prototxt", "test --model net.prototxt --weights");
    let test_trained = format!("{test} lenet_iter_8.caffemodel");
    let weights = format!("{test} other.caffemodel");
    let resume_truncated = format!("{train} --snapshot cut.solverstate");
    fs::copy(folder.path("lenet_iter_8.caffemodel"), folder.path("other.caffemodel")).unwrap();
    folder.write("cut.solverstate", &folder.read("lenet_iter_8.solverstate")[..100]);
    let cases: [(&str, &str, &str, &[&str]); 19] = [
        (
            "",
            "",
            "train --solver gone.prototxt",
            &["gone.prototxt: No such file", "current folder is"],
        ),
        ("num_output", "num_outptu", train, &["net.prototxt:15:25", "did you mean `num_output`?"]),
        (
            "\"InnerProduct",
            "\"innerproduct",
            train,
            &["layer `ip`", "did you mean `InnerProduct`?"],
        ),
        ("\"Data\"", "\"Dta\"", train, &["layer `data`", "did you mean `Data`?"]),
        ("bottom: \"data\"", "bottom: \"dat\"", train, &["layer `ip`", "did you mean `data`?"]),
        (
            "digits:train?count=200&seed=1",
            "idx:gone",
            train,
            &["layer `data`", "gone-images", ".gz"],
        ),
        (
            "num_output: 10",
            "num_output: 9",
            &test_trained,
            &["`ip`", "[10, 784]", "[9, 784]", "rename the layer"],
        ),
        (
            "\"ip\"",
            "\"fc\"",
            &weights,
            &["other.caffemodel", "the weights have `ip`; the net has `fc`"],
        ),
        ("", "", "time --model net.prototxt --device cuda:0", &["device `cuda", "cuda`"]),
        ("", "", "time --model net.prototxt --device cud", &["`cud`", "knows: cpu"]),
        ("", "", "time --model net.prototxt --gpu 0", &["--gpu", "omit --gpu"]),
        ("", "", &resume_truncated, &["cut.solverstate: not a caffe.SolverState: byte "]),
        (
            "",
            "",
            "train --solver net.prototxt",
            &["net.prototxt: found a net definition", "pass a solver that names"],
        ),
        (
            "",
            "",
            "test --model net.prototxt --weights net.prototxt",
            &["net.prototxt: found a net definition in text format, expected trained weights"],
        ),
        (
            "",
            "",
            "test --model other.caffemodel --weights other.caffemodel",
            &["other.caffemodel: found a trained net in binary form, expected a net definition"],
        ),
        (
            "",
            "",
            "train --solver lenet_iter_8.solverstate",
            &["found a solver state in binary form, expected a solver definition in text format"],
        ),
        (
            "",
            "",
            "train --solver solver.prototxt --snapshot solver.prototxt",
            &["found a solver definition in text format, expected a solver state"],
        ),
        (
            "",
            "",
            "time --model solver.prototxt",
            &["solver.prototxt: found a solver definition", "pass the net"],
        ),
        (
            "",
            "",
            "draw solver.prototxt -o a.svg",
            &["solver.prototxt: found a solver definition", "pass the net"],
        ),
    ];
    for (from, to, args, parts) in cases {
        folder.write_replaced("net.prototxt", NET, from, to);
        folder.run(args).failed_with(parts);
    }
    folder.write("net.prototxt", NET);
    folder.write_replaced("solver.prototxt", SOLVER, "base_lr", "base_rl");
    folder.run(train).failed_with(&["solver.prototxt:4:1", "did you mean `base_lr`?"]);
    folder.write("solver.prototxt", format!("{SOLVER} type: \"adma\""));
    folder.run(train).failed_with(&["solver.prototxt: ", "did you mean `Adam`?"]);
    let parts = ["'0'", "--iterations", "1.."];
    for args in [&*test_trained, "time --model net.prototxt"] {
        let result = folder.run(&format!("{args} --iterations 0"));
        result.refused_with(&parts);
        assert_eq!(result.err.len(), 1, "{result:#?}");
    }
}
