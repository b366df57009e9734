// Convolution as implicit GEMM, with one GEMM per group of channels. The im2col matrix is never
// stored: the kernels load the matrix elements from the images.
#include "tiled_gemm.cuh"
#include "window.cuh"

// One axis of a convolution: tap t of column c reads `x[c·stride + t·step + origin]`, or 0 if the
// index is not below `range`.
struct TapAxis {
    uint32_t range, columns, taps, stride;
    int32_t step, origin;
};

// The GEMM of one group: the group's filters (`rows` × k) times the im2col matrix of `x`. Index k
// runs over the taps of all channels of the group; a column is an output position of an image. With
// stride 1, the gradient of the images is also a `Product`, with transposed filters and a negative
// `step`.
//
// The number of rows, the number of columns and the number of image elements are below 2³¹.
struct Product {
    TapAxis axes[AXES];
    uint32_t batch, groups, rows, channels;
    uint32_t positions, k; // Π axes' columns; channels · Π axes' taps
};

// Returns tap `i` of `channels` channels, relative to tap 0 of channel 0: the distance along each
// axis, and the distance between the elements in memory. A tap that does not exist is outside every
// image.
__device__ __forceinline__ Bits tap_distances(const TapAxis (&axes)[AXES], uint32_t i,
                                              uint32_t channels) {
    Bits tap;
    uint32_t plane = 1, elements = 0;
#pragma unroll
    for (int a = AXES - 1; a >= 0; a--) {
        tap.words[a] = i % axes[a].taps * axes[a].step;
        i /= axes[a].taps;
        elements += tap.words[a] * plane;
        plane *= axes[a].range;
    }
    if (i >= channels) tap.words[0] = INT32_MIN / 2;
    tap.words[AXES] = elements + i * plane;
    return tap;
}

// A window of an image: the coordinates and the address of the element that tap 0 of channel 0
// reads. With padding, this element may lie outside the image; only elements inside are read.
template <class T> struct ImageWindow {
    uint32_t start[AXES];
    const T *first;

    // Computes the window at `position`, of the image whose first channel is `x`.
    __device__ __forceinline__ void move(const TapAxis (&axes)[AXES],
                                         const uint32_t (&position)[AXES], const T *x) {
        int32_t elements = 0;
#pragma unroll
        for (int a = 0; a < AXES; a++) {
            start[a] = position[a] * axes[a].stride + axes[a].origin;
            elements = elements * axes[a].range + start[a];
        }
        first = x + elements;
    }

    // Returns the element that `tap` reads, or 0 if the element is outside the image.
    __device__ __forceinline__ T element(const TapAxis (&axes)[AXES], const Bits &tap) const {
        bool inside = true;
        // A coordinate is unsigned: a negative one wraps around to a number beyond `range`.
#pragma unroll
        for (int a = 0; a < AXES; a++) inside &= start[a] + tap.words[a] < axes[a].range;
        return inside ? first[(int32_t)tap.words[AXES]] : narrow<T>(0);
    }
};

// Returns the number of elements of a plane of the image.
__device__ __forceinline__ uint32_t plane_len(const TapAxis (&axes)[AXES]) {
    uint32_t plane = 1;
#pragma unroll
    for (int a = 0; a < AXES; a++) plane *= axes[a].range;
    return plane;
}

