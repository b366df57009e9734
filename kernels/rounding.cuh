// Conversion of numbers to elements, rounded once.
#pragma once

#include "element.cuh"

// Rounds to the nearest element, ties to even.
template <class T> __device__ __forceinline__ T nearest(double x) { return T(x); }
template <> __device__ __forceinline__ __half nearest<__half>(double x) { return __double2half(x); }
template <> __device__ __forceinline__ __nv_bfloat16 nearest<__nv_bfloat16>(double x) {
    return __double2bfloat16(x);
}
// CUDA's conversions from `float` round only once.
template <class T> __device__ __forceinline__ T nearest(float x) { return T(x); }
template <> __device__ __forceinline__ __half nearest<__half>(float x) { return __float2half_rn(x); }
template <> __device__ __forceinline__ __nv_bfloat16 nearest<__nv_bfloat16>(float x) {
    return __float2bfloat16_rn(x);
}
