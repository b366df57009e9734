// Vectors of 16 bytes, which the threads of a tiled GEMM copy at once.
#pragma once

#include "element.cuh"

// Number of threads per block of a tiled GEMM.
constexpr int THREADS = 256;

// Smallest number of blocks of a tiled GEMM that a multiprocessor must have registers for. GPUs of
// compute capability 7.5 have too little shared memory for two blocks with large tiles.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int TILES_PER_MULTIPROCESSOR = 1;
#else
constexpr int TILES_PER_MULTIPROCESSOR = 2;
#endif

// Number of elements in a vector of 16 bytes.
template <class T> constexpr int VECTOR = 16 / sizeof(T);

struct alignas(16) Bits {
    uint32_t words[4];
};

// Copies 16 bytes between registers and aligned memory.
template <class T> __device__ __forceinline__ void copy_vector(T *to, const T *from) {
    *reinterpret_cast<Bits *>(to) = *reinterpret_cast<const Bits *>(from);
}
