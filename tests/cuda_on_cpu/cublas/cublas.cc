// cuBLAS as far as `CudaDevice` calls it: products in plain loops, when their queue comes to them.
//
// It is stricter than the real one: it takes no handle without a queue and memory to work in, which
// it fills with NaN, so that memory that is given back too early is found.

#include <math.h>
#include <string.h>

#include "../include/builtins.h"
#include "element.cuh"

// What it needs of the driver.
extern "C" int cuCtxGetCurrent(void **context);
extern "C" int cuLaunchHostFunc(void *stream, void (*call)(void *), void *data);

#define ENTRY extern "C" __attribute__((visibility("default"))) Status

namespace {

enum Status : int { SUCCESS = 0, INVALID_VALUE = 7, EXECUTION_FAILED = 13, NOT_SUPPORTED = 15 };
enum Type : int { R_32F = 0, R_64F = 1, R_16F = 2, R_16BF = 14 };
enum Sums : int { SUMS_32F = 68, SUMS_64F = 70 };
constexpr int TF32 = 3, WIDE_SUMS = 16, ANY_ALGORITHM = -1;

struct Handle {
    void *context;
    void *stream = nullptr;
    void *workspace = nullptr;
    size_t bytes = 0;
    int mode = 0;

    // Whether the thread has entered the context that the handle was made in.
    bool is_here() const {
        void *current = nullptr;
        return cuCtxGetCurrent(&current) == 0 && current == context;
    }
};

// An operand: columns first, and the next one of a batch `step` elements further.
struct Matrix {
    void *first;
    int type, ld;
    long long step;
};

struct Product {
    bool across_a, across_b;
    int m, n, k, count;
    double alpha, beta;
    Matrix a, b, c;
    bool tf32;
    void *workspace;
    size_t bytes;
};

// To ten bits of the significand, as tensor cores take it: to the nearest, halves away from zero.
float rounded(float x) {
    return isfinite(x) ? __uint_as_float((__float_as_uint(x) + 0x1000) & ~0x1fffu) : x;
}

template <class T> acc_t<T> term(const Product &op, const T &x) {
    const acc_t<T> value = widen(x);
    return op.tf32 ? rounded(value) : value;
}

template <class T> void multiply(const Product &op) {
    memset(op.workspace, 0xff, op.bytes);
    const acc_t<T> alpha = op.alpha, beta = op.beta;
    for (long long i = 0; i < op.count; i++) {
        const T *a = static_cast<const T *>(op.a.first) + i * op.a.step;
        const T *b = static_cast<const T *>(op.b.first) + i * op.b.step;
        T *c = static_cast<T *>(op.c.first) + i * op.c.step;
        for (size_t column = 0; column < size_t(op.n); column++) {
            for (size_t row = 0; row < size_t(op.m); row++) {
                acc_t<T> sum = 0;
                for (size_t k = 0; k < size_t(op.k); k++) {
                    const T &x = op.across_a ? a[k + row * op.a.ld] : a[row + k * op.a.ld];
                    const T &y = op.across_b ? b[column + k * op.b.ld] : b[k + column * op.b.ld];
                    sum += term<T>(op, x) * term<T>(op, y);
                }
                T &to = c[row + column * op.c.ld];
                to = narrow<T>(beta == 0 ? alpha * sum : alpha * sum + beta * widen(to));
            }
        }
    }
}

void run(void *queued) {
    const auto *op = static_cast<Product *>(queued);
    switch (op->c.type) {
        case R_16F: multiply<__half>(*op); break;
        case R_16BF: multiply<__nv_bfloat16>(*op); break;
        case R_32F: multiply<float>(*op); break;
        case R_64F: multiply<double>(*op); break;
    }
    delete op;
}

Status queue(const Handle *handle, Product op, const void *alpha, const void *beta, int sums,
             int algorithm) {
    if (!handle->is_here() || !handle->stream || !handle->workspace) return INVALID_VALUE;
    if (op.m < 0 || op.n < 0 || op.k < 0 || op.count < 0) return INVALID_VALUE;
    const int rows_a = op.across_a ? op.k : op.m, rows_b = op.across_b ? op.n : op.k;
    if (op.a.ld < rows_a || op.b.ld < rows_b || op.c.ld < op.m) return INVALID_VALUE;
    if (!op.a.first || !op.b.first || !op.c.first) return INVALID_VALUE;
    const int type = op.c.type;
    const bool known = type == R_16F || type == R_16BF || type == R_32F || type == R_64F;
    const bool same = op.a.type == type && op.b.type == type;
    if (!known || !same || sums != (type == R_64F ? SUMS_64F : SUMS_32F)) return NOT_SUPPORTED;
    if (algorithm != ANY_ALGORITHM || !(handle->mode & WIDE_SUMS)) return NOT_SUPPORTED;
    const auto scalar = [&](const void *at) {
        return type == R_64F ? *static_cast<const double *>(at) : *static_cast<const float *>(at);
    };
    op.alpha = scalar(alpha);
    op.beta = scalar(beta);
    op.tf32 = type == R_32F && (handle->mode & ~WIDE_SUMS) == TF32;
    op.workspace = handle->workspace;
    op.bytes = handle->bytes;
    return cuLaunchHostFunc(handle->stream, run, new Product(op)) ? EXECUTION_FAILED : SUCCESS;
}

}  // namespace

