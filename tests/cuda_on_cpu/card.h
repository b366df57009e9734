// Simulated GPUs (cards) in host memory. The work of a queue runs only when a call waits for the
// queue.
#pragma once

#include <stdint.h>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "codes.h"

namespace cuda_on_cpu {

// Count of the work items that a queue has run, shared with the queue's events, because an event
// may outlive the queue.
struct Progress {
    struct Queue *queue;
    uint64_t done;
};

// Queue whose work runs only when a call waits for the queue, so that a missing wait yields stale
// data.
struct Queue {
    struct Card *card;
    std::deque<std::function<Code()>> work;
    uint64_t queued = 0;
    std::shared_ptr<Progress> progress;

    explicit Queue(Card *card);
    ~Queue();
    void add(std::function<Code()> item);
    // Runs queued work items until `count` items have run since the queue was created.
    void run(uint64_t count);
};

struct Event {
    // Whether the event stores the time at which it occurs.
    bool is_timed;
    std::shared_ptr<Progress> progress;
    // Number of work items of the queue that must have run before the event has occurred.
    uint64_t count = 0;
    // Time at which the event has occurred, in milliseconds.
    std::shared_ptr<double> time;

    bool has_occurred() const { return progress && progress->done >= count; }
};

struct Card {
    int number;
    size_t capacity;
    // Result code of the first failed work item. Until the process ends, later driver calls for
    // this simulated GPU return the code `failed`.
    Code failed = SUCCESS;
    unsigned retained = 0;
    // PTX of the modules that are loaded.
    std::multiset<std::string> modules;
    size_t allocated_bytes = 0;
    // Largest number of allocated bytes, the number of bytes that the memory pool has reserved, and
    // the largest number of reserved bytes.
    size_t peak_allocated = 0, reserved = 0, peak_reserved = 0;
    // Sizes of the allocated blocks in bytes, keyed by address.
    std::map<uint64_t, size_t> memory;
    // Recently freed blocks of memory, which stay poisoned so that the driver detects writes to
    // freed memory.
    std::deque<std::pair<uint64_t, size_t>> freed;
    size_t freed_bytes = 0;
    std::vector<std::unique_ptr<Queue>> queues;

    // Allocates memory and sets every bit to 1, so that floating-point elements are NaN.
    Code allocate(uint64_t *address, size_t bytes);
    Code release(uint64_t address);
    // Returns the unused reserved memory of the memory pool to the simulated GPU.
    void trim_pool();
    bool holds(uint64_t address, size_t bytes) const;
    // Runs all queued work items of all queues of the simulated GPU.
    void drain();
    // Frees the oldest poisoned blocks until at most `kept` bytes of poisoned blocks remain.
    void trim_freed(size_t kept);
};

// Number of simulated GPUs. Simulated GPUs 0 and 1 work, on GPU 2 the kernel `exp_f64` fails with
// an illegal address, GPU 3 has only 1 MiB of memory, and GPU 4 has no memory pools.
constexpr int CARDS = 5;
Card &card(int number);

// Returns the CUDA version of the simulated driver, 1000 · major + 10 · minor. The environment
// variable `CUDA_ON_CPU_DRIVER` sets the version; the default is CUDA 13.0.
int driver_version();

// Returns the compute capability of the simulated GPUs, 10 · major + minor. The environment
// variable `CUDA_ON_CPU_CAPABILITY` sets the capability; the default is 8.0.
int capability();

// Returns whether a simulated GPU has memory pools, which came with CUDA 11.2.
bool has_memory_pools(int card);

// Returns whether the kernel named `kernel` must fail on the simulated GPU `card`. The environment
// variable `CUDA_ON_CPU_FAILING` names the kernel that fails on GPU 2; the default is `exp_f64`.
bool kernel_fails(const Card &card, const std::string &kernel);

// Pinned host memory. A queued copy reads pinned memory when the copy runs, not when the copy is
// queued.
struct Pinned {
    std::map<uint64_t, size_t> blocks;
    bool holds(const void *address, size_t bytes) const;
};
Pinned &pinned();

// Aborts the process if `address` is in pinned host memory, because not every PCIe bus supports
// atomic operations on host memory.
void require_device_memory(const void *address);

// Returns the lock that serializes all driver calls.
std::recursive_mutex &driver_lock();

// Simulated GPU whose context is current in the calling thread, or null.
extern thread_local Card *current_card;

}  // namespace cuda_on_cpu
