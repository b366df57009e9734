// Random numbers, bit-identical to those of src/host/random.
//
// `times` and `plus` round each product and each sum; the compiler does not contract `__dmul_rn`
// and `__dadd_rn` to FMA.

#include "rounding.cuh"
#include <string.h>

__device__ __forceinline__ double times(double a, double b) { return __dmul_rn(a, b); }
__device__ __forceinline__ double plus(double a, double b) { return __dadd_rn(a, b); }

struct Key {
    uint64_t seed, stream;
};

struct Words {
    uint32_t at[4];
};

// Returns the four random words of `counter`, computed by ten rounds of Philox4x32.
__device__ __forceinline__ Words words(Key key, uint64_t counter) {
    uint32_t a = (uint32_t)counter, b = (uint32_t)(counter >> 32);
    uint32_t c = (uint32_t)key.stream, d = (uint32_t)(key.stream >> 32);
    uint32_t low = (uint32_t)key.seed, high = (uint32_t)(key.seed >> 32);
#pragma unroll
    for (int round = 0; round < 10; round++) {
        const uint64_t first = (uint64_t)a * 0xd2511f53u, second = (uint64_t)c * 0xcd9e8d57u;
        a = (uint32_t)(second >> 32) ^ b ^ low;
        b = (uint32_t)second;
        c = (uint32_t)(first >> 32) ^ d ^ high;
        d = (uint32_t)first;
        low += 0x9e3779b9u;
        high += 0xbb67ae85u;
    }
    return {{a, b, c, d}};
}

constexpr double UNIT = 1.0 / 9007199254740992.0;

// Returns a number in [0, 1) that has 53 random bits, from two random words.
__device__ __forceinline__ double fraction(uint32_t a, uint32_t b) {
    return times((double)((((uint64_t)a << 32) | b) >> 11), UNIT);
}

// Returns the natural logarithm of a positive normal number, as in src/host/random/ieee_math.rs.
__device__ __forceinline__ double logarithm(double x) {
    constexpr double LN2_HIGH = 0x1.62e42feep-1, LN2_LOW = 0x1.a39ef35793c76p-33;
    constexpr double DIVISORS[] = {19, 17, 15, 13, 11, 9, 7, 5, 3};
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int64_t exponent = (int64_t)(bits >> 52) - 1023;
    bits = (bits & 0xfffffffffffffull) | 0x3ff0000000000000ull;
    double m;
    memcpy(&m, &bits, sizeof m);
    const bool high = m > 1.41421356237309504880;
    m = high ? times(0.5, m) : m;
    const double e = (double)(exponent + high);
    const double s = plus(m, -1) / plus(m, 1), z = times(s, s);
    double series = 1.0 / 21;
#pragma unroll
    for (int i = 0; i < 9; i++) series = plus(times(series, z), 1.0 / DIVISORS[i]);
    const double tail = times(times(times(2, s), z), series);
    return plus(times(e, LN2_HIGH), plus(times(2, s), plus(tail, times(e, LN2_LOW))));
}

struct Point {
    double cos, sin;
};

// Returns cosine and sine of 2π·turns for 0 ≤ turns < 1.
__device__ __forceinline__ Point circle(double turns) {
    const double quarters = times(4, turns);
    const int64_t quarter = (int64_t)plus(quarters, 0.5);
    const double x = times(plus(quarters, -(double)quarter), 1.57079632679489661923);
    const double z = times(x, x);
    double sin = 1, cos = 1;
#pragma unroll 1
    for (int k = 16; k > 0; k -= 2) sin = plus(1, -times(z / (double)(k * (k + 1)), sin));
    sin = times(x, sin);
#pragma unroll 1
    for (int k = 18; k > 0; k -= 2) cos = plus(1, -times(z / (double)(k * (k - 1)), cos));
    switch (quarter & 3) {
    case 0: return {cos, sin};
    case 1: return {-sin, cos};
    case 2: return {-cos, -sin};
    default: return {sin, -cos};
    }
}

