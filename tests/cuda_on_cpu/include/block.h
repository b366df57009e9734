// The current block and thread, as kernels see them.
#pragma once

#include <stdint.h>
#include <string.h>

namespace cuda_on_cpu {

struct Index {
    unsigned x, y, z;
};

// A thread of a block, as kernels see it.
struct Thread {
    Index index;
    int lane, warp;
};

struct Block {
    Index index, threads, blocks;
};

extern thread_local Thread *current_thread;
extern thread_local Block *current_block;

// Waits until all threads of the block have reached the barrier with this number.
void wait_for_block(unsigned barrier);

// Waits until all lanes of the mask have called this function.
void wait_for_warp(unsigned mask);

// Returns the slots, one per lane, through which the current warp exchanges values.
uint64_t *warp_slots();

// Returns the `value` that lane `from` passes.
template <class T> T exchange(unsigned mask, T value, int from) {
    static_assert(sizeof(T) <= 8);
    uint64_t *slots = warp_slots();
    memcpy(&slots[current_thread->lane], &value, sizeof value);
    wait_for_warp(mask);
    memcpy(&value, &slots[from], sizeof value);
    wait_for_warp(mask);
    return value;
}

}  // namespace cuda_on_cpu
