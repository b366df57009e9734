//! Tests that `convert-mnist` and `convert-imageset` write databases like Caffe's tools, and that
//! nets can read the databases.

use crate::{
    command::Folder,
    support::{mnist_test_images, testdata},
};
use cortado::{
    CpuDevice, Net, Result,
    data::{Color, IdxSource, Image, LmdbReader, LmdbSource, Record, RecordValues, Source},
    proto::{self, BlobProto, NetParameter},
};
use std::{collections::BTreeSet, fs, path::Path};

const SOLVER: &str = "net: 'lenet_train_test.prototxt' base_lr: 0.01 momentum: 0.9 \
    weight_decay: 0.0005 lr_policy: 'inv' gamma: 0.0001 power: 0.75 display: 1 max_iter: 12 \
    test_iter: 1 test_interval: 12 test_initialization: false snapshot_after_train: false \
    random_seed: 3";

fn idx(axes: u8, extents: &[u32], values: &[u8]) -> Vec<u8> {
    let header = [0x0800 | u32::from(axes)].into_iter().chain(extents.iter().copied());
    header.flat_map(u32::to_be_bytes).chain(values.iter().copied()).collect()
}

fn build(text: &str) -> Result<Net<f32>> {
    Net::builder(&CpuDevice::with_threads(1)?).build(&proto::parse_text(text, "net")?)
}

fn values(net: &Net<f32>, blob: &str) -> Vec<f32> {
    net.blob(blob).unwrap().data().unwrap().host().unwrap().to_vec()
}

/// Returns all keys and values of an LMDB database.
fn entries(path: &Path) -> Vec<(String, Vec<u8>)> {
    let (mut reader, mut entries) = (LmdbReader::open(path).unwrap(), Vec::new());
    while reader.advance().unwrap() {
        let (key, value) = reader.entry().unwrap();
        entries.push((String::from_utf8(key.to_vec()).unwrap(), value.to_vec()));
    }
    entries
}

#[test]
fn an_existing_database_is_replaced_only_with_force() {
    let folder = Folder::new("databases-force");
    folder.write("images", idx(3, &[2, 1, 2], &[1, 2, 3, 4]));
    folder.write("labels", idx(1, &[2], &[200, 7]));
    let result = folder.run("convert-mnist images labels db").succeeded();
    assert_eq!(result.out, "db: 2 records\n");
    // A Datum is encoded as the fields channels, height, width, data and label. As a varint, the
    // label 200 takes two bytes.
    let want = [
        ("00000000".to_owned(), vec![8, 1, 16, 1, 24, 2, 34, 2, 1, 2, 40, 200, 1]),
        ("00000001".to_owned(), vec![8, 1, 16, 1, 24, 2, 34, 2, 3, 4, 40, 7]),
    ];
    assert_eq!(entries(&folder.path("db")), want);

    folder.write("labels", idx(1, &[2], &[1, 1]));
    folder.run("convert-mnist images labels db").failed_with(&["db: already exists"]);
    assert_eq!(entries(&folder.path("db")), want);
    folder.run("convert-mnist images labels db --backend lmdb --force").succeeded();
    assert_eq!(entries(&folder.path("db"))[0].1.last(), Some(&1));
    folder.run("convert-mnist images labels e --backend leveldb").refused_with(&["lmdb"]);

    // A failed conversion leaves no part of a database behind.
    folder.write("labels", idx(1, &[3], &[1, 1, 1]));
    folder.run("convert-mnist images labels f").failed_with(&["label count 3 ", "image count 2 "]);
    folder.write("images", idx(3, &[0, 1, 2], &[]));
    folder.write("labels", idx(1, &[0], &[]));
    folder.run("convert-mnist images labels g").failed_with(&["images: the file has no pixels"]);
    let files = fs::read_dir(folder.path("")).unwrap();
    let names: BTreeSet<_> = files.map(|file| file.unwrap().file_name()).collect();
    let want = ["db", "images", "labels", "net.prototxt", "solver.prototxt"];
    assert_eq!(names, want.map(Into::into).into());
}

