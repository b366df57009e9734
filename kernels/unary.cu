// Elementwise kernels of the functions of one operand in src/op/unary.rs.
//
// Every kernel takes three scalars: the fields of the `Unary` variant in order, followed by zeros.

#include "map.cuh"

#define UNARY_KERNEL(map, name, dtype, T)                                                     \
    KERNEL name##_##dtype(size_t n, const T *x, T *y, acc_t<T> a, acc_t<T> b, acc_t<T> c) {   \
        map(n, x, y, [=](acc_t<T> x) { return name##_of(x, a, b, c); });                      \
    }

// Defines the function `name` of the element `x` and the scalars `a`, `b` and `c`, and its kernels
// for all element types.
#define UNARY_BY(map, name, ...)                                                    \
    template <class A> __device__ __forceinline__ A name##_of(A x, A a, A b, A c) { \
        return __VA_ARGS__;                                                         \
    }                                                                               \
    UNARY_KERNEL(map, name, f16, __half)                                            \
    UNARY_KERNEL(map, name, bf16, __nv_bfloat16)                                    \
    UNARY_KERNEL(map, name, f32, float)                                             \
    UNARY_KERNEL(map, name, f64, double)

// Kernels of memory-bound functions load and store packs of 16 bytes; kernels of compute-bound
// functions load and store single elements.
#define UNARY(...) UNARY_BY(map, __VA_ARGS__)
#define SLOW_UNARY(...) UNARY_BY(map_singly, __VA_ARGS__)

UNARY(abs, fabs(x))
UNARY(neg, -x)
SLOW_UNARY(exp, exp(x))
SLOW_UNARY(ln, log(x))
UNARY(sqr, x * x)
UNARY(sqrt, sqrt(x))
UNARY(recip, A(1) / x)
SLOW_UNARY(tanh, tanh(x))
SLOW_UNARY(sigmoid, A(1) / (A(1) + exp(-x)))
// In this form of softplus, `exp` cannot overflow, and `log1p` keeps the digits of a small `exp`.
SLOW_UNARY(softplus, fmax(x, A(0)) + log1p(exp(-fabs(x))))
UNARY(sign, x > A(0) ? A(1) : x < A(0) ? A(-1) : A(0))
UNARY(sign_bit, signbit(x) ? A(1) : A(0))
SLOW_UNARY(pow, pow(x, a))
UNARY(add_scalar, x + a)
UNARY(scale, a * x)
UNARY(threshold, x > a ? A(1) : A(0))
UNARY(relu, x > A(0) ? x : a * x)
SLOW_UNARY(elu, x > A(0) ? x : a * expm1(x))
SLOW_UNARY(swish, x * (A(1) / (A(1) + exp(-(a * x)))))
// If a > b, `clip` returns b.
UNARY(clip, x < a ? fmin(a, b) : x > b ? b : x)
SLOW_UNARY(exp_affine, exp(a * x + b))
SLOW_UNARY(ln_affine, c * log(a * x + b))
SLOW_UNARY(pow_affine, power(a * x + b, c))
