// Definitions of nvcc's built-in names, for kernels that g++ compiles. Each kernel source must
// include this file first.
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "block.h"

// To list the kernels, `mod.rs` runs the preprocessor with `CUDA_ON_CPU_LISTING` defined, so that
// the keyword `__global__` remains in the output.
#ifndef CUDA_ON_CPU_LISTING
#define __global__
#endif
// One host thread runs all threads of a block, so a `thread_local` array is shared by the block.
#define __shared__ thread_local
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) alignas(n)

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x = 1, y = 1, z = 1;
};

#define VECTOR2(name, T, size)                                  \
    struct alignas(size) name {                                 \
        T x, y;                                                 \
    };                                                          \
    inline name make_##name(T x, T y) { return {x, y}; }
#define VECTOR4(name, T)                                                \
    struct alignas(16) name {                                           \
        T x, y, z, w;                                                   \
    };                                                                  \
    inline name make_##name(T x, T y, T z, T w) { return {x, y, z, w}; }
VECTOR2(float2, float, 8)
VECTOR2(double2, double, 16)
VECTOR2(int2, int, 8)
VECTOR2(uint2, unsigned, 8)
VECTOR4(float4, float)
VECTOR4(int4, int)
VECTOR4(uint4, unsigned)

#define threadIdx (cuda_on_cpu::current_thread->index)
#define blockIdx (cuda_on_cpu::current_block->index)
#define blockDim (cuda_on_cpu::current_block->threads)
#define gridDim (cuda_on_cpu::current_block->blocks)
#define warpSize 32

// Each occurrence of `__syncthreads()` in a kernel source has its own number, which reveals threads
// that wait at different barriers.
#define __syncthreads() cuda_on_cpu::wait_for_block(__COUNTER__ + 1)
inline void __syncwarp(unsigned mask = ~0u) { cuda_on_cpu::wait_for_warp(mask); }
inline void __threadfence() {}
inline void __threadfence_block() {}

// Warp shuffles within groups of `width` lanes. If the source lane of a shuffle lies outside the
// group, a lane receives its own value.
template <class T> T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
    const int own = cuda_on_cpu::current_thread->lane;
    return cuda_on_cpu::exchange(mask, value, (own & ~(width - 1)) | (lane & (width - 1)));
}
template <class T> T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32) {
    const int own = cuda_on_cpu::current_thread->lane, from = own + int(by);
    return cuda_on_cpu::exchange(mask, value, from / width == own / width ? from : own);
}
template <class T> T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32) {
    const int own = cuda_on_cpu::current_thread->lane, from = own - int(by);
    return cuda_on_cpu::exchange(mask, value, from >= (own & ~(width - 1)) ? from : own);
}
template <class T> T __shfl_xor_sync(unsigned mask, T value, int by, int width = 32) {
    const int own = cuda_on_cpu::current_thread->lane, from = own ^ by;
    return cuda_on_cpu::exchange(mask, value, from / width == own / width ? from : own);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
    unsigned votes = 0;
    for (int lane = 0; lane < 32; lane++) {
        const int vote = cuda_on_cpu::exchange(mask, int(predicate != 0), lane);
        votes |= unsigned(vote && (mask >> lane & 1)) << lane;
    }
    return votes;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }

// Atomic operations need no atomic instructions, because only one thread of a grid runs at a time.
template <class T, class U> T atomicAdd(T *at, U value) {
    const T old = *at;
    *at = old + T(value);
    return old;
}
namespace cuda_on_cpu {
void require_device_memory(const void *address);
}
template <class T> T atomicMax(T *at, T value) {
    cuda_on_cpu::require_device_memory(at);
    const T old = *at;
    *at = old > value ? old : value;
    return old;
}
template <class T> T atomicMin(T *at, T value) {
    const T old = *at;
    *at = old < value ? old : value;
    return old;
}
template <class T> T atomicOr(T *at, T value) {
    const T old = *at;
    *at = old | value;
    return old;
}
template <class T> T atomicExch(T *at, T value) {
    const T old = *at;
    *at = value;
    return old;
}
template <class T> T atomicCAS(T *at, T expected, T value) {
    const T old = *at;
    if (old == expected) *at = value;
    return old;
}

template <class To, class From> To bits_of(From value) {
    static_assert(sizeof(To) == sizeof(From));
    To bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
inline unsigned __float_as_uint(float x) { return bits_of<unsigned>(x); }
inline int __float_as_int(float x) { return bits_of<int>(x); }
inline float __uint_as_float(unsigned x) { return bits_of<float>(x); }
inline float __int_as_float(int x) { return bits_of<float>(x); }
inline long long __double_as_longlong(double x) { return bits_of<long long>(x); }
inline double __longlong_as_double(long long x) { return bits_of<double>(x); }

// Plain operators round after each operation, because -ffp-contract=off forbids contraction to FMA.
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return sqrtf(a); }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline float rsqrtf(float x) { return 1 / sqrtf(x); }
inline float rsqrt(float x) { return 1 / sqrtf(x); }
inline double rsqrt(double x) { return 1 / sqrt(x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return uint64_t(a) * b >> 32; }
inline uint64_t __umul64hi(uint64_t a, uint64_t b) { return (unsigned __int128)a * b >> 64; }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
inline int __ffs(int x) { return __builtin_ffs(x); }
template <class T> T __ldg(const T *at) { return *at; }

template <class T> constexpr T min(T a, T b) { return b < a ? b : a; }
template <class T> constexpr T max(T a, T b) { return a < b ? b : a; }
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
