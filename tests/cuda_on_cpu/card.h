// Simulated GPUs, which use host memory. A queue runs only when a call waits for it.
#pragma once

#include <stdint.h>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "codes.h"

namespace cuda_on_cpu {

// Progress of a queue, shared with its events, because they may outlive the queue.
struct Progress {
    struct Queue *queue;
    uint64_t done;
};

// A queue, whose items run only when a call waits for them. A missing wait thus yields stale data.
struct Queue {
    struct Card *card;
    std::deque<std::function<Code()>> work;
    uint64_t queued = 0;
    std::shared_ptr<Progress> progress;

    explicit Queue(Card *card);
    ~Queue();
    void add(std::function<Code()> item);
    // Runs the items that are still waiting among the first `count` ever queued.
    void run(uint64_t count);
};

struct Event {
    std::shared_ptr<Progress> progress;
    // Number of items queued before the event.
    uint64_t count = 0;
};

struct Card {
    int number;
    size_t capacity;
    // Result code of the first failed item, which all later calls on the card return.
    Code failed = SUCCESS;
    unsigned retained = 0;
    size_t allocated_bytes = 0;
    // Sizes of the allocated blocks, keyed by address.
    std::map<uint64_t, size_t> memory;
    // Recently freed blocks, kept poisoned to detect writes to them.
    std::deque<std::pair<uint64_t, size_t>> freed;
    size_t freed_bytes = 0;
    std::vector<std::unique_ptr<Queue>> queues;

    // Allocates memory in which every bit is set, so that it reads as NaN.
    Code allocate(uint64_t *address, size_t bytes);
    Code release(uint64_t address);
    bool holds(uint64_t address, size_t bytes) const;
    // Runs all items of all queues.
    void drain();
    // Returns freed blocks to the host, oldest first, until at most `kept` bytes remain.
    void trim_freed(size_t kept);
};

// Number of simulated GPUs. GPUs 0 and 1 work. On GPU 2, the kernel `exp_f64` fails as if it had
// accessed an illegal address. GPU 3 has 1 MiB of memory.
constexpr int CARDS = 4;
Card &card(int number);

// Returns whether a kernel of this name fails on a card.
bool kernel_fails(const Card &card, const std::string &kernel);

// Pinned host memory. A copy reads it when the copy runs, not when it is queued.
struct Pinned {
    std::map<uint64_t, size_t> blocks;
    bool holds(const void *address, size_t bytes) const;
};
Pinned &pinned();

// The lock under which every call of the driver runs.
std::recursive_mutex &driver_lock();

// The card whose context is current in the calling thread, or null.
extern thread_local Card *current_card;

}  // namespace cuda_on_cpu
