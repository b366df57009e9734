// Test library with the cuBLAS functions that `CudaDevice` calls.
//
// The test library is stricter than NVIDIA's cuBLAS: the caller must give each handle a stream and
// a workspace. A GEMM fills the workspace with NaN, which reveals a workspace that was freed too
// early.

#include "gemm.h"

namespace {

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
    op.alpha = scalar(alpha, type);
    op.beta = scalar(beta, type);
    op.tf32 = type == R_32F && (handle->mode & ~NO_REDUCED_PRECISION) == TF32;
    op.workspace = handle->workspace;
    op.bytes = handle->bytes;
    return enqueue(handle->stream, op);
}

}  // namespace

ENTRY cublasGetProperty(int part, int *value) {
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
