// Tiles of operands that lie along columns: these are brought into rows by squares that are turned in registers, and
// results back into columns.
#ifndef GRIDSTRIDE_CPU_TURNING_H
#define GRIDSTRIDE_CPU_TURNING_H

#include <gridstride_cpu/gathering.h>
#include <gridstride_cpu/shares.h>
#include <gridstride_cpu/squares.h>

namespace gridstride {

constexpr int square_bytes = 16;  // of each row of a square

// The columns of a tile: element (x, y) comes from `from + offsets[x] + y * size`.
struct turned_columns {
    const char* from;
    const long long* offsets;
    int width, height;
    const char* next;    // `from` of the next tile
    int ahead;           // squares between the one that is turned and the one that is fetched, as many as a row has at most
    long long farthest;  // of the offsets
    const char* last;    // from where on no row of a square can be read
};

// Bring columns to `to + y * pitch + x * size`. A row of the result may be followed by those of a square, so `to` has
// that much room behind it.
template <int __size, bool __has_squares = (square<__size>::side > 1)>
struct turning {
    static GRIDSTRIDE_APART void turn_each(char* __to, long long __pitch, const turned_columns& __its, int __first, int __end) {
        for (int __y = 0; __y < __its.height; ++__y)
            for (int __x = __first; __x < __end; ++__x)
                __builtin_memcpy(__to + __y * __pitch + __x * __size,
                                 __its.from + __its.offsets[__x] + (long long)__y * __size, __size);
    }
    static GRIDSTRIDE_INLINED void run(char* __to, long long __pitch, const turned_columns& __its) {
        turn_each(__to, __pitch, __its, 0, __its.width);
    }
};
template <int __size>
struct turning<__size, true> {
    static constexpr int side = square<__size>::side, steps_of_line = line_bytes / square_bytes;

