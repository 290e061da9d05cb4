// `tiles`: a loop over elements in which operands that lie along other axes than the result are turned in shared memory.
//
// Tiles have two sides, `x` along the result and `y` along the other operands. Each side is one axis of the walk or two
// of which the inner one is short. In `element_space`, `row` and `column` are the lengths of the sides, `outer` has the
// numbers of tiles along each, the lengths of the sides' inner axes, and then the axes that are walked one by one. An
// operand's strides are `step` along the inner axis of x, `strides[0]` along that of y, `strides[1]` and `strides[2]`
// along the outer ones.
#ifndef GRIDSTRIDE_TILES_H
#define GRIDSTRIDE_TILES_H

#include <gridstride/packets.h>

namespace gridstride {

constexpr int tile_threads = 256;

// Small elements are handled in words of as many as make four bytes. A tile has 32 by 32 squares of a word's length;
// 64 by 64 of elements of four bytes, which are words of their own.
template <class... __operands>
__device__ constexpr int word_length() {
    return larger(int(sizeof(typename __operands::stored))...) == 1   ? 4
           : larger(int(sizeof(typename __operands::stored))...) == 2 ? 2
                                                                      : 1;
}

template <class... __operands>
__device__ constexpr int tile_squares() {
    return larger(int(sizeof(typename __operands::stored))...) == 4 ? 64 : 32;
}

// The shared memory that `tiles` is handed.
template <class... __operands>
__device__ constexpr int tile_bytes() {
    return word_length<__operands...>() * word_length<__operands...>() *
           larger(int(sizeof(typename __operands::stored))...) * tile_squares<__operands...>() *
           (tile_squares<__operands...>() + 1);
}

// One side of the tiles: how far an index along it leads.
template <bool __is_split>
struct tile_side {
    long long length;
    int inner;  // length of its inner axis, where it has two
    unsigned multiplier, shift;

    template <int __axes>
    GRIDSTRIDE_INLINED tile_side(const element_space<__axes>& __space, long long __length, int __axis)
        : length(__length), inner(int(__space.outer.length[__axis])),
          multiplier(__space.outer.multiplier[__axis]), shift(__space.outer.shift[__axis]) {}
    GRIDSTRIDE_INLINED long long offset(long long __index, long long __inner_stride, long long __outer_stride) const {
        if (!__is_split) return __index * __inner_stride;
        const unsigned __n = static_cast<unsigned>(__index), __outer = (__umulhi(__n, multiplier) + __n) >> shift;
        return static_cast<long long>(__n - __outer * inner) * __inner_stride + __outer * __outer_stride;
    }
    // Whether words of neighbors along it are words in memory.
    GRIDSTRIDE_INLINED bool has_words(int __length, int __size, long long __inner_stride, long long __outer_stride) const {
        if (__inner_stride != __size) return false;
        return !__is_split || __length == 1 || __outer_stride == inner * __inner_stride ||
               (inner % __length == 0 && __outer_stride % (__length * __size) == 0);
    }
};

// Where a tile begins, and how much of it is inside the array.
template <bool __is_split>
struct tile_frame {
    tile_side<__is_split> x_side, y_side;
    long long x, y;
    GRIDSTRIDE_INLINED long long width() const { return x_side.length - x; }
    GRIDSTRIDE_INLINED long long height() const { return y_side.length - y; }
    GRIDSTRIDE_INLINED bool is_whole(int __edge) const { return width() >= __edge && height() >= __edge; }
};

// What a thread holds of an operand: words of every row of the tile that is `rows_at_once` after another.
// An operand that lies along y is read along y; its squares are turned in registers, and exchanged between the threads
// in shared memory.
template <class __operand, int __length, int __squares, bool __is_split>
struct tile_part {
    typedef tile_frame<__is_split> frame;
    typedef __operand operand;
    typedef typename __operand::stored stored;
    typedef packet<stored, __length> word;
    typedef word square_row[__squares][__squares + 1];
    static constexpr int rows_at_once = tile_threads / __squares, squares_of_thread = __squares / rows_at_once;
    static constexpr int count = __length * squares_of_thread, edge = __length * __squares;

    const __operand& source;
    char* corner;
    word words[count];

    GRIDSTRIDE_INLINED tile_part(const __operand& __source) : source(__source), corner(__source.data) {}

