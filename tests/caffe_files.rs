//! Binary files that Caffe wrote, and what it makes of damaged ones.

use std::{collections::BTreeMap, env, fs, path::PathBuf};

use cortado::proto::{self, BlobProto, BlobProtoVector, Message, Name, NetParameter, SolverState};

fn testdata(what: &str) -> Option<PathBuf> {
    let folder = env::var_os("CORTADO_TESTDATA").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("SKIPPED: set CORTADO_TESTDATA to run {what}");
    }
    folder
}

fn survives<M: Message + Name + Default>(path: PathBuf) -> M {
    let message: M = proto::read_binary(&path).unwrap();
    let copy = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(path.file_name().unwrap());
    proto::write_binary(&copy, &message).unwrap();
    assert!(fs::read(&copy).unwrap() == fs::read(&path).unwrap(), "{}", path.display());
    fs::remove_file(copy).unwrap();
    message
}

#[test]
fn lenet_survives_byte_for_byte() {
    let Some(data) = testdata("reading LeNet as Caffe trained it") else { return };
    let lenet = data.join("golden/lenet");

    let net: NetParameter = survives(lenet.join("lenet_iter_10000.caffemodel"));
    assert_eq!(net.name(), "LeNet");
    let learned: usize =
        net.layer.iter().flat_map(|layer| &layer.blobs).map(|b| b.data.len()).sum();
    // 20 and 50 filters of 5 x 5, 500 and 10 outputs, each with a bias.
    assert_eq!(learned, 20 * 26 + 50 * (20 * 25 + 1) + 500 * (800 + 1) + 10 * 501);

    let state: SolverState = survives(lenet.join("lenet_iter_10000.solverstate"));
    assert_eq!((state.iter(), state.history.len()), (10000, 8));

    let mean: BlobProto = survives(lenet.join("mnist_mean.binaryproto"));
    assert_eq!(mean.data.len(), 28 * 28);
}

/// Damaged files that Caffe takes as whole, and the reason why they are refused here.
const STRICTER: [(&str, &str); 4] = [
    ("data_as_varint_plus_good", "a known field of another wire type; Caffe skips it as unknown"),
    ("num_as_fixed32", "likewise"),
    ("x_tail_zero", "a zero byte after the message; Caffe stops reading there"),
    ("x_tail_zero_garbage", "likewise, and what follows it is garbage"),
];

/// Caffe's verdict is about parsing and shape; this is about parsing, so a file that Caffe refuses
/// for its shape may be read here.
#[test]
fn damage_is_refused_wherever_caffe_refuses_it() {
    let Some(data) = testdata("reading damaged BlobProto files") else { return };
    let folder = data.join("golden/blobproto");
    let table = fs::read_to_string(folder.join("verdicts.tsv")).unwrap();
    let mut stricter = BTreeMap::new();
    for line in table.lines().skip(1) {
        let mut columns = line.split('\t');
        let (name, kind, verdict) =
            (columns.next().unwrap(), columns.next().unwrap(), columns.next().unwrap());
        let bytes = fs::read(folder.join("cases").join(format!("{name}.bin"))).unwrap();
        let read = match kind.split(' ').next() {
            Some("BlobProtoVector") => {
                proto::parse_binary::<BlobProtoVector>(&bytes, name).map(drop)
            }
            _ => proto::parse_binary::<BlobProto>(&bytes, name).map(drop),
        };
        match (read, verdict) {
            (Ok(()), "parse_reject") => panic!("{name} was read"),
            (Err(error), "ok") => {
                stricter.insert(name.to_owned(), error.to_string());
            }
            _ => {}
        }
    }
    for (name, error) in &stricter {
        eprintln!("{name}: {error}");
    }
    assert_eq!(stricter.keys().collect::<Vec<_>>(), STRICTER.map(|(name, _)| name));
}