// Loads the tiles of the im2col matrix: each thread loads, from one column of the tile, `HELD`
// successive elements along k.
template <class Shape, int EXTENT> struct Columns {
    using T = typename Shape::Element;
    static constexpr int DEPTH = Shape::DEPTH, HELD = EXTENT * DEPTH / Shape::THREADS;
    static constexpr bool along_k = true;

    const Product &op;
    ImageWindow<T> window;
    uint32_t k = 0; // first k of the next step
    Bits (*taps)[DEPTH]; // the taps of the next step, and of the step after it
    alignas(16) T held[HELD / VECTOR<T>][VECTOR<T>];

    __device__ __forceinline__ Columns(const Product &op, const T *x, uint32_t group,
                                       uint32_t first)
        : op(op) {
        __shared__ Bits shared[2][DEPTH];
        taps = shared;
        write_taps(0);
        uint32_t image = first + threadIdx.x % EXTENT, position[AXES];
#pragma unroll
        for (int a = AXES - 1; a >= 0; a--) {
            position[a] = image % op.axes[a].columns;
            image /= op.axes[a].columns;
        }
        size_t plane = plane_len(op.axes);
        window.move(op.axes, position,
                    x + ((size_t)image * op.groups + group) * op.channels * plane);
        // A column after the last image has no elements. Its window gets a start far outside the
        // image, so that each tap fails the test of its bounds and reads 0.
        if (image >= op.batch) window.start[0] = INT32_MIN / 2;
        __syncthreads();
    }

    // Writes the taps of the step that starts at `first`. The warps take turns, because a tap needs
    // divisions: one warp for all steps would delay the other warps.
    __device__ __forceinline__ void write_taps(uint32_t first) const {
        uint32_t step = first / DEPTH, lane = threadIdx.x % 32;
        if (threadIdx.x / 32 == step % (Shape::THREADS / 32) && lane < DEPTH)
            taps[step % 2][lane] = tap_distances(op.axes, first + lane, op.channels);
    }

    // Returns true, because `fetch` needs no bounds: taps beyond the last k do not exist.
    __device__ __forceinline__ bool is_whole() const { return true; }

    __device__ __forceinline__ void fetch(int) { fetch_whole(); }

    // Fetches the elements of the next step.
    __device__ __forceinline__ void fetch_whole() {
        const Bits *from = taps[k / DEPTH % 2] + threadIdx.x / EXTENT * HELD;
#pragma unroll
        for (int i = 0; i < HELD; i++)
            held[i / VECTOR<T>][i % VECTOR<T>] = window.element(op.axes, load_shared(from + i));
        k += DEPTH;
        write_taps(k);
    }

    template <class Panel> __device__ __forceinline__ void put(Panel &panel) const {
#pragma unroll
        for (int i = 0; i < HELD; i += VECTOR<T>)
            panel.put_run(threadIdx.x % EXTENT, threadIdx.x / EXTENT * HELD + i,
                          held[i / VECTOR<T>]);
    }
};

// y[image, plane, position] ← filters · columns + bias; each block computes one tile.
template <class Shape, class T>
__device__ __forceinline__ void convolve(const Product &op, const T *x, const T *filters,
                                         const T *bias, T *y) {
    uint32_t k = op.k, positions = op.positions, columns = op.batch * positions;
    ThreadPosition place(blockIdx.x, op.rows, columns, Shape::DOWN, Shape::ACROSS);
    uint32_t group = place.z;
    Matrix<Shape, Shape::DOWN> left(filters + (size_t)group * op.rows * k, k, true,
                                    is_aligned(filters, k, 16), place.row, op.rows, 0);
    Columns<Shape, Shape::ACROSS> right(op, x, group, place.column);
    multiply_tile<Shape>(left, right, 0, k, [&](int i, int j, auto &run) {
        constexpr int RUN = sizeof(run) / sizeof(run[0]);
        uint32_t r = place.row + i, c = place.column + j;
        if (r >= op.rows || c >= columns) return;
        uint32_t image = c / positions, position = c % positions, filter = group * op.rows + r;
        acc_t<T> shift = bias ? widen(bias[filter]) : 0;
#pragma unroll
        for (int l = 0; l < RUN; l++) run[l] += shift;
        size_t step = (size_t)op.groups * op.rows * positions;
        T *to = y + image * step + (size_t)filter * positions + position;
        if (positions % RUN == 0)
            return store_run(to, run, RUN, is_aligned(y, positions, RUN * sizeof(T)));
        // A run of adjacent columns of the GEMM's result may extend into the next image.
#pragma unroll
        for (int l = 0; l < RUN; l++) {
            if (c + l < columns) *to = narrow<T>(run[l]);
            to++;
            if (++position == positions) {
                position = 0;
                to += step - positions;
            }
        }
    });
}

