// Loops over elements: `rows`, in which threads take packets of the innermost axis, and `tiles`, in which operands
// that lie along another axis are turned in shared memory.
//
// The operation is called as operation(number of the element, element of each operand...).
#ifndef GRIDSTRIDE_ELEMENTWISE_H
#define GRIDSTRIDE_ELEMENTWISE_H

#include <gridstride/packets.h>

namespace gridstride {

constexpr int block_threads = 256;

// What a thread holds of an operand: a packet of it and where its row starts.
template <class __operand, int __length>
struct staged {
    typedef __operand operand;
    typedef typename __operand::stored stored;

    const __operand& source;
    char* row;
    word_of<stored, __length> whole_word;
    packet<stored, __length> items;

    GRIDSTRIDE_INLINED staged(const __operand& __source) : source(__source), row(__source.data) {}
    // How many elements before the start of a row the packet starts that ends at a multiple of its size.
    GRIDSTRIDE_INLINED int phase() const {
        if (source.step != sizeof(stored) || !is_one_word<stored, __length>::value) return 0;
        return reinterpret_cast<unsigned long long>(row) / sizeof(stored) % __length;
    }
    GRIDSTRIDE_INLINED char* at(long long __element) const {
        return row + __element * static_cast<long long>(sizeof(stored));
    }
    GRIDSTRIDE_INLINED bool is_word(long long __element) const {
        return word_of<stored, __length>::is_at(at(__element), source.step);
    }
    GRIDSTRIDE_INLINED int load_word(long long __element) { return __operand::is_read ? whole_word.load(at(__element)) : 0; }
    GRIDSTRIDE_INLINED int unpack() { return __operand::is_read ? whole_word.unpack(items) : 0; }
    GRIDSTRIDE_INLINED int store_word(long long __element) const {
        if (__operand::is_written) whole<__length, stored>::store(items, at(__element));
        return 0;
    }
    GRIDSTRIDE_INLINED int load(long long __element, int __first, int __last) {
        if (__operand::is_read)
            load_packet<__length>(items, row + __element * source.step, source.step, __first, __last);
        return 0;
    }
    GRIDSTRIDE_INLINED int store(long long __element, int __first, int __last) const {
        if (__operand::is_written)
            store_packet<__length>(items, row + __element * source.step, source.step, __first, __last);
        return 0;
    }
};

// The phase of the last operand, an output where there is one.
GRIDSTRIDE_INLINED int last_phase() { return 0; }
template <class __only>
GRIDSTRIDE_INLINED int last_phase(const __only& __last) { return __last.phase(); }
template <class __first, class __second, class... __rest>
GRIDSTRIDE_INLINED int last_phase(const __first&, const __second& __next, const __rest&... __others) {
    return last_phase(__next, __others...);
}

template <int __length, class __operation, int __axes, class... __staged>
GRIDSTRIDE_INLINED void run_packet(const __operation& __do, const element_space<__axes>& __space, long long __packet,
                                   __staged&&... __all) {
    const axes<__axes>& __outer = __space.outer;
    const numbering<__axes>& __numbers = __space.numbers;
    long long __rest = __packet, __within = __packet, __number = 0;
    if (__outer.ndim > 1) {
        __within = taken_off(__outer, __rest, 0);
#pragma unroll
        for (int __axis = 1; __axis < __axes; ++__axis) {
            if (__axis >= __outer.ndim) break;
            const long long __at = __axis + 1 < __outer.ndim ? taken_off(__outer, __rest, __axis) : __rest;
            __number += __at * __numbers.strides[__axis];
            swallow((__all.row += __at * __all.source.strides[__axis])...);
        }
    }
    const long long __element = __within * __length - last_phase(__all...);
    const long long __left = __space.row - __element;
    __number += __element * __numbers.step;
    if (__element >= 0 && __left >= __length && all_of(__all.is_word(__element)...)) {
        swallow(__all.load_word(__element)...);
        swallow(__all.unpack()...);
#pragma unroll
        for (int __j = 0; __j < __length; ++__j)
            __do(__number + __j * __numbers.step, element<typename __staged::operand>(__all.items.items[__j]).get()...);
        swallow(__all.store_word(__element)...);
        return;
    }
    if (__element >= 0 && __left >= __length) {  // without a question for each element
        swallow(__all.load(__element, 0, __length)...);
#pragma unroll
        for (int __j = 0; __j < __length; ++__j)
            __do(__number + __j * __numbers.step, element<typename __staged::operand>(__all.items.items[__j]).get()...);
        swallow(__all.store(__element, 0, __length)...);
        return;
    }
    const int __first = __element < 0 ? int(-__element) : 0, __last = __left < __length ? int(__left) : __length;
    swallow(__all.load(__element, __first, __last)...);
#pragma unroll
    for (int __j = 0; __j < __length; ++__j)
        if (__j >= __first && __j < __last)
            __do(__number + __j * __numbers.step, element<typename __staged::operand>(__all.items.items[__j]).get()...);
    swallow(__all.store(__element, __first, __last)...);
}

template <class __operation, int __axes, class... __operands>
GRIDSTRIDE_INLINED void rows(const __operation& __do, const element_space<__axes>& __space,
                             const __operands&... __all) {
    constexpr int __length = packet_length<__operands...>();
    const long long __packet = static_cast<long long>(blockIdx.x) * block_threads + threadIdx.x;
    if (__packet < __space.outer.count) run_packet<__length>(__do, __space, __packet, staged<__operands, __length>(__all)...);
}

// ---- tiles ----

// Small elements are handled in words of as many as make four bytes. A tile has 32 by 32 squares of a word's length.
template <class... __operands>
__device__ constexpr int word_length() {
    return larger(int(sizeof(typename __operands::stored))...) == 1   ? 4
           : larger(int(sizeof(typename __operands::stored))...) == 2 ? 2
                                                                      : 1;
}

constexpr int tile_squares = 32, rows_at_once = block_threads / tile_squares;

// What a thread holds of an operand: words of the tile's rows `threadIdx.x / 32`, that and `rows_at_once`, and so on.
// An operand that lies along the other axis is read along that one; its squares are turned in registers, and
// exchanged between the threads in shared memory.
template <class __operand, int __length>
struct tile_part {
    typedef __operand operand;
    typedef typename __operand::stored stored;
    typedef packet<stored, __length> word;
    typedef word square_row[tile_squares][tile_squares + 1];
    static constexpr int count = __length * tile_squares / rows_at_once;

