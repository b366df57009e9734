//! The `cortado` command as somebody new to it uses it, rightly and wrongly.
#![cfg(feature = "cli")]

#[path = "support/command.rs"]
mod command;
#[cfg(unix)]
#[path = "cli/interruptions.rs"]
mod interruptions;

use command::{Folder, NET, Ran, SOLVER, message, shape};
use cortado::proto::{self, NetParameter, V1LayerParameter};
use std::{collections::BTreeSet, env, fs, path::PathBuf};

/// What training logs at a display.
const DISPLAY: [&str; 3] = [
    "Iteration N (N iter/s, Ns/N iters), loss = N",
    "    Train net output #N: loss = N (* N = N loss)",
    "Iteration N, lr = N",
];
const TEST: [&str; 3] = [
    "Iteration N, Testing net (#N)",
    "    Test net output #N: accuracy = N",
    "    Test net output #N: loss = N (* N = N loss)",
];
const SNAPSHOT: [&str; 2] = [
    "Snapshotting to binary proto file lenet_iter_N.caffemodel",
    "Snapshotting solver state to binary proto file lenet_iter_N.solverstate",
];

fn shapes(ran: &Ran) -> Vec<String> {
    let start = ran.log.iter().position(|line| line.starts_with("Solving ")).unwrap();
    ran.log[start..].iter().map(|line| shape(line)).collect()
}

#[test]
fn training_logs_and_snapshots_as_the_solver_asks() {
    let folder = Folder::new("training");
    let ran = folder.run("train --solver solver.prototxt").succeeded();

    let half = [&TEST[..], &DISPLAY, &DISPLAY, &SNAPSHOT].concat();
    let start = ["Solving LeNet", "Learning Rate Policy: inv"];
    let end = [&TEST[..], &["Iteration N, loss = N", "Optimization Done."]].concat();
    assert_eq!(shapes(&ran), [&start[..], &half, &half, &end].concat());
    assert_eq!(ran.out, "");

    let displayed: Vec<_> = ran.log.iter().filter(|line| line.contains(", lr = ")).collect();
    assert_eq!(displayed[0], "Iteration 0, lr = 0.01");
    assert_eq!(displayed[3], "Iteration 6, lr = 0.0099955"); // 0.01 · 1.0006^−0.75
    let files = ["lenet_iter_4", "lenet_iter_8"];
    assert_eq!(folder.files(".caffemodel"), files.map(|stem| format!("{stem}.caffemodel")));
    assert_eq!(folder.files(".solverstate"), files.map(|stem| format!("{stem}.solverstate")));
}

/// With `debug_info`, each displayed iteration shows all blobs, in Caffe's words.
#[test]
fn debug_info_shows_magnitudes() {
    let folder = Folder::new("debug");
    folder.write("solver.prototxt", format!("{SOLVER} debug_info: true"));
    let ran = folder.run("train --solver solver.prototxt").succeeded();
    let traced: Vec<_> = ran.log.iter().filter(|line| line.starts_with("    [")).collect();
    let pass = [
        "    [Forward] Layer data, top blob data data: N",
        "    [Forward] Layer data, top blob label data: N",
        "    [Forward] Layer ip, top blob ip data: N",
        "    [Forward] Layer ip, param blob N data: N",
        "    [Forward] Layer ip, param blob N data: N",
        "    [Forward] Layer loss, top blob loss data: N",
        "    [Backward] Layer loss, bottom blob ip diff: N",
        "    [Backward] Layer ip, param blob N diff: N",
        "    [Backward] Layer ip, param blob N diff: N",
        "    [Backward] All net params (data, diff): LN norm = (N, N); LN norm = (N, N)",
    ];
    let shapes: Vec<_> = traced.iter().map(|line| shape(line)).collect();
    assert_eq!(shapes, [pass; 4].concat());
    // Softmax and labels: the loss is the mean loss, a probability at most 1 off.
    let value = |line: &str| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap();
    let loss = ran.log.iter().find(|line| line.contains("Iteration 0 (")).unwrap();
    assert_eq!(value(traced[5]), value(loss));
    assert!((0.0..0.25).contains(&value(traced[6])), "{}", traced[6]);
    let plain = Folder::new("debug-not").run("train --solver solver.prototxt").succeeded();
    assert!(!plain.log.iter().any(|line| line.starts_with("    [")));
}

