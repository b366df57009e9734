// Reductions along one axis, along all axes except one, and over a whole operand.
//
// The threads of a warp or block share the items of an output and combine their results in a fixed
// order. If `dot` gets no second operand, the kernel computes the sum of squares. If the outputs
// are too few to occupy the GPU, the items of each output are split into several parts. A `finish`
// kernel then combines the partial results of all parts.
#include "reduction.cuh"

// Vector of elements, 16 bytes in total, that a thread loads at once.
template <class T> struct alignas(16) Vector {
    static constexpr int WIDTH = 16 / sizeof(T);
    T values[WIDTH];
};

template <class T> __device__ __forceinline__ bool is_aligned(const T *p, size_t step) {
    return ((uintptr_t)p | step * sizeof(T)) % 16 == 0;
}

// Layout of a reduction's operands in which the items of an output form runs of `run` items with a
// constant stride. Item t of output q is element `q·q_step + t / run · run_step + t mod run ·
// step_x` of x; for z, `step_z` replaces `step_x`.
struct Rows {
    uint64_t outputs, items;
    uint64_t q_step, run, run_step, step_x, step_z;
    uint64_t splits, chunk; // parts per output; items per part but the last
    uint64_t warps;         // warps that share a part: 1, or all of a block
};

// Reduces one thread's share of the items from `first` to `last`, where `rank` is the thread's
// number among the `count` threads that share the items.
template <class Rule, class T>
__device__ __forceinline__ acc_t<T> reduce_run(const Rows &rows, const T *x, const T *z,
                                             size_t first, size_t last, size_t rank,
                                             size_t count) {
    using A = acc_t<T>;
    constexpr int WIDTH = Vector<T>::WIDTH;
    bool dense = rows.run >= rows.items && rows.step_x == 1 && (!z || rows.step_z == 1);
    if (dense && is_aligned(x, first) && (!z || is_aligned(z, first))) {
        A reductions[WIDTH];
#pragma unroll
        for (int j = 0; j < WIDTH; j++) reductions[j] = Rule::unit();
        size_t t = first + rank * WIDTH;
#pragma unroll 4
        for (; t + WIDTH <= last; t += count * WIDTH) {
            Vector<T> a = *reinterpret_cast<const Vector<T> *>(x + t), b = a;
            if (z) b = *reinterpret_cast<const Vector<T> *>(z + t);
#pragma unroll
            for (int j = 0; j < WIDTH; j++)
                reductions[j] = Rule::combine(reductions[j], Rule::term(widen(a.values[j]), widen(b.values[j])));
        }
        for (; t < last; t++)
            reductions[0] = Rule::combine(reductions[0], Rule::term(widen(x[t]), widen(z ? z[t] : x[t])));
#pragma unroll
        for (int half = WIDTH / 2; half > 0; half /= 2)
#pragma unroll
            for (int j = 0; j < half; j++) reductions[j] = Rule::combine(reductions[j], reductions[j + half]);
        return reductions[0];
    }
    A reduce = Rule::unit();
    size_t t = first + rank, row = t / rows.run, at = t % rows.run;
    size_t next_row = count / rows.run, next_at = count % rows.run;
#pragma unroll 4
    for (; t < last; t += count) {
        size_t start = row * rows.run_step;
        A a = widen(x[start + at * rows.step_x]);
        reduce = Rule::combine(reduce, Rule::term(a, z ? widen(z[start + at * rows.step_z]) : a));
        row += next_row;
        at += next_at;
        if (at >= rows.run) {
            at -= rows.run;
            row++;
        }
    }
    return reduce;
}

template <class Rule, class T>
__device__ __forceinline__ void reduce_rows(const Rows &rows, const Finish<acc_t<T>> &finish,
                                          const T *x, const T *z, T *y, acc_t<T> *parts) {
    size_t count = rows.warps * 32, teams = REDUCE_THREADS / count;
    size_t rank = threadIdx.x % count;
    // All threads of a block execute the same iterations, because `reduce_team` calls
    // `__syncthreads`.
    for (size_t block = blockIdx.x; block * teams < rows.outputs * rows.splits;
         block += gridDim.x) {
        size_t part = block * teams + threadIdx.x / count;
        size_t q = part / rows.splits, first = part % rows.splits * rows.chunk;
        size_t last = first + rows.chunk < rows.items ? first + rows.chunk : rows.items;
        acc_t<T> reduce = Rule::unit();
        if (q < rows.outputs) {
            size_t start = q * rows.q_step;
            reduce = reduce_run<Rule>(rows, x + start, z ? z + start : z, first, last, rank, count);
        }
        reduce = reduce_team<Rule>(reduce, rows.warps);
        if (rank != 0 || q >= rows.outputs) continue;
        if (parts) {
            parts[part] = reduce;
        } else {
            finish.store(reduce, y[q]);
        }
    }
}

// Layout of a reduction's operand in which the items of an output have stride `inner`, and
// neighbouring outputs have neighbouring items. Item t of output q is element `(q / inner · items +
// t) · inner + q mod inner`.
struct Columns {
    uint64_t outputs, items, inner;
    uint64_t splits, chunk;
    uint64_t deep; // threads of a block that share an output; a power of two
};

