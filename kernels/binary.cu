// Elementwise kernels of the functions of two operands in src/op/binary.rs. Operand `b` is as long
// as `a`, or is as long as one axis of `a` and is broadcast along the other axes.
//
// Every kernel takes three scalars: the fields of the `Binary` variant in order, followed by zeros.

#include "map.cuh"

// Maps the index of an element to its coordinate along an axis of `extent` elements with stride
// `inner`. Divides in 32 bits if the element count fits, because a 32-bit division is several times
// faster than a 64-bit division.
struct AxisStride {
    size_t extent, inner;
    bool small;
    __device__ AxisStride(size_t n, size_t extent, size_t inner)
        : extent(extent), inner(inner), small(n <= UINT32_MAX) {}
    __device__ __forceinline__ size_t operator()(size_t i) const {
        return small ? uint32_t(i) / uint32_t(inner) % uint32_t(extent) : i / inner % extent;
    }
};

// y[o,e,i] = f(a[o,e,i], b[e]) for e < extent and i < inner; `y` may be `a`.
template <class T, class F>
__device__ __forceinline__ void map_along(size_t n, size_t extent, size_t inner, const T *a,
                                          const T *b, T *y, F f) {
    const AxisStride along(n, extent, inner);
    EACH(i, n) y[i] = narrow<T>(f(widen(a[i]), widen(b[along(i)])));
}

#define BINARY_KERNELS(map, name, dtype, T)                                                        \
    KERNEL name##_##dtype(size_t n, const T *b, const T *a, T *y, acc_t<T> p, acc_t<T> q,     \
                          acc_t<T> r) {                                                       \
        map(n, a, b, y, [=](acc_t<T> a, acc_t<T> b) { return name##_of(a, b, p, q, r); });    \
    }                                                                                         \
    KERNEL name##_along_##dtype(size_t n, size_t extent, size_t inner, const T *b, const T *a, \
                                T *y, acc_t<T> p, acc_t<T> q, acc_t<T> r) {                   \
        map_along(n, extent, inner, a, b, y,                                                  \
                  [=](acc_t<T> a, acc_t<T> b) { return name##_of(a, b, p, q, r); });          \
    }

// Defines the function `name` of the elements `a` and `b` and the scalars `p`, `q` and `r`, and its
// kernels for all element types.
#define BINARY_BY(map, name, ...)                                                        \
    template <class A> __device__ __forceinline__ A name##_of(A a, A b, A p, A q, A r) { \
        return __VA_ARGS__;                                                              \
    }                                                                                    \
    BINARY_KERNELS(map, name, f16, __half)                                               \
    BINARY_KERNELS(map, name, bf16, __nv_bfloat16)                                       \
    BINARY_KERNELS(map, name, f32, float)                                                \
    BINARY_KERNELS(map, name, f64, double)

// Kernels of memory-bound functions load and store packs of 16 bytes; kernels of compute-bound
// functions load and store single elements.
#define BINARY(...) BINARY_BY(map, __VA_ARGS__)
#define SLOW_BINARY(...) BINARY_BY(map_singly, __VA_ARGS__)

template <class A> __device__ __forceinline__ A sigmoid_of(A x) { return A(1) / (A(1) + exp(-x)); }

// Returns a · s · (1 + x·(1 − s)), where `s` is the sigmoid of `x`: `a` times the derivative of
// Swish at `x`.
template <class A> __device__ __forceinline__ A swish_slope(A a, A x) {
    const A s = sigmoid_of(x);
    return a * s * (A(1) + x * (A(1) - s));
}

BINARY(add, a + b)
BINARY(sub, a - b)
BINARY(mul, a * b)
BINARY(mul_scaled, p * a * b)
BINARY(mul_negative, b < A(0) ? a * b : A(0))
SLOW_BINARY(div, a / b)
SLOW_BINARY(div_or_zero, b == A(0) ? A(0) : a / b)
BINARY(max, a > b ? a : b)
BINARY(min, a < b ? a : b)
BINARY(greater, a > b ? A(1) : A(0))
BINARY(greater_equal, a >= b ? A(1) : A(0))
BINARY(prelu, a > A(0) ? a : a * b)
BINARY(prelu_slope, a > A(0) ? A(1) : b)
BINARY(abs_grad, b > A(0) ? a : b < A(0) ? -a : A(0))
BINARY(relu_grad, b > A(0) ? a : p * a)
SLOW_BINARY(elu_grad, b > A(0) ? a : p < A(0) ? a * p * exp(b) : a * (b + p))
BINARY(sigmoid_grad, a * b * (A(1) - b))
BINARY(tanh_grad, a * (A(1) - b * b))
SLOW_BINARY(softplus_grad, a * -expm1(-b))
SLOW_BINARY(swish_grad, swish_slope(a, p * b))
BINARY(clip_grad, p <= b && b <= q ? a : A(0))
SLOW_BINARY(ln_affine_grad, a * r * p / (p * b + q))
SLOW_BINARY(pow_affine_grad, r * p == A(0) ? A(0) : a * (r * p) * power(p * b + q, r - A(1)))

// y[o,e,i] = x[o,e,i] · scale[e] + shift[e]; `y` may be `x`.
template <class T>
__device__ __forceinline__ void affine(size_t n, size_t extent, size_t inner, const T *x,
                                       const T *scale, const T *shift, T *y) {
    const AxisStride along(n, extent, inner);
    EACH(i, n) {
        const size_t e = along(i);
        y[i] = narrow<T>(widen(x[i]) * widen(scale[e]) + widen(shift[e]));
    }
}

#define AFFINE(dtype, T)                                                                     \
    KERNEL affine_##dtype(size_t n, size_t extent, size_t inner, const T *scale,             \
                          const T *shift, const T *x, T *y) {                                \
        affine(n, extent, inner, x, scale, shift, y);                                        \
    }
EACH_ELEMENT(AFFINE)
