//! The processors and cores that the process may use, and the default number of threads.

use std::thread::available_parallelism;

/// Returns the number of processors that the calling thread may use at once, at least 1.
///
/// On Linux, the standard library counts the processors in the thread's affinity mask, which
/// `taskset`, `numactl`, Slurm and `mpiexec` set. Processors that are offline do not count. The
/// standard library limits the number by the CPU quotas of the thread's cgroup and of the cgroups
/// above it, in versions 1 and 2 of cgroups. A quota is rounded down, but to at least 1: a quota of
/// 1.5 processors gives 1.
pub(crate) fn available_processors() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// Returns the default number of threads: one per core that the process may use.
///
/// The number of threads is the smaller of two numbers:
/// - the number of processors that the calling thread may use at once, by its affinity mask and, on
///   Linux, by the CPU quota of its cgroups;
/// - on Linux, the number of cores that have a processor in the affinity mask. Two processors of
///   one core (simultaneous multithreading) share the FMA units, and the L1 and L2 caches for which
///   kernels choose their blocks.
///
/// ```
/// let processors = std::thread::available_parallelism().map_or(1, usize::from);
/// assert!((1..=processors).contains(&cortado::host::default_threads()));
/// ```
pub fn default_threads() -> usize {
    let processors = available_processors();
    available_cores().map_or(processors, |cores| processors.min(cores))
}

/// Returns the number of cores on which the calling thread may run, or `None` if the system does
/// not report its cores.
#[cfg(target_os = "linux")]
fn available_cores() -> Option<usize> {
    linux::count_cores("/proc/thread-self/status".as_ref(), "/sys/devices/system/cpu".as_ref())
}

#[cfg(not(target_os = "linux"))]
fn available_cores() -> Option<usize> {
    None
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{collections::HashSet, fs, ops::RangeInclusive, path::Path};

    /// Returns the number of cores that have a processor in the list of allowed processors in the
    /// file `status`. `processors` is the directory in which Linux describes the processors.
    /// Returns `None` if `status` cannot be read or parsed, or if no allowed processor has a
    /// description.
    ///
    /// The list also contains allowed processors that are offline, which have no description.
    pub(super) fn count_cores(status: &Path, processors: &Path) -> Option<usize> {
        let status = fs::read_to_string(status).ok()?;
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        let ranges: Option<Vec<_>> = list.trim().split(',').map(parse_range).collect();
        // Limit the number of files that a malformed list causes this function to read.
        let allowed = ranges?.into_iter().flatten().take(1 << 16);
        let siblings = allowed.filter_map(|processor| {
            // Processors of one core have equal lists of siblings.
            let file = format!("cpu{processor}/topology/thread_siblings_list");
            fs::read_to_string(processors.join(file)).ok()
        });
        Some(siblings.collect::<HashSet<_>>().len()).filter(|&cores| cores > 0)
    }

    /// Parses a number or a range of numbers, such as `4` or `0-3`.
    fn parse_range(text: &str) -> Option<RangeInclusive<usize>> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        Some(first.parse().ok()?..=last.parse().ok()?)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        /// Returns the number of cores on a machine whose processors have the given lists of
        /// siblings, for a thread that may run on the processors `allowed`.
        fn cores(allowed: &str, siblings: &[(usize, &str)]) -> Option<usize> {
            let root = tempfile::tempdir().unwrap();
            let status = root.path().join("status");
            fs::write(&status, format!("Name:\tx\nCpus_allowed_list:\t{allowed}\n")).unwrap();
            for (processor, list) in siblings {
                let topology = root.path().join(format!("cpu{processor}/topology"));
                fs::create_dir_all(&topology).unwrap();
                fs::write(topology.join("thread_siblings_list"), format!("{list}\n")).unwrap();
            }
            count_cores(&status, root.path())
        }

        #[test]
        fn processors_of_one_core_count_once() {
            let smt = [(0, "0,4"), (1, "1,5"), (2, "2,6"), (3, "3,7")];
            let smt = [smt, [(4, "0,4"), (5, "1,5"), (6, "2,6"), (7, "3,7")]].concat();
            assert_eq!(cores("0-7", &smt), Some(4));
            assert_eq!(cores("0,4", &smt), Some(1));
            assert_eq!(cores("0-2,6-7", &smt), Some(4));
            // The processors 8 and 9 are allowed, but offline.
            assert_eq!(cores("0-9", &smt), Some(4));
            assert_eq!(cores("1-2", &[(0, "0"), (1, "1"), (2, "2")]), Some(2));
        }

        #[test]
        fn more_than_64_processors_are_counted() {
            let lists: Vec<_> =
                (0..200).map(|i| format!("{},{}", i / 2 * 2, i / 2 * 2 + 1)).collect();
            let siblings: Vec<_> =
                lists.iter().enumerate().map(|(i, list)| (i, &list[..])).collect();
            assert_eq!(cores("0-199", &siblings), Some(100));
            assert_eq!(cores("60-69,130", &siblings), Some(6));
        }

        #[test]
        fn unknown_cores_give_none() {
            assert_eq!(cores("0-1", &[]), None);
            assert_eq!(cores("", &[(0, "0")]), None);
            assert_eq!(cores("0-x", &[(0, "0")]), None);
            assert_eq!(count_cores("/nonexistent".as_ref(), "/sys".as_ref()), None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_number_of_threads_is_at_most_the_number_of_processors() {
        assert!((1..=available_processors()).contains(&default_threads()));
        // Every supported Linux reports at least one core.
        assert_eq!(available_cores().is_some(), cfg!(target_os = "linux"));
    }
}
