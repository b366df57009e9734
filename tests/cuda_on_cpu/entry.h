// How the driver's functions begin.
#pragma once

#include "card.h"

#define ENTRY extern "C" __attribute__((visibility("default"))) int

// One call at a time.
#define ALONE std::lock_guard<std::recursive_mutex> guard(cuda_on_cpu::lock())

// … on a card that the thread has entered, and that is sound.
#define ON_CARD                                       \
    ALONE;                                            \
    if (!entered) return INVALID_CONTEXT;             \
    if (entered->failed) return entered->failed;      \
    Card &card = *entered
