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

}

#endif