/// What Caffe's log parsers look for is in both logs, in the same form.
#[test]
fn log_lines_have_the_form_of_caffes() {
    let Some(data) = env::var_os("CORTADO_TESTDATA").map(PathBuf::from) else {
        eprintln!("SKIPPED: set CORTADO_TESTDATA to run the comparison with a log of Caffe's");
        return;
    };
    let log = fs::read_to_string(data.join("golden/lenet/caffe_train.log")).unwrap();
    let lines = log.lines().skip_while(|line| !line.contains("Solving LeNet"));
    let caffes: BTreeSet<_> = lines.map(|line| shape(message(line).unwrap())).collect();
    let ran = Folder::new("log").run("train --solver solver.prototxt").succeeded();
    let ours: BTreeSet<_> = shapes(&ran).into_iter().collect();
    let only_caffes: Vec<_> = caffes.difference(&ours).collect();
    assert_eq!(only_caffes, ["Restarting data prefetching from start."]);
    assert!(ours.is_subset(&caffes), "{:?}", ours.difference(&caffes));
}

/// The scores that Caffe's log has at the end of its training are those of its snapshot here.
#[test]
fn caffes_weights_give_caffes_scores() {
    let Some(data) = env::var_os("CORTADO_TESTDATA").map(PathBuf::from) else {
        eprintln!("SKIPPED: set CORTADO_TESTDATA to score the weights that Caffe trained");
        return;
    };
    let weights = data.join("golden/lenet/lenet_iter_10000.caffemodel");
    let model = include_str!("../examples/mnist/lenet.prototxt");
    let folder = Folder::new("scores");
    let digits = format!("idx:{}", data.join("data/mnist/t10k").display());
    folder.write_replaced("lenet.prototxt", model, "idx:examples/mnist/data/t10k", &digits);
    let weights = weights.display();
    let test = format!("test --model lenet.prototxt --weights {weights} --iterations 100");
    let out = folder.run(&test).succeeded().out;

    let log = fs::read_to_string(data.join("golden/lenet/caffe_train.log")).unwrap();
    let score = |text: &str, name: &str| -> f64 {
        let start = format!("{name} = ");
        let line = text.lines().rfind(|line| line.contains(&start)).unwrap();
        let number = line.split(&start).nth(1).unwrap().split(' ').next().unwrap();
        number.parse().unwrap()
    };
    assert_eq!(score(&out, "accuracy"), score(&log, "accuracy"), "{out}");
    // Six digits are printed.
    let (ours, caffes) = (score(&out, "loss"), score(&log, "Test net output #1: loss"));
    assert!((ours - caffes).abs() <= 2e-7, "{ours} {caffes}");
}

#[test]
fn one_seed_gives_one_model_on_any_number_of_threads() {
    let folder = Folder::new("threads");
    let train = |args: &str| {
        folder.run(&format!("train --solver solver.prototxt {args}")).succeeded();
        (folder.read("lenet_iter_8.caffemodel"), folder.read("lenet_iter_8.solverstate"))
    };
    let one = train("--threads 1");
    assert!(train("--threads 2") == one);
    folder.write_replaced("solver.prototxt", SOLVER, "random_seed: 7", "random_seed: 8");
    assert!(train("--threads 1").0 != one.0, "the seed is of no effect");
}

/// The data starts again from the first record, as Caffe's does, so each batch is all of it here.
#[test]
fn a_run_resumed_at_the_middle_ends_as_the_unbroken_one() {
    let folder = Folder::new("resumed");
    folder.write_replaced("net.prototxt", NET, "count=200", "count=8");
    folder.run("train --solver solver.prototxt").succeeded();
    let files = ["lenet_iter_8.caffemodel", "lenet_iter_8.solverstate"];
    let unbroken = files.map(|file| folder.read(file));
    folder.write(files[0], "");
    let args = "train --solver solver.prototxt --snapshot lenet_iter_4.solverstate";
    let ran = folder.run(args).succeeded();
    assert!(files.map(|file| folder.read(file)) == unbroken);
    assert!(!ran.log.iter().any(|said| said.contains("Iteration 0")), "{ran:#?}");

    let tuned = format!("{args} --weights lenet_iter_4.caffemodel");
    folder.run(&tuned).refused_with(&["--snapshot", "--weights", "cannot be used with"]);
}

