// Two-dimensional pooling; src/host/nn/pooling is the reference implementation.
//
// A thread processes one position in several planes, so the thread computes the bounds of the
// position's window only once. In the backward kernels, a thread computes an element of dx: it
// sums, in a fixed order, the gradients of all windows that contain the element.

#include "block.cuh"
#include "rows.cuh"

// Descriptor of a pooling: sizes, strides and padding along both axes of a plane. A plane has fewer
// than 2³¹ elements.
struct Pool {
    uint64_t planes;
    uint32_t input[2], output[2], kernel[2], stride[2], pad[2];

    __device__ __forceinline__ uint32_t inputs() const { return input[0] * input[1]; }
    __device__ __forceinline__ uint32_t outputs() const { return output[0] * output[1]; }
};

// The range of indices from `start` to `end`, without `end`.
struct Range {
    uint32_t start, end;
};

// Returns the range of elements along an axis that window `p` covers.
__device__ __forceinline__ Range covered(const Pool &op, int axis, uint32_t p) {
    const int64_t start = (int64_t)p * op.stride[axis] - op.pad[axis];
    const int64_t end = min(start + op.kernel[axis], (int64_t)op.input[axis]);
    return {(uint32_t)min(max(start, (int64_t)0), max(end, (int64_t)0)),
            (uint32_t)max(end, (int64_t)0)};
}

// Returns the range of windows along an axis that cover element `i`.
__device__ __forceinline__ Range covering(const Pool &op, int axis, uint32_t i) {
    const uint64_t at = (uint64_t)i + op.pad[axis], kernel = op.kernel[axis];
    const uint64_t end = min(at / op.stride[axis] + 1, (uint64_t)op.output[axis]);
    const uint64_t start = at < kernel ? 0 : (at - kernel) / op.stride[axis] + 1;
    return {(uint32_t)min(start, end), (uint32_t)end};
}

// Returns the length of window `p` along an axis, including padding. The returned length is zero or
// negative if the window starts beyond the padding.
__device__ __forceinline__ int64_t size_of(const Pool &op, int axis, uint32_t p) {
    const int64_t start = (int64_t)p * op.stride[axis];
    return min(start + op.kernel[axis], (int64_t)op.input[axis] + 2 * op.pad[axis]) - start;
}

// Returns the initial maximum of a window: the lowest finite value of `T`, or of `float` if `T` is
// `double`.
template <class T> __device__ __forceinline__ acc_t<T> least() { return -3.402823466e38f; }
template <> __device__ __forceinline__ float least<__half>() { return -65504.0f; }
template <> __device__ __forceinline__ float least<__nv_bfloat16>() { return -3.38953139e38f; }

// y = the maximum of each window; mask = the index in the plane of the first element that equals
// the maximum, or −1.
template <class T>
__device__ void max_pool(const Pool &op, const T *x, T *y, int32_t *mask, unsigned span) {
    const ThreadPosition place(span);
    EACH_COLUMN(window, place, op.outputs()) {
        const Range rows = covered(op, 0, (uint32_t)window / op.output[1]);
        const Range columns = covered(op, 1, (uint32_t)window % op.output[1]);
        EACH_ROW(plane, place, op.planes) {
            const T *from = x + plane * op.inputs();
            acc_t<T> best = least<T>();
            int32_t found = -1;
            for (uint32_t r = rows.start; r < rows.end; r++) {
                for (uint32_t c = columns.start; c < columns.end; c++) {
                    const acc_t<T> value = widen(from[r * op.input[1] + c]);
                    if (value > best) {
                        best = value;
                        found = r * op.input[1] + c;
                    }
                }
            }
            const size_t to = plane * op.outputs() + window;
            y[to] = narrow<T>(best);
            mask[to] = found;
        }
    }
}

// dx = the sum of dy over the windows whose mask is the element's index. The kernel ignores a mask
// that is outside its window.
template <class T>
__device__ void max_pool_backward(const Pool &op, const T *dy, const int32_t *mask,
                                  T *dx, unsigned span) {
    const ThreadPosition place(span);
    EACH_COLUMN(here, place, op.inputs()) {
        const Range rows = covering(op, 0, (uint32_t)here / op.input[1]);
        const Range columns = covering(op, 1, (uint32_t)here % op.input[1]);
        EACH_ROW(plane, place, op.planes) {
            const size_t from = plane * op.outputs();
            acc_t<T> sum = 0;
            for (uint32_t r = rows.start; r < rows.end; r++) {
                for (uint32_t c = columns.start; c < columns.end; c++) {
                    const size_t window = from + r * op.output[1] + c;
                    if (mask[window] == (int32_t)here) sum += widen(dy[window]);
                }
            }
            dx[plane * op.inputs() + here] = narrow<T>(sum);
        }
    }
}

// y = the mean of each window, where padding counts as zeros.
template <class T> __device__ void average_pool(const Pool &op, const T *x, T *y, unsigned span) {
    const ThreadPosition place(span);
    EACH_COLUMN(window, place, op.outputs()) {
        const uint32_t row = (uint32_t)window / op.output[1];
        const uint32_t column = (uint32_t)window % op.output[1];
        const Range rows = covered(op, 0, row), columns = covered(op, 1, column);
        const acc_t<T> size = (acc_t<T>)(size_of(op, 0, row) * size_of(op, 1, column));
        EACH_ROW(plane, place, op.planes) {
            const T *from = x + plane * op.inputs();
            acc_t<T> sum = 0;
            for (uint32_t r = rows.start; r < rows.end; r++) {
                for (uint32_t c = columns.start; c < columns.end; c++) {
                    sum += widen(from[r * op.input[1] + c]);
                }
            }
            y[plane * op.outputs() + window] = narrow<T>(sum / size);
        }
    }
}

