//! Tests of `cortado classify`: the pixels that the net receives, and the printed classes.

use crate::{
    command::{Folder, SOLVER},
    optimized::optimized,
};
use cortado::proto::{self, BlobProto, NetParameter};
use std::{fs, path::Path};

fn images() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/images")
}

/// Returns the pixels that OpenCV computed for a resized image, one channel after the other.
fn expected_pixels(file: &str, height: usize, width: usize) -> Vec<f32> {
    let table = fs::read_to_string(images().join("expected.tsv")).unwrap();
    let start = format!("{file}\tresize {height} {width}\t");
    let row = table.lines().find(|row| row.starts_with(&start)).unwrap();
    let columns: Vec<_> = row.split('\t').collect();
    let channels: usize = columns[2].parse().unwrap();
    let byte = |i: usize| u8::from_str_radix(&columns[5][2 * i..2 * i + 2], 16).unwrap();
    let size = height * width;
    let planar_byte = |i: usize| byte(i % size * channels + i / size);
    (0..channels * size).map(|i| planar_byte(i).into()).collect()
}

/// Writes the definition of a net that returns its input, so that the class scores are the pixels.
fn net(folder: &Folder, shape: &str) {
    let dims: Vec<_> = shape.split(' ').map(|dim| format!("dim: {dim}")).collect();
    let dims = dims.join(" ");
    let text = format!(
        "layer {{ name: \"x\" type: \"Input\" top: \"x\" input_param {{ shape {{ {dims} }} }} }} \
         layer {{ name: \"y\" type: \"Flatten\" bottom: \"x\" top: \"y\" }}"
    );
    folder.write("deploy.prototxt", text);
    proto::write_binary(folder.path("no.caffemodel"), &NetParameter::default()).unwrap();
}

const CLASSIFY: &str = "classify --model deploy.prototxt --weights no.caffemodel";

fn printed_classes(out: &str) -> Vec<(f32, String)> {
    let lines = out.lines().filter_map(|line| line.split_once(" - "));
    lines.map(|(score, name)| (score.parse().unwrap(), name.to_owned())).collect()
}

#[test]
fn classify_passes_the_net_the_same_pixels_as_caffes_example() {
    let folder = Folder::new("classify");
    for (file, channels, height, width) in [("color.png", 3, 5, 7), ("gray.png", 1, 3, 3)] {
        let pixels = expected_pixels(file, height, width);
        // The net definition has a batch size of 10, which `classify` reshapes to 1.
        net(&folder, &format!("10 {channels} {height} {width}"));
        let means: Vec<f32> = (0..channels).map(|channel| 10.5 * channel as f32 + 3.0).collect();
        // The channels of the mean image have the means `means`. The mean image and the net's input
        // differ in size.
        let mean = BlobProto {
            num: Some(1),
            channels: Some(channels),
            height: Some(1),
            width: Some(2),
            data: means.iter().flat_map(|mean| [mean - 1.0, mean + 1.0]).collect(),
            ..Default::default()
        };
        proto::write_binary(folder.path("mean.binaryproto"), &mean).unwrap();
        let values = means.iter().map(f32::to_string).collect::<Vec<_>>().join(",");
        let image = images().join(file).display().to_string();
        for mean in ["--mean mean.binaryproto", &format!("--mean-value {values}")] {
            let args = format!("{CLASSIFY} {mean} --scale 0.5 --top-k 1000 {image}");
            let out = folder.run(&args).succeeded().out;
            assert!(out.starts_with(&format!("---------- Prediction for {image} ----------\n")));
            let classes = printed_classes(&out);
            assert_eq!(classes.len(), pixels.len());
            assert!(classes.is_sorted_by(|(a, _), (b, _)| a >= b), "{out}");
            for (score, class) in classes {
                let class: usize = class.parse().unwrap();
                let want = 0.5 * (pixels[class] - means[class / (height * width)]);
                assert!((score - want).abs() < 1e-3, "{file}, {class}: {score} {want}");
            }
        }
    }
}

