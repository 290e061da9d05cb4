// Loops over elements on a processor: tiles of rows, in which the innermost loop goes over consecutive memory and
// is left to the compiler to vectorize. Operands that do not lie so pass through buffers that stay in a cache.
//
// A launch has blocks of one thread; each takes an equal share of the tiles.
#ifndef GRIDSTRIDE_CPU_LOOPS_H
#define GRIDSTRIDE_CPU_LOOPS_H

#include <gridstride/operands.h>
#include <gridstride_cpu/gathering.h>
#include <gridstride_cpu/squares.h>
#include <gridstride_cpu/streaming.h>

namespace gridstride {

// What an elementwise kernel walks. The first `row_axes` axes make rows, the next one columns; `strides[k]` of operands
// and numbers are those of axis k, `step` that of axis 0.
template <int __axes>
struct tile_space {
    long long size;    // of all elements
    long long tiles;
    int ndim;
    int row_axes;      // in a tile all but the last of them are whole
    int is_streamed;   // whether results are stored past the caches
    int piece;         // elements along the last of them in a tile
    int width;         // elements of a row in a tile
    int height;        // rows in a tile
    long long length[__axes];
    numbering<__axes> numbers;
};

// Bytes of the buffer of an operand, of all buffers, and of the tiles of operands that lie along columns.
constexpr int buffer_bytes = 4096, all_buffers_bytes = 65536, tile_bytes = 32768;
// Bytes of the elements of a row that are handled at once. A processor looks a few hundred instructions ahead: where
// these are few it reads the next ones while it stores some.
constexpr int chunk_bytes = 1024;
constexpr int rows_ahead = 8;  // that are fetched before they are needed, where rows are short pieces
constexpr long long bytes_ahead = 8192;  // the same, of elements that are a step apart

constexpr int larger() { return 1; }
template <class... __rest>
constexpr int larger(int __first, __rest... __others) {
    return __first > larger(__others...) ? __first : larger(__others...);
}
constexpr int largest() { return 0; }
template <class... __rest>
constexpr int largest(int __first, __rest... __others) {
    return __first > largest(__others...) ? __first : largest(__others...);
}
constexpr int smaller(int __first, int __second) { return __first < __second ? __first : __second; }
constexpr int sum_of() { return 0; }
template <class... __rest>
constexpr int sum_of(int __first, __rest... __others) { return __first + sum_of(__others...); }

// Elements that are handled at once where buffers are needed, since all lie on the stack.
template <class... __operands>
constexpr int buffered_up_to(int __most) {
    return larger(smaller(__most, smaller(buffer_bytes / larger(int(sizeof(typename __operands::stored))...),
                                          all_buffers_bytes / larger(sum_of(int(sizeof(typename __operands::stored))...)))));
}

template <int __axes>
GRIDSTRIDE_INLINED long long taken_off(const axes<__axes>& __space, long long& __index, int __axis) {
    const long long __length = __space.length[__axis], __quotient = __index / __length;
    const long long __rest = __index - __quotient * __length;
    __index = __quotient;
    return __rest;
}

// ---- operands ----

// How the elements of a row are come by.
enum class way {
    direct,   // they are consecutive
    same,     // there is one
    turned,   // they are consecutive along columns: a tile is turned at once
    stepped,  // they are a step apart
    pieces,   // rows have several axes
};

// The shape of tiles: the members of `tile_space` whose type does not depend on the room for axes.
struct tile_shape {
    int ndim, row_axes, width, height;
    const long long* length;
};

// Memory for the tiles of operands that are turned, and for the last lines of rows of results.
struct tile_memory {
    static constexpr int bytes_count = tile_bytes + 1024, offsets_count = 1024, lines_count = 256;
    int bytes_used = 0, offsets_used = 0, lines_used = 0;
    alignas(64) char bytes[bytes_count];
    alignas(64) char lines[lines_count * line_bytes];
    unfinished_line unfinished[lines_count];
    long long offsets[offsets_count];
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
    char* corner;     // of the tile
    long long down;   // from row to row
    char* buffer;
    const char* repeated;  // the element that fills so much of the buffer
    int filled;
    char* tile;       // with what is turned
    long long* offsets;    // of the elements of a row
    unfinished_line* unfinished;  // of rows, of which there are so many, and their bytes
    char* lines;
    int unfinished_count;

