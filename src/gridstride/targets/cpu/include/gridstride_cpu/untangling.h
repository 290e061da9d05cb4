// Interleaved columns, as those of an array whose short rows lie one after another, are brought apart: squares of a
// vector's elements are transposed in registers.
#ifndef GRIDSTRIDE_CPU_UNTANGLING_H
#define GRIDSTRIDE_CPU_UNTANGLING_H

#include <gridstride_cpu/gathering.h>
#include <gridstride_cpu/squares.h>

namespace gridstride {

// Bring `length` columns apart, of whole squares; return how many elements of each that were.
template <int __size, int __to_stride>
GRIDSTRIDE_INLINED int untangle_squares(char* __to, const char* __from, long long __step, int __count) {
    constexpr int __length = square<__size>::side;
    int __done = 0;
    for (; __done + __length <= __count; __done += __length) {
        typename square<__size>::vector __rows[__length];
        const char* __at = __from;
#pragma GCC unroll 16
        for (int __k = 0; __k < __length; ++__k, __at += __step) __builtin_memcpy(&__rows[__k], __at, 16);
        __from = __at;
        turned<__size>::run(__rows);
#pragma GCC unroll 16
        for (int __k = 0; __k < __length; ++__k) __builtin_memcpy(__to + __k * __to_stride, &__rows[__k], 16);
        __to += 16;
    }
    return __done;
}

// Bring columns to where their elements are consecutive, one by one. It stands apart, so that it is compiled once.
template <class __stored>
GRIDSTRIDE_APART void gather_columns(char* __to, long long __to_stride, const char* __from,
                                                     long long __step, long long __stride, int __count, int __columns) {
    for (int __column = 0; __column < __columns; ++__column)
        gather(reinterpret_cast<__stored*>(__to + __column * __to_stride), __from + __column * __stride, __step, __count);
}

// Bring `columns` columns of `count` elements to where these are consecutive: elements are `step` bytes apart, columns
// `stride` bytes. There is room for `rows` columns. It stands apart, since inlining it takes a compiler long.
template <class __stored, int __to_stride, int __rows, int __size = int(sizeof(__stored)),
          bool __is_for_squares = (square<__size>::side > 1 && __rows >= square<__size>::side)>
struct untangling {
    static GRIDSTRIDE_APART void run(char* __to, const char* __from, long long __step, long long __stride, int __count,
                                       int __columns) {
        gather_columns<__stored>(__to, __to_stride, __from, __step, __stride, __count, __columns);
    }
};
template <class __stored, int __to_stride, int __rows, int __size>
struct untangling<__stored, __to_stride, __rows, __size, true> {
    static constexpr int length = square<__size>::side, stretch_bytes = 2048;

    static GRIDSTRIDE_APART void run(char* __to, const char* __from, long long __step, long long __stride, int __count,
                                       int __columns) {
        int __done = 0;
        if (__stride == __size && __step >= __columns * __size && __step > 2 * __size) {
            // Squares may reach into the rows that follow, of which the last has none.
            const int __beyond = __columns * __size < 16 ? 16 - __columns * __size : 0;
            const int __reach = int((__beyond + __step - 1) / __step);
            // A short stretch of memory at a time: what lies behind it is fetched ahead.
            const int __some = __step < stretch_bytes / length ? int(stretch_bytes / __step) / length * length : length;
            for (int __last = __count - __reach; __done + length <= __last;) {
                const int __more = __last - __done < __some ? __last - __done : __some;
                int __squares = 0;
                for (int __column = 0; __column < __columns; __column += length) {
                    // The last square may begin with columns of the one before.
                    const int __first = __column == 0 || __column + length <= __columns ? __column : __columns - length;
                    __squares = untangle_squares<__size, __to_stride>(
                        __to + __first * __to_stride + __done * __size, __from + __done * __step + __first * __size, __step, __more);
                }
                __done += __squares;
            }
        }
        if (__done < __count)
            gather_columns<__stored>(__to + __done * __size, __to_stride, __from + __done * __step, __step, __stride,
                                     __count - __done, __columns);
    }
};

}

#endif
