//! Compiles the C code that calls MPI, if the machine has an MPI library. On other machines, the
//! package builds without MPI, so that a build with all features succeeds everywhere.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(mpi_found)");
    println!("cargo::rerun-if-changed=src/shim.c");
    for variable in ["MPICC", "MPI_PKG_CONFIG", "CRAY_MPICH_DIR"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    // The polling in `library.rs` and the MPI launchers that cortado supports work only on Unix.
    if std::env::var_os("CARGO_CFG_UNIX").is_none() {
        println!("cargo::warning=cortado-mpi supports MPI only on Unix");
        return;
    }
    let library = match build_probe_mpi::probe() {
        Ok(library) => library,
        Err(_) => {
            println!("cargo::warning=no MPI library found; Mpi::init will fail at run time");
            return;
        }
    };
    let mut shim = cc::Build::new();
    if let Some(mpicc) = library.mpicc {
        shim.compiler(mpicc);
    }
    shim.file("src/shim.c").includes(library.include_paths).warnings(true).extra_warnings(true);
    shim.compile("cortado_mpi_shim");
    for path in library.lib_paths {
        println!("cargo::rustc-link-search=native={}", path.display());
    }
    for name in library.libs {
        println!("cargo::rustc-link-lib=dylib={name}");
    }
    println!("cargo::rustc-cfg=mpi_found");
}
