//! Tests of `cortado inspect` on every supported kind of file.

use crate::command::{Folder, NET, SOLVER};
use cortado::{
    data::LmdbWriter,
    proto::{
        self, BlobProto, BlobShape, Datum, LayerParameter, LayerState, Message, NetParameter,
        NetRunState, RunState, SolverState, V1LayerParameter,
    },
};
use serde_json::{Value, json};
use std::{fs, path::Path};

fn blob(shape: &[i64], data: &[f32]) -> BlobProto {
    let shape = Some(BlobShape { dim: shape.to_vec() });
    BlobProto { shape, data: data.to_vec(), ..Default::default() }
}

/// Returns a net with a fully connected layer, whose weights have mean 1 and standard deviation 2.
fn net() -> NetParameter {
    let weights = blob(&[2, 2], &[-1.0, 3.0, -1.0, 3.0]);
    let mut bias = blob(&[3], &[f32::NAN, f32::INFINITY, 0.5]);
    bias.diff = vec![1.0, 2.0, 3.0];
    let ip = LayerParameter {
        name: Some("ip".into()),
        r#type: Some("InnerProduct".into()),
        bottom: vec!["x".into()],
        top: vec!["y".into()],
        blobs: vec![weights, bias],
        ..Default::default()
    };
    let loss = LayerParameter {
        name: Some("loss".into()),
        r#type: Some("SoftmaxWithLoss".into()),
        bottom: vec!["y".into(), "label".into()],
        top: vec!["loss".into()],
        ..Default::default()
    };
    NetParameter { name: Some("small".into()), layer: vec![ip, loss], ..Default::default() }
}

fn inspect_json(folder: &Folder, file: &str) -> Value {
    let result = folder.run(&format!("inspect {file} --json")).succeeded();
    serde_json::from_str(&result.out).unwrap()
}

#[test]
fn inspect_prints_a_trained_net_as_a_table() {
    let folder = Folder::new("inspect-net");
    proto::write_binary(folder.path("small.caffemodel"), &net()).unwrap();
    let want = "\
small.caffemodel: trained net
name: small

layer  type             bottoms  tops
ip     InnerProduct     x        y
loss   SoftmaxWithLoss  y label  loss

array      type  shape  elements  bytes  min  max  mean       std  NaN  inf
ip.0       f32   2×2           4     16   -1    3     1         2    0    0
ip.1       f32   3             3     12  0.5  0.5   0.5         0    1    1
ip.1 diff  f32   3             3     12    1    3     2  0.816497    0    0
total                         10     40
";
    assert_eq!(folder.run("inspect small.caffemodel").succeeded().out, want);
}

#[test]
fn inspect_json_agrees_with_the_table() {
    let folder = Folder::new("inspect-json");
    proto::write_binary(folder.path("small.caffemodel"), &net()).unwrap();
    let report = inspect_json(&folder, "small.caffemodel");
    assert_eq!(report["file"], "small.caffemodel");
    assert_eq!(report["kind"], "trained net");
    assert_eq!(report["fields"], json!({ "name": "small" }));
    let ip = json!({ "name": "ip", "type": "InnerProduct", "bottoms": ["x"], "tops": ["y"] });
    assert_eq!(report["layers"][0], ip);
    assert_eq!(report["layers"][1]["bottoms"], json!(["y", "label"]));
    let weights = json!({
        "name": "ip.0", "type": "f32", "shape": [2, 2], "elements": 4, "bytes": 16,
        "min": -1.0, "max": 3.0, "mean": 1.0, "std": 2.0, "nan": 0, "inf": 0,
    });
    assert_eq!(report["arrays"][0], weights);
    assert_eq!(report["total"], json!({ "arrays": 3, "elements": 10, "bytes": 40 }));
}

#[test]
fn net_and_solver_definitions_are_recognised() {
    let folder = Folder::new("inspect-definitions");
    let net = inspect_json(&folder, "net.prototxt");
    assert_eq!((&net["kind"], &net["fields"]["name"]), (&json!("net"), &json!("LeNet")));
    let types: Vec<_> = net["layers"].as_array().unwrap().iter().map(|l| &l["type"]).collect();
    assert_eq!(types, ["Data", "InnerProduct", "Accuracy", "SoftmaxWithLoss"]);
    assert_eq!(net.get("arrays"), None);

    let more_fields =
        "test_iter: 3\nnet: \"other\"\nnet_param { name: \"inner\" state { level: 2 } }";
    let solver = SOLVER.replace("net: \"net.prototxt\"", more_fields) + "solver_mode: CPU\n";
    folder.write("solver", solver);
    let solver = inspect_json(&folder, "solver");
    assert_eq!(solver["kind"], "solver");
    let field = |name: &str| &solver["fields"][name];
    assert_eq!(*field("net"), "other");
    assert_eq!(*field("base_lr"), json!(0.01));
    assert_eq!(*field("max_iter"), json!(8));
    assert_eq!(*field("test_iter"), json!([3, 2]));
    assert_eq!(*field("solver_mode"), "CPU");
    assert_eq!(*field("net_param"), "{ name: \"inner\" state { level: 2 } }");
    let table = folder.run("inspect solver.prototxt").succeeded().out;
    assert!(table.starts_with("solver.prototxt: solver\n"), "{table}");
    for field in ["net: net.prototxt", "base_lr: 0.01", "lr_policy: inv"] {
        assert!(table.contains(&format!("\n{field}\n")), "{table}");
    }
}

