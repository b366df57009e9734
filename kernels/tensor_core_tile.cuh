// Tiles of GEMMs on tensor cores, for 16-bit elements and for `float` elements rounded to TF32.
#pragma once

#include "fma_tile.cuh"
#include <string.h>

// Loads four matrices of 8 × 8 16-bit elements. Lane l passes the address of row l % 8 of matrix l
// / 8. Lane l receives elements 2·(l % 4) and 2·(l % 4) + 1 of row l / 4 of each matrix, or of the
// transposed matrix if `across` is true.
__device__ __forceinline__ void load_matrices(uint32_t (&into)[4], const void *row, bool across);

// Computes sums (16 × 8) += a (16 × 16) · b (16 × 8), distributed over the lanes as `mma.m16n8k16`
// requires.
template <class T>
__device__ __forceinline__ void multiply_add(float (&sums)[4], const uint32_t (&a)[4],
                                             const uint32_t *b);

// Rounds to the nearest TF32 number, whose mantissa has ten explicit bits.
__device__ __forceinline__ float rounded(float x);

// Computes sums (16 × 8) += a (16 × 8) · b (8 × 8) of TF32 numbers, distributed over the lanes as
// `mma.m16n8k8` requires.
__device__ __forceinline__ void multiply_add(float (&sums)[4], const float (&a)[4],
                                             const float (&b)[2]);

#ifdef __CUDACC__

__device__ __forceinline__ void load_matrices(uint32_t (&into)[4], const void *row, bool across) {
    uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
    if (across) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(into[0]), "=r"(into[1]), "=r"(into[2]), "=r"(into[3])
                     : "r"(at)
                     : "memory");
    } else {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(into[0]), "=r"(into[1]), "=r"(into[2]), "=r"(into[3])
                     : "r"(at)
                     : "memory");
    }
}

#if __CUDA_ARCH__ >= 800

#define MULTIPLY_ADD(T, name)                                                                  \
    template <>                                                                                \
    __device__ __forceinline__ void multiply_add<T>(float (&sums)[4], const uint32_t (&a)[4],  \
                                                    const uint32_t *b) {                       \
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." name "." name ".f32 "            \
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"         \
                     : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])              \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));      \
    }
MULTIPLY_ADD(__half, "f16")
MULTIPLY_ADD(__nv_bfloat16, "bf16")

__device__ __forceinline__ float rounded(float x) {
    uint32_t bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return __uint_as_float(bits);
}

__device__ __forceinline__ void multiply_add(float (&sums)[4], const float (&a)[4],
                                             const float (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])),
                   "r"(__float_as_uint(a[2])), "r"(__float_as_uint(a[3])),
                   "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
}

#else

// Compute capability 7.5 has only an instruction for half as many indices k, and none for bf16 or
// TF32.
template <>
__device__ __forceinline__ void multiply_add<__half>(float (&sums)[4], const uint32_t (&a)[4],
                                                     const uint32_t *b) {
#pragma unroll
    for (int half = 0; half < 2; half++)
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
                     "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                     : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                     : "r"(a[2 * half]), "r"(a[2 * half + 1]), "r"(b[half]));
}

#endif

#else

// Shared memory through which the lanes of a warp exchange operands when g++ compiles the kernels
// for the CPU.
struct Exchange {
    const void *rows[MAX_THREADS];
    uint32_t words[MAX_THREADS][6];
};

__device__ inline Exchange &exchange() {
    __shared__ Exchange shared;
    return shared;
}

__device__ inline void load_matrices(uint32_t (&into)[4], const void *row, bool across) {
    const void **rows = exchange().rows + threadIdx.x / 32 * 32;
    int lane = threadIdx.x % 32;
    rows[lane] = row;
    __syncwarp();
    for (int i = 0; i < 4; i++) {
        uint16_t pair[2];
        for (int j = 0; j < 2; j++) {
            int r = across ? lane % 4 * 2 + j : lane / 4, c = across ? lane / 4 : lane % 4 * 2 + j;
            pair[j] = static_cast<const uint16_t *>(rows[i * 8 + r])[c];
        }
        memcpy(&into[i], pair, 4);
    }
    __syncwarp();
}

