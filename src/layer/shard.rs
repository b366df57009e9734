//! The shard of a training run to which a net belongs.

use crate::proto::Phase;

/// The shard of a training run to which a net belongs.
///
/// A run with `count` shards has `count` train nets with the same weights. Shard `index` takes the
/// records `index`, `index + count`, `index + 2 · count`, … of each source. Nets outside a run with
/// shards, and layers in the TEST phase, read every record.
///
/// ```
/// use cortado::{layer::Shard, proto::Phase};
///
/// let shard = Shard { index: 1, count: 4 };
/// assert_eq!(shard.in_phase(Phase::Train).first_record_from(6), 9);
/// assert_eq!(shard.in_phase(Phase::Test).first_record_from(6), 6);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// The index of the shard, less than `count`.
    pub index: u64,
    /// The number of shards, at least 1.
    pub count: u64,
}

impl Shard {
    /// The only shard of a run that is not divided.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// Returns the shard whose records a layer in phase `phase` takes: this shard in the TRAIN
    /// phase, and [`WHOLE`](Self::WHOLE) in the TEST phase.
    #[must_use]
    pub fn in_phase(self, phase: Phase) -> Self {
        match phase {
            Phase::Train => self,
            Phase::Test => Self::WHOLE,
        }
    }

    /// Returns the number of the first record of this shard that is at least `number`.
    pub fn first_record_from(self, number: u64) -> u64 {
        let count = self.count.max(1);
        let (index, position) = (self.index % count, number % count);
        let distance = match index.checked_sub(position) {
            Some(distance) => distance,
            None => count - (position - index),
        };
        number.saturating_add(distance)
    }
}

impl Default for Shard {
    fn default() -> Self {
        Self::WHOLE
    }
}
