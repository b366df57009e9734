// Test library with the cuBLASLt functions that `CudaDevice` calls.
//
// The test library is stricter than NVIDIA's cuBLASLt: sums of 16-bit elements must be stored in 32
// bits, an algorithm works only for the problem for which the heuristic has returned it, and operands
// must have the alignment that the caller has promised. A GEMM fills its workspace with NaN.
//
// The environment variable `CUDA_ON_CPU_WITHOUT_ALGORITHMS` names an element type for which the
// heuristic finds no algorithm, such as `f64`; `bias` stands for all GEMMs with a bias. With
// `CUDA_ON_CPU_WITHOUT_CUBLASLT=1`, no handle can be created, as with a driver that is too old.

#include <stdlib.h>
#include <string>

#include "gemm.h"

namespace {

enum OperationAttribute { TRANS_A = 3, TRANS_B = 4, EPILOGUE = 7, BIAS_POINTER = 8, BIAS_TYPE = 26 };
enum LayoutAttribute { BATCH_COUNT = 5, BATCH_STRIDE = 6 };
enum PreferenceAttribute { MAX_WORKSPACE = 1, REDUCTION_SCHEMES = 3, FIRST_ALIGNMENT = 5 };
enum Epilogue : uint32_t { PLAIN = 1, RELU = 2, BIAS = 4 };
constexpr int COMPUTE_TF32 = 77;
constexpr uint32_t SUMS_IN_COMPUTE_TYPE = 2;

// Number of bytes of workspace that an algorithm of the test library uses if it may.
constexpr uint64_t WORKSPACE = 4096;

struct Handle {
    void *context;
};

struct Operation {
    int compute_type, scalar_type;
    int32_t trans[2] = {0, 0};
    uint32_t epilogue = PLAIN;
    const void *bias = nullptr;
    int32_t bias_type = -1;
};

struct Layout {
    int type;
    uint64_t rows, columns;
    int64_t ld;
    int32_t count = 1;
    int64_t stride = 0;
};

struct Preference {
    uint64_t workspace = 0;
    uint32_t reduction_schemes = 7;
    uint32_t alignments[4] = {256, 256, 256, 256};
};

struct Algorithm {
    uint64_t problem, alignments[4], bias_alignment, workspace, reserved;
};

struct FoundAlgorithm {
    Algorithm algorithm;
    size_t workspace;
    Status status;
    float waves;
    int reserved[4];
};
static_assert(sizeof(Algorithm) == 64 && sizeof(FoundAlgorithm) == 96, "layout of cublasLt.h");

// Copies the value of an attribute, which must have the size of `to`.
template <class T> Status assign(T &to, const void *value, size_t bytes) {
    if (!value || bytes != sizeof(T)) return INVALID_VALUE;
    memcpy(&to, value, bytes);
    return SUCCESS;
}

uint64_t alignment_of(const void *address) {
    const uint64_t bits = reinterpret_cast<uintptr_t>(address);
    return bits ? bits & -bits : 0;
}

// Returns a hash of everything on which the choice of an algorithm may depend.
uint64_t hash(const Operation &operation, const Layout &a, const Layout &b, const Layout &c) {
    uint64_t hash = 14695981039346656037u;
    const auto add = [&](uint64_t value) { hash = (hash ^ value) * 1099511628211u; };
    for (int value : {operation.compute_type, operation.trans[0], operation.trans[1]}) add(value);
    add(operation.epilogue);
    for (const Layout *layout : {&a, &b, &c}) {
        for (uint64_t value : {uint64_t(layout->type), layout->rows, layout->columns}) add(value);
        for (uint64_t value : {layout->ld, int64_t(layout->count), layout->stride}) add(value);
    }
    return hash;
}

// Returns whether the shapes and types of the matrices fit together.
Status check(const Operation &operation, const Layout &a, const Layout &b, const Layout &c) {
    const bool transpose_a = operation.trans[0], transpose_b = operation.trans[1];
    const uint64_t m = transpose_a ? a.columns : a.rows, k = transpose_a ? a.rows : a.columns;
    const uint64_t rows_b = transpose_b ? b.columns : b.rows, n = transpose_b ? b.rows : b.columns;
    if (m != c.rows || n != c.columns || k != rows_b) return INVALID_VALUE;
    for (const Layout *layout : {&a, &b, &c}) {
        if (layout->ld < int64_t(layout->rows) || layout->count != c.count) return INVALID_VALUE;
        if (layout->type != c.type) return NOT_SUPPORTED;
    }
    const int type = c.type;
    const bool is_wide = type == R_64F;
    const bool is_tf32 = type == R_32F && operation.compute_type == COMPUTE_TF32;
    if (operation.compute_type != (is_wide ? COMPUTE_64F : COMPUTE_32F) && !is_tf32) {
        return NOT_SUPPORTED;
    }
    if (operation.scalar_type != (is_wide ? R_64F : R_32F)) return NOT_SUPPORTED;
    if (operation.epilogue & BIAS && operation.bias_type != type) return NOT_SUPPORTED;
    return SUCCESS;
}

// Returns whether the environment forbids an algorithm for the problem.
bool is_excluded(const Operation &operation, const Layout &c) {
    const char *excluded = getenv("CUDA_ON_CPU_WITHOUT_ALGORITHMS");
    if (!excluded) return false;
    const char *type = c.type == R_16F ? "f16" : c.type == R_16BF ? "bf16" : c.type == R_32F ? "f32" : "f64";
    return std::string(excluded) == type || (std::string(excluded) == "bias" && operation.epilogue & BIAS);
}

}  // namespace

