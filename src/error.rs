//! The error type of the crate.

use crate::suggest::did_you_mean;
use std::{error::Error as StdError, fmt, path::PathBuf};

/// A result whose error type is [`Error`] by default.
///
/// ```
/// use cortado::{CpuDevice, Device, Blob, Result};
///
/// fn largest<D: Device>(x: &Blob<f32, D>) -> Result<f32> {
///     x.reshaped(&[x.count()])?.max(0)?.item()
/// }
///
/// let x = Blob::from_slice(&CpuDevice::new(), &[2, 2], &[1.0, 4.0, 3.0, 2.0])?;
/// assert_eq!(largest(&x)?, 4.0);
/// # Ok::<(), cortado::Error>(())
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of any type, for example from a device driver.
///
/// ```
/// use cortado::{Error, error::BoxError};
///
/// fn call_driver() -> Result<(), BoxError> {
///     Err("no power".into())
/// }
///
/// let error = call_driver().map_err(|error| Error::device("npu:0", error)).unwrap_err();
/// assert_eq!(error.to_string(), "device `npu:0`: no power");
/// ```
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// The errors of this crate, with one variant for each kind of error that a caller may handle
/// differently.
///
/// An error message names the kernel and its operand, as in the kernel's signature, or else the
/// device, the file or the layer. [`Error::context`] adds a prefix, such as the layer in which the
/// error arose.
///
/// `Debug` prints the same message as `Display`, so that a `main` that returns [`Result`] prints
/// that message.
///
/// ```
/// use cortado::prelude::*;
///
/// let error = Blob::from_slice(&CpuDevice::new(), &[2, 2], &[1.0f32]).unwrap_err();
/// assert_eq!(error.to_string(), "from_slice: operand `values` holds 1 elements, 4 needed");
/// let error = error.context("layer conv1");
/// assert!(error.to_string().starts_with("layer conv1: from_slice"));
/// assert!(matches!(error.root(), Error::Length { want: 4, got: 1, .. }));
/// ```
#[non_exhaustive]
pub enum Error {
    /// A kernel operand with the wrong number of elements.
    Length {
        /// Name of the kernel.
        op: &'static str,
        /// Name of the operand, as in the kernel's signature.
        operand: &'static str,
        /// Number of elements that the kernel needs.
        want: usize,
        /// Number of elements of the operand.
        got: usize,
    },
    /// A range that extends beyond the end of a sequence.
    Range {
        /// Name of the sequence that the range selects from.
        what: &'static str,
        /// Index of the first element of the range.
        start: usize,
        /// Index one past the last element of the range.
        end: usize,
        /// Length of the sequence, in elements.
        len: usize,
    },
    /// An axis that the shape does not have.
    Axis {
        /// The requested axis, such as −1. Negative axes count from the end.
        axis: isize,
        /// Number of axes of the shape.
        axes: usize,
    },
    /// Shapes that do not match each other, or a shape that the operation does not accept.
    Shape(String),
    /// A shape that has too many axes, or whose element or byte count overflows.
    ShapeOverflow {
        /// Extents of the shape.
        shape: Vec<usize>,
        /// The limit that the shape exceeds.
        reason: &'static str,
    },
    /// A parameter outside its domain.
    InvalidInput {
        /// Name of the kernel, filler or function.
        op: &'static str,
        /// The parameter, and the reason why the parameter is invalid.
        reason: String,
    },
    /// An access to data or diff that conflicts with an outstanding borrow.
    Borrowed {
        /// The borrowed storage: `data` or `diff`.
        what: &'static str,
    },
    /// A failed allocation. The call that failed has no effect, so the caller may retry.
    OutOfMemory {
        /// Name of the device, or `host`.
        device: String,
        /// Number of requested bytes.
        bytes: usize,
    },
    /// An allocation that would exceed the limit that
    /// [`AnyDevice::with_memory_limit`](crate::AnyDevice::with_memory_limit) or `--max-memory` has
    /// set. The call that failed has no effect.
    MemoryLimit {
        /// Name of the device.
        device: String,
        /// Number of requested bytes.
        bytes: usize,
        /// Number of bytes that are allocated under the memory limit.
        used: usize,
        /// The memory limit in bytes.
        limit: usize,
    },
    /// A transfer or fallback that a policy of the calling thread denies. The denied call changes
    /// no memory.
    Denied {
        /// Description of the transfer or fallback, with the kernel and its call site.
        what: String,
    },
    /// A device failure, with the backend's own error as the source.
    Device {
        /// [`Memory::name`](crate::Memory::name) of the device.
        device: String,
        /// The backend's error.
        source: BoxError,
    },
    /// An exchange of data between two processes of a training run that failed. The message names
    /// both processes.
    Communication {
        /// Rank of the process that reports the error.
        rank: usize,
        /// Rank of the process with which the exchange failed.
        peer: usize,
        /// Description of the failure, such as an ended process or a wrong number of bytes.
        reason: String,
    },
    /// A training run whose objective or weights became NaN or infinite. The message names the
    /// iteration, and the layer and blob of the first NaN or infinite value.
    Diverged(String),
    /// A device name that this build of the crate does not know.
    UnknownDevice {
        /// The requested device name.
        name: String,
        /// The known device names, separated by `, `.
        known: String,
    },
    /// A file that could not be read or written.
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// Text that cannot be parsed.
    Parse {
        /// Path of the file, or the name that the caller gave to the text.
        file: String,
        /// Line number, from 1.
        line: usize,
        /// Column number, from 1.
        column: usize,
        /// Description of the text that was found and the text that was expected.
        message: String,
    },
    /// Input with invalid content, such as a protobuf message or a file.
    InvalidData(String),
    /// A layer type that is not registered.
    UnknownLayer {
        /// The requested layer type.
        kind: String,
        /// The registered layer types, separated by `, `.
        known: String,
    },
    /// An error, with the layer, the blob or the file in which the error arose.
    Context {
        /// The layer, blob or file in which the error arose.
        context: String,
        /// The wrapped error.
        source: Box<Error>,
    },
}

