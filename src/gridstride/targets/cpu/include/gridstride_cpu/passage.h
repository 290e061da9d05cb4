// What is known of an operand on its way through a tile: how its elements get to where they are consecutive.
#ifndef GRIDSTRIDE_CPU_PASSAGE_H
#define GRIDSTRIDE_CPU_PASSAGE_H

#include <gridstride_cpu/chunks.h>
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
    int ndim, row_axes, width, height, depth, stacked;
    const long long* length;
};

// Where a tile is, and how its rows are run, of which several may be one.
struct found_tile {
    long long number;  // of its first element
    int width, height, depth;
    int above;         // rows of the tiles of its stack that come before it
};
struct tile_place {
    long long at[2];  // along the last axis of rows and that of columns
    int above;
};
struct tile_rows {
    int count, rows, layers;  // elements, rows of each layer
    bool are_narrow;          // and lie apart
};

// Memory for the tiles of operands that are turned, and for the last lines of rows of results.
struct tile_memory {
    static constexpr int bytes_count = tile_bytes + 2 * chunk_bytes, offsets_count = 1024, lines_count = 512;
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
        __bytes = (__bytes + line_bytes - 1) / line_bytes * line_bytes;
        if (bytes_used + __bytes <= bytes_count) {
            bytes_used += int(__bytes);
            return bytes + bytes_used - __bytes;
        }
        if (more_used + __bytes > more_count) return nullptr;
        if (!more) more = static_cast<char*>(__builtin_malloc(more_count + line_bytes));
        if (!more) return nullptr;
        more_used += __bytes;
        return more + (line_bytes - reinterpret_cast<unsigned long>(more) % line_bytes) + more_used - __bytes;
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
    bool is_streamed, is_stacked;
    char* corner;     // of the layer
    int layers_done;
    int above;        // rows, as in `found_tile`
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

    template <class __operand>
    GRIDSTRIDE_INLINED void follow(const __operand& __source, char* __memory) {
        typedef typename __operand::stored stored;
        data = next = __source.data;
        step = __source.step;
        strides = __source.strides;
        size = sizeof(stored);
        alignment = alignof(stored);
        is_read = __operand::is_read;
        is_written = __operand::is_written;
        buffer = __memory;
        repeated = nullptr;
    }
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
    // Find a tile's corner, from the first element's, and stand there.
    GRIDSTRIDE_INLINED int start() { return next = data, 0; }
    GRIDSTRIDE_INLINED int move(int __axis, long long __steps) { return next += __steps * stride(__axis), 0; }
    GRIDSTRIDE_INLINED int stand(int __above) {
        corner = next;
        layers_done = 0;
        above = __above;
        return 0;
    }
    GRIDSTRIDE_INLINED int go_deeper() {
        corner += deep;
        layer += layer_bytes;
        ++layers_done;
        return 0;
    }
    GRIDSTRIDE_INLINED int fetch_ahead(int __y, long long __from, int __count) const {
        if (is_read && how == way::direct)
            for (int __k = 0; __k < __count * size; __k += line_bytes)
                __builtin_prefetch(row(__y) + __from * size + bytes_ahead + __k);
        return 0;
    }
    // Which line waits for what follows a row.
    GRIDSTRIDE_INLINED int line_of(int __y, const tile_shape& __tiles) const { return (above + __y + layers_done * __tiles.height) % unfinished_count; }
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

}

#endif
