// Test library with the cuBLAS functions that `CudaDevice` calls. A GEMM is a queued work item,
// which computes the GEMM in plain loops.
//
// The test library is stricter than NVIDIA's cuBLAS: the caller must give each handle a stream and
// a workspace. A GEMM fills the workspace with NaN, which reveals a workspace that was freed too
// early.

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

enum Status : int { SUCCESS = 0, INVALID_VALUE = 7, EXECUTION_FAILED = 13, NOT_SUPPORTED = 15 };
enum Type : int { R_32F = 0, R_64F = 1, R_16F = 2, R_16BF = 14 };
enum ComputeType : int { COMPUTE_32F = 68, COMPUTE_64F = 70 };
constexpr int TF32 = 3, NO_REDUCED_PRECISION = 16, ANY_ALGORITHM = -1;

struct Handle {
    void *context;
    void *stream = nullptr;
    void *workspace = nullptr;
    size_t bytes = 0;
    int mode = 0;

    // Returns whether the handle's context is current in this thread.
    bool is_current() const {
        void *current = nullptr;
        return cuCtxGetCurrent(&current) == 0 && current == context;
    }
};

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
                to = narrow<T>(beta == 0 ? alpha * sum : alpha * sum + beta * widen(to));
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

Status enqueue(const Handle *handle, GemmCall op, const void *alpha, const void *beta,
               int compute_type, int algorithm) {
    if (!handle->is_current() || !handle->stream || !handle->workspace) return INVALID_VALUE;
    if (op.m < 0 || op.n < 0 || op.k < 0 || op.count < 0) return INVALID_VALUE;
    const int rows_a = op.transpose_a ? op.k : op.m, rows_b = op.transpose_b ? op.n : op.k;
    if (op.a.ld < rows_a || op.b.ld < rows_b || op.c.ld < op.m) return INVALID_VALUE;
    if (!op.a.data || !op.b.data || !op.c.data) return INVALID_VALUE;
    const int type = op.c.type;
    const bool supported = type == R_16F || type == R_16BF || type == R_32F || type == R_64F;
    const bool same_type = op.a.type == type && op.b.type == type;
    if (!supported || !same_type) return NOT_SUPPORTED;
    if (compute_type != (type == R_64F ? COMPUTE_64F : COMPUTE_32F)) return NOT_SUPPORTED;
    if (algorithm != ANY_ALGORITHM || !(handle->mode & NO_REDUCED_PRECISION)) return NOT_SUPPORTED;
    const auto scalar = [&](const void *at) {
        return type == R_64F ? *static_cast<const double *>(at) : *static_cast<const float *>(at);
    };
    op.alpha = scalar(alpha);
    op.beta = scalar(beta);
    op.tf32 = type == R_32F && (handle->mode & ~NO_REDUCED_PRECISION) == TF32;
    op.workspace = handle->workspace;
    op.bytes = handle->bytes;
    return cuLaunchHostFunc(handle->stream, run, new GemmCall(op)) ? EXECUTION_FAILED : SUCCESS;
}

}  // namespace

ENTRY cublasGetProperty(int part, int *value) {
    constexpr int VERSION[] = {13, 0, 2};
    if (part < 0 || part > 2) return INVALID_VALUE;
    *value = VERSION[part];
    return SUCCESS;
}

ENTRY cublasCreate_v2(Handle **handle) {
    void *context = nullptr;
    if (cuCtxGetCurrent(&context) || !context) return INVALID_VALUE;
    *handle = new Handle{context};
    return SUCCESS;
}

ENTRY cublasDestroy_v2(Handle *handle) {
    const Status status = handle->is_current() ? SUCCESS : INVALID_VALUE;
    delete handle;
    return status;
}

// Sets the stream of a cuBLAS handle. As in cuBLAS, the caller must set the workspace again after
// `cublasSetStream_v2`.
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
    const int precision = mode & ~NO_REDUCED_PRECISION;
    if (precision != 0 && precision != TF32) return INVALID_VALUE;
    handle->mode = mode;
    return SUCCESS;
}

ENTRY cublasGemmEx(Handle *handle, int transpose_a, int transpose_b, int m, int n, int k,
                   const void *alpha, void *a, int type_a, int lda, void *b, int type_b, int ldb,
                   const void *beta, void *c, int type_c, int ldc, int compute_type,
                   int algorithm) {
    const GemmCall op = {transpose_a == 1, transpose_b == 1, m, n, k, 1, 0, 0,
                         {a, type_a, lda, 0}, {b, type_b, ldb, 0}, {c, type_c, ldc, 0},
                         false, nullptr, 0};
    return enqueue(handle, op, alpha, beta, compute_type, algorithm);
}

ENTRY cublasGemmStridedBatchedEx(Handle *handle, int transpose_a, int transpose_b, int m, int n,
                                 int k, const void *alpha, void *a, int type_a, int lda,
                                 long long stride_a, void *b, int type_b, int ldb,
                                 long long stride_b, const void *beta, void *c, int type_c,
                                 int ldc, long long stride_c, int count, int compute_type,
                                 int algorithm) {
    const GemmCall op = {transpose_a == 1, transpose_b == 1, m, n, k, count, 0, 0,
                         {a, type_a, lda, stride_a}, {b, type_b, ldb, stride_b},
                         {c, type_c, ldc, stride_c}, false, nullptr, 0};
    return enqueue(handle, op, alpha, beta, compute_type, algorithm);
}
