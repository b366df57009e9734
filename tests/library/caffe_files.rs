//! Compares how cortado and Caffe read valid and damaged binary files.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::support::{lenet_weights, table, testdata};
use cortado::{
    Blob, CpuDevice, Element,
    proto::{self, BlobProto, BlobProtoVector, CaffeMessage, Message, NetParameter, SolverState},
};
use sha2::{Digest, Sha256};

/// Reads a message from a binary file, writes the message to a second file, and asserts that both
/// files are equal. Returns the message.
fn assert_round_trip<M: CaffeMessage>(path: PathBuf) -> M {
    let message: M = proto::read_binary(&path).unwrap();
    let copy = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(path.file_name().unwrap());
    proto::write_binary(&copy, &message).unwrap();
    assert!(fs::read(&copy).unwrap() == fs::read(&path).unwrap(), "{}", path.display());
    fs::remove_file(copy).unwrap();
    message
}

#[test]
fn lenet_files_are_rewritten_byte_for_byte() {
    let net: NetParameter = assert_round_trip(lenet_weights());
    assert_eq!(net.name(), "LeNet");
    let blobs = net.layer.iter().flat_map(|layer| &layer.blobs);
    let weights: usize = blobs.map(|blob| blob.data.len()).sum();
    // LeNet's convolutions have 20 and 50 filters of 5 × 5, and its inner products have 500 and 10
    // outputs. Each filter and each output of an inner product has a bias.
    assert_eq!(weights, 20 * 26 + 50 * (20 * 25 + 1) + 500 * (800 + 1) + 10 * 501);

    let Some(lenet) = testdata("golden/lenet", "the comparison of LeNet files with Caffe") else {
        return;
    };
    let mean: BlobProto = assert_round_trip(lenet.join("mnist_mean.binaryproto"));
    assert_eq!(mean.data.len(), 28 * 28);

    let state = "golden/lenet/lenet_iter_10000.solverstate";
    let Some(state) = testdata(state, "the comparison of LeNet's solver state with Caffe") else {
        return;
    };
    let state: SolverState = assert_round_trip(state);
    assert_eq!((state.iter(), state.history.len()), (10000, 8));
}

#[test]
fn snapshots_are_rewritten_byte_for_byte() {
    let Some(set) = testdata("golden/solvers", "the comparison of snapshots with Caffe") else {
        return;
    };
    for row in table(&set.join("cases.tsv")) {
        let case = set.join(&row[0]);
        for stem in ["snap_iter_10", "snap_iter_25"] {
            let model: NetParameter = assert_round_trip(case.join(format!("{stem}.caffemodel")));
            let state: SolverState = assert_round_trip(case.join(format!("{stem}.solverstate")));
            assert!(!model.layer.is_empty() && !state.history.is_empty());
        }
    }
}

/// Blob messages that Caffe accepts and cortado refuses, each with the reason.
const ACCEPTED_ONLY_BY_CAFFE: [(&str, &str); 2] = [
    ("over_int32_wrap_to_1", "an extent of 2^32 + 1, which Caffe reads as 1"),
    ("x_dim_wraps_to_3", "an extent of 2^32 + 3, which Caffe reads as 3"),
];

/// Row of `verdicts.tsv`: whether Caffe accepts a file with one or several blobs, and the shapes
/// that Caffe reads.
struct Row {
    name: String,
    is_vector: bool,
    /// Shape of the destination blob, if reading must not change the shape of the destination.
    fixed_shape: Option<Vec<usize>>,
    /// Shape of the destination blob before reading, if reading may change the shape of the
    /// destination.
    initial_shape: Option<Vec<usize>>,
    verdict: String,
    shape: String,
}

fn rows(folder: &Path) -> Vec<Row> {
    let shape = |text: &str| text.split([',', 'x']).map(|axis| axis.parse().unwrap()).collect();
    let row = |columns: Vec<String>| {
        let option = |name| columns[1].split(' ').find_map(|option| option.strip_prefix(name));
        Row {
            name: columns[0].clone(),
            is_vector: columns[1].starts_with("BlobProtoVector"),
            fixed_shape: option("into=").map(shape),
            initial_shape: option("after=").map(shape),
            verdict: columns[2].clone(),
            shape: columns[3].clone(),
        }
    };
    table(&folder.join("verdicts.tsv")).into_iter().map(row).collect()
}

