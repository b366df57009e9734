// GEMV: y ← α·op(A)·x + β·y, where A is stored as m × n.
//
// The kernel is memory-bound on A, so it reads aligned rows 16 bytes at a time. If the outputs are
// too few to occupy the GPU, the kernel splits each sum into partial sums. `parts` holds the
// partial sums in output-major order, and the kernel `finish_sum` adds up the partial sums of each
// output.
#include "reduction.cuh"

constexpr size_t WARPS = REDUCE_THREADS / 32;

// Vector of elements, 16 bytes in total, that a thread loads at once.
template <class T> struct alignas(16) Vector {
    static constexpr int WIDTH = 16 / sizeof(T);
    T values[WIDTH];

    // Loads `WIDTH` elements from `p`. If `room` is less than `WIDTH`, reads only `room` elements
    // and sets the other elements of the vector to 0.
    static __device__ __forceinline__ Vector load(const T *p, size_t room, bool aligned) {
        if (aligned && room >= WIDTH) return *reinterpret_cast<const Vector *>(p);
        Vector vector;
#pragma unroll
        for (int j = 0; j < WIDTH; j++) vector.values[j] = j < room ? p[j] : narrow<T>(0);
        return vector;
    }
};

template <class T> __device__ __forceinline__ bool is_aligned(const T *p, size_t step) {
    return ((uintptr_t)p | step * sizeof(T)) % 16 == 0;
}

struct Gemv {
    uint64_t m, n, lda;
    uint64_t splits, chunk; // parts per sum; items per part but the last, a multiple of WIDTH
    uint64_t warps;         // warps that share a row: 1, or all of a block
};

// y ← A·x: each output is the dot product of a row of A with x.
template <class T>
__device__ void gemv_rows(const Gemv &op, const Finish<acc_t<T>> &finish, const T *a, const T *x,
                          T *y, acc_t<T> *parts) {
    using A = acc_t<T>;
    constexpr int WIDTH = Vector<T>::WIDTH;
    size_t count = op.warps * 32, teams = REDUCE_THREADS / count;
    size_t rank = threadIdx.x % count;
    bool a_aligned = is_aligned(a, op.lda), x_aligned = is_aligned(x, 0);
    for (size_t block = blockIdx.x; block * teams < op.m * op.splits; block += gridDim.x) {
        size_t part = block * teams + threadIdx.x / count;
        size_t row = part / op.splits, first = part % op.splits * op.chunk;
        size_t last = first + op.chunk < op.n ? first + op.chunk : op.n;
        A sums[WIDTH] = {};
        if (row < op.m) {
            const T *from = a + row * op.lda;
#pragma unroll 4
            for (size_t j = first + rank * WIDTH; j < last; j += count * WIDTH) {
                Vector<T> of_a = Vector<T>::load(from + j, last - j, a_aligned);
                Vector<T> of_x = Vector<T>::load(x + j, last - j, x_aligned);
#pragma unroll
                for (int l = 0; l < WIDTH; l++) sums[l] += widen(of_a.values[l]) * widen(of_x.values[l]);
            }
        }
#pragma unroll
        for (int half = WIDTH / 2; half > 0; half /= 2)
#pragma unroll
            for (int l = 0; l < half; l++) sums[l] += sums[l + half];
        A sum = reduce_team<Sum<A>>(sums[0], op.warps);
        if (rank != 0 || row >= op.m) continue;
        if (parts) {
            parts[part] = sum;
        } else {
            finish.store(sum, y[row]);
        }
    }
}

// y ← Aᵀ·x: each lane computes the sums of `WIDTH` neighbouring columns of A. Each of the eight
// warps of a block reads every eighth row of A.
template <class T>
__device__ void gemv_columns(const Gemv &op, const Finish<acc_t<T>> &finish, const T *a,
                             const T *x, T *y, acc_t<T> *parts) {
    using A = acc_t<T>;
    constexpr size_t WIDTH = Vector<T>::WIDTH, WIDE = 32 * WIDTH;
    __shared__ A sums_of[WARPS][WIDE];
    size_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    size_t blocks = (op.n + WIDE - 1) / WIDE;
    bool aligned = is_aligned(a, op.lda);
    for (size_t block = blockIdx.x; block < blocks * op.splits; block += gridDim.x) {
        size_t start = block % blocks * WIDE, column = start + lane * WIDTH;
        size_t split = block / blocks, first = split * op.chunk;
        size_t last = first + op.chunk < op.m ? first + op.chunk : op.m;
        A sums[WIDTH] = {};
        if (column < op.n) {
#pragma unroll 4
            for (size_t i = first + warp; i < last; i += WARPS) {
                Vector<T> of_a = Vector<T>::load(a + i * op.lda + column, op.n - column, aligned);
                A factor = widen(x[i]);
#pragma unroll
                for (int l = 0; l < WIDTH; l++) sums[l] += widen(of_a.values[l]) * factor;
            }
        }
#pragma unroll
        for (int l = 0; l < WIDTH; l++) sums_of[warp][lane * WIDTH + l] = sums[l];
        __syncthreads();
        for (size_t j = threadIdx.x; j < WIDE && start + j < op.n; j += REDUCE_THREADS) {
            A sum = 0;
#pragma unroll
            for (int w = 0; w < WARPS; w++) sum += sums_of[w][j];
            if (parts) {
                parts[(start + j) * op.splits + split] = sum;
            } else {
                finish.store(sum, y[start + j]);
            }
        }
        __syncthreads();
    }
}

#define GEMV(name, dtype, T)                                                                   \
    KERNEL __launch_bounds__(REDUCE_THREADS) name##_##dtype(                                          \
        Gemv op, Finish<acc_t<T>> finish, const T *a, const T *x, T *y, acc_t<T> *parts) {     \
        name(op, finish, a, x, y, parts);                                                      \
    }
#define GEMV_ROWS(dtype, T) GEMV(gemv_rows, dtype, T)
#define GEMV_COLUMNS(dtype, T) GEMV(gemv_columns, dtype, T)
EACH_ELEMENT(GEMV_ROWS)
EACH_ELEMENT(GEMV_COLUMNS)