    const __operand& source;
    char* corner;
    word words[count];

    GRIDSTRIDE_INLINED tile_part(const __operand& __source) : source(__source), corner(__source.data) {}

    GRIDSTRIDE_INLINED bool is_turned() const {
        const long long __down = source.strides[0] < 0 ? -source.strides[0] : source.strides[0];
        const long long __across = source.step < 0 ? -source.step : source.step;
        return __down != 0 && __down < __across;
    }
    static GRIDSTRIDE_INLINED int limited(long long __left) {
        return __left < 0 ? 0 : __left < __length ? int(__left) : __length;
    }

    // Whether the tile is inside the array, and its words can be loaded and stored as such.
    GRIDSTRIDE_INLINED bool is_whole(long long __width, long long __height) const {
        constexpr int __bytes = sizeof(word);
        const long long __down = source.strides[0], __across = source.step;
        const long long __along = is_turned() ? __down : __across, __between = is_turned() ? __across : __down;
        return __width >= tile_squares * __length && __height >= tile_squares * __length && is_one_word<stored, __length>::value &&
               __along == sizeof(stored) && __between % __bytes == 0 &&
               reinterpret_cast<unsigned long long>(corner) % __bytes == 0;
    }
    GRIDSTRIDE_INLINED void load_whole(word& __to, const char* __at) const { whole<__length, stored>::load(__to, __at); }

