// What kernels find wrong with values, for the host to see when it next waits.
#pragma once

#include "element.cuh"

// A word the host reads: 0, or the complement of the first position at which something is wrong.
using Complaint = unsigned long long;

__device__ __forceinline__ void complain(Complaint *word, size_t at) {
    atomicMax(word, ~(Complaint)at);
}
