//! Memory reuse between the intermediate blobs of a net, and statistics of the memory that a net
//! uses.

use super::graph::{LiveRange, Net};
use crate::{blob::Blob, element::Element, error::Result};

/// The number of bytes that a net has allocated on the host and the device together. Memory that
/// several blobs share counts only once.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 1 dim: 2 } } }
///     layer { type: "InnerProduct" bottom: "x" top: "y" inner_product_param { num_output: 3 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.forward()?;
/// let memory_use = net.memory_use()?;
/// assert_eq!(memory_use.activations, (2 + 3) * 4);
/// assert_eq!(memory_use.param_gradients, 0); // the forward pass allocates no gradients
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Bytes for the values of the layers' bottoms and tops.
    pub activations: usize,
    /// Bytes for the gradients of the layers' bottoms and tops.
    pub gradients: usize,
    /// Bytes for the values of the parameters.
    pub params: usize,
    /// Bytes for the gradients of the parameters.
    pub param_gradients: usize,
}

/// Storage that the blobs of several live ranges share, because these live ranges do not overlap.
struct StorageSlot {
    /// The capacity of the slot in elements.
    count: usize,
    /// The index of the last layer that accesses a blob in the slot.
    last_layer: usize,
    live_ranges: Vec<usize>,
}

impl<T: Element> Net<T> {
    /// Returns the number of bytes that the net has allocated so far. Blobs are allocated lazily,
    /// so a blob that has not been accessed counts as 0 bytes. The result does not include the
    /// scratch buffers inside layers.
    ///
    /// # Errors
    /// Returns [`Error::Borrowed`](crate::Error::Borrowed) while a blob is borrowed mutably.
    pub fn memory_use(&self) -> Result<MemoryUse> {
        let blobs: Vec<_> = self.blobs.iter().map(|net_blob| &net_blob.blob).collect();
        let params: Vec<_> = self.params.iter().map(|param| param.blob()).collect();
        let [activations, gradients] = allocated_bytes(&blobs)?;
        let [params, param_gradients] = allocated_bytes(&params)?;
        Ok(MemoryUse { activations, gradients, params, param_gradients })
    }

    /// Makes this net inference-only, so that its intermediate blobs can share storage.
    pub(super) fn reuse_memory(&mut self) -> Result<()> {
        for node in &mut self.nodes {
            node.backward = false;
            node.propagate_bottoms.fill(false);
            node.propagate_params.fill(false);
        }
        self.live_ranges = Some(self.reusable_ranges());
        self.share_memory()
    }

    /// Assigns storage to the intermediate blobs, such that blobs with disjoint live ranges share
    /// storage. Does nothing if the net does not reuse memory.
    pub(super) fn share_memory(&mut self) -> Result<()> {
        let Self { device, blobs, live_ranges: Some(ranges), .. } = self else { return Ok(()) };
        let count = |range: &LiveRange| range.blobs.iter().map(|&id| blobs[id].blob.count()).max();
        let counts: Vec<usize> = ranges.iter().filter_map(count).collect();
        for slot in assign_slots(ranges, &counts) {
            let storage = Blob::new(device, &[slot.count])?;
            for &id in slot.live_ranges.iter().flat_map(|&range| &ranges[range].blobs) {
                blobs[id].blob.use_storage_of(&storage)?;
            }
        }
        Ok(())
    }