#[test]
fn binary_messages_are_recognised_by_content() {
    let folder = Folder::new("inspect-messages");
    let dropout = LayerState { name: Some("drop".into()), position: Some(4), blobs: vec![] };
    let hidden_state = vec![blob(&[1], &[0.5])];
    let lstm = LayerState { name: Some("lstm".into()), position: None, blobs: hidden_state };
    let run = NetRunState { layer: vec![dropout, lstm] };
    let state = SolverState {
        iter: Some(4),
        learned_net: Some("a.caffemodel".into()),
        history: vec![blob(&[2], &[1.0, 2.0])],
        current_step: Some(1),
        run: Some(RunState { random_seed: Some(7), net: vec![run], ..RunState::default() }),
    };

    let old_layer = V1LayerParameter { name: Some("old".into()), ..Default::default() };
    let old_net = NetParameter { layers: vec![old_layer], ..Default::default() };
    let mut doubles = blob(&[1, 2], &[]);
    doubles.double_data = vec![0.25, 0.75];
    proto::write_binary(folder.path("state"), &state).unwrap();
    proto::write_binary(folder.path("net"), &net()).unwrap();
    proto::write_binary(folder.path("old"), &old_net).unwrap();
    proto::write_binary(folder.path("mean.binaryproto"), &doubles).unwrap();

    let state = inspect_json(&folder, "state");
    assert_eq!(state["kind"], "solver state");
    let fields = json!({
        "iter": 4, "learned_net": "a.caffemodel", "current_step": 1, "random_seed": 7,
        "position of drop (train net)": 4
    });
    assert_eq!(state["fields"], fields);
    assert_eq!(state["arrays"][0]["name"], "history.0");
    assert_eq!(state["arrays"][1]["name"], "lstm.0 (train net)");
    assert_eq!(inspect_json(&folder, "net")["total"]["elements"], 10);
    assert_eq!(inspect_json(&folder, "old")["layers"][0]["name"], "old");
    let mean = inspect_json(&folder, "mean.binaryproto");
    assert_eq!(mean["kind"], "blob");
    let data = &mean["arrays"][0];
    assert_eq!((&data["name"], &data["type"]), (&json!("data"), &json!("f64")));
    assert_eq!((&data["mean"], &data["std"]), (&json!(0.5), &json!(0.25)));
}

#[test]
fn numpy_and_safetensors_files_are_recognised() {
    let folder = Folder::new("inspect-others");
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/tensor_io");
    let cases = [
        ("f4_big.npy", "npy", &["data"][..]),
        ("packed.npz", "npz", &["grid", "zeros"]),
        ("bf16.safetensors", "safetensors", &["b"]),
    ];
    for (file, kind, names) in cases {
        let bytes = fs::read(fixtures.join(file)).unwrap();
        for name in [file, "without-extension"] {
            folder.write(name, &bytes);
            let report = inspect_json(&folder, name);
            assert_eq!(report["kind"], kind);
            let arrays = report["arrays"].as_array().unwrap();
            let array_names: Vec<_> = arrays.iter().map(|array| array["name"].clone()).collect();
            assert_eq!(array_names, names);
        }
    }
    let empty_array = fs::read(fixtures.join("empty.npy")).unwrap();
    folder.write("empty.npy", empty_array);
    assert_eq!(inspect_json(&folder, "empty.npy")["arrays"][0]["min"], Value::Null);
}

#[test]
fn an_unreadable_file_is_an_error_of_one_line() {
    let folder = Folder::new("inspect-wrong");
    let inspect_fails = |file: &str, parts: &[&str]| {
        folder.run(&format!("inspect {file}")).failed_with(&[&["cortado: ", file], parts].concat());
    };
    inspect_fails("gone", &["No such file"]);
    inspect_fails("gone.npy", &["No such file"]);
    folder.write("rubbish", [7; 40]);
    inspect_fails("rubbish", &["unknown or damaged file format"]);
    folder.write("rubbish.npz", "PK");
    inspect_fails("rubbish.npz", &[]);
    // The error is that of the solver parser, which got further into the file than the net parser.
    folder.write("wrong.prototxt", "base_lr: 0.1\nmax_itre: 3\n");
    inspect_fails("wrong.prototxt", &["wrong.prototxt:2:1: ", "max_itre"]);
    folder.write_replaced("wrong-net.prototxt", NET, "bottom: \"ip\"", "botom: \"ip\"");
    inspect_fails("wrong-net.prototxt", &["botom"]);
    let mut short_net = net();
    short_net.layer[0].blobs[1].data.pop();
    proto::write_binary(folder.path("short.caffemodel"), &short_net).unwrap();
    inspect_fails("short.caffemodel", &["layer `ip`", "2 values of data"]);
    folder.run("inspect").refused_with(&["<FILE>"]);

    // The report escapes control characters in names, because a terminal would interpret control
    // characters.
    let mut unprintable_net = net();
    unprintable_net.name = Some("\u{1b}[2J".into());
    proto::write_binary(folder.path("loud.caffemodel"), &unprintable_net).unwrap();
    let table = folder.run("inspect loud.caffemodel").succeeded().out;
    assert!(table.contains("name: \\u{1b}[2J\n"), "{table}");
}