/// Creates a blob from each message in `protos`. Returns the blobs, each with a flag that states
/// whether the message has a gradient. Returns `None` if cortado refuses one of the messages.
fn read_blobs<T: Element>(
    row: &Row,
    protos: &[BlobProto],
) -> Option<Vec<(Blob<T, CpuDevice>, bool)>> {
    let cpu = CpuDevice::with_threads(1).unwrap();
    let read = |proto: &BlobProto| {
        let shape = row.fixed_shape.as_ref().or(row.initial_shape.as_ref());
        let mut blob = Blob::new(&cpu, shape.unwrap_or(&vec![0])).unwrap();
        if row.initial_shape.is_some() {
            blob.data_mut().unwrap().host_mut().unwrap().fill(T::from_f64(1.0));
            blob.diff_mut().unwrap().host_mut().unwrap().fill(T::from_f64(1.0));
        }
        blob.from_proto(proto, row.fixed_shape.is_none()).ok()?;
        Some((blob, !proto.diff.is_empty() || !proto.double_diff.is_empty()))
    };
    protos.iter().map(read).collect()
}

fn protos(row: &Row, bytes: &[u8]) -> cortado::Result<Vec<BlobProto>> {
    match row.is_vector {
        true => Ok(proto::parse_binary::<BlobProtoVector>(bytes, &row.name)?.blobs),
        false => Ok(vec![proto::parse_binary(bytes, &row.name)?]),
    }
}

/// Returns the shape of each blob, and whether the blob has a gradient, in the format of
/// `verdicts.tsv`.
fn describe<T: Element>(blobs: &[(Blob<T, CpuDevice>, bool)]) -> String {
    let describe_one = |(blob, diff): &(Blob<T, CpuDevice>, bool)| {
        let extents: Vec<String> = blob.shape().iter().map(|extent| extent.to_string()).collect();
        let extents = if extents.is_empty() { "-".into() } else { extents.join(",") };
        format!("{extents} diff={}", u8::from(*diff))
    };
    let descriptions: Vec<String> = blobs.iter().map(describe_one).collect();
    if descriptions.is_empty() { "-".into() } else { descriptions.join(";") }
}

#[test]
fn blobs_are_read_or_refused_as_by_caffe() {
    let Some(folder) = testdata("golden/blobproto", "the comparison of damaged blobs with Caffe")
    else {
        return;
    };
    let (mut refused_names, mut refused_count) = (Vec::new(), 0);
    for row in rows(&folder) {
        let bytes = fs::read(folder.join(format!("cases/{}.bin", row.name))).unwrap();
        let read = protos(&row, &bytes);
        if row.verdict == "parse_reject" {
            let error = read.expect_err(&row.name).to_string();
            let prefix = format!("{}: not a caffe.BlobProto", row.name);
            assert!(error.starts_with(&prefix) && error.contains(": byte "), "{error}");
            refused_count += 1;
            continue;
        }
        match (read.ok().and_then(|protos| read_blobs::<f32>(&row, &protos)), &*row.verdict) {
            (None, "ok") => refused_names.push(row.name),
            (Some(blobs), "ok") => assert_eq!(describe(&blobs), row.shape, "{}", row.name),
            (blobs, verdict) => assert!(blobs.is_none(), "{}: {verdict}", row.name),
        }
    }
    assert_eq!(refused_names, ACCEPTED_ONLY_BY_CAFFE.map(|(name, _)| name));
    assert!(refused_count > 15, "{refused_count}");
}

/// Reads the blobs of a file and encodes the blob at `index`. Returns `None` if cortado refuses a
/// blob of the file.
fn reencode<T: Element>(row: &Row, bytes: &[u8], index: usize, diff: bool) -> Option<Vec<u8>> {
    let blobs = read_blobs::<T>(row, &protos(row, bytes).ok()?)?;
    Some(blobs[index].0.to_proto(diff).unwrap().encode_to_vec())
}

#[test]
fn blobs_are_written_as_by_caffe() {
    let Some(folder) = testdata("golden/blobproto", "the comparison of written blobs with Caffe")
    else {
        return;
    };
    let rows = rows(&folder);
    let mut compared_count = 0;
    for output in table(&folder.join("outputs.tsv")) {
        // The name of a file that Caffe wrote has the form `<case>[.index].{f32,f64}{,diff}.bin`.
        let parts: Vec<&str> = output[0].split('.').collect();
        let (kind, index) = (parts[parts.len() - 2], parts[1].parse().unwrap_or(0));
        let row = rows.iter().find(|row| row.name == parts[0]).unwrap();
        if ACCEPTED_ONLY_BY_CAFFE.iter().any(|(name, _)| *name == row.name) {
            continue;
        }
        let bytes = fs::read(folder.join(format!("cases/{}.bin", row.name))).unwrap();
        let written_bytes = match kind.starts_with("f32") {
            true => reencode::<f32>(row, &bytes, index, kind.ends_with("diff")),
            false => reencode::<f64>(row, &bytes, index, kind.ends_with("diff")),
        };
        let written_bytes = written_bytes.unwrap_or_else(|| panic!("{}: refused", output[0]));
        let hash: String =
            Sha256::digest(&written_bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!((written_bytes.len().to_string(), hash), (output[1].clone(), output[2].clone()));
        compared_count += 1;
    }
    assert!(compared_count > 150, "{compared_count}");
}