// Like `average_pool`, but for few large windows: the lanes of a warp share a window.
template <class T> __device__ void average_pool_by_warp(const Pool &op, const T *x, T *y) {
    EACH_BY_WARP(i, op.planes * op.outputs()) {
        const size_t plane = i / op.outputs();
        const uint32_t window = (uint32_t)(i % op.outputs());
        const uint32_t row = window / op.output[1], column = window % op.output[1];
        const Range rows = covered(op, 0, row), columns = covered(op, 1, column);
        const uint32_t width = columns.end - columns.start;
        const uint32_t area = (rows.end - rows.start) * width;
        const T *from = x + plane * op.inputs();
        acc_t<T> sum = 0;
        for (uint32_t t = threadIdx.x % WARP; t < area; t += WARP) {
            const uint32_t r = rows.start + t / width, c = columns.start + t % width;
            sum += widen(from[r * op.input[1] + c]);
        }
        sum = over_warp<Sum>(sum);
        const acc_t<T> size = (acc_t<T>)(size_of(op, 0, row) * size_of(op, 1, column));
        if (threadIdx.x % WARP == 0) y[i] = narrow<T>(sum / size);
    }
}

// dx = the sum of dy / window size over the windows that contain the element.
template <class T>
__device__ void average_pool_backward(const Pool &op, const T *dy, T *dx, unsigned span) {
    const ThreadPosition place(span);
    EACH_COLUMN(here, place, op.inputs()) {
        const Range rows = covering(op, 0, (uint32_t)here / op.input[1]);
        const Range columns = covering(op, 1, (uint32_t)here % op.input[1]);
        EACH_ROW(plane, place, op.planes) {
            const T *from = dy + plane * op.outputs();
            acc_t<T> sum = 0;
            for (uint32_t r = rows.start; r < rows.end; r++) {
                const int64_t height = size_of(op, 0, r);
                for (uint32_t c = columns.start; c < columns.end; c++) {
                    const acc_t<T> size = (acc_t<T>)(height * size_of(op, 1, c));
                    sum += widen(from[r * op.output[1] + c]) / size;
                }
            }
            dx[plane * op.inputs() + here] = narrow<T>(sum);
        }
    }
}

// y = an element of each window, drawn with a probability proportional to the element's value; mask
// as in `max_pool`.
//
// The kernel sums in double precision and in row-major order, as the host does. The kernel draws
// the first element at which the running sum exceeds u · total, or the window's first element if no
// running sum does.
template <class T>
__device__ void stochastic_pool(const Pool &op, const T *x, const float *u, T *y,
                                int32_t *mask, unsigned span) {
    const ThreadPosition place(span);
    EACH_COLUMN(window, place, op.outputs()) {
        const Range rows = covered(op, 0, (uint32_t)window / op.output[1]);
        const Range columns = covered(op, 1, (uint32_t)window % op.output[1]);
        EACH_ROW(plane, place, op.planes) {
            const T *from = x + plane * op.inputs();
            const size_t to = plane * op.outputs() + window;
            double total = 0, sum = 0;
            for (uint32_t r = rows.start; r < rows.end; r++) {
                for (uint32_t c = columns.start; c < columns.end; c++) {
                    const double value = (double)widen(from[r * op.input[1] + c]);
                    total += value > 0 ? value : 0;
                }
            }
            const double limit = (double)u[to] * total;
            int32_t found = -1;
            for (uint32_t r = rows.start; r < rows.end; r++) {
                for (uint32_t c = columns.start; c < columns.end; c++) {
                    const double value = (double)widen(from[r * op.input[1] + c]);
                    const double before = sum;
                    sum += value > 0 ? value : 0;
                    if (sum > limit && before <= limit) found = r * op.input[1] + c;
                }
            }
            const bool empty = rows.start == rows.end || columns.start == columns.end;
            if (found < 0 && !empty) found = rows.start * op.input[1] + columns.start;
            y[to] = found < 0 ? narrow<T>(0) : from[found];
            mask[to] = found;
        }
    }
}

#define POOL(dtype, T)                                                                           \
    KERNEL max_pool_##dtype(Pool op, const T *x, T *y, int32_t *mask, uint32_t span) {           \
        max_pool(op, x, y, mask, span);                                                          \
    }                                                                                            \
    KERNEL max_pool_backward_##dtype(Pool op, const T *dy, const int32_t *mask, T *dx,           \
                                     uint32_t span) {                                            \
        max_pool_backward(op, dy, mask, dx, span);                                               \
    }                                                                                            \
    KERNEL average_pool_##dtype(Pool op, const T *x, T *y, uint32_t span) {                      \
        average_pool(op, x, y, span);                                                            \
    }                                                                                            \
    KERNEL average_pool_by_warp_##dtype(Pool op, const T *x, T *y) {                             \
        average_pool_by_warp(op, x, y);                                                          \
    }                                                                                            \
    KERNEL average_pool_backward_##dtype(Pool op, const T *dy, T *dx, uint32_t span) {           \
        average_pool_backward(op, dy, dx, span);                                                 \
    }                                                                                            \
    KERNEL stochastic_pool_##dtype(Pool op, const T *x, const float *u, T *y, int32_t *mask,     \
                                   uint32_t span) {                                              \
        stochastic_pool(op, x, u, y, mask, span);                                                \
    }
EACH_ELEMENT(POOL)