    GRIDSTRIDE_INLINED long long stride(int __axis) const { return __axis ? strides[__axis] : step; }
    GRIDSTRIDE_INLINED bool is_direct() const { return how == way::direct && !is_streamed; }
    GRIDSTRIDE_INLINED char* row(int __y) const { return corner + __y * down; }
    // Whether the rows of a tile are one.
    GRIDSTRIDE_INLINED bool is_one_row(long long __width) const {
        return how == way::direct ? down == __width * size : how == way::same ? down == 0 : how == way::turned;
    }
    // Elements by which a chunk is shorter, so that the next one begins a line.
    GRIDSTRIDE_INLINED int excess(int __y) const {
        return is_streamed ? int(reinterpret_cast<unsigned long>(row(__y)) % line_bytes / size) : 0;
    }
};

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
    if (__is_consecutive) return __places % __its.alignment == 0 ? way::direct : way::stepped;
    if (__is_repeated) return way::same;
    if (__its.down == __its.size && __tiles.height > 1 && !__its.is_written) return way::turned;
    return __tiles.row_axes == 1 ? way::stepped : way::pieces;
}

// Where an element of a row is, from its first one.
GRIDSTRIDE_INLINED long long offset_in_row(const passage& __its, const tile_shape& __tiles, long long __x) {
    long long __offset = 0;
    for (int __axis = 0; __axis + 1 < __tiles.row_axes; ++__axis) {
        __offset += __x % __tiles.length[__axis] * __its.stride(__axis);
        __x /= __tiles.length[__axis];
    }
    return __offset + __x * __its.stride(__tiles.row_axes - 1);
}

// Take memory for a tile that is turned; without any left its elements are taken one by one.
GRIDSTRIDE_APART void reserve_tile(passage& __its, const tile_shape& __tiles, tile_memory& __memory) {
    const long long __bytes = ((long long)__tiles.width * __tiles.height * __its.size + 16 + 63) / 64 * 64;
    const int __offsets = __tiles.width + columns_ahead(__its.size);  // and of those that come next
    if (__memory.bytes_used + __bytes > tile_memory::bytes_count ||
        __memory.offsets_used + __offsets > tile_memory::offsets_count) {
        __its.how = __tiles.row_axes == 1 ? way::stepped : way::pieces;
        return;
    }
    __its.tile = __memory.bytes + __memory.bytes_used;
    __its.offsets = __memory.offsets + __memory.offsets_used;
    __memory.bytes_used += int(__bytes);
    __memory.offsets_used += __offsets;
    for (int __x = 0; __x < __offsets; ++__x) __its.offsets[__x] = offset_in_row(__its, __tiles, __x);
}

// Take a line for each row of a tile, as far as there are any left, where the next tile goes on with it; one for all
// rows that are whole.
GRIDSTRIDE_APART void reserve_lines(passage& __its, const tile_shape& __tiles, tile_memory& __memory) {
    long long __whole = 1;
    for (int __axis = 0; __axis < __tiles.row_axes; ++__axis) __whole *= __tiles.length[__axis];
    const int __left = tile_memory::lines_count - __memory.lines_used;
    __its.unfinished_count = __tiles.width == __whole ? 1 : smaller(__tiles.height, (__left + 1) / 2);
    __its.unfinished = __memory.unfinished + __memory.lines_used;
    __its.lines = __memory.lines + __memory.lines_used * line_bytes;
    __memory.lines_used += __its.unfinished_count;
    for (int __k = 0; __k < __its.unfinished_count; ++__k) __its.unfinished[__k].line = nullptr;
}
GRIDSTRIDE_APART void finish_lines(const passage& __its) {
    if (!__its.is_streamed) return;
    for (int __k = 0; __k < __its.unfinished_count; ++__k) finish(__its.unfinished[__k], __its.lines + __k * line_bytes);
}

