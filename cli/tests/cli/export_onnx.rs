//! Tests of `cortado export-onnx`.

use crate::command::Folder;
use cortado::proto::{self, onnx::ModelProto};

const DEPLOY: &str = r#"name: "Deploy"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 4 dim: 1 dim: 28 dim: 28 } } }
layer {
  name: "ip"
  type: "InnerProduct"
  bottom: "data"
  top: "ip"
  inner_product_param { num_output: 10 }
}
layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }
"#;

#[test]
fn export_onnx_writes_a_trained_net() {
    let folder = Folder::new("export_onnx");
    folder.run("train --solver solver.prototxt").succeeded();
    folder.write("deploy.prototxt", DEPLOY);
    let weights = "--weights lenet_iter_8.caffemodel";
    let export = |args: &str| {
        let args = format!("export-onnx --model deploy.prototxt {weights} -o net.onnx {args}");
        assert_eq!(folder.run(&args).succeeded().out, "");
        proto::read_binary::<ModelProto>(folder.path("net.onnx")).unwrap().graph.unwrap()
    };
    let graph = export("");
    let operators: Vec<_> = graph.node.iter().map(|node| node.op_type()).collect();
    assert_eq!(operators, ["Flatten", "Gemm", "Softmax"]);
    assert_eq!((graph.name(), graph.output[0].name()), ("Deploy", "prob"));
    let trained = proto::read_trained_net(folder.path("lenet_iter_8.caffemodel")).unwrap();
    let ip = trained.layer.iter().find(|layer| layer.name() == "ip").unwrap();
    let bytes: Vec<u8> = ip.blobs[0].data.iter().flat_map(|value| value.to_le_bytes()).collect();
    let tensor = graph.initializer.iter().find(|tensor| tensor.name() == "ip.0").unwrap();
    assert_eq!(tensor.raw_data(), bytes);

    let input = export("--dynamic-batch").input[0].clone();
    let shape = input.r#type.unwrap().tensor_type.unwrap().shape.unwrap();
    assert_eq!(shape.dim[0].dim_param(), "batch");

    // The export leaves out the loss of the net for training, so the scores are the output of the
    // model.
    folder.run(&format!("export-onnx --model net.prototxt {weights} -o train.onnx")).succeeded();
    let model: ModelProto = proto::read_binary(folder.path("train.onnx")).unwrap();
    let graph = model.graph.unwrap();
    assert_eq!((graph.input.len(), graph.output[0].name()), (1, "ip"));
}

#[test]
fn a_net_that_cannot_be_exported_writes_no_file() {
    let folder = Folder::new("export_onnx_refused");
    folder.run("train --solver solver.prototxt").succeeded();
    let filter = r#"layer { name: "pick" type: "Filter" bottom: "prob" bottom: "s" top: "y" }"#;
    let selector = r#"layer { name: "s" type: "Input" top: "s" input_param { shape { dim: 4 } } }"#;
    folder.write("deploy.prototxt", format!("{DEPLOY}{selector}\n{filter}\n"));
    let export = |args: &str| {
        folder.run(&format!("export-onnx --weights lenet_iter_8.caffemodel -o net.onnx {args}"))
    };
    export("--model deploy.prototxt").failed_with(&[
        "deploy.prototxt:12: layer `pick`: Filter cannot be exported to ONNX: the shapes of its \
         tops depend on values",
    ]);
    export("--model net.prototxt --dynamic-batch").failed_with(&[
        "net.prototxt:2: layer `data`: Data: the data determine the batch size; replace the layer by \
         an Input layer",
    ]);
    assert_eq!(folder.files(".onnx"), [""; 0]);
    folder.write("net.onnx", "old");
    export("--model deploy.prototxt").failed_with(&["pick"]);
    assert_eq!(folder.read("net.onnx"), b"old");
    folder
        .run("export-onnx --model net.prototxt --weights lenet_iter_8.caffemodel -o net.pb")
        .failed_with(&["net.pb: cannot write `.pb`, only ONNX; use the suffix .onnx"]);
    folder.run("export-onnx --model net.prototxt -o net.onnx").refused_with(&["--weights"]);
}
