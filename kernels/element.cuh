// Element types, their accumulator types, and macros that define a kernel for each element type.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stddef.h>
#include <stdint.h>

// The accumulator type of an element type: `float` for 16-bit elements, else the element type
// itself.
template <class T> struct Accumulator { using type = T; };
template <> struct Accumulator<__half> { using type = float; };
template <> struct Accumulator<__nv_bfloat16> { using type = float; };
template <class T> using acc_t = typename Accumulator<T>::type;

// Converts an element exactly to its accumulator type.
__device__ __forceinline__ float widen(__half x) { return __half2float(x); }
__device__ __forceinline__ float widen(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ __forceinline__ float widen(float x) { return x; }
__device__ __forceinline__ double widen(double x) { return x; }

// Rounds an accumulator to the nearest value of the element type, ties to even.
template <class T> __device__ __forceinline__ T narrow(acc_t<T> x) { return x; }
template <> __device__ __forceinline__ __half narrow<__half>(float x) { return __float2half_rn(x); }
template <> __device__ __forceinline__ __nv_bfloat16 narrow<__nv_bfloat16>(float x) {
    return __float2bfloat16_rn(x);
}

// Declares a kernel. C linkage leaves the kernel's name unmangled, so that the host can look up the
// kernel by name.
#define KERNEL extern "C" __global__ void

// Expands `define(name, type)` for every element type; the name of a kernel ends in the element
// type's `name`.
#define EACH_ELEMENT(define) \
    define(f16, __half)      \
    define(bf16, __nv_bfloat16) \
    define(f32, float)       \
    define(f64, double)

// Executes the statement that follows for each `i` below `n`, in a one-dimensional grid-stride
// loop.
#define EACH(i, n)                                                             \
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < (n);    \
         i += (size_t)gridDim.x * blockDim.x)