template <class T>
__device__ inline void multiply_add(float (&sums)[4], const uint32_t (&a)[4], const uint32_t *b) {
    auto *words = exchange().words + threadIdx.x / 32 * 32;
    int lane = threadIdx.x % 32;
    memcpy(words[lane], a, 16);
    memcpy(words[lane] + 4, b, 8);
    __syncwarp();
    auto element = [&](int lane, int word, int k) {
        T pair[2];
        memcpy(pair, &words[lane][word], 4);
        return widen(pair[k % 2]);
    };
    for (int i = 0; i < 4; i++) {
        int row = lane / 4, column = lane % 4 * 2 + i % 2;
        for (int k = 0; k < 16; k++) {
            float x = element(row * 4 + k % 8 / 2, i / 2 + k / 8 * 2, k);
            sums[i] += x * element(column * 4 + k % 8 / 2, 4 + k / 8, k);
        }
    }
    __syncwarp();
}

__device__ inline float rounded(float x) {
    return isfinite(x) ? __uint_as_float((__float_as_uint(x) + 0x1000) & ~0x1fffu) : x;
}

__device__ inline void multiply_add(float (&sums)[4], const float (&a)[4], const float (&b)[2]) {
    auto *words = exchange().words + threadIdx.x / 32 * 32;
    int lane = threadIdx.x % 32;
    memcpy(words[lane], a, 16);
    memcpy(words[lane] + 4, b, 8);
    __syncwarp();
    for (int i = 0; i < 4; i++) {
        int row = lane / 4, column = lane % 4 * 2 + i % 2;
        for (int k = 0; k < 8; k++) {
            float x = __uint_as_float(words[row * 4 + k % 4][i / 2 + k / 4 * 2]);
            sums[i] += x * __uint_as_float(words[column * 4 + k % 4][4 + k / 4]);
        }
    }
    __syncwarp();
}

#endif

// Panel in shared memory for tensor cores, which holds `EXTENT` rows or columns of an operand for
// `DEPTH` indices k; the panel is contiguous along k if `along_k` is true.
template <class T, int EXTENT, int DEPTH> struct TensorPanel {
    // One vector of padding puts eight successive rows into different banks of shared memory.
    static constexpr int ALONG_K = DEPTH + VECTOR<T>, ALONG_E = EXTENT + VECTOR<T>;
    static constexpr int ELEMENTS =
        EXTENT * ALONG_K > DEPTH * ALONG_E ? EXTENT * ALONG_K : DEPTH * ALONG_E;
    T *elements;
    bool along_k;

    __device__ __forceinline__ T *at(int e, int k) const {
        return elements + (along_k ? e * ALONG_K + k : k * ALONG_E + e);
    }

    __device__ __forceinline__ void put(int e, int k, T x) { *at(e, k) = x; }

    __device__ __forceinline__ void put_run(int e, int k, const T (&run)[VECTOR<T>]) {
        copy_vector(at(e, k), run);
    }

    // Loads the 16 × 16 block at (e, k) as four 8 × 8 matrices. Each matrix is a quarter of the
    // block: bit `e_bit` of the matrix's number selects the half along e, and bit `k_bit` selects
    // the half along k.
    __device__ __forceinline__ void load(uint32_t (&into)[4], int e, int k, int e_bit,
                                         int k_bit) const {
        int lane = threadIdx.x % 32, matrix = lane / 8;
        e += (matrix >> e_bit & 1) * 8 + (along_k ? lane % 8 : 0);
        k += (matrix >> k_bit & 1) * 8 + (along_k ? 0 : lane % 8);
        load_matrices(into, at(e, k), !along_k);
    }
};

// The sums of a tile, distributed over the lanes of each warp as the `mma` instruction requires.
// Each warp computes `TALL` × `WIDE` elements of the tile.
template <int DOWN_, int ACROSS_, int DEPTH_, int TALL_, int WIDE_> struct WarpTile {
    static constexpr int DOWN = DOWN_, ACROSS = ACROSS_, DEPTH = DEPTH_, TALL = TALL_, WIDE = WIDE_;
    static constexpr int WARPS_ACROSS = ACROSS / WIDE;
    static constexpr int THREADS = DOWN / TALL * WARPS_ACROSS * 32;
    static_assert(THREADS <= MAX_THREADS, "a launch may have fewer threads");

    float sums[TALL / 16][WIDE / 8][4];

    __device__ __forceinline__ WarpTile() {
#pragma unroll
        for (int i = 0; i < TALL / 16; i++)
#pragma unroll
            for (int j = 0; j < WIDE / 8; j++)
#pragma unroll
                for (int l = 0; l < 4; l++) sums[i][j][l] = 0;
    }

    static __device__ __forceinline__ int row() {
        return (int)threadIdx.x / 32 / WARPS_ACROSS * TALL;
    }
    static __device__ __forceinline__ int column() {
        return (int)threadIdx.x / 32 % WARPS_ACROSS * WIDE;
    }

    template <class Store> __device__ __forceinline__ void finish(Store store) const {
        int lane = threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < TALL / 16; i++)
#pragma unroll
            for (int j = 0; j < WIDE / 8; j++)
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    float run[2] = {sums[i][j][2 * half], sums[i][j][2 * half + 1]};
                    store(row() + i * 16 + half * 8 + lane / 4, column() + j * 8 + lane % 4 * 2,
                          run);
                }
    }
};

