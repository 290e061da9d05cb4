// Loops over all threads of a grid: each thread takes every so-many-th index, whatever the grid's size.
#ifndef GRIDSTRIDE_INDEX_H
#define GRIDSTRIDE_INDEX_H

namespace gridstride {

// This thread's number in the grid along x, and how many threads the grid has there.
__device__ inline long long global_index() { return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline long long global_size() { return static_cast<long long>(gridDim.x) * blockDim.x; }

__device__ inline long long global_index_y() { return static_cast<long long>(blockIdx.y) * blockDim.y + threadIdx.y; }
__device__ inline long long global_size_y() { return static_cast<long long>(gridDim.y) * blockDim.y; }

}

// GRIDSTRIDE_FOR(i, n) y[i] = a * x[i];
#define GRIDSTRIDE_FOR(index, count) \
    for (long long index = gridstride::global_index(), __gridstride_end = (count), \
                   __gridstride_step = gridstride::global_size(); \
         index < __gridstride_end; index += __gridstride_step)

// GRIDSTRIDE_FOR_2D(row, column, rows, columns): rows along y, columns along x.
#define GRIDSTRIDE_FOR_2D(row, column, rows, columns) \
    for (long long row = gridstride::global_index_y(), __gridstride_rows = (rows), \
                   __gridstride_row_step = gridstride::global_size_y(); \
         row < __gridstride_rows; row += __gridstride_row_step) \
        GRIDSTRIDE_FOR(column, columns)

#endif
