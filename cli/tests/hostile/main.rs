//! Tests of hostile files: decompression bombs, wrong sizes, deep nesting, cycles and huge
//! definitions. Each run of the command must fail with an error that names the file and the limit,
//! within 64 MiB of resident memory and two seconds of processor time.
//!
//! The tests are a separate program, because Linux includes the memory of the parent process in the
//! peak memory of a process.
#![cfg(target_os = "linux")]

mod command;
mod formats;
#[cfg(feature = "hdf5")]
mod hdf5;
mod leveldb;

use command::Folder;
use formats::{
    Node, chunk, field, gzip, idx, jpeg, jpeg_with_many_scans, lmdb, lmdb_page, npy, png, png_with,
    safetensors, varint, zip, zlib,
};
use std::fs::File;

/// A net without parameters, which accepts any weights file.
const NET: &str = r#"layer { name: "data" type: "Input" top: "data"
      input_param { shape { dim: 1 dim: 1 dim: 28 dim: 28 } } }
    layer { name: "prob" type: "Flatten" bottom: "data" top: "prob" }"#;

fn folder(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.write("net.prototxt", NET).write("empty.caffemodel", field(1, b"net"));
    folder
}

const CLASSIFY: &str = "classify --model net.prototxt --weights empty.caffemodel a.image";
const MEAN: &str = "compute-image-mean lmdb:a.mdb mean.binaryproto";
const TEST: &str = "test --model net.prototxt --weights";

// Compressed files.

#[test]
fn gzipped_images_of_100_mb_are_refused() {
    let folder = folder("gzip");
    let images = gzip(&idx(0x803, &[10_000, 100, 100]), 100_000_000);
    folder.write("images.gz", images).write("labels.gz", gzip(&idx(0x801, &[10_000]), 10_000));
    folder.fails("convert-mnist images.gz labels.gz db", &["images.gz: ", "33554432 bytes"]);
}

#[test]
fn gzipped_bytes_after_the_last_image_are_refused() {
    let folder = folder("gzip-rest");
    let images = gzip(&idx(0x803, &[1, 2, 2]), 100_000_000);
    folder.write("images.gz", images).write("labels", [&idx(0x801, &[1])[..], &[0]].concat());
    folder.fails("convert-mnist images.gz labels db", &["images.gz: ", "more than 4 bytes follow"]);
}

#[test]
fn an_npz_file_of_400_mb_is_refused() {
    let folder = folder("npz");
    folder.write("a.npz", zip(&["x.npy".into()], &npy("(25000000,)"), 100_000_000));
    folder.fails("inspect a.npz", &["a.npz: `x.npy`: ", "the limit for ", "33554432 bytes"]);
    folder.fails(&format!("{TEST} a.npz"), &["a.npz: `x.npy`: ", "33554432 bytes"]);
}

#[test]
fn npz_members_that_share_their_bytes_are_refused() {
    let folder = folder("npz-overlap");
    let names: Vec<_> = (0..1000).map(|index| format!("{index}.npy")).collect();
    folder.write("a.npz", zip(&names, &npy("(250000,)"), 1_000_000));
    folder.fails("inspect a.npz", &["a.npz: `", ".npy`: ", "the limit for ", "33554432 bytes"]);
}

#[test]
fn an_npz_member_longer_than_its_shape_is_refused() {
    let folder = folder("npz-longer");
    folder.write("a.npz", zip(&["x.npy".into()], &npy("(2,)"), 100_000_000));
    folder.fails("inspect a.npz", &["a.npz: `x.npy`: ", "more values than the 8 bytes"]);
}

#[test]
fn a_png_image_of_256_megapixels_is_refused() {
    let folder = folder("png");
    folder.write("a.image", png(16_000, 16_000, 16_000));
    let parts = ["a.image: image of 16000 x 16000 pixels", "the limit for ", "33554432 bytes"];
    folder.fails(CLASSIFY, &parts);
    folder.write("list.txt", "a.image 0\n");
    let (code, log) = folder.run("convert-imageset ./ list.txt db");
    assert_eq!(code, Some(1)); // no record is left
    assert!(log.contains("db: no records to write"), "{log}");
    assert!(parts.iter().all(|part| log.contains(part)), "{log}");
}