#[test]
fn snapshots_are_hdf5_if_the_solver_says_so() {
    let folder = Folder::new("hdf5");
    folder.write_replaced("net.prototxt", NET, "count=200", "count=8");
    folder.write_replaced("solver.prototxt", SOLVER, "display: 2", "snapshot_format: HDF5");
    let ran = folder.run("train --solver solver.prototxt");
    if cfg!(not(feature = "hdf5")) {
        ran.failed_with(&["solver.prototxt", "feature `hdf5`", "BINARYPROTO"]);
        folder.write("a.h5", b"\x89HDF\r\n\x1a\n");
        for args in ["inspect a.h5", "test --model net.prototxt --weights a.h5"] {
            folder.run(args).failed_with(&["a.h5", "feature `hdf5`"]);
        }
        return;
    }
    ran.succeeded();
    let files = ["lenet_iter_8.caffemodel.h5", "lenet_iter_8.solverstate.h5"];
    let unbroken = files.map(|file| folder.read(file));
    folder.write(files[0], "");
    let resume = "train --solver solver.prototxt --snapshot lenet_iter_4.solverstate.h5";
    folder.run(resume).succeeded();
    assert!(files.map(|file| folder.read(file)) == unbroken);
    assert_eq!(folder.files(".caffemodel"), [""; 0]);

    // Binary files of the same run hold the same weights.
    let scores = |weights: &str| {
        let args = format!("test --model net.prototxt --iterations 3 --weights {weights}");
        folder.run(&args).succeeded().out
    };
    folder.write("solver.prototxt", SOLVER);
    folder.run("train --solver solver.prototxt").succeeded();
    assert_eq!(scores(files[0]), scores("lenet_iter_8.caffemodel"));

    let net = folder.run(&format!("inspect {}", files[0])).succeeded().out;
    assert!(net.contains("ip.0") && net.contains("10×784"), "{net}");
    let state = folder.run(&format!("inspect {}", files[1])).succeeded().out;
    for part in ["solver state", "iter: 8", &format!("learned_net: {}", files[0]), "history.1"] {
        assert!(state.contains(part), "{state}");
    }
    for cut in files {
        folder.write(cut, &folder.read(cut)[..1000]);
        folder.run(&format!("inspect {cut}")).failed_with(&[cut]);
    }
}

#[test]
fn testing_prints_means() {
    let folder = Folder::new("testing");
    folder.run("train -solver solver.prototxt").succeeded(); // one dash, as in Caffe's scripts
    let ran = folder
        .run("test -model net.prototxt -weights=lenet_iter_8.caffemodel -iterations 3")
        .succeeded();
    let value = |line: &str| line.split(' ').nth(2).unwrap().parse::<f64>().unwrap();
    let [_, accuracy, loss] = ran.out.lines().collect::<Vec<_>>()[..] else {
        panic!("{ran:#?}");
    };
    for (mean, name) in [(accuracy, "accuracy"), (loss, "loss")] {
        let is_one =
            |line: &&String| line.starts_with("Batch ") && line.contains(&format!(", {name} = "));
        let batches: Vec<_> = ran.log.iter().filter(is_one).collect();
        assert_eq!(batches.len(), 3, "{ran:#?}");
        let sum: f64 = batches.iter().map(|line| value(line.split_once(", ").unwrap().1)).sum();
        assert!(mean.starts_with(name), "{mean}");
        assert!((value(mean) - sum / 3.0).abs() < 1e-5, "{mean}, of {batches:?}");
    }
    assert!(ran.out.starts_with("Loss: "), "{}", ran.out);
    assert_eq!(shape(loss), "loss = N (* N = N loss)");
}

#[test]
fn a_wrong_command_gets_the_usage() {
    let folder = Folder::new("usage");
    folder.run("").refused_with(&["Usage:", "train", "test", "upgrade-net", "upgrade-solver"]);
    folder.run("tarin").refused_with(&["'tarin'", "Usage:"]);
    folder.run("train").refused_with(&["--solver"]);
    folder.run("test --model net.prototxt").refused_with(&["--weights"]);
    folder.run("train --solver solver.prototxt --threads two").refused_with(&["two", "--threads"]);
    let many = "train --solver solver.prototxt --threads 100000";
    folder.run(many).refused_with(&["100000", "--threads", "1024"]);
    let help = folder.run("train --help").succeeded();
    assert!(help.out.contains("--solver") && help.out.contains("Ctrl-C"), "{}", help.out);
}