/// Converts MNIST as Caffe's tool does, and trains Caffe's unmodified LeNet, whose definition gives
/// the path and the backend of the database.
#[test]
fn caffes_lenet_trains_from_converted_mnist() {
    let mnist = mnist_test_images();
    let folder = Folder::new("databases-lenet");
    let (database, test) = ("examples/mnist/mnist_train_lmdb", "examples/mnist/mnist_test_lmdb");
    fs::create_dir_all(folder.path("examples/mnist")).unwrap();
    let part = |what| mnist.join(format!("t10k-{what}-ubyte.gz")).display().to_string();
    for database in [database, test] {
        let (images, labels) = (part("images-idx3"), part("labels-idx1"));
        folder.run(&format!("convert-mnist {images} {labels} {database}")).succeeded();
    }

    let idx = || IdxSource::open(mnist.join("t10k").display().to_string()).unwrap();
    let (mut want, mut got) = (idx(), LmdbSource::open(folder.path(database)).unwrap());
    let (mut a, mut b) = (Record::default(), Record::default());
    assert_eq!(want.records(), got.records());
    for _ in 0..want.records().unwrap() {
        want.read(&mut a).unwrap();
        got.read(&mut b).unwrap();
        assert_eq!((a.shape(), a.values(), a.label()), (b.shape(), b.values(), b.label()));
    }
    // After the last record, a source starts again with its first record.
    idx().read(&mut a).unwrap();
    got.read(&mut b).unwrap();
    assert_eq!((a.values(), a.label()), (b.values(), b.label()));
    for (i, (key, datum)) in entries(&folder.path(database)).into_iter().enumerate() {
        assert_eq!(key, format!("{i:08}"));
        // A Datum is encoded as the fields channels, height, width, data (784 bytes) and label.
        assert_eq!(datum[..9], [8, 1, 16, 28, 24, 28, 34, 144, 6]);
        assert_eq!((datum.len(), datum[793]), (795, 40));
    }

    let net = testdata("data/prototxt", "Caffe's LeNet").unwrap();
    let net = net.join("examples__mnist__lenet_train_test.prototxt");
    folder.write("lenet_train_test.prototxt", fs::read(net).unwrap());
    folder.write("solver.prototxt", SOLVER);
    let result = folder.run("train --solver solver.prototxt").succeeded();
    let loss = |line: &String| line.rsplit_once("iters), loss = ")?.1.parse::<f64>().ok();
    let losses: Vec<_> = result.log.iter().filter_map(loss).collect();
    assert_eq!(losses.len(), 12, "{result:#?}");
    assert!(losses[11] < 0.8 * losses[0], "{losses:?}");
}

#[test]
fn mnist_has_its_published_digit_counts() {
    let Some(mnist) = testdata("data/mnist", "the test that counts MNIST's digits") else { return };
    // Published number of MNIST images of each digit.
    let train = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949];
    let test = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009];
    for (which, want) in [("train", train), ("t10k", test)] {
        let mut idx = IdxSource::open(mnist.join(which).display().to_string()).unwrap();
        assert_eq!(idx.records(), Some(want.iter().sum()));
        let (mut histogram, mut record) = ([0; 10], Record::default());
        for _ in 0..idx.records().unwrap() {
            idx.read(&mut record).unwrap();
            assert_eq!(record.shape(), [1, 28, 28]);
            histogram[record.label() as usize] += 1;
        }
        assert_eq!(histogram, want);
    }
}

fn images() -> String {
    format!("{}/../tests/images/", env!("CARGO_MANIFEST_DIR"))
}

