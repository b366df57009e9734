// Invalid values found by kernels. The host reads these flags when it next synchronizes.
#pragma once

#include "element.cuh"

// 0, or the bitwise complement of an invalid position, so that `atomicMax` keeps the first one.
using ErrorFlag = unsigned long long;

__device__ __forceinline__ void report_error(ErrorFlag *word, size_t at) {
    atomicMax(word, ~(ErrorFlag)at);
}
