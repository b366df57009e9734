// Losses and accuracies of class scores; src/host/nn/softmax_loss.rs and class_loss.rs are the
// reference implementation.
//
// The kernels sum losses in double precision, first per thread and then per block. If a label is
// neither a class number nor the ignored label, the kernels report an error to the host.

#include "labels.cuh"

// y[0] = the sum of the partial sums of all blocks, divided by `divisor`, or by the number of
// counted labels if `divisor` is 0.
template <class T> __device__ void mean_of_parts(size_t n, double divisor, const Part *parts, T *y) {
    const Part part = combined(parts, n);
    if (threadIdx.x == 0) *y = nearest<T>(part.sum / divided_by(divisor, part.count));
}

// Counts the labels that are not ignored. If `op.divisor` is 0, the loss is divided by this count.
template <class T>
__device__ void count_labels(Labels op, const T *label, ErrorFlag *error, Part *parts) {
    Part part = {0, 0};
    EACH(at, op.count) {
        const int64_t right = class_of(op, label[at]);
        if (right >= 0) part.count += 1;
        if (right == NO_CLASS) report_error(error, at);
    }
    part = over_block(part);
    if (threadIdx.x == 0) parts[blockIdx.x] = part;
}

// loss = −Σ ln max(p[label], tiny) / divisor, where `tiny` is the smallest positive normal `float`.
template <class T>
__device__ void softmax_loss(Labels op, const T *p, const T *label, ErrorFlag *error,
                             Part *parts, T *loss) {
    using A = acc_t<T>;
    Part part = {0, 0};
    EACH(at, op.count) {
        const int64_t right = class_of(op, label[at]);
        if (right >= 0) {
            const A value = widen(p[first_score(op, at) + right * op.inner]);
            // The loss of a NaN probability is NaN.
            part.sum -= (double)log(value < A(1.17549435e-38f) ? A(1.17549435e-38f) : value);
            part.count += 1;
        } else if (right == NO_CLASS) {
            report_error(error, at);
        }
    }
    hand_in(part, op.divisor, parts, loss);
}

// dx = scale·(p − onehot(label)) / divisor. If `op.divisor` is 0, the divisor is the sum of the
// counts in the `n` elements of `parts`.
template <class T>
__device__ void softmax_loss_backward(Labels op, const T *p, const T *label, const T *scale,
                                      const Part *parts, size_t n, ErrorFlag *error, T *dx) {
    using A = acc_t<T>;
    const double count = op.divisor == 0 ? combined(parts, n).count : 0;
    const A factor = A((double)widen(*scale) / divided_by(op.divisor, count));
    const size_t slab = op.extent * op.inner;
    EACH(i, op.count * op.extent) {
        const size_t within = i % slab, at = i / slab * op.inner + within % op.inner;
        const int64_t right = class_of(op, label[at]), here = within / op.inner;
        const A target = here == right ? A(1) : A(0);
        dx[i] = narrow<T>(right >= 0 ? (widen(p[i]) - target) * factor : A(0));
        if (right == NO_CLASS) report_error(error, at);
    }
}

// Returns whether the score of class `right` is among the `top_k` greatest scores of label number
// `at`. Other scores that are equal to the score of class `right` count as greater, and NaN is
// never among the greatest scores. All lanes of a warp must call `is_right`.
template <class T>
__device__ __forceinline__ bool is_right(const Labels &op, size_t top_k, const T *scores, size_t at,
                                         size_t right) {
    const T *row = scores + first_score(op, at);
    const acc_t<T> own = widen(row[right * op.inner]);
    unsigned ahead = 0;
    for (size_t k = threadIdx.x % WARP; k < op.extent; k += WARP) {
        ahead += widen(row[k * op.inner]) >= own;
    }
    ahead = over_warp<Sum>(ahead);
    return ahead >= 1 && ahead <= top_k;
}

