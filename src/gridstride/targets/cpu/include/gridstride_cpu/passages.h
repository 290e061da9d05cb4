// How operands that do not lie along rows get to where their elements are consecutive, and results to memory.
//
// Nothing here depends on a kernel but by the size of elements. So what takes a compiler long is compiled once, by
// templates/passages.cpp, and linked where GRIDSTRIDE_LINKS_PASSAGES says so.
#ifndef GRIDSTRIDE_CPU_PASSAGES_H
#define GRIDSTRIDE_CPU_PASSAGES_H

#include <gridstride_cpu/chunks.h>
#include <gridstride_cpu/pieces.h>
#include <gridstride_cpu/shares.h>
#include <gridstride_cpu/streaming.h>
#include <gridstride_cpu/turning.h>

namespace gridstride {

constexpr int tile_bytes = 32768;  // of the tiles of operands that lie along columns
constexpr long long layered_tile_bytes = 131072;  // of those that lie along columns or layers
constexpr int short_row_bytes = 128;
constexpr int rows_ahead = 8;  // that are fetched before they are needed, where rows are short pieces

// How the elements of a row are come by.
enum class way {
    direct,    // they are consecutive
    same,      // there is one
    turned,    // they are consecutive along columns: a tile is turned at once
    periodic,  // so many of them follow each other again and again: they are brought into order once
    permuted,  // rows are made of short chunks of memory
    stepped,   // they are a step apart
    pieces,    // rows have several axes
};

// The shape of tiles: the members of `tile_space` whose type does not depend on the room for axes.
struct tile_shape {
    int ndim, row_axes, width, height, depth;
    const long long* length;
};

// Where a tile is, and how its rows are run, of which several may be one.
struct found_tile {
    long long number;  // of its first element
    int width, height, depth;
};
struct tile_rows {
    int count, rows, layers;  // elements, rows of each layer
    bool are_narrow;          // and lie apart
};

// Memory for the tiles of operands that are turned, and for the last lines of rows of results.
struct tile_memory {
    static constexpr int bytes_count = tile_bytes + 2 * chunk_bytes, offsets_count = 1024, lines_count = 256;
    int bytes_used = 0, offsets_used = 0, lines_used = 0;
    alignas(64) char bytes[bytes_count];
    alignas(64) char lines[lines_count * line_bytes];
    unfinished_line unfinished[lines_count];
    long long offsets[offsets_count];
    char* more = nullptr;  // that there is no room for on a stack
    static constexpr long long more_count = 3 * layered_tile_bytes;
    long long more_used = 0;

    ~tile_memory() { __builtin_free(more); }
    // Return so many bytes of tiles, or null.
    GRIDSTRIDE_APART char* take(long long __bytes) {
        if (bytes_used + __bytes <= bytes_count) {
            bytes_used += int(__bytes);
            return bytes + bytes_used - __bytes;
        }
        if (more_used + __bytes > more_count) return nullptr;
        if (!more) more = static_cast<char*>(__builtin_malloc(more_count));
        more_used += __bytes;
        return more ? more + more_used - __bytes : nullptr;
    }
};

// Where the elements of an operand are, and how they get to where they are consecutive.
struct passage {
    char* data;
    long long step;
    const long long* strides;
    int size, alignment;
    bool is_read, is_written;

    way how;
    bool is_streamed;
    char* corner;     // of the layer
    int layers_done;
    char* next;       // of the next one
    long long down;   // from row to row
    long long deep;   // from layer to layer
    char* buffer;
    const char* repeated;  // the element that fills so much of the buffer
    int filled;
    char* tile;       // with what is turned, repeated or permuted
    char* layer;      // of what is turned
    long long layer_bytes;
    bool is_deep;     // whether elements are consecutive along layers
    long long* places;  // of a layer's elements there, of which so many rows and so wide ones are known
    int places_width, places_height;
    const char* brought;     // the corner of what the tile holds, or null
    int brought_width, brought_height, brought_depth;
    int period;              // elements of a row that are repeated
    long long ahead;         // of a piece, to that which is fetched meanwhile; 0: it lies in a later row
    turned_columns columns;
    permuted_chunks chunks;
    unfinished_line* unfinished;  // of rows, of which there are so many, and their bytes
    char* lines;
    int unfinished_count;