/// A record with pixels and a record with the encoded image file decode to equal values.
/// `convert-imageset` skips a missing image.
#[test]
fn convert_imageset_writes_pixels_or_encoded_files() {
    let folder = Folder::new("databases-imageset");
    let list = "color.png 1\ngray.png 2\nno such.png 3\npalette.png 4\n";
    folder.write("list", list);
    let run = |args: &str| folder.run(&format!("convert-imageset {args}")).succeeded();
    let result = run(&format!("{} list pixels", images()));
    assert_eq!(result.out, "pixels: 3 records\n");
    assert!(result.log.iter().any(|line| line.starts_with("skipped: ")), "{result:#?}");
    run(&format!("--encoded {} list encoded", images()));
    let keys =
        |db: &str| entries(&folder.path(db)).into_iter().map(|(key, _)| key).collect::<Vec<_>>();
    let want = ["00000000_color.png", "00000001_gray.png", "00000003_palette.png"];
    assert_eq!(
        (keys("pixels"), keys("encoded")),
        (want.map(Into::into).into(), want.map(Into::into).into())
    );
    // A Datum with an image file is encoded as the fields data, label and encoded.
    let file = fs::read(format!("{}gray.png", images())).unwrap();
    let datum = [&[34, file.len() as u8], &file[..], &[40, 2, 56, 1]].concat();
    assert_eq!(entries(&folder.path("encoded"))[1].1, datum);

    let records = |db: &str| {
        let mut source = LmdbSource::open(folder.path(db)).unwrap();
        source.set_color(Color::Bgr);
        let read = |_| {
            let mut record = Record::default();
            source.read(&mut record).unwrap();
            record
        };
        [0, 1, 2].map(read)
    };
    for (a, b) in records("pixels").iter().zip(&records("encoded")) {
        assert_eq!((a.shape(), a.values(), a.label()), (b.shape(), b.values(), b.label()));
        assert_eq!(a.shape(), [3, 9, 11]);
    }

    // The path of a folder needs no trailing slash. As in Caffe, a root that is not a folder is a
    // prefix of the image paths.
    let without_slash = images();
    let without_slash = without_slash.trim_end_matches('/');
    run(&format!("{without_slash} list folder"));
    assert_eq!(entries(&folder.path("folder")), entries(&folder.path("pixels")));
    folder.write("suffixes", "or.png 1\n");
    assert_eq!(run(&format!("{without_slash}/col suffixes prefix")).out, "prefix: 1 records\n");

    // The conversion fails if there are no records to write.
    folder.write("missing", "no.png 1\n");
    let result = folder.run(&format!("convert-imageset {} missing empty", images()));
    result.failed_with(&["empty: no records to write", "no database was written"]);
    assert!(result.log.iter().any(|line| line.starts_with("skipped: ")), "{result:#?}");
    assert!(!folder.path("empty").exists());

    let options = "--shuffle --gray -resize_height=6 -resize_width 5 --encode_type png";
    run(&format!("{options} {} list grey", images()));
    let mut source = LmdbSource::open(folder.path("grey")).unwrap();
    let mut record = Record::default();
    source.read(&mut record).unwrap();
    assert_eq!(record.shape(), [1, 6, 5]);
    folder.write("two", "color.png 1\n");
    let result = folder.run(&format!("convert-imageset --encode_type jpg {} two x", images()));
    result.failed_with(&["cannot encode as `jpg`"]);

    let mean = folder.run("compute-image-mean pixels mean.binaryproto").succeeded();
    assert!(mean.out.starts_with("3 records\nmean_value channel [0]: "), "{mean:?}");
    let mean: BlobProto = proto::read_binary(folder.path("mean.binaryproto")).unwrap();
    let extents = [mean.num(), mean.channels(), mean.height(), mean.width()];
    assert_eq!((extents, mean.data.len()), ([1, 3, 9, 11], 297));
    let value = |record: &Record, i: usize| match record.values() {
        RecordValues::Bytes(bytes) => f64::from(bytes[i]),
        RecordValues::Floats(_) => panic!("floats"),
    };
    let pixels = records("pixels");
    for (i, got) in mean.data.iter().enumerate() {
        let want = pixels.iter().map(|record| value(record, i)).sum::<f64>() / 3.0;
        assert_eq!(*got, want as f32);
    }
}

