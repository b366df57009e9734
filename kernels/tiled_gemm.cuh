// Tiled GEMM, shared by gemm.cu and convolution.cu.
//
// A block computes a `Shape::DOWN` × `Shape::ACROSS` tile of C in steps of `Shape::DEPTH` along k.
// The source of an operand fetches the elements of a step into registers, and then stores these
// elements to a panel in shared memory. Each operand has two panels: while a block multiplies one
// panel, the block loads the next step for the other panel.
#pragma once

#include "fma_tile.cuh"
#include "tensor_core_tile.cuh"

// Returns whether `p`, and every address that lies a multiple of `step` elements after `p`, is
// aligned to `bytes` bytes.
template <class T> __device__ __forceinline__ bool is_aligned(const T *p, size_t step, int bytes) {
    return ((uintptr_t)p | step * sizeof(T)) % bytes == 0;
}

// The source of an operand that is stored as a matrix. `EXTENT` is the number of rows of A or
// columns of B in a tile.
template <class T, int EXTENT, int DEPTH> struct Matrix {
    static constexpr int CHUNKS = EXTENT * DEPTH / VECTOR<T>;
    static constexpr int HELD = (CHUNKS + THREADS - 1) / THREADS;

    const T *next; // first element of the tile's next step
    size_t ld;
    int extent;     // number of the tile's rows or columns that exist
    bool along_k;   // whether the operand is contiguous along k
    bool aligned;
    alignas(16) T held[HELD][VECTOR<T>];

    // Starts at index `k` of row (of A) or column (of B) `first`; the operand has `extent` rows or
    // columns.
    __device__ __forceinline__ Matrix(const T *p, size_t ld, bool along_k, bool aligned,
                                      size_t first, size_t extent, size_t k)
        : next(p + (along_k ? first * ld + k : k * ld + first)), ld(ld),
          extent(extent - first < EXTENT ? extent - first : EXTENT), along_k(along_k),
          aligned(aligned) {}

    // Computes the coordinates `e` (row of A or column of B) and `k` of the first element of the
    // thread's chunk `i`. Returns false if the thread has no chunk `i`.
    __device__ __forceinline__ bool place(int i, int &e, int &k) const {
        int chunk = threadIdx.x + i * THREADS;
        constexpr int along = DEPTH / VECTOR<T>, across = EXTENT / VECTOR<T>;
        e = along_k ? chunk / along : chunk % across * VECTOR<T>;
        k = along_k ? chunk % along * VECTOR<T> : chunk / across;
        return CHUNKS % THREADS == 0 || chunk < CHUNKS;
    }

    // Fetches the operand's elements at the next `DEPTH` indices k into registers. Only the first
    // `left` of these indices exist; the elements at the others become 0.
    __device__ __forceinline__ void fetch(int left) {
#pragma unroll
        for (int i = 0; i < HELD; i++) {
            int e, k;
            bool mine = place(i, e, k) && e < extent && k < left;
            int run = !mine ? 0 : along_k ? left - k : extent - e;
            const T *from = next + (along_k ? e * ld + k : k * ld + e);
            if (aligned && run >= VECTOR<T>) {
                copy_vector(held[i], from);
            } else {
#pragma unroll
                for (int j = 0; j < VECTOR<T>; j++) held[i][j] = j < run ? from[j] : narrow<T>(0);
            }
        }
        next += along_k ? DEPTH : DEPTH * ld;
    }

    template <class Panel> __device__ __forceinline__ void put(Panel &panel) const {
#pragma unroll
        for (int i = 0; i < HELD; i++) {
            int e, k;
            if (place(i, e, k)) panel.put_run(e, k, held[i]);
        }
    }
};

// Tile shapes for large GEMMs, small GEMMs, and GEMMs with few rows (`Low`). Tile shapes whose
// names begin with `Rounded` compute in TF32.
template <class T> struct Shapes {
    using Large = Tensor<T, 128, 128, 32, 64, 32>;
    using Small = Tensor<T, 64, 64, 32, 32, 16>;
    using Low = Tensor<T, 32, 128, 32, 32, 16>;
};
template <> struct Shapes<float> {
    using Large = Lanes<float, 128, 128, 8, 8, 8>;
    using Small = Lanes<float, 64, 64, 16, 4, 4>;
    using Low = Lanes<float, 32, 128, 16, 4, 4>;
    using RoundedLarge = RoundedTensor<128, 128, 16, 64, 32>;
    using RoundedSmall = RoundedTensor<64, 64, 16, 32, 16>;
    using RoundedLow = RoundedTensor<32, 128, 16, 32, 16>;
};
template <> struct Shapes<double> {
    using Small = Lanes<double, 64, 64, 8, 4, 4>;
};

