//! Tests of `cortado detect`: the printed objects, the drawing and errors.

use crate::command::Folder;
use cortado::proto::{self, NetParameter};
use std::path::Path;

/// A net with constant offsets and scores: two prior boxes in each image, one of which holds an
/// object of class 1 and the other one of class 2.
const NET: &str = "
    layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: [4, 3, 8, 16] } } }
    layer { name: 'pool' type: 'Pooling' bottom: 'x' top: 'pool'
      pooling_param { pool: MAX kernel_size: 8 stride: 8 } }
    layer { name: 'priors' type: 'PriorBox' bottom: 'pool' bottom: 'x' top: 'priors'
      prior_box_param { min_size: 4 } }
    layer { name: 'offsets' type: 'DummyData' top: 'offsets'
      dummy_data_param { shape { dim: [1, 8] } } }
    layer { name: 's' type: 'DummyData' top: 'a' top: 'b' dummy_data_param {
      shape { dim: [1, 1] } data_filler { value: 0.875 } data_filler { value: 0.625 } } }
    layer { name: 'z' type: 'DummyData' top: 'z' dummy_data_param { shape { dim: [1, 2] } } }
    layer { name: 'w' type: 'DummyData' top: 'w' dummy_data_param { shape { dim: [1, 1] } } }
    layer { name: 'scores' type: 'Concat' bottom: 'z' bottom: 'a' bottom: 'w' bottom: 'b'
      bottom: 'w' top: 'scores' }
    layer { name: 'out' type: 'DetectionOutput' bottom: 'offsets' bottom: 'scores'
      bottom: 'priors' top: 'out' detection_output_param { num_classes: 3 code_type: CENTER_SIZE
      confidence_threshold: 0.1 keep_top_k: 10 } }";

const DETECT: &str = "detect --model deploy.prototxt --weights no.caffemodel";

fn folder(name: &str) -> (Folder, String) {
    let folder = Folder::new(name);
    folder.write("deploy.prototxt", NET);
    proto::write_binary(folder.path("no.caffemodel"), &NetParameter::default()).unwrap();
    // The image has 7 x 5 pixels.
    let image = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/images/color.png");
    (folder, image.display().to_string())
}

#[test]
fn detect_prints_classes_scores_and_edges_in_pixels() {
    let (folder, image) = folder("detect");
    let [height, width] = {
        let image = cortado::data::Image::read(&image, cortado::data::Color::Bgr).unwrap();
        [image.shape()[1] as f64, image.shape()[2] as f64]
    };
    let out = folder.run(&format!("{DETECT} --json {image}")).succeeded().out;
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json[0]["image"], image);
    let objects = json[0]["objects"].as_array().unwrap();
    // The prior boxes are squares of 4 pixels around (4, 4) and (12, 4) of the input of 16 x 8.
    let want = [(2, 0.875, 2.0), (1, 0.625, 10.0)];
    assert_eq!(objects.len(), want.len(), "{out}");
    for (object, (class, score, left)) in objects.iter().zip(want) {
        assert_eq!(
            (object["class"].as_u64(), object["score"].as_f64()),
            (Some(class), Some(score))
        );
        assert!(object["label"].is_null());
        let edges = [left / 16.0 * width, height / 4.0, (left + 4.0) / 16.0 * width, height * 0.75];
        for (side, edge) in ["left", "top", "right", "bottom"].iter().zip(edges) {
            assert!((object[side].as_f64().unwrap() - edge).abs() < 1e-4, "{side} of {object}");
        }
    }

    folder.write(
        "map.prototxt",
        "item { name: 'n2' label: 2 display_name: 'two' }
        item { name: 'one' label: 1 }",
    );
    folder.write("names.txt", "background\none\ntwo\n");
    for labels in ["map.prototxt", "names.txt"] {
        let args = format!("{DETECT} --labels {labels} {image} {image}");
        let out = folder.run(&args).succeeded().out;
        let lines: Vec<_> = out.lines().collect();
        assert_eq!(lines.len(), 2 * 4, "{out}");
        assert_eq!(lines[0], image);
        let heading: Vec<_> = lines[1].split_whitespace().collect();
        assert_eq!(heading, ["class", "score", "left", "top", "right", "bottom"]);
        assert!(lines[2].starts_with("two    0.8750 "), "{out}");
        assert!(lines[3].starts_with("one    0.6250 "), "{out}");
    }
    let out = folder.run(&format!("{DETECT} --threshold 0.7 {image}")).succeeded().out;
    assert_eq!(out.lines().count(), 3, "{out}");
}

#[test]
fn detect_draws_a_box_around_each_object() {
    let (folder, image) = folder("detect-svg");
    folder.write("names.txt", "background\n<one>\ntwo\n");
    let args = format!("{DETECT} --labels names.txt --svg out.svg {image}");
    folder.run(&args).succeeded();
    let svg = String::from_utf8(folder.read("out.svg")).unwrap();
    assert_eq!(svg.matches("fill=\"none\"").count(), 2);
    assert!(svg.contains(">two 0.88</text>") || svg.contains(">two 0.87</text>"), "{svg}");
    assert!(svg.contains("&lt;one&gt; 0.6"), "{svg}");
    assert!(svg.contains("data:image/png;base64,iVBORw0KGgo"));
}

#[test]
fn detect_explains_wrong_arguments_in_one_line() {
    let (folder, image) = folder("detect-errors");
    folder.run(&format!("{DETECT} --svg a.png {image}")).failed_with(&["a.png: ", "only SVG"]);
    folder
        .run(&format!("{DETECT} --svg a.svg {image} {image}"))
        .failed_with(&["--svg draws one image, but 2 images are given"]);
    folder.write("names.txt", "one");
    folder
        .run(&format!("{DETECT} --labels names.txt {image}"))
        .failed_with(&["names.txt: expected 3 labels", "found 1"]);
    folder.run(&format!("{DETECT} gone.jpg")).failed_with(&["gone.jpg: No such file"]);
    let (net, _) = NET.split_once("layer { name: 'out'").unwrap();
    folder.write("deploy.prototxt", net);
    folder
        .run(&format!("{DETECT} {image}"))
        .failed_with(&["deploy.prototxt: a detector needs a net with one DetectionOutput or"]);
}
