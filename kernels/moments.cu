// Mean and variance at each position of an axis, standardization by mean and variance, and the
// gradient of standardization. The reference implementation is in src/host/reduction/moments.rs and
// src/host/nn/standardize.rs.
//
// To limit rounding errors, the kernels sum in double precision, and subtract the first element or
// the mean of a position from each element. Because differences from the first element are small, a
// single pass over memory computes mean and variance accurately enough.

#include "block.cuh"
#include "map.cuh"
#include "rounding.cuh"
#include "rows.cuh"

// Shape [outer, extent, inner] of an operand; a position is an index along the middle axis, such as
// a channel.
struct Axis {
    uint64_t outer, extent, inner;
};

struct Sums {
    double first, second;

    __device__ __forceinline__ void add(Sums other) {
        first += other.first;
        second += other.second;
    }
};

// Iterator over every `step`-th element at position `e`, from element `start` on.
struct Cursor {
    size_t at, i, inner, gap, outer_step, inner_step;

    __device__ __forceinline__ Cursor(const Axis &op, size_t e, size_t start, size_t step)
        : i(start % op.inner), inner(op.inner), gap(op.extent * op.inner) {
        at = (start / inner * op.extent + e) * inner + i;
        outer_step = step / inner * gap;
        inner_step = step % inner;
    }

    __device__ __forceinline__ size_t next() {
        const size_t here = at;
        at += outer_step + inner_step;
        i += inner_step;
        if (i >= inner) {
            i -= inner;
            at += gap - inner;
        }
        return here;
    }
};

// Largest number of warps in a block of the function `sum_beside`.
constexpr unsigned WARPS = 8;

// Number of elements that a thread loads before adding up these elements, so that the loads
// overlap.
constexpr int AHEAD = 4;

// Sums `term` over the elements at position `e`; each block along x writes one partial sum.
template <class Term>
__device__ __forceinline__ void sum_along(const Axis &op, size_t e, Sums *parts, Term term) {
    const size_t count = op.outer * op.inner, step = (size_t)gridDim.x * blockDim.x;
    size_t t = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    Cursor cursor(op, e, t, step);
    Sums sums = {0, 0};
    for (; t + (AHEAD - 1) * step < count; t += AHEAD * step) {
        size_t at[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++) at[k] = cursor.next();
        Sums terms[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++) terms[k] = term(at[k]);
#pragma unroll
        for (int k = 0; k < AHEAD; k++) sums.add(terms[k]);
    }
    for (; t < count; t += step) sums.add(term(cursor.next()));
    sums = {over_block<Sum>(sums.first), over_block<Sum>(sums.second)};
    if (threadIdx.x == 0) parts[e * gridDim.x + blockIdx.x] = sums;
}

// Like `sum_along`, but for `inner` = 1, where neighbouring positions are contiguous in memory.
// Each lane sums one position, the warps of a block divide the outer axis among themselves, and
// each block along y writes one partial sum per position.
template <class Term>
__device__ __forceinline__ void sum_beside(const Axis &op, size_t e, Sums *parts, Term term) {
    const unsigned warp = threadIdx.x / WARP, warps = blockDim.x / WARP, lane = threadIdx.x % WARP;
    Sums sums = {0, 0};
    if (e < op.extent) {
        const size_t step = (size_t)gridDim.y * warps;
        for (size_t o = blockIdx.y * (size_t)warps + warp; o < op.outer; o += step) {
            sums.add(term(o * op.extent + e));
        }
    }
    __shared__ Sums of_warps[WARPS][WARP];
    of_warps[warp][lane] = sums;
    __syncthreads();
    if (warp == 0 && e < op.extent) {
        for (unsigned other = 1; other < warps; other++) sums.add(of_warps[other][lane]);
        parts[e * gridDim.y + blockIdx.y] = sums;
    }
    __syncthreads();
}

