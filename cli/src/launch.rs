//! Detection of `mpiexec` and other launchers, which start several processes of the command.

use cortado::error::Error;
use std::{env, thread, time::Duration};

/// Environment variables in which launchers state the rank of a process and the number of
/// processes: those of Open MPI; of MPICH, Intel MPI and other launchers with PMI; and of Slurm.
const LAUNCHERS: [(&str, &str); 3] = [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
];

/// Time after which a process reports its error. If all processes fail for the same reason, process
/// 0 reports the error first and ends the others.
const REPORT_DELAY: Duration = Duration::from_secs(1);

/// Time after which a process reports that another process does not answer. The other process, or
/// the launcher, reports the cause first and ends this process.
const CONSEQUENCE_DELAY: Duration = Duration::from_secs(3);

/// The place of this process among several processes that a launcher has started.
#[derive(Clone, Copy)]
pub(super) struct Launch {
    pub(super) rank: usize,
    pub(super) size: usize,
}

impl Launch {
    /// Reads the environment variables of the launcher. Returns `None` if no launcher has started
    /// this process, or a launcher has started only this process.
    pub(super) fn detect() -> Option<Self> {
        Self::from_variables(|name| env::var(name).ok())
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let number = |name| variable(name)?.parse::<usize>().ok();
        LAUNCHERS.into_iter().find_map(|(rank, size)| {
            let launch = Self { rank: number(rank)?, size: number(size)? };
            (launch.size > 1).then_some(launch)
        })
    }

    /// Waits before this process reports `error`, so that a process with a better report of the same
    /// failure can report it and end this process.
    pub(super) fn delay_report(self, error: &Error) {
        let is_consequence = matches!(error.root(), Error::Communication { .. });
        match (is_consequence, self.rank) {
            (true, _) => thread::sleep(CONSEQUENCE_DELAY),
            (false, 0) => {}
            (false, _) => thread::sleep(REPORT_DELAY),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Launch;

    fn detect(variables: &[(&str, &str)]) -> Option<(usize, usize)> {
        let value = |name: &str| {
            let (_, value) = variables.iter().find(|(known, _)| *known == name)?;
            Some((*value).to_owned())
        };
        Launch::from_variables(value).map(|launch| (launch.rank, launch.size))
    }

    #[test]
    fn launchers_are_detected_by_their_environment_variables() {
        let open_mpi = [("OMPI_COMM_WORLD_RANK", "3"), ("OMPI_COMM_WORLD_SIZE", "4")];
        let mpich = [("PMI_RANK", "0"), ("PMI_SIZE", "2")];
        let slurm = [("SLURM_PROCID", "1"), ("SLURM_STEP_NUM_TASKS", "8")];
        assert_eq!(detect(&open_mpi), Some((3, 4)));
        assert_eq!(detect(&mpich), Some((0, 2)));
        assert_eq!(detect(&slurm), Some((1, 8)));
        // srun starts mpiexec once, and mpiexec starts the processes.
        let mpiexec_in_slurm = [open_mpi, [("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "1")]];
        assert_eq!(detect(&mpiexec_in_slurm.concat()), Some((3, 4)));
    }

    #[test]
    fn a_single_process_has_no_launcher() {
        assert_eq!(detect(&[]), None);
        assert_eq!(detect(&[("PMI_RANK", "0"), ("PMI_SIZE", "1")]), None);
        // The script of a Slurm job, which srun has not started.
        assert_eq!(detect(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "8")]), None);
    }
}