#[test]
fn an_image_data_layer_returns_the_decoded_images() {
    let folder = Folder::new("databases-images");
    folder.write("list", "color.png 1\npalette.png 4\ngray.png 2\n");
    let net = |more: &str| {
        let (list, root) = (folder.path("list").display().to_string(), images());
        build(&format!(
            "layer {{ name: 'i' type: 'ImageData' top: 'x' top: 'l'
             image_data_param {{ source: '{list}' root_folder: '{root}' batch_size: 2 {more} }} }}"
        ))
    };
    let mut colors = net("").unwrap();
    let mut labels = Vec::new();
    for _ in 0..3 {
        colors.forward().unwrap();
        assert_eq!(**colors.blob("x").unwrap().shape(), [2, 3, 9, 11]);
        labels.extend(values(&colors, "l"));
    }
    assert_eq!(labels, [1.0, 4.0, 2.0, 1.0, 4.0, 2.0]);
    let mut record = Record::default();
    Image::read(format!("{}gray.png", images()), Color::Bgr).unwrap().store(&mut record).unwrap();
    let RecordValues::Bytes(bytes) = record.values() else { panic!("floats") };
    assert_eq!(
        values(&colors, "x")[297..],
        bytes.iter().map(|byte| f32::from(*byte)).collect::<Vec<_>>()
    );

    let grey_net = net("is_color: false new_height: 4 new_width: 5 shuffle: true rand_skip: 2");
    let mut grey_net = grey_net.unwrap();
    grey_net.forward().unwrap();
    assert_eq!(**grey_net.blob("x").unwrap().shape(), [2, 1, 4, 5]);
    let text = net("new_height: 4").err().unwrap().to_string();
    assert!(text.contains("give both new_height and new_width"), "{text}");
}

#[test]
fn a_window_data_layer_draws_batches_that_depend_on_the_seed_only() {
    let folder = format!("{}/../windows/", images());
    let definition = format!(
        "layer {{ name: 'w' type: 'WindowData' top: 'x' top: 'l'
             transform_param {{ crop_size: 8 mirror: true mean_value: 9 }}
             window_data_param {{ source: '{folder}windows.txt' root_folder: '{folder}'
                 batch_size: 8 fg_fraction: 0.5 context_pad: 1 crop_mode: 'square' }} }}"
    );
    let definition = proto::parse_text::<NetParameter>(&definition, "net").unwrap();
    let batches = |threads| {
        let device = CpuDevice::with_threads(threads).unwrap();
        let mut net = Net::<f32>::builder(&device).seed(5).build(&definition).unwrap();
        let batch = |_| {
            net.forward().unwrap();
            assert_eq!(**net.blob("x").unwrap().shape(), [8, 3, 8, 8]);
            [values(&net, "x"), values(&net, "l")]
        };
        (0..4).map(batch).collect::<Vec<_>>()
    };
    let want = batches(1);
    for [_, labels] in &want {
        assert_eq!(labels[..4], [0.0; 4]);
        assert!(labels[4..].iter().all(|label| (1.0..=4.0).contains(label)));
    }
    assert_ne!(want[0], want[1]);
    assert_eq!(batches(2), want);
}

#[test]
fn extract_features_writes_the_values_of_blobs_to_databases() {
    let folder = Folder::new("databases-features");
    folder.run("train --solver solver.prototxt").succeeded();
    let extract = "extract-features lenet_iter_8.caffemodel net.prototxt";
    let result = folder.run(&format!("{extract} ip,label scores,labels 3")).succeeded();
    assert_eq!(result.out, "scores: 24 records\nlabels: 24 records\n");
    let keys = entries(&folder.path("scores")).into_iter().map(|(key, _)| key);
    assert_eq!(keys.collect::<Vec<_>>(), (0..24).map(|i| format!("{i:010}")).collect::<Vec<_>>());

    let definition = proto::read_net(folder.path("net.prototxt")).unwrap();
    let device = CpuDevice::with_threads(1).unwrap();
    let mut net =
        Net::<f32>::builder(&device).phase(proto::Phase::Test).build(&definition).unwrap();
    let weights = proto::read_trained_net(folder.path("lenet_iter_8.caffemodel")).unwrap();
    net.copy_trained_from(&weights).unwrap();
    let mut scores = LmdbSource::open(folder.path("scores")).unwrap();
    let mut record = Record::default();
    for _ in 0..3 {
        net.forward().unwrap();
        for want in values(&net, "ip").chunks(10) {
            scores.read(&mut record).unwrap();
            assert_eq!((record.shape(), record.values()), ([10, 1, 1], RecordValues::Floats(want)));
        }
    }
    folder.run(&format!("{extract} ip a 1 lmdb cpu")).succeeded();
    fs::remove_dir_all(folder.path("a")).unwrap();
    for gpu in ["GPU", "GPU 1", "gpu DEVICE_ID=1"] {
        let result = folder.run(&format!("{extract} ip a 1 lmdb {gpu}"));
        result.failed_with(&["--gpu: no GPU found"]);
    }
    for (more, part) in [
        ("leveldb", "'leveldb'"),
        ("lmdb GPU one", "expected the number of a GPU"),
        ("lmdb TPU", "'TPU'"),
        ("lmdb GPU --gpu 0", "cannot be used with"),
        ("lmdb --backend lmdb", "cannot be used with"),
    ] {
        folder.run(&format!("{extract} ip a 1 {more}")).refused_with(&[part]);
    }
    folder.run(&format!("{extract} no,ip a,b 1")).failed_with(&["unknown blob `no`"]);
    folder.run(&format!("{extract} ip a,b 1")).failed_with(&["1 blobs, but 2 databases"]);
    assert!(!folder.path("a").exists());
}

