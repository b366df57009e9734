// Sliding windows along three axes. An operand with fewer than three axes gets leading axes of
// extent 1.
#pragma once

#include "element.cuh"

constexpr int AXES = 3;

// Windows along one axis: tap t of window w reads element `w·stride + t·dilation − pad`.
struct Extent {
    int32_t input, output, kernel, stride, pad, dilation;
};

struct Window {
    Extent axes[AXES];

    __device__ __forceinline__ size_t plane() const {
        size_t plane = 1;
#pragma unroll
        for (int a = 0; a < AXES; a++) plane *= axes[a].input;
        return plane;
    }
    __device__ __forceinline__ size_t positions() const {
        size_t positions = 1;
#pragma unroll
        for (int a = 0; a < AXES; a++) positions *= axes[a].output;
        return positions;
    }
    __device__ __forceinline__ size_t taps() const {
        size_t taps = 1;
#pragma unroll
        for (int a = 0; a < AXES; a++) taps *= axes[a].kernel;
        return taps;
    }
};

// Splits the row-major index `at` into coordinates along the window's axes, and writes them to
// `into`. `extent` names the field with the length of an axis. Afterwards, `at` is the index of the
// axes before the window's, such as the number of the plane.
#define COORDINATES(at, window, extent, into)                                                  \
    _Pragma("unroll") for (int a = AXES - 1; a >= 0; a--) {                                    \
        (into)[a] = (int32_t)((at) % (window).axes[a].extent);                                 \
        (at) /= (window).axes[a].extent;                                                       \
    }

// Iterator over the taps of a window, in which the last axis varies fastest.
struct Taps {
    int32_t at[AXES] = {};

    __device__ __forceinline__ void next(const Window &window) {
        bool carry = true;
#pragma unroll
        for (int a = AXES - 1; a >= 0; a--) {
            at[a] += carry;
            carry = at[a] == window.axes[a].kernel;
            if (carry) at[a] = 0;
        }
    }
};

// Sets `at` to the index of the element that a tap of the window at `position` reads; returns false
// if the tap is in the padding.
__device__ __forceinline__ bool seen(const Window &window, const int32_t (&position)[AXES],
                                     const Taps &tap, size_t &at) {
    bool inside = true;
    at = 0;
#pragma unroll
    for (int a = 0; a < AXES; a++) {
        const Extent &axis = window.axes[a];
        int32_t i = position[a] * axis.stride + tap.at[a] * axis.dilation - axis.pad;
        inside &= (uint32_t)i < (uint32_t)axis.input;
        at = at * axis.input + i;
    }
    return inside;
}

// Sets `at` to the index of the position whose window reads `pixel` with `tap`; returns false if no
// window reads `pixel` with this tap.
__device__ __forceinline__ bool seeing(const Window &window, const int32_t (&pixel)[AXES],
                                       const Taps &tap, size_t &at) {
    bool inside = true;
    at = 0;
#pragma unroll
    for (int a = 0; a < AXES; a++) {
        const Extent &axis = window.axes[a];
        int32_t i = pixel[a] + axis.pad - tap.at[a] * axis.dilation, position = i;
        if (axis.stride > 1) {
            position = i / axis.stride;
            inside &= position * axis.stride == i;
        }
        inside &= i >= 0 && position < axis.output;
        at = at * axis.output + position;
    }
    return inside;
}