GRIDSTRIDE_APART void settle(passage& __its, const tile_shape& __tiles, bool __is_streamed, tile_memory& __memory) {
    __its.down = __its.strides[__tiles.row_axes];
    __its.how = way_of(__its, __tiles);
    __its.is_streamed = can_stream && __is_streamed && !__its.is_read && __its.how == way::direct &&
                        __memory.lines_used < tile_memory::lines_count;
    if (__its.how == way::turned) reserve_tile(__its, __tiles, __memory);
    if (__its.is_streamed) reserve_lines(__its, __tiles, __memory);
}

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
GRIDSTRIDE_INLINED void gather_ahead(char* __to, const char* __from, long long __step, int __count, long long __left) {
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
template <int __size>
GRIDSTRIDE_INLINED void gather_pieces(const passage& __its, const tile_shape& __tiles, int __y, long long __from,
                                      int __count) {
    const char* const __row = __its.row(__y);
    const int __piece = int(__tiles.length[0]);
    const long long __ahead = rows_ahead * __its.down +
        (__y + rows_ahead < __tiles.height ? 0 : offset_in_row(__its, __tiles, __tiles.width) - __tiles.height * __its.down);
    const long long __length = __tiles.row_axes > 2 ? __tiles.length[1] : __from + __count;
    for (int __done = 0; __done < __count;) {
        // As many pieces as lie one stride apart; the first one may have begun.
        int __begun = int((__from + __done) % __piece);
        const char* __at = __row + offset_in_row(__its, __tiles, __from + __done);
        for (long long __k = (__from + __done) / __piece % __length; __k < __length && __done < __count; ++__k) {
            const int __some = smaller(__piece - __begun, __count - __done);
            char* const __to = __its.buffer + (long long)__done * __size;
            for (int __k = 0; __k < __some * __size; __k += line_bytes) __builtin_prefetch(__at + __ahead + __k);
            if (__its.step == __size)
                copy_short(__to, __at, __some * __size);
            else
                gather_bytes<__size>(__to, __at, __its.step, __some);
            __at += __its.strides[1] - __begun * __its.step;
            __done += __some;
            __begun = 0;
        }
    }
}

// Some elements of a row, consecutive: those of an operand that is not.
template <int __size>
GRIDSTRIDE_APART char* fetched(passage& __its, const tile_shape& __tiles, int __y, int __width, long long __from, int __count) {
    if (__its.how == way::turned) return __its.tile + ((long long)__y * __width + __from) * __size;
    if (__its.is_streamed) {
        const int __line = __y % __its.unfinished_count;
        return __its.buffer + go_on(__its.unfinished[__line], __its.lines + __line * line_bytes, __its.buffer,
                                    __its.row(__y) + __from * __size);
    }
    if (!__its.is_read) return __its.buffer;
    const char* const __row = __its.row(__y);
    if (__its.how == way::same)
        fill<__size>(__its, __row, __count);
    else if (__its.how == way::stepped)
        gather_ahead<__size>(__its.buffer, __row + __from * __its.step, __its.step, __count, __width - __from);
    else
        gather_pieces<__size>(__its, __tiles, __y, __from, __count);
    return __its.buffer;
}
template <int __size>
GRIDSTRIDE_APART void put(const passage& __its, int __y, long long __from, int __count) {
    char* const __row = __its.row(__y);
    if (__its.is_streamed) {
        const int __line = __y % __its.unfinished_count;
        stream(__its.unfinished[__line], __its.lines + __line * line_bytes, __its.buffer, __row + __from * __size,
               (long long)__count * __size);
    } else
        scatter_bytes<__size>(__row + __from * __its.step, __its.step, __its.buffer, __count);
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

// An operand on its way along rows: `items` points to consecutive elements.
template <class __operand, int __buffered>
struct carried : passage {
    typedef __operand operand;
    typedef typename __operand::stored stored;
    static constexpr int bytes = sizeof(stored);

    stored* items;
    alignas(64) char memory[__buffered * bytes + 2 * line_bytes];

    GRIDSTRIDE_INLINED carried(const __operand& __source) {
        data = __source.data;
        step = __source.step;
        strides = __source.strides;
        size = bytes;
        alignment = alignof(stored);
        is_read = __operand::is_read;
        is_written = __operand::is_written;
        buffer = memory;
        repeated = nullptr;
    }
    GRIDSTRIDE_INLINED int turn(int __width, int __height) {
        if (!__operand::is_written && how == way::turned)
            turning<bytes>::run(tile, (long long)__width * bytes, corner, offsets, __width, __height);
        return 0;
    }
    GRIDSTRIDE_INLINED int begin(const tile_shape& __tiles, int __y, int __width, long long __from, int __count) {
        items = is_direct() ? reinterpret_cast<stored*>(row(__y)) + __from
                            : reinterpret_cast<stored*>(fetched<bytes>(*this, __tiles, __y, __width, __from, __count));
        return 0;
    }
    GRIDSTRIDE_INLINED int end(int __y, long long __from, int __count) const {
        if (__operand::is_written && !is_direct()) put<bytes>(*this, __y, __from, __count);
        return 0;
    }
};

// ---- rows ----

template <class __operation, class... __operands>
GRIDSTRIDE_INLINED void run_consecutive(const __operation& __do, long long __number, long long __step, long long __count,
                                        typename __operands::stored* const... __items) {
    if (__step == 1) {
        GRIDSTRIDE_INDEPENDENT
        for (long long __k = 0; __k < __count; ++__k) __do(__number + __k, element<__operands>(__items[__k]).get()...);
    } else {
        GRIDSTRIDE_INDEPENDENT
        for (long long __k = 0; __k < __count; ++__k)
            __do(__number + __k * __step, element<__operands>(__items[__k]).get()...);
    }
}

GRIDSTRIDE_INLINED bool all_of() { return true; }
template <class... __rest>
GRIDSTRIDE_INLINED bool all_of(bool __first, __rest... __others) { return __first && all_of(__others...); }

// A row of a tile, all at once or in chunks.
template <int __buffered, class __operation, class... __carried>
GRIDSTRIDE_INLINED void run_row(const __operation& __do, const tile_shape& __tiles, long long __number, long long __step,
                                int __y, int __width, int __count, __carried&... __all) {
    const bool __are_direct = all_of(__all.is_direct()...);
    int __some = __count;
    if (!__are_direct && __count > __buffered) __some = __buffered - largest(__all.excess(__y)...) % __buffered;
    for (int __from = 0; __from < __count; __from += __some, __some = smaller(__buffered, __count - __from)) {
        swallow(__all.begin(__tiles, __y, __width, __from, __some)...);
        run_consecutive<__operation, typename __carried::operand...>(
            __do, __number + __from * __step, __step, __some, __all.items...);
        swallow(__all.end(__y, __from, __some)...);
    }
}

// ---- tiles ----

// What this block has of so many pieces: as many as any other, but one.
struct share_of_pieces {
    long long first, last;
    GRIDSTRIDE_INLINED share_of_pieces(long long __pieces) {
        const long long __blocks = gridDim.x, __block = blockIdx.x, __share = __pieces / __blocks;
        const long long __more = __pieces % __blocks;
        first = __block * __share + (__block < __more ? __block : __more);
        last = first + __share + (__block < __more);
    }
};

// Take a coordinate of a tile off an index: that along an axis which tiles cut every so many elements.
GRIDSTRIDE_INLINED long long take_off(long long& __index, long long __length, long long __every) {
    const long long __cuts = (__length + __every - 1) / __every, __quotient = __index / __cuts;
    const long long __at = (__index - __quotient * __cuts) * __every;
    __index = __quotient;
    return __at;
}

template <int __buffered, class __operation, int __axes, class... __carried>
GRIDSTRIDE_INLINED void run_tile(const __operation& __do, const tile_space<__axes>& __space, const tile_shape& __tiles,
                                 long long __index, __carried&... __all) {
    long long __number = 0;
    swallow((__all.corner = __all.data)...);
    auto __move = [&](int __axis, long long __at) {
        __number += __at * (__axis ? __space.numbers.strides[__axis] : __space.numbers.step);
        swallow((__all.corner += __at * __all.stride(__axis))...);
        return __space.length[__axis] - __at;
    };
    const int __row = __space.row_axes - 1, __column = __space.row_axes;
    const long long __wide = __move(__row, take_off(__index, __space.length[__row], __space.piece));
    const long long __high = __move(__column, take_off(__index, __space.length[__column], __space.height));
    for (int __axis = __column + 1; __axis < __space.ndim; ++__axis)
        __move(__axis, take_off(__index, __space.length[__axis], 1));
    const int __width = __wide < __space.piece ? __space.width / __space.piece * int(__wide) : __space.width;
    const int __height = __high < __space.height ? int(__high) : __space.height;
    swallow(__all.turn(__width, __height)...);
    const long long __down = __space.numbers.strides[__column], __step = __space.numbers.step;
    const bool __is_one_row = __width == __space.width && __down == __width * __step && all_of(__all.is_one_row(__width)...);
    const int __rows = __is_one_row ? 1 : __height, __count = __is_one_row ? __width * __height : __width;
    const bool __is_narrow = !all_of((__all.how != way::turned)...) && !__is_one_row;
    for (int __y = 0; __y < __rows; ++__y) {
        if (__is_narrow) swallow((fetch_row_ahead(__all, __y, __width, __height), 0)...);
        run_row<__buffered>(__do, __tiles, __number + __y * __down, __step, __y, __width, __count, __all...);
    }
}

template <int __buffered, class __operation, int __axes, class... __carried>
GRIDSTRIDE_INLINED void run_tiles(const __operation& __do, const tile_space<__axes>& __space, __carried&&... __all) {
    const tile_shape __tiles = {__space.ndim, __space.row_axes, __space.width, __space.height, __space.length};
    tile_memory __memory;
    swallow((settle(__all, __tiles, __space.is_streamed, __memory), 0)...);
    // What was just read is in a cache.
    auto __is_read = [&](const char* __at) { return !all_of((__all.data != __at || !__all.is_read)...); };
    swallow((__all.is_streamed = __all.is_streamed && !__is_read(__all.data))...);
    const share_of_pieces __share(__space.tiles);
    for (long long __tile = __share.first; __tile < __share.last; ++__tile)
        run_tile<__buffered>(__do, __space, __tiles, __tile, __all...);
    if (__space.is_streamed) {
        swallow((finish_lines(__all), 0)...);
        finish_streams();
    }
}

template <class __operation, int __axes, class... __operands>
GRIDSTRIDE_INLINED void shared_tiles(const __operation& __do, const tile_space<__axes>& __space,
                                     const __operands&... __all) {
    constexpr int __largest = larger(int(sizeof(typename __operands::stored))...);
    constexpr int __buffered = buffered_up_to<__operands...>(chunk_bytes / __largest);
    run_tiles<__buffered>(__do, __space, carried<__operands, __buffered>(__all)...);
}

}

#endif
