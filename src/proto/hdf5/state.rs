//! Solver states in HDF5 files, with the datasets `iter`, `learned_net`, `current_step` and
//! `history/<index>`. The dataset `run`, which Caffe ignores, holds the message `RunState` in text
//! format.

use super::{
    node::{Group, Node},
    reader::Reader,
    writer::write,
};
#[cfg(feature = "net")]
use crate::proto::text;
use crate::{
    error::{Error, Result},
    proto::messages::SolverState,
};
use std::path::Path;

const ITER: &str = "iter";
const LEARNED_NET: &str = "learned_net";
const CURRENT_STEP: &str = "current_step";
const HISTORY: &str = "history";
#[cfg(feature = "net")]
const RUN: &str = "run";

#[doc(alias = "RestoreSolverStateFromHDF5")]
pub(in crate::proto) fn read_state(path: &Path) -> Result<SolverState> {
    let file = Reader::open(path)?;
    let datasets = file.datasets("")?;
    let has_net = datasets.iter().any(|name| name == LEARNED_NET);
    let count = file.datasets(HISTORY)?.len();
    let history = (0..count).map(|index| file.blob(&format!("{HISTORY}/{index}")));
    Ok(SolverState {
        iter: Some(file.integer(ITER)?),
        learned_net: has_net.then(|| file.text(LEARNED_NET)).transpose()?,
        current_step: Some(file.integer(CURRENT_STEP)?),
        history: history.collect::<Result<_>>()?,
        #[cfg(feature = "net")]
        run: match datasets.iter().any(|name| name == RUN) {
            true => {
                Some(text::parse_text(&file.text(RUN)?, &format!("{}: {RUN}", path.display()))?)
            }
            false => None,
        },
        #[cfg(not(feature = "net"))]
        run: None,
    })
}

#[doc(alias = "SnapshotSolverStateToHDF5")]
pub(in crate::proto) fn write_state(path: &Path, state: &SolverState) -> Result<()> {
    let with_path = |error: Error| error.context(path.display().to_string());
    let mut history = Group::new();
    for (index, blob) in state.history.iter().enumerate() {
        let missing_error = || Error::InvalidData(format!("history {index}: no values"));
        let array = Node::data(blob).and_then(|array| array.ok_or_else(missing_error));
        history.insert(index.to_string(), array.map_err(with_path)?);
    }
    let mut root = Group::from([
        (ITER.into(), Node::Integer(state.iter())),
        (CURRENT_STEP.into(), Node::Integer(state.current_step())),
        (HISTORY.into(), Node::Group(history)),
    ]);
    root.extend(state.learned_net.as_deref().map(|net| (LEARNED_NET.into(), Node::Text(net))));
    #[cfg(feature = "net")]
    let run = state.run.as_ref().map(text::to_text).transpose().map_err(with_path)?;
    #[cfg(feature = "net")]
    root.extend(run.as_deref().map(|run| (RUN.into(), Node::Text(run))));
    write(path, root)
}
