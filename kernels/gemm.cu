// Batched GEMM: C ← α·op(A)·op(B) + β·C, row-major.
#include "tiled_gemm.cuh"

// `count` GEMMs. A thread block computes one tile of one GEMM, summed over one of `splits` chunks
// of k. If `parts` is not null, blocks write partial sums to `parts`, and the kernel `add_parts`
// adds up the partial sums. m and n are below 2³¹.
struct Gemm {
    uint64_t m, n, k;
    uint64_t lda, ldb, ldc;
    uint64_t stride_a, stride_b, stride_c;
    uint64_t count, splits, chunk;
    uint32_t a_along_k, b_along_k;
};

template <class Shape, class T>
__device__ void gemm(const Gemm &op, acc_t<T> alpha, acc_t<T> beta, const T *a, const T *b, T *c,
                     acc_t<T> *parts) {
    ThreadPosition place(blockIdx.x, op.m, op.n, Shape::DOWN, Shape::ACROSS);
    uint32_t z = place.z, row = place.row, column = place.column;
    size_t i = z / op.splits;
    size_t k = z % op.splits * op.chunk, k_end = k + op.chunk < op.k ? k + op.chunk : op.k;
    bool a_aligned = is_aligned(a, op.lda, 16) && is_aligned(a, op.stride_a, 16);
    bool b_aligned = is_aligned(b, op.ldb, 16) && is_aligned(b, op.stride_b, 16);
    Matrix<Shape, Shape::DOWN> left(a + i * op.stride_a, op.lda, op.a_along_k, a_aligned, row,
                                    op.m, k);
    Matrix<Shape, Shape::ACROSS> right(b + i * op.stride_b, op.ldb, op.b_along_k, b_aligned,
                                       column, op.n, k);
    multiply_tile<Shape>(left, right, k, k_end, [&](int r, int j, auto &run) {
        constexpr int RUN = sizeof(run) / sizeof(run[0]);
        uint32_t y = row + r, x = column + j;
        if (y >= op.m || x >= op.n) return;
        uint32_t room = op.n - x;
        if (parts) {
            bool aligned = is_aligned(parts, op.n, sizeof(run));
            return store_run(parts + ((size_t)z * op.m + y) * op.n + x, run, room, aligned);
        }
        T *to = c + i * op.stride_c + y * op.ldc + x;
#pragma unroll
        for (int l = 0; l < RUN; l++) {
            run[l] *= alpha;
            if (beta != 0 && l < room) run[l] += beta * widen(to[l]);
        }
        store_run(to, run, room, is_aligned(to, op.ldc, RUN * sizeof(T)));
    });
}

// C ← α·Σ parts + β·C, where the sum runs over the `splits` partial sums of each element of C.
template <class T>
__device__ void add_parts(const Gemm &op, acc_t<T> alpha, acc_t<T> beta, const acc_t<T> *parts,
                          T *c) {
    size_t each = op.m * op.n;
    EACH(at, each * op.count) {
        size_t i = at / each, y = at % each / op.n, x = at % op.n;
        const acc_t<T> *part = parts + i * op.splits * each + y * op.n + x;
        acc_t<T> sum = 0;
#pragma unroll 4
        for (size_t split = 0; split < op.splits; split++) sum += part[split * each];
        T &to = c[i * op.stride_c + y * op.ldc + x];
        to = narrow<T>(beta == 0 ? alpha * sum : alpha * sum + beta * widen(to));
    }
}

#define GEMM(name, Shape, dtype, T)                                                            \
    KERNEL TILE_BOUNDS(Shapes<T>::Shape)                                                       \
    gemm_##name##_##dtype(Gemm op, acc_t<T> alpha, acc_t<T> beta, const T *a, const T *b,      \
                          T *c, acc_t<T> *parts) {                                             \
        gemm<Shapes<T>::Shape>(op, alpha, beta, a, b, c, parts);                               \
    }
EACH_SHAPE(GEMM)

#define ADD_PARTS(dtype, T)                                                                    \
    KERNEL add_parts_##dtype(Gemm op, acc_t<T> alpha, acc_t<T> beta, const acc_t<T> *parts,    \
                             T *c) {                                                           \
        add_parts(op, alpha, beta, parts, c);                                                  \
    }
EACH_ELEMENT(ADD_PARTS)
