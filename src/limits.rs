//! Limits on the memory and the work that an input file can require.
//!
//! A reader allocates memory in proportion to the length of a file. The expanded content of the
//! file may have at most the number of bytes that [`expanded`] returns. SECURITY.md is the user
//! documentation of the limits.

use crate::error::{Error, Result};
#[cfg(any(feature = "net", feature = "tensor-io", feature = "hdf5"))]
use std::fmt::Display;
use std::{
    fs::{File, Metadata},
    io::Read,
    path::Path,
};

/// The number of bytes to which any file may expand, however short the file is. The largest file of
/// MNIST expands to 47 MB, and an RGB image of 11 megapixels to 33 MB.
pub(crate) const EXPANDED_FLOOR: u64 = 32 << 20;
/// The factor by which any file may expand, even beyond [`EXPANDED_FLOOR`] bytes. The files of
/// MNIST expand by a factor of 5, photographs by 10 to 50, and definitions of nets by 30. Deflate
/// can expand data by a factor of up to 1032.
pub(crate) const EXPANDED_RATIO: u64 = 64;
/// The maximum length in bytes of a definition in text format. Definitions of published nets are
/// smaller than 1 MB.
#[cfg(feature = "net")]
pub(crate) const DEFINITION_LEN: u64 = 32 << 20;
/// The maximum length in bytes of a list of images, windows, HDF5 files or class names. A list of
/// all 14 million images of ImageNet takes 0.6 GB.
#[cfg(feature = "net")]
pub(crate) const LIST_LEN: u64 = 1 << 30;
/// The maximum length in bytes of an image file.
#[cfg(feature = "net")]
pub(crate) const IMAGE_LEN: u64 = 256 << 20;
/// The maximum number of bytes to which a data layer enlarges an image.
#[cfg(feature = "net")]
pub(crate) const RESIZED_LEN: usize = 32 << 20;
/// The maximum number of time steps of a recurrent layer. An LSTM layer allocates a blob for each
/// time step.
#[cfg(feature = "net")]
pub(crate) const TIME_STEPS: usize = 1 << 16;
/// The maximum number of shards of a process, and of the shards that a solver takes from a snapshot. A
/// solver builds a train net for each of its shards.
#[cfg(feature = "net")]
pub(crate) const SHARDS: usize = 1024;
/// The maximum number of time steps over which the export to ONNX unrolls a recurrent layer. Each
/// time step adds about 20 nodes.
#[cfg(feature = "onnx")]
pub(crate) const UNROLLED_STEPS: usize = 1024;
/// The maximum number of nodes of an exported ONNX model. Each node takes about 500 bytes, so the
/// nodes take at most 64 MiB. Nets of hundreds of layers have fewer than 10,000 nodes.
#[cfg(feature = "onnx")]
pub(crate) const GRAPH_NODES: usize = 1 << 17;
/// The maximum number of elements, 64 MiB, of the filters that replace an Im2col layer in an ONNX
/// model. The number grows with the square of the kernel's size.
#[cfg(feature = "onnx")]
pub(crate) const SELECTION_FILTERS: usize = 1 << 24;
/// The number of bytes that a reader of an HDF5 file may read in addition to [`EXPANDED_RATIO`]
/// times the file's length. Because of links and B-trees, the reader may read the same bytes
/// several times. For a valid HDF5 file with 1000 layers, the reader reads about 200 MB in total.
#[cfg(feature = "hdf5")]
pub(crate) const HDF5_READ_FLOOR: u64 = 256 << 20;
/// The maximum number of warnings about one binary message.
pub(crate) const WARNINGS: usize = 16;
/// The maximum number of characters that an error message quotes from a file.
#[cfg(any(feature = "net", feature = "tensor-io"))]
pub(crate) const QUOTED_CHARS: usize = 80;

/// Returns the maximum number of bytes to which a file of `stored` bytes may expand: the larger of
/// [`EXPANDED_FLOOR`] and [`EXPANDED_RATIO`]` · stored`.
pub(crate) fn expanded(stored: u64) -> u64 {
    stored.saturating_mul(EXPANDED_RATIO).max(EXPANDED_FLOOR)
}

/// Returns `wanted`, or fails if content of `wanted` bytes exceeds the limit that [`expanded`]
/// gives for `stored` bytes. `wanted` is `None` if the size overflows. The error starts with
/// `subject`, the name of the file or of a part of the file.
#[cfg(any(feature = "net", feature = "tensor-io", feature = "hdf5"))]
pub(crate) fn check_expanded(
    subject: impl Display,
    wanted: Option<u64>,
    stored: u64,
) -> Result<u64> {
    let limit = expanded(stored);
    wanted.filter(|&wanted| wanted <= limit).ok_or_else(|| {
        Error::InvalidData(format!("{subject}: {}", exceeds_expanded(wanted, stored)))
    })
}

/// Returns the error message for content of `wanted` bytes that exceeds the limit
/// `expanded(stored)`.
pub(crate) fn exceeds_expanded(wanted: Option<u64>, stored: u64) -> String {
    let wanted = wanted.map_or("more than 2^64".into(), |wanted| wanted.to_string());
    let limit = expanded(stored);
    format!(
        "the content needs {wanted} bytes of memory, but the limit for {stored} stored bytes is \
         {limit} bytes"
    )
}

/// Opens a file for reading. Fails for a device, such as `/dev/zero`, which can supply bytes
/// without end.
pub(crate) fn open(path: &Path) -> Result<(File, Metadata)> {
    let io = |error| Error::io(path, error);
    let file = File::open(path).map_err(io)?;
    let metadata = file.metadata().map_err(io)?;
    if is_device(&metadata) {
        let reason = "the file is a device; only regular files and pipes can be read";
        return Err(Error::InvalidData(format!("{}: {reason}", path.display())));
    }
    Ok((file, metadata))
}

