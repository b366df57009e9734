//! Detection of the kind of content and the format of a file.

use cortado::{
    error::{Error, Result},
    proto::{
        self, BlobProto, CaffeMessage, NetParameter, SolverParameter, SolverState, UnknownFields,
    },
};
use std::{ffi::OsStr, fs::File, io::Read, path::Path};

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
    /// LMDB database of Caffe's `Datum` messages.
    Lmdb,
    /// LevelDB database of Caffe's `Datum` messages.
    LevelDb,
}

/// Number of bytes at the start of a file from which the format is detected.
const START_LEN: u64 = 1 << 16;

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
            Self::Lmdb => "LMDB database",
            Self::LevelDb => "LevelDB database",
        }
    }

    /// Detects the kind of a file by its extension, or by its content if the extension is unknown.
    pub(super) fn of(path: &Path) -> Result<Self> {
        if path.is_dir() || is_lmdb_file(path) {
            return detect_database(path);
        }
        let extension = path.extension().and_then(OsStr::to_str);
        let kind_by_extension = match extension {
            Some("npy") => Some(Self::Npy),
            Some("npz") => Some(Self::Npz),
            Some("safetensors") => Some(Self::Safetensors),
            Some("caffemodel") => Some(Self::TrainedNet),
            Some("solverstate") => Some(Self::SolverState),
            Some("h5") => return detect_hdf5(path),
            _ => None,
        };
        if let Some(kind) = kind_by_extension {
            return Ok(kind);
        }
        match extension {
            Some("prototxt") => detect_text(path),
            Some("binaryproto") => detect_message(path),
            _ => detect_content(path),
        }
    }
}

/// Detects the format of the database in a folder or a file.
fn detect_database(path: &Path) -> Result<FileKind> {
    let reason = if path.is_file() || path.join("data.mdb").is_file() {
        return Ok(FileKind::Lmdb);
    } else if path.join("CURRENT").is_file() {
        return Ok(FileKind::LevelDb);
    } else {
        "this folder is not a database: it has neither LMDB's `data.mdb` nor LevelDB's `CURRENT`"
    };
    Err(Error::InvalidData(reason.into()).context(path.display().to_string()))
}

/// Returns whether a file has LMDB's magic number after a page header of 16 bytes.
fn is_lmdb_file(path: &Path) -> bool {
    let mut start = [0; 20];
    let read_result = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read_result.is_ok() && start[16..] == [0xDE, 0xC0, 0xEF, 0xBE]
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

/// Detects the kind of a file by its first bytes.
fn detect_content(path: &Path) -> Result<FileKind> {
    let mut bytes = Vec::new();
    let start = File::open(path).and_then(|file| file.take(START_LEN).read_to_end(&mut bytes));
    start.map_err(|error| Error::io(path, error))?;
    match &bytes[..] {
        [0x89, b'H', b'D', b'F', ..] => detect_hdf5(path),
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => Ok(FileKind::Npy),
        [b'P', b'K', 3, 4, ..] => Ok(FileKind::Npz),
        // A safetensors file starts with the length of its header as eight little-endian bytes. The
        // last two bytes of the length are 0 for every header shorter than 2⁴⁸ bytes. The header of
        // a safetensors file starts with `{`.
        [_, _, _, _, _, _, 0, 0, b'{', ..] => Ok(FileKind::Safetensors),
        _ if bytes.iter().all(|&byte| byte >= b' ' || byte.is_ascii_whitespace()) => {
            detect_text(path)
        }
        _ => detect_message(path),
    }
}

/// Detects whether a text file defines a net or a solver. If neither parser accepts the text,
/// returns the error of the parser that got further.
fn detect_text(path: &Path) -> Result<FileKind> {
    let Err(net) = proto::read_text::<NetParameter>(path) else { return Ok(FileKind::Net) };
    match proto::read_text::<SolverParameter>(path) {
        _ if error_position(&net).is_none() => Err(net), // not an error of the grammar
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
fn detect_message(path: &Path) -> Result<FileKind> {
    let kinds = [
        (unknown_fields::<BlobProto>(path), FileKind::Blob),
        (unknown_fields::<NetParameter>(path), FileKind::TrainedNet),
        (unknown_fields::<SolverState>(path), FileKind::SolverState),
    ];
    let candidates =
        kinds.iter().filter_map(|(unknown, kind)| Some((unknown.as_ref().ok()?, kind)));
    let candidates = candidates.filter_map(|(unknown, kind)| Some(((*unknown)?, *kind)));
    if let Some((_, kind)) = candidates.min_by_key(|(unknown, _)| *unknown) {
        return Ok(kind);
    }
    let reason = format!("{}: unknown or damaged file format", path.display());
    let mut errors = kinds.into_iter().filter_map(|(unknown, kind)| Some((unknown.err()?, kind)));
    Err(match errors.find(|(_, kind)| *kind == FileKind::TrainedNet) {
        Some((error, _)) => error.context(format!("{reason}; read as a trained net")),
        None => Error::InvalidData(reason),
    })
}

/// Counts the unknown fields of a binary message; returns `None` if the message has no known field.
fn unknown_fields<M: CaffeMessage + PartialEq>(path: &Path) -> Result<Option<usize>> {
    let (message, unknown) = UnknownFields::read::<M>(path)?;
    Ok((message != M::default()).then(|| unknown.paths().count()))
}