/// Each line: what is replaced in the solver file by what, and what the error says.
#[test]
fn a_wrong_solver_file_is_named_with_what_is_wrong() {
    let folder = Folder::new("solver");
    let cases: [(&str, &str, &[&str]); 10] = [
        ("base_lr", "base_lrr", &["bad.prototxt:4:1", "`base_lrr`"]),
        ("max_iter: 8", "max_iter: ten", &["bad.prototxt:11:11", "`ten`"]),
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
        let ran = folder.run("train --solver bad.prototxt");
        ran.failed_with(parts);
        let twice = ran.err[0].matches("bad.prototxt").count() > 1;
        assert!(!twice, "names the file twice: {}", ran.err[0]);
    }
    folder.run("train --solver gone.prototxt").failed_with(&["cortado: gone.prototxt: No such"]);
    folder
        .run("train --solver solver.prototxt --device abacus")
        .failed_with(&["unknown device `abacus`", "cpu"]);
    assert_eq!(folder.files(".caffemodel"), [""; 0]);
}

/// Each line: what is replaced in the net by what, and what the error says.
#[test]
fn a_wrong_net_is_named_with_the_layer() {
    let folder = Folder::new("net");
    let product = "inner_product_param { num_output: 10 weight_filler { type: \"xavier\" } }";
    let wide = "convolution_param { num_output: 2 kernel_size: 50 }";
    let convolution = NET.replace("InnerProduct", "Convolution").replace(product, wide);
    let source = "digits:train?count=200&seed=1";
    let cases: [(&str, &str, &str, &[&str]); 13] = [
        (NET, "num_output", "num_outptu", &["net.prototxt:15:25", "`num_outptu`"]),
        (NET, "InnerProduct", "InerProduct", &["`ip`", "`InerProduct`", "known", "InnerProduct,"]),
        (NET, "type: \"InnerProduct\"", "", &["layer `ip`", "has no type"]),
        (NET, "bottom: \"data\"", "bottom: \"dta\"", &["layer `ip`", "`dta`"]),
        (NET, "xavier", "xaviar", &["layer `ip`", "`xaviar`", "xavier"]),
        (NET, "num_output: 10", "", &["layer `ip`", "num_output"]),
        (NET, "num_output: 10", "num_output: 5", &["layer `accuracy`", "5 classes"]),
        (NET, source, "digts:train", &["layer `data`", "`digts`", "digits, idx"]),
        (NET, source, "mnist_train_lmdb", &["layer `data`", "`mnist_train_lmdb`", "scheme"]),
        (NET, source, "idx:gone/train", &["layer `data`", "gone/train", "no such file"]),
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
fn a_wrong_snapshot_or_model_is_named() {
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
    test(state).failed_with(&[state, "not a caffe.NetParameter"]);
    test(&format!("{model} --iterations 0")).failed_with(&["at least one batch"]);
    let resume =
        |state: &str| folder.run(&format!("train --solver solver.prototxt --snapshot {state}"));
    resume("gone").failed_with(&["gone: No such file"]);
    resume("garbage").failed_with(&["garbage: not a caffe.SolverState"]);
    resume(model).failed_with(&[model, "not a caffe.SolverState"]);
    let tune =
        |model: &str| folder.run(&format!("train --solver solver.prototxt -weights {model}"));
    tune("garbage").failed_with(&["garbage: not a caffe.NetParameter"]);

    folder.write_replaced("net.prototxt", NET, "num_output: 10", "num_output: 12");
    test(model).failed_with(&[model, "layer `ip`", "10 784", "12 784"]);
    resume(state).failed_with(&[state, "10 784", "12 784"]);
    folder.write_replaced("net.prototxt", NET, "\"ip\"", "\"other\"");
    test(model).failed_with(&[model, "no layer"]);
    tune(model).failed_with(&[model, "no layer"]);
    resume(state).failed_with(&[state, model, "no layer"]);
    fs::remove_file(folder.path(model)).unwrap();
    resume(state).failed_with(&[state, model, "No such file"]);
}

/// Results that nobody can read are a failure, not a panic.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_under_the_output_is_an_error() {
    let folder = Folder::new("full");
    folder.run("train --solver solver.prototxt").succeeded();
    let args = "test --model net.prototxt --weights lenet_iter_8.caffemodel --iterations 1";
    let full = fs::File::create("/dev/full").unwrap();
    let output = folder.command(args).stdout(full).output().unwrap();
    Ran::new(args, output).failed_with(&["standard output: "]);
}

/// A net of the V1 format and what it becomes.
const V1_NET: &str = "input: \"x\" layers { name: \"r\" type: RELU bottom: \"x\" top: \"y\" }";
const V2_NET: &str = r#"layer {
  name: "r"
  type: "ReLU"
  bottom: "x"
  top: "y"
}
"#;

