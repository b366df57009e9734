//! Tests of files of the wrong kind, and of definitions that Caffe accepts without a message
//! although they are likely mistakes.

use crate::command::{Folder, NET, SOLVER};
use std::fs;

/// Each case consists of the arguments, with a file of the wrong kind, and parts of the expected
/// error.
#[test]
fn errors_name_the_kind_of_a_wrong_file() {
    let folder = Folder::new("kinds");
    folder.run("train --solver solver.prototxt").succeeded();
    let (model, state) = ("lenet_iter_8.caffemodel", "lenet_iter_8.solverstate");
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests");
    for (file, from) in [
        ("a.npz", "tensor_io/packed.npz"),
        ("a.npy", "tensor_io/f4_big.npy"),
        ("a.safetensors", "tensor_io/bf16.safetensors"),
        ("a.png", "images/color.png"),
    ] {
        fs::copy(format!("{fixtures}/{from}"), folder.path(file)).unwrap();
    }
    folder.write_replaced("wrong.prototxt", SOLVER, "net.prototxt", "solver.prototxt");
    folder.write_replaced("binary.prototxt", SOLVER, "net.prototxt", model);
    let test_of_model = |file: &str| format!("test --model {file} --weights {model}");
    let test_of_weights = |file: &str| format!("test --model net.prototxt --weights {file}");
    let cases: [(String, &[&str]); 16] = [
        (test_of_model(model), &["a trained net in binary form, expected a net definition"]),
        (test_of_model(state), &["a solver state in binary form, expected a net definition"]),
        (test_of_model("a.npz"), &["a zip archive such as .npz, expected a net definition"]),
        (test_of_model("a.npy"), &["a NumPy array, expected a net definition"]),
        (test_of_model("a.safetensors"), &["a safetensors file, expected a net definition"]),
        (test_of_model("a.png"), &["a PNG image, expected a net definition"]),
        (test_of_weights("net.prototxt"), &["a net definition in text format, expected trained"]),
        (test_of_weights("solver.prototxt"), &["a solver definition in text format, expected"]),
        (
            test_of_weights(state),
            &[state, "a solver state, expected trained weights", "caffemodel"],
        ),
        (test_of_weights("a.npy"), &["a NumPy array, expected trained weights"]),
        (test_of_weights("a.png"), &["a PNG image, expected trained weights"]),
        (
            "train --solver wrong.prototxt".into(),
            &["wrong.prototxt: solver.prototxt: found a solver definition", "expected a net"],
        ),
        (
            "train --solver binary.prototxt".into(),
            &["binary.prototxt: lenet_iter_8.caffemodel: found a trained net in binary form"],
        ),
        ("upgrade-net solver.prototxt x".into(), &["found a solver definition, expected a net"]),
        (format!("upgrade-net {state} x"), &["found a solver state in binary form"]),
        ("upgrade-solver net.prototxt x".into(), &["found a net definition, expected a solver"]),
    ];
    for (args, parts) in cases {
        folder.run(&args).failed_with(parts);
    }
}

#[test]
fn an_error_in_a_solvers_net_names_the_nets_file_and_line() {
    let folder = Folder::new("net-lines");
    let ip = "train net: net.prototxt:10: layer `ip`";
    let cases = [
        ("num_output: 10", "num_output: 0", ip),
        ("xavier", "xaviar", ip),
        ("bottom: \"data\"", "bottom: \"dta\"", ip),
        ("batch_size: 8", "", "train net: net.prototxt:2: layer `data`"),
        (
            "phase: TEST }",
            "phase: TEST } foo: 1",
            "net.prototxt:23:27: layer `accuracy`: `LayerParameter`",
        ),
        // An error in a layer of the test net only.
        ("\"Accuracy\"", "\"Acuracy\"", "test net #0: net.prototxt:17: layer `accuracy`"),
    ];
    for (from, to, part) in cases {
        folder.write_replaced("net.prototxt", NET, from, to);
        folder.run("train --solver solver.prototxt").failed_with(&["solver.prototxt: ", part]);
    }
    folder.write_replaced("net.prototxt", NET, "num_output: 10", "num_output: 0");
    let location = "cortado: net.prototxt:10: layer `ip`: inner_product_param: num_output";
    folder.run("time --model net.prototxt").failed_with(&[location]);
    // The upgrade of the old input fields inserts an Input layer, which has no line.
    let old =
        "input: 'x' input_dim: [1, 1, 1, 1]\nlayer { name: 'ip' type: 'InnerProduct' bottom: 'x' }";
    folder.write("old.prototxt", old);
    folder.run("time --model old.prototxt").failed_with(&["cortado: old.prototxt:2: layer `ip`: "]);
    // Two layers have the same name, so the error gives no line number.
    let doubled_net = format!("{NET}{}", NET.replace("name: \"LeNet\"\n", ""));
    folder.write_replaced("net.prototxt", &doubled_net, "num_output: 10", "num_output: 0");
    folder.run("time --model net.prototxt").failed_with(&["cortado: net.prototxt: "]);
}

