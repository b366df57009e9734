// A GPU that is not there: its memory is the host's, and its queues run when they are waited for.
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

// How far a queue is, which events remember longer than the queue may live.
struct Progress {
    struct Queue *queue;
    uint64_t done;
};

// A queue. Nothing in it runs before somebody waits: a program that forgets to wait finds what
// was there before.
struct Queue {
    struct Card *card;
    std::deque<std::function<Code()>> work;
    uint64_t queued = 0;
    std::shared_ptr<Progress> progress;

    explicit Queue(Card *card);
    ~Queue();
    void add(std::function<Code()> item);
    // Runs what is not done of the first `count` items ever queued.
    void run(uint64_t count);
};

struct Event {
    std::shared_ptr<Progress> of;
    uint64_t place = 0;
};

struct Card {
    int number;
    size_t capacity;
    // Once a kernel has failed, everything does.
    Code failed = SUCCESS;
    unsigned retained = 0;
    size_t held = 0;
    // Sizes by addresses.
    std::map<uint64_t, size_t> memory;
    // Freed not long ago: written to by nobody.
    std::deque<std::pair<uint64_t, size_t>> freed;
    size_t freed_bytes = 0;
    std::vector<std::unique_ptr<Queue>> queues;

    // Memory full of ones, which are NaN.
    Code take(uint64_t *address, size_t bytes);
    Code give(uint64_t address);
    bool holds(uint64_t address, size_t bytes) const;
    // Runs all queues to their ends.
    void drain();
    // Frees for good what was freed before, but for `kept` bytes of it.
    void forget(size_t kept);
};

// The cards of this machine. 0 and 1 are sound. The kernel `exp_f64` fails on 2, as one does that
// writes where it may not. 3 has one MiB of memory.
constexpr int CARDS = 4;
Card &card(int number);

// Whether kernels of this name fail on a card.
bool breaks(const Card &card, const std::string &kernel);

// Pinned host memory, which copies read when they run, and not when they are queued.
struct Pinned {
    std::map<uint64_t, size_t> blocks;
    bool holds(const void *address, size_t bytes) const;
};
Pinned &pinned();

// One call of the driver at a time.
std::recursive_mutex &lock();

// The calling thread's card.
extern thread_local Card *entered;

}  // namespace cuda_on_cpu
