// Flags by which kernels report invalid values in their operands. The host reads the error flags
// when it next synchronizes with the device.
#pragma once

#include "element.cuh"

// Error flag: 0, or the bitwise complement of the position of an invalid value, so that `atomicMax`
// keeps the first position.
using ErrorFlag = unsigned long long;

__device__ __forceinline__ void report_error(ErrorFlag *word, size_t at) {
    atomicMax(word, ~(ErrorFlag)at);
}
