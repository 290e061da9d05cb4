// `fold_turned`: folds of tiles of several inputs, of which some lie along the columns of a tile and others along its rows:
// these turn in shared memory. Columns are results, or folded too.
#ifndef GRIDSTRIDE_FOLD_TURNED_H
#define GRIDSTRIDE_FOLD_TURNED_H

#include <gridstride/fold_parts.h>
#include <gridstride/word_squares.h>

namespace gridstride {

// Rows of a tile, threads that take neighboring packets of its columns, and packets of a thread.
template <int __rows, int __group>
struct turned_shape {
    static constexpr int rows = __rows, group = __group, packets = __rows * __group / fold_threads;
};

// Where a tile begins, and how much of it there is.
struct folded_tile {
    long long row;
    int rows, columns;
};

// A packet on its way: a word, or the words of four or eight bytes in which it lies.
template <class __stored, int __length, bool __is_word>
struct turned_bits : arriving_anywhere<__stored, __length, true> {};
template <class __stored, int __length>
struct turned_bits<__stored, __length, true> : word_of<__stored, __length> {};

// An input of which tiles are taken. `__are_words`: whether all its packets are.
template <class __shape, class __operand, int __length, bool __is_turned, bool __are_words>
struct turned_input {
    typedef __shape shape;
    typedef __operand operand;
    typedef typename __operand::stored stored;
    typedef packet<stored, __length> items;
    static constexpr int size = sizeof(stored), columns = shape::group * __length, count = shape::packets;
    static constexpr int bytes = __is_turned ? shape::rows * columns * size : 0;
    // Neighboring threads bring packets of a line, of which there are so many: those of as many lines as a word of four
    // bytes has elements, whose squares turn.
    static constexpr int of_line = shape::rows / __length, together = of_line < 8 ? of_line : 8;
    static constexpr int lines = size < 4 && __length * size == 16 ? 4 / size : 1;
    const __operand& source;
    const char* base;
    char* memory;
    turned_bits<stored, __length, __are_words> words[count];
    items packets[1];

    GRIDSTRIDE_INLINED turned_input(const __operand& __source) : source(__source), base(__source.data), memory(nullptr) {}
    GRIDSTRIDE_INLINED char* place_in(char* __shared) {
        memory = __shared;
        return __shared + bytes;
    }
    // Of the packet that a thread brings, which packet of a line it is where these turn, or which row, and the column.
    static GRIDSTRIDE_INLINED int along(int __k) {
        if (!__is_turned) return (threadIdx.x + __k * fold_threads) / shape::group;
        const int __packet = threadIdx.x + __k / lines * fold_threads;
        return __packet % together + __packet / (together * (columns / lines)) * together;
    }
    static GRIDSTRIDE_INLINED int column(int __k) {
        if (!__is_turned) return threadIdx.x % shape::group * __length;
        return (threadIdx.x + __k / lines * fold_threads) / together % (columns / lines) * lines + __k % lines;
    }
    GRIDSTRIDE_INLINED const char* at(int __k, long long __row) const {
        return base + column(__k) * source.step + (__row + along(__k) * (__is_turned ? __length : 1)) * source.strides[0];
    }
    // Where an element of a packet of a line is: those that neighbors store, and packets that they take, are in other banks.
    GRIDSTRIDE_INLINED char* place(int __packet, int __j, int __column) const {
        constexpr int __beside = larger(1, 32 / together * lines / __length);  // packets that a warp stores into in a row
        const int __at = (__column / __length) ^ (__packet * __beside % 8);
        return memory + ((__packet * __length + __j) * columns + __at * __length + __column % __length) * size;
    }
    GRIDSTRIDE_INLINED void store(int __k) {
#pragma unroll
        for (int __j = 0; __j < __length; ++__j)
            copy(*reinterpret_cast<stored*>(place(along(__k), __j, column(__k))), packets[0].items[__j]);
    }
    // The packets of several lines.
    GRIDSTRIDE_INLINED void store_lines(int __first) {
        constexpr int __words = __length * size / 4;
        unsigned __bits[lines][larger(1, __words)];
#pragma unroll
        for (int __line = 0; __line < lines; ++__line) {
            words[__first + __line].unpack(packets[0]);
            memcpy(__bits[__line], &packets[0], 4 * __words);
        }
#pragma unroll
        for (int __w = 0; __w < __words; ++__w) {
            unsigned __square[lines];
#pragma unroll
            for (int __line = 0; __line < lines; ++__line) __square[__line] = __bits[__line][__w];
            turn_words(__square);
#pragma unroll
            for (int __j = 0; __j < lines; ++__j)
                *reinterpret_cast<unsigned*>(place(along(__first), __w * lines + __j, column(__first))) = __square[__j];
        }
    }
    // The elements of a packet that there are, one after another: this happens at the ends of rows.
    GRIDSTRIDE_INLINED void load_some(int __k, const folded_tile& __tile) {
        const int __left = __is_turned ? __tile.rows - along(__k) * __length : __tile.columns - column(__k);
        const long long __step = __is_turned ? source.strides[0] : source.step;
        const char* const __from = at(__k, __tile.row);
        if (__is_turned ? column(__k) < __tile.columns : along(__k) < __tile.rows)
#pragma unroll
            for (int __j = 0; __j < __length; ++__j)
                if (__j < __left) copy(packets[0].items[__j], *reinterpret_cast<const stored*>(__from + __j * __step));
    }