// For each position e, sums the function that `terms_at(e)` returns over all elements at position
// e.
template <class Terms> __device__ void sum_all(const Axis &op, Sums *parts, Terms terms_at) {
    if (op.inner == 1) {
        // All threads of a block execute the same iterations, because `sum_beside` calls
        // `__syncthreads`.
        for (size_t first = blockIdx.x * WARP; first < op.extent; first += gridDim.x * WARP) {
            const size_t e = first + threadIdx.x % WARP;
            sum_beside(op, e, parts, terms_at(e < op.extent ? e : first));
        }
    } else {
        for (size_t e = blockIdx.y; e < op.extent; e += gridDim.y) {
            sum_along(op, e, parts, terms_at(e));
        }
    }
}

// Adds up the `n` partial sums of position `e`, one per block. All lanes of a warp must call
// `combined`.
__device__ __forceinline__ Sums combined(const Sums *parts, size_t n, size_t e) {
    Sums sums = {0, 0};
    for (size_t i = threadIdx.x % WARP; i < n; i += WARP) sums.add(parts[e * n + i]);
    return {over_warp<Sum>(sums.first), over_warp<Sum>(sums.second)};
}

// Computes Σ (x − x₀) and Σ (x − x₀)² at each position, where x₀ is the position's first element.
template <class T> __device__ void moment_sums(const Axis &op, const T *x, Sums *parts) {
    sum_all(op, parts, [=](size_t e) {
        const double origin = (double)widen(x[e * op.inner]);
        return [=](size_t at) {
            const double d = (double)widen(x[at]) - origin;
            return Sums{d, d * d};
        };
    });
}

template <class T>
__device__ void moments(const Axis &op, const T *x, const Sums *parts, size_t n, T *mean,
                        T *variance) {
    const double count = (double)(op.outer * op.inner);
    EACH_BY_WARP(e, op.extent) {
        const Sums sums = combined(parts, n, e);
        if (threadIdx.x % WARP != 0) continue;
        const double shift = sums.first / count, spread = sums.second / count - shift * shift;
        mean[e] = nearest<T>((double)widen(x[e * op.inner]) + shift);
        // Rounding can make the variance slightly negative. NaN is kept.
        variance[e] = nearest<T>(spread < 0 ? 0 : spread);
    }
}

// The constant ε, which keeps the divisor from being 0, and whether ε is added to the variance or
// to the standard deviation.
template <class A> struct Rate {
    A epsilon;
    uint32_t in_variance;

    // Returns the factor that standardizes a difference from the mean: the reciprocal of the
    // standard deviation, stabilized by ε.
    __device__ __forceinline__ A op(A variance) const {
        return A(1) / (in_variance ? sqrt(variance + epsilon) : sqrt(variance) + epsilon);
    }
};

// y = (x − mean)·rate; `y` may be `x`.
template <class T>
__device__ void standardize(const Axis &op, Rate<acc_t<T>> rate, const T *mean, const T *variance,
                            const T *x, T *y, unsigned span) {
    using A = acc_t<T>;
    const ThreadPosition place(span);
    const size_t pack = op.inner % Pack<T>::LEN == 0 && packable(x, y) ? Pack<T>::LEN : 1;
    EACH_ROW(row, place, op.outer * op.extent) {
        const size_t e = row % op.extent, start = row * op.inner;
        const A middle = widen(mean[e]), factor = rate.op(widen(variance[e]));
        EACH_COLUMN(i, place, op.inner / pack) {
            if (pack == 1) {
                y[start + i] = narrow<T>((widen(x[start + i]) - middle) * factor);
                continue;
            }
            Pack<T> p = reinterpret_cast<const Pack<T> *>(x + start)[i];
#pragma unroll
            for (size_t k = 0; k < Pack<T>::LEN; k++) {
                p.at[k] = narrow<T>((widen(p.at[k]) - middle) * factor);
            }
            reinterpret_cast<Pack<T> *>(y + start)[i] = p;
        }
    }
}

// Computes Σ dy and Σ dy·(x − mean) at each position.
template <class T>
__device__ void slope_sums(const Axis &op, const T *x, const T *mean, const T *dy, Sums *parts) {
    sum_all(op, parts, [=](size_t e) {
        const double middle = (double)widen(mean[e]);
        return [=](size_t at) {
            const double slope = (double)widen(dy[at]);
            return Sums{slope, slope * ((double)widen(x[at]) - middle)};
        };
    });
}

