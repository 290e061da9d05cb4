// The flat tier: loops over the threads of neighboring blocks, for kernels whose threads never wait.
//
// The source pass turns `__global__ void f(float* x, int n) {...}` into two functions behind it: the body for one
// thread, in which indices come from its first parameters, and what is done with a row of threads:
//
//     static inline void gridstride_lane_f(const gridstride_merged_row& here, int x, long global, long offset, float* x, int n);
//     static bool gridstride_flat_f(gridstride_merged_row here, gridstride_phase phase, float* x, int n);
#ifndef GRIDSTRIDE_CPU_FLAT_H
#define GRIDSTRIDE_CPU_FLAT_H

#include "dim3.h"

// A row is first checked, which is false if an index may not fit its type, and then run.
enum gridstride_phase : unsigned { GRIDSTRIDE_CHECK = 0, GRIDSTRIDE_RUN = 1 };

// Threads with the same y and z, and what they have in common.
struct gridstride_row {
    dim3 __block_shape, __grid_shape;
    uint3 __block_index;  // of the first block, where rows are merged
    unsigned __thread_y, __thread_z;
    int __first_x;        // index of the first block's thread 0 in the whole grid
    int __begin, __end;   // the threads
};

// Of several blocks: threads are numbered in the whole grid.
struct gridstride_merged_row : gridstride_row {
    static constexpr unsigned __is_merged = 1;
    __attribute__((always_inline)) long __global(int __x) const { return __x; }
};

// Of one block: threads are numbered within.
struct gridstride_block_row : gridstride_row {
    static constexpr unsigned __is_merged = 0;
    __attribute__((always_inline)) long __global(int __x) const { return static_cast<long>(__first_x) + __x; }
};

// ---- loops inside kernels that strips of threads make together ----

constexpr int gridstride_strip_width = 32;

// The bytes that elements lie in.
struct gridstride_range {
    unsigned long __begin = ~0ul, __end = 0;

    template <class __type>
    __attribute__((always_inline)) void __add(const volatile __type* __element) {
        const unsigned long __at = reinterpret_cast<unsigned long>(__element);
        if (__at < __begin) __begin = __at;
        if (__at + sizeof(__type) > __end) __end = __at + sizeof(__type);
    }
    __attribute__((always_inline)) bool __meets(const gridstride_range& __other) const {
        return __begin < __other.__end && __other.__begin < __end;
    }
};

// ---- arithmetic that notices when a number does not fit its type ----

// Clears a variable of the function that it is used in.
#define GRIDSTRIDE_EXACTLY(builtin, type, left, right) \
    ({ \
        type __result; \
        gridstride_exact &= !builtin(left, right, &__result); \
        __result; \
    })
#define GRIDSTRIDE_EXACT_OPERATION(builtin, symbol, left, right) \
    ({ \
        const auto __left = left; \
        const auto __right = right; \
        GRIDSTRIDE_EXACTLY(builtin, decltype(__left symbol __right), __left, __right); \
    })
#define GRIDSTRIDE_SUM(left, right) GRIDSTRIDE_EXACT_OPERATION(__builtin_add_overflow, +, left, right)
#define GRIDSTRIDE_DIFFERENCE(left, right) GRIDSTRIDE_EXACT_OPERATION(__builtin_sub_overflow, -, left, right)
#define GRIDSTRIDE_PRODUCT(left, right) GRIDSTRIDE_EXACT_OPERATION(__builtin_mul_overflow, *, left, right)
#define GRIDSTRIDE_CONVERTED(type, value) GRIDSTRIDE_EXACTLY(__builtin_add_overflow, type, value, 0)

// Both sides of a comparison fit the type that they are compared in, and long.
#define GRIDSTRIDE_COMPARED(left, right) \
    ({ \
        const auto __left = left; \
        const auto __right = right; \
        typedef decltype(__left + __right) __common; \
        GRIDSTRIDE_CONVERTED(__common, __left), GRIDSTRIDE_CONVERTED(__common, __right); \
        GRIDSTRIDE_CONVERTED(long, __left), GRIDSTRIDE_CONVERTED(long, __right); \
    })

#endif
