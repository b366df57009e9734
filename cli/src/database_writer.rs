//! Database writer with a progress line, shared by the commands that convert data.

use super::{
    logger,
    output::print,
    progress::{REDRAW_INTERVAL, redraw_line},
    signals::{SecondSignal, stop_flag},
};
use clap::{Args, ValueEnum};
use cortado::{
    data::LmdbWriter,
    error::{Error, Result},
    proto::{Datum, Message},
};
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Instant,
};

/// Command-line flags of a new database: its format, and whether to replace an existing database.
#[derive(Args, Clone, Copy)]
pub(super) struct DatabaseArgs {
    /// Format of the database
    #[arg(long, value_enum, default_value_t = Backend::Lmdb)]
    backend: Backend,
    /// Replace an existing database
    #[arg(long)]
    force: bool,
}

/// Formats of new databases, by Caffe's names.
#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Backend {
    Lmdb,
}

/// Formats of existing databases, by Caffe's names.
#[derive(Clone, Copy, ValueEnum)]
pub(super) enum SourceBackend {
    Lmdb,
    Leveldb,
}

/// Writer of a new database, with a progress line if standard error is a terminal.
pub(super) struct DatabaseWriter {
    writer: LmdbWriter,
    path: PathBuf,
    written_records: u64,
    total: Option<u64>,
    progress: ProgressLine,
    /// Flag that the handlers of SIGINT and SIGTERM set to stop the conversion.
    stop: Arc<AtomicBool>,
}

/// Progress line of a conversion. Dropping a `ProgressLine` clears it, so that later output starts
/// on an empty line.
struct ProgressLine {
    /// Time at which the progress line was last drawn; `None` if no progress line is shown.
    drawn_at: Option<Instant>,
}

impl ProgressLine {
    fn show(&mut self, written_records: u64, total: Option<u64>) {
        if self.drawn_at.is_some_and(|time| time.elapsed() >= REDRAW_INTERVAL) {
            self.drawn_at = Some(Instant::now());
            let total = total.map(|total| format!("/{total}")).unwrap_or_default();
            redraw_line(&format!("{written_records}{total} records"));
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.drawn_at.is_some() {
            redraw_line("");
        }
    }
}

impl DatabaseWriter {
    /// Creates a database in a temporary folder, which [`Self::finish`] renames to `path`. `total`
    /// is the number of records, if known. Once `new` has returned, Ctrl-C stops the conversion and
    /// removes the incomplete database.
    pub(super) fn new(path: &Path, args: DatabaseArgs, total: Option<u64>) -> Result<Self> {
        let DatabaseArgs { backend: Backend::Lmdb, force } = args;
        let writer = LmdbWriter::create(path, force)?;
        let stop = stop_flag(SecondSignal::Ignore)?;
        let progress = ProgressLine { drawn_at: logger::shows_progress_line().then(Instant::now) };
        Ok(Self { writer, path: path.to_owned(), written_records: 0, total, progress, stop })
    }

    /// Appends a record.
    pub(super) fn put(&mut self, key: &str, datum: &Datum) -> Result<()> {
        if self.stop.load(Relaxed) {
            let reason = "interrupted; no database was written";
            return Err(Error::InvalidData(format!("{}: {reason}", self.path.display())));
        }
        self.writer.put(key.as_bytes(), &datum.encode_to_vec())?;
        self.written_records += 1;
        self.progress.show(self.written_records, self.total);
        Ok(())
    }

    /// Completes the database and prints its number of records. Fails, and removes the database, if
    /// it has no records.
    pub(super) fn finish(self) -> Result<()> {
        drop(self.progress);
        if self.written_records == 0 {
            let reason = "no records to write; no database was written";
            return Err(Error::InvalidData(format!("{}: {reason}", self.path.display())));
        }
        self.writer.finish()?;
        print(&format!("{}: {} records\n", self.path.display(), self.written_records))
    }
}
