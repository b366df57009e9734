//! State that a golden case requests for a net: phase, level and stages.

use cortado::proto::{NetParameter, NetState, Phase};

/// Net state that a golden case requests. A field that the golden case does not request is `None`
/// or empty.
pub(crate) struct RequestedState {
    pub(crate) phase: Option<Phase>,
    pub(crate) level: Option<i32>,
    pub(crate) stages: Vec<String>,
}

impl RequestedState {
    /// Reads the requested state from columns 2 to 4 of a row of `cases.tsv`.
    pub(crate) fn from_row(row: &[String]) -> Self {
        let requested_value = |column: usize| (row[column] != "-").then_some(&row[column]);
        let phase = requested_value(2).map(|name| Phase::from_str_name(name).unwrap());
        let level = requested_value(3).map(|level| level.parse().unwrap());
        let stages = requested_value(4).into_iter().flat_map(|stages| stages.split(','));
        Self { phase, level, stages: stages.map(str::to_owned).collect() }
    }

    /// Sets the requested phase and level in the net state of a definition, and adds the requested
    /// stages.
    pub(crate) fn apply_to(&self, definition: &mut NetParameter) {
        if self.phase.is_none() && self.level.is_none() && self.stages.is_empty() {
            return;
        }
        let state = definition.state.get_or_insert_with(NetState::default);
        if let Some(phase) = self.phase {
            state.set_phase(phase);
        }
        state.level = self.level.or(state.level);
        state.stage.extend(self.stages.iter().cloned());
    }
}