    static GRIDSTRIDE_INLINED long long size_of(long long __stride) { return __stride < 0 ? -__stride : __stride; }
    GRIDSTRIDE_INLINED bool is_turned() const {
        return source.strides[0] != 0 && size_of(source.strides[0]) < size_of(source.step);
    }
    GRIDSTRIDE_INLINED char* at_x(const frame& __frame, char* __from, int __x) const {
        return __from + __frame.x_side.offset(__frame.x + __x, source.step, source.strides[1]);
    }
    GRIDSTRIDE_INLINED char* at_y(const frame& __frame, char* __from, int __y) const {
        return __from + __frame.y_side.offset(__frame.y + __y, source.strides[0], source.strides[2]);
    }
    // Whether a tile inside the array has words that can be loaded and stored as such.
    GRIDSTRIDE_INLINED bool has_words(const frame& __frame) const {
        constexpr int __bytes = sizeof(word), __size = sizeof(stored);
        if (!is_one_word<stored, __length>::value || reinterpret_cast<unsigned long long>(corner) % __bytes) return false;
        return is_turned() ? __frame.y_side.has_words(__length, __size, source.strides[0], source.strides[2]) &&
                                 source.step % __bytes == 0 && source.strides[1] % __bytes == 0
                           : __frame.x_side.has_words(__length, __size, source.step, source.strides[1]) &&
                                 source.strides[0] % __bytes == 0 && source.strides[2] % __bytes == 0;
    }
    // One word of four or fewer elements along y, from `__x` and `__y` on.
    template <bool __are_words>
    GRIDSTRIDE_INLINED void load_down(const frame& __frame, word& __to, char* __line, int __x, int __y) const {
        if (__are_words) {
            whole<__length, stored>::load(__to, at_y(__frame, __line, __y));
        } else {
#pragma unroll
            for (int __k = 0; __k < __length; ++__k)
                if (__x < __frame.width() && __y + __k < __frame.height())
                    __to.items[__k] = *reinterpret_cast<const stored*>(at_y(__frame, __line, __y + __k));
        }
    }
    template <bool __are_words>
    GRIDSTRIDE_INLINED void load_lines(const frame& __frame, char* __shared) {
        const int __x = threadIdx.x % __squares, __y = threadIdx.x / __squares;
        square_row* __tile = reinterpret_cast<square_row*>(__shared);
        word __lines[squares_of_thread][__length];
#pragma unroll
        for (int __square = 0; __square < squares_of_thread; ++__square)
#pragma unroll
            for (int __r = 0; __r < __length; ++__r) {
                const int __column = (__y + __square * rows_at_once) * __length + __r;
                load_down<__are_words>(__frame, __lines[__square][__r], at_x(__frame, corner, __column), __column,
                                       __x * __length);
            }
        __syncthreads();
#pragma unroll
        for (int __square = 0; __square < squares_of_thread; ++__square)
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
    GRIDSTRIDE_INLINED void store_lines(const frame& __frame, char* __shared) const {
        const int __x = threadIdx.x % __squares, __y = threadIdx.x / __squares;
        square_row* __tile = reinterpret_cast<square_row*>(__shared);
        __syncthreads();
#pragma unroll
        for (int __k = 0; __k < count; ++__k) {
            const int __row = __y + __k * rows_at_once;
            __tile[__row % __length][__row / __length][__x] = words[__k];
        }
        __syncthreads();
        const bool __are_words = __frame.is_whole(edge) && has_words(__frame);
#pragma unroll
        for (int __square = 0; __square < squares_of_thread; ++__square) {
            word __lines[__length];
#pragma unroll
            for (int __c = 0; __c < __length; ++__c) {
                const word __turned = __tile[__c][__x][__y + __square * rows_at_once];
#pragma unroll
                for (int __r = 0; __r < __length; ++__r) __lines[__r].items[__c] = __turned.items[__r];
            }
#pragma unroll
            for (int __r = 0; __r < __length; ++__r) {
                const int __column = (__y + __square * rows_at_once) * __length + __r;
                char* __line = at_x(__frame, corner, __column);
                if (__are_words) {
                    whole<__length, stored>::store(__lines[__r], at_y(__frame, __line, __x * __length));
                } else {
#pragma unroll
                    for (int __k = 0; __k < __length; ++__k)
                        if (__column < __frame.width() && __x * __length + __k < __frame.height())
                            *reinterpret_cast<stored*>(at_y(__frame, __line, __x * __length + __k)) = __lines[__r].items[__k];
                }
            }
        }
    }

    GRIDSTRIDE_INLINED int load(const frame& __frame, char* __shared) {
        if (!__operand::is_read) return 0;
        const bool __are_words = __frame.is_whole(edge) && has_words(__frame);
        if (is_turned()) {
            if (__are_words) load_lines<true>(__frame, __shared);
            else load_lines<false>(__frame, __shared);
            return 0;
        }
        const int __x = threadIdx.x % __squares * __length, __y = threadIdx.x / __squares;
#pragma unroll
        for (int __k = 0; __k < count; ++__k) {
            char* __line = at_y(__frame, corner, __y + __k * rows_at_once);
            if (__are_words) {
                whole<__length, stored>::load(words[__k], at_x(__frame, __line, __x));
            } else {
#pragma unroll
                for (int __j = 0; __j < __length; ++__j)
                    if (__x + __j < __frame.width() && __y + __k * rows_at_once < __frame.height())
                        words[__k].items[__j] = *reinterpret_cast<const stored*>(at_x(__frame, __line, __x + __j));
            }
        }
        return 0;
    }

    GRIDSTRIDE_INLINED int store(const frame& __frame, char* __shared) const {
        if (!__operand::is_written) return 0;
        if (is_turned()) {
            store_lines(__frame, __shared);
            return 0;
        }
        const bool __are_words = __frame.is_whole(edge) && has_words(__frame);
        const int __x = threadIdx.x % __squares * __length, __y = threadIdx.x / __squares;
#pragma unroll
        for (int __k = 0; __k < count; ++__k) {
            char* __line = at_y(__frame, corner, __y + __k * rows_at_once);
            if (__are_words) {
                whole<__length, stored>::store(words[__k], at_x(__frame, __line, __x));
            } else {
#pragma unroll
                for (int __j = 0; __j < __length; ++__j)
                    if (__x + __j < __frame.width() && __y + __k * rows_at_once < __frame.height())
                        *reinterpret_cast<stored*>(at_x(__frame, __line, __x + __j)) = words[__k].items[__j];
            }
        }
        return 0;
    }
};

template <bool __is_split, int __length, int __squares, class __operation, int __axes, class... __parts>
GRIDSTRIDE_INLINED void run_tile(const __operation& __do, const element_space<__axes>& __space, char* __shared,
                                 __parts&&... __all) {
    constexpr int __edge = __squares * __length, __rows_at_once = tile_threads / __squares, __walked = 4;
    const numbering<__axes>& __numbers = __space.numbers;
    tile_frame<__is_split> __frame = {{__space, __space.row, 2}, {__space, __space.column, 3}, 0, 0};
    long long __rest = blockIdx.x, __number = 0;
    __frame.x = taken_off(__space.outer, __rest, 0) * __edge;
    __frame.y = (__space.outer.ndim > __walked ? taken_off(__space.outer, __rest, 1) : __rest) * __edge;
#pragma unroll
    for (int __axis = __walked; __axis < __axes; ++__axis) {
        if (__axis >= __space.outer.ndim) break;
        const long long __at = __axis + 1 < __space.outer.ndim ? taken_off(__space.outer, __rest, __axis) : __rest;
        __number += __at * __numbers.strides[__axis];
        swallow((__all.corner += __at * __all.source.strides[__axis])...);
    }
    const int __x = threadIdx.x % __squares * __length, __y = threadIdx.x / __squares;
    swallow(__all.load(__frame, __shared)...);
    const bool __is_whole = __frame.is_whole(__edge);
#pragma unroll
    for (int __k = 0; __k < __edge / __rows_at_once; ++__k) {
        const int __row = __y + __k * __rows_at_once;
        const long long __line = __number + __frame.y_side.offset(__frame.y + __row, __numbers.strides[0], __numbers.strides[2]);
#pragma unroll
        for (int __j = 0; __j < __length; ++__j)
            if (__is_whole || (__x + __j < __frame.width() && __row < __frame.height()))
                __do(__line + __frame.x_side.offset(__frame.x + __x + __j, __numbers.step, __numbers.strides[1]),
                     element<typename __parts::operand>(__all.words[__k].items[__j]).get()...);
    }
    swallow(__all.store(__frame, __shared)...);
}

template <bool __is_split, class __operation, int __axes, class... __operands>
GRIDSTRIDE_INLINED void tiles(const __operation& __do, const element_space<__axes>& __space, char* __shared,
                              const __operands&... __all) {
    constexpr int __length = word_length<__operands...>(), __squares = tile_squares<__operands...>();
    run_tile<__is_split, __length, __squares>(__do, __space, __shared,
                                              tile_part<__operands, __length, __squares, __is_split>(__all)...);
}

}

#endif