ENTRY cublasGetProperty(int which, int *value) {
    constexpr int VERSION[] = {13, 0, 2};
    if (which < 0 || which > 2) return INVALID_VALUE;
    *value = VERSION[which];
    return SUCCESS;
}

ENTRY cublasCreate_v2(Handle **handle) {
    void *context = nullptr;
    if (cuCtxGetCurrent(&context) || !context) return INVALID_VALUE;
    *handle = new Handle{context};
    return SUCCESS;
}

ENTRY cublasDestroy_v2(Handle *handle) {
    const Status status = handle->is_here() ? SUCCESS : INVALID_VALUE;
    delete handle;
    return status;
}

// With a queue come memory and modes of its own, as far as this says.
ENTRY cublasSetStream_v2(Handle *handle, void *stream) {
    handle->stream = stream;
    handle->workspace = nullptr;
    return SUCCESS;
}

ENTRY cublasSetWorkspace_v2(Handle *handle, void *workspace, size_t bytes) {
    if (reinterpret_cast<uintptr_t>(workspace) % 256 != 0) return INVALID_VALUE;
    handle->workspace = workspace;
    handle->bytes = bytes;
    return SUCCESS;
}

ENTRY cublasSetMathMode(Handle *handle, int mode) {
    const int precision = mode & ~WIDE_SUMS;
    if (precision != 0 && precision != TF32) return INVALID_VALUE;
    handle->mode = mode;
    return SUCCESS;
}

ENTRY cublasGemmEx(Handle *handle, int across_a, int across_b, int m, int n, int k,
                   const void *alpha, void *a, int type_a, int lda, void *b, int type_b, int ldb,
                   const void *beta, void *c, int type_c, int ldc, int sums, int algorithm) {
    const Product op = {across_a == 1,      across_b == 1,      m, n, k, 1, 0, 0, {a, type_a, lda, 0},
                        {b, type_b, ldb, 0}, {c, type_c, ldc, 0}, false, nullptr, 0};
    return queue(handle, op, alpha, beta, sums, algorithm);
}

ENTRY cublasGemmStridedBatchedEx(Handle *handle, int across_a, int across_b, int m, int n, int k,
                                 const void *alpha, void *a, int type_a, int lda, long long step_a,
                                 void *b, int type_b, int ldb, long long step_b, const void *beta,
                                 void *c, int type_c, int ldc, long long step_c, int count,
                                 int sums, int algorithm) {
    const Product op = {across_a == 1, across_b == 1, m, n, k, count, 0, 0,
                        {a, type_a, lda, step_a}, {b, type_b, ldb, step_b},
                        {c, type_c, ldc, step_c}, false, nullptr, 0};
    return queue(handle, op, alpha, beta, sums, algorithm);
}
