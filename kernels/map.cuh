// Elementwise functions (maps) of one or two operands. Threads read and write 16 bytes at once if
// all operands are 16-byte aligned.
#pragma once

#include "element.cuh"

// Pack of elements, 16 bytes in total, that a thread loads or stores at once.
template <class T> struct alignas(16) Pack {
    static constexpr size_t LEN = 16 / sizeof(T);
    T at[LEN];
};

// Returns whether all addresses are aligned to 16 bytes, as packs must be.
template <class... T> __device__ __forceinline__ bool packable(const T *...at) {
    return (... && (reinterpret_cast<uintptr_t>(at) % 16 == 0));
}

// Like the macro `EACH`, but `i` begins at `start` instead of 0.
#define EACH_FROM(i, start, n)                                                          \
    for (size_t i = (start) + blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < (n);   \
         i += (size_t)gridDim.x * blockDim.x)

// y[i] = f(x[i]); `y` may be `x`.
template <class T, class F> __device__ __forceinline__ void map(size_t n, const T *x, T *y, F f) {
    const size_t packs = packable(x, y) ? n / Pack<T>::LEN : 0;
    EACH(i, packs) {
        Pack<T> p = reinterpret_cast<const Pack<T> *>(x)[i];
#pragma unroll
        for (size_t k = 0; k < Pack<T>::LEN; k++) p.at[k] = narrow<T>(f(widen(p.at[k])));
        reinterpret_cast<Pack<T> *>(y)[i] = p;
    }
    EACH_FROM(i, packs * Pack<T>::LEN, n) y[i] = narrow<T>(f(widen(x[i])));
}

// Like `map`, but loads and stores one element at a time, for compute-bound functions. Packs would
// not speed up a compute-bound function, and the code would contain one copy of `f` per element of
// a pack.
template <class T, class F>
__device__ __forceinline__ void map_singly(size_t n, const T *x, T *y, F f) {
    EACH(i, n) y[i] = narrow<T>(f(widen(x[i])));
}

// y[i] = f(a[i], b[i]); `y` may be `a` or `b`.
template <class T, class F>
__device__ __forceinline__ void map(size_t n, const T *a, const T *b, T *y, F f) {
    const size_t packs = packable(a, b, y) ? n / Pack<T>::LEN : 0;
    EACH(i, packs) {
        Pack<T> p = reinterpret_cast<const Pack<T> *>(a)[i];
        const Pack<T> q = reinterpret_cast<const Pack<T> *>(b)[i];
#pragma unroll
        for (size_t k = 0; k < Pack<T>::LEN; k++) {
            p.at[k] = narrow<T>(f(widen(p.at[k]), widen(q.at[k])));
        }
        reinterpret_cast<Pack<T> *>(y)[i] = p;
    }
    EACH_FROM(i, packs * Pack<T>::LEN, n) y[i] = narrow<T>(f(widen(a[i]), widen(b[i])));
}

// Like the `map` of two operands, but loads and stores one element at a time, for compute-bound
// functions.
template <class T, class F>
__device__ __forceinline__ void map_singly(size_t n, const T *a, const T *b, T *y, F f) {
    EACH(i, n) y[i] = narrow<T>(f(widen(a[i]), widen(b[i])));
}

// Returns xᵖ, without a call of `pow` if `p` is 0, 1 or 2.
template <class A> __device__ __forceinline__ A power(A x, A p) {
    return p == A(1) ? x : p == A(2) ? x * x : p == A(0) ? A(1) : pow(x, p);
}
