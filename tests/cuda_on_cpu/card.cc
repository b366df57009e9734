#include "card.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <algorithm>

#include "execution.h"

namespace cuda_on_cpu {

thread_local Card *current_card;

namespace {

#ifdef __SANITIZE_ADDRESS__
// A build with the address sanitizer needs no guard bytes, because the sanitizer itself detects
// writes out of bounds and writes to freed blocks.
constexpr size_t GUARD_BYTES = 0;
constexpr size_t MAX_FREED_BYTES = 0;
#else
// Number of guard bytes before and after each allocated block of memory. A changed guard byte
// reveals a write out of bounds.
constexpr size_t GUARD_BYTES = 256;
// Maximum total size of freed blocks that stay poisoned, in bytes. A changed byte in a poisoned
// block reveals a write to freed memory.
constexpr size_t MAX_FREED_BYTES = 32 << 20;
#endif
constexpr int GUARD = 0xa5, POISON = 0xff;

bool is_all(uint64_t start, size_t bytes, int value) {
    const auto *at = reinterpret_cast<const unsigned char *>(start);
    for (size_t i = 0; i < bytes; i++) {
        if (at[i] != value) return false;
    }
    return true;
}

bool is_within(const std::map<uint64_t, size_t> &blocks, uint64_t address, size_t bytes) {
    auto next = blocks.upper_bound(address);
    if (next == blocks.begin()) return false;
    const auto &[start, size] = *--next;
    return bytes <= size && address - start <= size - bytes;
}

// Aborts the process, because the driver call that queued the faulty kernel has already returned.
void die(const char *message) {
    fprintf(stderr, "CUDA on the CPU: %s\n", message);
    abort();
}

}  // namespace

Queue::Queue(Card *card)
    : card(card), progress(std::make_shared<Progress>(Progress{this, 0})) {}

Queue::~Queue() {
    progress->queue = nullptr;
    progress->done = queued;
}

void Queue::add(std::function<Code()> item) {
    work.push_back(std::move(item));
    queued++;
}

void Queue::run(uint64_t count) {
    while (progress->done < count && !work.empty()) {
        const auto item = std::move(work.front());
        work.pop_front();
        // After a failure, the GPU does not execute queued work.
        const Code code = card->failed ? card->failed : item();
        progress->done++;
        if (code && !card->failed) card->failed = code;
    }
}

Code Card::allocate(uint64_t *address, size_t bytes) {
    if (bytes == 0) return INVALID_VALUE;
    if (bytes > capacity - allocated_bytes) return OUT_OF_MEMORY;
    void *start;
    if (posix_memalign(&start, 256, bytes + 2 * GUARD_BYTES)) return OUT_OF_MEMORY;
    memset(start, GUARD, GUARD_BYTES);
    *address = reinterpret_cast<uint64_t>(start) + GUARD_BYTES;
    memset(reinterpret_cast<void *>(*address), POISON, bytes);
    memset(reinterpret_cast<void *>(*address + bytes), GUARD, GUARD_BYTES);
    memory[*address] = bytes;
    memory_added(*address, bytes, number);
    allocated_bytes += bytes;
    peak_allocated = std::max(peak_allocated, allocated_bytes);
    reserved = std::max(reserved, allocated_bytes);
    peak_reserved = std::max(peak_reserved, reserved);
    return SUCCESS;
}

Code Card::release(uint64_t address) {
    const auto block = memory.find(address);
    if (block == memory.end()) return INVALID_VALUE;
    const size_t bytes = block->second;
    memory.erase(block);
    memory_removed(address);
    allocated_bytes -= bytes;
    if (!is_all(address - GUARD_BYTES, GUARD_BYTES, GUARD) ||
        !is_all(address + bytes, GUARD_BYTES, GUARD)) {
        die("a kernel wrote out of bounds");
    }
    memset(reinterpret_cast<void *>(address), POISON, bytes);
    freed.emplace_back(address, bytes);
    freed_bytes += bytes;
    trim_freed(MAX_FREED_BYTES);
    return SUCCESS;
}

void Card::trim_pool() {
    trim_freed(0);
    reserved = allocated_bytes;
}

bool Card::holds(uint64_t address, size_t bytes) const { return is_within(memory, address, bytes); }

void Card::drain() {
    for (size_t i = 0; i < queues.size(); i++) queues[i]->run(queues[i]->queued);
}

void Card::trim_freed(size_t kept) {
    while (freed_bytes > kept) {
        const auto [address, bytes] = freed.front();
        freed.pop_front();
        freed_bytes -= bytes;
        if (!is_all(address, bytes, POISON)) die("a kernel wrote to freed memory");
        free(reinterpret_cast<void *>(address - GUARD_BYTES));
    }
}

Card &card(int number) {
    static Card cards[CARDS];
    static const bool initialized = [] {
        for (int i = 0; i < CARDS; i++) {
            cards[i].number = i;
            cards[i].capacity = i == 3 ? size_t(1) << 20 : size_t(2) << 30;
        }
        return true;
    }();
    (void)initialized;
    return cards[number];
}

int driver_version() {
    const char *version = getenv("CUDA_ON_CPU_DRIVER");
    return version ? atoi(version) : 13000;
}

int capability() {
    const char *value = getenv("CUDA_ON_CPU_CAPABILITY");
    return value ? atoi(value) : 80;
}

bool has_memory_pools(int card) { return card != 4 && driver_version() >= 11020; }

bool kernel_fails(const Card &card, const std::string &kernel) {
    const char *failing = getenv("CUDA_ON_CPU_FAILING");
    return card.number == 2 && kernel == (failing ? failing : "exp_f64");
}

void require_device_memory(const void *address) {
    if (pinned().holds(address, 1)) die("a kernel used an atomic operation on host memory");
}

bool Pinned::holds(const void *address, size_t bytes) const {
    return is_within(blocks, reinterpret_cast<uint64_t>(address), bytes);
}

Pinned &pinned() {
    static Pinned all;
    return all;
}

std::recursive_mutex &driver_lock() {
    static std::recursive_mutex mutex;
    return mutex;
}

}  // namespace cuda_on_cpu