// Expands `define(name, Shape, dtype, type)` for every tile shape of every element type that the
// compute capability supports. bf16 and TF32 need the tensor cores of compute capability 8.0.
#define EACH_SHAPE(define)                                                                     \
    define(large, Large, f16, __half)                                                          \
    define(large, Large, f32, float)                                                           \
    define(low, Low, f16, __half)                                                              \
    define(low, Low, f32, float)                                                               \
    define(small, Small, f16, __half)                                                          \
    define(small, Small, f32, float)                                                           \
    define(small, Small, f64, double)                                                          \
    EACH_SHAPE_SINCE_80(define)

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define EACH_SHAPE_SINCE_80(define)
#else
#define EACH_SHAPE_SINCE_80(define)                                                            \
    define(large, Large, bf16, __nv_bfloat16)                                                  \
    define(low, Low, bf16, __nv_bfloat16)                                                      \
    define(small, Small, bf16, __nv_bfloat16)                                                  \
    define(tf32_large, RoundedLarge, f32, float)                                               \
    define(tf32_low, RoundedLow, f32, float)                                                   \
    define(tf32_small, RoundedSmall, f32, float)
#endif

// Computes a tile of C as a sum over the indices from `k` to `k_end`, and stores the tile; the
// sources `left` and `right` start at `k`. A kernel must not call `multiply_tile` twice, because no
// barrier prevents a second call from overwriting panels that are still in use.
template <class Shape, class Left, class Right, class Store>
__device__ __forceinline__ void multiply_tile(Left left, Right right, size_t k, size_t k_end,
                                              Store store) {
    using T = typename Shape::Element;
    alignas(16) __shared__ T lefts[2][Shape::Left::ELEMENTS];
    alignas(16) __shared__ T rights[2][Shape::Right::ELEMENTS];
    Shape tile;
    typename Shape::Left a{lefts[0], left.along_k};
    typename Shape::Right b{rights[0], right.along_k};
    for (int held = 0, panel = 0;; held = 1, panel ^= 1) {
        int left_k = k_end - k < Shape::DEPTH ? (int)(k_end - k) : Shape::DEPTH;
        if (left_k > 0) {
            left.fetch(left_k);
            right.fetch(left_k);
        }
        if (held) tile.multiply(a, b);
        if (left_k == 0) break;
        k += left_k;
        a.elements = lefts[panel];
        b.elements = rights[panel];
        left.put(a);
        right.put(b);
        __syncthreads();
    }
    tile.finish(store);
}

// Stores the first `left` elements of a run; a single instruction stores the whole run if `left` is
// at least `RUN` and `aligned` is true.
template <class T, int RUN>
__device__ __forceinline__ void store_run(T *to, const acc_t<T> (&run)[RUN], size_t left,
                                          bool aligned) {
    struct alignas(RUN * sizeof(T)) Run {
        T elements[RUN];
    } whole;
#pragma unroll
    for (int i = 0; i < RUN; i++) whole.elements[i] = narrow<T>(run[i]);
    if (aligned && left >= RUN) {
        *reinterpret_cast<Run *>(to) = whole;
    } else {
#pragma unroll
        for (int i = 0; i < RUN; i++)
            if (i < left) to[i] = whole.elements[i];
    }
}

// The tile of C that thread block `at` computes: the number `z` of the GEMM, and the tile's first
// row and first column. Tiles are numbered column by column in bands of eight tile rows, so that
// concurrent blocks share rows and columns.
struct ThreadPosition {
    uint32_t z;
    size_t row, column;

    __device__ __forceinline__ ThreadPosition(uint32_t at, size_t rows, size_t columns, int down_by,
                                     int across_by) {
        constexpr uint32_t BAND = 8;
        uint32_t down = (rows + down_by - 1) / down_by;
        uint32_t across = (columns + across_by - 1) / across_by;
        z = at / (down * across);
        at %= down * across;
        uint32_t first = at / (BAND * across) * BAND;
        uint32_t height = down - first < BAND ? down - first : BAND;
        at %= BAND * across;
        row = (size_t)(first + at % height) * down_by;
        column = (size_t)(at / height) * across_by;
    }
};
