//! Mutation tests of the PTX machine and of the conformance kit: each mutant is a committed PTX file
//! with one bug, which a check of the machine or of the kit must find.
//!
//! Each mutant runs in a process of its own, because a process loads a driver only once.

#[path = "../cuda_on_cpu/mod.rs"]
mod cuda_on_cpu;
mod edit;
mod mutants;

use cortado::{conformance::Kit, device::CudaDevice};
use edit::edit;
use mutants::{MUTANTS, Mutant};
use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
    thread,
};

/// Environment variable that names the check of a child process.
const CHECK_VARIABLE: &str = "PTX_MUTANTS_CHECK";

/// Runs one check of the kit in a child process, and prints how it ended.
#[test]
fn child() {
    let Ok(check) = env::var(CHECK_VARIABLE) else { return };
    let driver = cuda_on_cpu::library().unwrap();
    let device = CudaDevice::builder().threads(1).driver_path(driver).open(0).unwrap();
    match Kit::new().check(&device, &check) {
        Ok(()) => println!("the check passes"),
        Err(failure) => println!("the check fails: {failure}"),
    }
}

/// Runs a check on the committed PTX, or on the files in `kernels` that replace it. Returns what the
/// child process prints.
fn run(check: &str, kernels: Option<&Path>) -> String {
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", "child", "--nocapture"]);
    child.env(CHECK_VARIABLE, check).env("CORTADO_PTX_MACHINE", "1");
    if let Some(folder) = kernels {
        child.env("PTX_MACHINE_KERNELS", folder);
    }
    let output = child.output().unwrap();
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stderr),
        String::from_utf8_lossy(&output.stdout)
    )
}

/// Calls a function for each value, on two threads.
fn for_each<T: Sync>(values: &[T], call: impl Fn(&T) + Sync) {
    let (first, second) = values.split_at(values.len() / 2);
    thread::scope(|scope| {
        scope.spawn(|| first.iter().for_each(&call));
        second.iter().for_each(&call);
    });
}

#[test]
fn the_committed_ptx_passes_the_checks_of_all_mutants() {
    let checks: BTreeSet<_> = MUTANTS.iter().map(|mutant| mutant.check).collect();
    let checks: Vec<_> = checks.into_iter().collect();
    for_each(&checks, |check| {
        let output = run(check, None);
        assert!(output.contains("the check passes"), "{check}: {output}");
    });
}

/// Writes the PTX file of a mutant to its folder, and returns the folder.
fn write(mutant: &Mutant, scratch: &Path) -> Result<PathBuf, String> {
    let file = format!("sm_80/{}.ptx", mutant.file);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels/ptx").join(&file);
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let changed = edit(&text, mutant.kernel, mutant.line, mutant.occurrence, mutant.edit);
    let changed = changed.ok_or("the edit no longer matches the PTX")?;
    let folder = scratch.join(mutant.name);
    fs::create_dir_all(folder.join("sm_80")).unwrap();
    fs::write(folder.join(file), changed).unwrap();
    Ok(folder)
}

#[test]
fn every_mutant_is_caught() {
    let scratch = tempfile::tempdir().unwrap();
    let missed = Mutex::new(Vec::new());
    for_each(MUTANTS, |mutant| {
        let output = write(mutant, scratch.path()).map(|folder| run(mutant.check, Some(&folder)));
        let reason = output.as_ref().ok().and_then(|output| {
            let failed = output.contains("the check fails") && !output.contains("PTX machine: ");
            output.lines().find(|line| failed && line.contains(mutant.caught_by))
        });
        match reason {
            Some(reason) => println!("{:<50} {reason}", mutant.name),
            None => missed.lock().unwrap().push(format!("{}: {output:?}", mutant.name)),
        }
    });
    let missed = missed.into_inner().unwrap();
    assert!(missed.is_empty(), "{} of {}:\n{}", missed.len(), MUTANTS.len(), missed.join("\n"));
}