#[test]
fn a_net_without_layers_is_an_error() {
    let folder = Folder::new("empty-nets");
    folder.run("train --solver solver.prototxt").succeeded();
    let commands = [
        "train --solver solver.prototxt",
        "test --model net.prototxt --weights lenet_iter_8.caffemodel",
        "time --model net.prototxt",
        "draw net.prototxt -o net.svg",
        "extract-features lenet_iter_8.caffemodel net.prototxt ip db 1",
        "classify --model net.prototxt --weights lenet_iter_8.caffemodel a.png",
    ];
    for (net, part) in [
        ("", "net has no layers"),
        ("name: 'empty'", "net has no layers"),
        (
            "layer { name: 'x' type: 'Input' include { stage: 'a' } }",
            "net has no layers: the rules of every layer exclude phase T",
        ),
    ] {
        folder.write("net.prototxt", net);
        for args in commands {
            folder.run(args).failed_with(&["net.prototxt: ", part]);
        }
    }
    assert!(!folder.path("net.svg").exists());
}

#[test]
fn a_missing_learning_rate_is_an_error_and_a_negative_max_iter_a_warning() {
    let folder = Folder::new("silent-solvers");
    folder.write_replaced("solver.prototxt", SOLVER, "base_lr: 0.01", "");
    let train = "train --solver solver.prototxt";
    folder.run(train).failed_with(&["solver.prototxt: base_lr is missing", "`base_lr: 0.01`"]);
    folder.write_replaced("solver.prototxt", SOLVER, "base_lr: 0.01", "base_lr: nan");
    let result = folder.run(train);
    result.failed_with(&["iteration 1: the loss is NaN"]);
    assert!(result.log.contains(&"solver: base_lr is NaN".into()), "{result:#?}");
    folder.write_replaced("solver.prototxt", SOLVER, "max_iter: 8", "max_iter: -5");
    let result = folder.run(train).succeeded();
    let warning = "solver.prototxt: max_iter is -5, so nothing is trained";
    assert!(result.log.contains(&warning.into()), "{result:#?}");
}

#[test]
fn duplicate_layer_names_and_nan_fields_are_warnings() {
    let folder = Folder::new("silent-nets");
    let second_layer = "layer { name: \"ip\" type: \"Silence\" bottom: \"label\" }";
    folder.write("net.prototxt", format!("{NET}{second_layer}"));
    let result = folder.run("time --model net.prototxt --iterations 1").succeeded();
    let warning = "net `LeNet`: several layers are called `ip`; trained weights are copied to the \
                   first of them only";
    assert!(result.log.contains(&warning.into()), "{result:#?}");

    folder.write_replaced("net.prototxt", NET, "scale: 0.00390625", "scale: nan");
    let result = folder.run("time --model net.prototxt --iterations 1").succeeded();
    assert!(
        result.log.contains(&"layer `data`: transform_param.scale is NaN".into()),
        "{result:#?}"
    );
    folder.write("net.prototxt", NET);
    let result = folder.run("time --model net.prototxt --iterations 1").succeeded();
    let is_about_layers = |line: &&String| line.starts_with("layer `") || line.starts_with("net `");
    assert_eq!(result.log.iter().find(is_about_layers), None);
}

#[test]
fn weights_without_a_layer_of_the_net_are_refused_unless_a_flag_allows_them() {
    let folder = Folder::new("no-match");
    folder.run("train --solver solver.prototxt").succeeded();
    fs::rename(folder.path("lenet_iter_8.caffemodel"), folder.path("a.caffemodel")).unwrap();
    folder.write_replaced("net.prototxt", NET, "\"ip\"", "\"fc\"");
    for args in [
        "test --model net.prototxt --weights a.caffemodel --iterations 1",
        "train --solver solver.prototxt --weights a.caffemodel",
        "extract-features a.caffemodel net.prototxt fc db 1",
    ] {
        let reason =
            "no layer name in common with the net: the weights have `ip`; the net has `fc`";
        folder.run(args).failed_with(&["a.caffemodel: ", reason]);
        let result = folder.run(&format!("{args} --allow-no-match")).succeeded();
        let warning =
            "a.caffemodel: no layer name in common with the net, so no weights are copied";
        assert!(result.log.contains(&warning.into()), "{result:#?}");
    }
}
