// Many elements folded into one: rules, and folds over the threads of a warp or a block.
#pragma once

#include "element.cuh"
#include <math.h>

// Threads of a block that folds.
constexpr int FOLDERS = 256;

// `join(…join(unit, term(x₀)), …term(xₙ))` in some fixed order, `A` being what it is computed in.
template <class A> struct Sum {
    static __device__ __forceinline__ A unit() { return 0; }
    static __device__ __forceinline__ A term(A x, A) { return x; }
    static __device__ __forceinline__ A join(A a, A b) { return a + b; }
};
template <class A> struct AbsSum : Sum<A> {
    static __device__ __forceinline__ A term(A x, A) { return x < 0 ? -x : x; }
};
template <class A> struct Dot : Sum<A> {
    static __device__ __forceinline__ A term(A x, A z) { return x * z; }
};
// NaN is passed over; it stands for nothing.
template <class A> struct Max {
    static __device__ __forceinline__ A unit() { return (A)NAN; }
    static __device__ __forceinline__ A term(A x, A) { return x; }
    static __device__ __forceinline__ A join(A a, A b) { return b > a || a != a ? b : a; }
};
template <class A> struct Min {
    static __device__ __forceinline__ A unit() { return (A)NAN; }
    static __device__ __forceinline__ A term(A x, A) { return x; }
    static __device__ __forceinline__ A join(A a, A b) { return b < a || a != a ? b : a; }
};
// NaN is greater than anything.
template <class A> struct AbsMax {
    static __device__ __forceinline__ A unit() { return 0; }
    static __device__ __forceinline__ A term(A x, A) { return x < 0 ? -x : x; }
    static __device__ __forceinline__ A join(A a, A b) { return a >= b || a != a ? a : b; }
};

// The fold of what the lanes of a warp have, for each of them.
template <class Rule, class A> __device__ __forceinline__ A fold_warp(A value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        value = Rule::join(value, __shfl_xor_sync(0xffffffffu, value, distance));
    return value;
}

// The fold of what the threads of a warp, or of the whole block if `warps` is all of its warps,
// have: for their first.
template <class Rule, class A> __device__ __forceinline__ A fold_team(A value, unsigned warps) {
    __shared__ A results[FOLDERS / 32];
    value = fold_warp<Rule>(value);
    if (warps == 1) return value;
    if (threadIdx.x % 32 == 0) results[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x == 0)
        for (unsigned warp = 1; warp < warps; warp++) value = Rule::join(value, results[warp]);
    __syncthreads();
    return value;
}

// What becomes of a fold: `α · v / divisor + β · y`.
template <class A> struct Finish {
    A alpha, divisor, beta;

    template <class T> __device__ __forceinline__ void store(A value, T &y) const {
        value = alpha * value / divisor;
        y = narrow<T>(beta == 0 ? value : value + beta * widen(y));
    }
};
