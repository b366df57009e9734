//! Tests of the tables of Caffe's commands in `docs/from-caffe.md`. The tests run each example in
//! these tables of commands.

use crate::command::{Folder, NET, RunResult};
use cortado::{
    data::LmdbReader,
    proto::{self, BlobProto, Datum, Message, NetParameter},
};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

const PAGE: &str = include_str!("../../../docs/from-caffe.md");

/// Row of a table of Caffe's commands.
struct Row<'a> {
    name: &'a str,
    status: &'a str,
    /// Example without backticks; empty if the table has no example.
    example: &'a str,
    note: &'a str,
}

/// Returns the rows of all tables with four columns, of which the second is the status.
fn rows() -> Vec<Row<'static>> {
    let cells = PAGE.lines().filter_map(|line| {
        let line = line.strip_prefix("| ")?.strip_suffix('|')?;
        let [name, status, example, note] = line.split('|').map(str::trim).collect::<Vec<_>>()[..]
        else {
            return None;
        };
        Some(Row { name, status, example: example.trim_matches('`'), note })
    });
    cells.filter(|row| row.status != "status").collect()
}

/// Returns the shell commands in `docs/from-caffe.md` that create links to `cortado`.
fn link_commands() -> &'static str {
    let (_, rest) = PAGE.split_once("```sh\nmkdir -p build/tools").unwrap();
    let start = PAGE.len() - rest.len() - "mkdir -p build/tools".len();
    PAGE[start..].split("```").next().unwrap()
}

/// Runs a shell command in the folder. `PATH` starts with the folders of `cortado` and of the links
/// to `cortado`.
pub(crate) fn shell(folder: &Folder, script: &str) -> RunResult {
    let binary = Path::new(env!("CARGO_BIN_EXE_cortado"));
    let links = ["tools", "examples/mnist", "examples/cifar10", "examples/cpp_classification"];
    let mut paths: Vec<_> = links.iter().map(|part| folder.path("build").join(part)).collect();
    paths.push(binary.parent().unwrap().to_owned());
    paths.extend(env::split_paths(&env::var_os("PATH").unwrap()));
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).current_dir(folder.path(""));
    shell.env("PATH", env::join_paths(paths).unwrap());
    shell.env("CORTADO_LIBCUDA", "/nowhere/libcuda.so.1");
    RunResult::new(script, shell.output().unwrap())
}

/// Creates the links to `cortado` with the commands in `docs/from-caffe.md`.
pub(crate) fn make_links(folder: &Folder) {
    shell(folder, link_commands()).succeeded();
}

fn images() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/images")
}

/// Images of 11 by 9 pixels, in the order of the image list. The label of an image is its index.
const IMAGES: [&str; 8] = [
    "color.png",
    "palette.png",
    "gray.png",
    "color.png",
    "gray.png",
    "palette.png",
    "palette.png",
    "color.png",
];

/// Returns a CIFAR-10 record whose pixels all have the value `pixel`.
pub(crate) fn cifar_record(label: u8, pixel: u8) -> Vec<u8> {
    [&[label][..], &[pixel; 3072]].concat()
}

