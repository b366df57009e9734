//! Database writer with a progress line, shared by the commands that convert data.

use super::{
    output::print,
    progress::{REDRAW_INTERVAL, redraw_line},
};
use clap::{Args, ValueEnum};
use cortado::{
    data::LmdbWriter,
    error::{Error, Result},
    proto::{Datum, Message},
};
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

/// Writer of a new database, which shows a progress line if standard error is a terminal.
pub(super) struct DatabaseWriter {
    writer: LmdbWriter,
    path: PathBuf,
    done: u64,
    total: Option<u64>,
    /// Time at which the progress line was last drawn; `None` if no progress line is shown.
    drawn: Option<Instant>,
    /// Flag that the handlers of SIGINT and SIGTERM set to stop the conversion.
    stop: Arc<AtomicBool>,
}

impl DatabaseWriter {
    /// Creates a database in a temporary folder, which [`Self::finish`] renames to `path`. `total`
    /// is the number of records, if known. After a call of `new`, Ctrl-C stops the conversion and
    /// removes the incomplete database.
    pub(super) fn new(path: &Path, args: DatabaseArgs, total: Option<u64>) -> Result<Self> {
        let DatabaseArgs { backend: Backend::Lmdb, force } = args;
        let writer = LmdbWriter::create(path, force)?;
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            flag::register(signal, Arc::clone(&stop)).map_err(|error| {
                Error::InvalidData(format!("cannot install a signal handler: {error}"))
            })?;
        }
        let shows_progress = io::stderr().is_terminal() && log::log_enabled!(log::Level::Info);
        let drawn = shows_progress.then(Instant::now);
        Ok(Self { writer, path: path.to_owned(), done: 0, total, drawn, stop })
    }

    /// Appends a record.
    pub(super) fn put(&mut self, key: &str, datum: &Datum) -> Result<()> {
        if self.stop.load(Relaxed) {
            let reason = "interrupted; no database was written";
            return Err(Error::InvalidData(format!("{}: {reason}", self.path.display())));
        }
        self.writer.put(key.as_bytes(), &datum.encode_to_vec())?;
        self.done += 1;
        if self.drawn.is_some_and(|drawn| drawn.elapsed() >= REDRAW_INTERVAL) {
            self.drawn = Some(Instant::now());
            let total = self.total.map(|total| format!("/{total}")).unwrap_or_default();
            redraw_line(&format!("{}{total} records", self.done));
        }
        Ok(())
    }

    /// Completes the database and prints its number of records.
    pub(super) fn finish(self) -> Result<()> {
        if self.drawn.is_some() {
            redraw_line("");
        }
        self.writer.finish()?;
        print(&format!("{}: {} records\n", self.path.display(), self.done))
    }
}