    // The words of a whole tile, along the rows of the memory.
    GRIDSTRIDE_INLINED void load_lines(char* __shared) {
        const int __x = threadIdx.x % tile_squares, __y = threadIdx.x / tile_squares;
        square_row* __tile = reinterpret_cast<square_row*>(__shared);
        word __lines[tile_squares / rows_at_once][__length];
        const char* __at = corner + __y * __length * source.step + __x * __length * source.strides[0];
        __syncthreads();
#pragma unroll
        for (int __square = 0; __square < tile_squares / rows_at_once; ++__square)
#pragma unroll
            for (int __r = 0; __r < __length; ++__r)
                load_whole(__lines[__square][__r], __at + (__square * rows_at_once * __length + __r) * source.step);
#pragma unroll
        for (int __square = 0; __square < tile_squares / rows_at_once; ++__square)
#pragma unroll
            for (int __c = 0; __c < __length; ++__c) {
                word __turned;
#pragma unroll
                for (int __r = 0; __r < __length; ++__r) __turned.items[__r] = __lines[__square][__r].items[__c];
                __tile[__c][__x][__y + __square * rows_at_once] = __turned;
            }
        __syncthreads();
#pragma unroll
        for (int __k = 0; __k < count; ++__k) {
            const int __row = __y + __k * rows_at_once;
            words[__k] = __tile[__row % __length][__row / __length][__x];
        }
    }

    GRIDSTRIDE_INLINED int load(char* __shared, long long __width, long long __height) {
        if (!__operand::is_read) return 0;
        const long long __down = source.strides[0], __across = source.step;
        const int __x = threadIdx.x % tile_squares, __y = threadIdx.x / tile_squares;
        const bool __is_whole = is_whole(__width, __height);
        if (__is_whole && is_turned()) {
            load_lines(__shared);
        } else if (__is_whole) {
            const char* __at = corner + __y * __down + __x * __length * __across;
#pragma unroll
            for (int __k = 0; __k < count; ++__k) load_whole(words[__k], __at + __k * rows_at_once * __down);
        } else if (is_turned()) {
            square_row* __tile = reinterpret_cast<square_row*>(__shared);
            __syncthreads();
#pragma unroll
            for (int __square = 0; __square < tile_squares / rows_at_once; ++__square) {
                const int __column = __y + __square * rows_at_once;
                word __lines[__length];
#pragma unroll
                for (int __r = 0; __r < __length; ++__r)
                    if (__column * __length + __r < __width)
                        load_packet<__length>(
                            __lines[__r], corner + (__column * __length + __r) * __across + __x * __length * __down, __down,
                            0, limited(__height - __x * __length));
#pragma unroll
                for (int __c = 0; __c < __length; ++__c) {
                    word __turned;
#pragma unroll
                    for (int __r = 0; __r < __length; ++__r) __turned.items[__r] = __lines[__r].items[__c];
                    __tile[__c][__x][__column] = __turned;
                }
            }
            __syncthreads();
#pragma unroll
            for (int __k = 0; __k < count; ++__k) {
                const int __row = __y + __k * rows_at_once;
                words[__k] = __tile[__row % __length][__row / __length][__x];
            }
        } else {
#pragma unroll
            for (int __k = 0; __k < count; ++__k) {
                const int __row = __y + __k * rows_at_once;
                if (__row < __height)
                    load_packet<__length>(words[__k], corner + __row * __down + __x * __length * __across, __across, 0,
                                          limited(__width - __x * __length));
            }
        }
        return 0;
    }

