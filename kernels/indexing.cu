// Gather, scatter, permute and other copies; src/host/indexing is the reference implementation.

#include "block.cuh"
#include "kernel_error.cuh"
#include "map.cuh"
#include "rows.cuh"

// y[r·ldy + c] = x[r·ldx + c] for r < rows and c < columns.
template <class T>
__device__ void copy_2d(size_t rows, size_t columns, const T *x, size_t ldx, T *y, size_t ldy,
                        unsigned span) {
    constexpr size_t LEN = Pack<T>::LEN;
    const ThreadPosition place(span);
    const bool packed = columns % LEN == 0 && ldx % LEN == 0 && ldy % LEN == 0 && packable(x, y);
    EACH_ROW(r, place, rows) {
        const T *from = x + r * ldx;
        T *to = y + r * ldy;
        if (packed) {
            EACH_COLUMN(c, place, columns / LEN) {
                reinterpret_cast<Pack<T> *>(to)[c] = reinterpret_cast<const Pack<T> *>(from)[c];
            }
        } else {
            EACH_COLUMN(c, place, columns) to[c] = from[c];
        }
    }
}

// y[i, :] = table[indices[i], :]
template <class T>
__device__ void gather(size_t rows, size_t width, size_t count, const T *table,
                       const uint32_t *indices, ErrorFlag *error, T *y, unsigned span) {
    const ThreadPosition place(span);
    EACH_ROW(i, place, count) {
        const uint32_t row = indices[i];
        if (row >= rows) {
            report_error(error, i);
            continue;
        }
        EACH_COLUMN(c, place, width) y[i * width + c] = table[row * width + c];
    }
}

// table[indices[i], :] += y[i, :] for i in order; each sum is rounded to the element type.
//
// One thread block processes each index i. If several i have the same `indices[i]`, the block of
// the first such i adds all their y[i, :]. Therefore, no two blocks write to the same row of the
// table.
template <class T>
__device__ void scatter_add(size_t rows, size_t width, size_t count, const T *y,
                            const uint32_t *indices, ErrorFlag *error, T *table) {
    __shared__ uint32_t named[WARP];
    const unsigned warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    for (size_t i = blockIdx.x; i < count; i += gridDim.x) {
        const uint32_t row = indices[i];
        uint32_t before = 0;
        for (size_t j = threadIdx.x; j < i; j += blockDim.x) before |= indices[j] == row;
        if (row >= rows && threadIdx.x == 0) report_error(error, i);
        if (over_block<Sum>(before) != 0 || row >= rows) continue;
        T *to = table + row * width;
        for (size_t start = i; start < count; start += blockDim.x) {
            const size_t j = start + threadIdx.x;
            const uint32_t these = __ballot_sync(ALL_LANES, j < count && indices[j] == row);
            if (threadIdx.x % WARP == 0) named[warp] = these;
            __syncthreads();
            for (unsigned w = 0; w < warps; w++) {
                for (uint32_t left = named[w]; left != 0; left &= left - 1) {
                    const T *from = y + (start + w * WARP + __ffs(left) - 1) * width;
                    for (size_t c = threadIdx.x; c < width; c += blockDim.x) {
                        to[c] = narrow<T>(widen(to[c]) + widen(from[c]));
                    }
                }
            }
            __syncthreads();
        }
    }
}

// Axes of the result of `permute`, outermost first: the extent of each axis, and its stride in the
// source operand.
constexpr int AXES = 8;
struct Axes {
    uint64_t count, extents[AXES], strides[AXES];
};

// y[i] = x[j], where j is the sum of coordinate · stride over the coordinates of i.
template <class T> __device__ void permute(size_t n, const Axes &op, const T *x, T *y) {
    EACH(i, n) {
        size_t left = i, at = 0;
#pragma unroll
        for (int axis = AXES - 1; axis >= 0; axis--) {
            if (axis >= (int)op.count) continue;
            at += left % op.extents[axis] * op.strides[axis];
            left /= op.extents[axis];
        }
        y[i] = x[at];
    }
}