#[test]
fn classify_prints_class_names_and_one_line_errors() {
    let folder = Folder::new("classify-names");
    net(&folder, "1 1 3 3");
    let image = images().join("gray.png").display().to_string();
    let names: Vec<_> = (0..9).map(|class| format!("n{class} thing, of kind {class}")).collect();
    folder.write("names.txt", names.join("\n"));
    let classify_two = format!("{CLASSIFY} --labels names.txt {image} {image}");
    let out = folder.run(&classify_two).succeeded().out;
    assert_eq!(out.matches("Prediction for").count(), 2);
    let pixels = expected_pixels("gray.png", 3, 3);
    let brightest_pixel = (0..9).rev().max_by(|&a, &b| pixels[a].total_cmp(&pixels[b])).unwrap();
    assert_eq!(
        printed_classes(&out)[0],
        (pixels[brightest_pixel], format!("\"{}\"", names[brightest_pixel]))
    );
    assert_eq!(out.lines().count(), 2 * 6);

    folder.write("names.txt", "only one");
    folder
        .run(&classify_two)
        .failed_with(&["names.txt: expected 9 labels, one for each class, found 1"]);
    folder.run(&format!("{CLASSIFY} gone.jpg")).failed_with(&["gone.jpg: No such file"]);
    folder.run(&format!("{CLASSIFY} deploy.prototxt")).failed_with(&["deploy.prototxt: "]);
    folder.run(CLASSIFY).refused_with(&["IMAGE"]);
    net(&folder, "1 2 3 3");
    folder.run(&classify_two).failed_with(&["deploy.prototxt: input `x`", "1 or 3 channels"]);
    let trained = format!("classify --model net.prototxt --weights no.caffemodel {image}");
    folder.write_replaced("net.prototxt", crate::command::NET, "InnerProduct", "Flatten");
    folder
        .run(&trained)
        .failed_with(&["net.prototxt: a classifier needs a net with one input, found 0"]);
}

/// Trains LeNet on digits and classifies the image `seven.png`, as the README does. The README
/// trains for 1000 iterations with a batch size of 64; 60 iterations with a batch size of 16
/// suffice for this test. Without compiler optimizations, the test trains the net for one iteration
/// and does not check the class.
#[test]
fn the_example_of_digits_classifies_its_image_of_a_seven() {
    let folder = Folder::new("classify-digits");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/digits");
    let net = fs::read_to_string(example.join("lenet.prototxt")).unwrap();
    folder.write_replaced("net.prototxt", &net, "batch_size: 64", "batch_size: 16");
    let check = "the check that the trained net classifies the image of a seven";
    let iterations = if optimized(check) { 60 } else { 1 };
    let end = format!("max_iter: {iterations}");
    let solver = SOLVER.replace("max_iter: 8", &end).replace("test_interval: 4", "");
    folder.write("solver.prototxt", solver.replace("test_iter: 2", ""));
    folder.run("train --solver solver.prototxt").succeeded();
    let example = example.display();
    let classify = format!(
        "classify --model {example}/deploy.prototxt --weights lenet_iter_{iterations}.caffemodel \
         {example}/seven.png"
    );
    let out = folder.run(&format!("{classify} --scale 0.00390625")).succeeded().out;
    let classes = printed_classes(&out);
    assert_eq!(classes.len(), 5, "{out}");
    if iterations > 1 {
        assert!(classes[0].1 == "7" && classes[0].0 > 0.5, "{out}");
    }
    for number in ["nan", "inf", "-inf", "x"] {
        let result = folder.run(&format!("{classify} --scale={number}"));
        result.refused_with(&["--scale", number, "finite number"]);
        let result = folder.run(&format!("{classify} --mean-value={number}"));
        result.refused_with(&["--mean-value", number, "finite number"]);
    }
}
