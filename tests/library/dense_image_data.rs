//! Tests of the layer DenseImageData.

use cortado::{
    CpuDevice, Net, Result,
    proto::{self, Phase},
};
use std::{fs, path::Path};

/// Writes an image of 6 columns and 4 rows as PPM or PGM, with the given values of each pixel.
fn write_image(path: &Path, channels: usize, value: impl Fn(usize, usize) -> u8) {
    let kind = if channels == 3 { "P6" } else { "P5" };
    let mut bytes = format!("{kind}\n6 4\n255\n").into_bytes();
    for pixel in 0..24 {
        bytes.extend((0..channels).map(|channel| value(pixel, channel)));
    }
    fs::write(path, bytes).unwrap();
}

/// Writes three pairs of images and their list. In pair `i`, the red, green and blue of pixel `p`
/// are `p + 30·i`, `p + 100` and `p + 200`, and its label is `p + 30·i`.
fn write_pairs(folder: &Path) {
    let mut list = String::new();
    for i in 0..3 {
        let first = 30 * i as u8;
        let image = |p: usize, channel: usize| p as u8 + [first, 100, 200][channel];
        write_image(&folder.join(format!("image{i}.ppm")), 3, image);
        write_image(&folder.join(format!("label{i}.pgm")), 1, |p, _| p as u8 + first);
        list += &format!("image{i}.ppm label{i}.pgm\n");
    }
    fs::write(folder.join("list.txt"), list).unwrap();
}

fn net(folder: &Path, fields: &str) -> Result<Net<f32>> {
    let folder = folder.display();
    let text = format!(
        "layer {{ name: 'data' type: 'DenseImageData' top: 'data' top: 'label' {} }}",
        fields.replace("FILES", &format!("source: '{folder}/list.txt' root_folder: '{folder}/'"))
    );
    Net::builder(&CpuDevice::new())
        .phase(Phase::Train)
        .seed(11)
        .build(&proto::parse_text(text, "net")?)
}

fn values(net: &Net<f32>, blob: &str) -> Vec<f32> {
    net.blob(blob).unwrap().to_vec().unwrap()
}

#[test]
fn a_batch_holds_images_and_label_images_in_the_order_of_the_list() {
    let folder = tempfile::tempdir().unwrap();
    write_pairs(folder.path());
    let fields = "dense_image_data_param { FILES batch_size: 2 }
        transform_param { mean_value: [1, 2, 3] scale: 0.5 }";
    let mut net = net(folder.path(), fields).unwrap();
    for batch in 0..3 {
        net.forward().unwrap();
        assert_eq!(net.blob("data").unwrap().shape().to_vec(), [2, 3, 4, 6]);
        assert_eq!(net.blob("label").unwrap().shape().to_vec(), [2, 1, 4, 6]);
        let (data, label) = (values(&net, "data"), values(&net, "label"));
        for item in 0..2 {
            let first = 30.0 * ((2 * batch + item) % 3) as f32;
            for p in 0..24 {
                assert_eq!(label[item * 24 + p], p as f32 + first);
                // The channels are blue, green and red.
                for (channel, value) in [199.0, 98.0, first - 3.0].into_iter().enumerate() {
                    let found = data[(item * 3 + channel) * 24 + p];
                    assert_eq!(found, (p as f32 + value) / 2.0);
                }
            }
        }
    }
}

#[test]
fn crops_and_mirrored_images_have_the_labels_of_their_pixels() {
    let folder = tempfile::tempdir().unwrap();
    write_pairs(folder.path());
    let fields = "dense_image_data_param { FILES batch_size: 3 shuffle: true mirror: true
        crop_height: 2 crop_width: 4 }";
    let mut net = net(folder.path(), fields).unwrap();
    let (mut positions, mut mirrored, mut orders) = (Vec::new(), 0, Vec::new());
    for _ in 0..20 {
        net.forward().unwrap();
        let (data, label) = (values(&net, "data"), values(&net, "label"));
        assert_eq!((data.len(), label.len()), (3 * 3 * 8, 3 * 8));
        let mut order = Vec::new();
        for (image, label) in data.chunks(24).zip(label.chunks(8)) {
            // The red channel has the values of the label image.
            assert_eq!(image[16..], *label);
            let is_mirrored = label[1] < label[0];
            let step = if is_mirrored { -1.0 } else { 1.0 };
            for (i, value) in label.iter().enumerate() {
                assert_eq!(*value, label[0] + (i / 4) as f32 * 6.0 + (i % 4) as f32 * step);
            }
            let first = label[0].min(label[3]) as usize;
            positions.push(first % 30);
            order.push(first / 30);
            mirrored += usize::from(is_mirrored);
        }
        orders.push(order.clone());
        order.sort_unstable();
        assert_eq!(order, [0, 1, 2]);
    }
    // The expected number is 30, and the limits are about four standard deviations of 60 coin
    // tosses from it.
    assert!((15..=45).contains(&mirrored), "{mirrored}");
    positions.sort_unstable();
    positions.dedup();
    assert_eq!(positions, [0, 1, 2, 6, 7, 8, 12, 13, 14]);
    orders.sort();
    orders.dedup();
    assert!(orders.len() > 3, "{orders:?}");
}

