//! The text format against what Google's C++ parser and printer, as Caffe uses them, made of the
//! same files.
#![cfg(feature = "net")]

use std::{env, fs, path::PathBuf};

use cortado::proto::{self, Message, Name, NetParameter, SolverParameter};

/// Files of `expected.tsv` that come out differently here, each with the reason.
const KNOWN: [(&str, &str); 0] = [];

fn testdata(what: &str) -> Option<PathBuf> {
    let folder = env::var_os("CORTADO_TESTDATA").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("SKIPPED: set CORTADO_TESTDATA to run {what}");
    }
    folder
}

/// What Google's parser says of a file, and what came of it.
struct Row<'a> {
    file: &'a str,
    accepted: bool,
    binary: &'a str,
    text: &'a str,
}

/// How this crate differs on a row, if it does.
fn difference<M: Message + Name + Default>(folder: &std::path::Path, row: &Row) -> Option<String> {
    let read = proto::read_text::<M>(folder.join(row.file));
    match (read, row.accepted) {
        (Ok(_), false) => Some("accepted".into()),
        (Err(error), true) => Some(format!("refused: {error}")),
        (Err(error), false) => {
            let located = matches!(error, cortado::Error::Parse { line: 1.., column: 1.., .. });
            (!located).then(|| format!("no position: {error}"))
        }
        (Ok(message), true) => {
            let binary = fs::read(folder.join(row.binary)).unwrap();
            let text = fs::read_to_string(folder.join(row.text)).unwrap();
            if message.encode_to_vec() != binary {
                Some("another message".into())
            } else if proto::to_text(&message).unwrap() != text {
                Some("printed differently".into())
            } else {
                None
            }
        }
    }
}

#[test]
fn agrees_with_googles_parser_and_printer() {
    let Some(data) = testdata("the comparison with Google's text format") else { return };
    let folder = data.join("data/prototxt");
    let table = fs::read_to_string(folder.join("expected.tsv")).unwrap();
    let mut differing = Vec::new();
    let mut rows = 0;
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let mut columns = line.split('\t');
        let mut next = || columns.next().unwrap_or_default();
        let (file, message, verdict) = (next(), next(), next());
        let row = Row { file, accepted: verdict == "ok", binary: next(), text: next() };
        let found = match message {
            "NetParameter" => difference::<NetParameter>(&folder, &row),
            "SolverParameter" => difference::<SolverParameter>(&folder, &row),
            other => panic!("{other}"),
        };
        rows += 1;
        if let Some(found) = found {
            eprintln!("{file} as {message}: {found}");
            differing.push(file);
        }
    }
    assert!(rows > 300, "{rows} rows");
    let known: Vec<_> = KNOWN.iter().map(|(file, _)| *file).collect();
    assert_eq!(differing, known);
}

#[test]
fn prints_what_caffe_printed() {
    let Some(data) = testdata("printing of nets as Caffe printed them") else { return };
    let mut compared = 0;
    for case in fs::read_dir(data.join("golden/nets/valid")).unwrap() {
        let path = case.unwrap().path().join("split.prototxt");
        if !path.exists() {
            continue;
        }
        let printed = fs::read_to_string(&path).unwrap();
        let net = proto::parse_text::<NetParameter>(&printed, "split.prototxt").unwrap();
        assert_eq!(proto::to_text(&net).unwrap(), printed, "{}", path.display());
        compared += 1;
    }
    assert!(compared > 50, "{compared} nets");
}
