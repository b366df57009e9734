// Errors in values found by kernels. The host reads them when it next synchronizes.
#pragma once

#include "element.cuh"

// 0, or the bitwise complement of the first invalid position, the greatest complement of all.
using ErrorFlag = unsigned long long;

__device__ __forceinline__ void report_error(ErrorFlag *word, size_t at) {
    atomicMax(word, ~(ErrorFlag)at);
}
