//! The registry of data sources, which maps schemes to sources.

use super::{
    database_kind::Database, digits::DigitsSource, idx::IdxSource, leveldb::LevelDbSource,
    lmdb::LmdbSource, source::Source,
};
use crate::error::{Error, Result};
use std::{collections::BTreeMap, fmt, sync::Arc};

/// A function that opens a source; the argument is the source name after `SCHEME:`.
type Open = dyn Fn(&str) -> Result<Box<dyn Source>> + Send + Sync;

/// A map from schemes to functions that open data sources. Callers can register schemes for their
/// own data sources.
///
/// The name of a source is `SCHEME:REST`. The [default](SourceRegistry::default) registry has the
/// following schemes:
/// - `idx:PREFIX`: see [`IdxSource`];
/// - `digits:train` and `digits:test`: see [`DigitsSource`];
/// - `lmdb:PATH`: see [`LmdbSource`];
/// - `leveldb:PATH`: see [`LevelDbSource`].
///
/// A source name without a scheme, as in Caffe's nets, is the path of a database. The files in the
/// database directory determine whether the scheme is `lmdb` or `leveldb`.
///
/// ```
/// use cortado::data::{DigitsSource, SourceRegistry};
///
/// let mut sources = SourceRegistry::default();
/// sources.register("few", |seed| {
///     let digits: DigitsSource = format!("train?count=10&seed={seed}").parse()?;
///     Ok(Box::new(digits))
/// });
/// assert_eq!(sources.open("few:3")?.records(), Some(10));
/// assert!(sources.open("many:3").is_err());
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone)]
pub struct SourceRegistry {
    schemes: BTreeMap<String, Arc<Open>>,
}

impl SourceRegistry {
    /// Returns a registry without schemes.
    pub fn empty() -> Self {
        Self { schemes: BTreeMap::new() }
    }

    /// Registers `open` as the function that opens the sources of `scheme`, and replaces an earlier
    /// registration of `scheme`. `open` receives the text after the colon of the source name.
    pub fn register(
        &mut self,
        scheme: impl Into<String>,
        open: impl Fn(&str) -> Result<Box<dyn Source>> + Send + Sync + 'static,
    ) {
        self.schemes.insert(scheme.into(), Arc::new(open));
    }

    /// Opens `source` at its first record.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] for a scheme that is not registered or for a path without a
    /// database, and any error from the scheme's `open`.
    pub fn open(&self, source: &str) -> Result<Box<dyn Source>> {
        let scheme = source.split_once(':');
        if let Some((scheme, rest)) = scheme
            && let Some(open) = self.schemes.get(scheme)
        {
            return open(rest);
        }
        let invalid = |reason: String| Error::InvalidData(format!("source `{source}`: {reason}"));
        let kind = Database::detect(source.as_ref()).map_err(|reason| {
            let reason = match scheme {
                Some((scheme, _)) => format!("unknown scheme `{scheme}`"),
                None => format!("no scheme, and {reason}"),
            };
            let known: Vec<_> = self.schemes.keys().map(String::as_str).collect();
            invalid(format!("{reason}; known schemes: {}", known.join(", ")))
        })?;
        let open = self.schemes.get(kind.scheme());
        open.ok_or_else(|| invalid(kind.unsupported().into()))?(source)
    }
}

impl Default for SourceRegistry {
    fn default() -> Self {
        let mut sources = Self::empty();
        sources.register("idx", |prefix| Ok(Box::new(IdxSource::open(prefix)?)));
        sources.register("digits", |options| Ok(Box::new(options.parse::<DigitsSource>()?)));
        sources.register("lmdb", |path| Ok(Box::new(LmdbSource::open(path)?)));
        sources.register("leveldb", |path| Ok(Box::new(LevelDbSource::open(path)?)));
        sources
    }
}

impl fmt::Debug for SourceRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.schemes.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        data::{LmdbWriter, Record, RecordValues},
        proto::{Datum, Message},
    };

    /// A source whose record i consists of the byte i and the label i.
    struct Counting {
        next: u8,
    }

    impl Source for Counting {
        fn describe(&self) -> String {
            "counting:".into()
        }
        fn records(&self) -> Option<u64> {
            Some(256)
        }
        fn read(&mut self, record: &mut Record) -> Result<()> {
            record.bytes_mut([1, 1, 1])?[0] = self.next;
            record.set_label(self.next.into());
            self.next = self.next.wrapping_add(1);
            Ok(())
        }
    }

    fn error(sources: &SourceRegistry, source: &str) -> String {
        sources.open(source).err().unwrap().to_string()
    }

    #[test]
    fn a_custom_scheme_can_be_registered_and_replaced() {
        let mut sources = SourceRegistry::default();
        sources.register("counting", |rest| {
            let next = rest.parse().map_err(|_| Error::InvalidData(format!("start `{rest}`")))?;
            Ok(Box::new(Counting { next }))
        });
        let mut source = sources.open("counting:200").unwrap();
        source.skip(58).unwrap();
        let mut record = Record::default();
        source.read(&mut record).unwrap();
        assert_eq!((record.label(), record.values()), (2, RecordValues::Bytes(&[2])));
        assert_eq!(error(&sources, "counting:x:y"), "start `x:y`");

        sources.register("counting", |_| Ok(Box::new(Counting { next: 9 })));
        sources.open("counting:200").unwrap().read(&mut record).unwrap();
        assert_eq!(record.label(), 9);
    }

    #[test]
    fn a_name_without_a_known_scheme_is_rejected_with_the_known_schemes() {
        let sources = SourceRegistry::default();
        let want = "source `examples/mnist/mnist_train_lmdb`: no scheme, and there is no database \
                    at this path; known schemes: digits, idx, \
                    leveldb, lmdb";
        assert_eq!(error(&sources, "examples/mnist/mnist_train_lmdb"), want);
        let want = "source `tape:reel`: unknown scheme `tape`; known schemes: digits, idx, leveldb, \
                    lmdb";
        assert_eq!(error(&sources, "tape:reel"), want);
        assert_eq!(format!("{sources:?}"), r#"{"digits", "idx", "leveldb", "lmdb"}"#);
    }

    #[test]
    fn a_path_without_a_scheme_opens_the_database_that_it_contains() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("colon: no scheme");
        let name = path.to_str().unwrap();
        let mut writer = LmdbWriter::create(&path, false).unwrap();
        let (channels, height, width) = (Some(1), Some(1), Some(1));
        let datum = Datum { channels, height, width, data: Some(vec![7]), ..Default::default() };
        writer.put(b"a", &datum.encode_to_vec()).unwrap();
        writer.finish().unwrap();
        let sources = SourceRegistry::default();
        let mut record = Record::default();
        for source in [name.into(), format!("lmdb:{name}"), format!("{name}/data.mdb")] {
            sources.open(&source).unwrap().read(&mut record).unwrap();
            assert_eq!(record.values(), RecordValues::Bytes(&[7]));
        }
        let text = error(&SourceRegistry::empty(), name);
        assert!(text.contains("an LMDB database, but no scheme `lmdb` is registered"), "{text}");
        let dir_name = dir.path().to_str().unwrap();
        let text = error(&sources, dir_name);
        assert!(text.contains("this directory is not a database: it has neither "), "{text}");
        std::fs::write(dir.path().join("CURRENT"), "MANIFEST-000001\n").unwrap();
        let text = error(&sources, dir_name);
        assert!(text.contains("MANIFEST-000001"), "{text}");
        let text = error(&SourceRegistry::empty(), dir_name);
        assert!(text.contains("a LevelDB database, but no scheme `leveldb` is "), "{text}");
    }
}