    // Load the packets of a tile: rows, of which the one before was taken, and lines.
    GRIDSTRIDE_INLINED int load_row(int __k, long long __row) {
        if (!__is_turned) words[__k].load(at(__k, __row));
        return 0;
    }
    GRIDSTRIDE_INLINED int load_lines(long long __row) {
        if (__is_turned)
#pragma unroll
            for (int __k = 0; __k < count; ++__k) words[__k].load(at(__k, __row));
        return 0;
    }
    GRIDSTRIDE_INLINED int turn() {
        if (__is_turned)
#pragma unroll
            for (int __k = 0; __k < count; __k += lines) {
                if (lines > 1) {
                    store_lines(__k);
                } else {
                    words[__k].unpack(packets[0]);
                    store(__k);
                }
            }
        return 0;
    }
    GRIDSTRIDE_INLINED int turn_some(int __k, const folded_tile& __tile) {
        if (__is_turned) {
            load_some(__k, __tile);
            store(__k);
        }
        return 0;
    }
    // The packet of a thread's row.
    GRIDSTRIDE_INLINED int take_turned(int __k) {
        const int __packet = threadIdx.x + __k * fold_threads, __row = __packet / shape::group;
        whole<__length, stored>::load(packets[0], place(__row / __length, __row % __length, __packet % shape::group * __length));
        return 0;
    }
    GRIDSTRIDE_INLINED int take(int __k) {
        if (__is_turned) return take_turned(__k);
        words[__k].unpack(packets[0]);
        return 0;
    }
    GRIDSTRIDE_INLINED int take_some(int __k, const folded_tile& __tile) {
        if (__is_turned) return take_turned(__k);
        load_some(__k, __tile);
        return 0;
    }
};

template <class __shape, bool __is_whole, int __length, class __folding, class __map, class __reduce, class... __inputs>
GRIDSTRIDE_INLINED void add_row_of_tile(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__length],
                                        const folded_tile& __tile, __inputs&... __all) {
    const int __column = threadIdx.x % __shape::group * __length;
#pragma unroll
    for (int __j = 0; __j < __length; ++__j)
        if (__is_whole || __column + __j < __tile.columns)
            __sums[__j].add(__do, __do_map(0, 0, item_of<typename __inputs::operand>(__all.packets[0], __j)...));
}

// The tiles of which all is there, down to a row: the next one is on its way while one is folded.
template <class __shape, int __length, class __folding, class __map, class __reduce, class... __inputs>
GRIDSTRIDE_INLINED void add_whole_tiles(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__length],
                                        folded_tile& __tile, long long __end, __inputs&... __all) {
    swallow(__all.load_lines(__tile.row)...);
#pragma unroll
    for (int __k = 0; __k < __shape::packets; ++__k) swallow(__all.load_row(__k, __tile.row)...);
#pragma unroll 1
    while (__tile.row < __end) {
        swallow(__all.turn()...);
        __syncthreads();
        __tile.row += __shape::rows;
        if (__tile.row < __end) swallow(__all.load_lines(__tile.row)...);
#pragma unroll
        for (int __k = 0; __k < __shape::packets; ++__k) {
            swallow(__all.take(__k)...);
            if (__tile.row < __end) swallow(__all.load_row(__k, __tile.row)...);
            add_row_of_tile<__shape, true>(__do_map, __do, __sums, __tile, __all...);
        }
        __syncthreads();
    }
}
template <class __shape, int __length, class __folding, class __map, class __reduce, class... __inputs>
GRIDSTRIDE_INLINED void add_tile_at_end(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__length],
                                        const folded_tile& __tile, __inputs&... __all) {
#pragma unroll 1
    for (int __k = 0; __k < __shape::packets; ++__k) swallow(__all.turn_some(__k, __tile)...);
    __syncthreads();
#pragma unroll 1
    for (int __k = 0; __k < __shape::packets; ++__k) {
        if (int(threadIdx.x) / __shape::group + __k * (fold_threads / __shape::group) >= __tile.rows) break;
        swallow(__all.take_some(__k, __tile)...);
        add_row_of_tile<__shape, false>(__do_map, __do, __sums, __tile, __all...);
    }
}