// The GEMM that computes the gradient of the filters, `dy` times the transposed im2col matrix.
// Index k runs over the output positions of all images. The range of k is split into `splits`
// chunks, each with separate partial sums.
struct Gradient {
    TapAxis axes[AXES];
    uint32_t batch, groups, rows, channels;
    uint32_t splits, chunk;
};

// Index k, stored as the number of an image and an output position in that image; `advance` adds
// `DEPTH` to k.
template <int DEPTH> struct Position {
    uint32_t image, position, positions;

    __device__ __forceinline__ Position(uint32_t k, uint32_t positions)
        : image(k / positions), position(k % positions), positions(positions) {}

    __device__ __forceinline__ void advance() {
        for (position += DEPTH; position >= positions; position -= positions) image++;
    }
};

// Loads the tiles of the operand `dy`, whose rows are planes and whose index k is a position. In each
// step, a thread loads one position of every `LANES`-th plane.
template <class Shape, int EXTENT> struct Planes {
    using T = typename Shape::Element;
    static constexpr int DEPTH = Shape::DEPTH;
    static constexpr int LANES = Shape::THREADS / DEPTH, HELD = EXTENT / LANES;
    static constexpr bool along_k = true;

    const T *first;
    int extent;
    uint32_t planes; // planes per image
    Position<DEPTH> at;
    T held[HELD];

    __device__ __forceinline__ Planes(const Gradient &op, const T *dy, uint32_t positions,
                                      uint32_t group, uint32_t row, uint32_t k)
        : first(dy + (size_t)(group * op.rows + row) * positions),
          extent(op.rows - row < EXTENT ? op.rows - row : EXTENT), planes(op.groups * op.rows),
          at(k + threadIdx.x % DEPTH, positions) {}

    __device__ __forceinline__ bool is_whole() const { return extent == EXTENT; }

    __device__ __forceinline__ void fetch_whole() { fetch(DEPTH); }

    __device__ __forceinline__ void fetch(int left) {
        const T *from = first + (size_t)at.image * planes * at.positions + at.position;
        bool inside = threadIdx.x % DEPTH < left;
#pragma unroll
        for (int i = 0; i < HELD; i++) {
            int e = threadIdx.x / DEPTH + i * LANES;
            held[i] = inside && e < extent ? from[(size_t)e * at.positions] : narrow<T>(0);
        }
        at.advance();
    }

    template <class Panel> __device__ __forceinline__ void put(Panel &panel) const {
#pragma unroll
        for (int i = 0; i < HELD; i++)
            panel.put(threadIdx.x / DEPTH + i * LANES, threadIdx.x % DEPTH, held[i]);
    }
};

// Loads the tiles of the transposed im2col matrix: each thread loads, at one index k of a step, the
// elements of every `LANES`-th tap.
template <class Shape, int EXTENT> struct Rows {
    using T = typename Shape::Element;
    static constexpr int DEPTH = Shape::DEPTH;
    static constexpr int LANES = Shape::THREADS / DEPTH, HELD = EXTENT / LANES;
    static constexpr bool along_k = true;

    const Gradient &op;
    const T *x; // first channel of the group
    Position<DEPTH> at;
    const Bits *taps;
    T held[HELD];

    __device__ __forceinline__ Rows(const Gradient &op, const T *x, uint32_t positions,
                                    uint32_t group, uint32_t first, uint32_t k)
        : op(op), x(x + (size_t)group * op.channels * plane_len(op.axes)),
          at(k + threadIdx.x % DEPTH, positions) {
        __shared__ Bits shared[EXTENT];
        taps = shared;
        if (threadIdx.x < EXTENT)
            shared[threadIdx.x] = tap_distances(op.axes, first + threadIdx.x, op.channels);
        __syncthreads();
    }

    __device__ __forceinline__ bool is_whole() const { return true; }

    __device__ __forceinline__ void fetch_whole() { fetch(DEPTH); }

    __device__ __forceinline__ void fetch(int left) {
        uint32_t position[AXES], rest = at.position;
#pragma unroll
        for (int a = AXES - 1; a >= 0; a--) {
            position[a] = rest % op.axes[a].columns;
            rest /= op.axes[a].columns;
        }
        ImageWindow<T> window;
        size_t image = (size_t)at.image * op.groups * op.channels;
        window.move(op.axes, position, x + image * plane_len(op.axes));
        if (threadIdx.x % DEPTH >= left) window.start[0] = INT32_MIN / 2;
#pragma unroll
        for (int i = 0; i < HELD; i++)
            held[i] = window.element(op.axes,
                                     load_shared(taps + threadIdx.x / DEPTH + i * LANES));
        at.advance();
    }

    template <class Panel> __device__ __forceinline__ void put(Panel &panel) const {
#pragma unroll
        for (int i = 0; i < HELD; i++)
            panel.put(threadIdx.x / DEPTH + i * LANES, threadIdx.x % DEPTH, held[i]);
    }
};