/// Creates a folder with all files that the examples read.
fn folder_of_examples() -> Folder {
    let folder = Folder::new("caffe-commands");
    make_links(&folder);
    let extra_layer = r#"layer { name: "extra" type: "Silence" bottom: "ip"
        include { min_level: 3 } include { stage: "deep" } }"#;
    folder.write("net.prototxt", format!("{NET}{extra_layer}"));
    shell(&folder, "caffe train -solver solver.prototxt").succeeded();
    let copy = |from: &str, to: &str| fs::copy(folder.path(from), folder.path(to)).unwrap();
    copy("lenet_iter_8.caffemodel", "lenet.caffemodel");
    copy("lenet_iter_4.solverstate", "lenet.solverstate");
    for name in ["images", "cifar", "logs"] {
        fs::create_dir(folder.path(name)).unwrap();
    }
    let mut list = String::new();
    for (label, file) in IMAGES.iter().enumerate() {
        fs::copy(images().join(file), folder.path("images").join(file)).unwrap();
        list.push_str(&format!("{file} {label}\n"));
    }
    folder.write("images/list.txt", list);
    shell(&folder, "convert_imageset images/ images/list.txt images_lmdb").succeeded();
    // A database of Datum messages that LevelDB wrote.
    fs::create_dir(folder.path("images_leveldb")).unwrap();
    let database = images().with_file_name("leveldb").join("datums");
    for entry in fs::read_dir(database).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap();
        fs::copy(&path, folder.path("images_leveldb").join(name)).unwrap();
    }
    folder.write("digits-images", [0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 3, 4]);
    folder.write("digits-labels", [0, 0, 8, 1, 0, 0, 0, 2, 7, 9]);
    for batch in 1..=5 {
        folder.write(&format!("cifar/data_batch_{batch}.bin"), cifar_record(batch, 10 * batch));
    }
    folder.write("cifar/test_batch.bin", [cifar_record(6, 60), cifar_record(7, 70)].concat());

    let deploy = r#"layer { name: "x" type: "Input" top: "x"
            input_param { shape { dim: 1 dim: 1 dim: 3 dim: 3 } } }
        layer { name: "y" type: "Flatten" bottom: "x" top: "y" }"#;
    folder.write("deploy.prototxt", deploy);
    proto::write_binary(folder.path("deploy.caffemodel"), &NetParameter::default()).unwrap();
    let one = Some(1);
    let mean = BlobProto {
        num: one,
        channels: one,
        height: one,
        width: one,
        data: vec![1.0],
        ..Default::default()
    };
    proto::write_binary(folder.path("images_mean.binaryproto"), &mean).unwrap();
    folder.write("names.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\n");

    let old_text = "input: \"x\" layers { name: \"r\" type: RELU bottom: \"x\" top: \"y\" }";
    folder.write("old.prototxt", old_text);
    let old_net: NetParameter = proto::parse_text(old_text, "").unwrap();
    proto::write_binary(folder.path("old.caffemodel"), &old_net).unwrap();
    folder.write("old_solver.prototxt", "base_lr: 0.5 solver_type: ADAM");
    folder
}

/// Removes the files that examples write.
fn clean(folder: &Folder) {
    for name in ["new_lmdb", "ip_lmdb", "label_lmdb", "cifar10_train_lmdb", "cifar10_test_lmdb"] {
        let _ = fs::remove_dir_all(folder.path(name));
    }
    for file in folder.files("").iter().filter(|file| file.starts_with("new")) {
        fs::remove_file(folder.path(file)).unwrap();
    }
    for snapshot in folder.files("").iter().filter(|file| file.starts_with("lenet_iter_8")) {
        fs::remove_file(folder.path(snapshot)).unwrap();
    }
    let _ = fs::remove_file(folder.path("mean.binaryproto"));
    fs::remove_dir_all(folder.path("logs")).unwrap();
    fs::create_dir(folder.path("logs")).unwrap();
}

/// Returns the keys and the records of a database.
pub(crate) fn records(folder: &Folder, database: &str) -> Vec<(String, Datum)> {
    let (mut reader, mut records) = (LmdbReader::open(folder.path(database)).unwrap(), Vec::new());
    while reader.advance().unwrap() {
        let (key, value) = reader.entry().unwrap();
        records.push((String::from_utf8(key.to_vec()).unwrap(), Datum::decode(value).unwrap()));
    }
    records
}

/// Returns the text of the log file to which the link for `severity`, such as `caffe.INFO`, points.
fn log_file(folder: &Folder, severity: &str) -> Option<String> {
    fs::read_to_string(folder.path("logs").join(format!("caffe.{severity}"))).ok()
}

fn trained(result: &RunResult) -> bool {
    result.log.last().is_some_and(|line| line == "Optimization Done.")
}

