// What is moved at once by the threads of a block of tiles: 16 bytes.
#pragma once

#include "element.cuh"

// Threads of a block.
constexpr int THREADS = 256;

// As many elements as are loaded or stored at once: 16 bytes.
template <class T> constexpr int VECTOR = 16 / sizeof(T);

struct alignas(16) Bits {
    uint32_t words[4];
};

// Copies 16 bytes between registers and memory that is aligned.
template <class T> __device__ __forceinline__ void copy_vector(T *to, const T *from) {
    *reinterpret_cast<Bits *>(to) = *reinterpret_cast<const Bits *>(from);
}
