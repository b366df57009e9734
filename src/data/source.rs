//! Where records come from.

use crate::{
    data::{Color, DigitsSource, IdxSource, LmdbSource, Record, database_kind::Database},
    error::{Error, Result},
};
use std::{collections::BTreeMap, fmt, sync::Arc};

/// A sequence of records, read in order and round and round.
///
/// One thread reads it; what is made of the records may be shared out to several.
pub trait Source: Send {
    /// What errors and logs call it, such as `idx:data/mnist/train`.
    fn describe(&self) -> String;

    /// Number of records before the first comes round again, if that is known.
    fn records(&self) -> Option<u64>;

    /// Reads the next record into `record`, whose buffers are reused; after the last comes the
    /// first.
    ///
    /// # Errors
    /// Whatever keeps the record from being read. The caller adds source and record number.
    fn read(&mut self, record: &mut Record) -> Result<()>;

    /// Decodes encoded images to `color` from now on; by default, there are none.
    fn set_color(&mut self, color: Color) {
        let _ = color;
    }

    /// Passes over `count` records; by default, by reading them.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    #[doc(alias = "Skip")]
    fn skip(&mut self, count: u64) -> Result<()> {
        let mut record = Record::default();
        (0..count).try_for_each(|_| self.read(&mut record))
    }
}

/// Opens the source that the text after `SCHEME:` names.
type Open = dyn Fn(&str) -> Result<Box<dyn Source>> + Send + Sync;

/// The kinds of sources there are, by scheme: an open registry, and a value.
///
/// A source is named `SCHEME:REST`. The [default](SourceRegistry::default) knows
/// - `idx:PREFIX`: see [`IdxSource`];
/// - `digits:train` and `digits:test`: see [`DigitsSource`];
/// - `lmdb:PATH`: see [`Lmdb`].
///
/// A path alone, as Caffe's nets have it, is that of a database: of the scheme `lmdb` or `leveldb`,
/// whichever it holds.
#[derive(Clone)]
pub struct SourceRegistry {
    schemes: BTreeMap<String, Arc<Open>>,
}

impl SourceRegistry {
    /// None at all.
    pub fn empty() -> Self {
        Self { schemes: BTreeMap::new() }
    }

    /// Has `open` open the sources of `scheme`, given what follows the colon. Replaces what
    /// the scheme meant before.
    pub fn register(
        &mut self,
        scheme: impl Into<String>,
        open: impl Fn(&str) -> Result<Box<dyn Source>> + Send + Sync + 'static,
    ) {
        self.schemes.insert(scheme.into(), Arc::new(open));
    }

    /// Opens `source`, at its first record.
    ///
    /// # Errors
    /// [`Error::InvalidData`] for a scheme that is not registered, or for a path with no database;
    /// else what the scheme says.
    pub fn open(&self, source: &str) -> Result<Box<dyn Source>> {
        let known = || self.schemes.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        if let Some((scheme, rest)) = source.split_once(':')
            && let Some(open) = self.schemes.get(scheme)
        {
            return open(rest);
        }
        let kind = match Database::at(source.as_ref()) {
            Ok(kind) => kind,
            Err(why) => {
                let what = match source.split_once(':') {
                    Some((scheme, _)) => format!("unknown scheme `{scheme}`"),
                    None => format!("it names no scheme, and {why}"),
                };
                let known = known();
                let text = format!("source `{source}`: {what}; known schemes: {known}");
                return Err(Error::InvalidData(text));
            }
        };
        let open = self.schemes.get(kind.scheme());
        let unknown = || Error::InvalidData(format!("source `{source}`: {}", kind.refusal()));
        open.ok_or_else(unknown)?(source)
    }
}

impl Default for SourceRegistry {
    fn default() -> Self {
        let mut sources = Self::empty();
        sources.register("idx", |prefix| Ok(Box::new(IdxSource::open(prefix)?)));
        sources.register("digits", |which| Ok(Box::new(which.parse::<DigitsSource>()?)));
        sources.register("lmdb", |path| Ok(Box::new(LmdbSource::open(path)?)));
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
    use crate::proto::{Datum, Message};

    /// Counts: record i is the byte i and has the label i.
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

    #[test]
    fn a_scheme_of_ones_own_can_be_registered_and_replaced() {
        let mut sources = SourceRegistry::default();
        sources.register("counting", |rest| {
            let next = rest.parse().map_err(|_| Error::InvalidData(format!("start `{rest}`")))?;
            Ok(Box::new(Counting { next }))
        });
        let mut source = sources.open("counting:200").unwrap();
        source.skip(58).unwrap();
        let mut record = Record::default();
        source.read(&mut record).unwrap();
        assert_eq!((record.label(), record.values()), (2, crate::data::RecordValues::Bytes(&[2])));
        let error = sources.open("counting:x:y").err().unwrap();
        assert_eq!(error.to_string(), "start `x:y`");

        sources.register("counting", |_| Ok(Box::new(Counting { next: 9 })));
        sources.open("counting:200").unwrap().read(&mut record).unwrap();
        assert_eq!(record.label(), 9);
    }

    #[test]
    fn a_name_without_a_known_scheme_says_which_there_are() {
        let error = |source| SourceRegistry::default().open(source).err().unwrap().to_string();
        let bare = error("examples/mnist/mnist_train_lmdb");
        let want = "source `examples/mnist/mnist_train_lmdb`: it names no scheme, and there is no \
                    database of this path; known schemes: digits, idx, lmdb";
        assert_eq!(bare, want);
        let unknown = error("tape:reel");
        let want = "source `tape:reel`: unknown scheme `tape`; known schemes: digits, idx, lmdb";
        assert_eq!(unknown, want);
        assert_eq!(format!("{:?}", SourceRegistry::default()), r#"{"digits", "idx", "lmdb"}"#);
    }

    #[test]
    fn a_path_alone_is_what_it_holds() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("colon: no scheme");
        let name = path.to_str().unwrap();
        let mut writer = crate::data::LmdbWriter::create(&path, false).unwrap();
        let (channels, height, width) = (Some(1), Some(1), Some(1));
        let datum = Datum { channels, height, width, data: Some(vec![7]), ..Default::default() };
        writer.put(b"a", &datum.encode_to_vec()).unwrap();
        writer.finish().unwrap();
        let mut record = Record::default();
        for source in [name.into(), format!("lmdb:{name}"), format!("{name}/data.mdb")] {
            let mut source = SourceRegistry::default().open(&source).unwrap();
            source.read(&mut record).unwrap();
            assert_eq!(record.values(), crate::data::RecordValues::Bytes(&[7]));
        }
        let error = |sources: &SourceRegistry, path: &std::path::Path| {
            sources.open(path.to_str().unwrap()).err().unwrap().to_string()
        };
        let text = error(&SourceRegistry::empty(), &path);
        assert!(text.contains("an LMDB database, and no scheme `lmdb` is known"), "{text}");
        let text = error(&SourceRegistry::default(), dir.path());
        assert!(text.contains("this folder is no database: it has neither "), "{text}");
        std::fs::write(dir.path().join("CURRENT"), "MANIFEST-000001\n").unwrap();
        let text = error(&SourceRegistry::default(), dir.path());
        assert!(text.contains("a LevelDB database, which is not read: "), "{text}");
    }
}
