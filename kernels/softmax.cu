// Softmax along an axis, and its gradient; src/host/nn/softmax.rs is the reference implementation.
//
// A row consists of the elements along the axis at one position of the other axes. If `inner` is
// large, one thread computes each row, so that neighbouring threads read neighbouring elements.
// If `inner` is small, one block computes each row.

#include "block.cuh"

// Returns the index of the first element of a row, whose elements have stride `inner`.
__device__ __forceinline__ size_t start_of(size_t row, size_t extent, size_t inner) {
    return row / inner * extent * inner + row % inner;
}

template <class A> __device__ __forceinline__ A lowest() { return -A(INFINITY); }

// y = eˣ⁻ᵐ / Σ eˣ⁻ᵐ, where m is the row's maximum; `y` may be `x`.
template <class T>
__device__ void softmax(size_t rows, size_t extent, size_t inner, const T *x, T *y) {
    using A = acc_t<T>;
    EACH(row, rows) {
        const size_t start = start_of(row, extent, inner), end = start + extent * inner;
        A peak = lowest<A>(), sum = 0;
        for (size_t i = start; i < end; i += inner) peak = Greater::apply(peak, widen(x[i]));
        for (size_t i = start; i < end; i += inner) sum += exp(widen(x[i]) - peak);
        for (size_t i = start; i < end; i += inner) y[i] = narrow<T>(exp(widen(x[i]) - peak) / sum);
    }
}

template <class T>
__device__ void softmax_by_block(size_t rows, size_t extent, size_t inner, const T *x, T *y) {
    using A = acc_t<T>;
    const size_t first = threadIdx.x * inner, step = blockDim.x * inner;
    for (size_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const size_t start = start_of(row, extent, inner), end = start + extent * inner;
        A peak = lowest<A>(), sum = 0;
        for (size_t i = start + first; i < end; i += step) peak = Greater::apply(peak, widen(x[i]));
        peak = over_block<Greater>(peak);
        for (size_t i = start + first; i < end; i += step) sum += exp(widen(x[i]) - peak);
        sum = over_block<Sum>(sum);
        for (size_t i = start + first; i < end; i += step) {
            y[i] = narrow<T>(exp(widen(x[i]) - peak) / sum);
        }
    }
}

// dx = (dy − Σ dy·y)·y; `dx` may be `dy`.
template <class T>
__device__ void softmax_backward(size_t rows, size_t extent, size_t inner, const T *y, const T *dy,
                                 T *dx) {
    using A = acc_t<T>;
    EACH(row, rows) {
        const size_t start = start_of(row, extent, inner), end = start + extent * inner;
        A dot = 0;
        for (size_t i = start; i < end; i += inner) dot += widen(dy[i]) * widen(y[i]);
        for (size_t i = start; i < end; i += inner) {
            dx[i] = narrow<T>((widen(dy[i]) - dot) * widen(y[i]));
        }
    }
}

template <class T>
__device__ void softmax_backward_by_block(size_t rows, size_t extent, size_t inner, const T *y,
                                          const T *dy, T *dx) {
    using A = acc_t<T>;
    const size_t first = threadIdx.x * inner, step = blockDim.x * inner;
    for (size_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const size_t start = start_of(row, extent, inner), end = start + extent * inner;
        A dot = 0;
        for (size_t i = start + first; i < end; i += step) dot += widen(dy[i]) * widen(y[i]);
        dot = over_block<Sum>(dot);
        for (size_t i = start + first; i < end; i += step) {
            dx[i] = narrow<T>((widen(dy[i]) - dot) * widen(y[i]));
        }
    }
}

#define SOFTMAX(dtype, T)                                                                        \
    KERNEL softmax_##dtype(size_t rows, size_t extent, size_t inner, const T *x, T *y) {         \
        softmax(rows, extent, inner, x, y);                                                      \
    }                                                                                            \
    KERNEL softmax_by_block_##dtype(size_t rows, size_t extent, size_t inner, const T *x, T *y) { \
        softmax_by_block(rows, extent, inner, x, y);                                             \
    }                                                                                            \
    KERNEL softmax_backward_##dtype(size_t rows, size_t extent, size_t inner, const T *y,        \
                                    const T *dy, T *dx) {                                        \
        softmax_backward(rows, extent, inner, y, dy, dx);                                        \
    }                                                                                            \
    KERNEL softmax_backward_by_block_##dtype(size_t rows, size_t extent, size_t inner,           \
                                             const T *y, const T *dy, T *dx) {                   \
        softmax_backward_by_block(rows, extent, inner, y, dy, dx);                               \
    }
EACH_ELEMENT(SOFTMAX)
