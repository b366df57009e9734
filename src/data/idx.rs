//! IDX files of images and labels, the format of MNIST.
//!
//! Format: <https://yann.lecun.com/exdb/mnist/>. The third byte of the magic number is the type of
//! the values (8: unsigned bytes); the fourth byte is the number of axes. After the magic number
//! come the extents, as big-endian 32-bit integers, and then the values.

use super::{record::Record, source::Source};
use crate::{
    error::{Error, Result},
    limits,
};
#[cfg(feature = "gzip")]
use flate2::bufread::MultiGzDecoder;
use std::{
    io::{self, BufRead, BufReader, ErrorKind, Read},
    path::{Path, PathBuf},
};

/// Images and labels from two IDX files, which may be compressed with gzip (feature `gzip`). The
/// source holds all images and labels in memory.
///
/// ```no_run
/// use cortado::data::{IdxSource, Record, Source};
///
/// // Reads `data/t10k-images-idx3-ubyte.gz` and `data/t10k-labels-idx1-ubyte.gz`.
/// let mut mnist = IdxSource::open("data/t10k")?;
/// let mut record = Record::default();
/// mnist.read(&mut record)?;
/// assert_eq!((record.shape(), record.label()), ([1, 28, 28], 7));
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct IdxSource {
    name: String,
    shape: [usize; 3],
    images: Vec<u8>,
    labels: Vec<u8>,
    next: usize,
}

impl IdxSource {
    /// Reads `PREFIX-images-idx3-ubyte` and `PREFIX-labels-idx1-ubyte`, or the files with `.gz`
    /// appended to the names.
    ///
    /// # Errors
    /// Returns any error from [`open_files`](Self::open_files).
    pub fn open(prefix: impl Into<String>) -> Result<Self> {
        let prefix = prefix.into();
        let images = find(&format!("{prefix}-images-idx3-ubyte"))?;
        let labels = find(&format!("{prefix}-labels-idx1-ubyte"))?;
        Ok(Self { name: format!("idx:{prefix}"), ..Self::open_files(&images, &labels)? })
    }

    /// Reads an IDX file of images and an IDX file of labels.
    ///
    /// # Errors
    /// Returns [`Error::Io`] for a file that cannot be read. Returns [`Error::InvalidData`] for a
    /// wrong magic number, a file without images, fewer or more bytes than the header states, or
    /// different numbers of images and labels. The error message names the file.
    pub fn open_files(images: impl AsRef<Path>, labels: impl AsRef<Path>) -> Result<Self> {
        let (images_path, labels_path) = (images.as_ref(), labels.as_ref());
        let ([count, height, width], images) = load(images_path)?;
        let ([label_count], labels) = load(labels_path)?;
        if images.is_empty() {
            let reason = format!("the file has no pixels: {count} images of {height} x {width}");
            return Err(invalid(images_path, reason));
        }
        if count != label_count {
            let images = images_path.display();
            let reason = format!(
                "label count {label_count} differs from the image count {count} in {images}"
            );
            return Err(invalid(labels_path, reason));
        }
        let name = format!("idx:{}", images_path.display());
        Ok(Self { name, shape: [1, height, width], images, labels, next: 0 })
    }
}

impl Source for IdxSource {
    fn describe(&self) -> String {
        self.name.clone()
    }

    fn records(&self) -> Option<u64> {
        Some(self.labels.len() as u64)
    }

    fn read(&mut self, record: &mut Record) -> Result<()> {
        let image = record.bytes_mut(self.shape)?;
        let start = self.next * image.len();
        image.copy_from_slice(&self.images[start..start + image.len()]);
        record.set_label(self.labels[self.next].into());
        self.next = (self.next + 1) % self.labels.len();
        Ok(())
    }

    fn skip(&mut self, count: u64) -> Result<()> {
        let len = self.labels.len() as u64;
        self.next = ((self.next as u64 + count % len) % len) as usize;
        Ok(())
    }
}

/// Returns `path`, or `path.gz` if there is no file at `path`.
fn find(path: &str) -> Result<PathBuf> {
    let gz_path = format!("{path}.gz");
    if Path::new(path).exists() {
        Ok(path.into())
    } else if Path::new(&gz_path).exists() {
        Ok(gz_path.into())
    } else {
        let reason = io::Error::new(ErrorKind::NotFound, "file not found, with or without .gz");
        Err(Error::io(path, reason))
    }
}

fn invalid(path: &Path, reason: impl std::fmt::Display) -> Error {
    Error::InvalidData(format!("{}: {reason}", path.display()))
}

