// Rounding of `double` to 16-bit formats through `float`, without double rounding.
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

// Rounds `x` to odd: an inexact result is the neighbouring `float` whose least significant bit is
// set. Rounding the result to a 16-bit format gives the same number as rounding `x` directly.
inline float round_to_odd(double x) {
    const float nearest = float(x);
    if (double(nearest) == x || isnan(x)) return nearest;
    uint32_t bits;
    memcpy(&bits, &nearest, 4);
    if (bits & 1) return nearest;
    const bool away_from_zero = fabs(double(nearest)) < fabs(x);
    bits = away_from_zero ? bits + 1 : bits - 1;
    float odd;
    memcpy(&odd, &bits, 4);
    return odd;
}