#[cfg(feature = "hdf5")]
#[test]
fn an_hdf5_data_layer_reads_what_an_hdf5_output_layer_writes() {
    use cortado::layer::Hdf5OutputLayer;

    let folder = Folder::new("databases-hdf5");
    let file = folder.path("out put.h5").display().to_string();
    folder.write("list", format!("{file}\n"));
    let mut output_net = build(&format!(
        "layer {{ name: 'd' type: 'Data' top: 'x' top: 'l'
           data_param {{ source: 'digits:train?count=20&seed=1' batch_size: 4 }} }}
         layer {{ name: 'o' type: 'HDF5Output' bottom: 'x' bottom: 'l'
           hdf5_output_param {{ file_name: '{file}' }} }}"
    ))
    .unwrap();
    let (mut images, mut labels) = (Vec::new(), Vec::new());
    for pass in 0..3 {
        output_net.forward().unwrap();
        images.extend(values(&output_net, "x"));
        labels.extend(values(&output_net, "l"));
        if pass == 1 {
            output_net.layer_as::<Hdf5OutputLayer>("o").unwrap().write().unwrap();
        }
    }
    drop(output_net);

    let list = folder.path("list").display().to_string();
    let build_data_net = |more: &str| {
        build(&format!(
            "layer {{ name: 'h' type: 'HDF5Data' top: 'data' top: 'label' {more}
               hdf5_data_param {{ source: '{list}' batch_size: 5 }} }}"
        ))
    };
    let mut data_net = build_data_net("").unwrap();
    for pass in 0..5 {
        data_net.forward().unwrap();
        let (data, label) = (data_net.blob("data").unwrap(), data_net.blob("label").unwrap());
        assert_eq!((&**data.shape(), &**label.shape()), (&[5, 1, 28, 28][..], &[5, 1, 1, 1][..]));
        for (i, item) in values(&data_net, "data").chunks(784).enumerate() {
            let row = (5 * pass + i) % 12;
            assert_eq!(item, &images[784 * row..][..784]);
            assert_eq!(values(&data_net, "label")[i], labels[row]);
        }
    }
    let text = build_data_net("transform_param { scale: 2 }").err().unwrap().to_string();
    assert!(text.contains("does not support transform_param"), "{text}");
}

/// The database has five records of 1 x 1 x 2 bytes: record i has the bytes 10·i and 10·i + 1 and
/// the label i.
#[test]
fn a_leveldb_database_has_a_mean_image_and_a_report() {
    let folder = Folder::new("databases-leveldb");
    let database = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/leveldb/datums");
    for flags in ["", "--backend leveldb"] {
        let mean = format!("compute-image-mean {} mean.binaryproto {flags}", database.display());
        let result = folder.run(&mean).succeeded();
        assert_eq!(result.out, "5 records\nmean_value channel [0]: 20.5\n");
        let mean: proto::BlobProto = proto::read_binary(folder.path("mean.binaryproto")).unwrap();
        assert_eq!(mean.data, [20.0, 21.0]);
    }
    let report = folder.run(&format!("inspect {}", database.display())).succeeded().out;
    assert_eq!(
        report.split_once(": ").unwrap().1,
        "LevelDB database\nrecords: 5\nshape: 1×1×2\nvalues: bytes\nsmallest label: 0\n\
         greatest label: 4\ndistinct labels: 5\n"
    );
}
