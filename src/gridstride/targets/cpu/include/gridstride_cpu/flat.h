// The flat tier: loops over the threads of neighboring blocks, for kernels whose threads never wait.
//
// The source pass turns `__global__ void f(float* x, int n) {...}` into two functions behind it: the body for one
// thread, in which indices come from its first two parameters, and the loops around it:
//
//     static inline void gridstride_lane_f(const gridstride_row& here, const int x, float* x, int n) {...}
//     static void gridstride_flat_f(gridstride_block* portion, float* x, int n) {...}
//
// A portion is a number of neighboring blocks along x; a row is all of its threads with the same y and z.
#ifndef GRIDSTRIDE_CPU_FLAT_H
#define GRIDSTRIDE_CPU_FLAT_H

#include "execution.h"

// What the threads of a row have in common. `x` of the block index is the first block's where rows are merged.
struct gridstride_row {
    dim3 __block_shape, __grid_shape;
    uint3 __block_index;
    unsigned __thread_y, __thread_z;
    int __first_x;  // index of the first block's thread 0 in the whole grid
};

// Goes through the rows of a portion. Merged rows reach over all blocks, and threads are numbered in the whole
// grid; otherwise every block has rows of its own, and threads are numbered within.
template <bool __is_merged>
struct gridstride_rows {
    gridstride_row __row;
    unsigned __index, __count;
    int __row_begin, __row_end;  // the row's threads
    int __begin, __end;          // those that the guard lets through

    explicit gridstride_rows(const gridstride_block* __portion) {
        __row = {__portion->block_shape, __portion->grid_shape, __portion->block_index, 0, 0, 0};
        __row.__first_x = static_cast<int>(__row.__block_index.x * __row.__block_shape.x);
        const unsigned __width = __row.__block_shape.x;
        __row_begin = __begin = __is_merged ? __row.__first_x : 0;
        __row_end = __end = __row_begin + static_cast<int>(__is_merged ? __width * __portion->portion_blocks : __width);
        __count = __row.__block_shape.y * __row.__block_shape.z * (__is_merged ? 1 : __portion->portion_blocks);
        __index = 0;
    }
    static long __global(const gridstride_row& __at, int __x) { return __is_merged ? __x : static_cast<long>(__at.__first_x) + __x; }

    bool __has_row() const { return __index < __count; }
    void __advance() {
        ++__index;
        if (++__row.__thread_y < __row.__block_shape.y) return;
        __row.__thread_y = 0;
        if (++__row.__thread_z < __row.__block_shape.z) return;
        __row.__thread_z = 0;
        ++__row.__block_index.x;
        __row.__first_x += static_cast<int>(__row.__block_shape.x);
    }

    // The threads that are active lie together, since all comparisons of the guard are linear in the index.
    template <class __active>
    __attribute__((always_inline)) void __find_active(__active __is_active) {
        __begin = __row_begin;
        __end = __row_end;
        while (__begin < __end && !__is_active(__begin)) ++__begin;
        while (__end > __begin && !__is_active(__end - 1)) --__end;
    }

    // False if an index does not fit its type somewhere, so that it is not known what lies between.
    template <class __guards, class __active, class __indices, class __rounds>
    __attribute__((always_inline)) bool __fits(
        __guards __guards_fit, __active __is_active, __indices __indices_fit, const __rounds& __all) {
        if (!__all.__are_known || !__guards_fit(__row_begin) || !__guards_fit(__row_end - 1)) return false;
        __find_active(__is_active);
        if (__begin == __end) return true;
        const long __last = __all.__last_offset(__all.__start(__row, __begin));
        return __indices_fit(__begin, 0) && __indices_fit(__end - 1, 0) && __indices_fit(__begin, __last) &&
               __indices_fit(__end - 1, __last);
    }
};

// ---- numbers that notice when they do not fit their type ----

template <class __type>
struct gridstride_number {
    long __value;
    bool& __is_exact;