// y[2j] = lo + width·u and y[2j + 1] = lo + width·v, clamped to the interval from `least` to
// `most`; u and v are uniform in [0, 1).
template <class T>
__device__ void uniform(size_t n, Key key, double lo, double width, T least, T most, T *y) {
    const auto number = [=](double u) {
        const T value = nearest<T>(plus(lo, times(width, u)));
        return widen(value) < widen(least) ? least : widen(value) > widen(most) ? most : value;
    };
    EACH(j, (n + 1) / 2) {
        const Words w = words(key, j);
        y[2 * j] = number(fraction(w.at[0], w.at[1]));
        if (2 * j + 1 < n) y[2 * j + 1] = number(fraction(w.at[2], w.at[3]));
    }
}

// y[2j] = mean + std·r·cos 2πv and y[2j + 1] = mean + std·r·sin 2πv with r = √(−2 ln(u + 2⁻⁵³)); u
// and v are uniform in [0, 1).
template <class T> __device__ void gaussian(size_t n, Key key, double mean, double std, T *y) {
    EACH(j, (n + 1) / 2) {
        const Words w = words(key, j);
        const double u = fraction(w.at[0], w.at[1]), v = fraction(w.at[2], w.at[3]);
        const double r = sqrt(times(-2, logarithm(plus(u, UNIT))));
        const Point at = circle(v);
        y[2 * j] = nearest<T>(plus(mean, times(std, times(r, at.cos))));
        if (2 * j + 1 < n) y[2 * j + 1] = nearest<T>(plus(mean, times(std, times(r, at.sin))));
    }
}

// Four elements that a thread loads or stores at once, one for each of the four random words that
// Philox generates from a counter.
template <class T> struct alignas(sizeof(T) == 8 ? 16 : 4 * sizeof(T)) Four {
    T at[4];
};

template <class T> __device__ __forceinline__ bool by_fours(const T *x) {
    return reinterpret_cast<uintptr_t>(x) % alignof(Four<T>) == 0;
}

// y[4j + k] = f(w), where w is the random word k of the counter j.
template <class F> __device__ __forceinline__ void from_words(size_t n, Key key, uint32_t *y, F f) {
    EACH(j, (n + 3) / 4) {
        const Words w = words(key, j);
#pragma unroll
        for (size_t k = 0; k < 4; k++) {
            if (4 * j + k < n) y[4 * j + k] = f(w.at[k]);
        }
    }
}

// y = x·factor if the element's random word is less than `below`, else 0; `y` may be `x`.
template <class T>
__device__ void dropout(size_t n, Key key, uint64_t below, acc_t<T> factor, const T *x, T *y) {
    using A = acc_t<T>;
    const bool whole = by_fours(x) && by_fours(y);
    EACH(j, (n + 3) / 4) {
        const Words w = words(key, j);
        const auto kept = [=](size_t k, T x) {
            return narrow<T>(w.at[k] < below ? factor * widen(x) : A(0));
        };
        if (whole && 4 * j + 4 <= n) {
            Four<T> four = reinterpret_cast<const Four<T> *>(x)[j];
#pragma unroll
            for (size_t k = 0; k < 4; k++) four.at[k] = kept(k, four.at[k]);
            reinterpret_cast<Four<T> *>(y)[j] = four;
        } else {
#pragma unroll
            for (size_t k = 0; k < 4; k++) {
                if (4 * j + k < n) y[4 * j + k] = kept(k, x[4 * j + k]);
            }
        }
    }
}

// y = 1 with probability below·2⁻³², else 0.
KERNEL bernoulli_u32(size_t n, Key key, uint64_t below, uint32_t *y) {
    from_words(n, key, y, [=](uint32_t word) { return word < below ? 1u : 0u; });
}

// y = the upper 32 bits of word·bound, a random integer below `bound`.
KERNEL integer_u32(size_t n, Key key, uint64_t bound, uint32_t *y) {
    from_words(n, key, y, [=](uint32_t word) { return (uint32_t)(word * bound >> 32); });
}

#define RANDOM(dtype, T)                                                                          \
    KERNEL uniform_##dtype(size_t n, Key key, double lo, double width, T least, T most, T *y) {   \
        uniform(n, key, lo, width, least, most, y);                                               \
    }                                                                                             \
    KERNEL gaussian_##dtype(size_t n, Key key, double mean, double std, T *y) {                   \
        gaussian(n, key, mean, std, y);                                                           \
    }                                                                                             \
    KERNEL dropout_##dtype(size_t n, Key key, uint64_t below, acc_t<T> factor, const T *x, T *y) { \
        dropout(n, key, below, factor, x, y);                                                     \
    }
EACH_ELEMENT(RANDOM)