#[test]
fn old_nets_and_solvers_are_upgraded() {
    let folder = Folder::new("upgrade");
    let text = |file: &str| String::from_utf8(folder.read(file)).unwrap();
    folder.write("old.prototxt", V1_NET);
    let ran = folder.run("upgrade-net old.prototxt new.prototxt").succeeded();
    let changes = ["upgraded layers of the V1 format", "upgraded input fields"];
    assert_eq!(ran.out, changes.map(|change| format!("old.prototxt: {change}\n")).concat());
    assert_eq!((text("old.prototxt"), text("new.prototxt")), (V1_NET.into(), V2_NET.into()));
    let ran = folder.run("upgrade-net new.prototxt new.prototxt").succeeded();
    assert_eq!((&ran.out[..], text("new.prototxt")), ("new.prototxt: up to date\n", V2_NET.into()));

    let net: NetParameter = proto::parse_text(V1_NET, "").unwrap();
    let want: NetParameter = proto::parse_text(V2_NET, "").unwrap();
    for (file, flag) in [("a.caffemodel", ""), ("a.binaryproto", ""), ("a", "--binary")] {
        proto::write_binary(folder.path(file), &net).unwrap();
        folder.run(&format!("upgrade-net {flag} {file} {file}")).succeeded();
        assert_eq!(proto::read_binary::<NetParameter>(folder.path(file)).unwrap(), want);
    }
    let fork = format!("{V1_NET}\nspin: 1 # of a fork\n");
    folder.write("fork.prototxt", &fork);
    let line = fork.lines().count();
    let fault = format!("fork.prototxt:{line}:1: `NetParameter` has no field `spin`");
    folder.run("upgrade-net fork.prototxt b").failed_with(&[&fault]);
    let ran = folder.run("upgrade-net --skip-unknown fork.prototxt b").succeeded();
    assert_eq!(ran.log, [format!("{fault}: passed over")]);
    assert_eq!(text("b"), V2_NET);
    // A varint in the field 1000, which Caffe has not.
    let fork = [&folder.read("a")[..], &[0xc0, 0x3e, 7]].concat();
    folder.write("a", &fork);
    folder.run("upgrade-net --binary a b").succeeded();
    assert_eq!(folder.read("b"), fork);

    folder.write("solver.prototxt", "base_lr: 0.5 solver_type: ADAM");
    let ran = folder.run("upgrade-solver solver.prototxt solver.prototxt").succeeded();
    assert_eq!(ran.out, "solver.prototxt: replaced solver_type by type\n");
    assert_eq!(text("solver.prototxt"), "base_lr: 0.5\ntype: \"Adam\"\n");
}

#[test]
fn a_wrong_upgrade_writes_nothing() {
    let folder = Folder::new("upgrade-wrong");
    let upgrade = |verb: &str, content: &str| {
        folder.write("old", content);
        folder.run(&format!("upgrade-{verb} old new"))
    };
    upgrade("net", "layers { } layer { }").failed_with(&["cortado: old: ", "both `layer` and"]);
    let unknown = "layers { layer { name: \"a\" type: \"b\" } }";
    upgrade("net", unknown).failed_with(&["cortado: old: layer `a`: ", "`b`"]);
    upgrade("net", "layrs { }").failed_with(&["cortado: old:1:1: ", "`layrs`"]);
    upgrade("solver", "solver_type: SGD type: \"SGD\"").failed_with(&["old: ", "solver_type"]);
    folder.run("upgrade-net gone new").failed_with(&["cortado: gone: No such file"]);
    folder.run("upgrade-net old").refused_with(&["OUT"]);
    assert!(!folder.path("new").exists());
    folder.write("old", V1_NET);
    folder.run("upgrade-net old gone/new").failed_with(&["cortado: gone/new: No such file"]);
}