// y[b, r, c] = x[b, c, r], tile by tile in shared memory, so that reads and writes are contiguous.
template <class T>
__device__ void transpose(size_t batch, size_t rows, size_t columns, const T *x, T *y) {
    // One column of padding puts the elements of a column into different banks of shared memory.
    __shared__ T tile[WARP][WARP + 1];
    const unsigned lane = threadIdx.x % WARP, first = threadIdx.x / WARP;
    const unsigned warps = blockDim.x / WARP;
    const size_t across = (columns + WARP - 1) / WARP, down = (rows + WARP - 1) / WARP;
    for (size_t t = blockIdx.x; t < batch * down * across; t += gridDim.x) {
        const size_t start = t / (down * across) * rows * columns;
        const size_t r = t / across % down * WARP, c = t % across * WARP;
        for (size_t k = first; k < WARP; k += warps) {
            if (c + k < columns && r + lane < rows) {
                tile[k][lane] = x[start + (c + k) * rows + r + lane];
            }
        }
        __syncthreads();
        for (size_t k = first; k < WARP; k += warps) {
            if (r + k < rows && c + lane < columns) {
                y[start + (r + k) * columns + c + lane] = tile[lane][k];
            }
        }
        __syncthreads();
    }
}

// y[o, t, i] = x[o, i]
template <class T>
__device__ void tile(size_t outer, size_t inner, size_t tiles, const T *x, T *y, unsigned span) {
    const ThreadPosition place(span);
    EACH_ROW(row, place, outer * tiles) {
        const T *from = x + row / tiles * inner;
        EACH_COLUMN(i, place, inner) y[row * inner + i] = from[i];
    }
}

// dx[o, i] = Σ over t of dy[o, t, i]
template <class T>
__device__ void tile_backward(size_t outer, size_t inner, size_t tiles, const T *dy, T *dx) {
    EACH(at, outer * inner) {
        const T *from = dy + at / inner * tiles * inner + at % inner;
        acc_t<T> sum = 0;
        for (size_t t = 0; t < tiles; t++) sum += widen(from[t * inner]);
        dx[at] = narrow<T>(sum);
    }
}

// y = x, converted to `uint32_t`; reports the first x that is not an integer in [0, bound).
template <class T>
__device__ void to_indices(size_t n, uint32_t bound, const T *x, ErrorFlag *error,
                           uint32_t *y) {
    EACH(i, n) {
        const acc_t<T> value = widen(x[i]);
        if (value >= 0 && (double)value < (double)bound && floor(value) == value) {
            y[i] = (uint32_t)value;
        } else {
            report_error(error, i);
        }
    }
}

#define INDEX(dtype, T)                                                                           \
    KERNEL copy_2d_##dtype(size_t rows, size_t columns, const T *x, size_t ldx, T *y, size_t ldy, \
                           uint32_t span) {                                                       \
        copy_2d(rows, columns, x, ldx, y, ldy, span);                                             \
    }                                                                                             \
    KERNEL gather_##dtype(size_t rows, size_t width, size_t count, const T *table,                \
                          const uint32_t *indices, ErrorFlag *error, T *y, uint32_t span) {   \
        gather(rows, width, count, table, indices, error, y, span);                           \
    }                                                                                             \
    KERNEL scatter_add_##dtype(size_t rows, size_t width, size_t count, const T *y,               \
                               const uint32_t *indices, ErrorFlag *error, T *table) {         \
        scatter_add(rows, width, count, y, indices, error, table);                            \
    }                                                                                             \
    KERNEL permute_##dtype(size_t n, Axes op, const T *x, T *y) { permute(n, op, x, y); }         \
    KERNEL transpose_##dtype(size_t batch, size_t rows, size_t columns, const T *x, T *y) {       \
        transpose(batch, rows, columns, x, y);                                                    \
    }                                                                                             \
    KERNEL tile_##dtype(size_t outer, size_t inner, size_t tiles, const T *x, T *y,               \
                        uint32_t span) {                                                          \
        tile(outer, inner, tiles, x, y, span);                                                    \
    }                                                                                             \
    KERNEL tile_backward_##dtype(size_t outer, size_t inner, size_t tiles, const T *dy, T *dx) {  \
        tile_backward(outer, inner, tiles, dy, dx);                                               \
    }                                                                                             \
    KERNEL to_indices_##dtype(size_t n, uint32_t bound, const T *x, ErrorFlag *error,         \
                              uint32_t *y) {                                                      \
        to_indices(n, bound, x, error, y);                                                    \
    }
EACH_ELEMENT(INDEX)