// parts[split, filter] ← dy · columnsᵀ, summed over one chunk of the positions of all images.
template <class Shape, class T>
__device__ __forceinline__ void convolve_filters(const Gradient &op, const T *x, const T *dy,
                                                 acc_t<T> *parts) {
    uint32_t positions = 1, columns = op.channels;
#pragma unroll
    for (int a = 0; a < AXES; a++) {
        positions *= op.axes[a].columns;
        columns *= op.axes[a].taps;
    }
    ThreadPosition place(blockIdx.x, op.rows, columns, Shape::DOWN, Shape::ACROSS);
    uint32_t group = place.z % op.groups, all = op.batch * positions;
    uint32_t k = place.z / op.groups * op.chunk, k_end = all - k < op.chunk ? all : k + op.chunk;
    Planes<Shape, Shape::DOWN> left(op, dy, positions, group, place.row, k);
    Rows<Shape, Shape::ACROSS> right(op, x, positions, group, place.column, k);
    multiply_tile<Shape>(left, right, k, k_end, [&](int i, int j, auto &run) {
        uint32_t r = place.row + i, c = place.column + j;
        if (r >= op.rows || c >= columns) return;
        store_run(parts + ((size_t)place.z * op.rows + r) * columns + c, run, columns - c,
                  is_aligned(parts, columns, sizeof(run)));
    });
}

// dfilters ← dfilters + Σ parts, summed over all chunks of k.
template <class T>
__device__ void add_filter_parts(size_t n, size_t splits, const acc_t<T> *parts, T *dfilters) {
    EACH(i, n) {
        acc_t<T> sum = 0;
#pragma unroll 4
        for (size_t split = 0; split < splits; split++) sum += parts[split * n + i];
        dfilters[i] = narrow<T>(widen(dfilters[i]) + sum);
    }
}

// transposed[group, channel, output, tap] ← filters[group, output, channel, tap]
template <class T>
__device__ void transpose_filters(size_t n, size_t outputs, size_t channels, size_t taps,
                                  const T *filters, T *transposed) {
    EACH(i, n) {
        size_t tap = i % taps, o = i / taps % outputs, c = i / (taps * outputs) % channels;
        size_t group = i / (taps * outputs * channels);
        transposed[i] = filters[((group * outputs + o) * channels + c) * taps + tap];
    }
}

// Depthwise convolution, computed directly instead of by a GEMM. Each channel of the input has
// `outputs` filters.
struct Depthwise {
    Window window;
    uint64_t batch, channels, outputs;
};

template <class T>
__device__ void depthwise(const Depthwise &op, const T *x, const T *filters, const T *bias, T *y) {
    size_t plane = op.window.plane(), taps = op.window.taps();
    EACH(i, op.batch * op.channels * op.outputs * op.window.positions()) {
        size_t at = i, place;
        int32_t position[AXES];
        COORDINATES(at, op.window, output, position)
        size_t output = at % (op.channels * op.outputs);
        const T *from = x + at / op.outputs * plane, *filter = filters + output * taps;
        acc_t<T> sum = bias ? widen(bias[output]) : 0;
        Taps tap;
        for (size_t t = 0; t < taps; t++, tap.next(op.window))
            if (seen(op.window, position, tap, place)) sum += widen(from[place]) * widen(filter[t]);
        y[i] = narrow<T>(sum);
    }
}

