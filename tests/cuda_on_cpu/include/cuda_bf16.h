// The part of CUDA's `cuda_bf16.h` that the kernels use.
#pragma once

#include "rounding.h"

struct __nv_bfloat16 {
    uint16_t bits;
};

inline float __bfloat162float(__nv_bfloat16 x) {
    const uint32_t bits = uint32_t(x.bits) << 16;
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

// Rounds a `float` to the nearest `__nv_bfloat16`, ties to even. Every NaN is converted to the bits
// 0x7fff, as on a GPU.
inline __nv_bfloat16 __float2bfloat16_rn(float x) {
    if (isnan(x)) return {0x7fff};
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return {uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
inline __nv_bfloat16 __float2bfloat16(float x) { return __float2bfloat16_rn(x); }
inline __nv_bfloat16 __double2bfloat16(double x) { return __float2bfloat16_rn(round_to_odd(x)); }