#[test]
fn cortado_test_reads_weights_in_all_formats() {
    use cortado::{CpuDevice, Net, tensor_io};
    let folder = Folder::new("inspect-weights");
    folder.run("train --solver solver.prototxt").succeeded();
    let definition = proto::read_net(folder.path("net.prototxt")).unwrap();
    let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&definition).unwrap();
    let trained = proto::read_trained_net(folder.path("lenet_iter_8.caffemodel")).unwrap();
    net.copy_trained_from(&trained).unwrap();
    let tensors = net.to_tensors().unwrap();
    tensor_io::write_safetensors(folder.path("a.safetensors"), &tensors).unwrap();
    tensor_io::write_npz(folder.path("a.npz"), &tensors).unwrap();
    let test = |weights: &str| {
        let args = format!("test --model net.prototxt --weights {weights} --iterations 2");
        folder.run(&args).succeeded().out
    };
    let want = test("lenet_iter_8.caffemodel");
    assert_eq!([test("a.safetensors"), test("a.npz")], [want.clone(), want]);

    tensor_io::write_npz(folder.path("other.npz"), &tensors[..1]).unwrap();
    let args = "test --model net.prototxt --weights other.npz --iterations 2";
    folder.run(args).failed_with(&["other.npz: layer `ip`", "missing tensor `ip.1`"]);
}

#[test]
fn an_lmdb_database_shows_records_shape_and_labels() {
    let folder = Folder::new("inspect-lmdb");
    let bytes = |shape: [i32; 3], label| {
        let [channels, height, width] = shape.map(Some);
        let data = Some(vec![7; shape.iter().product::<i32>() as usize]);
        Datum { channels, height, width, data, label: Some(label), ..Default::default() }
    };
    let write = |name: &str, records: &[Datum]| {
        let mut writer = LmdbWriter::create(folder.path(name), false).unwrap();
        for (index, record) in records.iter().enumerate() {
            writer.put(format!("{index:08}").as_bytes(), &record.encode_to_vec()).unwrap();
        }
        writer.finish().unwrap();
    };
    write("digits", &[3, 9, 3].map(|label| bytes([1, 2, 4], label)));
    let want = "\
digits: LMDB database
records: 3
shape: 1×2×4
values: bytes
smallest label: 3
greatest label: 9
distinct labels: 2
";
    assert_eq!(folder.run("inspect digits").succeeded().out, want);
    let report = inspect_json(&folder, "digits/data.mdb");
    assert_eq!(
        (&report["kind"], &report["fields"]["records"]),
        (&json!("LMDB database"), &json!(3))
    );

    write("mixed", &[bytes([1, 2, 4], 0), bytes([3, 1, 1], 0), bytes([1, 2, 4], 0)]);
    let report = folder.run("inspect mixed").succeeded().out;
    for line in
        ["shape: 1×2×4 (2 of 3 records)", "shape: 3×1×1 (1 of 3 records)", "distinct labels: 1"]
    {
        assert!(report.lines().any(|printed| printed == line), "{line}: {report}");
    }
    let image = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/images/color.png");
    let (data, encoded, label) = (Some(fs::read(image).unwrap()), Some(true), Some(-1));
    write("images", &[Datum { data, encoded, label, ..Default::default() }]);
    let images = folder.run("inspect images").succeeded().out;
    for line in ["shape of the first image: 3×9×11", "values: encoded images", "smallest label: -1"]
    {
        assert!(images.lines().any(|printed| printed == line), "{line}: {images}");
    }

    write("other", &[]);
    assert_eq!(folder.run("inspect other").succeeded().out, "other: LMDB database\nrecords: 0\n");
    let mut writer = LmdbWriter::create(folder.path("text"), false).unwrap();
    writer.put(b"a", b"text").unwrap();
    writer.finish().unwrap();
    folder.run("inspect text").failed_with(&["text: key `a`: not a caffe.Datum"]);
    folder.run("inspect .").failed_with(&[".: this folder is not a database", "data.mdb"]);
    folder.write("CURRENT", "");
    folder.run("inspect .").failed_with(&["CURRENT: damaged at byte 0: expected a name such as"]);
}
