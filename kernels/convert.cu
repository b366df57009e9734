// Conversions between element types, and from integers to elements; each value is rounded once.

#include "rounding.cuh"

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

// Double precision represents every integer of up to 32 bits exactly.
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
