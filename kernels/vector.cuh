// Vectors of 16 bytes, which the threads of a tiled GEMM copy at once.
#pragma once

#include "element.cuh"

// Largest number of threads per block of a tiled GEMM.
constexpr int MAX_THREADS = 256;

// Smallest number of blocks of a tiled GEMM that a multiprocessor must have registers for. GPUs of
// compute capability 7.5 have too little shared memory for two blocks with large tiles.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int TILES_PER_MULTIPROCESSOR = 1;
#else
constexpr int TILES_PER_MULTIPROCESSOR = 2;
#endif

// The launch bounds of a kernel whose blocks compute a tile of a shape.
#define TILE_BOUNDS(Shape) __launch_bounds__(Shape::THREADS, TILES_PER_MULTIPROCESSOR)

// Number of elements in a vector of 16 bytes.
template <class T> constexpr int VECTOR = 16 / sizeof(T);

struct alignas(16) Bits {
    uint32_t words[4];
};

// Loads 16 bytes from shared memory with one instruction. The compiler would load a word that only
// one branch needs by a second instruction.
__device__ __forceinline__ Bits load_shared(const Bits *from) {
    Bits bits;
#ifdef __CUDACC__
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(bits.words[0]), "=r"(bits.words[1]), "=r"(bits.words[2]),
                   "=r"(bits.words[3])
                 : "r"((uint32_t)__cvta_generic_to_shared(from))
                 : "memory");
#else
    bits = *from;
#endif
    return bits;
}

// Stores 16 bytes to shared memory with one instruction. The compiler would replace the instruction
// by several narrow ones if another branch stores the same registers to other addresses.
__device__ __forceinline__ void store_shared(Bits *to, const Bits &bits) {
#ifdef __CUDACC__
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};"
                 :
                 : "r"((uint32_t)__cvta_generic_to_shared(to)), "r"(bits.words[0]),
                   "r"(bits.words[1]), "r"(bits.words[2]), "r"(bits.words[3])
                 : "memory");
#else
    *to = bits;
#endif
}

// Copies 16 bytes between registers and aligned memory.
template <class T> __device__ __forceinline__ void copy_vector(T *to, const T *from) {
    *reinterpret_cast<Bits *>(to) = *reinterpret_cast<const Bits *>(from);
}