/// Returns whether the example of a row with the status `same` or `other` had the expected effect.
/// Panics if the name of the row is unknown.
fn had_effect(row: &Row<'_>, result: &RunResult, folder: &Folder) -> bool {
    let rows_of_time = |layer: &str| {
        result.out.lines().filter(|line| line.starts_with(&format!("{layer} "))).count()
    };
    let new_records = || records(folder, "new_lmdb");
    let has_images = |channels: i32, height: i32, width: i32| {
        let new_records = new_records();
        let shape = |(index, (key, datum)): (usize, &(String, Datum))| {
            *key == format!("{index:08}_{}", IMAGES[index])
                && (datum.channels(), datum.height(), datum.width()) == (channels, height, width)
                && datum.label() == i32::try_from(index).unwrap()
        };
        new_records.len() == IMAGES.len() && new_records.iter().enumerate().all(shape)
    };
    let text = |file: &str| String::from_utf8(folder.read(file)).unwrap();
    let is_logged = |line: &str| result.log.iter().any(|logged| logged == line);
    let mean = || {
        proto::read_binary::<BlobProto>(folder.path("mean.binaryproto"))
            .is_ok_and(|mean| (mean.channels(), mean.data.len()) == (3, 3 * 9 * 11))
    };
    match row.name {
        "`caffe train`" | "`-solver`" | "repeated flags" | "flags before the subcommand" => {
            trained(result) && folder.path("lenet_iter_8.caffemodel").exists()
        }
        "`caffe test`" => result.out.starts_with("Loss: ") && result.out.contains("\naccuracy = "),
        "`caffe time`" | "`-model`" => {
            rows_of_time("ip") == 1 && rows_of_time("accuracy") + rows_of_time("extra") == 0
        }
        "`caffe device_query`" => result.out.starts_with("cpu\n"),
        "`-phase`" => rows_of_time("accuracy") == 1,
        "`-level`" | "`-stage`" => rows_of_time("extra") == 1,
        "`-snapshot`" => {
            trained(result)
                && is_logged("Resuming from lenet.solverstate")
                && !result.log.iter().any(|line| line.starts_with("Iteration 0"))
        }
        "`-weights`" => trained(result) && is_logged("Finetuning from lenet.caffemodel"),
        "`-weights` of `caffe time`" => rows_of_time("ip") == 1,
        "`-iterations`" | "`-flag` and `--flag`" | "`-flag=value` and `-flag value`" => {
            is_logged("Testing for 3 iterations.")
        }
        "`-sigint_effect`" | "`-sighup_effect`" | "`-flag=`" => trained(result),
        "flags of another subcommand" => {
            trained(result)
                && is_logged("--iterations: ignored, because the subcommand does not use it")
        }
        "`compute_image_mean`" | "`-backend lmdb` of `compute_image_mean`" | "`--`" => mean(),
        "`-backend leveldb` of `compute_image_mean`" => {
            proto::read_binary::<BlobProto>(folder.path("mean.binaryproto"))
                .is_ok_and(|mean| mean.data == [20.0, 21.0])
        }
        "`convert_imageset`"
        | "`-check_size`"
        | "`-backend lmdb` of `convert_imageset`"
        | "`-bool=false`"
        | "`-nobool`"
        | "`--nobool`" => has_images(3, 9, 11),
        "`-gray`" | "`-bool`" | "`-bool=true`" | "flags after the arguments" => {
            has_images(1, 9, 11)
        }
        "`-resize_width`, `-resize_height`" => has_images(3, 5, 6),
        "`-shuffle`" => {
            let mut labels: Vec<_> = new_records().iter().map(|(_, datum)| datum.label()).collect();
            let is_shuffled = !labels.is_sorted();
            labels.sort();
            is_shuffled && labels == [0, 1, 2, 3, 4, 5, 6, 7]
        }
        "`-encoded`" => new_records().iter().zip(IMAGES).all(|((_, datum), file)| {
            datum.encoded() && datum.data() == fs::read(images().join(file)).unwrap()
        }),
        "`-encode_type png`" => {
            let is_png = |datum: &Datum| datum.encoded() && datum.data().starts_with(b"\x89PNG");
            new_records().len() == 8 && new_records().iter().all(|(_, datum)| is_png(datum))
        }
        "`convert_mnist_data`" | "`-backend lmdb` of `convert_mnist_data`" => {
            let new_records: Vec<_> = new_records()
                .into_iter()
                .map(|(key, datum)| (key, datum.label(), datum.data().to_vec()))
                .collect();
            new_records == [("00000000".into(), 7, vec![1, 2]), ("00000001".into(), 9, vec![3, 4])]
        }
        "`convert_cifar_data`" => {
            let label = |(key, datum): (String, Datum)| {
                let label = datum.label();
                assert!(
                    datum.data().len() == 3072
                        && datum.data().iter().all(|byte| i32::from(*byte) == 10 * label)
                );
                assert_eq!((datum.channels(), datum.height(), datum.width()), (3, 32, 32));
                (key, label)
            };
            let labels =
                |database| -> Vec<_> { records(folder, database).into_iter().map(label).collect() };
            let train: Vec<_> = (0..5).map(|i| (format!("{i:05}"), i + 1)).collect();
            labels("cifar10_train_lmdb") == train
                && labels("cifar10_test_lmdb") == [("00000".into(), 6), ("00001".into(), 7)]
        }
        "`extract_features`" => {
            records(folder, "ip_lmdb").len() == 24 && records(folder, "label_lmdb").len() == 24
        }
        "`CPU` of `extract_features`" => new_records().len() == 24,
        "`classification`" => {
            let lines: Vec<_> = result.out.lines().collect();
            let is_class = |line: &&str| {
                let Some((score, name)) = line.split_once(" - \"") else { return false };
                score.split_once('.').is_some_and(|(_, decimals)| decimals.len() == 4)
                    && name.len() == 2
                    && name.ends_with('"')
            };
            lines.len() == 6
                && lines[0] == "---------- Prediction for images/gray.png ----------"
                && lines[1..].iter().all(is_class)
        }
        "`upgrade_net_proto_text`" => text("new.prototxt").contains("type: \"ReLU\""),
        "`upgrade_net_proto_binary`" => {
            proto::read_binary::<NetParameter>(folder.path("new.caffemodel"))
                .is_ok_and(|net| net.layer.iter().any(|layer| layer.r#type() == "ReLU"))
        }
        "`upgrade_solver_proto_text`" => {
            text("new_solver.prototxt") == "base_lr: 0.5\ntype: \"Adam\"\n"
        }
        "`-help`" | "`-helpfull`, `-helpshort`, `-helppackage`" => {
            result.out.contains("--solver") && result.log.is_empty()
        }
        "`-version`" => result.out.contains(env!("CARGO_PKG_VERSION")),
        "`-logtostderr`" => trained(result) && log_file(folder, "INFO").is_none(),
        "`-alsologtostderr`" => {
            trained(result) && log_file(folder, "INFO").unwrap().contains("Optimization Done.")
        }
        "`-noalsologtostderr`" => {
            result.log.is_empty()
                && log_file(folder, "INFO").unwrap().contains("Optimization Done.")
        }
        "`-log_dir`" => {
            let log = log_file(folder, "INFO").unwrap();
            let header =
                ["Log file created at: ", "Running on machine: ", "Log line format: [IWEF]mmdd"];
            let has_header = log.lines().zip(header).all(|(line, start)| line.starts_with(start));
            trained(result) && has_header && log_file(folder, "WARNING").is_none()
        }
        "`-minloglevel`" | "`GLOG_minloglevel` and other variables" => {
            result.log.is_empty() && folder.path("lenet_iter_8.caffemodel").exists()
        }
        "`-stderrthreshold`" => trained(result),
        "`-v`" => trained(result) && is_logged("Creating Layer ip"),
        "`-log_prefix`" => {
            result.log.is_empty()
                && result.err.last().is_some_and(|line| line == "Optimization Done.")
        }
        "`-log_year_in_prefix`" => {
            let has_year = |line: &String| {
                let (date, rest) = line[1..].split_once(' ').unwrap();
                date.len() == 8 && date.starts_with("20") && rest.contains("] ")
            };
            result.log.is_empty() && result.err.iter().all(has_year)
        }
        "`-logbuflevel`, `-logbufsecs`"
        | "`-colorlogtostderr`"
        | "`-max_log_size`, `-stop_logging_if_full_disk`, `-drop_log_memory`"
        | "`-symbolize_stacktrace`, `-vmodule`" => trained(result),
        name => panic!("{name}: this test has no check for the row; add one"),
    }
}

/// Rows of `docs/from-caffe.md` whose example selects a GPU. The tests hide the machine's GPUs, so
/// the examples in these rows fail.
const GPU_ROWS: [&str; 2] = ["`-gpu`", "`GPU` and number of `extract_features`"];

#[test]
fn each_example_in_from_caffe_has_the_listed_status() {
    let (folder, rows) = (folder_of_examples(), rows());
    for row in &rows {
        clean(&folder);
        let result = shell(&folder, row.example);
        match row.status {
            _ if GPU_ROWS.contains(&row.name) => result.failed_with(&["--gpu: no GPU found"]),
            "same" | "other" => {
                assert!(
                    result.code == Some(0) && had_effect(row, &result, &folder),
                    "{}: {result:#?}",
                    row.name
                );
                assert!(row.status == "same" || !row.note.is_empty(), "{}: no note", row.name);
            }
            "not" => {
                let is_refused = result.code.is_some_and(|code| (1..=2).contains(&code));
                assert!(is_refused || row.example.is_empty(), "{}: {result:#?}", row.name);
                assert!(!result.err.concat().contains("panicked"), "{}: {result:#?}", row.name);
                assert!(!row.note.is_empty(), "{}: no reason", row.name);
            }
            status => panic!("{}: unknown status `{status}`", row.name),
        }
    }
    for status in ["same", "other", "not"] {
        assert!(rows.iter().filter(|row| row.status == status).count() > 5, "{status}");
    }
}

/// Flags and programs of Caffe at its last commit, and the flags of gflags 2.2 and glog 0.4.
const CAFFE_NAMES: &str = "caffe train,caffe test,caffe time,caffe device_query,-gpu,-solver,\
    -model,-phase,-level,-stage,-snapshot,-weights,-iterations,-sigint_effect,-sighup_effect,\
    compute_image_mean,convert_imageset,extract_features,upgrade_net_proto_binary,\
    upgrade_net_proto_text,upgrade_solver_proto_text,convert_mnist_data,convert_cifar_data,\
    convert_mnist_siamese_data,classification,-backend,-gray,-shuffle,-resize_width,\
    -resize_height,-check_size,-encoded,-encode_type,-flagfile,-fromenv,-tryfromenv,-undefok,\
    -tab_completion_word,-tab_completion_columns,-help,-helpfull,-helpshort,-helpon,-helpmatch,\
    -helppackage,-helpxml,-version,-logtostderr,-alsologtostderr,-colorlogtostderr,\
    -drop_log_memory,-alsologtoemail,-log_prefix,-minloglevel,-logbuflevel,-logbufsecs,\
    -logemaillevel,-logmailer,-logfile_mode,-log_dir,-log_link,-max_log_size,\
    -stop_logging_if_full_disk,-log_backtrace_at,-symbolize_stacktrace,-stderrthreshold,-v,\
    -vmodule";

#[test]
fn from_caffe_lists_all_programs_and_flags_of_caffe() {
    let names: String = rows().iter().map(|row| format!("{} ", row.name)).collect();
    for name in CAFFE_NAMES.split(',') {
        let is_listed =
            names.contains(&format!("`{name}`")) || names.contains(&format!("`{name} "));
        assert!(is_listed, "{name}: missing in docs/from-caffe.md");
    }
}

/// `docs/from-caffe.md` lists all these flags as not supported, but contains examples for only some
/// of them.
#[test]
fn unsupported_flags_are_refused_with_a_remedy() {
    let folder = Folder::new("caffe-unsupported");
    for flag in [
        "alsologtoemail=a@b",
        "flagfile=f",
        "fromenv=solver",
        "helpmatch=x",
        "helpon=x",
        "helpxml",
        "log_backtrace_at=a.cpp:1",
        "log_link=x",
        "logemaillevel=1",
        "logfile_mode=1",
        "logmailer=x",
        "tab_completion_columns=1",
        "tab_completion_word=x",
        "tryfromenv=solver",
        "undefok=x",
    ] {
        let name = flag.split('=').next().unwrap();
        for dashes in ["-", "--"] {
            let result = folder.run(&format!("train {dashes}{flag} -solver solver.prototxt"));
            result.refused_with(&[&format!("cortado: --{name}: "), "; see --help"]);
            assert_eq!(result.err.len(), 1, "{result:#?}");
        }
    }
}
