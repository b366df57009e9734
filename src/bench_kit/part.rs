//! Part of the report: the stored results of one benchmark program.

use super::{BreakEven, Limits, PeerTimes, Record, machine::machine};
use crate::error::{Error, Result};
use serde_json::{Value, json};
use std::{
    env, fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

/// Results of one benchmark program, which a report shows together with those of other programs.
///
/// ```
/// use cortado::bench_kit::Part;
///
/// let folder = tempfile::tempdir().unwrap();
/// let page = Part { name: "blas".into(), ..Part::default() }.store(folder.path(), false)?;
/// assert!(std::fs::read_to_string(page).unwrap().starts_with("<!DOCTYPE html>"));
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// Name of the program, such as `blas`; also the name of the part's file.
    pub name: String,
    /// Names and values that describe the machine.
    pub machine: Vec<(String, String)>,
    /// Measured peak rates of the devices.
    pub limits: Vec<Limits>,
    /// Results of the cases.
    pub records: Vec<Record>,
    /// Rows of the table of break-even sizes: the device, the kernel, and the size from which the
    /// device is faster than one CPU thread, without and with transfers.
    pub break_even: Vec<[String; 4]>,
    /// Times of cases with cortado and with other libraries.
    pub peers: Vec<PeerTimes>,
}

/// Returns the folder of the report: `report` in the folder that `CARGO_TARGET_DIR` names, or in
/// `target`.
pub fn report_folder() -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    Path::new(&target).join("report")
}

impl Part {
    /// Returns an empty part with a description of this machine.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), machine: machine(), ..Self::default() }
    }

    /// Returns an empty part about one subject, such as a device or a net, with a description of this
    /// machine. The name of the part is `kind`, a hyphen, the words of `subject`,
    /// connected by hyphens. A word consists of ASCII letters, digits and `_`, so that the name is
    /// valid as a file name.
    ///
    /// ```
    /// assert_eq!(cortado::bench_kit::Part::of("device", "npu:0").name, "device-npu-0");
    /// ```
    pub fn of(kind: &str, subject: &str) -> Self {
        let separates = |c: char| !c.is_ascii_alphanumeric() && c != '_';
        let words = subject.split(separates).filter(|word| !word.is_empty());
        Self::new(&[kind].into_iter().chain(words).collect::<Vec<_>>().join("-"))
    }

    /// Adds the break-even sizes of a comparison.
    pub(super) fn add_break_even(&mut self, device: &str, sizes: &BreakEven) {
        let text = |size: Option<usize>| size.map_or("–".to_owned(), |size| size.to_string());
        self.break_even.extend(sizes.kernels().map(|kernel| {
            let sizes = [sizes.resident(kernel), sizes.with_transfers(kernel)].map(text);
            let [resident, with_transfers] = sizes;
            [device.to_owned(), kernel.to_owned(), resident, with_transfers]
        }));
    }

    /// Reads all parts in `folder`, in the order of their names. Returns an empty list if the
    /// folder is missing.
    pub(super) fn read_all(folder: &Path) -> Result<Vec<Self>> {
        let with_path = |error| Error::io(folder, error);
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(with_path)?,
        };
        let paths = entries.map(|entry| Ok(entry.map_err(with_path)?.path()));
        let mut paths = paths.collect::<Result<Vec<_>>>()?;
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        paths.sort();
        paths.iter().map(|path| Self::read(path)).collect()
    }

    fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).map_err(|error| Error::io(path, error))?;
        let value = serde_json::from_str::<Value>(&text).ok();
        value.as_ref().and_then(Self::from_json).ok_or_else(|| {
            let reason = "not a part of a report; delete the file and run the benchmark again";
            Error::InvalidData(reason.into()).context(path.display().to_string())
        })
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "name": self.name, "machine": self.machine, "break_even": self.break_even,
            "limits": self.limits.iter().map(Limits::to_json).collect::<Vec<_>>(),
            "records": self.records.iter().map(Record::to_json).collect::<Vec<_>>(),
            "peers": self.peers.iter().map(PeerTimes::to_json).collect::<Vec<_>>(),
        })
    }

    pub(super) fn from_json(value: &Value) -> Option<Self> {
        let text = |value: &Value| Some(value.as_str()?.to_owned());
        let list = |name: &str| value[name].as_array();
        let machine = |row: &Value| Some((text(&row[0])?, text(&row[1])?));
        let row =
            |row: &Value| Some([text(&row[0])?, text(&row[1])?, text(&row[2])?, text(&row[3])?]);
        Some(Self {
            name: text(&value["name"])?,
            machine: list("machine")?.iter().map(machine).collect::<Option<_>>()?,
            limits: list("limits")?.iter().map(Limits::from_json).collect::<Option<_>>()?,
            records: list("records")?.iter().map(Record::from_json).collect::<Option<_>>()?,
            break_even: list("break_even")?.iter().map(row).collect::<Option<_>>()?,
            // Parts of earlier versions have no comparison with other libraries.
            peers: list("peers")
                .into_iter()
                .flatten()
                .map(PeerTimes::from_json)
                .collect::<Option<_>>()?,
        })
    }
}
