// One time step of an LSTM, forward and backward, as defined in src/op/lstm.rs.

#include "element.cuh"

template <class A> __device__ __forceinline__ A sigmoid(A x) { return A(1) / (A(1) + exp(-x)); }

// Returns the index of the first gate of an LSTM cell in the array of gates. The four gates of an
// LSTM cell are input, forget, output and candidate, in this order; the stride between gates is
// `width` elements.
__device__ __forceinline__ size_t first_gate(size_t cell, size_t width) {
    return cell / width * 4 * width + cell % width;
}

template <class T>
__device__ void lstm(size_t streams, size_t width, const T *c_prev, const T *cont, T *gates, T *c,
                     T *h) {
    using A = acc_t<T>;
    EACH(cell, streams * width) {
        T *gate = gates + first_gate(cell, width);
        const A input = sigmoid(widen(gate[0]));
        const A forget = widen(cont[cell / width]) * sigmoid(widen(gate[width]));
        const A output = sigmoid(widen(gate[2 * width]));
        const A candidate = tanh(widen(gate[3 * width]));
        const A state = forget * widen(c_prev[cell]) + input * candidate;
        gate[0] = narrow<T>(input);
        gate[width] = narrow<T>(forget);
        gate[2 * width] = narrow<T>(output);
        gate[3 * width] = narrow<T>(candidate);
        c[cell] = narrow<T>(state);
        h[cell] = narrow<T>(output * tanh(state));
    }
}

// Overwrites `dc`, the gradient of `c`, with the gradient of `c_prev`, and each gate with the
// gradient of the gate's input.
template <class T>
__device__ void lstm_backward(size_t streams, size_t width, const T *c_prev, const T *c,
                              const T *dh, T *dc, T *gates) {
    using A = acc_t<T>;
    EACH(cell, streams * width) {
        T *gate = gates + first_gate(cell, width);
        const A input = widen(gate[0]), forget = widen(gate[width]);
        const A output = widen(gate[2 * width]), candidate = widen(gate[3 * width]);
        const A through = tanh(widen(c[cell])), slope = widen(dh[cell]);
        const A dstate = widen(dc[cell]) + slope * output * (A(1) - through * through);
        gate[0] = narrow<T>(dstate * candidate * input * (A(1) - input));
        gate[width] = narrow<T>(dstate * widen(c_prev[cell]) * forget * (A(1) - forget));
        gate[2 * width] = narrow<T>(slope * through * output * (A(1) - output));
        gate[3 * width] = narrow<T>(dstate * input * (A(1) - candidate * candidate));
        dc[cell] = narrow<T>(dstate * forget);
    }
}

#define LSTM(dtype, T)                                                                          \
    KERNEL lstm_##dtype(size_t streams, size_t width, const T *c_prev, const T *cont, T *gates, \
                        T *c, T *h) {                                                           \
        lstm(streams, width, c_prev, cont, gates, c, h);                                        \
    }                                                                                           \
    KERNEL lstm_backward_##dtype(size_t streams, size_t width, const T *c_prev, const T *c,     \
                                 const T *dh, T *dc, T *gates) {                                \
        lstm_backward(streams, width, c_prev, c, dh, dc, gates);                                \
    }
EACH_ELEMENT(LSTM)
