// Driver functions for queues and events.

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

ENTRY cuEventCreate(void **event, unsigned) {
    REQUIRE_CARD;
    (void)card;
    *event = new Event;
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
    *static_cast<Event *>(event) = {queue->progress, queue->queued};
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
