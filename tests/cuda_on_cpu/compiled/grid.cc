// Execution of kernels that g++ has compiled: the thread blocks of a grid run one after the other.

#include <algorithm>
#include <memory>

#include "../execution.h"
#include "../include/registry.h"
#include "fiber.h"
#include "shared_memory.h"

namespace cuda_on_cpu {

thread_local Thread *current_thread;
thread_local Block *current_block;

namespace {

enum class State { Ready, AtBlock, AtWarp, Done };

// Thread of a simulated thread block, with its execution state and its fiber.
struct Worker {
    Thread thread;
    State state;
    // What the thread waits for: the number of a block barrier, or the mask of lanes at a warp
    // barrier.
    unsigned awaits;
    std::unique_ptr<Fiber> fiber;
};

struct Grid {
    void (*call)(void **);
    std::vector<void *> arguments;
    std::vector<Worker> workers;
    std::vector<uint64_t> exchange_slots;
    // Fibers whose simulated threads have ended, kept for reuse.
    std::vector<std::unique_ptr<Fiber>> idle_fibers;
};

thread_local Grid *current_grid;

Worker &self() { return current_grid->workers[current_thread->warp * 32 + current_thread->lane]; }

void run_thread() {
    current_grid->call(current_grid->arguments.data());
    self().state = State::Done;
}

void wait(State state, unsigned awaits) {
    Worker &worker = self();
    worker.state = state;
    worker.awaits = awaits;
    worker.fiber->pause();
}

// Runs every ready thread of the block until the thread waits at a barrier or ends. Returns whether
// any thread was ready.
bool run_ready(Grid &grid) {
    bool any = false;
    for (Worker &worker : grid.workers) {
        if (worker.state != State::Ready) continue;
        any = true;
        if (!worker.fiber) {
            if (grid.idle_fibers.empty()) grid.idle_fibers.push_back(std::make_unique<Fiber>());
            worker.fiber = std::move(grid.idle_fibers.back());
            grid.idle_fibers.pop_back();
            worker.fiber->prepare(run_thread);
        }
        current_thread = &worker.thread;
        worker.fiber->resume();
        if (worker.state == State::Done) grid.idle_fibers.push_back(std::move(worker.fiber));
    }
    return any;
}

// Releases each warp in which all lanes of the awaited mask have reached the warp barrier. Returns
// whether any warp was released.
bool release_warps(Grid &grid) {
    bool any = false;
    for (size_t first = 0; first < grid.workers.size(); first += 32) {
        const size_t end = std::min(first + 32, grid.workers.size());
        unsigned alive = 0, waiting = 0, awaited = 0;
        for (size_t i = first; i < end; i++) {
            const unsigned lane = 1u << (i - first);
            if (grid.workers[i].state != State::Done) alive |= lane;
            if (grid.workers[i].state == State::AtWarp) {
                waiting |= lane;
                awaited |= grid.workers[i].awaits;
            }
        }
        if (waiting == 0 || (awaited & alive & ~waiting) != 0) continue;
        any = true;
        for (size_t i = first; i < end; i++) {
            if (grid.workers[i].state == State::AtWarp) grid.workers[i].state = State::Ready;
        }
    }
    return any;
}

// Releases all threads of the block if all of them wait at the same barrier, or else sets `error`
// to a description of the mismatch.
bool release_block(Grid &grid, std::string &error) {
    const auto count = [&](State state) {
        return std::count_if(grid.workers.begin(), grid.workers.end(),
                             [=](const Worker &worker) { return worker.state == state; });
    };
    const auto waiting = count(State::AtBlock), done = count(State::Done);
    if (waiting == 0) {
        error = "some lanes wait for other lanes of their warp, which never arrive";
        return false;
    }
    if (done > 0) {
        error = std::to_string(done) +
                " thread(s) ended while other threads wait in __syncthreads()";
        return false;
    }
    if (waiting < long(grid.workers.size())) {
        error = "some threads wait in __syncthreads() while other threads wait in a warp operation";
        return false;
    }
    for (Worker &worker : grid.workers) {
        if (worker.awaits != grid.workers[0].awaits) {
            error = "threads of one block wait in different __syncthreads()";
            return false;
        }
        worker.state = State::Ready;
    }
    return true;
}

std::string run_block(Grid &grid) {
    std::string error;
    for (;;) {
        run_ready(grid);
        const bool ended = std::all_of(grid.workers.begin(), grid.workers.end(),
                                       [](const Worker &w) { return w.state == State::Done; });
        if (ended) return "";
        if (!release_warps(grid) && !release_block(grid, error)) return error;
    }
}

}  // namespace

void wait_for_block(unsigned barrier) { wait(State::AtBlock, barrier); }
void wait_for_warp(unsigned mask) { wait(State::AtWarp, mask); }
uint64_t *warp_slots() { return &current_grid->exchange_slots[current_thread->warp * 32]; }

bool can_execute() { return shared_memory_is_poisoned(); }

const Kernel *find_kernel(const std::string &, const std::string &name) {
    const auto found = kernels().find(name);
    return found == kernels().end() ? nullptr : &found->second;
}

std::vector<size_t> argument_sizes(const Kernel &kernel) { return kernel.arguments; }

// Compiled kernels need no record of memory, because guard bytes around each block reveal writes
// outside the block.
void memory_added(uint64_t, size_t, int) {}
void memory_removed(uint64_t) {}
void memory_written(uint64_t, size_t) {}
void memory_copied(uint64_t, uint64_t, size_t) {}

std::string run(Launch &launch) {
    // Fibers of earlier launches, kept for reuse. A failed launch destroys the fibers of its
    // waiting threads.
    static thread_local std::vector<std::unique_ptr<Fiber>> idle_fibers;
    const Index threads = launch.threads;
    Grid grid;
    grid.call = launch.kernel->call;
    for (auto &argument : launch.arguments) grid.arguments.push_back(argument.data());
    grid.workers.resize(size_t(threads.x) * threads.y * threads.z);
    grid.exchange_slots.resize((grid.workers.size() + 31) / 32 * 32);
    grid.idle_fibers = std::move(idle_fibers);
    poison_shared_memory();
    // Construct the `thread_local` vector again, because `poison_shared_memory` has overwritten it.
    new (&idle_fibers) std::vector<std::unique_ptr<Fiber>>();
    for (size_t i = 0; i < grid.workers.size(); i++) {
        const unsigned n = i;
        const unsigned row = n / threads.x;
        grid.workers[i].thread = {{n % threads.x, row % threads.y, row / threads.y},
                                  int(n % 32),
                                  int(n / 32)};
    }
    current_grid = &grid;
    std::string error;
    Block shape = {{0, 0, 0}, threads, launch.blocks};
    current_block = &shape;
    for (unsigned z = 0; z < launch.blocks.z && error.empty(); z++) {
        for (unsigned y = 0; y < launch.blocks.y && error.empty(); y++) {
            for (unsigned x = 0; x < launch.blocks.x && error.empty(); x++) {
                shape.index = {x, y, z};
                for (Worker &worker : grid.workers) worker.state = State::Ready;
                error = run_block(grid);
            }
        }
    }
    idle_fibers = std::move(grid.idle_fibers);
    return error;
}

}  // namespace cuda_on_cpu
