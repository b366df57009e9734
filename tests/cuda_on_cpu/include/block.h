// The current thread block and thread of a simulated kernel, from which the kernel reads its
// indices.
#pragma once

#include <stdint.h>
#include <string.h>

namespace cuda_on_cpu {

struct Index {
    unsigned x, y, z;
};

// Thread of a simulated thread block, with its index, lane and warp.
struct Thread {
    Index index;
    int lane, warp;
};

struct Block {
    Index index, threads, blocks;
};

extern thread_local Thread *current_thread;
extern thread_local Block *current_block;

// Waits until all threads of the block have reached the barrier with the number `barrier`.
void wait_for_block(unsigned barrier);

// Waits until all lanes in `mask` have called `wait_for_warp`.
void wait_for_warp(unsigned mask);

// Returns the array, with one slot per lane, through which the lanes of the current warp exchange
// values.
uint64_t *warp_slots();

// Returns the `value` that lane `from` passed to `exchange`.
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
