// Local response normalization (LRN); src/host/nn/lrn.rs is the reference implementation.
//
// The kernels sum each region from scratch, because a sliding sum would keep the rounding error of
// a large element that has left the region. When overlapping regions read an element again, the
// reads hit the cache, because the threads of a block process neighbouring positions of
// neighbouring channels.

#include "rows.cuh"

// Images of `channels` × `height` × `width`; an LRN region extends `half` elements to either side
// of its centre.
struct Lrn {
    uint64_t batch, channels, height, width, half;
};

// Constants of LRN, which computes s = k + factor · Σ x² and x · s^(−β). `slope` is the backward
// pass's factor 2αβ/n.
template <class A> struct Power {
    A k, factor, beta, slope;

    __device__ __forceinline__ A op(A s) const {
        // Uses square roots if β = 0.75, because `sqrt` is correctly rounded, unlike `pow`.
        return beta == A(0.75) ? A(1) / (sqrt(s) * sqrt(sqrt(s))) : pow(s, -beta);
    }
};

__device__ __forceinline__ size_t first_of(size_t at, size_t half) {
    return at < half ? 0 : at - half;
}
__device__ __forceinline__ size_t end_of(size_t at, size_t half, size_t extent) {
    return half < extent - at ? at + half + 1 : extent;
}

// LRN region across channels: sums `term` over neighbouring channels at one position.
struct Across {
    template <class A, class F>
    static __device__ __forceinline__ A sum(const Lrn &op, size_t channel, size_t i, F term) {
        const size_t plane = op.height * op.width, c = channel % op.channels;
        const size_t start = first_of(c, op.half), end = end_of(c, op.half, op.channels);
        size_t at = (channel - c + start) * plane + i;
        A sum = 0;
        for (size_t k = start; k < end; k++, at += plane) sum += term(at);
        return sum;
    }
};

// LRN region within a channel: sums `term` over neighbouring positions of one channel.
struct Within {
    template <class A, class F>
    static __device__ __forceinline__ A sum(const Lrn &op, size_t channel, size_t i, F term) {
        const size_t row = i / op.width, column = i % op.width;
        const size_t left = first_of(column, op.half), right = end_of(column, op.half, op.width);
        const size_t top = first_of(row, op.half), bottom = end_of(row, op.half, op.height);
        size_t at = (channel * op.height + top) * op.width;
        A sum = 0;
        for (size_t r = top; r < bottom; r++, at += op.width) {
            for (size_t c = left; c < right; c++) sum += term(at + c);
        }
        return sum;
    }
};

// Executes the statement that follows for each position `i` of each channel of all images.
#define EACH_PLACE(i, channel, op, place)                     \
    EACH_COLUMN(i, place, op.height * op.width)               \
    EACH_ROW(channel, place, op.batch * op.channels)

// scale = k + α/n · Σ x², y = x · scale^(−β).
template <class Region, class T>
__device__ void lrn(const Lrn &op, Power<acc_t<T>> power, const T *x, T *scale, T *y,
                    unsigned span) {
    using A = acc_t<T>;
    const ThreadPosition place(span);
    EACH_PLACE(i, channel, op, place) {
        const size_t here = channel * op.height * op.width + i;
        const auto square = [=](size_t at) { return widen(x[at]) * widen(x[at]); };
        const A s = power.k + power.factor * Region::template sum<A>(op, channel, i, square);
        scale[here] = narrow<T>(s);
        y[here] = narrow<T>(widen(x[here]) * power.op(s));
    }
}

// dx = dy · s^(−β) − 2αβ/n · x · Σ dy·y/s.
template <class Region, class T>
__device__ void lrn_backward(const Lrn &op, Power<acc_t<T>> power, const T *x, const T *y,
                             const T *scale, const T *dy, T *dx, unsigned span) {
    using A = acc_t<T>;
    const ThreadPosition place(span);
    EACH_PLACE(i, channel, op, place) {
        const size_t here = channel * op.height * op.width + i;
        const auto term = [=](size_t at) {
            return widen(dy[at]) * widen(y[at]) / widen(scale[at]);
        };
        const A sum = Region::template sum<A>(op, channel, i, term);
        const A straight = widen(dy[here]) * power.op(widen(scale[here]));
        dx[here] = narrow<T>(straight - power.slope * widen(x[here]) * sum);
    }
}

#define LRN(region, Region, dtype, T)                                                            \
    KERNEL lrn_##region##_##dtype(Lrn op, Power<acc_t<T>> power, const T *x, T *scale, T *y,     \
                                  uint32_t span) {                                               \
        lrn<Region>(op, power, x, scale, y, span);                                               \
    }                                                                                            \
    KERNEL lrn_##region##_backward_##dtype(Lrn op, Power<acc_t<T>> power, const T *x,            \
                                           const T *y, const T *scale, const T *dy, T *dx,       \
                                           uint32_t span) {                                      \
        lrn_backward<Region>(op, power, x, y, scale, dy, dx, span);                              \
    }
#define BOTH_REGIONS(dtype, T)     \
    LRN(across, Across, dtype, T)  \
    LRN(within, Within, dtype, T)
EACH_ELEMENT(BOTH_REGIONS)
