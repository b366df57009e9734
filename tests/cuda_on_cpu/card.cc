#include "card.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace cuda_on_cpu {

thread_local Card *entered;

namespace {

#ifdef __SANITIZE_ADDRESS__
// The sanitizer watches what is beside a block, and blocks that were freed.
constexpr size_t MARGIN = 0;
constexpr size_t KEPT = 0;
#else
// Bytes before and behind a block, which nobody may write.
constexpr size_t MARGIN = 256;
// Freed bytes that are watched.
constexpr size_t KEPT = 32 << 20;
#endif
constexpr int BESIDE = 0xa5, POISON = 0xff;

bool is_all(uint64_t start, size_t bytes, int value) {
    const auto *at = reinterpret_cast<const unsigned char *>(start);
    for (size_t i = 0; i < bytes; i++) {
        if (at[i] != value) return false;
    }
    return true;
}

bool inside(const std::map<uint64_t, size_t> &blocks, uint64_t address, size_t bytes) {
    auto next = blocks.upper_bound(address);
    if (next == blocks.begin()) return false;
    const auto &[start, size] = *--next;
    return bytes <= size && address - start <= size - bytes;
}

// There is nobody to return an error to.
void wrong(const char *what) {
    fprintf(stderr, "CUDA on the CPU: %s\n", what);
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
        const Code code = item();
        progress->done++;
        if (code && !card->failed) card->failed = code;
    }
}

Code Card::take(uint64_t *address, size_t bytes) {
    if (bytes == 0) return INVALID_VALUE;
    if (bytes > capacity - held) drain();
    if (bytes > capacity - held) return OUT_OF_MEMORY;
    void *start;
    if (posix_memalign(&start, 256, bytes + 2 * MARGIN)) return OUT_OF_MEMORY;
    memset(start, BESIDE, MARGIN);
    *address = reinterpret_cast<uint64_t>(start) + MARGIN;
    memset(reinterpret_cast<void *>(*address), POISON, bytes);
    memset(reinterpret_cast<void *>(*address + bytes), BESIDE, MARGIN);
    memory[*address] = bytes;
    held += bytes;
    return SUCCESS;
}

Code Card::give(uint64_t address) {
    const auto block = memory.find(address);
    if (block == memory.end()) return INVALID_VALUE;
    const size_t bytes = block->second;
    memory.erase(block);
    held -= bytes;
    if (!is_all(address - MARGIN, MARGIN, BESIDE) || !is_all(address + bytes, MARGIN, BESIDE)) {
        wrong("a kernel wrote beside its operands");
    }
    memset(reinterpret_cast<void *>(address), POISON, bytes);
    freed.emplace_back(address, bytes);
    freed_bytes += bytes;
    forget(KEPT);
    return SUCCESS;
}

bool Card::holds(uint64_t address, size_t bytes) const { return inside(memory, address, bytes); }

void Card::drain() {
    for (size_t i = 0; i < queues.size(); i++) queues[i]->run(queues[i]->queued);
}

void Card::forget(size_t kept) {
    while (freed_bytes > kept) {
        const auto [address, bytes] = freed.front();
        freed.pop_front();
        freed_bytes -= bytes;
        if (!is_all(address, bytes, POISON)) wrong("a kernel wrote to memory that was freed");
        free(reinterpret_cast<void *>(address - MARGIN));
    }
}

Card &card(int number) {
    static Card cards[CARDS];
    static const bool made = [] {
        for (int i = 0; i < CARDS; i++) {
            cards[i].number = i;
            cards[i].capacity = i == 3 ? size_t(1) << 20 : size_t(2) << 30;
        }
        return true;
    }();
    (void)made;
    return cards[number];
}

bool breaks(const Card &card, const std::string &kernel) {
    return card.number == 2 && kernel == "exp_f64";
}

bool Pinned::holds(const void *address, size_t bytes) const {
    return inside(blocks, reinterpret_cast<uint64_t>(address), bytes);
}

Pinned &pinned() {
    static Pinned all;
    return all;
}

std::recursive_mutex &lock() {
    static std::recursive_mutex one;
    return one;
}

}  // namespace cuda_on_cpu
