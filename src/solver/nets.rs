//! The train net and the test nets of a solver.

use crate::{
    element::Element,
    error::{Error, Result},
    net::{CopyOptions, Net, NetBuilder},
    proto::{self, NetParameter, NetRunState, NetState, Phase, RunState, SolverParameter},
};
use std::{
    hash::{BuildHasher, RandomState},
    iter,
};

pub(super) struct Nets<T: Element> {
    pub(super) train: Net<T>,
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
    pub(super) fn new(param: &SolverParameter, builder: NetBuilder<T>) -> Result<Self> {
        let seed = match u64::try_from(param.random_seed()) {
            Ok(seed) => seed,
            // Without a `random_seed`, the seed is random: a hash that uses the random keys of the
            // standard library's `RandomState`. The shift makes the seed fit in `random_seed`,
            // which is signed.
            Err(_) => RandomState::new().hash_one(0) >> 1,
        };
        let builder = builder.seed(seed);
        let build = |mut definition: Definition, phase, state: Option<&NetState>| {
            let mut net_state = NetState::default();
            net_state.set_phase(phase);
            for state in [definition.net.state.as_ref(), state].into_iter().flatten() {
                merge_state(&mut net_state, state);
            }
            definition.net.state = Some(net_state);
            match &definition.file {
                Some(file) => builder.build_from(&definition.net, file),
                None => builder.build(&definition.net),
            }
        };
        let train = build(train_definition(param)?, Phase::Train, param.train_state.as_ref())
            .map_err(|error| error.context("train net"))?;
        if train.layer_names().len() == 0 {
            return Err(Error::InvalidData("train net: no layers".into()));
        }
        let mut tests = Vec::new();
        for (index, definition) in test_definitions(param)?.into_iter().enumerate() {
            let net = build(definition, Phase::Test, param.test_state.get(index))
                .map_err(|error| error.context(format!("test net #{index}")))?;
            let batches = usize::try_from(param.test_iter[index]).unwrap_or(0);
            tests.push(TestNet { net, batches });
        }
        let mut nets = Self { train, tests, seed };
        for list in &param.weights {
            list.split(',').map(str::trim).try_for_each(|file| nets.copy_weights(file))?;
        }
        Ok(nets)
    }

    /// Returns the states of the test nets.
    pub(super) fn test_states(&self) -> Result<Vec<NetRunState>> {
        self.tests.iter().map(|test| test.net.run_state()).collect()
    }

    /// Restores the states of all nets from a snapshot.
    pub(super) fn set_state(&mut self, state: &RunState) -> Result<()> {
        let nets =
            iter::once(&mut self.train).chain(self.tests.iter_mut().map(|test| &mut test.net));
        for (index, (net, state)) in nets.zip(&state.net).enumerate() {
            net.set_run_state(state).map_err(|error| match index {
                0 => error.context("train net"),
                _ => error.context(format!("test net #{}", index - 1)),
            })?;
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
