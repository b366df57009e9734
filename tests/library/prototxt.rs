//! Compares cortado's parser and printer of protobuf's text format with Google's C++ parser and
//! printer.

use crate::support::{minimum, table, testdata};
use cortado::proto::{self, CaffeMessage, NetParameter, SolverParameter};
use std::{fs, path::Path};

/// Compares one row of `expected.tsv` (file, message, verdict, binary, text) with the results of
/// cortado's parser and printer. Returns a description of the difference, if there is one.
fn difference<M: CaffeMessage>(folder: &Path, row: &[String]) -> Option<String> {
    let read = proto::read_text::<M>(folder.join(&row[0]));
    match (read, row[2] == "ok") {
        (Ok(_), false) => Some("accepted".into()),
        (Err(error), true) => Some(format!("refused: {error}")),
        (Err(error), false) => {
            let has_position =
                matches!(error, cortado::Error::Parse { line: 1.., column: 1.., .. });
            (!has_position).then(|| format!("the error has no position: {error}"))
        }
        (Ok(message), true) => {
            let binary = fs::read(folder.join(&row[3])).unwrap();
            let text = fs::read_to_string(folder.join(&row[4])).unwrap();
            if message.encode_to_vec() != binary {
                Some("different message".into())
            } else if proto::to_text(&message).unwrap() != text {
                Some("the printed text differs from Google's".into())
            } else {
                None
            }
        }
    }
}

#[test]
fn prototxt_files_are_parsed_and_printed_as_by_google() {
    let Some(folder) = testdata("data/prototxt", "the comparison with Google's text format") else {
        return;
    };
    let rows = table(&folder.join("expected.tsv"));
    assert!(rows.len() >= minimum(301, 100), "{} rows", rows.len());
    let differences: Vec<String> = rows
        .iter()
        .filter_map(|row| {
            let found = match &*row[1] {
                "NetParameter" => difference::<NetParameter>(&folder, row),
                "SolverParameter" => difference::<SolverParameter>(&folder, row),
                other => panic!("unexpected message type {other}"),
            };
            found.map(|found| format!("{} as {}: {found}", row[0], row[1]))
        })
        .collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn net_definitions_are_printed_as_by_caffe() {
    let Some(folder) = testdata("golden/nets/valid", "the comparison of printed nets with Caffe")
    else {
        return;
    };
    let mut compared_count = 0;
    for case in fs::read_dir(folder).unwrap() {
        let path = case.unwrap().path().join("split.prototxt");
        if !path.exists() {
            continue;
        }
        let printed_text = fs::read_to_string(&path).unwrap();
        let net = proto::parse_text::<NetParameter>(&printed_text, "split.prototxt").unwrap();
        assert_eq!(proto::to_text(&net).unwrap(), printed_text, "{}", path.display());
        compared_count += 1;
    }
    assert!(compared_count >= minimum(51, 30), "{compared_count} nets");
}
