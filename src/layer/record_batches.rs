//! Batches of records for data layers whose tops can have a different shape for each batch.

use super::{position, prelude::*, shard::Shard};
use crate::{
    data::{DataReader, Record, Source},
    proto::LayerState,
};
use std::time::{Duration, Instant};

/// The records of a data layer, which a thread reads and decodes ahead. The thread that runs the
/// net consumes the records in batches.
pub(super) struct RecordBatches {
    open: Box<OpenSource>,
    /// The number of records that the layer skips at the start of the source.
    skip: u64,
    shard: Shard,
    batch_size: usize,
    reader: DataReader,
    /// The number of the first record of the next batch.
    next_record: u64,
    wait_time: Duration,
}

type OpenSource = dyn Fn() -> Result<Box<dyn Source>> + Send;

/// Largest number of records that the reader thread passes on at a time.
const MAX_RUN: usize = 64;

impl RecordBatches {
    /// Opens the source and starts its reader thread. `field` is the field with the layer's
    /// parameters, which the error for a `batch_size` of 0 names.
    pub(super) fn new(
        field: &str,
        open: impl Fn() -> Result<Box<dyn Source>> + Send + 'static,
        [batch_size, rand_skip]: [u32; 2],
        cx: &LayerContext<'_>,
    ) -> Result<Self> {
        if batch_size == 0 {
            return invalid(format!("{field}: batch_size is required and must be positive"));
        }
        let skip = match rand_skip {
            0 => 0,
            bound => u64::from(cx.key.named_child("rand_skip").words(0)[0] % bound),
        };
        let (shard, batch_size) = (cx.shard.in_phase(cx.phase), batch_size as usize);
        let reader = start(&open, skip, shard, batch_size, 0)?;
        let next_record = reader.next_record();
        let (open, wait_time) = (Box::new(open), Duration::ZERO);
        Ok(Self { open, skip, shard, batch_size, reader, next_record, wait_time })
    }

    /// Returns the number of records of a batch.
    pub(super) fn batch_size(&self) -> usize {
        self.batch_size
    }

    /// Reads the records of the next batch, and calls `add` with the index of each record in the
    /// batch, the number of the record in the source, and the record.
    pub(super) fn read(
        &mut self,
        mut add: impl FnMut(usize, u64, &Record) -> Result<()>,
    ) -> Result<()> {
        if self.reader.next_record() != self.next_record {
            let first = self.next_record;
            self.reader = start(&*self.open, self.skip, self.shard, self.batch_size, first)?;
        }
        let mut item = 0;
        while item < self.batch_size {
            let (begin, first, stride) =
                (Instant::now(), self.reader.next_record(), self.reader.stride());
            let records = self.reader.records()?;
            self.wait_time += begin.elapsed();
            let count = records.len().min(self.batch_size - item);
            let numbers = (0..count as u64).map(|i| first + i * stride);
            let mut failure = None;
            for (number, record) in numbers.zip(records) {
                if let Err(error) = add(item, number, record) {
                    failure = Some((number, error));
                    break;
                }
                item += 1;
            }
            if let Some((number, error)) = failure {
                return Err(self.reader.locate_error(number, error));
            }
            self.reader.consume(count);
        }
        Ok(())
    }

    /// Advances the position past the batch that was read last, because the forward pass has used
    /// the batch.
    pub(super) fn advance(&mut self) {
        self.next_record = self.reader.next_record();
    }

    pub(super) fn wait_time(&self) -> Duration {
        self.wait_time
    }

    pub(super) fn source_records(&self) -> Option<u64> {
        self.reader.source_records()
    }

    pub(super) fn state(&self) -> Result<Option<LayerState>> {
        position::state(self.next_record)
    }

    /// Moves to the position in `state`. Returns whether the new position differs from the previous
    /// one.
    pub(super) fn set_state(&mut self, state: &LayerState) -> Result<bool> {
        let position = self.shard.first_record_from(position::of(state)?);
        let moves = position != self.next_record;
        self.next_record = position;
        Ok(moves)
    }

    /// Skips the records of `passes` batches.
    pub(super) fn skip_passes(&mut self, passes: u64) {
        let records = (self.batch_size as u64).saturating_mul(self.shard.count);
        self.next_record = self.next_record.saturating_add(passes.saturating_mul(records));
    }
}

/// Starts a reader at the shard's first record whose number is at least `first`.
fn start(
    open: &OpenSource,
    skip: u64,
    shard: Shard,
    batch_size: usize,
    first: u64,
) -> Result<DataReader> {
    let records = (shard.first_record_from(first), shard.count);
    DataReader::strided(open()?, skip, records, batch_size.min(MAX_RUN))
}
