// Rounding once from double precision to formats below single precision.
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

// `x` in single precision, and of the two neighbours of what does not fit the one whose last bit
// is set: rounding that once more, to fewer bits, gives the nearest to `x` itself.
inline float rounded_to_odd(double x) {
    const float near = float(x);
    if (double(near) == x || isnan(x)) return near;
    uint32_t bits;
    memcpy(&bits, &near, 4);
    if (bits & 1) return near;
    const bool away = fabs(double(near)) < fabs(x);
    bits = away ? bits + 1 : bits - 1;
    float odd;
    memcpy(&odd, &bits, 4);
    return odd;
}
