//! The command that resumes an interrupted training run.

use super::{caffe_log, logger, progress::print_line};
use cortado::solver::Event;
use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

/// Observer that remembers the last snapshot of a training run and, if a signal stops the run,
/// shows the command that resumes it.
pub(super) struct ResumeCommand {
    /// Number of processes of the run.
    processes: usize,
    args: Vec<OsString>,
    /// Iteration and solver state of the last snapshot.
    last_snapshot: Option<(usize, PathBuf)>,
}

impl ResumeCommand {
    pub(super) fn new(processes: usize) -> Self {
        Self { processes, args: env::args_os().collect(), last_snapshot: None }
    }

    pub(super) fn observe(&mut self, event: &Event<'_>) {
        match *event {
            Event::Snapshot { iteration, state, .. } => {
                self.last_snapshot = Some((iteration, state.to_owned()));
            }
            Event::Finished { early: true, .. } => {
                if let Some((iteration, state)) = &self.last_snapshot {
                    let command = resume_command(self.processes, &self.args, state);
                    if logger::shows_progress_line() {
                        print_line(&format!("resume from iteration {iteration} with: {command}"));
                    }
                    log::info!(
                        target: caffe_log::TARGET,
                        "Resume from iteration {iteration} with: {command}"
                    );
                }
            }
            _ => {}
        }
    }
}

/// Returns the command line `args` with `--snapshot STATE` in place of the flags `--snapshot` and
/// `--weights`, quoted for a POSIX shell. A run with several processes starts with mpiexec.
fn resume_command(processes: usize, args: &[OsString], state: &Path) -> String {
    let mut words = Vec::new();
    if processes > 1 {
        words.push(format!("mpiexec -n {processes}"));
    }
    let mut args = args.iter().map(|arg| arg.to_string_lossy());
    while let Some(arg) = args.next() {
        let (flag, has_value) =
            arg.split_once('=').map_or((&*arg, false), |(flag, _)| (flag, true));
        if ["-snapshot", "--snapshot", "-weights", "--weights"].contains(&flag) {
            if !has_value {
                args.next();
            }
            continue;
        }
        words.push(quote(&arg));
    }
    words.extend(["--snapshot".into(), quote(&state.to_string_lossy())]);
    words.join(" ")
}

/// Quotes an argument for a POSIX shell, if necessary.
fn quote(arg: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    match !arg.is_empty() && arg.chars().all(is_plain) {
        true => arg.to_owned(),
        false => format!("'{}'", arg.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::resume_command;

    #[test]
    fn the_resume_command_replaces_the_snapshot_and_the_weights() {
        let state = "run/a b_iter_7.solverstate".as_ref();
        let cases = [
            ("cortado train --solver s.prototxt", "cortado train --solver s.prototxt"),
            ("cortado train --snapshot x --solver=s --gpu 0", "cortado train --solver=s --gpu 0"),
            ("cortado -q train --snapshot=x --solver s", "cortado -q train --solver s"),
            ("cortado train --weights a,b -weights=c -solver s", "cortado train -solver s"),
            ("cortado train --solver it's$", r"cortado train --solver 'it'\''s$'"),
        ];
        for (args, want) in cases {
            let args: Vec<_> = args.split(' ').map(Into::into).collect();
            let want = format!("{want} --snapshot 'run/a b_iter_7.solverstate'");
            assert_eq!(resume_command(1, &args, state), want);
            assert_eq!(resume_command(4, &args, state), format!("mpiexec -n 4 {want}"));
        }
    }
}
