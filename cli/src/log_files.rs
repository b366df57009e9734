//! Log files in the folder of `--log_dir`, with the names that glog gives them.

use super::log_prefix::Prefix;
use cortado::error::{Error, Result};
use gethostname::gethostname;
use jiff::Zoned;
use log::{Level, LevelFilter};
use std::{
    env,
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
    process,
    sync::{Mutex, PoisonError},
};

/// Severities with a log file, in ascending order. A file contains the lines of its severity and of
/// all higher severities.
const SEVERITIES: [(&str, Level); 3] =
    [("INFO", Level::Info), ("WARNING", Level::Warn), ("ERROR", Level::Error)];

/// Log files of a process, such as `caffe.host.user.log.INFO.20260131-235959.4321`.
///
/// [`create`](Self::create) creates the first file. Every other file is created when its first line
/// is written. For each log file, a link with a short name, such as `caffe.INFO`, points to the
/// file.
pub(super) struct LogFiles {
    folder: PathBuf,
    program: String,
    /// Date, time and process at the end of the file names.
    suffix: String,
    prefix: Prefix,
    files: Mutex<[LogFile; 3]>,
}

#[derive(Default)]
enum LogFile {
    #[default]
    Unopened,
    Open(File),
    /// Writing failed, and the error was reported.
    Failed,
}

impl LogFiles {
    /// Creates the file of the lowest severity that is logged at `level`, and no file if nothing is
    /// logged. `prefix` is the prefix of the lines that the caller will write.
    ///
    /// # Errors
    /// Fails if the file cannot be created, for example because the folder does not exist.
    pub(super) fn create(
        folder: &Path,
        program: &str,
        level: LevelFilter,
        prefix: Prefix,
    ) -> Result<Self> {
        let suffix = format!("{}.{}", Zoned::now().strftime("%Y%m%d-%H%M%S"), process::id());
        let mut files = <[LogFile; 3]>::default();
        let mut log_files = Self {
            folder: folder.to_owned(),
            program: program.to_owned(),
            suffix,
            prefix,
            files: Mutex::default(),
        };
        let first_file =
            SEVERITIES.iter().zip(&mut files).find(|((_, lowest), _)| *lowest <= level);
        if let Some(((severity, _), file)) = first_file {
            let open_result = log_files.open(severity).map_err(|error| {
                Error::io(log_files.path(severity), error).context("--log_dir".to_owned())
            });
            *file = LogFile::Open(open_result?);
        }
        log_files.files = Mutex::new(files);
        Ok(log_files)
    }

    /// Appends a line to the file of its severity and to the files of all lower severities. Reports
    /// the first write error of a file on standard error, and writes no more lines to this file.
    pub(super) fn write(&self, level: Level, line: &str) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        for (file, (severity, lowest)) in files.iter_mut().zip(SEVERITIES) {
            // glog has no severity `Debug`, so `Debug` lines go to the file INFO.
            if level.min(Level::Info) > lowest {
                continue;
            }
            if let Err(error) = self.append(file, severity, line) {
                *file = LogFile::Failed;
                let path = self.path(severity);
                let path = path.display();
                // Ignore the error of a failed write, because no other place is left to report it.
                let _ = writeln!(io::stderr(), "cortado: --log_dir: {path}: {error}");
            }
        }
    }

    fn append(&self, file: &mut LogFile, severity: &str, line: &str) -> io::Result<()> {
        if let LogFile::Unopened = file {
            *file = LogFile::Open(self.open(severity)?);
        }
        match file {
            LogFile::Open(file) => writeln!(file, "{line}"),
            LogFile::Unopened | LogFile::Failed => Ok(()),
        }
    }

    /// Creates the file of a severity with glog's header, and the link to the file.
    fn open(&self, severity: &str) -> io::Result<File> {
        let path = self.path(severity);
        let mut file = File::options().create(true).append(true).open(&path)?;
        let (time, host) = (Zoned::now().strftime("%Y/%m/%d %H:%M:%S"), host());
        let format = self.prefix.description();
        write!(
            file,
            "Log file created at: {time}\nRunning on machine: {host}\nLog line format: {format}\n"
        )?;
        if let Some(target) = path.file_name() {
            link(target.as_ref(), &self.folder.join(format!("{}.{severity}", self.program)));
        }
        Ok(file)
    }

    fn path(&self, severity: &str) -> PathBuf {
        let (program, host, suffix) = (&self.program, host(), &self.suffix);
        let user = ["USER", "LOGNAME", "USERNAME"].iter().find_map(|name| env::var(name).ok());
        let user = user.as_deref().unwrap_or("invalid-user");
        self.folder.join(format!("{program}.{host}.{user}.log.{severity}.{suffix}"))
    }
}

fn host() -> String {
    gethostname().to_string_lossy().into_owned()
}

/// Creates the link `link` to the file `target` in the same folder. Like glog, ignores errors,
/// because some file systems have no links.
#[cfg(unix)]
fn link(target: &Path, link: &Path) {
    let is_link = std::fs::symlink_metadata(link).is_ok_and(|metadata| metadata.is_symlink());
    if is_link {
        let _ = std::fs::remove_file(link);
    }
    let _ = std::os::unix::fs::symlink(target, link);
}

/// Does nothing: outside Unix, glog writes no links either.
#[cfg(not(unix))]
fn link(_target: &Path, _link: &Path) {}
