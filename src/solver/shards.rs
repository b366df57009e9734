//! Shards: train nets with the same weights, which together compute one gradient.
//!
//! A run with S shards has S train nets, each with its own records. Each of P processes holds S / P
//! consecutive nets. Values of all shards are added along one binary tree: first those of the nets
//! of a process, then those of the processes. The results of a run therefore do not depend on the
//! number P of processes.

use super::{
    processes::{Pending, Processes},
    shard_range::ShardRange,
    training_run::Solver,
};
use crate::{element::Element, error::Result, net::Net};

/// Adds lists of equal length elementwise, in pairs of neighbours, until one list is left.
fn tree_sum<T: Element>(mut lists: Vec<Vec<T>>) -> Vec<T> {
    while lists.len() > 1 {
        let mut rest = lists.into_iter();
        lists = Vec::new();
        while let Some(mut lower) = rest.next() {
            for (lower, upper) in lower.iter_mut().zip(rest.next().unwrap_or_default()) {
                *lower = T::from_acc(lower.to_acc() + upper.to_acc());
            }
            lists.push(lower);
        }
    }
    lists.pop().unwrap_or_default()
}

/// Starts to compute the elementwise mean of the lists of all shards. The caller passes in `own` the
/// lists of the shards of this process, all of the same length.
pub(super) fn start_mean<V: Element>(
    processes: &Processes,
    shards: ShardRange,
    own: Vec<Vec<V>>,
) -> Result<Pending<Vec<V>>> {
    processes.start_scaled_sum(tree_sum(own), V::acc(1.0 / shards.count as f64))
}

impl<T: Element> Solver<T> {
    /// Returns the elementwise mean of the lists of all shards. The caller passes in `own` the
    /// lists of the shards of this process, all of the same length.
    pub(super) fn mean_over_shards<V: Element>(&mut self, own: Vec<Vec<V>>) -> Result<Vec<V>> {
        let mean = start_mean(&self.processes, self.shards, own)?;
        self.processes.wait(mean)
    }

    /// Calls `value` with the train net of each shard of this process, and returns the mean of the
    /// values over all shards.
    pub(super) fn mean_of_nets(
        &mut self,
        value: impl FnMut(&mut Net<T>) -> Result<f64>,
    ) -> Result<f64> {
        let values = self.nets.shards_mut().map(value);
        let values = values.map(|value| value.map(|value| vec![value])).collect::<Result<_>>()?;
        Ok(self.mean_over_shards(values)?.into_iter().sum())
    }

    /// Replaces the parameters that forward passes change, such as the statistics of BatchNorm, by
    /// their means over all shards.
    pub(super) fn average_statistics(&mut self) -> Result<()> {
        if self.shards.count == 1 || self.nets.train.statistics().next().is_none() {
            return Ok(());
        }
        let statistics_of = |net: &Net<T>| {
            let mut values = Vec::new();
            for param in net.statistics() {
                values.extend_from_slice(param.blob().data()?.host()?);
            }
            Ok(values)
        };
        let own = self.nets.shards().map(statistics_of).collect::<Result<_>>()?;
        let means = self.mean_over_shards(own)?;
        self.nets.shards().try_for_each(|net| set_statistics(net, &means))
    }

    /// Copies the statistics of the first train net of this process to its other train nets, because
    /// the caller may have changed the first net.
    pub(super) fn share_statistics(&mut self) -> Result<()> {
        for net in &self.nets.more_shards {
            for (from, to) in self.nets.train.statistics().zip(net.statistics()) {
                to.blob()
                    .data_mut()?
                    .host_write_only()?
                    .copy_from_slice(from.blob().data()?.host()?);
            }
        }
        Ok(())
    }

    /// Returns the train nets of the shards of this process in the order of the shards. The first
    /// net is the one that [`net_mut`](Self::net_mut) returns. The nets share the values of their
    /// trainable parameters, but not their inputs, so a caller must write the inputs of each net.
    pub fn shard_nets_mut(&mut self) -> impl Iterator<Item = &mut Net<T>> {
        self.nets.shards_mut()
    }

    /// Returns the number of shards of the run.
    pub fn shards(&self) -> usize {
        self.shards.count
    }
}

fn set_statistics<T: Element>(net: &Net<T>, mut values: &[T]) -> Result<()> {
    for param in net.statistics() {
        let (first, rest) = values.split_at(param.blob().count());
        param.blob().data_mut()?.host_write_only()?.copy_from_slice(first);
        values = rest;
    }
    Ok(())
}
