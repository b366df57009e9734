//! Detection of the kind of content and the format of a file.

use cortado::{
    error::{Error, Result},
    proto::{
        self, BlobProto, CaffeMessage, NetParameter, SolverParameter, SolverState, UnknownFields,
    },
};
use std::{ffi::OsStr, fs, path::Path};

/// Kind of a file's content, such as a net definition or a solver state, and the file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    /// Net definition in text format.
    Net,
    /// Solver definition in text format.
    Solver,
    /// Trained net: a `NetParameter` with weights.
    TrainedNet,
    SolverState,
    Blob,
    Npy,
    Npz,
    Safetensors,
}

impl FileKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Net => "net",
            Self::Solver => "solver",
            Self::TrainedNet => "trained net",
            Self::SolverState => "solver state",
            Self::Blob => "blob",
            Self::Npy => "npy",
            Self::Npz => "npz",
            Self::Safetensors => "safetensors",
        }
    }

    /// Detects the kind of a file by its extension, or by its content if the extension is unknown.
    pub(super) fn of(path: &Path) -> Result<Self> {
        let extension = path.extension().and_then(OsStr::to_str);
        let by_name = match extension {
            Some("npy") => Some(Self::Npy),
            Some("npz") => Some(Self::Npz),
            Some("safetensors") => Some(Self::Safetensors),
            Some("caffemodel") => Some(Self::TrainedNet),
            Some("solverstate") => Some(Self::SolverState),
            Some("h5") => return detect_hdf5(path),
            _ => None,
        };
        if let Some(kind) = by_name {
            return Ok(kind);
        }
        let bytes = fs::read(path).map_err(|error| Error::io(path, error))?;
        let file = path.display().to_string();
        match extension {
            Some("prototxt") => detect_text(&bytes, &file),
            Some("binaryproto") => detect_message(&bytes, &file),
            _ if bytes.starts_with(b"\x89HDF") => detect_hdf5(path),
            _ => detect_content(&bytes, &file),
        }
    }
}

/// Detects the kind of an HDF5 file by the extension before `.h5`, or else by trying to read a
/// solver state.
fn detect_hdf5(path: &Path) -> Result<FileKind> {
    let stem = path.file_stem().map(Path::new).and_then(Path::extension);
    match stem.and_then(OsStr::to_str) {
        Some("caffemodel") => Ok(FileKind::TrainedNet),
        Some("solverstate") => Ok(FileKind::SolverState),
        _ if proto::read_solver_state(path).is_ok() => Ok(FileKind::SolverState),
        _ => Ok(FileKind::TrainedNet),
    }
}

fn detect_content(bytes: &[u8], file: &str) -> Result<FileKind> {
    match bytes {
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => Ok(FileKind::Npy),
        [b'P', b'K', 3, 4, ..] => Ok(FileKind::Npz),
        // A safetensors file starts with the length of its header as eight little-endian bytes. The
        // last two bytes are 0 for every header shorter than 2⁴⁸ bytes. The header of a safetensors
        // file starts with `{`.
        [_, _, _, _, _, _, 0, 0, b'{', ..] => Ok(FileKind::Safetensors),
        _ if bytes.iter().all(|&byte| byte >= b' ' || byte.is_ascii_whitespace()) => {
            detect_text(bytes, file)
        }
        _ => detect_message(bytes, file),
    }
}

/// Detects whether a text file defines a net or a solver. If neither parser accepts the text,
/// returns the error of the parser that got further.
fn detect_text(bytes: &[u8], file: &str) -> Result<FileKind> {
    let Err(net) = proto::parse_text::<NetParameter>(bytes, file) else { return Ok(FileKind::Net) };
    match proto::parse_text::<SolverParameter>(bytes, file) {
        Ok(_) => Ok(FileKind::Solver),
        Err(solver) if error_position(&solver) > error_position(&net) => Err(solver),
        Err(_) => Err(net),
    }
}

/// Returns the line and column of a parse error; `None` for other errors.
fn error_position(error: &Error) -> Option<(usize, usize)> {
    match error {
        Error::Parse { line, column, .. } => Some((*line, *column)),
        _ => None,
    }
}

/// Detects the message type of a binary file: the type for which the fewest fields are unknown.
fn detect_message(bytes: &[u8], file: &str) -> Result<FileKind> {
    let kinds = [
        (unknown_fields::<BlobProto>(bytes, file), FileKind::Blob),
        (unknown_fields::<NetParameter>(bytes, file), FileKind::TrainedNet),
        (unknown_fields::<SolverState>(bytes, file), FileKind::SolverState),
    ];
    let likely = kinds.into_iter().filter_map(|(unknown, kind)| Some((unknown?, kind)));
    let likeliest = likely.min_by_key(|(unknown, _)| *unknown).map(|(_, kind)| kind);
    let reason = || Error::InvalidData(format!("{file}: unknown or damaged file format"));
    likeliest.ok_or_else(reason)
}

/// Counts the unknown fields of a binary message; returns `None` if the message has no known field.
fn unknown_fields<M: CaffeMessage + PartialEq>(bytes: &[u8], file: &str) -> Option<usize> {
    let (message, unknown) = UnknownFields::parse::<M>(bytes, file).ok()?;
    (message != M::default()).then(|| unknown.paths().count())
}
