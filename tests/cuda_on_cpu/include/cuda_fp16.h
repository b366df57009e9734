// The part of CUDA's `cuda_fp16.h` that the kernels use.
#pragma once

#include "rounding.h"

struct __half {
    uint16_t bits;
};

inline float __half2float(__half x) {
    const uint32_t sign = uint32_t(x.bits & 0x8000) << 16, magnitude = x.bits & 0x7fff;
    float value;
    if (magnitude < 0x400) {
        value = ldexpf(float(magnitude), -24);
    } else {
        const uint32_t exponent = magnitude < 0x7c00 ? 112 << 23 : 224 << 23;
        const uint32_t bits = (magnitude << 13) + exponent;
        memcpy(&value, &bits, 4);
    }
    return sign ? -value : value;
}

// Rounds a `float` to the nearest `__half`, ties to even. Every NaN is converted to the bits
// 0x7fff, as on a GPU.
inline __half __float2half_rn(float x) {
    if (isnan(x)) return {0x7fff};
    const uint16_t sign = signbit(x) ? 0x8000 : 0;
    const float magnitude = fabsf(x);
    if (magnitude >= 65520) return {uint16_t(sign | 0x7c00)};
    // Subnormal `__half` numbers are 2⁻²⁴ apart, like `float` numbers between 0.5 and 1. Adding 0.5
    // to a small `float` rounds the `float` to a multiple of 2⁻²⁴, which is a subnormal `__half`.
    if (magnitude < 0x1p-14f) {
        const float sum = magnitude + 0.5f;
        uint32_t bits;
        memcpy(&bits, &sum, 4);
        return {uint16_t(sign | (bits - 0x3f000000))};
    }
    uint32_t bits;
    memcpy(&bits, &magnitude, 4);
    bits += 0xfff + (bits >> 13 & 1) - (112u << 23);
    return {uint16_t(sign | bits >> 13)};
}
inline __half __float2half(float x) { return __float2half_rn(x); }
inline __half __double2half(double x) { return __float2half_rn(round_to_odd(x)); }