ENTRY cublasLtGetProperty(int part, int *value) {
    if (part < 0 || part > 2) return INVALID_VALUE;
    *value = VERSION[part];
    return SUCCESS;
}

ENTRY cublasLtCreate(Handle **handle) {
    void *context = nullptr;
    const char *missing = getenv("CUDA_ON_CPU_WITHOUT_CUBLASLT");
    if (missing && !strcmp(missing, "1")) return NOT_INITIALIZED;
    if (cuCtxGetCurrent(&context) || !context) return NOT_INITIALIZED;
    *handle = new Handle{context};
    return SUCCESS;
}

ENTRY cublasLtDestroy(Handle *handle) {
    delete handle;
    return SUCCESS;
}

ENTRY cublasLtMatmulDescCreate(Operation **operation, int compute_type, int scalar_type) {
    *operation = new Operation{compute_type, scalar_type};
    return SUCCESS;
}

ENTRY cublasLtMatmulDescDestroy(Operation *operation) {
    delete operation;
    return SUCCESS;
}

ENTRY cublasLtMatmulDescSetAttribute(Operation *to, int attribute, const void *value, size_t bytes) {
    switch (attribute) {
        case TRANS_A: return assign(to->trans[0], value, bytes);
        case TRANS_B: return assign(to->trans[1], value, bytes);
        case EPILOGUE: return assign(to->epilogue, value, bytes);
        case BIAS_POINTER: return assign(to->bias, value, bytes);
        case BIAS_TYPE: return assign(to->bias_type, value, bytes);
    }
    return INVALID_VALUE;
}

ENTRY cublasLtMatrixLayoutCreate(Layout **layout, int type, uint64_t rows, uint64_t columns,
                                 int64_t ld) {
    *layout = new Layout{type, rows, columns, ld};
    return SUCCESS;
}

ENTRY cublasLtMatrixLayoutDestroy(Layout *layout) {
    delete layout;
    return SUCCESS;
}

ENTRY cublasLtMatrixLayoutSetAttribute(Layout *to, int attribute, const void *value, size_t bytes) {
    switch (attribute) {
        case BATCH_COUNT: return assign(to->count, value, bytes);
        case BATCH_STRIDE: return assign(to->stride, value, bytes);
    }
    return INVALID_VALUE;
}

ENTRY cublasLtMatmulPreferenceCreate(Preference **preference) {
    *preference = new Preference;
    return SUCCESS;
}

