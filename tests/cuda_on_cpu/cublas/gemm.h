// GEMM of the test libraries of cuBLAS and cuBLASLt: a queued work item, which computes the GEMM in
// plain loops, and fills the workspace with NaN.
#pragma once

#include <math.h>
#include <string.h>

#include "../include/builtins.h"
#include "element.cuh"

// Functions of the simulated driver that the test library of cuBLAS calls.
extern "C" int cuCtxGetCurrent(void **context);
extern "C" int cuLaunchHostFunc(void *stream, void (*call)(void *), void *data);
extern "C" int cuda_on_cpu_written(uint64_t start, size_t bytes);

#define ENTRY extern "C" __attribute__((visibility("default"))) Status

namespace {

enum Status : int {
    SUCCESS = 0,
    NOT_INITIALIZED = 1,
    INVALID_VALUE = 7,
    EXECUTION_FAILED = 13,
    NOT_SUPPORTED = 15
};
enum Type : int { R_32F = 0, R_64F = 1, R_16F = 2, R_16BF = 14 };
enum ComputeType : int { COMPUTE_32F = 68, COMPUTE_64F = 70 };

// The version of both libraries.
constexpr int VERSION[] = {13, 0, 2};

// Column-major matrix, or batch of column-major matrices that start `stride` elements apart.
struct Matrix {
    void *data;
    int type, ld;
    long long stride;
};

struct GemmCall {
    bool transpose_a, transpose_b;
    int m, n, k, count;
    double alpha, beta;
    Matrix a, b, c;
    bool tf32;
    void *workspace;
    size_t bytes;
    // Vector with an element for each row of the result, or null.
    const void *bias = nullptr;
    bool relu = false;
};

// Rounds a `float` to TF32 (10-bit mantissa) like the PTX instruction `cvt.rna.tf32.f32`: to
// nearest, with ties away from zero.
float round_to_tf32(float x) {
    return isfinite(x) ? __uint_as_float((__float_as_uint(x) + 0x1000) & ~0x1fffu) : x;
}

template <class T> acc_t<T> factor(const GemmCall &op, const T &x) {
    const acc_t<T> value = widen(x);
    return op.tf32 ? round_to_tf32(value) : value;
}

template <class T> void multiply(const GemmCall &op) {
    memset(op.workspace, 0xff, op.bytes);
    const acc_t<T> alpha = op.alpha, beta = op.beta;
    for (long long i = 0; i < op.count; i++) {
        const T *a = static_cast<const T *>(op.a.data) + i * op.a.stride;
        const T *b = static_cast<const T *>(op.b.data) + i * op.b.stride;
        T *c = static_cast<T *>(op.c.data) + i * op.c.stride;
        for (size_t column = 0; column < size_t(op.n); column++) {
            for (size_t row = 0; row < size_t(op.m); row++) {
                acc_t<T> sum = 0;
                for (size_t k = 0; k < size_t(op.k); k++) {
                    const T &x = op.transpose_a ? a[k + row * op.a.ld] : a[row + k * op.a.ld];
                    const T &y = op.transpose_b ? b[column + k * op.b.ld] : b[k + column * op.b.ld];
                    sum += factor<T>(op, x) * factor<T>(op, y);
                }
                T &to = c[row + column * op.c.ld];
                acc_t<T> result = beta == 0 ? alpha * sum : alpha * sum + beta * widen(to);
                if (op.bias) result += widen(static_cast<const T *>(op.bias)[row]);
                to = narrow<T>(op.relu && result < 0 ? 0 : result);
            }
            const auto *written = c + column * op.c.ld;
            cuda_on_cpu_written(reinterpret_cast<uint64_t>(written), op.m * sizeof(T));
        }
    }
}

void run(void *call) {
    const auto *op = static_cast<GemmCall *>(call);
    switch (op->c.type) {
        case R_16F: multiply<__half>(*op); break;
        case R_16BF: multiply<__nv_bfloat16>(*op); break;
        case R_32F: multiply<float>(*op); break;
        case R_64F: multiply<double>(*op); break;
    }
    delete op;
}

// Returns a scalar, which has the type of the accumulators of elements of the type `type`.
double scalar(const void *at, int type) {
    return type == R_64F ? *static_cast<const double *>(at) : *static_cast<const float *>(at);
}

Status enqueue(void *stream, const GemmCall &op) {
    return cuLaunchHostFunc(stream, run, new GemmCall(op)) ? EXECUTION_FAILED : SUCCESS;
}

}  // namespace
