// Reductions over the threads of a warp or block, in an order that depends only on the block's
// size.
#pragma once

#include "element.cuh"

constexpr unsigned WARP = 32;
constexpr unsigned ALL_LANES = 0xffffffffu;

struct Sum {
    template <class A> static __device__ __forceinline__ A apply(A a, A b) { return a + b; }
};

// Maximum of two values; the result is `a` if `b` is NaN.
struct Greater {
    template <class A> static __device__ __forceinline__ A apply(A a, A b) { return b > a ? b : a; }
};

// Reduces the values of the lanes of a warp, and returns the result to every lane.
template <class Join, class A> __device__ __forceinline__ A over_warp(A value) {
#pragma unroll
    for (unsigned distance = WARP / 2; distance > 0; distance /= 2) {
        value = Join::apply(value, __shfl_xor_sync(ALL_LANES, value, distance));
    }
    return value;
}

// Reduces the values of all threads of a block, which must consist of whole warps, and returns the
// result to every thread.
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
    // Waits until every thread has read `of_warps`, because the next call of `over_block`
    // overwrites the array.
    __syncthreads();
    return value;
}

// Executes the statement that follows once per warp for each `i` below `n`, in a grid-stride loop.
// All lanes of a warp get the same value of `i`.
#define EACH_BY_WARP(i, n)                                                              \
    for (size_t i = (blockIdx.x * (size_t)blockDim.x + threadIdx.x) / WARP; i < (n);    \
         i += (size_t)gridDim.x * blockDim.x / WARP)
