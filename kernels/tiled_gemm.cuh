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
// columns of B in a tile. Each thread copies vectors, `STRIDE_E` rows or columns apart if the operand
// is contiguous along k, else `STRIDE_K` indices k apart.
template <class Shape, int EXTENT> struct Matrix {
    using T = typename Shape::Element;
    static constexpr int DEPTH = Shape::DEPTH, THREADS = Shape::THREADS;
    static constexpr int VECTORS = EXTENT * DEPTH / VECTOR<T>;
    static constexpr int HELD = (VECTORS + THREADS - 1) / THREADS;
    static constexpr int ALONG = DEPTH / VECTOR<T>, ACROSS = EXTENT / VECTOR<T>;
    static constexpr int STRIDE_E = THREADS / ALONG, STRIDE_K = THREADS / ACROSS;
    static_assert(STRIDE_E % 8 == 0 && THREADS % ACROSS == 0, "vectors have a fixed distance");
    static_assert(VECTORS % THREADS == 0 || HELD == 1, "a thread has all of its vectors, or none");

    const T *next; // the thread's first vector of the next step
    size_t ld;
    int extent;     // number of the tile's rows or columns that exist
    bool along_k;   // whether the operand is contiguous along k
    bool aligned;
    alignas(16) T held[HELD][VECTOR<T>];

    // Creates the source of a tile whose first row (of A) or column (of B) is `first`. The operand
    // has `extent` rows or columns. The first call of `fetch` loads the elements from index `k` on.
    __device__ __forceinline__ Matrix(const T *p, size_t ld, bool along_k, bool aligned,
                                      size_t first, size_t extent, size_t k)
        : ld(ld), extent(extent - first < EXTENT ? extent - first : EXTENT), along_k(along_k),
          aligned(aligned) {
        size_t e0 = first + e(), k0 = k + this->k();
        next = p + (along_k ? e0 * ld + k0 : k0 * ld + e0);
    }

    // Coordinates of the first element of the thread's first vector. If the operand is contiguous
    // along k, eight successive threads copy vectors of different rows or columns, because panels have
    // these vectors in different banks of shared memory.
    __device__ __forceinline__ int e() const {
        return along_k ? threadIdx.x / (8 * ALONG) * 8 + threadIdx.x % 8
                       : threadIdx.x % ACROSS * VECTOR<T>;
    }
    __device__ __forceinline__ int k() const {
        return along_k ? threadIdx.x / 8 % ALONG * VECTOR<T> : threadIdx.x / ACROSS;
    }

    __device__ __forceinline__ bool has_vectors() const {
        return VECTORS % THREADS == 0 || threadIdx.x < VECTORS;
    }

    // Returns whether all rows or columns of the tile exist and all vectors are aligned.
    __device__ __forceinline__ bool is_whole() const { return aligned && extent == EXTENT; }

    __device__ __forceinline__ size_t stride() const {
        return (along_k ? STRIDE_E : STRIDE_K) * ld;
    }

    __device__ __forceinline__ void advance() { next += along_k ? DEPTH : DEPTH * ld; }

    // Fetches the elements of a step into registers like `fetch`, for a whole tile and if all
    // indices k of the step exist.
    __device__ __forceinline__ void fetch_whole() {
#pragma unroll
        for (int i = 0; i < HELD; i++)
            if (has_vectors()) copy_vector(held[i], next + i * stride());
        advance();
    }

    // Fetches the operand's elements at the next `DEPTH` indices k into registers. If the operand ends
    // after `left` of these indices, the registers for the other indices are set to 0.
    __device__ __forceinline__ void fetch(int left) {
#pragma unroll
        for (int i = 0; i < HELD; i++) {
            int e = this->e() + (along_k ? i * STRIDE_E : 0);
            int k = this->k() + (along_k ? 0 : i * STRIDE_K);
            bool exists = has_vectors() && e < extent && k < left;
            int run = !exists ? 0 : along_k ? left - k : extent - e;
            const T *from = next + i * stride();
            if (aligned && run >= VECTOR<T>) {
                copy_vector(held[i], from);
            } else {
#pragma unroll
                for (int j = 0; j < VECTOR<T>; j++) held[i][j] = j < run ? from[j] : narrow<T>(0);
            }
        }
        advance();
    }

    template <class Panel> __device__ __forceinline__ void put(Panel &panel) const {
        if (!has_vectors()) return;
#pragma unroll
        for (int i = 0; i < HELD; i++)
            panel.put_run(e() + (along_k ? i * STRIDE_E : 0), k() + (along_k ? 0 : i * STRIDE_K),
                          held[i]);
    }
};