/// Definitions and weights are upgraded where they are read, and the log says so.
#[test]
fn training_upgrades_what_it_reads() {
    let folder = Folder::new("upgrade-training");
    let old = r#"name: "LeNet"
        layers { name: "data" type: DATA top: "data" top: "label"
          data_param { source: "digits:train?count=200&seed=1" batch_size: 8 scale: 0.00390625 } }
        layers { name: "ip" type: INNER_PRODUCT bottom: "data" top: "ip"
          inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
        layers { name: "accuracy" type: ACCURACY bottom: "ip" bottom: "label" top: "accuracy"
          include { phase: TEST } }
        layers { name: "loss" type: SOFTMAX_LOSS bottom: "ip" bottom: "label" top: "loss" }"#;
    let model = "lenet_iter_8.caffemodel";
    folder.run("train --solver solver.prototxt").succeeded();
    let want = folder.read(model);
    folder.write("net.prototxt", old);
    folder.write("solver.prototxt", format!("{SOLVER} solver_type: SGD"));
    let ran = folder.run("train --solver solver.prototxt").succeeded();
    assert!(folder.read(model) == want, "an old definition trains another net");
    for line in [
        "solver.prototxt: replaced solver_type by type",
        "net.prototxt: moved transformation fields to transform_param",
        "net.prototxt: upgraded layers of the V1 format",
    ] {
        assert!(ran.log.iter().any(|logged| logged == line), "{line}: {ran:#?}");
    }

    let NetParameter { layer, .. } = proto::read_binary(folder.path(model)).unwrap();
    let ip = layer.into_iter().find(|layer| layer.name() == "ip").unwrap();
    let layers = vec![V1LayerParameter { name: ip.name, blobs: ip.blobs, ..Default::default() }];
    let weights = NetParameter { layers, ..Default::default() };
    proto::write_binary(folder.path("old.caffemodel"), &weights).unwrap();
    let test = |weights: &str| {
        let args = format!("test --model net.prototxt --weights {weights} --iterations 2");
        folder.run(&args).succeeded().out
    };
    assert_eq!(test("old.caffemodel"), test(model));
}

#[test]
fn time_tells_of_every_layer_and_of_memory() {
    let folder = Folder::new("time");
    let time = |args: &str| {
        let ran = folder.run(&format!("time --model net.prototxt --iterations 3 {args}"));
        ran.succeeded().out
    };
    let [train, test] = [time(""), time("--phase TEST --forward")];
    let layers = ["data", "ip", "loss", "accuracy"];
    for (out, layers) in [(&train, &layers[..3]), (&test, &layers[..])] {
        for layer in layers {
            let rows = out.lines().filter(|line| line.starts_with(&format!("{layer} ")));
            assert_eq!(rows.count(), 1, "{layer}: {out}");
        }
        assert!(out.contains("\nForward pass: ") && out.contains("\nMemory: "), "{out}");
    }
    assert!(train.contains("\nBackward pass: ") && !test.contains("Backward pass"));
    let rows = |out: &str| -> Vec<f64> {
        let shares =
            out.lines().skip(1).map_while(|line| line.split(' ').next_back()?.parse().ok());
        shares.collect()
    };
    let shares = rows(&train);
    let all: f64 = shares.iter().sum();
    assert!(shares.len() >= 3 && (99.0..101.0).contains(&all), "{train}");

    folder.run("time --model net.prototxt --iterations 0").refused_with(&["--iterations"]);
    folder.run("time --model gone.prototxt").failed_with(&["gone.prototxt: No such file"]);
}

#[test]
fn a_net_is_drawn_row_by_row() {
    let folder = Folder::new("draw");
    let draw = |args: &str| {
        folder.run(&format!("draw net.prototxt -o net.svg {args}")).succeeded();
        String::from_utf8(folder.read("net.svg")).unwrap()
    };
    let [train, test] = [draw("--phase train"), draw("")];
    assert!(!train.contains(">accuracy<") && test.contains(">accuracy<"));
    for part in [">ip<", ">InnerProduct<", ">8×10<", ">7\u{2009}850<", "7\u{2009}850 parameters<"]
    {
        assert!(test.contains(part), "{part}: {test}");
    }
    // A mark for each layer and a line for each blob: data, label, ip, accuracy, loss.
    assert_eq!((test.matches("<circle").count(), test.matches("<path").count()), (4, 5));
    // Without its data the net still has a picture; text from the file cannot break out of it.
    let gone = NET.replace("digits:train?count=200&seed=1", "idx:gone");
    folder.write("net.prototxt", gone.replace("\"LeNet\"", "\"<LeNet> & co\""));
    let bare = draw("");
    assert!(bare.contains(">&lt;LeNet&gt; &amp; co: 4 layers<") && !bare.contains("×"), "{bare}");
    folder.run("draw net.prototxt").refused_with(&["--output"]);
    folder.run("draw net.prototxt -o gone/net.svg").failed_with(&["gone/net.svg: No such file"]);
}