// y[0] = the fraction of the labels for which `is_right` returns true, without ignored labels.
template <class T>
__device__ void accuracy(Labels op, size_t top_k, const T *scores, const T *label,
                         ErrorFlag *error, Part *parts, T *y) {
    const bool first = threadIdx.x % WARP == 0;
    Part part = {0, 0};
    EACH_BY_WARP(at, op.count) {
        const int64_t right = class_of(op, label[at]);
        if (right >= 0) {
            const bool counts = is_right(op, top_k, scores, at, right) && first;
            part.sum += counts ? 1 : 0;
            part.count += first ? 1 : 0;
        } else if (right == NO_CLASS) {
            report_error(error, at);
        }
    }
    hand_in(part, 0, parts, y);
}

// y[class] = the fraction of the labels of this class for which `is_right` returns true. Block 0
// reports invalid labels.
template <class T>
__device__ void accuracy_by_class(Labels op, size_t top_k, const T *scores, const T *label,
                                  ErrorFlag *error, T *y) {
    const bool first = threadIdx.x % WARP == 0;
    for (size_t wanted = blockIdx.x; wanted < op.extent || wanted == 0; wanted += gridDim.x) {
        Part part = {0, 0};
        for (size_t at = threadIdx.x / WARP; at < op.count; at += blockDim.x / WARP) {
            const int64_t right = class_of(op, label[at]);
            if (right == (int64_t)wanted) {
                const bool counts = is_right(op, top_k, scores, at, right) && first;
                part.sum += counts ? 1 : 0;
                part.count += first ? 1 : 0;
            } else if (right == NO_CLASS && wanted == 0) {
                report_error(error, at);
            }
        }
        part = over_block(part);
        if (threadIdx.x == 0 && wanted < op.extent) {
            y[wanted] = nearest<T>(part.sum / divided_by(0, part.count));
        }
    }
}

// Kinds of class loss, with the numbers that the host passes to the kernels.
enum Form : uint32_t { LOG, SOFTMAX_LOG, HINGE, SQUARED_HINGE };

// loss = Σ f(x, label) / divisor; `matrix` is the infogain matrix, or null.
template <class T>
__device__ void class_loss(Labels op, uint32_t form, const T *x, const T *label, const T *matrix,
                           ErrorFlag *error, Part *parts, T *loss) {
    using A = acc_t<T>;
    const A floor = A(1e-20);
    const unsigned lane = threadIdx.x % WARP;
    Part part = {0, 0};
    EACH_BY_WARP(at, op.count) {
        const int64_t right = class_of(op, label[at]);
        if (right == NO_CLASS) report_error(error, at);
        if (right < 0) continue;
        const T *row = x + first_score(op, at);
        for (size_t k = lane; k < op.extent; k += WARP) {
            if (form <= SOFTMAX_LOG) {
                const bool own = (int64_t)k == right;
                if (matrix == nullptr && !own) continue;
                const A weight = matrix ? widen(matrix[right * op.extent + k]) : A(1);
                const A value = widen(row[k * op.inner]);
                part.sum -= (double)weight * (double)log(value < floor ? floor : value);
            } else {
                const A value = widen(row[k * op.inner]);
                const A margin = A(1) + ((int64_t)k == right ? -value : value);
                const A lacking = margin < A(0) ? A(0) : margin;
                part.sum += (double)(form == HINGE ? lacking : lacking * lacking);
            }
        }
        part.count += lane == 0 ? 1 : 0;
    }
    hand_in(part, op.divisor, parts, loss);
}

