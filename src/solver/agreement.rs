//! Checks at the start of a run that all processes have the same definition, weights and settings.

use super::{processes::Processes, training_run::Solver};
use crate::{
    element::Element,
    error::{Error, Result},
    net::Net,
    proto::{Message, SolverParameter},
};
use std::hash::{DefaultHasher, Hasher};

/// A property that must be equal in all processes: its name and its value.
type Property = (&'static str, String);

/// Fails if a property differs between processes. The error names the first process that differs
/// from process 0, and the property. All processes pass the same names.
fn check_equal(processes: &mut Processes, properties: &[Property]) -> Result<()> {
    let values: Vec<&str> = properties.iter().map(|(_, value)| value.as_str()).collect();
    let messages = processes.all_gather(values.join("\n").into_bytes())?;
    let messages: Vec<_> = messages.iter().map(|text| String::from_utf8_lossy(text)).collect();
    let Some((first, others)) = messages.split_first() else { return Ok(()) };
    for (rank, other) in (1..).zip(others) {
        let pairs = first.split('\n').zip(other.split('\n'));
        let mut named_pairs = properties.iter().zip(pairs);
        if let Some(((name, _), (expected, found))) = named_pairs.find(|(_, (a, b))| a != b) {
            return Err(Error::InvalidData(format!(
                "process {rank}: {name}: expected {expected} as in process 0, found {found}; start \
                 all processes with the same program, arguments and files"
            )));
        }
    }
    Ok(())
}

/// Fails if the processes have different settings. Returns the seed that all processes use: `seed`
/// of process 0.
pub(super) fn agree_on_settings<T: Element>(
    processes: &mut Processes,
    param: &SolverParameter,
    shards: usize,
    seed: u64,
) -> Result<u64> {
    if processes.size() == 1 {
        return Ok(seed);
    }
    let endian = if cfg!(target_endian = "little") { "little" } else { "big" };
    let random_seed = match param.random_seed() {
        ..0 => "none".to_owned(),
        seed => seed.to_string(),
    };
    // Processes may run on different devices.
    let definition =
        SolverParameter { device_id: None, solver_mode: None, ..param.clone() }.encode_to_vec();
    let properties = [
        ("version of cortado", env!("CARGO_PKG_VERSION").to_owned()),
        ("element type", format!("{}, {endian}-endian", T::DTYPE.name())),
        ("shards", shards.to_string()),
        ("random_seed", random_seed),
        ("digest of the solver's definition", digest(&definition)),
    ];
    check_equal(processes, &properties)?;
    let seeds = processes.all_gather(seed.to_le_bytes().to_vec())?;
    let seed_of_first = seeds.first().and_then(|seed| seed.as_slice().try_into().ok());
    Ok(seed_of_first.map_or(seed, u64::from_le_bytes))
}

impl<T: Element> Solver<T> {
    /// Fails if the processes have different nets, weights or solver states.
    pub(super) fn agree_on_nets(&mut self) -> Result<()> {
        if self.processes.size() == 1 {
            return Ok(());
        }
        let train = &self.nets.train;
        let mut test_definitions = Vec::new();
        for test in &self.nets.tests {
            test_definitions.extend(definition(&test.net));
        }
        let test_records = self.nets.tests.iter().flat_map(|test| test.net.source_records());
        let mut weights = DefaultHasher::new();
        for param in train.params() {
            weights.write(T::bytes_of(param.blob().data()?.host()?));
        }
        let mut history = Vec::new();
        for blob in self.state.history()? {
            history.extend(blob.encode_to_vec());
        }
        let properties = [
            ("digest of the train net", digest(&definition(train))),
            ("shapes of the train net's blobs", digest(shapes(train).as_bytes())),
            ("records of the train net's sources", records(train.source_records())),
            ("records of the test nets' sources", records(test_records)),
            ("digest of the test nets", digest(&test_definitions)),
            ("iteration", self.iteration.to_string()),
            ("digest of the weights", format!("{:016x}", weights.finish())),
            ("digest of the solver's history", digest(&history)),
        ];
        check_equal(&mut self.processes, &properties)
    }
}

fn definition<T: Element>(net: &Net<T>) -> Vec<u8> {
    net.layer_params().flat_map(|layer| layer.encode_length_delimited_to_vec()).collect()
}

fn records(counts: impl Iterator<Item = u64>) -> String {
    counts.map(|count| count.to_string()).collect::<Vec<_>>().join(", ")
}

fn shapes<T: Element>(net: &Net<T>) -> String {
    net.blobs().map(|(name, blob)| format!("{name}: {}\n", blob.shape())).collect()
}

fn digest(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    format!("{:016x}", hasher.finish())
}
