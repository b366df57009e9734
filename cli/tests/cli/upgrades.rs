//! Tests of upgrades of definitions and weights in Caffe's older formats.

use crate::command::{Folder, SOLVER};
use cortado::proto::{self, NetParameter, V1LayerParameter};

/// Net definition in Caffe's V1 format.
const V1_NET: &str = "input: \"x\" layers { name: \"r\" type: RELU bottom: \"x\" top: \"y\" }";

/// The net definition `V1_NET`, upgraded to the current format.
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
    let result = folder.run("upgrade-net old.prototxt new.prototxt").succeeded();
    let changes = ["upgraded layers of the V1 format", "upgraded input fields"];
    assert_eq!(result.out, changes.map(|change| format!("old.prototxt: {change}\n")).concat());
    assert_eq!((text("old.prototxt"), text("new.prototxt")), (V1_NET.into(), V2_NET.into()));
    let result = folder.run("upgrade-net new.prototxt new.prototxt").succeeded();
    assert_eq!(
        (&result.out[..], text("new.prototxt")),
        ("new.prototxt: up to date\n", V2_NET.into())
    );

    let net: NetParameter = proto::parse_text(V1_NET, "").unwrap();
    let want: NetParameter = proto::parse_text(V2_NET, "").unwrap();
    for (file, flag) in [("a.caffemodel", ""), ("a.binaryproto", ""), ("a", "--binary")] {
        proto::write_binary(folder.path(file), &net).unwrap();
        folder.run(&format!("upgrade-net {flag} {file} {file}")).succeeded();
        assert_eq!(proto::read_binary::<NetParameter>(folder.path(file)).unwrap(), want);
    }
    folder.write("text.caffemodel", V1_NET);
    folder.run("upgrade-net --text text.caffemodel text.caffemodel").succeeded();
    assert_eq!(text("text.caffemodel"), V2_NET);
    let extended_text = format!("{V1_NET}\nspin: 1 # of a fork\n");
    folder.write("fork.prototxt", &extended_text);
    let line = extended_text.lines().count();
    let problem = format!("fork.prototxt:{line}:1: `NetParameter` has no field `spin`");
    folder.run("upgrade-net fork.prototxt b").failed_with(&[&problem]);
    let result = folder.run("upgrade-net --skip-unknown fork.prototxt b").succeeded();
    assert_eq!(result.log, [format!("{problem}; skipped")]);
    assert_eq!(text("b"), V2_NET);
    // Append a varint in field 1000, which Caffe's messages do not declare.
    let extended_bytes = [&folder.read("a")[..], &[0xc0, 0x3e, 7]].concat();
    folder.write("a", &extended_bytes);
    folder.run("upgrade-net --binary a b").succeeded();
    assert_eq!(folder.read("b"), extended_bytes);

    folder.write("solver.prototxt", "base_lr: 0.5 solver_type: ADAM");
    let result = folder.run("upgrade-solver solver.prototxt solver.prototxt").succeeded();
    assert_eq!(result.out, "solver.prototxt: replaced solver_type by type\n");
    assert_eq!(text("solver.prototxt"), "base_lr: 0.5\ntype: \"Adam\"\n");
}

#[test]
fn a_failed_upgrade_writes_nothing() {
    let folder = Folder::new("upgrade-wrong");
    let upgrade = |kind: &str, content: &str| {
        folder.write("old", content);
        folder.run(&format!("upgrade-{kind} old new"))
    };
    upgrade("net", "layers { } layer { }").failed_with(&["cortado: old: ", "both `layer` and"]);
    let v0_net = "layers { layer { name: \"a\" type: \"b\" } }";
    upgrade("net", v0_net).failed_with(&["cortado: old: layer `a`: ", "`b`"]);
    upgrade("net", "layrs { }").failed_with(&["cortado: old:1:1: ", "`layrs`"]);
    upgrade("solver", "solver_type: SGD type: \"SGD\"").failed_with(&["old: ", "solver_type"]);
    folder.run("upgrade-net gone new").failed_with(&["cortado: gone: No such file"]);
    folder.run("upgrade-net old").refused_with(&["OUT"]);
    assert!(!folder.path("new").exists());
    folder.write("old", V1_NET);
    folder.run("upgrade-net old gone/new").failed_with(&["cortado: gone/new: No such file"]);
}

#[test]
fn training_upgrades_old_definitions_and_weights() {
    let folder = Folder::new("upgrade-training");
    let v1_net = r#"name: "LeNet"
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
    folder.write("net.prototxt", v1_net);
    folder.write("solver.prototxt", format!("{SOLVER} solver_type: SGD"));
    let result = folder.run("train --solver solver.prototxt").succeeded();
    assert!(folder.read(model) == want, "training from the V1 definition gives different weights");
    for line in [
        "solver.prototxt: replaced solver_type by type",
        "net.prototxt: moved transformation fields to transform_param",
        "net.prototxt: upgraded layers of the V1 format",
    ] {
        assert!(result.log.iter().any(|logged| logged == line), "{line}: {result:#?}");
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