    // As many columns as a square has.
    struct columns {
        const char* from;
        const long long* offsets;
        GRIDSTRIDE_INLINED const char* at(int __k) const { return from + offsets[__k]; }
        GRIDSTRIDE_INLINED bool are_before(const char* __last) const {
            for (int __k = 0; __k < side; ++__k)
                if (at(__k) > __last) return false;
            return true;
        }
    };
    static GRIDSTRIDE_INLINED void turn_square(char* __to, long long __pitch, const columns& __its, int __height) {
        typename square<__size>::vector __rows[side];
#pragma GCC unroll 16
        for (int __k = 0; __k < side; ++__k) __builtin_memcpy(&__rows[__k], __its.at(__k), square_bytes);
        turned<__size>::run(__rows);
#pragma GCC unroll 16
        for (int __k = 0; __k < side; ++__k)
            if (__k < __height) __builtin_memcpy(__to + __k * __pitch, &__rows[__k], square_bytes);
    }
    static GRIDSTRIDE_INLINED void turn_long(char* __to, long long __pitch, const columns& __its, const columns& __later,
                                             int __height) {
        const int __bytes = __height * __size;
        const bool __is_short = __bytes < 4 * line_bytes;  // so that all of it is fetched at once
        for (int __k = 0; __k < side; ++__k) {
            const char* const __column = __later.at(__k);
            for (int __at = 0; __is_short && __at < __bytes; __at += line_bytes) __builtin_prefetch(__column + __at);
            __builtin_prefetch(__column + __bytes - 1);
        }
        long long __offsets[side];  // which no store changes
        for (int __k = 0; __k < side; ++__k) __offsets[__k] = __its.offsets[__k];
        for (int __y = 0; __y < __height; __y += side) {
            // A line of each column by turns.
            for (int __k = __is_short ? side : __y / side % steps_of_line; __k < side; __k += steps_of_line)
                __builtin_prefetch(__later.at(__k) + __y * __size / line_bytes * line_bytes);
            // The last square may begin with rows of the one before.
            const int __first = __y + side <= __height ? __y : __height - side;
            turn_square(__to + __first * __pitch, __pitch, columns{__its.from + __first * __size, __offsets}, side);
        }
    }
    // Columns that are shorter than a square, which shows what follows them too.
    static GRIDSTRIDE_INLINED void turn_short(char* __to, long long __pitch, const columns& __its, const columns& __later,
                                              int __height) {
        for (int __k = 0; __k < side; ++__k) __builtin_prefetch(__later.at(__k) + __height * __size - 1);
        turn_square(__to, __pitch, __its, __height);
    }
    static GRIDSTRIDE_APART void run(char* __to, long long __pitch, const turned_columns& __its) {
        const int __width = __its.width, __height = __its.height, __squares = (__width + side - 1) / side;
        const long long* __offsets = __its.offsets;
        long long __repeated[side];
        if (__width < side) {
            for (int __k = 0; __k < side; ++__k) __repeated[__k] = __offsets[smaller(__k, __width - 1)];
            __offsets = __repeated;
        }
        // The last square may begin with columns of the one before.
        const int __last = __width < side ? 0 : __width - side;
        const bool __is_inside = __height >= side || __its.from + __its.farthest <= __its.last;
        for (int __square = 0; __square < __squares; ++__square) {
            const int __x = smaller(__square * side, __last), __ahead = __square + __its.ahead;
            const columns __now = {__its.from, __offsets + __x};
            const columns __later = __ahead < __squares
                ? columns{__its.from, __offsets + smaller(__ahead * side, __last)}
                : columns{__its.next, __offsets + smaller((__ahead - __squares) * side, __last)};
            char* const __at = __to + __x * __size;
            if (__height >= side)
                turn_long(__at, __pitch, __now, __later, __height);
            else if (__is_inside || __now.are_before(__its.last))
                turn_short(__at, __pitch, __now, __later, __height);
            else
                turning<__size, false>::turn_each(__to, __pitch, __its, __x, smaller(__x + side, __width));
        }
    }
};

// Put rows from `from + y * pitch + x * size` back into columns. A square may reach beyond a row, so there is that much room.
template <int __size, bool __has_squares = (square<__size>::side > 1)>
struct turning_back {
    static GRIDSTRIDE_INLINED void run(const char* __from, long long __pitch, const turned_columns& __its) {
        for (int __x = 0; __x < __its.width; ++__x)
            for (int __y = 0; __y < __its.height; ++__y)
                __builtin_memcpy(const_cast<char*>(__its.from) + __its.offsets[__x] + (long long)__y * __size,
                                 __from + __y * __pitch + __x * __size, __size);
    }
};
template <int __size>
struct turning_back<__size, true> {
    static constexpr int side = square<__size>::side;

    static GRIDSTRIDE_APART void run(const char* __from, long long __pitch, const turned_columns& __its) {
        const int __width = __its.width, __height = __its.height, __columns = smaller(side, __width), __rows = smaller(side, __height);
        char* const __to = const_cast<char*>(__its.from);
        for (int __square = 0; __square < __width; __square += side) {
            // The last square may begin with columns of the one before, and with their rows.
            const int __x = smaller(__square, __width - __columns), __later = smaller(__x + __its.ahead * side, __width - __columns);
            for (int __k = 0; __k < __columns; ++__k)
                for (int __byte = 0; __byte < __height * __size; __byte += line_bytes)
                    __builtin_prefetch(__to + __its.offsets[__later + __k] + __byte, 1);
            for (int __row = 0; __row < __height; __row += side) {
                const int __y = smaller(__row, __height - __rows);
                typename square<__size>::vector __some[side] = {};
                for (int __k = 0; __k < __rows; ++__k) __builtin_memcpy(&__some[__k], __from + (__y + __k) * __pitch + __x * __size, square_bytes);
                turned<__size>::run(__some);
                for (int __k = 0; __k < __columns; ++__k) {
                    char* const __at = __to + __its.offsets[__x + __k] + __y * __size;
                    if (__rows == side) __builtin_memcpy(__at, &__some[__k], square_bytes);
                    else copy_short(__at, reinterpret_cast<const char*>(&__some[__k]), __rows * __size);
                }
            }
        }
    }
};

}

#endif