/// Reads the extents and values of an IDX file of unsigned bytes with `AXES` axes.
fn load<const AXES: usize>(path: &Path) -> Result<([usize; AXES], Vec<u8>)> {
    let (file, metadata) = limits::open(path)?;
    let stored = metadata.len();
    let mut file = BufReader::new(file);
    // Detect gzip by the magic number, because some programs decompress a file without removing the
    // extension `.gz`.
    let is_gzip = file.fill_buf().map_err(|error| Error::io(path, error))?.starts_with(&GZIP_MAGIC);
    if !is_gzip {
        return parse(path, file, stored, false);
    }
    #[cfg(feature = "gzip")]
    return parse(path, MultiGzDecoder::new(file), stored, true);
    #[cfg(not(feature = "gzip"))]
    Err(invalid(
        path,
        "compressed with gzip; unpack the file or enable the feature `gzip` of cortado",
    ))
}

/// The magic number of a gzip file. Unlike a gzip file, an IDX file starts with two zero bytes.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Reads the header and the uncompressed values from `file`. `stored` is the length of the file at
/// `path`, and `is_gzip` tells whether that file is compressed. Fails before it allocates the
/// values if the header states more values than `stored`, or, for a compressed file, more than
/// [`limits::check_expanded`] allows.
fn parse<const AXES: usize>(
    path: &Path,
    mut file: impl Read,
    stored: u64,
    is_gzip: bool,
) -> Result<([usize; AXES], Vec<u8>)> {
    let mut word = || -> Result<u32> {
        let mut bytes = [0; 4];
        file.read_exact(&mut bytes).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => {
                invalid(path, "the file is truncated: it ends within the header")
            }
            _ => Error::io(path, error),
        })?;
        Ok(u32::from_be_bytes(bytes))
    };
    let (magic, want) = (word()?, 0x0800 | AXES as u32);
    if magic != want {
        let reason = format!("expected magic number 0x{want:08x}, found 0x{magic:08x}");
        return Err(invalid(path, reason));
    }
    let mut extents = [0; AXES];
    for extent in &mut extents {
        *extent = word()? as usize;
    }
    let header = format!("the header states extents {extents:?}");
    let len = extents.iter().try_fold(1u64, |len, &extent| len.checked_mul(extent as u64));
    let len = match len {
        _ if is_gzip => {
            limits::check_expanded(format_args!("{}: {header}", path.display()), len, stored)?
        }
        Some(len) if len <= stored => len,
        _ => {
            let reason = format!("{header}, but the file is too short for these extents");
            return Err(invalid(path, reason));
        }
    } as usize;
    let mut values = Vec::new();
    values.try_reserve_exact(len).map_err(|_| Error::out_of_host_memory(len))?;
    let got = file.by_ref().take(len as u64).read_to_end(&mut values);
    let got = got.map_err(|error| Error::io(path, error))?;
    if got < len {
        return Err(invalid(
            path,
            format!("{header}; expected {len} bytes after the header, found {got}"),
        ));
    }
    if file.read(&mut [0]).map_err(|error| Error::io(path, error))? > 0 {
        return Err(invalid(path, format!("{header}, but more than {len} bytes follow it")));
    }
    Ok((extents, values))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::RecordValues;
    use flate2::{Compression, write::GzEncoder};
    use std::{fs, io::Write};
    use tempfile::TempDir;

    fn file(magic: u32, extents: &[u32], values: &[u8]) -> Vec<u8> {
        let header = [magic].into_iter().chain(extents.iter().copied());
        header.flat_map(u32::to_be_bytes).chain(values.iter().copied()).collect()
    }

    fn zip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// Writes an IDX file of images and an IDX file of labels. Returns the directory of the files
    /// and the prefix of their paths.
    fn pair(images: &[u8], labels: &[u8]) -> (TempDir, String) {
        let dir = tempfile::tempdir().unwrap();
        let prefix = dir.path().join("t").display().to_string();
        fs::write(format!("{prefix}-images-idx3-ubyte"), images).unwrap();
        fs::write(format!("{prefix}-labels-idx1-ubyte"), labels).unwrap();
        (dir, prefix)
    }

    fn images() -> Vec<u8> {
        file(0x803, &[3, 1, 2], &[1, 2, 3, 4, 5, 6])
    }

    fn labels() -> Vec<u8> {
        file(0x801, &[3], &[7, 8, 255])
    }

    fn error(images: &[u8], labels: &[u8]) -> String {
        let (_dir, prefix) = pair(images, labels);
        IdxSource::open(prefix).err().unwrap().to_string()
    }

    fn next(idx: &mut IdxSource) -> (Vec<u8>, i32) {
        let mut record = Record::default();
        idx.read(&mut record).unwrap();
        assert_eq!(record.shape(), [1, 1, 2]);
        let RecordValues::Bytes(bytes) = record.values() else { panic!("floats") };
        (bytes.to_vec(), record.label())
    }

    #[test]
    fn records_of_idx_files_come_in_file_order_and_repeat() {
        let (_dir, prefix) = pair(&images(), &labels());
        let mut idx = IdxSource::open(&*prefix).unwrap();
        assert_eq!((idx.describe(), idx.records()), (format!("idx:{prefix}"), Some(3)));
        let want = [(vec![1, 2], 7), (vec![3, 4], 8), (vec![5, 6], 255), (vec![1, 2], 7)];
        assert_eq!([(); 4].map(|()| next(&mut idx)), want);
        idx.skip(1).unwrap();
        assert_eq!(next(&mut idx), want[2]);
        idx.skip(u64::MAX).unwrap(); // u64::MAX is a multiple of 3, the number of records
        assert_eq!(next(&mut idx), want[0]);
    }

    #[test]
    #[cfg(not(feature = "gzip"))]
    fn a_gzipped_file_without_the_feature_names_the_feature() {
        let error = error(&zip(&images()), &labels());
        assert!(error.contains("images-idx3-ubyte: compressed with gzip; unpack"), "{error}");
        assert!(error.ends_with("enable the feature `gzip` of cortado"), "{error}");
    }

    #[test]
    #[cfg(feature = "gzip")]
    fn gzipped_files_are_read_with_and_without_the_gz_extension() {
        let (_dir, prefix) = pair(&images(), &labels());
        let images_path = format!("{prefix}-images-idx3-ubyte");
        fs::remove_file(&images_path).unwrap();
        fs::write(format!("{images_path}.gz"), zip(&images())).unwrap();
        assert_eq!(next(&mut IdxSource::open(&*prefix).unwrap()), (vec![1, 2], 7));
        // Test an uncompressed file with the extension `.gz`, and then a compressed file without
        // this extension.
        fs::write(format!("{images_path}.gz"), images()).unwrap();
        assert_eq!(next(&mut IdxSource::open(&*prefix).unwrap()), (vec![1, 2], 7));
        fs::write(images_path, zip(&images())).unwrap();
        assert_eq!(next(&mut IdxSource::open(prefix).unwrap()), (vec![1, 2], 7));
    }

    #[test]
    fn a_missing_idx_file_is_named_in_the_error() {
        let (_dir, prefix) = pair(&images(), &labels());
        fs::remove_file(format!("{prefix}-labels-idx1-ubyte")).unwrap();
        let error = IdxSource::open(&*prefix).err().unwrap();
        assert!(matches!(error, Error::Io { .. }), "{error}");
        assert!(error.to_string().starts_with(&format!("{prefix}-labels-idx1-ubyte: ")), "{error}");
    }

    #[test]
    fn a_file_that_is_no_idx_file_is_named_in_the_error() {
        let (no_images, no_labels) = (file(0x803, &[0, 28, 28], &[]), file(0x801, &[0], &[]));
        let (floats, two_labels) = (file(0x0d01, &[3], &[0; 12]), file(0x801, &[2], &[7, 8]));
        for (images, labels, parts) in [
            (&labels(), &images(), ["t-images-idx3-ubyte: ", "found 0x00000801"]),
            (&images(), &floats, ["t-labels-idx1-ubyte: ", "found 0x00000d01"]),
            (
                &vec![],
                &labels(),
                ["t-images-idx3-ubyte: ", "the file is truncated: it ends within the header"],
            ),
            (&no_images, &no_labels, ["t-images-idx3-ubyte: ", "0 images of 28 x 28"]),
            (&images(), &two_labels, ["label count 2 ", "the image count 3 in "]),
        ] {
            let text = error(images, labels);
            assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        }
    }

    #[test]
    fn truncated_and_overlong_idx_files_are_rejected() {
        let images = images();
        for len in 0..images.len() {
            let text = error(&images[..len], &labels());
            assert!(text.contains("t-images-idx3-ubyte: "), "{text}");
            let text = error(&zip(&images[..len]), &labels());
            assert!(text.contains("t-images-idx3-ubyte: "), "{text}");
        }
        let gzip = zip(&images);
        for len in 2..gzip.len() {
            let text = error(&gzip[..len], &labels());
            assert!(text.contains("t-images-idx3-ubyte: "), "{text}");
        }
        let text = error(&images, &[labels(), vec![0]].concat());
        assert!(text.contains("states extents [3], but more than 3 bytes follow"), "{text}");
    }

    #[test]
    fn an_idx_header_that_claims_more_data_than_the_file_contains_is_rejected() {
        for extents in [[u32::MAX; 3], [u32::MAX, 1, 1], [1 << 20, 28, 28]] {
            let images = file(0x803, &extents, &[0; 64]);
            let text = error(&images, &labels());
            assert!(text.contains("the file is too short for these extents"), "{text}");
            let text = error(&zip(&images), &labels());
            assert!(text.contains("t-images-idx3-ubyte: the header states extents"), "{text}");
            assert!(text.contains(" stored bytes is 33554432 bytes"), "{text}");
        }
    }
}
