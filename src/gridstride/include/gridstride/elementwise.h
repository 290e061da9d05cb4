// Loops over elements: `rows`, in which threads take packets of the innermost axis, and `tiles`, in which operands
// that lie along another axis are turned in shared memory.
//
// The operation is called as operation(number of the element, element of each operand...).
#ifndef GRIDSTRIDE_ELEMENTWISE_H
#define GRIDSTRIDE_ELEMENTWISE_H

#include <gridstride/packets.h>

namespace gridstride {

constexpr int block_threads = 256;

// What a thread holds of an operand: `__count` packets and where they are.
template <class __operand, int __length, int __count>
struct staged {
    typedef __operand operand;
    typedef typename __operand::stored stored;

    const __operand& source;
    long long offsets[__count];
    packet<stored, __length> packets[__count];

    GRIDSTRIDE_INLINED staged(const __operand& __source) : source(__source) {}
    GRIDSTRIDE_INLINED char* at(int __k, long long __element) const {
        return source.data + offsets[__k] + __element * source.step;
    }
    // How many elements before the start of a row the packet starts that ends at a multiple of its size.
    GRIDSTRIDE_INLINED int phase(int __k) const {
        if (source.step != sizeof(stored) || !is_one_word<stored, __length>::value) return 0;
        return reinterpret_cast<unsigned long long>(source.data + offsets[__k]) / sizeof(stored) % __length;
    }
    GRIDSTRIDE_INLINED int load(int __k, long long __element, int __first, int __last) {
        if (__operand::is_read)
            load_packet<__length>(packets[__k], at(__k, __element), source.step, __first, __last);
        return 0;
    }
    GRIDSTRIDE_INLINED int store(int __k, long long __element, int __first, int __last) const {
        if (__operand::is_written)
            store_packet<__length>(packets[__k], at(__k, __element), source.step, __first, __last);
        return 0;
    }
};

// The phase of the last operand, an output where there is one.
GRIDSTRIDE_INLINED int phase_of(int) { return 0; }
template <class __only>
GRIDSTRIDE_INLINED int phase_of(int __k, const __only& __last) { return __last.phase(__k); }
template <class __first, class... __rest>
GRIDSTRIDE_INLINED int phase_of(int __k, const __first&, const __rest&... __others) { return phase_of(__k, __others...); }

template <int __length, int __count, class __operation, int __axes, class... __staged>
GRIDSTRIDE_INLINED void run_packets(const __operation& __do, const axes<__axes>& __space, long long __row_length,
                                    const numbering<__axes>& __numbers, long long __first_packet, long long __packet_step,
                                    __staged&&... __operands) {
    long long __element[__count], __number[__count];
    int __first[__count], __last[__count];
#pragma unroll
    for (int __k = 0; __k < __count; ++__k) {
        const long long __packet = __first_packet + __k * __packet_step;
        long long __rest = __packet, __within = __packet;
        __number[__k] = 0;
        swallow((__operands.offsets[__k] = 0)...);
        if (__space.ndim > 1) {
            __within = taken_off(__space, __rest, 0);
#pragma unroll
            for (int __axis = 1; __axis < __axes; ++__axis) {
                if (__axis >= __space.ndim) break;
                const long long __at = __axis + 1 < __space.ndim ? taken_off(__space, __rest, __axis) : __rest;
                __number[__k] += __at * __numbers.strides[__axis];
                swallow((__operands.offsets[__k] += __at * __operands.source.strides[__axis])...);
            }
        }
        __element[__k] = __within * __length - phase_of(__k, __operands...);
        __number[__k] += __element[__k] * __numbers.step;
        const long long __left = __row_length - __element[__k];
        __first[__k] = __element[__k] < 0 ? int(-__element[__k]) : 0;
        __last[__k] = __packet >= __space.count ? 0 : __left < __length ? int(__left) : __length;
    }
#pragma unroll
    for (int __k = 0; __k < __count; ++__k)
        swallow(__operands.load(__k, __element[__k], __first[__k], __last[__k])...);
#pragma unroll
    for (int __k = 0; __k < __count; ++__k) {
#pragma unroll
        for (int __j = 0; __j < __length; ++__j)
            if (__j >= __first[__k] && __j < __last[__k])
                __do(__number[__k] + __j * __numbers.step,
                     element<typename __staged::operand>(__operands.packets[__k].items[__j]).get()...);
        swallow(__operands.store(__k, __element[__k], __first[__k], __last[__k])...);
    }
}

template <int __count, class __operation, int __axes, class... __operands>
GRIDSTRIDE_INLINED void rows(const __operation& __do, const element_space<__axes>& __space,
                             const __operands&... __all) {
    constexpr int __length = packet_length<__operands...>();
    const long long __first = static_cast<long long>(blockIdx.x) * (block_threads * __count) + threadIdx.x;
    run_packets<__length, __count>(__do, __space.outer, __space.row, __space.numbers, __first, block_threads,
                                   staged<__operands, __length, __count>(__all)...);
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

    GRIDSTRIDE_INLINED int load(char* __shared, long long __width, long long __height) {
        if (!__operand::is_read) return 0;
        const long long __down = source.strides[0], __across = source.step;
        const int __x = threadIdx.x % tile_squares, __y = threadIdx.x / tile_squares;
        if (is_turned()) {
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
        if (is_turned()) {
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