// Coefficients of the gradient of standardization at one position, dx = ((dy − dy0) − (x −
// mean)·slope)·rate.
template <class A> struct Line {
    A mean, slope, dy0, rate;
};

template <class T>
__device__ void lines(const Axis &op, Rate<acc_t<T>> rate, const T *mean, const T *variance,
                      const Sums *parts, size_t n, Line<acc_t<T>> *lines) {
    using A = acc_t<T>;
    const double count = (double)(op.outer * op.inner);
    EACH_BY_WARP(e, op.extent) {
        const Sums sums = combined(parts, n, e);
        if (threadIdx.x % WARP != 0) continue;
        const A factor = rate.op(widen(variance[e]));
        lines[e] = {widen(mean[e]), A(sums.second / count) * factor * factor,
                    A(sums.first / count), factor};
    }
}

// dx = ((dy − dy0) − (x − mean)·slope)·rate; `dx` may be `dy`.
template <class T>
__device__ void standardize_backward(const Axis &op, const Line<acc_t<T>> *lines, const T *x,
                                     const T *dy, T *dx, unsigned span) {
    using A = acc_t<T>;
    const ThreadPosition place(span);
    const size_t pack = op.inner % Pack<T>::LEN == 0 && packable(x, dy, dx) ? Pack<T>::LEN : 1;
    EACH_ROW(row, place, op.outer * op.extent) {
        const size_t start = row * op.inner;
        const Line<A> line = lines[row % op.extent];
        const auto slope = [=](T x, T dy) {
            const A straight = widen(dy) - line.dy0;
            return narrow<T>((straight - (widen(x) - line.mean) * line.slope) * line.rate);
        };
        EACH_COLUMN(i, place, op.inner / pack) {
            if (pack == 1) {
                dx[start + i] = slope(x[start + i], dy[start + i]);
                continue;
            }
            const Pack<T> p = reinterpret_cast<const Pack<T> *>(x + start)[i];
            Pack<T> q = reinterpret_cast<const Pack<T> *>(dy + start)[i];
#pragma unroll
            for (size_t k = 0; k < Pack<T>::LEN; k++) q.at[k] = slope(p.at[k], q.at[k]);
            reinterpret_cast<Pack<T> *>(dx + start)[i] = q;
        }
    }
}

#define MOMENTS(dtype, T)                                                                        \
    KERNEL moment_sums_##dtype(Axis op, const T *x, Sums *parts) { moment_sums(op, x, parts); }  \
    KERNEL moments_##dtype(Axis op, const T *x, const Sums *parts, size_t n, T *mean,            \
                           T *variance) {                                                        \
        moments(op, x, parts, n, mean, variance);                                                \
    }                                                                                            \
    KERNEL standardize_##dtype(Axis op, acc_t<T> epsilon, uint32_t in_variance, const T *mean,   \
                               const T *variance, const T *x, T *y, uint32_t span) {             \
        standardize<T>(op, {epsilon, in_variance}, mean, variance, x, y, span);                  \
    }                                                                                            \
    KERNEL slope_sums_##dtype(Axis op, const T *x, const T *mean, const T *dy, Sums *parts) {    \
        slope_sums(op, x, mean, dy, parts);                                                      \
    }                                                                                            \
    KERNEL lines_##dtype(Axis op, acc_t<T> epsilon, uint32_t in_variance, const T *mean,         \
                         const T *variance, const Sums *parts, size_t n, Line<acc_t<T>> *to) {   \
        lines<T>(op, {epsilon, in_variance}, mean, variance, parts, n, to);                      \
    }                                                                                            \
    KERNEL standardize_backward_##dtype(Axis op, const Line<acc_t<T>> *lines, const T *x,        \
                                        const T *dy, T *dx, uint32_t span) {                     \
        standardize_backward(op, lines, x, dy, dx, span);                                        \
    }
EACH_ELEMENT(MOMENTS)
