// Matrix products in tiles: what gemm.cu and convolution.cu share.
//
// A block computes a tile of the product, `Shape::DOWN` × `Shape::ACROSS`, in steps of
// `Shape::DEPTH` along k. Sources fetch a step of an operand into registers and put it into panels
// in shared memory, of which there are two: while one is multiplied, the next is on its way.
#pragma once

#include "element.cuh"
#include <string.h>

// Threads of a block.
constexpr int THREADS = 256;

// As many elements as are loaded or stored at once: 16 bytes.
template <class T> constexpr int VECTOR = 16 / sizeof(T);

struct alignas(16) Bits {
    uint32_t words[4];
};

// Whether runs that start at multiples of `step` elements from `p` start at multiples of `bytes`.
template <class T> __device__ __forceinline__ bool is_aligned(const T *p, size_t step, int bytes) {
    return ((uintptr_t)p | step * sizeof(T)) % bytes == 0;
}

// Copies 16 bytes between registers and memory that is aligned.
template <class T> __device__ __forceinline__ void copy_vector(T *to, const T *from) {
    *reinterpret_cast<Bits *>(to) = *reinterpret_cast<const Bits *>(from);
}

// A step of an operand that is stored as a matrix: its `EXTENT` is rows of A or columns of B.
template <class T, int EXTENT, int DEPTH> struct Matrix {
    static constexpr int CHUNKS = EXTENT * DEPTH / VECTOR<T>;
    static constexpr int HELD = (CHUNKS + THREADS - 1) / THREADS;

    const T *next; // first element of the tile's next step
    size_t ld;
    int extent;     // elements of the tile's that there are
    bool along_k;   // whether neighbours in memory are neighbours along k
    bool aligned;
    alignas(16) T held[HELD][VECTOR<T>];

    // From element `first` of `extent` on, at `k`.
    __device__ __forceinline__ Matrix(const T *p, size_t ld, bool along_k, bool aligned,
                                      size_t first, size_t extent, size_t k)
        : next(p + (along_k ? first * ld + k : k * ld + first)), ld(ld),
          extent(extent - first < EXTENT ? extent - first : EXTENT), along_k(along_k),
          aligned(aligned) {}

    // The first element of a chunk; false if the thread has no such chunk.
    __device__ __forceinline__ bool place(int i, int &e, int &k) const {
        int chunk = threadIdx.x + i * THREADS;
        constexpr int along = DEPTH / VECTOR<T>, across = EXTENT / VECTOR<T>;
        e = along_k ? chunk / along : chunk % across * VECTOR<T>;
        k = along_k ? chunk % along * VECTOR<T> : chunk / across;
        return CHUNKS % THREADS == 0 || chunk < CHUNKS;
    }

    // Takes the next step, of which there are `left` along k.
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

// A step of an operand in shared memory, as `Lanes` multiply it: k outermost.
template <class T, int EXTENT, int DEPTH> struct LanesPanel {
    // Keeps vectors aligned, and rows that are four apart out of each other's banks.
    static constexpr int LD = EXTENT + VECTOR<T>;
    T *elements;
    bool along_k;

    static constexpr int ELEMENTS = DEPTH * LD;

    __device__ __forceinline__ void put(int e, int k, T x) { elements[k * LD + e] = x; }

    __device__ __forceinline__ void put_run(int e, int k, const T (&run)[VECTOR<T>]) {
        if (!along_k) return copy_vector(elements + k * LD + e, run);
#pragma unroll
        for (int j = 0; j < VECTOR<T>; j++) put(e, k + j, run[j]);
    }
};

// Products of single elements: a thread has `TALL` × `WIDE` of the tile, in runs of a vector.
template <class T, int DOWN_, int ACROSS_, int DEPTH_, int TALL, int WIDE> struct Lanes {
    using Element = T;
    static constexpr int DOWN = DOWN_, ACROSS = ACROSS_, DEPTH = DEPTH_;
    static constexpr int RUN = VECTOR<T>;
    static constexpr int THREADS_DOWN = DOWN / TALL, THREADS_ACROSS = ACROSS / WIDE;
    static_assert(THREADS_DOWN * THREADS_ACROSS == THREADS, "each thread has a part of the tile");
    // Several steps along k at once take more registers than there are.
    static constexpr int UNROLLED = TALL * WIDE < 64 ? DEPTH : 1;
    using Left = LanesPanel<T, DOWN, DEPTH>;
    using Right = LanesPanel<T, ACROSS, DEPTH>;

    T sums[TALL][WIDE];

    __device__ __forceinline__ Lanes() {
#pragma unroll
        for (int i = 0; i < TALL; i++)
#pragma unroll
            for (int j = 0; j < WIDE; j++) sums[i][j] = 0;
    }

    // Neighbouring threads have neighbouring runs, so that they read different banks.
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

    // Calls `store(row, column, run of sums)` for all of the thread's part of the tile.
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

// Eight by eight 16-bit elements of each of four matrices: lane l says where row l % 8 of matrix
// l / 8 is, and gets elements 2·(l % 4) and the next of row l / 4 of each; if `across`, of the
// transposed matrices.
__device__ __forceinline__ void load_matrices(uint32_t (&into)[4], const void *row, bool across);

// sums (16 × 8) += a (16 × 16) · b (16 × 8), as `mma.m16n8k16` spreads them over a warp.
template <class T>
__device__ __forceinline__ void multiply_add(float (&sums)[4], const uint32_t (&a)[4],
                                             const uint32_t *b);

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

#else

// What lanes of a warp show each other.
struct Exchange {
    const void *rows[THREADS];
    uint32_t words[THREADS][6];
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

#endif

// A step of an operand in shared memory, as tensor cores multiply it: neighbours as they come.
template <class T, int EXTENT, int DEPTH> struct TensorPanel {
    // A vector more than the elements: eight rows that follow are in different banks.
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

    // Four matrices of 8 × 8, from (e, k) on: `e_bit` and `k_bit` are the bits of a matrix's
    // index that tell which half of 16 it is in.
    __device__ __forceinline__ void load(uint32_t (&into)[4], int e, int k, int e_bit,
                                         int k_bit) const {
        int lane = threadIdx.x % 32, matrix = lane / 8;
        e += (matrix >> e_bit & 1) * 8 + (along_k ? lane % 8 : 0);
        k += (matrix >> k_bit & 1) * 8 + (along_k ? 0 : lane % 8);
        load_matrices(into, at(e, k), !along_k);
    }
};

// Products on tensor cores, summed in `float`: a warp has `TALL` × `WIDE` of the tile.
template <class T, int DOWN_, int ACROSS_, int DEPTH_, int TALL, int WIDE> struct Tensor {
    using Element = T;
    static constexpr int DOWN = DOWN_, ACROSS = ACROSS_, DEPTH = DEPTH_;
    static constexpr int WARPS_ACROSS = ACROSS / WIDE;
    static_assert(DOWN / TALL * WARPS_ACROSS == THREADS / 32, "each warp has a part of the tile");
    using Left = TensorPanel<T, DOWN, DEPTH>;
    using Right = TensorPanel<T, ACROSS, DEPTH>;

    float sums[TALL / 16][WIDE / 8][4];

    __device__ __forceinline__ Tensor() {
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

    __device__ __forceinline__ void multiply(const Left &left, const Right &right) {
#pragma unroll
        for (int k = 0; k < DEPTH; k += 16) {
            uint32_t b[WIDE / 16][4];
#pragma unroll
            for (int j = 0; j < WIDE / 16; j++) right.load(b[j], column() + j * 16, k, 1, 0);
#pragma unroll
            for (int i = 0; i < TALL / 16; i++) {
                uint32_t a[4];
                left.load(a, row() + i * 16, k, 0, 1);
#pragma unroll
                for (int j = 0; j < WIDE / 8; j++)
                    multiply_add<T>(sums[i][j], a, b[j / 2] + j % 2 * 2);
            }
        }
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

// Tiles: for large products, for small ones, and for those of few rows.
template <class T> struct Shapes {
    using Large = Tensor<T, 128, 128, 32, 64, 32>;
    using Small = Tensor<T, 64, 64, 32, 32, 16>;
    using Low = Tensor<T, 32, 128, 32, 32, 16>;
};
template <> struct Shapes<float> {
    using Large = Lanes<float, 128, 128, 8, 8, 8>;
    using Small = Lanes<float, 64, 64, 16, 4, 4>;
    using Low = Lanes<float, 32, 128, 16, 4, 4>;
};
template <> struct Shapes<double> {
    using Small = Lanes<double, 64, 64, 8, 4, 4>;
};

// Applies `define(name, Shape, dtype, type)` to every shape of tiles and the types that have it.
#define EACH_SHAPE(define)                                                                     \
    define(large, Large, f16, __half)                                                          \
    define(large, Large, bf16, __nv_bfloat16)                                                  \
    define(large, Large, f32, float)                                                           \
    define(low, Low, f16, __half)                                                              \
    define(low, Low, bf16, __nv_bfloat16)                                                      \
    define(low, Low, f32, float)                                                               \
    define(small, Small, f16, __half)                                                          \
    define(small, Small, bf16, __nv_bfloat16)                                                  \
    define(small, Small, f32, float)                                                           \
    define(small, Small, f64, double)

// Sums of products from `k`, where the sources start, to `k_end`; once in a kernel.
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

// Stores what there is of a run: at once if it is whole and `aligned`.
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

// The tile that is block `at`'s: of product `z`, from a row and a column on. Tiles come in bands of
// eight rows of them, column by column, so that those that run together share what they read.
struct Place {
    uint32_t z;
    size_t row, column;

    __device__ __forceinline__ Place(uint32_t at, size_t rows, size_t columns, int down_by,
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