    GRIDSTRIDE_INLINED int store(char* __shared, long long __width, long long __height) {
        if (!__operand::is_written) return 0;
        const long long __down = source.strides[0], __across = source.step;
        const int __x = threadIdx.x % tile_squares, __y = threadIdx.x / tile_squares;
        if (!is_turned() && is_whole(__width, __height)) {
            char* __at = corner + __y * __down + __x * __length * __across;
#pragma unroll
            for (int __k = 0; __k < count; ++__k)
                whole<__length, stored>::store(words[__k], __at + __k * rows_at_once * __down);
        } else if (is_turned()) {
            square_row* __tile = reinterpret_cast<square_row*>(__shared);
            __syncthreads();
#pragma unroll
            for (int __k = 0; __k < count; ++__k) {
                const int __row = __y + __k * rows_at_once;
                __tile[__row % __length][__row / __length][__x] = words[__k];
            }
            __syncthreads();
#pragma unroll
            for (int __square = 0; __square < tile_squares / rows_at_once; ++__square) {
                const int __column = __y + __square * rows_at_once;
                word __lines[__length];
#pragma unroll
                for (int __c = 0; __c < __length; ++__c) {
                    const word __turned = __tile[__c][__x][__column];
#pragma unroll
                    for (int __r = 0; __r < __length; ++__r) __lines[__r].items[__c] = __turned.items[__r];
                }
#pragma unroll
                for (int __r = 0; __r < __length; ++__r)
                    if (__column * __length + __r < __width)
                        store_packet<__length>(
                            __lines[__r], corner + (__column * __length + __r) * __across + __x * __length * __down, __down,
                            0, limited(__height - __x * __length));
            }
        } else {
#pragma unroll
            for (int __k = 0; __k < count; ++__k) {
                const int __row = __y + __k * rows_at_once;
                if (__row < __height)
                    store_packet<__length>(words[__k], corner + __row * __down + __x * __length * __across, __across, 0,
                                           limited(__width - __x * __length));
            }
        }
        return 0;
    }
};

template <int __length, class __operation, int __axes, class... __parts>
GRIDSTRIDE_INLINED void run_tile(const __operation& __do, const element_space<__axes>& __space, char* __shared,
                                 __parts&&... __all) {
    // Axis 0 counts the tiles along a row, axis 1 those down the columns, the others are walked one by one.
    constexpr int __edge = tile_squares * __length, __count = __edge / rows_at_once;
    const numbering<__axes>& __numbers = __space.numbers;
    long long __rest = blockIdx.x, __number = 0;
    const long long __tile_x = taken_off(__space.outer, __rest, 0);
    const long long __tile_y = __space.outer.ndim > 2 ? taken_off(__space.outer, __rest, 1) : __rest;
#pragma unroll
    for (int __axis = 2; __axis < __axes; ++__axis) {
        if (__axis >= __space.outer.ndim) break;
        const long long __at = __axis + 1 < __space.outer.ndim ? taken_off(__space.outer, __rest, __axis) : __rest;
        __number += __at * __numbers.strides[__axis];
        swallow((__all.corner += __at * __all.source.strides[__axis])...);
    }
    const long long __x0 = __tile_x * __edge, __y0 = __tile_y * __edge;
    swallow((__all.corner += __x0 * __all.source.step + __y0 * __all.source.strides[0])...);
    const int __x = threadIdx.x % tile_squares * __length, __y = threadIdx.x / tile_squares;
    __number += (__x0 + __x) * __numbers.step + __y0 * __numbers.strides[0];
    const long long __width = __space.row - __x0, __height = __space.column - __y0;
    swallow(__all.load(__shared, __width, __height)...);
    if (__width >= __edge && __height >= __edge) {
#pragma unroll
        for (int __k = 0; __k < __count; ++__k)
#pragma unroll
            for (int __j = 0; __j < __length; ++__j)
                __do(__number + (__y + __k * rows_at_once) * __numbers.strides[0] + __j * __numbers.step,
                     element<typename __parts::operand>(__all.words[__k].items[__j]).get()...);
        swallow(__all.store(__shared, __width, __height)...);
        return;
    }
#pragma unroll
    for (int __k = 0; __k < __count; ++__k) {
        const int __row = __y + __k * rows_at_once;
#pragma unroll
        for (int __j = 0; __j < __length; ++__j)
            if (__x + __j < __width && __row < __height)
                __do(__number + __row * __numbers.strides[0] + __j * __numbers.step,
                     element<typename __parts::operand>(__all.words[__k].items[__j]).get()...);
    }
    swallow(__all.store(__shared, __width, __height)...);
}

// The shared memory that `tiles` is handed.
template <class... __operands>
__device__ constexpr int tile_bytes() {
    return word_length<__operands...>() * word_length<__operands...>() *
           larger(int(sizeof(typename __operands::stored))...) * tile_squares * (tile_squares + 1);
}

template <class __operation, int __axes, class... __operands>
GRIDSTRIDE_INLINED void tiles(const __operation& __do, const element_space<__axes>& __space, char* __shared,
                              const __operands&... __all) {
    constexpr int __length = word_length<__operands...>();
    run_tile<__length>(__do, __space, __shared, tile_part<__operands, __length>(__all)...);
}

}

#endif