template <class T>
__device__ void depthwise_input(const Depthwise &op, const T *filters, const T *dy, T *dx) {
    size_t positions = op.window.positions(), taps = op.window.taps();
    EACH(i, op.batch * op.channels * op.window.plane()) {
        size_t at = i, place;
        int32_t pixel[AXES];
        COORDINATES(at, op.window, input, pixel)
        const T *from = dy + at * op.outputs * positions;
        const T *filter = filters + at % op.channels * op.outputs * taps;
        acc_t<T> sum = 0;
        Taps tap;
        for (size_t t = 0; t < taps; t++, tap.next(op.window)) {
            if (!seeing(op.window, pixel, tap, place)) continue;
            for (size_t o = 0; o < op.outputs; o++)
                sum += widen(from[o * positions + place]) * widen(filter[o * taps + t]);
        }
        dx[i] = narrow<T>(sum);
    }
}

// Each warp computes the gradient of one filter element, as a sum over the output positions of all
// images.
template <class T>
__device__ void depthwise_filters(const Depthwise &op, const T *x, const T *dy, T *dfilters) {
    size_t plane = op.window.plane(), positions = op.window.positions(), taps = op.window.taps();
    EACH(i, op.channels * op.outputs * taps * 32) {
        size_t output = i / 32 / taps, at = i / 32 % taps, place;
        Taps tap;
        COORDINATES(at, op.window, kernel, tap.at)
        acc_t<T> sum = 0;
        for (size_t k = i % 32; k < op.batch * positions; k += 32) {
            size_t image = k, position_at = k % positions;
            int32_t position[AXES];
            COORDINATES(image, op.window, output, position)
            if (!seen(op.window, position, tap, place)) continue;
            const T *from = x + (image * op.channels + output / op.outputs) * plane;
            size_t result = (image * op.channels * op.outputs + output) * positions + position_at;
            sum += widen(from[place]) * widen(dy[result]);
        }
        for (int distance = 16; distance > 0; distance /= 2)
            sum += __shfl_xor_sync(0xffffffffu, sum, distance);
        if (i % 32 == 0) dfilters[i / 32] = narrow<T>(widen(dfilters[i / 32]) + sum);
    }
}

#define CONVOLVE(name, Shape, dtype, T)                                                        \
    KERNEL TILE_BOUNDS(Shapes<T>::Shape) convolve_##name##_##dtype(                            \
        Product op, const T *x, const T *filters, const T *bias, T *y) {                       \
        convolve<Shapes<T>::Shape>(op, x, filters, bias, y);                                   \
    }                                                                                          \
    KERNEL TILE_BOUNDS(Shapes<T>::Shape) convolve_filters_##name##_##dtype(                    \
        Gradient op, const T *x, const T *dy, acc_t<T> *parts) {                               \
        convolve_filters<Shapes<T>::Shape>(op, x, dy, parts);                                  \
    }
EACH_SHAPE(CONVOLVE)

#define CONVOLUTION(dtype, T)                                                                  \
    KERNEL add_filter_parts_##dtype(size_t n, size_t splits, const acc_t<T> *parts,            \
                                    T *dfilters) {                                             \
        add_filter_parts(n, splits, parts, dfilters);                                          \
    }                                                                                          \
    KERNEL transpose_filters_##dtype(size_t n, size_t outputs, size_t channels, size_t taps,   \
                                     const T *filters, T *transposed) {                        \
        transpose_filters(n, outputs, channels, taps, filters, transposed);                    \
    }                                                                                          \
    KERNEL depthwise_##dtype(Depthwise op, const T *x, const T *filters, const T *bias,        \
                             T *y) {                                                           \
        depthwise(op, x, filters, bias, y);                                                    \
    }                                                                                          \
    KERNEL depthwise_input_##dtype(Depthwise op, const T *filters, const T *dy, T *dx) {       \
        depthwise_input(op, filters, dy, dx);                                                  \
    }                                                                                          \
    KERNEL depthwise_filters_##dtype(Depthwise op, const T *x, const T *dy, T *dfilters) {     \
        depthwise_filters(op, x, dy, dfilters);                                                \
    }
EACH_ELEMENT(CONVOLUTION)
