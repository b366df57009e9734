// The driver's functions for queues, and for events in them.

#include "entry.h"

using namespace cuda_on_cpu;

ENTRY cuStreamCreateWithPriority(void **stream, unsigned flags, int) {
    ON_CARD;
    // Only queues that the default one does not wait for are as independent as these are.
    if (flags != 1) return INVALID_VALUE;
    card.queues.push_back(std::make_unique<Queue>(&card));
    *stream = card.queues.back().get();
    return SUCCESS;
}

// What is queued still runs, when its card has reason to.
ENTRY cuStreamDestroy_v2(void *) { return SUCCESS; }

ENTRY cuStreamSynchronize(void *stream) {
    ON_CARD;
    auto *queue = static_cast<Queue *>(stream);
    if (queue->card != &card) return INVALID_HANDLE;
    queue->run(queue->queued);
    return card.failed;
}

ENTRY cuEventCreate(void **event, unsigned) {
    ON_CARD;
    (void)card;
    *event = new Event;
    return SUCCESS;
}

ENTRY cuEventDestroy_v2(void *event) {
    ALONE;
    delete static_cast<Event *>(event);
    return SUCCESS;
}

ENTRY cuEventRecord(void *event, void *stream) {
    ON_CARD;
    auto *queue = static_cast<Queue *>(stream);
    if (queue->card != &card) return INVALID_HANDLE;
    *static_cast<Event *>(event) = {queue->progress, queue->queued};
    return SUCCESS;
}

ENTRY cuStreamWaitEvent(void *stream, void *event, unsigned) {
    ON_CARD;
    auto *queue = static_cast<Queue *>(stream);
    if (queue->card != &card) return INVALID_HANDLE;
    const Event until = *static_cast<Event *>(event);
    if (!until.of) return SUCCESS;
    queue->add([until] {
        if (until.of->queue) until.of->queue->run(until.place);
        return SUCCESS;
    });
    return SUCCESS;
}

ENTRY cuLaunchHostFunc(void *stream, void (*call)(void *), void *data) {
    ON_CARD;
    auto *queue = static_cast<Queue *>(stream);
    if (queue->card != &card) return INVALID_HANDLE;
    queue->add([=, &card] {
        if (!card.failed) call(data);
        return card.failed;
    });
    return SUCCESS;
}