// dx = scale · f'(x, label) / divisor, with the divisor as in `softmax_loss_backward`.
template <class T>
__device__ void class_loss_backward(Labels op, uint32_t form, const T *x, const T *label,
                                    const T *matrix, const T *scale, const Part *parts, size_t n,
                                    ErrorFlag *error, T *dx) {
    using A = acc_t<T>;
    const double count = op.divisor == 0 ? combined(parts, n).count : 0;
    const A factor = A((double)widen(*scale) / divided_by(op.divisor, count));
    const A floor = A(1e-20);
    const unsigned lane = threadIdx.x % WARP;
    EACH_BY_WARP(at, op.count) {
        const int64_t right = class_of(op, label[at]);
        if (right == NO_CLASS) report_error(error, at);
        const size_t start = first_score(op, at);
        const T *weights = matrix && right >= 0 ? matrix + right * op.extent : nullptr;
        A total = 1;
        if (weights && form == SOFTMAX_LOG) {
            total = 0;
            for (size_t k = lane; k < op.extent; k += WARP) total += widen(weights[k]);
            total = over_warp<Sum>(total);
        }
        for (size_t k = lane; k < op.extent; k += WARP) {
            const A value = widen(x[start + k * op.inner]);
            const bool own = (int64_t)k == right;
            const A weight = weights ? widen(weights[k]) : own ? A(1) : A(0);
            const A margin = A(1) + (own ? -value : value), sign = own ? A(-1) : A(1);
            A slope = 0;
            if (right >= 0) {
                switch (form) {
                // If the weight of a class is 0, the gradient of the class's score is exactly 0.
                case LOG:
                    if (weight != A(0)) slope = -weight / (value < floor ? floor : value);
                    break;
                case SOFTMAX_LOG: slope = value * total - weight; break;
                case HINGE: slope = margin > A(0) ? sign : A(0); break;
                default: slope = A(2) * sign * (margin < A(0) ? A(0) : margin);
                }
            }
            dx[start + k * op.inner] = narrow<T>(factor * slope);
        }
    }
}

#define LOSS(dtype, T)                                                                           \
    KERNEL mean_of_parts_##dtype(size_t n, double divisor, const Part *parts, T *y) {            \
        mean_of_parts(n, divisor, parts, y);                                                     \
    }                                                                                            \
    KERNEL count_labels_##dtype(Labels op, const T *label, ErrorFlag *error, Part *parts) {  \
        count_labels(op, label, error, parts);                                               \
    }                                                                                            \
    KERNEL softmax_loss_##dtype(Labels op, const T *p, const T *label, ErrorFlag *error,     \
                                Part *parts, T *loss) {                                          \
        softmax_loss(op, p, label, error, parts, loss);                                      \
    }                                                                                            \
    KERNEL softmax_loss_backward_##dtype(Labels op, const T *p, const T *label, const T *scale,  \
                                         const Part *parts, size_t n, ErrorFlag *error,      \
                                         T *dx) {                                                \
        softmax_loss_backward(op, p, label, scale, parts, n, error, dx);                     \
    }                                                                                            \
    KERNEL accuracy_##dtype(Labels op, size_t top_k, const T *scores, const T *label,            \
                            ErrorFlag *error, Part *parts, T *y) {                           \
        accuracy(op, top_k, scores, label, error, parts, y);                                 \
    }                                                                                            \
    KERNEL accuracy_by_class_##dtype(Labels op, size_t top_k, const T *scores, const T *label,   \
                                     ErrorFlag *error, T *y) {                               \
        accuracy_by_class(op, top_k, scores, label, error, y);                               \
    }                                                                                            \
    KERNEL class_loss_##dtype(Labels op, uint32_t form, const T *x, const T *label,              \
                              const T *matrix, ErrorFlag *error, Part *parts, T *loss) {     \
        class_loss(op, form, x, label, matrix, error, parts, loss);                          \
    }                                                                                            \
    KERNEL class_loss_backward_##dtype(Labels op, uint32_t form, const T *x, const T *label,     \
                                       const T *matrix, const T *scale, const Part *parts,       \
                                       size_t n, ErrorFlag *error, T *dx) {                  \
        class_loss_backward(op, form, x, label, matrix, scale, parts, n, error, dx);         \
    }
EACH_ELEMENT(LOSS)
