// Level 1 BLAS kernels: fill, copy, scal, axpy and axpby.

#include "map.cuh"

// y = value
template <class T> __device__ void fill(size_t n, T value, T *y) {
    Pack<T> p;
#pragma unroll
    for (size_t k = 0; k < Pack<T>::LEN; k++) p.at[k] = value;
    const size_t packs = packable(y) ? n / Pack<T>::LEN : 0;
    EACH(i, packs) reinterpret_cast<Pack<T> *>(y)[i] = p;
    EACH_FROM(i, packs * Pack<T>::LEN, n) y[i] = value;
}
#define FILL(dtype, T) \
    KERNEL fill_##dtype(size_t n, T value, T *y) { fill(n, value, y); }
EACH_ELEMENT(FILL)

// y = x
template <class T> __device__ void copy(size_t n, const T *x, T *y) {
    const size_t packs = packable(x, y) ? n / Pack<T>::LEN : 0;
    EACH(i, packs) reinterpret_cast<Pack<T> *>(y)[i] = reinterpret_cast<const Pack<T> *>(x)[i];
    EACH_FROM(i, packs * Pack<T>::LEN, n) y[i] = x[i];
}
#define COPY(dtype, T) \
    KERNEL copy_##dtype(size_t n, const T *x, T *y) { copy(n, x, y); }
EACH_ELEMENT(COPY)

// x = α·x
#define SCAL(dtype, T)                                              \
    KERNEL scal_##dtype(size_t n, acc_t<T> alpha, T *x) {           \
        map(n, x, x, [=](acc_t<T> x) { return alpha * x; });        \
    }
EACH_ELEMENT(SCAL)

// y = α·x + y
#define AXPY(dtype, T)                                                                \
    KERNEL axpy_##dtype(size_t n, acc_t<T> alpha, const T *x, T *y) {                 \
        map(n, x, y, y, [=](acc_t<T> x, acc_t<T> y) { return alpha * x + y; });       \
    }
EACH_ELEMENT(AXPY)

// y = α·x + β·y; with β = 0, the kernel does not read `y`.
#define AXPBY(dtype, T)                                                                         \
    KERNEL axpby_##dtype(size_t n, acc_t<T> alpha, const T *x, acc_t<T> beta, T *y) {           \
        if (beta == acc_t<T>(0)) {                                                              \
            map(n, x, y, [=](acc_t<T> x) { return alpha * x; });                                \
        } else {                                                                                \
            map(n, x, y, y, [=](acc_t<T> x, acc_t<T> y) { return alpha * x + beta * y; });      \
        }                                                                                       \
    }
EACH_ELEMENT(AXPBY)
