// Errors in values found by kernels. The host reads them when it next synchronizes.
#pragma once

#include "element.cuh"

// 0, or the greatest bitwise complement of an invalid position, which is that of the first one.
using ErrorFlag = unsigned long long;

__device__ __forceinline__ void report_error(ErrorFlag *word, size_t at) {
    atomicMax(word, ~(ErrorFlag)at);
}