#[cfg(unix)]
fn is_device(metadata: &Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let kind = metadata.file_type();
    kind.is_char_device() || kind.is_block_device()
}

#[cfg(not(unix))]
fn is_device(_: &Metadata) -> bool {
    false
}

/// Reads a file of at most `limit` bytes. Fails for a device file such as `/dev/zero`, like
/// [`open`].
#[cfg(any(feature = "net", feature = "tensor-io"))]
pub(crate) fn read(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let (file, metadata) = open(path)?;
    read_opened(path, file, &metadata, limit)
}

/// Reads `file`, which [`open`] has opened at `path` and which may have at most `limit` bytes.
pub(crate) fn read_opened(
    path: &Path,
    file: File,
    metadata: &Metadata,
    limit: u64,
) -> Result<Vec<u8>> {
    let too_long = || {
        let reason = format!("the file is longer than the limit of {limit} bytes");
        Error::InvalidData(format!("{}: {reason}", path.display()))
    };
    if metadata.len() > limit {
        return Err(too_long());
    }
    let mut bytes = Vec::new();
    let len = metadata.len() as usize;
    bytes.try_reserve_exact(len).map_err(|_| Error::out_of_host_memory(len))?;
    // A pipe reports a length of 0, and a file can grow after its metadata were read.
    let read = file.take(limit.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| Error::io(path, error))?;
    if bytes.len() as u64 > limit { Err(too_long()) } else { Ok(bytes) }
}

/// Reads a UTF-8 file like [`read`].
#[cfg(feature = "net")]
pub(crate) fn read_to_string(path: &Path, limit: u64) -> Result<String> {
    String::from_utf8(read(path, limit)?)
        .map_err(|_| Error::InvalidData(format!("{}: the text is not UTF-8", path.display())))
}

/// Truncates text from a file to [`QUOTED_CHARS`] characters, so that an error message can quote
/// the text.
#[cfg(any(feature = "net", feature = "tensor-io"))]
pub(crate) fn quoted(text: &str) -> std::borrow::Cow<'_, str> {
    match text.char_indices().nth(QUOTED_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

#[cfg(all(test, feature = "net"))]
mod tests {
    use super::*;

    #[test]
    fn content_may_expand_to_the_floor_or_to_64_times_the_stored_bytes() {
        assert_eq!((expanded(0), expanded(EXPANDED_FLOOR / 64)), (EXPANDED_FLOOR, EXPANDED_FLOOR));
        assert_eq!((expanded(1 << 20), expanded(u64::MAX)), (64 << 20, u64::MAX));
        assert_eq!(check_expanded("a", Some(EXPANDED_FLOOR), 1).unwrap(), EXPANDED_FLOOR);
        let error = check_expanded("a.npz", Some(EXPANDED_FLOOR + 1), 1).unwrap_err().to_string();
        assert_eq!(
            error,
            "a.npz: the content needs 33554433 bytes of memory, but the limit for 1 stored bytes \
             is 33554432 bytes"
        );
        assert!(check_expanded("a", None, u64::MAX).is_err());
    }

    #[test]
    fn a_file_longer_than_the_limit_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, "four").unwrap();
        assert_eq!(read(&path, 4).unwrap(), b"four");
        let error = read(&path, 3).unwrap_err().to_string();
        assert!(error.ends_with("a: the file is longer than the limit of 3 bytes"), "{error}");
        // The file is sparse: its length is a terabyte, but the file system stores no data.
        File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
        assert!(read(&path, 4).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_device_is_not_read() {
        let error = read(Path::new("/dev/zero"), 4).unwrap_err().to_string();
        assert_eq!(
            error,
            "/dev/zero: the file is a device; only regular files and pipes can be read"
        );
    }

    #[test]
    fn quoted_text_has_at_most_80_characters_and_an_ellipsis() {
        assert_eq!(quoted(&"ä".repeat(80)), "ä".repeat(80));
        assert_eq!(quoted(&"ä".repeat(81)), format!("{}…", "ä".repeat(80)));
    }

    /// SECURITY.md must state the values of these constants.
    #[cfg(feature = "onnx")]
    #[test]
    fn the_security_page_states_the_limits_of_the_export_to_onnx() {
        let page = include_str!("../SECURITY.md");
        for limit in [
            format!("{UNROLLED_STEPS} time steps"),
            format!("{GRAPH_NODES} nodes"),
            format!("{SELECTION_FILTERS} elements"),
        ] {
            assert!(page.contains(&limit), "{limit}");
        }
    }

    /// SECURITY.md must state the values of these constants.
    #[cfg(feature = "hdf5")]
    #[test]
    fn the_security_page_states_each_limit() {
        let page = include_str!("../SECURITY.md");
        let mib = |bytes: u64| format!("{} MiB", bytes >> 20);
        for limit in [
            mib(EXPANDED_FLOOR),
            format!("{EXPANDED_RATIO} bytes per stored byte"),
            format!("a definition in text format: {}", mib(DEFINITION_LEN)),
            format!("class names: {}", mib(LIST_LEN)),
            format!("an image file: {}", mib(IMAGE_LEN)),
            format!("an enlarged image may take at most {}", mib(RESIZED_LEN as u64)),
            format!("{} in addition", mib(HDF5_READ_FLOOR)),
            format!("{TIME_STEPS} time steps"),
            format!("{SHARDS} shards"),
            format!("{WARNINGS} warnings"),
            format!("{QUOTED_CHARS} characters"),
        ] {
            assert!(page.contains(&limit), "{limit}");
        }
    }
}
