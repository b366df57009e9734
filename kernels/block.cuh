// Reductions over the threads of a warp or block, in an order fixed by the block's size.
#pragma once

#include "element.cuh"

constexpr unsigned WARP = 32;
constexpr unsigned ALL_LANES = 0xffffffffu;

struct Sum {
    template <class A> static __device__ __forceinline__ A apply(A a, A b) { return a + b; }
};

// The greater of two values; `a` if `b` is NaN.
struct Greater {
    template <class A> static __device__ __forceinline__ A apply(A a, A b) { return b > a ? b : a; }
};

// Reduces the values of a warp; every lane gets the result.
template <class Join, class A> __device__ __forceinline__ A over_warp(A value) {
#pragma unroll
    for (unsigned distance = WARP / 2; distance > 0; distance /= 2) {
        value = Join::apply(value, __shfl_xor_sync(ALL_LANES, value, distance));
    }
    return value;
}

// Reduces the values of a block of whole warps; every thread gets the result.
template <class Join, class A> __device__ __forceinline__ A over_block(A value) {
    value = over_warp<Join>(value);
    if (blockDim.x == WARP) return value;
    __shared__ A of_warps[WARP];
    if (threadIdx.x % WARP == 0) of_warps[threadIdx.x / WARP] = value;
    __syncthreads();
    value = of_warps[0];
    for (unsigned warp = 1; warp < blockDim.x / WARP; warp++) {
        value = Join::apply(value, of_warps[warp]);
    }
    // The next call must not overwrite `of_warps` before every thread has read it.
    __syncthreads();
    return value;
}

// Executes the statement for each `i` below `n`. All lanes of a warp get the same `i`.
#define EACH_BY_WARP(i, n)                                                              \
    for (size_t i = (blockIdx.x * (size_t)blockDim.x + threadIdx.x) / WARP; i < (n);    \
         i += (size_t)gridDim.x * blockDim.x / WARP)
