// Assignment of threads to rows and columns, so that short rows leave no thread idle.
#pragma once

#include "element.cuh"

// First column and first row that a thread processes, and the steps to the thread's next column and
// row. `span` threads of a block share a row. `blockIdx.x` is the block's index along the columns,
// and `blockIdx.y` is the block's index along the rows.
struct ThreadPosition {
    size_t column, columns, row, rows;

    __device__ __forceinline__ explicit ThreadPosition(unsigned span) {
        const unsigned teams = blockDim.x / span, team = threadIdx.x / span;
        column = (size_t)blockIdx.x * span + threadIdx.x % span;
        columns = (size_t)gridDim.x * span;
        // If the block ends with an incomplete team of fewer than `span` threads, these threads
        // process no row.
        row = team < teams ? (size_t)blockIdx.y * teams + team : SIZE_MAX;
        rows = (size_t)gridDim.y * teams;
    }
};

// `EACH_COLUMN` executes the statement that follows once for each column below `n` that this thread
// processes, and `EACH_ROW` likewise for rows. `i` is the column or the row.
#define EACH_COLUMN(i, place, n) for (size_t i = place.column; i < (n); i += place.columns)
#define EACH_ROW(i, place, n) for (size_t i = place.row; i < (n); i += place.rows)
