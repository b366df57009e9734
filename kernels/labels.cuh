// Labels, which are class numbers stored as elements, and means over labels.
#pragma once

#include "block.cuh"
#include "kernel_error.cuh"
#include "rounding.cuh"

// `count` labels, one per position. The `extent` scores of a position have stride `inner`.
struct Labels {
    uint64_t count, extent, inner;
    // Label of positions that a loss ignores; used only if `has_ignored` is not 0.
    double ignored;
    uint64_t has_ignored;
    // Divisor of the sum over labels; 0 stands for the number of labels that are not ignored.
    double divisor;
};

constexpr int64_t IGNORED = -1;
constexpr int64_t NO_CLASS = -2;

// Returns the class of a label, `IGNORED`, or `NO_CLASS` if the label is not a class number.
template <class T> __device__ __forceinline__ int64_t class_of(const Labels &op, T label) {
    const double value = (double)widen(label);
    if (op.has_ignored && value == op.ignored) return IGNORED;
    return value >= 0 && value < (double)op.extent && floor(value) == value ? (int64_t)value
                                                                            : NO_CLASS;
}

// Returns the index of the score of class 0 for label number `at`.
__device__ __forceinline__ size_t first_score(const Labels &op, size_t at) {
    return at / op.inner * op.extent * op.inner + at % op.inner;
}

// A partial sum over labels, and the number of labels in the sum.
struct Part {
    double sum, count;
};

__device__ __forceinline__ Part over_block(Part part) {
    return {over_block<Sum>(part.sum), over_block<Sum>(part.count)};
}

// Adds up all `n` partial sums in `parts`, and returns the total to every thread of the block.
__device__ __forceinline__ Part combined(const Part *parts, size_t n) {
    Part part = {0, 0};
    for (size_t i = threadIdx.x; i < n; i += blockDim.x) {
        part.sum += parts[i].sum;
        part.count += parts[i].count;
    }
    return over_block(part);
}

__device__ __forceinline__ double divided_by(double divisor, double count) {
    return divisor != 0 ? divisor : fmax(count, 1.0);
}

// Adds up the partial sums of the threads of a block. A grid of a single block writes the mean to
// `y`. A grid of several blocks writes one partial sum per block to `parts`, from which
// `mean_of_parts` computes the mean.
template <class T>
__device__ __forceinline__ void hand_in(Part part, double divisor, Part *parts, T *y) {
    part = over_block(part);
    if (threadIdx.x != 0) return;
    if (gridDim.x == 1) {
        *y = nearest<T>(part.sum / divided_by(divisor, part.count));
    } else {
        parts[blockIdx.x] = part;
    }
}