// Tile shapes for large GEMMs, small GEMMs, and GEMMs with few rows (`Low`). Tile shapes whose
// names begin with `Rounded` compute in TF32.
template <class T> struct Shapes {
    using Large = Tensor<T, 128, 128, 32, 64, 64>;
    using Small = Tensor<T, 64, 64, 32, 32, 16>;
    using Low = Tensor<T, 32, 128, 32, 32, 16>;
};
template <> struct Shapes<float> {
    using Large = Lanes<float, 128, 128, 8, 16, 8>;
    using Small = Lanes<float, 64, 64, 16, 4, 4>;
    using Low = Lanes<float, 32, 128, 16, 4, 4>;
    using RoundedLarge = RoundedTensor<128, 128, 16, 64, 64>;
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

// The panels of both operands of a tile, two of each, and the sums of the tile.
template <class Shape, class Left, class Right> struct Pipeline {
    using T = typename Shape::Element;

    T *lefts, *rights;
    Left left;
    Right right;
    typename Shape::Left a;
    typename Shape::Right b;
    Shape tile;
    int panel = 0; // panel that `put` writes next

    __device__ __forceinline__ Pipeline(T *lefts, T *rights, const Left &left, const Right &right)
        : lefts(lefts), rights(rights), left(left), right(right), a{lefts, left.along_k},
          b{rights, right.along_k} {}

    // Stores the fetched step to the panels that the block does not multiply, and multiplies these
    // panels next.
    __device__ __forceinline__ void put() {
        a.elements = lefts + panel * Shape::Left::ELEMENTS;
        b.elements = rights + panel * Shape::Right::ELEMENTS;
        left.put(a);
        right.put(b);
        panel ^= 1;
        __syncthreads();
    }

    // Multiplies the panels of the current step, and loads the next step, `steps` times. All
    // elements of these steps exist.
    __device__ __forceinline__ void whole_steps(size_t steps) {
        for (; steps > 0; steps--) {
            left.fetch_whole();
            right.fetch_whole();
            tile.multiply(a, b);
            put();
        }
    }
};

// Computes a tile of C as a sum over the indices from `k` to `k_end`, and stores the tile; the
// sources `left` and `right` start at `k`. A kernel must not call `multiply_tile` twice, because no
// barrier prevents a second call from overwriting panels that are still in use.
template <class Shape, class Left, class Right, class Store>
__device__ __forceinline__ void multiply_tile(const Left &left, const Right &right, size_t k,
                                              size_t k_end, Store store) {
    using T = typename Shape::Element;
    alignas(16) __shared__ T lefts[2 * Shape::Left::ELEMENTS];
    alignas(16) __shared__ T rights[2 * Shape::Right::ELEMENTS];
    Pipeline<Shape, Left, Right> pipeline(lefts, rights, left, right);
    bool whole = left.is_whole() && right.is_whole();
    for (bool first = true;; first = false) {
        int left_k = k_end - k < Shape::DEPTH ? (int)(k_end - k) : Shape::DEPTH;
        if (left_k > 0) {
            pipeline.left.fetch(left_k);
            pipeline.right.fetch(left_k);
        }
        if (!first) pipeline.tile.multiply(pipeline.a, pipeline.b);
        if (left_k == 0) break;
        k += left_k;
        pipeline.put();
        // Whole steps need no bounds. The other steps are the first and the last one.
        size_t steps = whole ? (k_end - k) / Shape::DEPTH : 0;
        k += steps * Shape::DEPTH;
        pipeline.whole_steps(steps);
    }
    pipeline.tile.finish(store);
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