    /// Returns the live ranges that can share storage, in the order of their first layers. The
    /// caller must compute the live ranges before [`share_memory`](Self::share_memory) assigns
    /// storage to the blobs.
    fn reusable_ranges(&self) -> Vec<LiveRange> {
        let mut ranges: Vec<LiveRange> = Vec::new();
        // Exclude the net's outputs, and the tops of layers without bottoms. The caller may write
        // the tops of a layer without bottoms, or the layer may fill its tops only once.
        let mut excluded_blobs = self.outputs.clone();
        for (index, node) in self.nodes.iter().enumerate() {
            for &id in node.bottoms.iter().chain(&node.tops) {
                let blob = &self.blobs[id].blob;
                let shares_data = |&other: &usize| blob.shares_data_with(&self.blobs[other].blob);
                let range = ranges.iter().position(|range| range.blobs.iter().any(shares_data));
                let range = range.unwrap_or_else(|| {
                    ranges.push(LiveRange { blobs: vec![], first: index, last: index });
                    ranges.len() - 1
                });
                let range = &mut ranges[range];
                if !range.blobs.contains(&id) {
                    range.blobs.push(id);
                }
                range.last = index;
            }
            if node.bottoms.is_empty() {
                excluded_blobs.extend(&node.tops);
            }
        }
        // Exclude a blob if a layer holds a handle to the blob's storage, because the layer may
        // rely on the contents of the storage.
        let handles =
            |range: &LiveRange| range.blobs.first().map(|&id| self.blobs[id].blob.data_ref_count());
        ranges.retain(|range| {
            !range.blobs.iter().any(|id| excluded_blobs.contains(id))
                && handles(range) == Some(range.blobs.len())
        });
        ranges
    }
}

/// Assigns a storage slot to each live range, in the order of `ranges`. `counts` holds the number
/// of elements that the storage of each live range needs. A live range gets the smallest free slot
/// that is large enough. If all free slots are too small, the largest free slot grows. If no slot
/// is free, `assign_slots` creates a new slot.
fn assign_slots(ranges: &[LiveRange], counts: &[usize]) -> Vec<StorageSlot> {
    let mut slots: Vec<StorageSlot> = Vec::new();
    for (index, (range, &count)) in ranges.iter().zip(counts).enumerate() {
        let free = slots.iter_mut().filter(|slot| slot.last_layer < range.first);
        let fit_cost = |slot: &StorageSlot| match slot.count.checked_sub(count) {
            Some(spare) => (0, spare),
            None => (1, count - slot.count),
        };
        match free.min_by_key(|slot| fit_cost(slot)) {
            Some(slot) => {
                slot.count = slot.count.max(count);
                slot.last_layer = range.last;
                slot.live_ranges.push(index);
            }
            None => {
                slots.push(StorageSlot { count, last_layer: range.last, live_ranges: vec![index] })
            }
        }
    }
    slots
}

/// Returns the number of bytes allocated for the data, and for the diffs, of `blobs`; storage that
/// several blobs share counts once.
fn allocated_bytes<T: Element>(blobs: &[&Blob<T>]) -> Result<[usize; 2]> {
    let mut sum = [0; 2];
    for (index, blob) in blobs.iter().enumerate() {
        let bytes = blob.allocated_bytes()?;
        let earlier_blobs = &blobs[..index];
        if !earlier_blobs.iter().any(|other| other.shares_data_with(blob)) {
            sum[0] += bytes[0];
        }
        if !earlier_blobs.iter().any(|other| other.shares_diff_with(blob)) {
            sum[1] += bytes[1];
        }
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assigned_slots_hold_disjoint_live_ranges_and_fit_the_largest() {
        // The live ranges are those of a chain of layers, a parallel branch, and a layer after the
        // branch.
        let ranges = [(0, 1), (1, 4), (2, 3), (3, 4), (5, 6)];
        let ranges = ranges.map(|(first, last)| LiveRange { blobs: Vec::new(), first, last });
        let counts = [8, 6, 5, 9, 2];
        let slots = assign_slots(&ranges, &counts);
        for slot in &slots {
            let assigned_ranges: Vec<_> =
                slot.live_ranges.iter().map(|&index| &ranges[index]).collect();
            assert!(assigned_ranges.windows(2).all(|pair| pair[0].last < pair[1].first));
            let max_count = slot.live_ranges.iter().map(|&index| counts[index]).max();
            assert_eq!(max_count, Some(slot.count));
        }
        let slot_ranges: Vec<_> = slots.iter().map(|slot| slot.live_ranges.clone()).collect();
        assert_eq!(slot_ranges, [vec![0, 2], vec![1, 4], vec![3]]);
    }
}
