// Driver functions for queues and events.

#include <chrono>

#include "entry.h"

using namespace cuda_on_cpu;

ENTRY cuStreamCreateWithPriority(void **stream, unsigned flags, int) {
    REQUIRE_CARD;
    // The only flag allowed for a stream is 1 (CU_STREAM_NON_BLOCKING), because the simulated
    // driver does not synchronize streams with the default stream.
    if (flags != 1) return INVALID_VALUE;
    card.queues.push_back(std::make_unique<Queue>(&card));
    *stream = card.queues.back().get();
    return SUCCESS;
}

// Destroying a stream does not destroy the simulated queue, because its queued work must still run.
ENTRY cuStreamDestroy_v2(void *) {
    REQUIRE_CARD;
    return SUCCESS;
}

ENTRY cuStreamSynchronize(void *stream) {
    REQUIRE_CARD;
    auto *queue = static_cast<Queue *>(stream);
    if (queue->card != &card) return INVALID_HANDLE;
    queue->run(queue->queued);
    return card.failed;
}

// The flag 2 (CU_EVENT_DISABLE_TIMING) creates an event that stores no time.
ENTRY cuEventCreate(void **event, unsigned flags) {
    REQUIRE_CARD;
    (void)card;
    if (flags != 0 && flags != 2) return INVALID_VALUE;
    *event = new Event{flags == 0};
    return SUCCESS;
}

ENTRY cuEventDestroy_v2(void *event) {
    REQUIRE_CARD;
    delete static_cast<Event *>(event);
    return SUCCESS;
}

ENTRY cuEventRecord(void *event, void *stream) {
    REQUIRE_CARD;
    auto *queue = static_cast<Queue *>(stream);
    if (queue->card != &card) return INVALID_HANDLE;
    auto &recorded = *static_cast<Event *>(event);
    if (recorded.is_timed) {
        recorded.time = std::make_shared<double>();
        queue->add([time = recorded.time] {
            const auto now = std::chrono::steady_clock::now().time_since_epoch();
            *time = std::chrono::duration<double, std::milli>(now).count();
            return SUCCESS;
        });
    }
    recorded.progress = queue->progress;
    recorded.count = queue->queued;
    return SUCCESS;
}

ENTRY cuEventElapsedTime(float *milliseconds, void *start, void *end) {
    REQUIRE_CARD;
    (void)card;
    const auto &first = *static_cast<Event *>(start), &last = *static_cast<Event *>(end);
    if (!first.time || !last.time) return INVALID_HANDLE;
    if (!first.has_occurred() || !last.has_occurred()) return NOT_READY;
    *milliseconds = static_cast<float>(*last.time - *first.time);
    return SUCCESS;
}

ENTRY cuStreamWaitEvent(void *stream, void *event, unsigned) {
    REQUIRE_CARD;
    auto *queue = static_cast<Queue *>(stream);
    if (queue->card != &card) return INVALID_HANDLE;
    const Event awaited = *static_cast<Event *>(event);
    if (!awaited.progress) return SUCCESS;
    queue->add([awaited] {
        if (awaited.progress->queue) awaited.progress->queue->run(awaited.count);
        return SUCCESS;
    });
    return SUCCESS;
}

ENTRY cuLaunchHostFunc(void *stream, void (*call)(void *), void *data) {
    REQUIRE_CARD;
    auto *queue = static_cast<Queue *>(stream);
    if (queue->card != &card) return INVALID_HANDLE;
    queue->add([=, &card] {
        if (!card.failed) call(data);
        return card.failed;
    });
    return SUCCESS;
}
