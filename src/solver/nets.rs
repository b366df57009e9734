//! The train net and the test nets of a solver.

use super::shard_range::ShardRange;
use crate::{
    element::Element,
    error::{Error, Result},
    layer::Shard,
    net::{CopyOptions, Net, NetBuilder},
    proto::{self, NetParameter, NetRunState, NetState, Phase, RunState, SolverParameter},
};
use std::{
    hash::{BuildHasher, RandomState},
    iter,
};

pub(super) struct Nets<T: Element> {
    /// The train net of the first shard of this process.
    pub(super) train: Net<T>,
    /// The train nets of the other shards of this process.
    pub(super) more_shards: Vec<Net<T>>,
    pub(super) tests: Vec<TestNet<T>>,
    /// The seed of all random numbers of the nets, at most `i64::MAX`.
    pub(super) seed: u64,
}

pub(super) struct TestNet<T: Element> {
    pub(super) net: Net<T>,
    pub(super) batches: usize,
}

impl<T: Element> Nets<T> {
    /// Builds all nets of a solver, and copies the weights from the files that the solver's
    /// definition names.
    pub(super) fn new(
        param: &SolverParameter,
        builder: NetBuilder<T>,
        seed: u64,
        shards: ShardRange,
    ) -> Result<Self> {
        let count = shards.count as u64;
        let mut builder = builder.seed(seed);
        let build = |builder: &NetBuilder<T>, mut definition: Definition, phase, state| {
            let mut net_state = NetState::default();
            net_state.set_phase(phase);
            let state: Option<&NetState> = state;
            for state in [definition.net.state.as_ref(), state].into_iter().flatten() {
                merge_state(&mut net_state, state);
            }
            definition.net.state = Some(net_state);
            match &definition.file {
                Some(file) => builder.build_from(&definition.net, file),
                None => builder.build(&definition.net),
            }
        };
        let definition = train_definition(param)?;
        let mut train_nets = Vec::with_capacity(shards.own);
        for index in shards.first..shards.first + shards.own {
            builder = builder.shard(Shard { index: index as u64, count });
            let state = param.train_state.as_ref();
            let net = build(&builder, definition.clone(), Phase::Train, state)
                .map_err(|error| error.context("train net"))?;
            train_nets.push(net);
        }
        let train = train_nets.remove(0);
        if train.layer_names().len() == 0 {
            return Err(Error::InvalidData("train net: no layers".into()));
        }
        for net in &mut train_nets {
            net.share_trainable_with(&train)?;
        }
        let mut tests = Vec::new();
        builder = builder.shard(Shard { index: 0, count });
        for (index, definition) in test_definitions(param)?.into_iter().enumerate() {
            let net = build(&builder, definition, Phase::Test, param.test_state.get(index))
                .map_err(|error| error.context(format!("test net #{index}")))?;
            let batches = usize::try_from(param.test_iter[index]).unwrap_or(0);
            tests.push(TestNet { net, batches });
        }
        let mut nets = Self { train, more_shards: train_nets, tests, seed };
        for list in &param.weights {
            list.split(',').map(str::trim).try_for_each(|file| nets.copy_weights(file))?;
        }
        Ok(nets)
    }

    /// Returns the train nets of the shards of this process.
    pub(super) fn shards(&self) -> impl Iterator<Item = &Net<T>> {
        iter::once(&self.train).chain(&self.more_shards)
    }

    /// Returns the train nets of the shards of this process, to run or change them.
    pub(super) fn shards_mut(&mut self) -> impl Iterator<Item = &mut Net<T>> {
        iter::once(&mut self.train).chain(&mut self.more_shards)
    }

    /// Returns the states of the train nets of the shards of this process.
    pub(super) fn shard_states(&self) -> Result<Vec<NetRunState>> {
        self.shards().map(Net::run_state).collect()
    }

    /// Returns the states of the test nets.
    pub(super) fn test_states(&self) -> Result<Vec<NetRunState>> {
        self.tests.iter().map(|test| test.net.run_state()).collect()
    }

    /// Restores the states of all nets from a snapshot. If the snapshot is from a run with another
    /// number of shards, all train nets start from the state of shard 0: each data layer goes on
    /// with the first record of its shard that is not before the position of shard 0.
    pub(super) fn set_state(&mut self, state: &RunState, shards: ShardRange) -> Result<()> {
        let same_shards = state.shards() as usize == shards.count;
        let first_net = state.net.first();
        for (shard, net) in (shards.first..).zip(self.shards_mut()) {
            let state = match shard.checked_sub(1).filter(|_| same_shards) {
                None => first_net,
                Some(index) => state.shard.get(index),
            };
            if let Some(state) = state {
                net.set_run_state(state).map_err(|error| error.context("train net"))?;
            }
        }
        for (index, (test, state)) in
            self.tests.iter_mut().zip(state.net.iter().skip(1)).enumerate()
        {
            let result = test.net.set_run_state(state);
            result.map_err(|error| error.context(format!("test net #{index}")))?;
        }
        Ok(())
    }

