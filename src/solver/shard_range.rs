//! The division of the shards of a run among its processes.

use super::processes::Processes;
use crate::{
    error::{Error, Result},
    limits,
};

/// The shards of a run, and those of this process.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShardRange {
    /// The number of shards of the run.
    pub(super) count: usize,
    /// The first shard of this process.
    pub(super) first: usize,
    /// The number of shards of this process.
    pub(super) own: usize,
}

impl ShardRange {
    /// Divides `count` shards among processes.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] unless `count` is a power of two and at least the number of
    /// processes, or if a process has more than [`limits::SHARDS`] shards.
    pub(super) fn new(count: usize, processes: &Processes) -> Result<Self> {
        if !count.is_power_of_two() {
            let reason = format!("shards: expected a power of two, found {count}");
            return Err(Error::InvalidData(reason));
        }
        let size = processes.size();
        if count < size {
            return Err(Error::InvalidData(format!(
                "shards: {count} for {size} processes; start at most {count} processes, or train \
                 with more shards"
            )));
        }
        let own = count / size;
        if own > limits::SHARDS {
            return Err(Error::InvalidData(format!(
                "shards: {own} for each process, expected at most {}",
                limits::SHARDS
            )));
        }
        Ok(Self { count, first: own * processes.rank(), own })
    }
}
