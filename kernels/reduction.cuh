// Reduction operations, and functions that reduce the values of the threads of a warp or block.
#pragma once

#include "element.cuh"
#include <math.h>

// Number of threads per block of a reduction kernel.
constexpr int REDUCE_THREADS = 256;

// Reduction operations: `term` computes a term from an element, `combine` combines two terms, and
// `unit` returns the identity.
template <class A> struct Sum {
    static __device__ __forceinline__ A unit() { return 0; }
    static __device__ __forceinline__ A term(A x, A) { return x; }
    static __device__ __forceinline__ A combine(A a, A b) { return a + b; }
};
template <class A> struct AbsSum : Sum<A> {
    static __device__ __forceinline__ A term(A x, A) { return x < 0 ? -x : x; }
};
template <class A> struct Dot : Sum<A> {
    static __device__ __forceinline__ A term(A x, A z) { return x * z; }
};
// Maximum, which ignores NaN and has NaN as its identity.
template <class A> struct Max {
    static __device__ __forceinline__ A unit() { return (A)NAN; }
    static __device__ __forceinline__ A term(A x, A) { return x; }
    static __device__ __forceinline__ A combine(A a, A b) { return b > a || a != a ? b : a; }
};
template <class A> struct Min {
    static __device__ __forceinline__ A unit() { return (A)NAN; }
    static __device__ __forceinline__ A term(A x, A) { return x; }
    static __device__ __forceinline__ A combine(A a, A b) { return b < a || a != a ? b : a; }
};
// Maximum of absolute values, in which NaN counts as greater than any number.
template <class A> struct AbsMax {
    static __device__ __forceinline__ A unit() { return 0; }
    static __device__ __forceinline__ A term(A x, A) { return x < 0 ? -x : x; }
    static __device__ __forceinline__ A combine(A a, A b) { return a >= b || a != a ? a : b; }
};

// Reduces the values of the lanes of a warp, and returns the result to every lane.
template <class Rule, class A> __device__ __forceinline__ A reduce_warp(A value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        value = Rule::combine(value, __shfl_xor_sync(0xffffffffu, value, distance));
    return value;
}

// Reduces the values of a warp if `warps` is 1, else the values of the block, which has `warps`
// warps. Only the first thread of the warp or block receives the result.
template <class Rule, class A> __device__ __forceinline__ A reduce_team(A value, unsigned warps) {
    __shared__ A results[REDUCE_THREADS / 32];
    value = reduce_warp<Rule>(value);
    if (warps == 1) return value;
    if (threadIdx.x % 32 == 0) results[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x == 0)
        for (unsigned warp = 1; warp < warps; warp++) value = Rule::combine(value, results[warp]);
    __syncthreads();
    return value;
}

// The write-back of a reduction's result v, y ← α · v / divisor + β · y, which does not read `y` if
// β = 0.
template <class A> struct Finish {
    A alpha, divisor, beta;

    template <class T> __device__ __forceinline__ void store(A value, T &y) const {
        value = alpha * value / divisor;
        y = narrow<T>(beta == 0 ? value : value + beta * widen(y));
    }
};