/// The color profile and the text of a PNG file are compressed, but do not change the pixels.
#[test]
fn png_chunks_of_100_mb_besides_the_pixels_are_not_decompressed() {
    let folder = folder("png-chunks");
    let profile = [&b"a\0\0"[..], &zlib(&[], 100_000_000)].concat();
    for kind in [b"iCCP", b"zTXt"] {
        folder.write("a.image", png_with(&chunk(kind, &profile), 28, 28, 28));
        let (code, log) = folder.run(CLASSIFY);
        assert_eq!(code, Some(0), "{log}");
    }
}

#[test]
fn an_encoded_image_in_a_database_is_refused_like_a_file() {
    let folder = folder("lmdb-png");
    let datum = [field(4, &png(16_000, 16_000, 16_000)), vec![0x38, 1]].concat();
    let pages = 1 + (datum.len() + 16) / 4096;
    let node: Node<'_> = (datum.len() as u32, 1, b"k", &3_u64.to_le_bytes());
    let mut value = lmdb_page(3, 4, &[], &[]);
    value[12..16].copy_from_slice(&(pages as u32).to_le_bytes());
    value.resize(pages * 4096, 0);
    value[16..16 + datum.len()].copy_from_slice(&datum);
    let tree = [lmdb_page(2, 2, &[node], &[0]), value].concat();
    let pages: Vec<_> = tree.chunks(4096).map(<[u8]>::to_vec).collect();
    folder.write("a.mdb", lmdb(1, 1, &pages));
    folder.fails(MEAN, &["a.mdb", "key `k`", "16000 x 16000", "the limit for "]);
}

// Sizes in headers.

#[test]
fn a_png_header_of_ten_gigapixels_is_refused() {
    let folder = folder("png-header");
    folder.write("a.image", png(100_000, 100_000, 1)).write("list.txt", "a.image 0\n").write(
        "net.prototxt",
        r#"layer { name: "x" type: "ImageData" top: "data" top: "label"
             image_data_param { source: "list.txt" batch_size: 1 } }"#,
    );
    folder.fails("time --model net.prototxt", &["a.image: ", "30000000000", "33554432 bytes"]);
}

#[test]
fn a_jpeg_header_of_four_gigapixels_is_refused() {
    let folder = folder("jpeg");
    folder.write("a.image", jpeg(65_500, 65_500));
    folder.fails(CLASSIFY, &["a.image: image of 65500 x 65500 pixels", "33554432 bytes"]);
}

#[test]
fn a_jpeg_scan_that_repeats_a_scan_is_refused() {
    let folder = folder("jpeg-scans");
    folder.write("a.image", jpeg_with_many_scans(1000));
    folder.fails(CLASSIFY, &["a.image: damaged JPEG image: a scan does not continue the scans"]);
}

#[test]
fn an_idx_header_beyond_the_file_is_refused() {
    let folder = folder("idx");
    folder.write("images", [idx(0x803, &[u32::MAX; 3]), vec![0; 100]].concat());
    folder.write("labels", idx(0x801, &[u32::MAX]));
    folder.fails("convert-mnist images labels db", &["images: ", "too short for these extents"]);
}

#[test]
fn an_npy_header_beyond_the_file_is_refused() {
    let folder = folder("npy");
    for shape in ["(1000000000000,)", "(4294967295, 4294967295, 4294967295)"] {
        folder.write("a.npy", [npy(shape), vec![0; 100]].concat());
        folder.fails("inspect a.npy", &["a.npy: "]);
    }
}

