// How operands that do not lie along rows get to where their elements are consecutive, and results to memory.
//
// Nothing here depends on a kernel but by the size of elements. So what takes a compiler long is compiled once, by
// templates/passages.cpp, and linked where GRIDSTRIDE_LINKS_PASSAGES says so.
#ifndef GRIDSTRIDE_CPU_PASSAGES_H
#define GRIDSTRIDE_CPU_PASSAGES_H

#include <gridstride_cpu/pieces.h>
#include <gridstride_cpu/settling.h>

namespace gridstride {

template <int __size>
GRIDSTRIDE_INLINED void fill(passage& __its, const char* __at, int __count) {
    if (!__its.is_written && __its.repeated == __at && __its.filled >= __count) return;
    __its.filled = __count + line_bytes / __size;  // the first chunk of a row is shorter
    repeat_bytes<__size>(__its.buffer, __at, __its.filled);
    __its.repeated = __at;
}
// Elements of which there are so many more in the row. Processors look ahead only within a page, and not while a chunk
// is stored.
template <int __size>
GRIDSTRIDE_APART void gather_ahead(char* __to, const char* __from, long long __step, int __count, long long __left) {
    constexpr int __some = 256 / __size > 0 ? 256 / __size : 1;
    const long long __apart = __step < 0 ? -__step : __step, __line = __step < 0 ? -line_bytes : line_bytes;
    const long long __lines = __apart <= line_bytes ? __some * __apart / line_bytes : 0;
    const char* __later = __from + __line * (bytes_ahead / line_bytes);
    for (; __count > 0; __count -= __some, __left -= __some, __to += __some * __size, __from += __some * __step) {
        if (__left * __apart > bytes_ahead)
            for (long long __k = 0; __k < __lines; ++__k, __later += __line) __builtin_prefetch(__later);
        gather_bytes<__size>(__to, __from, __step, smaller(__some, __count));
    }
}
// Bring some elements of a row of several axes to where they are consecutive, or put them to memory from there.
template <int __size, bool __puts>
GRIDSTRIDE_APART void move_row(char* __items, const passage& __its, const tile_shape& __tiles, int __y, long long __from,
                               int __count) {
    char* const __row = __its.row(__y);
    const long long __ahead = __its.ahead ? __its.ahead : rows_ahead * __its.down +
        (__y + rows_ahead < __tiles.height || __its.is_stacked ? 0 : offset_in_row(__its, __tiles, __tiles.width) - __tiles.height * __its.down);
    equal_pieces __pieces = {__its.step, __its.strides[1], __ahead, int(__tiles.length[0])};
    // As many pieces as lie one stride apart; the first one may have begun, and the last one be cut.
    const int __length = __tiles.row_axes > 2 ? int(__tiles.length[1]) : __count + 1;
    const unsigned __before = unsigned(__from) / __pieces.length;
    int __begun = int(unsigned(__from) % __pieces.length), __whole = __tiles.row_axes > 2 ? int(__before % __length) : 0;
    long long __offset = offset_in_row(__its, __tiles, unsigned(__from)), __group = __offset - __whole * __its.strides[1] - __begun * __its.step;
    // Of groups of pieces as many follow as lie one stride apart.
    long long __groups = __tiles.row_axes > 3 ? __tiles.length[2] - __before / __length % __tiles.length[2] : __count;
    for (int __done = 0; __done < __count; __begun = __whole = 0) {
        const int __some = smaller((__length - __whole) * __pieces.length - __begun, __count - __done);
        move_pieces<__size, __puts>(__items + (long long)__done * __size, __row + __offset, __pieces, __begun, __some);
        __done += __some;
        __offset = --__groups > 0 ? __group += __its.strides[2] : offset_in_row(__its, __tiles, unsigned(__from) + __done);
        if (__groups > 0) continue;
        __group = __offset;
        __groups = __tiles.length[2];
    }
}

// Some elements of a row, consecutive: those of an operand that is not.
template <int __size>
__attribute__((noinline)) char* fetched(passage& __its, const tile_shape& __tiles, int __y, int __width, long long __from,
                                       int __count) {
    if (__its.how == way::turned) return __its.layer + ((long long)__y * __width + __from) * __size;
    if (__its.how == way::periodic) return __its.tile + (long long)(unsigned(__from) % unsigned(__its.period)) * __size;
    if (__its.is_streamed) {
        const int __line = __its.line_of(__y, __tiles);
        return __its.buffer + go_on(__its.unfinished[__line], __its.lines + __line * line_bytes, __its.buffer,
                                    __its.row(__y) + __from * __size);
    }
    if (!__its.is_read) return __its.buffer;
    const char* const __row = __its.row(__y);
    if (__its.how == way::permuted)
        return permuted_window<__size>(__its.tile, __row, __its.chunks, __from, __count, __width);
    if (__its.how == way::same)
        fill<__size>(__its, __row, __count);
    else if (__its.how == way::stepped)
        gather_ahead<__size>(__its.buffer, __row + __from * __its.step, __its.step, __count, __width - __from);
    else
        move_row<__size, false>(__its.buffer, __its, __tiles, __y, __from, __count);
    return __its.buffer;
}
template <int __size>
__attribute__((noinline)) void put(const passage& __its, const tile_shape& __tiles, int __y, long long __from, int __count) {
    char* const __row = __its.row(__y);
    if (__its.how == way::turned) return;
    if (__its.is_streamed) {
        const int __line = __its.line_of(__y, __tiles);
        stream(__its.unfinished[__line], __its.lines + __line * line_bytes, __its.buffer, __row + __from * __size,
               (long long)__count * __size);
    } else if (__its.how == way::pieces)
        move_row<__size, true>(__its.buffer, __its, __tiles, __y, __from, __count);
    else
        scatter_bytes<__size>(__row + __from * __its.step, __its.step, __its.buffer, __count);
}
// Take the elements of a tile one by one, or put them.
template <int __size, bool __puts>
GRIDSTRIDE_APART void move_each_of(const passage& __its, char* __corner, int __width, int __height, int __depth) {
    const long long* const __offsets = __its.columns.offsets;
    char* __items = __its.tile;
    for (int __layer = 0; __layer < __depth; ++__layer)
        for (int __y = 0; __y < __height; ++__y) {
            char* const __at = __corner + __layer * __its.deep + __y * __its.down;
            for (int __x = 0; __x < __width; ++__x, __items += __size)
                __builtin_memcpy(__puts ? __at + __offsets[__x] : __items, __puts ? __items : __at + __offsets[__x], __size);
        }
}
// Where the elements of a layer are, whose first row has these offsets.
GRIDSTRIDE_APART void find_places(passage& __its, const long long* __offsets, int __width, int __height) {
    if (__its.places_width == __width && __its.places_height == __height) return;
    __its.places_width = __width;
    __its.places_height = __height;
    for (int __y = 0; __y < __height; ++__y)
        for (int __x = 0; __x < __width; ++__x) __its.places[__y * __width + __x] = __offsets[__x] + __y * __its.down;
}
// Turn the columns of a tile, or turn results back into them.
template <int __size, bool __puts>
GRIDSTRIDE_INLINED void turn_tile(passage& __its, char* __corner, int __width, int __height, int __depth) {
    auto __turn = [](char* __tile, long long __pitch, const turned_columns& __columns) {
        if (__puts) turning_back<__size>::run(__tile, __pitch, __columns);
        else turning<__size>::run(__tile, __pitch, __columns);
    };
    turned_columns __columns = __its.columns;
    const long long __row = (long long)__width * __size, __layer = __height * __row;
    __columns.from = __corner;
    __columns.next = __its.next;
    if (__its.is_deep) {
        find_places(__its, __columns.offsets, __width, __height);
        __columns.offsets = __its.places;
        __columns.width = __width * __height;
        __columns.height = __depth;
        if (__its.down > 0) __columns.farthest += (__height - 1) * __its.down;
        return __turn(__its.tile, __layer, __columns);
    }
    // Columns are turned for each layer, unless they lie on; where layers repeat them, once.
    const bool __lies_on = __its.deep == __height * (long long)__size;
    const int __layers = __lies_on || __its.layer_bytes == 0 ? 1 : __depth;
    __columns.width = __width;
    __columns.height = __lies_on ? __height * __depth : __height;
    // Squares would be nearly empty.
    if (__layers > 1 && __columns.height * __size < square_bytes / 2) return move_each_of<__size, __puts>(__its, __corner, __width, __height, __depth);
    for (int __k = 0; __k < __layers; ++__k, __columns.from += __its.deep) {
        __columns.next = __k + 1 < __layers ? __columns.from + __its.deep : __its.next;
        __turn(__its.tile + __k * __layer, __row, __columns);
    }
}
// Fill the tile of an operand that has one, unless it holds these elements.
template <int __size>
__attribute__((noinline)) void bring_tile(passage& __its, const tile_shape& __tiles, int __width, int __height, int __depth) {
    __its.layer = __its.tile;
    if (__its.brought == __its.corner && __its.brought_width == __width && __its.brought_height == __height && __its.brought_depth == __depth) return;
    __its.brought = __its.corner;
    __its.brought_width = __width;
    __its.brought_height = __height;
    __its.brought_depth = __depth;
    if (__its.how == way::periodic) {
        const int __count = smaller(__its.period, __width);
        if (__tiles.row_axes == 1)
            gather_ahead<__size>(__its.tile, __its.corner, __its.step, __count, __count);
        else
            move_row<__size, false>(__its.tile, __its, __tiles, 0, 0, __count);
        repeat_period(__its.tile, (long long)__count * __size, (long long)__its.period * __size + larger(chunk_bytes, __size));
        return;
    }
    __its.layer_bytes = !__its.is_deep && __depth > 1 && __its.deep == 0 ? 0 : (long long)__width * __height * __size;
    if (__its.is_read && __its.chunks.group && __depth > 1) permute_row<__size>(__its.tile, __its.corner, __its.chunks, __depth);
    else if (__its.is_read) turn_tile<__size, false>(__its, __its.corner, __width, __height, __depth);
}
// Put the tile of results that have one.
template <int __size>
__attribute__((noinline)) void put_tile(passage& __its, int __width, int __height, int __depth) {
    if (__its.how == way::turned) turn_tile<__size, true>(__its, __its.corner - __its.layers_done * __its.deep, __width, __height, __depth);
}

#define GRIDSTRIDE_PASSAGES(start, size)                                                     \
    start template char* fetched<size>(passage&, const tile_shape&, int, int, long long, int); \
    start template void put<size>(const passage&, const tile_shape&, int, long long, int);                       \
    start template void bring_tile<size>(passage&, const tile_shape&, int, int, int);         \
    start template void put_tile<size>(passage&, int, int, int);
GRIDSTRIDE_LINKED(GRIDSTRIDE_PASSAGES)

}

#endif
