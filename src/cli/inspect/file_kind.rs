//! What a file is.

use crate::{
    error::{Error, Result},
    proto::{
        self, BlobProto, Message, Name, NetParameter, SolverParameter, SolverState, UnknownFields,
    },
};
use std::{ffi::OsStr, fs, path::Path};

/// What a file holds, and in which format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    /// A net's definition in text.
    Net,
    /// A solver's definition in text.
    Solver,
    /// A net with its parameters.
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

    /// The kind of the file, by its name's ending, or else by what it holds.
    pub(super) fn of(path: &Path) -> Result<Self> {
        let ending = path.extension().and_then(OsStr::to_str);
        let by_name = match ending {
            Some("npy") => Some(Self::Npy),
            Some("npz") => Some(Self::Npz),
            Some("safetensors") => Some(Self::Safetensors),
            Some("caffemodel") => Some(Self::TrainedNet),
            Some("solverstate") => Some(Self::SolverState),
            Some("h5") => return hdf5(path),
            _ => None,
        };
        if let Some(kind) = by_name {
            return Ok(kind);
        }
        let bytes = fs::read(path).map_err(|error| Error::io(path, error))?;
        let file = path.display().to_string();
        match ending {
            Some("prototxt") => text(&bytes, &file),
            Some("binaryproto") => message(&bytes, &file),
            _ if bytes.starts_with(b"\x89HDF") => hdf5(path),
            _ => content(&bytes, &file),
        }
    }
}

/// The second ending of the name tells, or else what can be read.
fn hdf5(path: &Path) -> Result<FileKind> {
    let stem = path.file_stem().map(Path::new).and_then(Path::extension);
    match stem.and_then(OsStr::to_str) {
        Some("caffemodel") => Ok(FileKind::TrainedNet),
        Some("solverstate") => Ok(FileKind::SolverState),
        _ if proto::read_solver_state(path).is_ok() => Ok(FileKind::SolverState),
        _ => Ok(FileKind::TrainedNet),
    }
}

fn content(bytes: &[u8], file: &str) -> Result<FileKind> {
    match bytes {
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => Ok(FileKind::Npy),
        [b'P', b'K', 3, 4, ..] => Ok(FileKind::Npz),
        // The length of the header, far below 2⁴⁸, and the brace with which that starts.
        [_, _, _, _, _, _, 0, 0, b'{', ..] => Ok(FileKind::Safetensors),
        _ if bytes.iter().all(|&byte| byte >= b' ' || byte.is_ascii_whitespace()) => {
            text(bytes, file)
        }
        _ => message(bytes, file),
    }
}

/// A definition is a net's if it reads as one. If it is neither's, the error is of the reading
/// that came farther.
fn text(bytes: &[u8], file: &str) -> Result<FileKind> {
    let Err(net) = proto::parse_text::<NetParameter>(bytes, file) else { return Ok(FileKind::Net) };
    match proto::parse_text::<SolverParameter>(bytes, file) {
        Ok(_) => Ok(FileKind::Solver),
        Err(solver) if place(&solver) > place(&net) => Err(solver),
        Err(_) => Err(net),
    }
}

/// Where reading stopped.
fn place(error: &Error) -> Option<(usize, usize)> {
    match error {
        Error::Parse { line, column, .. } => Some((*line, *column)),
        _ => None,
    }
}

/// Messages do not tell what they are: it is the kind to which the fewest fields are unknown.
fn message(bytes: &[u8], file: &str) -> Result<FileKind> {
    let kinds = [
        (unknown_to::<BlobProto>(bytes, file), FileKind::Blob),
        (unknown_to::<NetParameter>(bytes, file), FileKind::TrainedNet),
        (unknown_to::<SolverState>(bytes, file), FileKind::SolverState),
    ];
    let likely = kinds.into_iter().filter_map(|(unknown, kind)| Some((unknown?, kind)));
    let likeliest = likely.min_by_key(|(unknown, _)| *unknown).map(|(_, kind)| kind);
    let why = || Error::InvalidData(format!("{file}: it is of no known kind, or damaged"));
    likeliest.ok_or_else(why)
}

/// How many fields are unknown to this kind of message, if some are known.
fn unknown_to<M: Message + Name + Default + PartialEq>(bytes: &[u8], file: &str) -> Option<usize> {
    let (message, unknown) = UnknownFields::parse::<M>(bytes, file).ok()?;
    (message != M::default()).then(|| unknown.paths().count())
}
