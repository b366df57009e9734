//! Tests of `cortado time` and `cortado draw`.

use crate::command::{Folder, NET};
use cortado::data::{Color, Image};
use serde_json::Value;

#[test]
fn time_prints_each_layer_and_memory() {
    let folder = Folder::new("time");
    let time = |args: &str| {
        let result = folder.run(&format!("time --model net.prototxt --iterations 3 {args}"));
        result.succeeded().out
    };
    let [train, test] = [time(""), time("--phase TEST --forward-only")];
    let layers = ["data", "ip", "loss", "accuracy"];
    for (out, layers) in [(&train, &layers[..3]), (&test, &layers[..])] {
        for layer in layers {
            let rows = out.lines().filter(|line| line.starts_with(&format!("{layer} ")));
            assert_eq!(rows.count(), 1, "{layer}: {out}");
        }
        assert!(out.contains("\nForward pass: ") && out.contains("\nMemory: "), "{out}");
    }
    assert!(train.contains("\nBackward pass: ") && !test.contains("Backward pass"));
    let shares_in = |out: &str| -> Vec<f64> {
        let shares =
            out.lines().skip(1).map_while(|line| line.split(' ').next_back()?.parse().ok());
        shares.collect()
    };
    let shares = shares_in(&train);
    let sum: f64 = shares.iter().sum();
    assert!(shares.len() >= 3 && (99.0..101.0).contains(&sum), "{train}");

    folder.run("time --model net.prototxt --iterations 0").refused_with(&["--iterations"]);
    folder.run("time --model net.prototxt --weights gone").failed_with(&["gone: No such file"]);
    folder.run("time --model gone.prototxt").failed_with(&["gone.prototxt: No such file"]);
}

/// Decoding the images takes much longer than the net's passes, which process small crops.
#[test]
fn a_slow_source_appears_as_wait_for_data() {
    let folder = Folder::new("slow");
    let small_image = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/images/color.png");
    let image = Image::read(small_image, Color::AsStored).unwrap().resize(240, 320).unwrap();
    folder.write("a.png", image.encode_png().unwrap());
    folder.write("list", "a.png 1\n");
    let net = NET
        .replace("\"Data\"", "\"ImageData\"")
        .replace("scale: 0.00390625", "crop_size: 8")
        .replace("data_param", "image_data_param")
        .replace("digits:train?count=200&seed=1", "list");
    folder.write("net.prototxt", net);
    let out = folder.run("time --model net.prototxt --iterations 5").succeeded().out;
    let waited = out.lines().find(|line| line.starts_with("Waiting for data: ")).unwrap();
    let share = waited.split(", ").nth(1).and_then(|share| share.split(' ').next()?.parse().ok());
    assert!(share > Some(50.0), "{out}");
}

#[test]
fn time_with_doctor_prints_the_cause_of_each_transfer() {
    let folder = Folder::new("time-doctor");
    folder.write("net.prototxt", NET);
    let run = |device: &str| {
        let args = format!("time --model net.prototxt --iterations 1 --doctor --device {device}");
        folder.run(&args).succeeded().out
    };
    let out = run("simulated");
    let report = out.split("Transfers of two passes:\n").nth(1).unwrap();
    assert!(report.starts_with("no needless transfers, writes or waits\n"), "{report}");
    // Each of the two passes downloads the loss, a number of four bytes.
    let row = report.lines().find(|line| line.starts_with("download")).unwrap();
    let cells: Vec<_> = row.split_whitespace().collect();
    assert_eq!(cells[1..3], ["2", "8"], "{report}");
    assert!(row.contains("dot of f32") && row.contains("layer `loss`, forward"), "{report}");
    assert!(run("cpu").ends_with("no copies between host and device\n"));
}

#[test]
fn time_prints_the_diagnosis_as_json() {
    let folder = Folder::new("time-json");
    folder.write("net.prototxt", NET);
    let args = "time --model net.prototxt --iterations 1 --doctor --json --device simulated";
    let json: Value = serde_json::from_str(&folder.run(args).succeeded().out).unwrap();
    let layers = json["layers"].as_array().unwrap();
    let ip = layers.iter().find(|layer| layer["name"] == "ip").unwrap();
    assert_eq!((&ip["parameters"], &ip["type"]), (&7850.into(), &"InnerProduct".into()));
    assert!(ip["forward_seconds"].as_f64() > Some(0.0), "{ip}");
    assert!(json["forward_seconds"].as_f64() >= ip["forward_seconds"].as_f64(), "{json}");
    assert_eq!(json["doctor"]["findings"], Value::Array(Vec::new()));
    // Each of the two passes downloads the loss, a number of four bytes.
    let transfers = json["doctor"]["transfers"].as_array().unwrap();
    let loss = transfers.iter().find(|transfer| transfer["kind"] == "download").unwrap();
    assert_eq!((&loss["count"], &loss["bytes"]), (&2.into(), &8.into()));
    assert_eq!(
        (&loss["writer"]["kernel"], &loss["writer"]["layer"]),
        (&"dot".into(), &"loss".into())
    );
}

#[test]
fn draw_writes_a_row_per_layer() {
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
    // The SVG image has a circle for each layer and a path for each blob: data, label, ip,
    // accuracy, loss.
    assert_eq!((test.matches("<circle").count(), test.matches("<path").count()), (4, 5));
    // `cortado draw` draws a net even if its data is missing, and escapes text from the definition.
    let net_without_data = NET.replace("digits:train?count=200&seed=1", "idx:gone");
    folder.write("net.prototxt", net_without_data.replace("\"LeNet\"", "\"<LeNet> & co\""));
    let svg_without_shapes = draw("");
    assert!(
        svg_without_shapes.contains(">&lt;LeNet&gt; &amp; co: 4 layers<")
            && !svg_without_shapes.contains("×"),
        "{svg_without_shapes}"
    );
    folder.run("draw net.prototxt").refused_with(&["--output"]);
    folder.run("draw net.prototxt -o gone/net.svg").failed_with(&["gone/net.svg: No such file"]);
}