/// The number of extents that the message of [`Error::ShapeOverflow`] prints.
const MAX_PRINTED_AXES: usize = 64;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { op, operand, want, got } => {
                write!(f, "{op}: operand `{operand}` holds {got} elements, {want} needed")
            }
            Self::Range { what, start, end, len } => {
                write!(f, "range {start}..{end} is outside {what} of {len} elements")
            }
            Self::Axis { axis, axes } => {
                write!(f, "axis {axis} is out of range for a shape of {axes} axes")
            }
            Self::Shape(message) | Self::Diverged(message) | Self::InvalidData(message) => {
                f.write_str(message)
            }
            Self::ShapeOverflow { shape, reason } => {
                // Print only the first extents, because the shape in a file can have a million
                // axes.
                match shape.get(..MAX_PRINTED_AXES) {
                    Some(start) => {
                        write!(f, "shape {start:?} and {} more axes", shape.len() - start.len())?
                    }
                    None => write!(f, "shape {shape:?}")?,
                }
                write!(f, " is too large: {reason}")
            }
            Self::InvalidInput { op, reason } => write!(f, "{op}: {reason}"),
            Self::Borrowed { what } => write!(
                f,
                "{what} is already borrowed; a kernel that runs in place takes `Src::InPlace`"
            ),
            Self::OutOfMemory { device, bytes } => {
                write!(f, "out of memory on `{device}`: {bytes} bytes")
            }
            Self::MemoryLimit { device, bytes, used, limit } => write!(
                f,
                "memory limit of `{device}`: {bytes} bytes wanted, {used} bytes in use, limit \
                 {limit} bytes; raise the limit (--max-memory) or use a smaller batch or net"
            ),
            Self::Denied { what } => write!(f, "denied: {what}"),
            Self::Device { device, source } => write!(f, "device `{device}`: {source}"),
            Self::Communication { rank, peer, reason } => {
                write!(f, "process {rank}: exchange with process {peer}: {reason}")
            }
            Self::UnknownDevice { name, known } => {
                let suggestion = did_you_mean(name, known.split(", "));
                write!(f, "unknown device `{name}`{suggestion}; this build knows: {known}")
            }
            Self::Io { path, source } => {
                write!(f, "{}: {source}", path.display())?;
                // Print the current folder, because users often run programs in the wrong folder.
                let is_missing = source.kind() == std::io::ErrorKind::NotFound;
                match std::env::current_dir() {
                    Ok(folder) if is_missing && path.is_relative() => {
                        write!(f, "; the current folder is {}", folder.display())
                    }
                    _ => Ok(()),
                }
            }
            Self::Parse { file, line, column, message } => {
                write!(f, "{file}:{line}:{column}: {message}")
            }
            Self::UnknownLayer { kind, known } => {
                let suggestion = did_you_mean(kind, known.split(", "));
                write!(
                    f,
                    "unknown layer type `{kind}`{suggestion}; write the layer in Rust, register it \
                     with `LayerRegistry::with(\"{kind}\", …)`, and build the net with \
                     `NetBuilder::registry`; known types: {known}"
                )
            }
            Self::Context { context, source } => write!(f, "{context}: {source}"),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Device { source, .. } => Some(&**source),
            Self::Io { source, .. } => Some(source),
            Self::Context { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl Error {
    /// Wraps a backend's own error.
    pub fn device(device: impl Into<String>, source: impl Into<BoxError>) -> Self {
        Self::Device { device: device.into(), source: source.into() }
    }

    /// Wraps an I/O error, with the path of the file.
    pub fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::Io { path: path.into(), source }
    }

    /// Returns [`Error::InvalidInput`] for an invalid parameter of the kernel or function `op`.
    pub fn invalid_input(op: &'static str, reason: impl Into<String>) -> Self {
        Self::InvalidInput { op, reason: reason.into() }
    }

    /// Returns [`Error::OutOfMemory`] for a host allocation of `bytes` bytes.
    pub(crate) fn out_of_host_memory(bytes: usize) -> Self {
        Self::OutOfMemory { device: "host".into(), bytes }
    }

    /// Wraps this error in an [`Error::Context`], whose message starts with `context`.
    #[must_use]
    pub fn context(self, context: impl Into<String>) -> Self {
        Self::Context { context: context.into(), source: Box::new(self) }
    }

    /// Wraps an [`Error::MemoryLimit`] in an [`Error::Context`] whose message starts with the name
    /// of the blob. Returns an error of any other kind unchanged.
    #[cfg(feature = "net")]
    pub(crate) fn name_allocation(self, name: impl FnOnce() -> Option<String>) -> Self {
        match self {
            Self::MemoryLimit { .. } => match name() {
                Some(name) => self.context(name),
                None => self,
            },
            other => other,
        }
    }

    /// Returns the innermost error, without any [`Error::Context`], for callers that match on the
    /// kind of error.
    pub fn root(&self) -> &Self {
        match self {
            Self::Context { source, .. } => source.root(),
            other => other,
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Fails with [`Error::Length`] unless `got == want`.
///
/// ```
/// use cortado::error::check_len;
///
/// assert!(check_len("axpy", "y", 3, 3).is_ok());
/// let error = check_len("axpy", "y", 3, 4).unwrap_err();
/// assert_eq!(error.to_string(), "axpy: operand `y` holds 4 elements, 3 needed");
/// ```
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
