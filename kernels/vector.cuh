// Vectors of 16 bytes, which the threads of a tiled GEMM copy at once.
#pragma once

#include "element.cuh"

// Number of threads per block of a tiled GEMM.
constexpr int THREADS = 256;

// Number of elements in a vector of 16 bytes.
template <class T> constexpr int VECTOR = 16 / sizeof(T);

struct alignas(16) Bits {
    uint32_t words[4];
};

// Copies 16 bytes between registers and aligned memory.
template <class T> __device__ __forceinline__ void copy_vector(T *to, const T *from) {
    *reinterpret_cast<Bits *>(to) = *reinterpret_cast<const Bits *>(from);
}
