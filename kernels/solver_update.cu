// Solver updates in one pass over memory; src/op/update.rs defines the update rules.

#include "map.cuh"

// The constants of a solver update; some update rules do not use `keep`, `keep2` or `delta`.
template <class A> struct SolverUpdate {
    A rate, scale, decay, keep, keep2, delta;
};

// Update rules. `step` updates the history `h`, and also `k` if `TWO` is true, and returns the
// decrement of the weight.
struct Sgd {
    static constexpr bool TWO = false;
    template <class A> static __device__ A step(const SolverUpdate<A> &op, A g, A &h, A &) {
        h = op.keep * h + op.rate * g;
        return h;
    }
};
struct Nesterov {
    static constexpr bool TWO = false;
    template <class A> static __device__ A step(const SolverUpdate<A> &op, A g, A &h, A &) {
        const A last = h;
        h = op.keep * last + op.rate * g;
        return (A(1) + op.keep) * h - op.keep * last;
    }
};
struct AdaGrad {
    static constexpr bool TWO = false;
    template <class A> static __device__ A step(const SolverUpdate<A> &op, A g, A &h, A &) {
        h = h + g * g;
        return op.rate * g / (sqrt(h) + op.delta);
    }
};
struct RmsProp {
    static constexpr bool TWO = false;
    template <class A> static __device__ A step(const SolverUpdate<A> &op, A g, A &h, A &) {
        h = op.keep * h + (A(1) - op.keep) * (g * g);
        return op.rate * g / (sqrt(h) + op.delta);
    }
};
struct AdaDelta {
    static constexpr bool TWO = true;
    template <class A> static __device__ A step(const SolverUpdate<A> &op, A g, A &h, A &k) {
        h = op.keep * h + (A(1) - op.keep) * (g * g);
        const A s = g * sqrt((k + op.delta) / (h + op.delta));
        k = op.keep * k + (A(1) - op.keep) * (s * s);
        return op.rate * s;
    }
};
struct Adam {
    static constexpr bool TWO = true;
    template <class A> static __device__ A step(const SolverUpdate<A> &op, A g, A &h, A &k) {
        h = op.keep * h + (A(1) - op.keep) * g;
        k = op.keep2 * k + (A(1) - op.keep2) * (g * g);
        return op.rate * h / (sqrt(k) + op.delta);
    }
};

// `N` elements that a thread loads or stores at once; aligned to 16 bytes if `N` is not 1.
template <class T, size_t N> struct alignas(N == 1 ? alignof(T) : 16) Run {
    T at[N];
};

template <class T, size_t N> __device__ __forceinline__ Run<T, N> &run(T *x, size_t i) {
    return reinterpret_cast<Run<T, N> *>(x)[i];
}
template <class T, size_t N> __device__ __forceinline__ const Run<T, N> &run(const T *x, size_t i) {
    return reinterpret_cast<const Run<T, N> *>(x)[i];
}

// Updates the `N` weights of run `i`. `masters` may be null, and `k` may be null if the update rule
// has only one history.
template <class T, class Rule, size_t N>
__device__ __forceinline__ void solver_update_run(size_t i, const SolverUpdate<acc_t<T>> &op, bool l1,
                                            const T *dw, T *weights, acc_t<T> *masters,
                                            acc_t<T> *h, acc_t<T> *k) {
    using A = acc_t<T>;
    const Run<T, N> slopes = run<T, N>(dw, i);
    Run<T, N> w = run<T, N>(weights, i);
    Run<A, N> wide, first = run<A, N>(h, i), second;
    if (Rule::TWO) second = run<A, N>(k, i);
    if (masters) wide = run<A, N>(masters, i);
#pragma unroll
    for (size_t j = 0; j < N; j++) {
        const A weight = widen(w.at[j]);
        // If a weight differs from its rounded master weight, other code has changed the weight, so
        // the update ignores the master weight and starts from the weight.
        const bool kept = masters && widen(narrow<T>(wide.at[j])) == weight;
        const A old = kept ? wide.at[j] : weight;
        const A pull = !l1 ? old : old > A(0) ? A(1) : old < A(0) ? A(-1) : A(0);
        const A g = op.scale * widen(slopes.at[j]) + op.decay * pull;
        wide.at[j] = old - Rule::step(op, g, first.at[j], second.at[j]);
        w.at[j] = narrow<T>(wide.at[j]);
    }
    run<T, N>(weights, i) = w;
    run<A, N>(h, i) = first;
    if (Rule::TWO) run<A, N>(k, i) = second;
    if (masters) run<A, N>(masters, i) = wide;
}

template <class T, class Rule>
__device__ void solver_update(size_t n, const SolverUpdate<acc_t<T>> &op, bool l1, const T *dw, T *weights,
                        acc_t<T> *masters, acc_t<T> *h, acc_t<T> *k) {
    constexpr size_t LEN = Pack<T>::LEN;
    const size_t packs = packable(dw, weights, masters, h, k) ? n / LEN : 0;
    EACH(i, packs) solver_update_run<T, Rule, LEN>(i, op, l1, dw, weights, masters, h, k);
    EACH_FROM(i, packs * LEN, n) solver_update_run<T, Rule, 1>(i, op, l1, dw, weights, masters, h, k);
}

#define RULE(name, Rule, dtype, T)                                                            \
    KERNEL name##_##dtype(size_t n, SolverUpdate<acc_t<T>> op, uint32_t l1, const T *dw,           \
                          T *weights, acc_t<T> *masters, acc_t<T> *h, acc_t<T> *k) {          \
        solver_update<T, Rule>(n, op, l1 != 0, dw, weights, masters, h, k);                         \
    }
#define RULES(dtype, T)                   \
    RULE(sgd, Sgd, dtype, T)              \
    RULE(nesterov, Nesterov, dtype, T)    \
    RULE(ada_grad, AdaGrad, dtype, T)     \
    RULE(rms_prop, RmsProp, dtype, T)     \
    RULE(ada_delta, AdaDelta, dtype, T)   \
    RULE(adam, Adam, dtype, T)
EACH_ELEMENT(RULES)