#[test]
fn a_safetensors_header_beyond_the_file_is_refused() {
    let folder = folder("safetensors");
    folder.write("a.safetensors", [&(1_u64 << 40).to_le_bytes()[..], b"{}"].concat());
    folder.fails(&format!("{TEST} a.safetensors"), &["a.safetensors: not a safetensors file"]);
    let header =
        br#"{"x":{"dtype":"F32","shape":[1099511627776],"data_offsets":[0,4398046511104]}}"#;
    folder.write("a.safetensors", safetensors(header));
    folder.fails("inspect a.safetensors", &["a.safetensors: ", "4398046511104 bytes"]);
}

#[test]
fn a_shape_of_300_000_axes_is_refused() {
    let folder = folder("axes");
    let header = r#"{"x":{"dtype":"F32","shape":["#.to_owned() + &"1,".repeat(300_000);
    let file = [safetensors((header + r#"1],"data_offsets":[0,4]}}"#).as_bytes()), vec![0; 4]];
    folder.write("a.safetensors", file.concat());
    folder.fails("inspect a.safetensors", &["a.safetensors: tensor `x`", "more than 32 axes"]);
    let shape = field(7, &field(1, &[1; 300_000]));
    folder.write("a.binaryproto", [shape, field(5, &[0; 4])].concat());
    folder.fails("inspect a.binaryproto", &["a.binaryproto: ", "more than 32 axes"]);
}

#[test]
fn a_length_in_a_caffemodel_beyond_the_file_is_refused() {
    let folder = folder("length");
    folder.write("a.caffemodel", [vec![0xa2, 0x06], varint(1 << 62)].concat());
    folder.fails("inspect a.caffemodel", &["a.caffemodel: ", "exceeds remaining length 0"]);
}

#[test]
fn a_blob_shape_beyond_its_values_is_refused() {
    let folder = folder("shape");
    let shape = field(7, &field(1, &varint(1 << 40)));
    let blob = field(7, &[shape, field(5, &[0; 4])].concat());
    folder.write("a.caffemodel", field(100, &[field(1, b"ip"), blob].concat()));
    folder.fails("inspect a.caffemodel", &["a.caffemodel: layer `ip`", "[1099511627776]"]);
}

#[test]
fn an_lmdb_value_beyond_the_file_is_refused() {
    let folder = folder("lmdb-value");
    let node: Node<'_> = (u32::MAX, 1, b"k", &2_u64.to_le_bytes());
    folder.write("a.mdb", lmdb(1, 1, &[lmdb_page(2, 2, &[node], &[0])]));
    folder.fails(MEAN, &["a.mdb", "a value extends beyond the end of the file"]);
}

// Cycles.

#[test]
fn lmdb_pages_with_one_child_in_common_are_refused() {
    let folder = folder("lmdb-tree");
    let datum = [8, 1, 0x10, 1, 0x18, 1, 0x22, 1, 7];
    let leaf: Node<'_> = (datum.len() as u32, 0, b"k", &datum);
    // Each of the 7 branch pages refers to the next page 200 times, so the tree has 200⁷ paths to
    // the only record.
    let mut pages: Vec<_> = (2..9_u64)
        .map(|number| lmdb_page(number, 1, &[(number as u32 + 1, 0, b"", b"")], &[0; 200]))
        .collect();
    pages.push(lmdb_page(9, 2, &[leaf], &[0]));
    folder.write("a.mdb", lmdb(8, 200_u64.pow(7), &pages));
    folder.fails(MEAN, &["a.mdb", "more than once", "the limit of 81920 bytes"]);
}

#[test]
fn lmdb_nodes_with_one_value_in_common_are_refused() {
    let folder = folder("lmdb-nodes");
    let datum = [vec![8, 1, 0x10, 1, 0x18, 0xd0, 0x0f], field(4, &[0; 2000])].concat();
    let node: Node<'_> = (datum.len() as u32, 0, b"k", &datum);
    folder.write("a.mdb", lmdb(1, 1000, &[lmdb_page(2, 2, &[node], &[0; 1000])]));
    folder.fails(MEAN, &["a.mdb", "more than once", "the limit of 24576 bytes"]);
}

// Deep nesting, and many small messages.

#[test]
fn a_caffemodel_of_empty_layers_is_refused() {
    let folder = folder("layers");
    folder.write("a.caffemodel", field(100, b"").repeat(300_000));
    for command in ["inspect", TEST, "upgrade-net"] {
        let out = if command == "upgrade-net" { " out" } else { "" };
        folder.fails(
            &format!("{command} a.caffemodel{out}"),
            &["a.caffemodel: ", "the limit for 900000 stored bytes is 57600000 bytes"],
        );
    }
}

#[test]
fn a_caffemodel_of_empty_blobs_is_refused() {
    let folder = folder("blobs");
    folder.write("a.caffemodel", field(100, &field(7, b"").repeat(500_000)));
    folder.fails("inspect a.caffemodel", &["a.caffemodel: ", "layer[0].blobs[", "the limit for "]);
}

#[test]
fn a_solver_state_of_empty_blobs_is_refused() {
    let folder = folder("history");
    folder.write("a.solverstate", field(3, b"").repeat(500_000));
    folder.fails("inspect a.solverstate", &["a.solverstate: ", "history[", "the limit for "]);
    folder.write("solver.prototxt", SOLVER);
    let train = "train --solver solver.prototxt --snapshot a.solverstate";
    folder.fails(train, &["a.solverstate: ", "history[", "the limit for "]);
}

/// To restore the position of a data layer, training opens the layer's source.
#[test]
fn a_solver_state_of_many_layer_states_is_restored_once_per_layer() {
    let folder = folder("states");
    folder.write("solver.prototxt", SOLVER).write(
        "net.prototxt",
        r#"layer { name: "data" type: "Data" top: "data" top: "label"
             data_param { source: "digits:test?count=10" batch_size: 1 } }"#,
    );
    let layer = |name: &[u8]| field(1, &[field(1, name), vec![0x10, 5]].concat());
    let net = field(2, &[layer(b"data").repeat(20_000), layer(b"x").repeat(20_000)].concat());
    folder.write("a.solverstate", [vec![8, 1], field(1000, &net)].concat());
    let train = "train --solver solver.prototxt --snapshot a.solverstate";
    let (code, log) = folder.run(train);
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(log.matches("no layer `x`").count(), 16, "{log}");
    assert!(log.contains("19984 more states"), "{log}");
}

#[test]
fn groups_nested_a_million_times_are_refused() {
    let folder = folder("groups");
    folder.write("a.caffemodel", [field(1, b"net"), vec![0x7b; 1_000_000]].concat());
    folder.fails("inspect a.caffemodel", &["a.caffemodel: ", "nested more than 100 deep"]);
}

#[test]
fn names_that_are_not_utf8_cause_few_warnings() {
    let folder = folder("warnings");
    folder.write("a.caffemodel", field(100, &field(1, b"\xff")).repeat(3000));
    let (code, log) = folder.run("inspect a.caffemodel");
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(log.lines().count(), 17, "{log}");
    assert!(log.contains("a.caffemodel: 2984 more warnings"), "{log}");
}

#[test]
fn json_nested_a_hundred_thousand_times_is_refused() {
    let folder = folder("json");
    folder.write("a.safetensors", safetensors(&b"{\"a\":".repeat(100_000)));
    folder.fails("inspect a.safetensors", &["a.safetensors: ", "recursion limit exceeded"]);
}

#[test]
fn a_definition_nested_a_million_times_is_refused() {
    let folder = folder("braces");
    folder.write("a.prototxt", "layer{".repeat(1_000_000));
    folder.fails("time --model a.prototxt", &["a.prototxt:1:7: `LayerParameter` has no field"]);
    folder.write("a.prototxt", "layer { x ".to_owned() + &"{ y ".repeat(1_000_000));
    folder.fails("time --model a.prototxt", &["a.prototxt:1:9: "]);
}

#[test]
fn a_definition_of_empty_layers_is_refused() {
    let folder = folder("empty-layers");
    folder.write("a.prototxt", "layer{}".repeat(200_000));
    for command in ["inspect", "time --model", "draw"] {
        let out = if command == "draw" { " -o a.svg" } else { "" };
        folder.fails(&format!("{command} a.prototxt{out}"), &["a.prototxt: ", "the limit for "]);
    }
}

// Definitions.

const SOLVER: &str = r#"net: "net.prototxt" base_lr: 0.1 lr_policy: "fixed" max_iter: 1"#;

#[test]
fn errors_quote_only_the_start_of_a_long_word() {
    let folder = folder("word");
    for text in ["a".repeat(5_000_000), "name: ".to_owned() + &"1".repeat(5_000_000)] {
        folder.write("a.prototxt", text);
        folder.fails("time --model a.prototxt", &["a.prototxt:1:", "…`"]);
    }
}

#[test]
fn a_long_name_does_not_pad_the_rows_of_a_table() {
    let folder = folder("table");
    let long_layer = format!("layer {{ name: \"{}\" }}", "x".repeat(1_000_000));
    folder.write("a.prototxt", long_layer + &"layer { name: \"y\" }".repeat(500));
    assert_eq!(folder.run("inspect a.prototxt").0, Some(0));
}

/// Returns the definition of an LSTM layer.
fn lstm(name: &str, steps: usize) -> String {
    format!(
        "layer {{ name: 'x' type: 'Input' top: 'x' top: 'c' input_param {{
           shape {{ dim: [{steps}, 1, 1] }} shape {{ dim: [{steps}, 1] }} }} }}
         layer {{ name: '{name}' type: 'LSTM' bottom: 'x' bottom: 'c' top: 'y'
           recurrent_param {{ num_output: 1 }} }}"
    )
}