    gridstride_number(long __number, bool& __exact) : __value(__number), __is_exact(__exact) {
        const bool __is_wide_unsigned = static_cast<__type>(-1) > static_cast<__type>(0) && sizeof(__type) == sizeof(long);
        if (static_cast<long>(static_cast<__type>(__number)) != __number || (__is_wide_unsigned && __number < 0)) __is_exact = false;
    }
    template <class __other>
    gridstride_number<__other> __as() const { return {__value, __is_exact}; }

    template <class __other>
    void __meets(const gridstride_number<__other>& __right) const {
        typedef decltype(__type() + __other()) __common;
        __as<__common>();
        __right.template __as<__common>();
    }
};

template <class __type>
GRIDSTRIDE_INLINE gridstride_number<__type> gridstride_number_of(__type __value, bool& __exact) {
    return {static_cast<long>(__value), __exact};
}

#define GRIDSTRIDE_NUMBER_OPERATOR(symbol, overflows) \
    template <class __a, class __b> \
    GRIDSTRIDE_INLINE gridstride_number<decltype(__a() symbol __b())> operator symbol( \
        const gridstride_number<__a>& __left, const gridstride_number<__b>& __right) { \
        long __result; \
        __left.__meets(__right); \
        if (overflows(__left.__value, __right.__value, &__result)) __left.__is_exact = false; \
        return {__result, __left.__is_exact}; \
    }
GRIDSTRIDE_NUMBER_OPERATOR(+, __builtin_saddl_overflow)
GRIDSTRIDE_NUMBER_OPERATOR(-, __builtin_ssubl_overflow)
GRIDSTRIDE_NUMBER_OPERATOR(*, __builtin_smull_overflow)
#undef GRIDSTRIDE_NUMBER_OPERATOR

// ---- the loop ----

// The threads run in order, as far as anyone can tell: the compiler makes vectors of them where it proves, perhaps
// by looking at the addresses first, that it makes no difference.
template <class __body>
GRIDSTRIDE_INLINE void gridstride_for_lanes(const int __begin, const int __end, const long __offset, const __body& __lane) {
    for (int __x = __begin; __x < __end; ++__x) __lane(__x, __offset);
}

// A kernel without a loop around its body.
struct gridstride_one_round {
    static constexpr bool __are_known = true;
    static long __start(const gridstride_row&, int) { return 0; }
    static long __last_offset(long) { return 0; }
};
template <class __rows, class __body>
GRIDSTRIDE_INLINE void gridstride_run_rounds(const __rows& __row, const gridstride_one_round&, const __body& __lane) {
    gridstride_for_lanes(__row.__begin, __row.__end, 0, __lane);
}

// A loop around the body in which every thread begins at its index and goes on in equal steps: all threads of the row
// make their first step, then all their second one, so that neighbors in memory come one after the other.
template <bool __is_merged, bool __is_global>
struct gridstride_stride_rounds {
    long __bound, __step;
    bool __are_known;  // and their sum fits the type of the loop's variable

    gridstride_stride_rounds(long __end, long __stride, bool __exact)
        : __bound(__end), __step(__stride), __are_known(__exact && __stride > 0) {}
    static long __start(const gridstride_row& __row, int __x) {
        return __is_global ? gridstride_rows<__is_merged>::__global(__row, __x) : __x;
    }
    long __last_offset(long __first) const { return __first < __bound ? (__bound - 1 - __first) / __step * __step : 0; }
};
template <bool __is_merged, bool __is_global, class __body>
GRIDSTRIDE_INLINE void gridstride_run_rounds(
    const gridstride_rows<__is_merged>& __row, const gridstride_stride_rounds<__is_merged, __is_global>& __all, const __body& __lane) {
    if (__row.__begin == __row.__end) return;
    const long __first = __all.__start(__row.__row, __row.__begin), __count = __row.__end - __row.__begin;
    for (long __offset = 0; __first + __offset < __all.__bound; __offset += __all.__step) {
        const long __left = __all.__bound - __first - __offset;
        gridstride_for_lanes(
            __row.__begin, __row.__begin + static_cast<int>(__left < __count ? __left : __count), __offset, __lane);
    }
}

#endif