// Tile that multiplies 16-bit elements on tensor cores and sums the products in `float`.
template <class T, int DOWN, int ACROSS, int DEPTH, int TALL, int WIDE>
struct Tensor : WarpTile<DOWN, ACROSS, DEPTH, TALL, WIDE> {
    using Element = T;
    using Left = TensorPanel<T, DOWN, DEPTH>;
    using Right = TensorPanel<T, ACROSS, DEPTH>;

    __device__ __forceinline__ void multiply(const Left &left, const Right &right) {
        // Not unrolled: with the fragments of several `k` in registers, ptxas 11.8 spills the large
        // tiles.
#pragma unroll 1
        for (int k = 0; k < DEPTH; k += 16) {
            uint32_t b[WIDE / 16][4];
#pragma unroll
            for (int j = 0; j < WIDE / 16; j++)
                right.load(b[j], this->column() + j * 16, k, 1, 0);
#pragma unroll
            for (int i = 0; i < TALL / 16; i++) {
                uint32_t a[4];
                left.load(a, this->row() + i * 16, k, 0, 1);
#pragma unroll
                for (int j = 0; j < WIDE / 8; j++)
                    multiply_add<T>(this->sums[i][j], a, b[j / 2] + j % 2 * 2);
            }
        }
    }
};

// Panel in shared memory that holds `EXTENT` rows or columns of an operand for `DEPTH` indices k,
// rounded to TF32. Successive rows begin eight banks apart, so that the four rows that a warp reads
// at once are in different banks.
template <int EXTENT, int DEPTH> struct RoundedPanel : LanesPanel<float, EXTENT, DEPTH, 8> {
    using Panel = LanesPanel<float, EXTENT, DEPTH, 8>;

    __device__ __forceinline__ void put(int e, int k, float x) { Panel::put(e, k, rounded(x)); }

    __device__ __forceinline__ void put_run(int e, int k, const float (&run)[VECTOR<float>]) {
        alignas(16) float near[VECTOR<float>];
#pragma unroll
        for (int j = 0; j < VECTOR<float>; j++) near[j] = rounded(run[j]);
        Panel::put_run(e, k, near);
    }

    // Returns this lane's element of the 8 × 4 block that starts at (e, k).
    __device__ __forceinline__ float at(int e, int k) const {
        int lane = threadIdx.x % 32;
        return this->elements[(k + lane % 4) * Panel::LD + e + lane / 4];
    }
};

// Tile that multiplies `float` elements, rounded to TF32, on tensor cores.
template <int DOWN, int ACROSS, int DEPTH, int TALL, int WIDE>
struct RoundedTensor : WarpTile<DOWN, ACROSS, DEPTH, TALL, WIDE> {
    using Element = float;
    using Left = RoundedPanel<DOWN, DEPTH>;
    using Right = RoundedPanel<ACROSS, DEPTH>;

    __device__ __forceinline__ void multiply(const Left &left, const Right &right) {
#pragma unroll
        for (int k = 0; k < DEPTH; k += 8) {
            float b[WIDE / 8][2];
#pragma unroll
            for (int j = 0; j < WIDE / 8; j++)
#pragma unroll
                for (int l = 0; l < 2; l++)
                    b[j][l] = right.at(this->column() + j * 8, k + l * 4);
#pragma unroll
            for (int i = 0; i < TALL / 16; i++) {
                float a[4];
#pragma unroll
                for (int l = 0; l < 4; l++)
                    a[l] = left.at(this->row() + i * 16 + l % 2 * 8, k + l / 2 * 4);
#pragma unroll
                for (int j = 0; j < WIDE / 8; j++) multiply_add(this->sums[i][j], a, b[j]);
            }
        }
    }
};
