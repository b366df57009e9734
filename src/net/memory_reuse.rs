//! Memory that intermediate results share, and how much a net takes.

use super::Net;
use crate::{blob::Blob, device::Device, element::Element, error::Result};

/// Bytes that a net has allocated, on host and device together; what is shared counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Values of the blobs between layers.
    pub activations: usize,
    /// Their gradients.
    pub gradients: usize,
    /// Parameters.
    pub params: usize,
    /// Parameters' gradients.
    pub param_gradients: usize,
}

/// Blobs that share storage because layers let them (in place, Split, Reshape …), from the first
/// layer that writes them to the last that reads them.
pub(super) struct LiveRange {
    blobs: Vec<usize>,
    first: usize,
    last: usize,
}

/// Storage for one life at a time.
struct StorageSlot {
    count: usize,
    /// The last layer that needs what is in it so far.
    busy: usize,
    lives: Vec<usize>,
}

impl<T: Element, D: Device> Net<T, D> {
    /// What the net has allocated so far. Allocation is lazy: what no pass has touched yet takes
    /// nothing. What layers hold besides their parameters is not counted.
    ///
    /// # Errors
    /// [`Error::Borrowed`](crate::Error::Borrowed) while a blob is written.
    pub fn memory_use(&self) -> Result<MemoryUse> {
        let blobs: Vec<_> = self.blobs.iter().map(|net_blob| &net_blob.blob).collect();
        let params: Vec<_> = self.params.iter().map(|param| param.blob()).collect();
        let [activations, gradients] = allocated(&blobs)?;
        let [params, param_gradients] = allocated(&params)?;
        Ok(MemoryUse { activations, gradients, params, param_gradients })
    }

    /// Makes this a net for inference only, whose intermediate results share storage.
    pub(super) fn reuse_memory(&mut self) -> Result<()> {
        for step in &mut self.steps {
            step.backward = false;
            step.propagate_bottoms.fill(false);
            step.propagate_params.fill(false);
        }
        self.lives = Some(self.mortal_lives());
        self.share_memory()
    }

    /// Gives intermediate results storage in which others live before and after them, if they are
    /// to share any.
    pub(super) fn share_memory(&mut self) -> Result<()> {
        let Self { device, blobs, lives: Some(lives), .. } = self else { return Ok(()) };
        let count = |life: &LiveRange| life.blobs.iter().map(|&id| blobs[id].blob.count()).max();
        let counts: Vec<usize> = lives.iter().filter_map(count).collect();
        for slot in slots(lives, &counts) {
            let storage = Blob::new(device, &[slot.count])?;
            for &id in slot.lives.iter().flat_map(|&life| &lives[life].blobs) {
                blobs[id].blob.use_storage_of(&storage)?;
            }
        }
        Ok(())
    }

    /// The lives after which storage may be used again, by their beginnings. None is shared yet.
    fn mortal_lives(&self) -> Vec<LiveRange> {
        let mut lives: Vec<LiveRange> = Vec::new();
        // Blobs that keep what is in them: what makes blobs out of nothing may do so once, and its
        // user may write them.
        let mut kept = self.outputs.clone();
        for (place, step) in self.steps.iter().enumerate() {
            for &id in step.bottoms.iter().chain(&step.tops) {
                let blob = &self.blobs[id].blob;
                let shares = |&other: &usize| blob.shares_data_with(&self.blobs[other].blob);
                let life = lives.iter().position(|life| life.blobs.iter().any(shares));
                let life = life.unwrap_or_else(|| {
                    lives.push(LiveRange { blobs: vec![], first: place, last: place });
                    lives.len() - 1
                });
                let life = &mut lives[life];
                if !life.blobs.contains(&id) {
                    life.blobs.push(id);
                }
                life.last = place;
            }
            if step.bottoms.is_empty() {
                kept.extend(&step.tops);
            }
        }
        // A handle that is not the net's is a layer's, which may rely on what is there.
        let handles =
            |life: &LiveRange| life.blobs.first().map(|&id| self.blobs[id].blob.data_ref_count());
        let mortal = |life: &LiveRange| !life.blobs.iter().any(|id| kept.contains(id));
        lives.retain(|life| mortal(life) && handles(life) == Some(life.blobs.len()));
        lives
    }
}

/// Storage for all lives of so many elements: for each, in order, the smallest that is free and
/// large enough, else the largest that is free, made larger, else new.
fn slots(lives: &[LiveRange], counts: &[usize]) -> Vec<StorageSlot> {
    let mut slots: Vec<StorageSlot> = Vec::new();
    for (place, (life, &count)) in lives.iter().zip(counts).enumerate() {
        let free = slots.iter_mut().filter(|slot| slot.busy < life.first);
        let fit = |slot: &StorageSlot| match slot.count.checked_sub(count) {
            Some(spare) => (0, spare),
            None => (1, count - slot.count),
        };
        match free.min_by_key(|slot| fit(slot)) {
            Some(slot) => {
                slot.count = slot.count.max(count);
                slot.busy = life.last;
                slot.lives.push(place);
            }
            None => slots.push(StorageSlot { count, busy: life.last, lives: vec![place] }),
        }
    }
    slots
}

/// Bytes behind data and diffs of blobs that may share.
fn allocated<T: Element, D: Device>(blobs: &[&Blob<T, D>]) -> Result<[usize; 2]> {
    let mut sum = [0; 2];
    for (place, blob) in blobs.iter().enumerate() {
        let bytes = blob.allocated_bytes()?;
        let before = &blobs[..place];
        if !before.iter().any(|other| other.shares_data_with(blob)) {
            sum[0] += bytes[0];
        }
        if !before.iter().any(|other| other.shares_diff_with(blob)) {
            sum[1] += bytes[1];
        }
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(first: usize, last: usize) -> LiveRange {
        LiveRange { blobs: Vec::new(), first, last }
    }

    #[test]
    fn a_slot_has_one_life_at_a_time_and_room_for_each() {
        // A chain, a branch that lives on beside it, and what follows both.
        let lives = [life(0, 1), life(1, 4), life(2, 3), life(3, 4), life(5, 6)];
        let counts = [8, 6, 5, 9, 2];
        let slots = slots(&lives, &counts);
        for slot in &slots {
            let held: Vec<_> = slot.lives.iter().map(|&place| &lives[place]).collect();
            assert!(held.windows(2).all(|pair| pair[0].last < pair[1].first));
            assert_eq!(slot.lives.iter().map(|&place| counts[place]).max(), Some(slot.count));
        }
        let held: Vec<_> = slots.iter().map(|slot| slot.lives.clone()).collect();
        assert_eq!(held, [vec![0, 2], vec![1, 4], vec![3]]);
    }
}