__device__ constexpr int turned_bytes() { return 0; }
template <class... __rest>
__device__ constexpr int turned_bytes(int __first, __rest... __others) { return __first + turned_bytes(__others...); }
GRIDSTRIDE_INLINED void place_turned(char*) {}
template <class __first, class... __rest>
GRIDSTRIDE_INLINED void place_turned(char* __shared, __first& __one, __rest&... __others) {
    place_turned(__one.place_in(__shared), __others...);
}

template <class __shape, bool __folds_columns, int __length, class __folding, class __map, class __reduce, class __finish, int __axes, class... __inputs>
GRIDSTRIDE_INLINED void fold_tiles(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                   const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                   __inputs&&... __all) {
    constexpr int __columns = __shape::group * __length;
    // Where columns are folded, parts are those of rows too, `width` beside each other.
    int __part = blockIdx.y;
    long long __outer = blockIdx.x, __stretch = 0;
    if (__folds_columns) {
        __stretch = __part % int(__space.width);
        __part /= int(__space.width);
        settle(__space, __outer, 0, __all...);
    } else {
        __outer *= __shape::group;
        __stretch = __outer;
        if (__space.kept.ndim > 1) __stretch = taken_off(__space.kept, __outer, 0);
        else __outer = 0;
        __stretch /= __shape::group;
        settle(__space, __outer, 1, __all...);
    }
    const long long __rows = __folds_columns ? __space.fold.length[0] : __space.fold.count;
    const long long __left = (__folds_columns ? __space.fold.length[1] : __space.kept_row) - __stretch * __columns;
    swallow((__all.base += __stretch * __columns * __all.source.step)...);
    place_turned(__shared, __all...);
    folded_tile __tile;
    __tile.row = __part * __space.part;
    __tile.columns = __left < __columns ? int(__left) : __columns;
    const long long __end = __tile.row + __space.part < __rows ? __tile.row + __space.part : __rows;
    __folding __sums[__length];
#pragma unroll
    for (int __j = 0; __j < __length; ++__j) __sums[__j] = __start;
    const long long __whole = __tile.columns == __columns ? (__end - __tile.row) / __shape::rows * __shape::rows : 0;
    if (__whole > 0) add_whole_tiles<__shape>(__do_map, __do, __sums, __tile, __tile.row + __whole, __all...);
    for (; __tile.row < __end; __tile.row += __shape::rows) {
        __tile.rows = __end - __tile.row < __shape::rows ? int(__end - __tile.row) : __shape::rows;
        add_tile_at_end<__shape>(__do_map, __do, __sums, __tile, __all...);
        __syncthreads();
    }
    if (__folds_columns) {
        join_own(__do, __sums);
        join_group(__do, __sums[0], fold_threads, __shared);
        if (threadIdx.x == 0) __do_finish(static_cast<long long>(blockIdx.x), int(blockIdx.y), __sums[0]);
    } else {
        join_columns(__do, __sums, __shape::group, int(threadIdx.x) / __shape::group, fold_threads / __shape::group, __shared);
        hand_over(__do_finish, __sums, __space, __shared);
    }
}

template <int __rows, int __group, bool __folds_columns, bool __are_words, bool... __are_turned>
struct fold_turned {
    typedef turned_shape<__rows, __group> shape;
    template <class __folding, class... __inputs>
    static __device__ constexpr int shared_bytes() {
        constexpr int __length = packet_length<__inputs...>();
        return larger(fold_bytes<__folding, __inputs...>(), turned_bytes(turned_input<shape, __inputs, __length, __are_turned, __are_words>::bytes...));
    }
    template <class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands>
    static GRIDSTRIDE_INLINED void fold(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                        const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                        const __operands&... __inputs) {
        constexpr int __length = packet_length<__operands...>();
        fold_tiles<shape, __folds_columns, __length>(__do_map, __do, __do_finish, __start, __space, __shared,
                                              turned_input<shape, __operands, __length, __are_turned, __are_words>(__inputs)...);
    }
};

}

#endif