#[test]
fn definitions_of_huge_onnx_models_are_refused() {
    let folder = folder("onnx");
    let export = "export-onnx --model a.prototxt --weights empty.caffemodel --allow-no-match -o a";
    folder.write("a.prototxt", lstm("lstm", 1025));
    folder.fails(export, &["a.prototxt:3: layer `lstm`: ", "1025 time steps", "limit is 1024"]);
    let im2col = "layer { name: 'x' type: 'Input' top: 'x' input_param {
          shape { dim: [1, 1, 1, 1] } } }
        layer { name: 'i' type: 'Im2col' bottom: 'x' top: 'y'
          convolution_param { kernel_size: 101 pad: 50 } }";
    folder.write("a.prototxt", im2col);
    folder.fails(export, &["a.prototxt:3: layer `i`: ", "104060401 elements", "limit is 16777216"]);
}

#[test]
fn a_long_layer_name_does_not_enlarge_each_node_of_an_onnx_model() {
    let folder = folder("onnx-name");
    folder.write("a.prototxt", lstm(&"x".repeat(1_000_000), 100));
    let (code, log) = folder.run(
        "export-onnx --model a.prototxt --weights empty.caffemodel --allow-no-match -o a.onnx",
    );
    assert_eq!(code, Some(0), "{log}");
    assert!(folder.path("a.onnx").metadata().unwrap().len() < 10_000_000);
}

