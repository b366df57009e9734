#include "grid.h"

#include <algorithm>
#include <memory>

#include "fiber.h"

namespace cuda_on_cpu {

thread_local Thread *running;
thread_local Block *block;

namespace {

enum class State { Ready, AtBlock, AtWarp, Done };

// A thread of a block, and how far it is.
struct Worker {
    Thread thread;
    State state;
    // Which barrier, or which lanes, it waits at.
    unsigned place;
    std::unique_ptr<Fiber> fiber;
};

struct Running {
    void (*call)(void **);
    std::vector<void *> arguments;
    std::vector<Worker> workers;
    std::vector<uint64_t> mail;
    // Stacks of threads that are done: the next ones go on with them.
    std::vector<std::unique_ptr<Fiber>> idle;
};

thread_local Running *current;

Worker &self() { return current->workers[running->warp * 32 + running->lane]; }

void run_thread() {
    current->call(current->arguments.data());
    self().state = State::Done;
}

void wait(State state, unsigned place) {
    Worker &worker = self();
    worker.state = state;
    worker.place = place;
    worker.fiber->pause();
}

// Runs every thread that can to where it waits or ends. Whether there was one.
bool advance(Running &all) {
    bool any = false;
    for (Worker &worker : all.workers) {
        if (worker.state != State::Ready) continue;
        any = true;
        if (!worker.fiber) {
            if (all.idle.empty()) all.idle.push_back(std::make_unique<Fiber>());
            worker.fiber = std::move(all.idle.back());
            all.idle.pop_back();
            worker.fiber->prepare(run_thread);
        }
        running = &worker.thread;
        worker.fiber->resume();
        if (worker.state == State::Done) all.idle.push_back(std::move(worker.fiber));
    }
    return any;
}

// Lets the lanes of a warp go on that have met all the lanes they wait for.
bool release_warps(Running &all) {
    bool any = false;
    for (size_t first = 0; first < all.workers.size(); first += 32) {
        const size_t end = std::min(first + 32, all.workers.size());
        unsigned alive = 0, waiting = 0, wanted = 0;
        for (size_t i = first; i < end; i++) {
            const unsigned lane = 1u << (i - first);
            if (all.workers[i].state != State::Done) alive |= lane;
            if (all.workers[i].state == State::AtWarp) {
                waiting |= lane;
                wanted |= all.workers[i].place;
            }
        }
        if (waiting == 0 || (wanted & alive & ~waiting) != 0) continue;
        any = true;
        for (size_t i = first; i < end; i++) {
            if (all.workers[i].state == State::AtWarp) all.workers[i].state = State::Ready;
        }
    }
    return any;
}

// Lets all threads go on when all are at the same barrier. `wrong` tells why that cannot be.
bool release_block(Running &all, std::string &wrong) {
    const auto count = [&](State state) {
        return std::count_if(all.workers.begin(), all.workers.end(),
                             [=](const Worker &worker) { return worker.state == state; });
    };
    const auto waiting = count(State::AtBlock), done = count(State::Done);
    if (waiting == 0) {
        wrong = "lanes wait for others of their warp that never come";
        return false;
    }
    if (done > 0) {
        wrong = std::to_string(done) + " threads have ended that others wait for in __syncthreads()";
        return false;
    }
    if (waiting < long(all.workers.size())) {
        wrong = "some threads are in __syncthreads() and others wait within their warp";
        return false;
    }
    for (Worker &worker : all.workers) {
        if (worker.place != all.workers[0].place) {
            wrong = "threads of one block are in different __syncthreads()";
            return false;
        }
        worker.state = State::Ready;
    }
    return true;
}

std::string run_block(Running &all) {
    std::string wrong;
    for (;;) {
        advance(all);
        const bool ended = std::all_of(all.workers.begin(), all.workers.end(), [](const Worker &w) {
            return w.state == State::Done;
        });
        if (ended) return "";
        if (!release_warps(all) && !release_block(all, wrong)) return wrong;
    }
}

}  // namespace

void meet_block(unsigned barrier) { wait(State::AtBlock, barrier); }
void meet_warp(unsigned mask) { wait(State::AtWarp, mask); }
uint64_t *mailbox() { return &current->mail[running->warp * 32]; }

std::string run(Launch &launch) {
    // Stacks of earlier launches are used again. One that was left waiting is not.
    static thread_local std::vector<std::unique_ptr<Fiber>> idle;
    const Index threads = launch.threads;
    Running all;
    all.call = launch.kernel->call;
    for (auto &argument : launch.arguments) all.arguments.push_back(argument.data());
    all.workers.resize(size_t(threads.x) * threads.y * threads.z);
    all.mail.resize((all.workers.size() + 31) / 32 * 32);
    all.idle = std::move(idle);
    for (size_t i = 0; i < all.workers.size(); i++) {
        const unsigned n = i;
        all.workers[i].thread = {{n % threads.x, n / threads.x % threads.y, n / (threads.x * threads.y)},
                                 int(n % 32),
                                 int(n / 32)};
    }
    current = &all;
    std::string wrong;
    Block here = {{0, 0, 0}, threads, launch.blocks};
    block = &here;
    for (unsigned z = 0; z < launch.blocks.z && wrong.empty(); z++) {
        for (unsigned y = 0; y < launch.blocks.y && wrong.empty(); y++) {
            for (unsigned x = 0; x < launch.blocks.x && wrong.empty(); x++) {
                here.at = {x, y, z};
                for (Worker &worker : all.workers) worker.state = State::Ready;
                // What a block finds there is whatever was left: NaN shows who reads it.
                if (launch.shared) memset(launch.kernel->shared(), 0xff, launch.shared);
                wrong = run_block(all);
            }
        }
    }
    idle = std::move(all.idle);
    return wrong;
}

}  // namespace cuda_on_cpu
