// Elements of one type as those of another, and whole numbers as elements: rounded once.

#include "element.cuh"

// The nearest element, halves to even.
template <class T> __device__ __forceinline__ T nearest(double x) { return T(x); }
template <> __device__ __forceinline__ __half nearest<__half>(double x) { return __double2half(x); }
template <> __device__ __forceinline__ __nv_bfloat16 nearest<__nv_bfloat16>(double x) {
    return __double2bfloat16(x);
}
// From single precision there is nothing to round twice.
template <class T> __device__ __forceinline__ T nearest(float x) { return T(x); }
template <> __device__ __forceinline__ __half nearest<__half>(float x) { return __float2half_rn(x); }
template <> __device__ __forceinline__ __nv_bfloat16 nearest<__nv_bfloat16>(float x) {
    return __float2bfloat16_rn(x);
}

#define CONVERT(from, T, to, U)                                     \
    KERNEL convert_to_##to##_##from(size_t n, const T *x, U *y) {   \
        EACH(i, n) y[i] = nearest<U>(widen(x[i]));                  \
    }
#define CONVERT_TO_EACH(from, T)         \
    CONVERT(from, T, f16, __half)        \
    CONVERT(from, T, bf16, __nv_bfloat16) \
    CONVERT(from, T, f32, float)         \
    CONVERT(from, T, f64, double)
EACH_ELEMENT(CONVERT_TO_EACH)

// Integers of up to 32 bits are exact in double precision.
#define CONVERT_INTEGERS(from, N, to, U)                                     \
    KERNEL convert_integers_##from##_##to(size_t n, const N *x, U *y) {      \
        EACH(i, n) y[i] = nearest<U>(double(x[i]));                          \
    }
#define CONVERT_EACH_INTEGER(to, U)                  \
    CONVERT_INTEGERS(i8, int8_t, to, U)              \
    CONVERT_INTEGERS(u8, uint8_t, to, U)             \
    CONVERT_INTEGERS(i16, int16_t, to, U)            \
    CONVERT_INTEGERS(u16, uint16_t, to, U)           \
    CONVERT_INTEGERS(i32, int32_t, to, U)            \
    CONVERT_INTEGERS(u32, uint32_t, to, U)
EACH_ELEMENT(CONVERT_EACH_INTEGER)