#[test]
fn a_sparse_definition_of_a_terabyte_is_refused() {
    let folder = folder("sparse");
    for file in ["a.prototxt", "a.png"] {
        File::create(folder.path(file)).unwrap().set_len(1 << 40).unwrap();
    }
    folder.fails("time --model a.prototxt", &["a.prototxt: ", "the limit of 33554432"]);
    folder.fails("train --solver a.prototxt", &["a.prototxt: ", "the limit of 33554432"]);
    let classify = CLASSIFY.replace("a.image", "a.png");
    folder.fails(&classify, &["a.png: ", "the limit of 268435456"]);
}

#[test]
fn an_endless_device_is_refused() {
    let folder = folder("device");
    folder.write("solver.prototxt", SOLVER.replace("net.prototxt", "/dev/zero"));
    folder.fails("train --solver solver.prototxt", &["/dev/zero: the file is a device"]);
    folder.fails("inspect /dev/zero", &["/dev/zero: the file is a device"]);
    folder.fails(&format!("{TEST} /dev/zero"), &["/dev/zero: the file is a device"]);
    // A solver state names the file of its weights.
    folder.write("solver.prototxt", SOLVER);
    folder.write("a.solverstate", [vec![8, 1], field(2, b"/dev/zero")].concat());
    let train = "train --solver solver.prototxt --snapshot a.solverstate";
    folder.fails(train, &["/dev/zero: the file is a device"]);
}

