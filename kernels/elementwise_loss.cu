// Elementwise losses between predictions and targets, defined in src/op/loss.rs.

#include "labels.cuh"

// Kinds of elementwise loss, with the numbers that the host passes to the kernels.
enum ElementwiseLossKind : uint32_t { SQUARED, SIGMOID_CROSS_ENTROPY, CONTRASTIVE, CONTRASTIVE_LEGACY };

// `count` pairs of an input number and its target. Pairs with the ignored target add nothing to the
// loss.
struct ElementwiseLoss {
    uint64_t count;
    // Divisor of the loss; 0 stands for the number of targets that are not ignored.
    double divisor;
    uint32_t form, has_ignored;
};

template <class A> struct Numbers {
    A margin, ignored;
};

// Returns whether the target `t` counts for the loss, because `t` is not the ignored target. Like
// Caffe, compares only the integer part of `t` with the ignored target.
template <class A> __device__ __forceinline__ bool counts(const ElementwiseLoss &op, Numbers<A> with, A t) {
    return !op.has_ignored || trunc(t) != with.ignored;
}

// Returns the larger of x and 0, or NaN if x is NaN.
template <class A> __device__ __forceinline__ A positive(A x) { return x < A(0) ? A(0) : x; }

template <class A> __device__ __forceinline__ A loss_of(const ElementwiseLoss &op, Numbers<A> with, A x, A t) {
    switch (op.form) {
    case SQUARED: return A(0.5) * (x - t) * (x - t);
    // The argument of `exp` is never positive, so `exp` cannot overflow.
    case SIGMOID_CROSS_ENTROPY: return fmax(x, A(0)) - x * t + log1p(exp(-fabs(x)));
    default:
        if (trunc(t) != A(0)) return A(0.5) * x;
        if (op.form == CONTRASTIVE_LEGACY) return A(0.5) * positive(with.margin - x);
        const A lacking = positive(with.margin - sqrt(x));
        return A(0.5) * lacking * lacking;
    }
}

template <class A> __device__ __forceinline__ A slope_of(const ElementwiseLoss &op, Numbers<A> with, A x, A t) {
    switch (op.form) {
    case SQUARED: return x - t;
    case SIGMOID_CROSS_ENTROPY: return A(1) / (A(1) + exp(-x)) - t;
    default:
        if (trunc(t) != A(0)) return A(0.5);
        if (op.form == CONTRASTIVE_LEGACY) return with.margin > x ? A(-0.5) : A(0);
        const A distance = sqrt(x);
        return A(-0.5) * positive(with.margin - distance) / (distance + A(1e-4));
    }
}

template <class T>
__device__ void elementwise_loss(ElementwiseLoss op, Numbers<acc_t<T>> with, const T *x, const T *t, Part *parts, T *loss) {
    Part part = {0, 0};
    EACH(i, op.count) {
        if (!counts(op, with, widen(t[i]))) continue;
        part.sum += (double)loss_of(op, with, widen(x[i]), widen(t[i]));
        part.count += 1;
    }
    hand_in(part, op.divisor, parts, loss);
}

template <class T> __device__ void count_targets(ElementwiseLoss op, Numbers<acc_t<T>> with, const T *t, Part *parts) {
    Part part = {0, 0};
    EACH(i, op.count) part.count += counts(op, with, widen(t[i])) ? 1 : 0;
    part = over_block(part);
    if (threadIdx.x == 0) parts[blockIdx.x] = part;
}

// dx = scale·f'(x, t) / divisor. If `op.divisor` is 0, the divisor is the sum of the counts in the
// `n` elements of `parts`.
template <class T>
__device__ void elementwise_loss_backward(ElementwiseLoss op, Numbers<acc_t<T>> with, const T *x, const T *t, const T *scale,
                                   const Part *parts, size_t n, T *dx) {
    using A = acc_t<T>;
    const double count = op.divisor == 0 ? combined(parts, n).count : 0;
    const A factor = A((double)widen(*scale) / divided_by(op.divisor, count));
    EACH(i, op.count) {
        const A target = widen(t[i]);
        dx[i] = narrow<T>(counts(op, with, target) ? factor * slope_of(op, with, widen(x[i]), target) : A(0));
    }
}

#define PAIR_LOSS(dtype, T)                                                                      \
    KERNEL elementwise_loss_##dtype(ElementwiseLoss op, Numbers<acc_t<T>> with, const T *x, const T *t, Part *parts, T *loss) { \
        elementwise_loss(op, with, x, t, parts, loss);                                                        \
    }                                                                                            \
    KERNEL count_targets_##dtype(ElementwiseLoss op, Numbers<acc_t<T>> with, const T *t, Part *parts) {                  \
        count_targets(op, with, t, parts);                                                             \
    }                                                                                            \
    KERNEL elementwise_loss_backward_##dtype(ElementwiseLoss op, Numbers<acc_t<T>> with, const T *x, const T *t,                \
                                      const T *scale, const Part *parts, size_t n, T *dx) {      \
        elementwise_loss_backward(op, with, x, t, scale, parts, n, dx);                                       \
    }
EACH_ELEMENT(PAIR_LOSS)
