// Driver functions that allocate, release and copy memory.

#include <stdlib.h>
#include <string.h>

#include "entry.h"
#include "execution.h"

using namespace cuda_on_cpu;

namespace {

// Memory pool of a simulated GPU. The pool stores only the GPU's number, because the struct `Card`
// of the GPU owns all device memory.
struct Pool {
    int card;
};

Queue *queue_of(void *stream) { return static_cast<Queue *>(stream); }

// Returns a function that a queued copy calls when it runs, to get its source bytes. A copy from
// pinned memory reads the pinned memory when the copy runs. Pageable memory is copied to a buffer
// when the copy is queued, as in CUDA.
std::function<const void *()> copy_source(const void *start, size_t bytes) {
    if (pinned().holds(start, bytes)) return [=] { return start; };
    const auto *first = static_cast<const char *>(start);
    auto staged = std::make_shared<std::vector<char>>(first, first + bytes);
    return [=]() -> const void * { return staged->data(); };
}

}  // namespace

ENTRY cuMemPoolCreate(void **pool, const void *properties) {
    LOCK_DRIVER;
    // The struct CUmemPoolProps starts with allocation type, handle types, location type and
    // location id.
    int words[4];
    memcpy(words, properties, sizeof words);
    if (words[0] != 1 || words[1] != 0 || words[2] != 1 || words[3] >= CARDS) return INVALID_VALUE;
    if (!has_memory_pools(words[3])) return NOT_SUPPORTED;
    Card &owner = card(words[3]);
    owner.peak_allocated = owner.reserved = owner.peak_reserved = owner.allocated_bytes;
    *pool = new Pool{words[3]};
    return SUCCESS;
}

ENTRY cuMemPoolDestroy(void *pool) {
    REQUIRE_CARD;
    delete static_cast<Pool *>(pool);
    return SUCCESS;
}

ENTRY cuMemPoolSetAttribute(void *, int attribute, void *) {
    return attribute == 4 ? SUCCESS : INVALID_VALUE;
}

// The simulated driver counts the memory of the whole GPU, because a GPU has at most one pool. Drivers
// before CUDA 11.3 do not report the usage of a pool.
ENTRY cuMemPoolGetAttribute(void *pool, int attribute, void *value) {
    REQUIRE_CARD;
    if (static_cast<Pool *>(pool)->card != card.number || driver_version() < 11030) {
        return INVALID_VALUE;
    }
    auto &bytes = *static_cast<uint64_t *>(value);
    switch (attribute) {
        case 5: bytes = card.reserved; break;
        case 6: bytes = card.peak_reserved; break;
        case 7: bytes = card.allocated_bytes; break;
        case 8: bytes = card.peak_allocated; break;
        default: return INVALID_VALUE;
    }
    return SUCCESS;
}

// The memory that the pool has reserved is not free.
ENTRY cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
    REQUIRE_CARD;
    *total = card.capacity;
    *free_bytes = card.capacity - (has_memory_pools(card.number) ? card.reserved : card.allocated_bytes);
    return SUCCESS;
}

ENTRY cuMemPoolTrimTo(void *, size_t) {
    REQUIRE_CARD;
    card.trim_pool();
    return SUCCESS;
}

ENTRY cuMemAllocFromPoolAsync(uint64_t *address, size_t bytes, void *pool, void *stream) {
    REQUIRE_CARD;
    if (static_cast<Pool *>(pool)->card != card.number || queue_of(stream)->card != &card) {
        return INVALID_VALUE;
    }
    return card.allocate(address, bytes);
}

// Queues the release of device memory, because work that was queued earlier may still use the
// memory.
ENTRY cuMemFreeAsync(uint64_t address, void *stream) {
    REQUIRE_CARD;
    if (!card.memory.count(address)) return INVALID_VALUE;
    queue_of(stream)->add([&card, address] { return card.release(address); });
    return SUCCESS;
}

ENTRY cuMemAlloc_v2(uint64_t *address, size_t bytes) {
    REQUIRE_CARD;
    return card.allocate(address, bytes);
}

// Releases device memory immediately. Queued work that still uses this memory therefore fails. A
// real driver would hide this bug in most cases, because it waits for queued work first.
ENTRY cuMemFree_v2(uint64_t address) {
    REQUIRE_CARD;
    return card.release(address);
}

ENTRY cuMemAllocHost_v2(void **start, size_t bytes) {
    REQUIRE_CARD;
    (void)card;
    if (posix_memalign(start, 4096, bytes)) return OUT_OF_MEMORY;
    memset(*start, 0xff, bytes);
    pinned().blocks[reinterpret_cast<uint64_t>(*start)] = bytes;
    memory_added(reinterpret_cast<uint64_t>(*start), bytes, HOST);
    return SUCCESS;
}

ENTRY cuMemFreeHost(void *start) {
    REQUIRE_CARD;
    if (!pinned().blocks.erase(reinterpret_cast<uint64_t>(start))) return INVALID_VALUE;
    memory_removed(reinterpret_cast<uint64_t>(start));
    free(start);
    return SUCCESS;
}

ENTRY cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) {
    REQUIRE_CARD;
    if (!card.holds(to, bytes)) return INVALID_VALUE;
    queue_of(stream)->add([&card, to, bytes, from = copy_source(from, bytes)] {
        if (!card.holds(to, bytes)) return ILLEGAL_ADDRESS;
        memcpy(reinterpret_cast<void *>(to), from(), bytes);
        memory_written(to, bytes);
        return SUCCESS;
    });
    return SUCCESS;
}

// The environment variable `CUDA_ON_CPU_DOWNLOADS` limits the number of calls that succeed.
ENTRY cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
    REQUIRE_CARD;
    static const char *limit = getenv("CUDA_ON_CPU_DOWNLOADS");
    static int calls = 0;
    if (limit && ++calls > atoi(limit)) return NOT_SUPPORTED;
    if (!card.holds(from, bytes)) return INVALID_VALUE;
    queue_of(stream)->add([&card, to, from, bytes] {
        if (!card.holds(from, bytes)) return ILLEGAL_ADDRESS;
        memcpy(to, reinterpret_cast<const void *>(from), bytes);
        return SUCCESS;
    });
    return SUCCESS;
}

ENTRY cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream) {
    REQUIRE_CARD;
    if (!card.holds(to, bytes) || !card.holds(from, bytes)) return INVALID_VALUE;
    queue_of(stream)->add([&card, to, from, bytes] {
        if (!card.holds(to, bytes) || !card.holds(from, bytes)) return ILLEGAL_ADDRESS;
        memmove(reinterpret_cast<void *>(to), reinterpret_cast<const void *>(from), bytes);
        memory_copied(to, from, bytes);
        return SUCCESS;
    });
    return SUCCESS;
}

ENTRY cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void *stream) {
    REQUIRE_CARD;
    if (!card.holds(to, bytes)) return INVALID_VALUE;
    queue_of(stream)->add([&card, to, value, bytes] {
        if (!card.holds(to, bytes)) return ILLEGAL_ADDRESS;
        memset(reinterpret_cast<void *>(to), value, bytes);
        memory_written(to, bytes);
        return SUCCESS;
    });
    return SUCCESS;
}

// Function that another test library calls after it has written device memory.
ENTRY cuda_on_cpu_written(uint64_t start, size_t bytes) {
    LOCK_DRIVER;
    memory_written(start, bytes);
    return SUCCESS;
}
