// Squares of elements that are turned in registers: what lies in rows comes to lie in columns.
#ifndef GRIDSTRIDE_CPU_SQUARES_H
#define GRIDSTRIDE_CPU_SQUARES_H

#include <gridstride_cpu/inlining.h>

namespace gridstride {

#if defined(__clang__)
#define GRIDSTRIDE_HALVES(...) __builtin_shufflevector(__first, __second, __VA_ARGS__)
#else
#define GRIDSTRIDE_HALVES(...) __builtin_shuffle(__first, __second, vector{__VA_ARGS__})
#endif

// Vectors of as many elements as the square has rows, by the size of an element: their lower and upper halves merged.
template <int __size>
struct square { static constexpr int side = 1; };
template <>
struct square<1> {
    typedef signed char vector __attribute__((vector_size(16)));
    static constexpr int side = 16;
    GRIDSTRIDE_INLINED static vector low(vector __first, vector __second) {
        return GRIDSTRIDE_HALVES(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    }
    GRIDSTRIDE_INLINED static vector high(vector __first, vector __second) {
        return GRIDSTRIDE_HALVES(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    }
};
template <>
struct square<2> {
    typedef short vector __attribute__((vector_size(16)));
    static constexpr int side = 8;
    GRIDSTRIDE_INLINED static vector low(vector __first, vector __second) {
        return GRIDSTRIDE_HALVES(0, 8, 1, 9, 2, 10, 3, 11);
    }
    GRIDSTRIDE_INLINED static vector high(vector __first, vector __second) {
        return GRIDSTRIDE_HALVES(4, 12, 5, 13, 6, 14, 7, 15);
    }
};
template <>
struct square<4> {
    typedef int vector __attribute__((vector_size(16)));
    static constexpr int side = 4;
    GRIDSTRIDE_INLINED static vector low(vector __first, vector __second) { return GRIDSTRIDE_HALVES(0, 4, 1, 5); }
    GRIDSTRIDE_INLINED static vector high(vector __first, vector __second) { return GRIDSTRIDE_HALVES(2, 6, 3, 7); }
};
template <>
struct square<8> {
    typedef long long vector __attribute__((vector_size(16)));
    static constexpr int side = 2;
    GRIDSTRIDE_INLINED static vector low(vector __first, vector __second) { return GRIDSTRIDE_HALVES(0, 2); }
    GRIDSTRIDE_INLINED static vector high(vector __first, vector __second) { return GRIDSTRIDE_HALVES(1, 3); }
};

// Merging each row of the upper half with its counterpart of the lower turns a square after log2(side) times.
template <int __size, int __times = square<__size>::side>
struct turned {
    static constexpr int side = square<__size>::side;
    typedef typename square<__size>::vector vector;
    GRIDSTRIDE_INLINED static void run(vector (&__rows)[side]) {
        vector __merged[side];
#pragma GCC unroll 16
        for (int __k = 0; __k < side / 2; ++__k) {
            __merged[2 * __k] = square<__size>::low(__rows[__k], __rows[__k + side / 2]);
            __merged[2 * __k + 1] = square<__size>::high(__rows[__k], __rows[__k + side / 2]);
        }
        turned<__size, __times / 2>::run(__merged);
#pragma GCC unroll 16
        for (int __k = 0; __k < side; ++__k) __rows[__k] = __merged[__k];
    }
};
template <int __size>
struct turned<__size, 1> {
    GRIDSTRIDE_INLINED static void run(typename square<__size>::vector (&)[square<__size>::side]) {}
};

// A tile's operand that lies along its columns, brought into rows: element (x, y) of the tile from
// `from + offsets[x] + y * size` to `to + y * pitch + x * size`. A row of the result may be followed by 16 bytes of
// others, so `to` has that much room behind it.
// How many columns are fetched before they are turned.
constexpr int columns_ahead(int __size) { return __size < 4 ? 64 / __size : 16; }

template <int __size, bool __has_squares = (square<__size>::side > 1)>
struct turning {
    static GRIDSTRIDE_APART void run(char* __to, long long __pitch, const char* __from, const long long* __offsets,
                                     int __width, int __height, int) {
        for (int __y = 0; __y < __height; ++__y)
            for (int __x = 0; __x < __width; ++__x)
                __builtin_memcpy(__to + __y * __pitch + __x * __size, __from + __offsets[__x] + (long long)__y * __size, __size);
    }
};
template <int __size>
struct turning<__size, true> {
    static constexpr int side = square<__size>::side, steps_of_line = 64 / (side * __size);

    // The columns from `x` on; past the last one it comes again.
    static GRIDSTRIDE_INLINED void turn_columns(char* __to, long long __pitch, const char* __from,
                                                const long long* __offsets, int __x, int __width, int __height,
                                                int __ahead) {
        const int __bytes = __height * __size;
        const bool __is_short = __bytes < 256;  // so that all of it is fetched at once
        const char *__column[side], *__later[side];
        for (int __k = 0; __k < side; ++__k) {
            const int __place = __x + __k < __width ? __x + __k : __width - 1;
            __column[__k] = __from + __offsets[__place];
            __later[__k] = __from + __offsets[__place + __ahead];
            for (int __at = 0; __is_short && __at < __bytes; __at += 64) __builtin_prefetch(__later[__k] + __at);
            __builtin_prefetch(__later[__k] + __bytes - 1);
        }
        for (int __y = 0; __y < __height; __y += side) {
            // A line of each column by turns.
            for (int __k = __is_short ? side : __y / side % steps_of_line; __k < side; __k += steps_of_line)
                __builtin_prefetch(__later[__k] + __y * __size / 64 * 64);
            // The last square may begin with rows of the one before.
            const int __first = __y + side <= __height ? __y : __height - side;
            typename square<__size>::vector __rows[side];
#pragma GCC unroll 16
            for (int __k = 0; __k < side; ++__k) __builtin_memcpy(&__rows[__k], __column[__k] + __first * __size, 16);
            turned<__size>::run(__rows);
            char* const __corner = __to + __first * __pitch + __x * __size;
#pragma GCC unroll 16
            for (int __k = 0; __k < side; ++__k) __builtin_memcpy(__corner + __k * __pitch, &__rows[__k], 16);
        }
    }
    static GRIDSTRIDE_APART void run(char* __to, long long __pitch, const char* __from, const long long* __offsets,
                                     int __width, int __height, int __ahead) {
        if (__height < side) return turning<__size, false>::run(__to, __pitch, __from, __offsets, __width, __height, 0);
        for (int __x = 0; __x < __width; __x += side) {
            const bool __is_last = __x + side > __width && __width >= side;
            turn_columns(__to, __pitch, __from, __offsets, __is_last ? __width - side : __x, __width, __height, __ahead);
        }
    }
};

}

#endif
