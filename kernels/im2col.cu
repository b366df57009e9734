// im2col and col2im of a batch of images, whose im2col matrices are stored one after the other.
#include "window.cuh"

// columns[plane, tap, position] ← the element that the tap reads at the position, or 0 in the
// padding. Each thread handles one position of a plane, so that neighbouring threads write
// neighbouring elements.
template <class T>
__device__ void im2col(const Window &window, size_t planes, const T *x, T *columns) {
    size_t plane = window.plane(), positions = window.positions(), taps = window.taps();
    EACH(i, planes * positions) {
        size_t at = i, place;
        int32_t position[AXES];
        COORDINATES(at, window, output, position)
        const T *from = x + at * plane;
        T *to = columns + at * taps * positions + i % positions;
        Taps tap;
        for (size_t t = 0; t < taps; t++, tap.next(window))
            to[t * positions] = seen(window, position, tap, place) ? from[place] : narrow<T>(0);
    }
}

// x[plane, pixel] ← the sum of columns[plane, tap, position] over all taps and positions that read
// the pixel.
template <class T>
__device__ void col2im(const Window &window, size_t planes, const T *columns, T *x) {
    size_t positions = window.positions(), taps = window.taps();
    EACH(i, planes * window.plane()) {
        size_t at = i, place;
        int32_t pixel[AXES];
        COORDINATES(at, window, input, pixel)
        const T *from = columns + at * taps * positions;
        acc_t<T> sum = 0;
        Taps tap;
        for (size_t t = 0; t < taps; t++, tap.next(window))
            if (seeing(window, pixel, tap, place)) sum += widen(from[t * positions + place]);
        x[i] = narrow<T>(sum);
    }
}

// Like `col2im`, but the columns have the accumulator type and are ordered by group, then by image.
template <class T>
__device__ void col2im_images(const Window &window, size_t batch, size_t groups, size_t channels,
                            const acc_t<T> *columns, T *x) {
    size_t positions = window.positions(), taps = window.taps();
    EACH(i, batch * groups * channels * window.plane()) {
        size_t at = i, place;
        int32_t pixel[AXES];
        COORDINATES(at, window, input, pixel)
        size_t image = at / channels / groups, group = at / channels % groups;
        size_t plane = (group * batch + image) * channels + at % channels;
        const acc_t<T> *from = columns + plane * taps * positions;
        acc_t<T> sum = 0;
        Taps tap;
        for (size_t t = 0; t < taps; t++, tap.next(window))
            if (seeing(window, pixel, tap, place)) sum += from[t * positions + place];
        x[i] = narrow<T>(sum);
    }
}

#define WINDOWS(dtype, T)                                                                      \
    KERNEL im2col_##dtype(Window window, size_t planes, const T *x, T *columns) {              \
        im2col(window, planes, x, columns);                                                    \
    }                                                                                          \
    KERNEL col2im_##dtype(Window window, size_t planes, const T *columns, T *x) {              \
        col2im(window, planes, columns, x);                                                    \
    }                                                                                          \
    KERNEL col2im_images_##dtype(Window window, size_t batch, size_t groups, size_t channels,    \
                               const acc_t<T> *columns, T *x) {                                \
        col2im_images(window, batch, groups, channels, columns, x);                              \
    }
EACH_ELEMENT(WINDOWS)
