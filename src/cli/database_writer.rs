//! What the verbs that write databases have in common.

use super::{print, progress::redraw_line};
use crate::{
    data::LmdbWriter,
    error::{Error, Result},
    proto::{Datum, Message},
};
use clap::{Args, ValueEnum};
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    flag,
};
use std::{
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// How long a progress line stays before it is drawn anew.
const PERIOD: Duration = Duration::from_millis(100);

/// What a database is and may replace.
#[derive(Args, Clone, Copy)]
pub(super) struct DatabaseArgs {
    /// Kind of the database
    #[arg(long, value_enum, default_value_t = Backend::Lmdb)]
    backend: Backend,
    /// Replaces a database that is there already
    #[arg(long)]
    force: bool,
}

/// Caffe's names of the kinds of databases, as far as they are written.
#[derive(Clone, Copy, ValueEnum)]
enum Backend {
    Lmdb,
}

/// A database that is being written, watched by a person.
pub(super) struct DatabaseWriter {
    writer: LmdbWriter,
    path: PathBuf,
    done: u64,
    total: Option<u64>,
    drawn: Option<Instant>,
    /// Whether a signal asked to stop.
    stop: Arc<AtomicBool>,
}

impl DatabaseWriter {
    /// Begins a database that is to be the folder `path`, of so many records if that is known.
    /// From now on Ctrl-C stops it, and leaves nothing behind.
    pub(super) fn new(path: &Path, options: DatabaseArgs, total: Option<u64>) -> Result<Self> {
        let DatabaseArgs { backend: Backend::Lmdb, force } = options;
        let writer = LmdbWriter::create(path, force)?;
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            flag::register(signal, Arc::clone(&stop)).map_err(|error| {
                Error::InvalidData(format!("cannot watch for signals: {error}"))
            })?;
        }
        let shown = io::stderr().is_terminal() && log::log_enabled!(log::Level::Info);
        let drawn = shown.then(Instant::now);
        Ok(Self { writer, path: path.to_owned(), done: 0, total, drawn, stop })
    }

    /// Adds a record.
    pub(super) fn put(&mut self, key: &str, datum: &Datum) -> Result<()> {
        if self.stop.load(Relaxed) {
            let why = "interrupted; no database was written";
            return Err(Error::InvalidData(format!("{}: {why}", self.path.display())));
        }
        self.writer.put(key.as_bytes(), &datum.encode_to_vec())?;
        self.done += 1;
        if self.drawn.is_some_and(|drawn| drawn.elapsed() >= PERIOD) {
            self.drawn = Some(Instant::now());
            let total = self.total.map(|total| format!("/{total}")).unwrap_or_default();
            redraw_line(&format!("{}{total} records", self.done));
        }
        Ok(())
    }

    /// Completes the database and says what it holds.
    pub(super) fn finish(self) -> Result<()> {
        if self.drawn.is_some() {
            redraw_line("");
        }
        self.writer.finish()?;
        print(&format!("{}: {} records\n", self.path.display(), self.done))
    }
}
