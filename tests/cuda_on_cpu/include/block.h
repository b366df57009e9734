// The block of threads that runs at the moment, as its kernel sees it.
#pragma once

#include <stdint.h>
#include <string.h>


namespace cuda_on_cpu {

struct Index {
    unsigned x, y, z;
};

// A thread of a block, as far as kernels look at it.
struct Thread {
    Index at;
    int lane, warp;
};

struct Block {
    Index at, threads, blocks;
};

extern thread_local Thread *running;
extern thread_local Block *block;

// Waits for all threads of the block at the barrier of this number.
void meet_block(unsigned barrier);

// Waits for the lanes of the mask.
void meet_warp(unsigned mask);

// Where the lanes of the running thread's warp leave values for each other.
uint64_t *mailbox();

// What lane `from` gives for `value`.
template <class T> T exchange(unsigned mask, T value, int from) {
    static_assert(sizeof(T) <= 8);
    uint64_t *box = mailbox();
    memcpy(&box[running->lane], &value, sizeof value);
    meet_warp(mask);
    memcpy(&value, &box[from], sizeof value);
    meet_warp(mask);
    return value;
}

}  // namespace cuda_on_cpu
