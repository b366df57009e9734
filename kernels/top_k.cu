// Arg max and top k along an axis.
#include "element.cuh"
#include <math.h>

struct Axis {
    uint64_t outer, extent, inner;
};

// An element and its index along the axis.
template <class A> struct Ranked {
    A value;
    uint32_t place;

    __device__ __forceinline__ Ranked across(int distance) const {
        return {__shfl_xor_sync(0xffffffffu, value, distance),
                __shfl_xor_sync(0xffffffffu, place, distance)};
    }
};

// Returns the greater of two elements, or the element with the smaller index if the elements are
// equal. Ignores NaN.
template <class A>
__device__ __forceinline__ Ranked<A> greater(const Ranked<A> &a, const Ranked<A> &b) {
    bool first = b.value == a.value && b.place < a.place;
    bool better = b.value > a.value || (a.value != a.value && b.value == b.value);
    return better || first ? b : a;
}

// y[o,i] ← the least e with the greatest x[o,e,i], or 0 if all elements are NaN. If `inner` is 1,
// the lanes of a warp share a row x[o,:,i]. If `inner` is not 1, one thread scans each row, and
// neighbouring threads scan neighbouring rows.
template <class T> __device__ void arg_max(const Axis &axis, const T *x, uint32_t *y) {
    uint32_t lanes = axis.inner == 1 ? 32 : 1, lane = threadIdx.x % lanes;
    EACH(i, axis.outer * axis.inner * lanes) {
        size_t q = i / lanes;
        const T *from = x + q / axis.inner * axis.extent * axis.inner + q % axis.inner;
        Ranked<acc_t<T>> best = {(acc_t<T>)NAN, 0};
#pragma unroll 4
        for (uint32_t e = lane; e < axis.extent; e += lanes)
            best = greater(best, {widen(from[e * axis.inner]), e});
        for (int distance = lanes / 2; distance > 0; distance /= 2)
            best = greater(best, best.across(distance));
        if (lane == 0) y[q] = best.place;
    }
}

// Returns whether `a` ranks before `b`. Greater elements rank first, and NaN ranks last. Of equal
// elements, the element with the greater index ranks first.
template <class A>
__device__ __forceinline__ bool before(const Ranked<A> &a, const Ranked<A> &b) {
    bool nan = a.value != a.value;
    if (nan || b.value != b.value) return nan == (b.value != b.value) ? a.place > b.place : !nan;
    return a.value == b.value ? a.place > b.place : a.value > b.value;
}

// values[o,j,i], places[o,j,i] ← element j of x[o,:,i] in the order of `before`, and the index of
// that element. A warp scans x[o,:,i] k times; each scan finds the element that ranks directly
// after the element of the previous scan.
template <class T>
__device__ void top_k(const Axis &axis, size_t k, const T *x, T *values, T *places) {
    using A = acc_t<T>;
    constexpr uint32_t NONE = 0xffffffffu;
    uint32_t lane = threadIdx.x % 32;
    EACH(i, axis.outer * axis.inner * 32) {
        size_t q = i / 32, o = q / axis.inner, inner = q % axis.inner;
        const T *from = x + o * axis.extent * axis.inner + inner;
        Ranked<A> last = {0, NONE};
        for (size_t j = 0; j < k; j++) {
            Ranked<A> best = {0, NONE};
            for (uint32_t e = lane; e < axis.extent; e += 32) {
                Ranked<A> next = {widen(from[e * axis.inner]), e};
                bool left = last.place == NONE || before(last, next);
                if (left && (best.place == NONE || before(next, best))) best = next;
            }
            for (int distance = 16; distance > 0; distance /= 2) {
                Ranked<A> other = best.across(distance);
                bool none = best.place == NONE;
                if (other.place != NONE && (none || before(other, best))) best = other;
            }
            last = best;
            if (lane == 0) {
                size_t to = (o * k + j) * axis.inner + inner;
                values[to] = from[best.place * axis.inner];
                places[to] = narrow<T>((A)best.place);
            }
        }
    }
}

#define RANKS(dtype, T)                                                                        \
    KERNEL arg_max_##dtype(Axis axis, const T *x, uint32_t *y) { arg_max(axis, x, y); }        \
    KERNEL top_k_##dtype(Axis axis, size_t k, const T *x, T *values, T *places) {              \
        top_k(axis, k, x, values, places);                                                     \
    }
EACH_ELEMENT(RANKS)