    GRIDSTRIDE_INLINED long long stride(int __axis) const { return __axis ? strides[__axis] : step; }
    GRIDSTRIDE_INLINED bool has_tile() const { return how == way::turned || how == way::periodic; }
    GRIDSTRIDE_INLINED bool is_direct() const { return how == way::direct && !is_streamed; }
    GRIDSTRIDE_INLINED char* row(int __y) const { return corner + __y * down; }
    // Whether the rows of a tile are one.
    GRIDSTRIDE_INLINED bool is_one_row(long long __width) const {
        return how == way::direct ? down == __width * size
             : how == way::same ? down == 0
             : how == way::periodic ? down == 0 && __width % period == 0 : how == way::turned;
    }
    // Whether the layers of a tile are one, where rows are.
    GRIDSTRIDE_INLINED bool is_one_layer(long long __height) const {
        return how == way::turned ? layer_bytes != 0 : deep == __height * down;
    }
    GRIDSTRIDE_INLINED int go_deeper() {
        corner += deep;
        layer += layer_bytes;
        ++layers_done;
        return 0;
    }
    // Which line waits for what follows a row.
    GRIDSTRIDE_INLINED int line_of(int __y, const tile_shape& __tiles) const { return (__y + layers_done * __tiles.height) % unfinished_count; }
    // Elements by which a chunk is shorter, so that the next one begins a line.
    GRIDSTRIDE_INLINED int excess(int __y) const {
        return is_streamed ? int(reinterpret_cast<unsigned long>(row(__y)) % line_bytes / size) : 0;
    }
};

// Where an element of a row is, from its first one.
GRIDSTRIDE_INLINED long long offset_in_row(const passage& __its, const tile_shape& __tiles, unsigned __x) {
    long long __offset = 0;
    for (int __axis = 0; __axis + 1 < __tiles.row_axes; ++__axis) {
        const unsigned __length = unsigned(__tiles.length[__axis]), __quotient = __x / __length;
        __offset += (__x - __quotient * __length) * __its.stride(__axis);
        __x = __quotient;
    }
    return __offset + __x * __its.stride(__tiles.row_axes - 1);
}

GRIDSTRIDE_INLINED long long row_length(const tile_shape& __tiles) {
    long long __length = 1;
    for (int __axis = 0; __axis < __tiles.row_axes; ++__axis) __length *= __tiles.length[__axis];
    return __length;
}

#if defined(GRIDSTRIDE_LINKS_PASSAGES)
void settle(passage* const*, int, const tile_shape&, bool, tile_memory&);
void finish_lines(const passage&);
void fetch_row_ahead(const passage&, int, int, int);
tile_rows rows_of_tile(passage* const*, const tile_shape&, const found_tile&, long long, long long, long long);
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

// Take a line for each row of a tile, as far as there are any left, where the next tile goes on with it; one for all
// rows that are whole.
GRIDSTRIDE_APART void reserve_lines(passage& __its, const tile_shape& __tiles, tile_memory& __memory) {
    const int __left = tile_memory::lines_count - __memory.lines_used;
    __its.unfinished_count = __tiles.width == row_length(__tiles) ? 1 : smaller(__tiles.height * __tiles.depth, (__left + 1) / 2);
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
    for (int __k = 0; __k < __count; ++__k) {
        passage& __its = *__all[__k];
        __its.down = __its.strides[__tiles.row_axes];
        __its.deep = __tiles.depth > 1 ? __its.strides[__tiles.row_axes + 1] : 0;
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
        if (__its.is_streamed) reserve_lines(__its, __tiles, __memory);
    }
    for (int __k = 0; __k < __count; ++__k) {
        passage& __its = *__all[__k];
        if (__its.is_written || (__its.how != way::pieces && __its.how != way::stepped)) continue;
        reserve_period(__its, __tiles, __memory);
        if (__its.how == way::pieces) reserve_chunks(__its, __tiles, __memory);
    }
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
    const char* const __at = __later < __height ? __its.row(__later) : __its.row(__later - __height) + __bytes;
    for (int __k = 0; __k < __bytes; __k += line_bytes) __builtin_prefetch(__at + __k);
    __builtin_prefetch(__at + __bytes - 1);
    asm volatile("");  // g++ removes calls of functions that do nothing but this
}
#endif

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
        (__y + rows_ahead < __tiles.height ? 0 : offset_in_row(__its, __tiles, __tiles.width) - __tiles.height * __its.down);
    equal_pieces __pieces = {__its.step, __its.strides[1], __ahead, int(__tiles.length[0])};
    // As many pieces as lie one stride apart; the first one may have begun, and the last one be cut.
    const int __length = __tiles.row_axes > 2 ? int(__tiles.length[1]) : __count + 1;
    const unsigned __before = unsigned(__from) / __pieces.length;
    int __begun = int(unsigned(__from) % __pieces.length), __whole = __tiles.row_axes > 2 ? int(__before % __length) : 0;
    long long __offset = offset_in_row(__its, __tiles, unsigned(__from)), __group = __offset - __whole * __its.strides[1] - __begun * __its.step;
    for (int __done = 0; __done < __count; __begun = __whole = 0) {
        const int __some = smaller((__length - __whole) * __pieces.length - __begun, __count - __done);
        move_pieces<__size, __puts>(__items + (long long)__done * __size, __row + __offset, __pieces, __begun, __some);
        __done += __some;
        __offset = __tiles.row_axes == 3 ? __group += __its.strides[2] : offset_in_row(__its, __tiles, unsigned(__from) + __done);
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
