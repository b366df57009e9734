// Tiles of a GEMM that uses FMA instructions instead of tensor cores.
#pragma once

#include "vector.cuh"

// Panel in shared memory that holds `EXTENT` rows or columns of an operand for `DEPTH` indices k; k
// is the outer dimension, as `Lanes` requires.
template <class T, int EXTENT, int DEPTH, int GAP = VECTOR<T>> struct LanesPanel {
    // Each row has `GAP` elements of padding, so that vectors stay aligned and neighbouring rows
    // start in different banks of shared memory.
    static constexpr int LD = EXTENT + GAP;
    T *elements;
    bool along_k;

    static constexpr int ELEMENTS = DEPTH * LD;

    __device__ __forceinline__ void put(int e, int k, T x) { elements[k * LD + e] = x; }

    __device__ __forceinline__ void put_run(int e, int k, const T (&run)[VECTOR<T>]) {
        if (!along_k)
            return store_shared(reinterpret_cast<Bits *>(elements + k * LD + e),
                                *reinterpret_cast<const Bits *>(run));
#pragma unroll
        for (int j = 0; j < VECTOR<T>; j++) put(e, k + j, run[j]);
    }
};

// A tile of C, of which each thread computes `TALL` × `WIDE` elements, in runs of `RUN` contiguous
// elements (16 bytes).
template <class T, int DOWN_, int ACROSS_, int DEPTH_, int TALL, int WIDE> struct Lanes {
    using Element = T;
    static constexpr int DOWN = DOWN_, ACROSS = ACROSS_, DEPTH = DEPTH_;
    static constexpr int RUN = VECTOR<T>;
    static constexpr int THREADS_DOWN = DOWN / TALL, THREADS_ACROSS = ACROSS / WIDE;
    static constexpr int THREADS = THREADS_DOWN * THREADS_ACROSS;
    static_assert(THREADS <= MAX_THREADS, "a launch may have fewer threads");
    // With 128 bytes of sums or more, a loop unrolled over all indices k of a step would need too many
    // registers or too much of the instruction cache.
    static constexpr int UNROLLED = TALL * WIDE * sizeof(T) < 128 ? DEPTH : 4;
    using Left = LanesPanel<T, DOWN, DEPTH>;
    using Right = LanesPanel<T, ACROSS, DEPTH>;

    T sums[TALL][WIDE];

    __device__ __forceinline__ Lanes() {
#pragma unroll
        for (int i = 0; i < TALL; i++)
#pragma unroll
            for (int j = 0; j < WIDE; j++) sums[i][j] = 0;
    }

    // Neighbouring threads compute neighbouring runs, so that neighbouring threads read from
    // different banks of shared memory.
    static __device__ __forceinline__ int row(int i) {
        return i / RUN * (THREADS_DOWN * RUN) + threadIdx.x / THREADS_ACROSS * RUN + i % RUN;
    }
    static __device__ __forceinline__ int column(int j) {
        return j / RUN * (THREADS_ACROSS * RUN) + threadIdx.x % THREADS_ACROSS * RUN + j % RUN;
    }

    __device__ __forceinline__ void multiply(const Left &left, const Right &right) {
#pragma unroll UNROLLED
        for (int k = 0; k < DEPTH; k++) {
            alignas(16) T a[TALL], b[WIDE];
#pragma unroll
            for (int i = 0; i < TALL; i += RUN)
                copy_vector(a + i, left.elements + k * Left::LD + row(i));
#pragma unroll
            for (int j = 0; j < WIDE; j += RUN)
                copy_vector(b + j, right.elements + k * Right::LD + column(j));
#pragma unroll
            for (int i = 0; i < TALL; i++)
#pragma unroll
                for (int j = 0; j < WIDE; j++) sums[i][j] += a[i] * b[j];
        }
    }

    // Calls `store(row, column, run of sums)` for every run that the thread has computed.
    template <class Store> __device__ __forceinline__ void finish(Store store) const {
#pragma unroll
        for (int i = 0; i < TALL; i++)
#pragma unroll
            for (int j = 0; j < WIDE; j += RUN) {
                T run[RUN];
#pragma unroll
                for (int l = 0; l < RUN; l++) run[l] = sums[i][j + l];
                store(row(i), column(j), run);
            }
    }
};
