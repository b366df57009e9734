// Threads dealt to rows and columns such that short rows leave none idle.
#pragma once

#include "element.cuh"

// `span` threads of a block lie side by side in a row, the block's others in the rows that follow.
// Blocks lie along the columns by their x, along the rows by their y.
struct Place {
    size_t column, columns, row, rows;

    __device__ __forceinline__ explicit Place(unsigned span) {
        const unsigned teams = blockDim.x / span, team = threadIdx.x / span;
        column = (size_t)blockIdx.x * span + threadIdx.x % span;
        columns = (size_t)gridDim.x * span;
        // Threads that make up no whole team have no row.
        row = team < teams ? (size_t)blockIdx.y * teams + team : SIZE_MAX;
        rows = (size_t)gridDim.y * teams;
    }
};

// The statement for each of `n` columns of this thread's, or of `n` rows.
#define EACH_COLUMN(i, place, n) for (size_t i = place.column; i < (n); i += place.columns)
#define EACH_ROW(i, place, n) for (size_t i = place.row; i < (n); i += place.rows)