template <class Rule, class T>
__device__ __forceinline__ void reduce_columns(const Columns &columns,
                                             const Finish<acc_t<T>> &finish, const T *x,
                                             const T *z, T *y, acc_t<T> *parts) {
    using A = acc_t<T>;
    __shared__ A reductions[REDUCE_THREADS];
    size_t deep = columns.deep, wide = REDUCE_THREADS / deep;
    size_t blocks = (columns.outputs + wide - 1) / wide;
    for (size_t block = blockIdx.x; block < blocks * columns.splits; block += gridDim.x) {
        size_t q = block % blocks * wide + threadIdx.x % wide, rank = threadIdx.x / wide;
        size_t split = block / blocks, first = split * columns.chunk;
        size_t last = first + columns.chunk < columns.items ? first + columns.chunk : columns.items;
        A reduce = Rule::unit();
        if (q < columns.outputs) {
            size_t start = q / columns.inner * columns.items * columns.inner + q % columns.inner;
#pragma unroll 4
            for (size_t t = first + rank; t < last; t += deep) {
                size_t at = start + t * columns.inner;
                A a = widen(x[at]);
                reduce = Rule::combine(reduce, Rule::term(a, z ? widen(z[at]) : a));
            }
        }
        reductions[threadIdx.x] = reduce;
        for (size_t half = deep / 2; half > 0; half /= 2) {
            __syncthreads();
            if (rank < half)
                reductions[threadIdx.x] =
                    Rule::combine(reductions[threadIdx.x], reductions[threadIdx.x + half * wide]);
        }
        if (rank == 0 && q < columns.outputs) {
            if (parts) {
                parts[q * columns.splits + split] = reductions[threadIdx.x];
            } else {
                finish.store(reductions[threadIdx.x], y[q]);
            }
        }
        __syncthreads();
    }
}

// Combines the partial results of each output, with one warp per output.
template <class Rule, class T>
__device__ __forceinline__ void finish_parts(size_t outputs, size_t splits,
                                             const Finish<acc_t<T>> &finish,
                                             const acc_t<T> *parts, T *y) {
    size_t warps = gridDim.x * (size_t)blockDim.x / 32;
    for (size_t q = (blockIdx.x * (size_t)blockDim.x + threadIdx.x) / 32; q < outputs;
         q += warps) {
        acc_t<T> reduce = Rule::unit();
        for (size_t split = threadIdx.x % 32; split < splits; split += 32)
            reduce = Rule::combine(reduce, parts[q * splits + split]);
        reduce = reduce_warp<Rule>(reduce);
        if (threadIdx.x % 32 == 0) finish.store(reduce, y[q]);
    }
}

#define FOLD_ROWS(name, Rule, dtype, T)                                                        \
    KERNEL __launch_bounds__(REDUCE_THREADS, 4) reduce_rows_##name##_##dtype(                              \
        Rows rows, Finish<acc_t<T>> finish, const T *x, const T *z, T *y, acc_t<T> *parts) {   \
        reduce_rows<Rule<acc_t<T>>>(rows, finish, x, z, y, parts);                               \
    }
#define FOLD_COLUMNS(name, Rule, dtype, T)                                                     \
    KERNEL __launch_bounds__(REDUCE_THREADS, 4)                                                       \
    reduce_columns_##name##_##dtype(Columns columns, Finish<acc_t<T>> finish, const T *x,        \
                                  const T *z, T *y, acc_t<T> *parts) {                         \
        reduce_columns<Rule<acc_t<T>>>(columns, finish, x, z, y, parts);                         \
    }
#define FINISH(name, Rule, dtype, T)                                                           \
    KERNEL __launch_bounds__(REDUCE_THREADS)                                                          \
    finish_##name##_##dtype(size_t outputs, size_t splits, Finish<acc_t<T>> finish,            \
                            const acc_t<T> *parts, T *y) {                                     \
        finish_parts<Rule<acc_t<T>>, T>(outputs, splits, finish, parts, y);                    \
    }

#define FOLDS(name, Rule, dtype, T)                                                            \
    FOLD_ROWS(name, Rule, dtype, T)                                                            \
    FOLD_COLUMNS(name, Rule, dtype, T)
#define ALL_FOLDS(dtype, T)                                                                    \
    FOLDS(sum, Sum, dtype, T)                                                                  \
    FOLDS(abs_sum, AbsSum, dtype, T)                                                           \
    FOLDS(dot, Dot, dtype, T)                                                                  \
    FOLDS(max, Max, dtype, T)                                                                  \
    FOLDS(min, Min, dtype, T)                                                                  \
    FOLD_ROWS(amax, AbsMax, dtype, T)                                                          \
    FINISH(sum, Sum, dtype, T)                                                                 \
    FINISH(max, Max, dtype, T)                                                                 \
    FINISH(min, Min, dtype, T)
EACH_ELEMENT(ALL_FOLDS)
// The result of amax has the accumulator type.
FINISH(amax, AbsMax, f32, float)
FINISH(amax, AbsMax, f64, double)