#[test]
fn weights_beyond_max_memory_are_refused_with_the_name_of_the_blob() {
    let folder = folder("weights");
    folder.write(
        "net.prototxt",
        r#"layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 10000 } } }
           layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
             inner_product_param { num_output: 100000 weight_filler { type: "xavier" } } }"#,
    );
    let parts = [
        "net.prototxt:2: layer `ip`: data of parameter 0 of shape [100000, 10000]: ",
        "4000000000 bytes wanted",
        "limit 33554432 bytes",
        "--max-memory",
    ];
    folder.fails("time --model net.prototxt --max-memory 32MiB", &parts);
    folder.write("solver.prototxt", SOLVER);
    folder.fails("train --solver solver.prototxt --max-memory 32MiB", &parts[1..]);
}

#[test]
fn blobs_beyond_max_memory_are_refused_with_their_names() {
    let folder = folder("activations");
    folder.write(
        "net.prototxt",
        r#"layer { name: "x" type: "DummyData" top: "x" dummy_data_param { shape { dim: 1000 } } }
           layer { name: "tile" type: "Tile" bottom: "x" top: "y"
             tile_param { axis: 0 tiles: 1000000 } }"#,
    );
    folder.fails(
        &format!("{TEST} empty.caffemodel --max-memory 32MiB"),
        &["layer `tile` (Tile): data of blob `y` of shape [1000000000]: ", "limit 33554432 bytes"],
    );
}

#[test]
fn a_batch_beyond_max_memory_is_refused_with_the_name_of_the_blob() {
    let folder = folder("batch");
    folder.write("solver.prototxt", SOLVER).write(
        "net.prototxt",
        r#"layer { name: "data" type: "Data" top: "data" top: "label"
             data_param { source: "digits:train" batch_size: 2000000000 } }"#,
    );
    folder.fails("train --solver solver.prototxt --max-memory 32MiB", &["limit 33554432 bytes"]);
}

#[test]
fn an_image_enlarged_beyond_the_limit_is_refused() {
    let folder = folder("enlarged");
    folder.write("a.png", png(2, 2, 2)).write("list.txt", "a.png 0\n").write(
        "net.prototxt",
        r#"layer { name: "x" type: "ImageData" top: "data" top: "label" image_data_param {
             source: "list.txt" new_height: 100000 new_width: 100000 } }"#,
    );
    folder.fails(
        "time --model net.prototxt",
        &["a.png: resizing to 100000 x 100000 pixels", "the size limit for an enlarged image"],
    );
}

#[test]
fn a_sequence_of_a_million_time_steps_is_refused() {
    let folder = folder("steps");
    folder.write(
        "net.prototxt",
        r#"layer { name: "x" type: "Input" top: "x" top: "c" input_param {
             shape { dim: 1000000 dim: 1 dim: 1 } shape { dim: 1000000 dim: 1 } } }
           layer { name: "lstm" type: "LSTM" bottom: "x" bottom: "c" top: "y" recurrent_param {
             num_output: 1 weight_filler { type: "xavier" } } }"#,
    );
    folder.fails(
        "time --model net.prototxt",
        &["net.prototxt:3: layer `lstm`: ", "1000000 time steps, but the limit is 65536"],
    );
}
