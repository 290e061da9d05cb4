// Interleaved columns, as those of an array whose short rows lie one after another, are brought apart: squares of a
// vector's elements are transposed in registers, or the elements of each column are picked out of vectors.
#ifndef GRIDSTRIDE_CPU_UNTANGLING_H
#define GRIDSTRIDE_CPU_UNTANGLING_H

#include <gridstride_cpu/gathering.h>
#include <gridstride_cpu/shares.h>
#include <gridstride_cpu/squares.h>

namespace gridstride {

// Columns that are brought to where their elements are consecutive.
struct tangled_columns {
    const char* from;
    long long step;    // between elements of a column
    long long stride;  // between columns
    int columns;
    char* to;
    long long pitch;   // between columns there
};

// Bring as many columns apart as a square has, of whole squares.
template <int __size>
GRIDSTRIDE_INLINED void untangle_squares(const tangled_columns& __its, int __column, int __from, int __count) {
    constexpr int __length = square<__size>::side;
    const long long __step = __its.step, __pitch = __its.pitch;
    const char* __at = __its.from + __from * __step + __column * __size;
    char* __to = __its.to + __column * __pitch + __from * __size;
    for (int __done = 0; __done + __length <= __count; __done += __length) {
        typename square<__size>::vector __rows[__length];
#pragma GCC unroll 16
        for (int __k = 0; __k < __length; ++__k, __at += __step) __builtin_memcpy(&__rows[__k], __at, 16);
        turned<__size>::run(__rows);
        char* __row = __to;
#pragma GCC unroll 16
        for (int __k = 0; __k < __length; ++__k, __row += __pitch) __builtin_memcpy(__row, &__rows[__k], 16);
        __to += 16;
    }
}

template <int __size, bool __has_squares = (square<__size>::side > 1)>
struct untangling {
    static constexpr int length = square<__size>::side;

    // Return how many elements of each column were brought.
    GRIDSTRIDE_INLINED static int run(const tangled_columns& __its, int __from, int __count, int __left) {
        // Squares may reach into the rows that follow, of which the last has none.
        const int __bytes = __its.columns * __size, __reach = __bytes < 16 ? int((15 - __bytes + __its.step) / __its.step) : 0;
        const int __whole = smaller(__count, __left - __reach) / length * length;
        for (int __column = 0; __column < __its.columns; __column += length) {
            // The last square may begin with columns of the one before.
            const bool __is_last = __column && __column + length > __its.columns;
            untangle_squares<__size>(__its, __is_last ? __its.columns - length : __column, __from, __whole);
        }
        return __whole < 0 ? 0 : __whole;
    }
};
template <int __size>
struct untangling<__size, false> {
    static constexpr int length = 1;
    GRIDSTRIDE_INLINED static int run(const tangled_columns&, int, int, int) { return 0; }
};

// Fetch what lies far behind so many bytes.
GRIDSTRIDE_INLINED void fetch_far(const char* __at, long long __bytes) {
    for (long long __k = 0; __k < __bytes; __k += line_bytes) __builtin_prefetch(__at + bytes_ahead + __k);
}

// Fetch the column that comes as many columns later, unless little of its memory is its own.
template <int __size>
GRIDSTRIDE_INLINED void fetch_later(const tangled_columns& __its, int __column, int __count) {
    const long long __span = (__its.step < 0 ? -__its.step : __its.step) * __count;
    if (__span > 4ll * __size * __count || (__its.stride < 0 ? -__its.stride : __its.stride) < __span) return;
    const char* const __first = __its.from + (__its.columns + __column) * __its.stride + (__its.step < 0 ? __its.step * (__count - 1) : 0);
    for (long long __k = 0; __k < __span; __k += line_bytes) __builtin_prefetch(__first + __k);
}

// Bring columns apart one by one, and fetch so many bytes meanwhile.
template <int __size>
GRIDSTRIDE_INLINED void gather_columns(const tangled_columns& __its, int __from, int __count, long long __fetched) {
    const char* const __at = __its.from + __from * __its.step;
    const long long __each = __fetched / __its.columns;
    for (int __column = 0; __column < __its.columns; ++__column) {
        fetch_far(__at + __column * __each, __each);
        if (!__fetched) fetch_later<__size>(__its, __column, __count);
        gather_bytes<__size>(__its.to + __column * __its.pitch + __from * __size, __at + __column * __its.stride, __its.step, __count);
    }
}

// Bring columns apart. Where there are several there is room for those of a square.
template <int __size>
__attribute__((noinline)) void untangle(const tangled_columns& __its, int __count) {
    constexpr int __stretch = 2048, __length = untangling<__size>::length;
    // What costs less than squares, of which those of bytes are large.
    constexpr int __picked_up_to = larger(2, smaller(merged<__size>::most_times, __size == 1 ? 8 : 4));
    const long long __bytes = __its.columns * __size, __all = __count * __its.step;
    const bool __is_dense = __its.stride == __size && __its.step >= __bytes && __its.step <= 2 * __bytes;
    if (__its.stride != __size || __its.step <= __picked_up_to * __size || __its.step < __bytes)
        return gather_columns<__size>(__its, 0, __count, __is_dense ? __all : 0);
    // A short stretch of memory at a time, while what is far behind it is fetched.
    const int __some = larger(int(__stretch / __its.step) / __length * __length, __length);
    for (int __done = 0; __done < __count;) {
        const int __more = smaller(__some, __count - __done);
        if (__is_dense) fetch_far(__its.from + __done * __its.step, __more * __its.step);
        const int __in_squares = untangling<__size>::run(__its, __done, __more, __count - __done);
        if (__in_squares < __more) gather_columns<__size>(__its, __done + __in_squares, __more - __in_squares, 0);
        __done += __more;
    }
}
#define GRIDSTRIDE_UNTANGLING(start, size) start template void untangle<size>(const tangled_columns&, int);
GRIDSTRIDE_LINKED(GRIDSTRIDE_UNTANGLING)

}

#endif