    /// Copies the weights in a file to the train net and all test nets. Fails if the file and the
    /// train net have no layer name in common.
    fn copy_weights(&mut self, file: &str) -> Result<()> {
        let weights = proto::read_trained_net(file)?;
        let with_file_name = |error: Error| error.context(file);
        self.train.copy_trained_from(&weights).map_err(with_file_name)?;
        for test in &mut self.tests {
            // A test net may have none of the layers of the train net.
            let options = CopyOptions { allow_no_match: true };
            test.net.copy_trained_from_with(&weights, options).map_err(with_file_name)?;
        }
        Ok(())
    }
}

/// Returns the seed of a run: `random_seed`, or a random number if `random_seed` is negative or
/// missing.
pub(super) fn seed(param: &SolverParameter) -> u64 {
    match u64::try_from(param.random_seed()) {
        Ok(seed) => seed,
        // A hash that uses the random keys of the standard library's `RandomState`. The shift makes
        // the seed fit in `random_seed`, which is signed.
        Err(_) => RandomState::new().hash_one(0) >> 1,
    }
}

/// Merges one net state into another: the phase and the level of `from` replace those of `into`,
/// and the stages of `from` are appended.
fn merge_state(into: &mut NetState, from: &NetState) {
    into.phase = from.phase.or(into.phase);
    into.level = from.level.or(into.level);
    into.stage.extend(from.stage.iter().cloned());
}

/// The definition of a net, and the file from which it was read; `None` for a definition inside the
/// solver's definition.
#[derive(Clone)]
struct Definition {
    net: NetParameter,
    file: Option<String>,
}

impl Definition {
    fn read(file: &str) -> Result<Self> {
        Ok(Self { net: proto::read_net(file)?, file: Some(file.to_owned()) })
    }

    /// Upgrades a net definition that is part of the solver's definition.
    fn inline(definition: NetParameter) -> Result<Self> {
        let upgraded = proto::upgrade::net(definition);
        let net = proto::log_changes(upgraded, "net in the solver's definition")?;
        Ok(Self { net, file: None })
    }
}

fn train_definition(param: &SolverParameter) -> Result<Definition> {
    let inline_definitions =
        [&param.train_net_param, &param.net_param].into_iter().flatten().cloned();
    let files = [&param.train_net, &param.net].into_iter().flatten();
    let definition_count = inline_definitions.clone().count() + files.clone().count();
    if definition_count != 1 {
        let fields = "net, net_param, train_net, train_net_param";
        let reason = format!(
            "found {definition_count} definitions of the train net; give exactly one of {fields}"
        );
        return Err(Error::InvalidData(reason));
    }
    match (inline_definitions.into_iter().next(), files.into_iter().next()) {
        (Some(definition), _) => Definition::inline(definition),
        (None, Some(file)) => Definition::read(file),
        (None, None) => Err(Error::InvalidData("train net: no definition".into())),
    }
}

/// Returns the definitions of the test nets, from `test_net_param`, from `test_net`, and from
/// `net_param` or `net` once for each further entry of `test_iter`. A solver with an explicit
/// `test_interval: 0` has no test nets.
fn test_definitions(param: &SolverParameter) -> Result<Vec<Definition>> {
    if param.test_interval == Some(0) {
        return Ok(Vec::new());
    }
    let inline_definitions = param.test_net_param.iter().cloned();
    let mut definitions = inline_definitions.map(Definition::inline).collect::<Result<Vec<_>>>()?;
    for file in &param.test_net {
        definitions.push(Definition::read(file)?);
    }
    let repeated_definition = match (&param.net_param, &param.net) {
        (Some(definition), _) => Some(Definition::inline(definition.clone())?),
        (None, Some(file)) => Some(Definition::read(file)?),
        (None, None) => None,
    };
    let (count, given) = (param.test_iter.len(), definitions.len());
    if count < given || (count > given && repeated_definition.is_none()) {
        let reason = format!("test_iter: expected one entry per test net ({given}), found {count}");
        return Err(Error::InvalidData(reason));
    }
    if let Some(repeated_definition) = repeated_definition {
        definitions.resize(count, repeated_definition);
    }
    if count > 0 && param.test_interval() <= 0 {
        let reason = "test nets need a positive test_interval; test_interval: 0 disables tests";
        return Err(Error::InvalidData(reason.into()));
    }
    if let Some(bad) = param.test_iter.iter().find(|&&batches| batches <= 0) {
        return Err(Error::InvalidData(format!("test_iter {bad} must be positive")));
    }
    if !param.test_state.is_empty() && param.test_state.len() != count {
        let found = param.test_state.len();
        let reason =
            format!("test_state: expected one entry per test net ({count}), found {found}");
        return Err(Error::InvalidData(reason));
    }
    Ok(definitions)
}
