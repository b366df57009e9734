// Conversion of `float` and `double` numbers to elements, with a single rounding.
#pragma once

#include "element.cuh"

// Rounds to the nearest value of the element type, ties to even.
template <class T> __device__ __forceinline__ T nearest(double x) { return T(x); }
template <> __device__ __forceinline__ __half nearest<__half>(double x) { return __double2half(x); }
template <> __device__ __forceinline__ __nv_bfloat16 nearest<__nv_bfloat16>(double x) {
    return __double2bfloat16(x);
}
// CUDA's conversions from `float` to 16-bit types round only once.
template <class T> __device__ __forceinline__ T nearest(float x) { return T(x); }
template <> __device__ __forceinline__ __half nearest<__half>(float x) { return __float2half_rn(x); }
template <> __device__ __forceinline__ __nv_bfloat16 nearest<__nv_bfloat16>(float x) {
    return __float2bfloat16_rn(x);
}
