// Macros that begin the definition of a driver function.
#pragma once

#include "card.h"

#define ENTRY extern "C" __attribute__((visibility("default"))) int

// Acquires the lock that serializes all driver calls.
#define LOCK_DRIVER std::lock_guard<std::recursive_mutex> guard(cuda_on_cpu::driver_lock())

// Acquires the driver's lock and defines `card`, the current simulated GPU. The driver function
// returns an error if no GPU is current, or if the context of the current GPU has been released or
// has failed.
#define REQUIRE_CARD                                               \
    LOCK_DRIVER;                                                   \
    if (!current_card) return INVALID_CONTEXT;                     \
    if (!current_card->retained) return CONTEXT_IS_DESTROYED;      \
    if (current_card->failed) return current_card->failed;         \
    [[maybe_unused]] Card &card = *current_card
