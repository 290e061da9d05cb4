// Which way operands go through the tiles of a launch, and the memory that this takes.
#ifndef GRIDSTRIDE_CPU_SETTLING_H
#define GRIDSTRIDE_CPU_SETTLING_H

#include <gridstride_cpu/passage.h>

namespace gridstride {

// Take a coordinate of a tile off an index: that along an axis which tiles cut every so many elements.
GRIDSTRIDE_INLINED long long take_off(long long& __index, long long __length, long long __every) {
    const long long __cuts = (__length + __every - 1) / __every, __quotient = __index / __cuts;
    const long long __at = (__index - __quotient * __cuts) * __every;
    __index = __quotient;
    return __at;
}

#if defined(GRIDSTRIDE_LINKS_PASSAGES)
void settle(passage* const*, int, const tile_shape&, bool, tile_memory&);
void finish_lines(const passage&);
void fetch_row_ahead(const passage&, int, int, int);
tile_rows rows_of_tile(passage* const*, const tile_shape&, const found_tile&, long long, long long, long long);
tile_place place_of_tile(long long&, const long long*, const int*, int);
#else
GRIDSTRIDE_APART way way_of(const passage& __its, const tile_shape& __tiles) {
    long long __extent = __its.size;
    unsigned long __places = reinterpret_cast<unsigned long>(__its.data);
    bool __is_repeated = true, __is_consecutive = true;
    for (int __axis = 0; __axis < __tiles.ndim; ++__axis) {
        const long long __stride = __its.stride(__axis);
        __places |= __stride;
        if (__axis >= __tiles.row_axes || __tiles.length[__axis] == 1) continue;
        __is_repeated = __is_repeated && __stride == 0;
        __is_consecutive = __is_consecutive && __stride == __extent;
        __extent *= __tiles.length[__axis];
    }
    // Short rows are worth a tile of inputs that would not let them be one.
    const bool __are_short = __tiles.height > 1 && !__its.is_written && __tiles.width * __its.size <= short_row_bytes;
    const bool __is_turned = (__its.down == __its.size && __tiles.height > 1) || __its.deep == __its.size;
    if (__is_consecutive && !(__are_short && __its.down == 0)) return __places % __its.alignment == 0 ? way::direct : way::stepped;
    if (__is_repeated) return __are_short && __is_turned ? way::turned : way::same;
    // As tiles.py decides: elements of long rows a few of them apart are picked out of vectors.
    const bool __is_picked = __tiles.length[0] >= 16 && __tiles.length[__tiles.row_axes] < 16 &&
                             (__its.step < 0 ? -__its.step : __its.step) <= 6 * __its.size;
    if (__is_turned && !__is_picked) return way::turned;
    return __tiles.row_axes == 1 ? way::stepped : way::pieces;
}

GRIDSTRIDE_APART const char* end_of(const passage& __its, const tile_shape& __tiles) {
    const char* __last = __its.data;
    for (int __axis = 0; __axis < __tiles.ndim; ++__axis)
        if (__its.stride(__axis) > 0) __last += (__tiles.length[__axis] - 1) * __its.stride(__axis);
    return __last + __its.size;
}

// Bytes that are fetched with a column of a tile: neighbors may share lines of the cache.
GRIDSTRIDE_APART int column_bytes(const passage& __its, const tile_shape& __tiles) {
    const int __bytes = (__its.is_deep ? __tiles.depth : __tiles.height) * __its.size;
    for (int __axis = 0; __axis < __tiles.row_axes; ++__axis) {
        const long long __stride = __its.stride(__axis);
        if (__tiles.length[__axis] > 1 && (__stride < 0 ? -__stride : __stride) < __bytes + line_bytes) return __bytes;
    }
    return __bytes + line_bytes;
}

// Where a layer is a short chunk of memory, of which tiles have several, plan how its bytes are permuted.
GRIDSTRIDE_APART void plan_layers(passage& __its, const tile_shape& __tiles, tile_memory& __memory) {
    permuted_chunks& __chunks = __its.chunks;
    const long long __count = (long long)__tiles.width * __tiles.height, __extent = __its.columns.farthest + __tiles.height * __its.size;
    constexpr int __room = most_permutations * 2 * permuted_bytes;
    __chunks.group = 0;
    if (__its.is_deep || __its.deep <= 0 || __tiles.width != row_length(__tiles) || __tiles.height != __tiles.length[__tiles.row_axes] ||
        __extent > most_chunk_bytes || __memory.offsets_used + __count > tile_memory::offsets_count)
        return;
    long long* const __places = __memory.offsets + __memory.offsets_used;
    for (int __k = 0; __k < __count; ++__k) {
        __places[__k] = __its.columns.offsets[__k % __tiles.width] + __k / __tiles.width * __its.size;
        if (__places[__k] < 0) return;
    }
    char* const __table = __memory.take(__room);
    if (!__table) return;
    __chunks.count = int(__count);
    __chunks.start = 0;
    __chunks.step = __its.deep;
    __chunks.ahead = __its.deep * larger(int(bytes_ahead / __its.deep));
    __chunks.extent = int(__extent);
    __chunks.places = __places;
    __chunks.end = end_of(__its, __tiles);
    if (plan_group(__chunks, __its.size, __table, __room)) __memory.offsets_used += int(__count);
}

// Take memory for a tile that is turned; without any left its elements are taken one by one.
GRIDSTRIDE_APART void reserve_tile(passage& __its, const tile_shape& __tiles, tile_memory& __memory) {
    const long long __bytes = ((long long)__tiles.width * __tiles.height * __tiles.depth * __its.size + larger(square_bytes, permuted_bytes) + 63) / 64 * 64;
    __its.is_deep = __its.down != __its.size || __tiles.height == 1;
    const bool __has_offsets = __memory.offsets_used + __tiles.width <= tile_memory::offsets_count;
    __its.tile = __has_offsets ? __memory.take(__bytes) : nullptr;
    __its.places = !__its.is_deep ? nullptr : reinterpret_cast<long long*>(__memory.take((long long)__tiles.width * __tiles.height * sizeof(long long)));
    __its.places_width = 0;
    if (!__its.tile || (__its.is_deep && !__its.places)) {
        __its.how = __tiles.row_axes == 1 ? way::stepped : way::pieces;
        return;
    }
    long long* const __offsets = __memory.offsets + __memory.offsets_used;
    turned_columns& __columns = __its.columns;
    __columns.farthest = 0;
    for (int __x = 0; __x < __tiles.width; ++__x) {
        __offsets[__x] = offset_in_row(__its, __tiles, __x);
        if (__offsets[__x] > __columns.farthest) __columns.farthest = __offsets[__x];
    }
    __columns.offsets = __offsets;
    __columns.last = end_of(__its, __tiles) - square_bytes;
    const int __side = larger(square_bytes / __its.size), __fetched = int(bytes_ahead) / column_bytes(__its, __tiles);
    __columns.ahead = smaller(larger(__fetched / __side), (__tiles.width + __side - 1) / __side);
    __memory.offsets_used += __tiles.width;
    plan_layers(__its, __tiles, __memory);
}

// Take memory for rows of chunks, if there is enough, and unless these are long pieces, better copied one by one.
GRIDSTRIDE_APART void reserve_chunks(passage& __its, const tile_shape& __tiles, tile_memory& __memory) {
    permuted_chunks& __chunks = __its.chunks;
    long long __extent = __its.size, __count = 1;
    __chunks.start = 0;
    for (int __axis = 0; __axis + 1 < __tiles.row_axes; ++__axis) {
        const long long __reach = (__tiles.length[__axis] - 1) * __its.stride(__axis);
        __extent += __reach < 0 ? -__reach : __reach;
        __chunks.start += __reach < 0 ? __reach : 0;
        __count *= __tiles.length[__axis];
    }
    const long long __chunk = __count * __its.size;
    const int __some = larger(window_of_chunks / int(__chunk), chunk_bytes / int(__chunk) + 2);
    const long long __bytes = (__some * __chunk + window_bytes + 2 * line_bytes - 1) / line_bytes * line_bytes;
    const bool __is_piece = (__its.step == 0 || __its.step == __its.size) &&
                            __tiles.length[0] * __its.size >= larger(square_bytes, permuted_bytes);
    if (__is_piece || __extent > most_chunk_bytes || __chunk > window_of_chunks ||
        __memory.bytes_used + __bytes > tile_memory::bytes_count ||
        __memory.offsets_used + __count > tile_memory::offsets_count)
        return;
    long long* const __places = __memory.offsets + __memory.offsets_used;
    for (int __k = 0; __k < __count; ++__k) __places[__k] = offset_in_row(__its, __tiles, __k) - __chunks.start;
    __chunks.places = __places;
    __chunks.extent = int(__extent);
    __chunks.step = __its.stride(__tiles.row_axes - 1);
    __chunks.ahead = __chunks.step * larger(int(bytes_ahead) / __chunks.extent);
    __chunks.end = end_of(__its, __tiles);
    __chunks.count = int(__count);
    __chunks.row = nullptr;
    __its.tile = __memory.bytes + __memory.bytes_used;
    const int __table = plan_group(__chunks, __its.size, __its.tile + __bytes, int(tile_memory::bytes_count - __memory.bytes_used - __bytes));
    __chunks.some = __chunks.group ? (__some + __chunks.group - 1) / __chunks.group * __chunks.group : __some;
    __its.how = way::permuted;
    __memory.bytes_used += int(__bytes) + __table;
    __memory.offsets_used += int(__count);
}

// Take a line for each row of a stack of tiles, as far as there are enough for all results, where the next stack goes on
// with it; one for all rows that are whole.
GRIDSTRIDE_APART void reserve_lines(passage& __its, const tile_shape& __tiles, int __results, tile_memory& __memory) {
    const int __rows = smaller(__tiles.stacked * __tiles.height * __tiles.depth, larger(tile_memory::lines_count / __results));
    __its.unfinished_count = __tiles.width == row_length(__tiles) ? 1 : __rows;
    __its.unfinished = __memory.unfinished + __memory.lines_used;
    __its.lines = __memory.lines + __memory.lines_used * line_bytes;
    __memory.lines_used += __its.unfinished_count;
    for (int __k = 0; __k < __its.unfinished_count; ++__k) __its.unfinished[__k].line = nullptr;
}
GRIDSTRIDE_APART void finish_lines(const passage& __its) {
    if (!__its.is_streamed) return;
    for (int __k = 0; __k < __its.unfinished_count; ++__k) finish(__its.unfinished[__k], __its.lines + __k * line_bytes);
}

// How many elements follow each other again and again in the rows of a tile, or come in each of several rows; 0: none.
GRIDSTRIDE_APART int period_of(const passage& __its, const tile_shape& __tiles) {
    int __moved = 0;  // axes up to the last one along which elements differ
    long long __period = 1;
    bool __is_constant = true;
    for (int __axis = 0; __axis < __tiles.ndim; ++__axis) {
        if (__tiles.length[__axis] == 1 || __its.stride(__axis) == 0) continue;
        if (__axis >= __tiles.row_axes) __is_constant = false;
        else __moved = __axis + 1;
    }
    for (int __axis = 0; __axis < __moved; ++__axis) __period *= __tiles.length[__axis];
    if ((__its.down != 0 && __tiles.height > 1) || __its.deep != 0) return 0;
    if (__moved < __tiles.row_axes) return __period <= tile_memory::bytes_count ? int(__period) : 0;
    return __tiles.height > 1 || (__is_constant && __period == __tiles.width) ? __tiles.width : 0;
}

// Take memory for elements that are repeated and a chunk that begins with the last of them.
GRIDSTRIDE_APART void reserve_period(passage& __its, const tile_shape& __tiles, tile_memory& __memory) {
    const int __period = period_of(__its, __tiles);
    const long long __bytes = ((__period + 1LL) * __its.size + chunk_bytes + 2 * line_bytes - 1) / line_bytes * line_bytes;
    char* const __tile = __period ? __memory.take(__bytes) : nullptr;
    if (!__tile) return;
    __its.how = way::periodic;
    __its.period = __period;
    __its.tile = __tile;
}

// Settle how operands get to where they are consecutive: those that lie along columns first, which tiles are made for.
GRIDSTRIDE_APART void settle(passage* const* __all, int __count, const tile_shape& __tiles, bool __is_streamed, tile_memory& __memory) {
    int __results = 0;
    for (int __k = 0; __k < __count; ++__k) __results += __all[__k]->is_written;
    for (int __k = 0; __k < __count; ++__k) {
        passage& __its = *__all[__k];
        __its.down = __its.strides[__tiles.row_axes];
        __its.deep = __tiles.depth > 1 ? __its.strides[__tiles.row_axes + 1] : 0;
        __its.is_stacked = __tiles.stacked > 1;
        __its.layer = nullptr;
        __its.layer_bytes = 0;
        __its.how = way_of(__its, __tiles);
        __its.brought = nullptr;
        const long long __pieces = bytes_ahead / __its.size / __tiles.length[0];
        __its.ahead = __tiles.width * __its.size > bytes_ahead ? offset_in_row(__its, __tiles, __pieces * __tiles.length[0]) : 0;
        if (__its.how == way::turned) reserve_tile(__its, __tiles, __memory);
        // What was just read is in a cache.
        bool __is_read = false;
        for (int __other = 0; __other < __count; ++__other)
            __is_read = __is_read || (__all[__other]->is_read && __all[__other]->data == __its.data);
        __its.is_streamed = can_stream && __is_streamed && __its.is_written && !__is_read && __its.how == way::direct &&
                            __memory.lines_used < tile_memory::lines_count;
        if (__its.is_streamed) reserve_lines(__its, __tiles, __results, __memory);
    }
    for (int __k = 0; __k < __count; ++__k) {
        passage& __its = *__all[__k];
        if (__its.is_written || (__its.how != way::pieces && __its.how != way::stepped)) continue;
        reserve_period(__its, __tiles, __memory);
        if (__its.how == way::pieces) reserve_chunks(__its, __tiles, __memory);
    }
}

// Take the place of a tile off an index, along the last axis of rows and that of columns.
GRIDSTRIDE_APART tile_place place_of_tile(long long& __index, const long long* __length, const int* __every, int __stacked) {
    if (__stacked == 1) {
        const long long __right = take_off(__index, __length[0], __every[0]);
        return {{__right, take_off(__index, __length[1], __every[1])}, 0};
    }
    const long long __across = (__length[0] + __every[0] - 1) / __every[0], __down = (__length[1] + __every[1] - 1) / __every[1];
    const long long __outer = __index / (__across * __down), __its = __index - __outer * (__across * __down);
    const long long __first = __its / (__across * __stacked) * __stacked, __rest = __its - __first * __across;
    const long long __tiles = __down - __first < __stacked ? __down - __first : __stacked, __right = __rest / __tiles;
    const int __above = int(__rest - __right * __tiles) * __every[1];
    __index = __outer;
    return {{__right * __every[0], __first * __every[1] + __above}, __above};
}

// Return how the rows of a tile are run; numbers are steps, rows and layers so far apart.
GRIDSTRIDE_APART tile_rows rows_of_tile(passage* const* __all, const tile_shape& __tiles, const found_tile& __its,
                                        long long __step, long long __down, long long __deep) {
    bool __are_one = __its.width == __tiles.width && __down == __its.width * __step, __are_layers_one = __deep == __its.height * __down;
    bool __are_narrow = false;
    for (; *__all; ++__all) {
        __are_one = __are_one && (*__all)->is_one_row(__its.width);
        __are_layers_one = __are_layers_one && (*__all)->is_one_layer(__its.height);
        __are_narrow = __are_narrow || (*__all)->how == way::turned;
    }
    if (!__are_one) return {__its.width, __its.height, __its.depth, __are_narrow};
    return {__its.width * __its.height * (__are_layers_one ? __its.depth : 1), 1, __are_layers_one ? 1 : __its.depth, false};
}

// Where rows are short pieces no processor guesses what comes next: a later row, or one of the next tile.
GRIDSTRIDE_APART void fetch_row_ahead(const passage& __its, int __y, int __width, int __height) {
    if (!__its.is_read || __its.how != way::direct) return;
    const int __later = __y + rows_ahead, __bytes = __width * __its.size;
    const char* const __at = __later < __height || __its.is_stacked ? __its.row(__later) : __its.row(__later - __height) + __bytes;
    for (int __k = 0; __k < __bytes; __k += line_bytes) __builtin_prefetch(__at + __k);
    __builtin_prefetch(__at + __bytes - 1);
    asm volatile("");  // g++ removes calls of functions that do nothing but this
}
#endif

}

#endif
