//! The crate's one error type.

use crate::words::did_you_mean;
use std::{error::Error as StdError, path::PathBuf};

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of any kind, as a device or a data source may raise it.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// What a caller may want to tell apart; everything else is context.
///
/// An error names what it knows: the kernel and the operand as in the kernel's signature, the
/// device, the file, the layer. [`Error::context`] adds an outer name on the way up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An operand of a kernel has the wrong number of elements.
    #[error("{op}: operand `{operand}` holds {got} elements, {want} needed")]
    Length {
        /// Kernel name.
        op: &'static str,
        /// Operand name, as in the kernel's signature.
        operand: &'static str,
        /// Elements needed.
        want: usize,
        /// Elements found.
        got: usize,
    },
    /// A range reaches outside what it is taken of.
    #[error("range {start}..{end} is outside {what} of {len} elements")]
    Range {
        /// What the range was taken of.
        what: &'static str,
        /// First element.
        start: usize,
        /// One past the last element.
        end: usize,
        /// Elements there are.
        len: usize,
    },
    /// An axis that the shape does not have.
    #[error("axis {axis} is out of range for a shape of {axes} axes")]
    Axis {
        /// The axis asked for; negative ones count from the end.
        axis: isize,
        /// Axes there are.
        axes: usize,
    },
    /// Shapes that do not fit each other, or a shape that something cannot take.
    #[error("{0}")]
    Shape(String),
    /// A shape whose element or byte count does not fit in `usize`, or of too many axes.
    #[error("shape {shape:?} is too large: {why}")]
    ShapeOverflow {
        /// The extents.
        shape: Vec<usize>,
        /// What overflows.
        why: &'static str,
    },
    /// A parameter outside its domain.
    #[error("{op}: {why}")]
    InvalidInput {
        /// Kernel, filler or function.
        op: &'static str,
        /// What is wrong with which parameter.
        why: String,
    },
    /// Storage is borrowed elsewhere in a way that conflicts with this access.
    #[error("{what} is already borrowed; does the kernel run in place (`Src::InPlace`)?")]
    Borrowed {
        /// What is borrowed: `data` or `diff`.
        what: &'static str,
    },
    /// An allocation failed. Nothing was changed; it may be tried again.
    #[error("out of memory on `{device}`: {bytes} bytes")]
    OutOfMemory {
        /// Where: a device's name, or `host`.
        device: String,
        /// Bytes asked for.
        bytes: usize,
    },
    /// A copy or a fallback that a policy of the thread denies. Nothing was changed.
    #[error("denied: {what}")]
    Denied {
        /// What was to happen, for whom and where.
        what: String,
    },
    /// A device failed; the backend's own error is the source.
    #[error("device `{device}`: {source}")]
    Device {
        /// [`Memory::name`](crate::Memory::name) of the device.
        device: String,
        /// The backend's error.
        source: BoxError,
    },
    /// No such device, or none in this build.
    #[error("unknown device `{name}`{}; this build knows: {known}", did_you_mean(name, known.split(", ")))]
    UnknownDevice {
        /// The name asked for.
        name: String,
        /// The names there are, separated by commas.
        known: String,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// Text that does not parse.
    #[error("{file}:{line}:{column}: {message}")]
    Parse {
        /// File, or what stands in for it.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What was found and what was expected.
        message: String,
    },
    /// A message or file whose content makes no sense.
    #[error("{0}")]
    InvalidData(String),
    /// No layer of this type is registered.
    #[error("unknown layer type `{kind}`{}; known types: {known}", did_you_mean(kind, known.split(", ")))]
    UnknownLayer {
        /// The `type` asked for.
        kind: String,
        /// The types there are, separated by commas.
        known: String,
    },
    /// An error and where it arose: a layer, a blob, a file.
    #[error("{context}: {source}")]
    Context {
        /// The place.
        context: String,
        /// What happened there.
        source: Box<Error>,
    },
}

impl Error {
    /// Wraps a backend's own error.
    pub fn device(device: impl Into<String>, source: impl Into<BoxError>) -> Self {
        Self::Device { device: device.into(), source: source.into() }
    }

    /// Wraps an input or output error with the path it concerns.
    pub fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::Io { path: path.into(), source }
    }

    /// A parameter of `op` outside its domain.
    pub fn invalid_input(op: &'static str, why: impl Into<String>) -> Self {
        Self::InvalidInput { op, why: why.into() }
    }

    /// Adds the place where this error arose.
    #[must_use]
    pub fn context(self, context: impl Into<String>) -> Self {
        Self::Context { context: context.into(), source: Box::new(self) }
    }

    /// The innermost error, past every [`Error::Context`]: what to match on.
    pub fn root(&self) -> &Self {
        match self {
            Self::Context { source, .. } => source.root(),
            other => other,
        }
    }
}

/// Fails with [`Error::Length`] unless `got == want`.
pub fn check_len(op: &'static str, operand: &'static str, want: usize, got: usize) -> Result<()> {
    if want == got { Ok(()) } else { Err(Error::Length { op, operand, want, got }) }
}

/// Fails with [`Error::Length`] if `got < want`.
pub fn check_min_len(
    op: &'static str,
    operand: &'static str,
    want: usize,
    got: usize,
) -> Result<()> {
    if got >= want { Ok(()) } else { Err(Error::Length { op, operand, want, got }) }
}
