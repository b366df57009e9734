//! Files of NVIDIA's GEMM libraries, cuBLAS and cuBLASLt, which are opened at run time.

use crate::error::BoxError;
use libloading::Library;
use std::{
    env,
    path::{Path, PathBuf},
};

/// Folder that is searched for a library after the loader's search path.
const DEFAULT_FOLDER: &str = "/usr/local/cuda/lib64";

/// Environment variable with the path of the cuBLAS library or of the folder of NVIDIA's libraries.
const PATH_VARIABLE: &str = "CORTADO_CUBLAS";

/// Name of a library, and the names of its files, newest version first.
pub(super) struct LibraryFiles {
    pub(super) name: &'static str,
    pub(super) files: &'static [&'static str],
}

impl LibraryFiles {
    /// Opens the library at `path`, which names a file or a folder, and returns it with the path of
    /// its file. Without `path`, uses the path in `CORTADO_CUBLAS`. If neither `path` nor
    /// `CORTADO_CUBLAS` is given, searches the loader's search path and then `DEFAULT_FOLDER`.
    ///
    /// # Errors
    /// Fails if no library can be opened. The error lists the paths tried.
    pub(super) fn open(&self, path: Option<&Path>) -> Result<(Library, PathBuf), BoxError> {
        let path =
            path.map(Path::to_owned).or_else(|| env::var_os(PATH_VARIABLE).map(PathBuf::from));
        let paths_in = |folder: &Path| self.files.iter().map(|name| folder.join(name)).collect();
        let paths: Vec<PathBuf> = match path {
            Some(folder) if folder.is_dir() => paths_in(&folder),
            Some(file) => vec![file],
            None => [paths_in(Path::new("")), paths_in(Path::new(DEFAULT_FOLDER))].concat(),
        };
        let paths: Vec<PathBuf> = paths.iter().map(|path| self.beside(path)).collect();
        let mut reason = String::new();
        for path in &paths {
            match load(path) {
                Ok(library) => return Ok((library, path.clone())),
                Err(error) if reason.is_empty() => reason = error.to_string(),
                Err(_) => {}
            }
        }
        let paths: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        let (name, paths) = (self.name, paths.join(", "));
        Err(format!(
            "{name} not found: cannot open any of {paths} ({reason}); set {PATH_VARIABLE} to its \
             path"
        )
        .into())
    }

    /// Returns the path of this library's file. `path` names this file, or the file of cuBLAS in
    /// the same folder.
    fn beside(&self, path: &Path) -> PathBuf {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match self.name {
            "cuBLASLt" if !name.contains("cublasLt") => {
                path.with_file_name(name.replacen("cublas", "cublasLt", 1))
            }
            _ => path.to_owned(),
        }
    }
}

/// Opens the library at `path`. First opens cuBLASLt, on which cuBLAS depends, if the folder of
/// `path` contains cuBLASLt.
fn load(path: &Path) -> Result<Library, libloading::Error> {
    // SAFETY: the initialization of cuBLAS and cuBLASLt has no preconditions.
    let open = |path: &Path| unsafe { Library::new(path) };
    if let (Some(folder), Some(name)) = (path.parent(), path.file_name()) {
        let dependency = name.to_string_lossy().replacen("cublas.", "cublasLt.", 1);
        let dependency = dependency.replacen("cublas64", "cublasLt64", 1);
        if folder != Path::new("") && *dependency != *name && folder.join(&dependency).exists() {
            std::mem::forget(open(&folder.join(dependency))?);
        }
    }
    open(path)
}