ENTRY cublasLtMatmulPreferenceDestroy(Preference *preference) {
    delete preference;
    return SUCCESS;
}

ENTRY cublasLtMatmulPreferenceSetAttribute(Preference *to, int attribute, const void *value,
                                           size_t bytes) {
    switch (attribute) {
        case MAX_WORKSPACE: return assign(to->workspace, value, bytes);
        case REDUCTION_SCHEMES: return assign(to->reduction_schemes, value, bytes);
    }
    const int matrix = attribute - FIRST_ALIGNMENT;
    if (matrix < 0 || matrix > 3) return INVALID_VALUE;
    return assign(to->alignments[matrix], value, bytes);
}

ENTRY cublasLtMatmulAlgoGetHeuristic(Handle *, const Operation *operation, const Layout *a,
                                     const Layout *b, const Layout *c, const Layout *d,
                                     const Preference *preference, int requested,
                                     FoundAlgorithm *found, int *count) {
    *count = 0;
    if (requested < 1 || c != d) return INVALID_VALUE;
    if (const Status status = check(*operation, *a, *b, *c)) return status;
    if (preference->reduction_schemes != SUMS_IN_COMPUTE_TYPE) return NOT_SUPPORTED;
    if (operation->epilogue & BIAS && !operation->bias) return INVALID_VALUE;
    if (is_excluded(*operation, *c)) return NOT_SUPPORTED;
    Algorithm algorithm = {hash(*operation, *a, *b, *c)};
    for (int i = 0; i < 4; i++) algorithm.alignments[i] = preference->alignments[i];
    algorithm.bias_alignment = alignment_of(operation->bias);
    algorithm.workspace = preference->workspace >= WORKSPACE ? WORKSPACE : 0;
    *found = {algorithm, algorithm.workspace, SUCCESS, 1, {}};
    *count = 1;
    return SUCCESS;
}

ENTRY cublasLtMatmul(Handle *handle, const Operation *operation, const void *alpha, void *a,
                     const Layout *a_layout, void *b, const Layout *b_layout, const void *beta,
                     void *c, const Layout *c_layout, void *d, const Layout *d_layout,
                     const Algorithm *algorithm, void *workspace, size_t bytes, void *stream) {
    void *context = nullptr;
    if (cuCtxGetCurrent(&context) || context != handle->context) return INVALID_VALUE;
    if (const Status status = check(*operation, *a_layout, *b_layout, *c_layout)) return status;
    if (algorithm->problem != hash(*operation, *a_layout, *b_layout, *c_layout)) return INVALID_VALUE;
    if (c != d || c_layout != d_layout || bytes < algorithm->workspace) return INVALID_VALUE;
    if (algorithm->workspace && (!workspace || alignment_of(workspace) < 256)) return INVALID_VALUE;
    const void *operands[] = {a, b, c, d};
    for (int i = 0; i < 4; i++) {
        if (!operands[i] || alignment_of(operands[i]) < algorithm->alignments[i]) return INVALID_VALUE;
    }
    const bool has_bias = operation->epilogue & BIAS;
    if (has_bias && alignment_of(operation->bias) < algorithm->bias_alignment) return INVALID_VALUE;
    const int type = c_layout->type;
    const auto matrix = [&](void *data, const Layout *layout) {
        return Matrix{data, type, int(layout->ld), layout->stride};
    };
    const bool transpose_a = operation->trans[0];
    const int k = transpose_a ? a_layout->rows : a_layout->columns;
    const GemmCall call = {transpose_a, operation->trans[1] != 0, int(c_layout->rows),
                           int(c_layout->columns), k, c_layout->count, scalar(alpha, type),
                           scalar(beta, type), matrix(a, a_layout), matrix(b, b_layout),
                           matrix(c, c_layout), operation->compute_type == COMPUTE_TF32, workspace,
                           bytes, has_bias ? operation->bias : nullptr,
                           (operation->epilogue & RELU) != 0};
    return enqueue(stream, call);
}