#[test]
fn resized_label_images_have_only_labels_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    write_pairs(folder.path());
    let fields = "dense_image_data_param { FILES batch_size: 1 is_color: false new_height: 8
        new_width: 12 }";
    let mut net = net(folder.path(), fields).unwrap();
    net.forward().unwrap();
    assert_eq!(net.blob("data").unwrap().shape().to_vec(), [1, 1, 8, 12]);
    let want: Vec<_> = (0..96).map(|i| (i / 24 * 6 + i % 12 / 2) as f32).collect();
    assert_eq!(values(&net, "label"), want);
}

#[test]
fn divided_label_images_have_the_labels_of_their_pixels() {
    let folder = tempfile::tempdir().unwrap();
    write_pairs(folder.path());
    let fields = "dense_image_data_param { FILES batch_size: 3 mirror: true new_height: 4
        new_width: 12 label_divide_factor: 2 }";
    let mut net = net(folder.path(), fields).unwrap();
    let mut mirrored = 0;
    for _ in 0..20 {
        net.forward().unwrap();
        assert_eq!(net.blob("data").unwrap().shape().to_vec(), [3, 3, 4, 12]);
        assert_eq!(net.blob("label").unwrap().shape().to_vec(), [3, 1, 2, 6]);
        for (i, label) in values(&net, "label").chunks(12).enumerate() {
            // Nearest-neighbour interpolation of 4 x 6 to 2 x 6 pixels takes every second row.
            let mut want: Vec<f32> = (0..6).chain(12..18).map(|p| (p + 30 * i) as f32).collect();
            if label[0] != want[0] {
                mirrored += 1;
                want.chunks_mut(6).for_each(<[f32]>::reverse);
            }
            assert_eq!(label, want);
        }
    }
    // The limits are about four standard deviations away from 30, the expected number of mirrored
    // images among 60.
    assert!((15..=45).contains(&mirrored), "{mirrored}");
    for (old, new) in [
        ("factor: 2", "factor: 0"),
        ("factor: 2", "factor: 5"),
        ("_width: 12", "_width: 11"),
        ("mirror: true", "crop_height: 2 crop_width: 2"),
        ("new_height: 4\n        new_width: 12", ""),
    ] {
        let error = self::net(folder.path(), &fields.replace(old, new)).err().unwrap().to_string();
        assert!(error.contains("label_divide_factor") && error.contains("multiples of"), "{error}");
    }
}

#[test]
fn a_restored_layer_continues_with_the_same_pair() {
    let folder = tempfile::tempdir().unwrap();
    write_pairs(folder.path());
    let fields = "dense_image_data_param { FILES batch_size: 1 shuffle: true }";
    let mut net = net(folder.path(), fields).unwrap();
    for _ in 0..4 {
        net.forward().unwrap();
    }
    let state = net.run_state().unwrap();
    net.forward().unwrap();
    let mut resumed = self::net(folder.path(), fields).unwrap();
    resumed.set_run_state(&state).unwrap();
    resumed.forward().unwrap();
    assert_eq!(values(&resumed, "label"), values(&net, "label"));
}

#[test]
fn invalid_fields_and_files_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    write_pairs(path);
    let pairs = |fields: &str| format!("dense_image_data_param {{ FILES {fields} }}");
    let cases = [
        ("".to_owned(), "dense_image_data_param: source is required"),
        (pairs(""), "batch_size is required"),
        (pairs("batch_size: 1 new_height: 3"), "give both new_height and new_width"),
        (pairs("batch_size: 1 crop_width: 3"), "give both crop_height and crop_width"),
        (pairs("batch_size: 1") + " transform_param { mirror: true }", "mirror would change only"),
        (pairs("batch_size: 1") + " transform_param { crop_size: 2 }", "crop_size would change"),
        (pairs("batch_size: 1 crop_width: 9 crop_height: 1"), "exceed an image of 4 x 6"),
    ];
    let error = |fields: &str| {
        let net = net(path, fields).and_then(|mut net| net.forward().map(|_| net));
        net.err().unwrap_or_else(|| panic!("{fields}")).to_string()
    };
    for (fields, want) in cases {
        let error = error(&fields);
        assert!(error.contains(want) && error.contains("layer `data`"), "{error}");
    }
    for (list, want) in [
        ("image0.ppm", "list.txt:1: expected the paths of an image and a label image"),
        ("image0.ppm label0.pgm\n\na b c", "list.txt:3: expected the paths"),
        ("\n", "list.txt: lists no images"),
        ("image0.ppm none.pgm", "none.pgm"),
        ("image0.ppm small.pgm", "small.pgm: expected the size 4 x 6 of the image, found 1 x 1"),
    ] {
        fs::write(path.join("list.txt"), list).unwrap();
        fs::write(path.join("small.pgm"), b"P5\n1 1\n255\n\0").unwrap();
        let error = error(&pairs("batch_size: 1"));
        assert!(error.contains(want), "{error}");
    }
}
