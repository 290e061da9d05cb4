// `shifted_tiles`: a loop over tiles of elements of one or two bytes whose rows and lines begin between words.
//
// A turned operand lies along y, with a line for each x. A warp takes neighboring lines four bytes at a time, wherever words
// begin, shifts them by bytes, turns squares of them in registers, and stores words of a row in shared memory. A row of a
// part begins so many elements before it, its phase, that what is written are whole sectors of memory: so threads take
// packets that begin between two words of shared memory. Sides, parts and strides are those of turning.h.
#ifndef GRIDSTRIDE_SHIFTED_TILES_H
#define GRIDSTRIDE_SHIFTED_TILES_H

#include <gridstride/turning.h>
#include <gridstride/word_squares.h>

namespace gridstride {

constexpr int along_y = 3;  // how an input lies

template <int __size, int __width>
struct shifted_shape {
    static constexpr int width = __width, length = 16 / __size, each = 4 / __size, phases = 32 / __size, lines = width + phases;
    static constexpr int height = 32 * each, packets = width / length, rows = turning_threads / packets;
    // A word more after as many rows as a word has elements: threads of a warp store in different banks.
    static constexpr int row_bytes = lines * __size;
    static GRIDSTRIDE_INLINED int row_at(int __y) { return __y * row_bytes + __y / each * 4; }
    static GRIDSTRIDE_INLINED int bytes(int __rows) { return (row_at((__rows + each - 1) / each * each) + 15) / 16 * 16; }
    // A warp has 9 squares, and a thread packets of two rounds.
    static constexpr int squares_at_once = 3, rows_at_once = height / rows / 2;
};

template <class __operand, class __shape>
struct shifted_place {
    typedef plane_part<false> part;
    typedef __operand operand;
    typedef typename __operand::stored stored;
    typedef __shape shape;
    static constexpr int size = sizeof(stored), length = shape::length;

    const __operand& source;
    char* corner;  // of the part
    packet<stored, length> items;

    GRIDSTRIDE_INLINED shifted_place(const __operand& __source) : source(__source), corner(__source.data) {}
    GRIDSTRIDE_INLINED int enter(const part& __part) {
        corner += __part.x * source.step + __part.y * source.strides[0];
        return 0;
    }
    GRIDSTRIDE_INLINED char* at(int __x, int __y) const { return corner + __x * source.step + __y * source.strides[0]; }
    GRIDSTRIDE_INLINED int phase(int __y) const {
        const unsigned __begin = static_cast<unsigned>(reinterpret_cast<unsigned long long>(corner));
        return int((__begin + __y * static_cast<unsigned>(source.strides[0])) % (shape::phases * size) / size);
    }
};

// An operand that lies along x.
template <class __operand, int __kind, class __shape>
struct shifted : shifted_place<__operand, __shape> {
    typedef shifted_place<__operand, __shape> base;
    typedef typename base::stored stored;
    typedef __shape shape;
    using base::source;
    using base::items;
    char* place;  // of a packet, were there no phase
    row_packets<__operand, shape::length, __kind, shape::rows_at_once> packets;

    GRIDSTRIDE_INLINED shifted(const __operand& __source) : base(__source), place(__source.data) {}
    GRIDSTRIDE_INLINED int take_memory(char*&, const plane_part<false>&) { return 0; }
    GRIDSTRIDE_INLINED int bring(const plane_part<false>&) const { return 0; }
    GRIDSTRIDE_INLINED int stand(int __x, int __y) {
        place = this->at(__x, __y);
        return 0;
    }
    GRIDSTRIDE_INLINED int go_on() {
        place += shape::rows_at_once * shape::rows * source.strides[0];
        return 0;
    }
    GRIDSTRIDE_INLINED char* packet_at(int __k, int __phase) const {
        return place + __k * shape::rows * source.strides[0] - __phase * base::size;
    }
    GRIDSTRIDE_INLINED int load(int __k, int __phase) { return packets.load(__k, packet_at(__k, __phase)); }
    GRIDSTRIDE_INLINED int unpack(int __k, int __phase) { return packets.unpack(items, __k, packet_at(__k, __phase)); }
    GRIDSTRIDE_INLINED int store(int __k, int __phase) const { return packets.store(items, packet_at(__k, __phase)); }
    GRIDSTRIDE_INLINED stored& in_place(int __x, int __y) const { return *reinterpret_cast<stored*>(this->at(__x, __y)); }
};

// One element for a row.
template <class __operand, class __shape>
struct shifted<__operand, one_for_a_row, __shape> : shifted_place<__operand, __shape> {
    typedef shifted_place<__operand, __shape> base;
    typedef typename base::stored stored;
    typedef __shape shape;
    using base::source;
    using base::items;
    char* place;
    stored waiting[shape::rows_at_once];

    GRIDSTRIDE_INLINED shifted(const __operand& __source) : base(__source), place(__source.data) {}
    GRIDSTRIDE_INLINED int take_memory(char*&, const plane_part<false>&) { return 0; }
    GRIDSTRIDE_INLINED int bring(const plane_part<false>&) const { return 0; }
    GRIDSTRIDE_INLINED int stand(int, int __y) {
        place = this->at(0, __y);
        return 0;
    }
    GRIDSTRIDE_INLINED int go_on() {
        place += shape::rows_at_once * shape::rows * source.strides[0];
        return 0;
    }
    GRIDSTRIDE_INLINED int load(int __k, int) {
        copy(waiting[__k], *reinterpret_cast<const stored*>(place + __k * shape::rows * source.strides[0]));
        return 0;
    }
    GRIDSTRIDE_INLINED int unpack(int __k, int) {
#pragma unroll
        for (int __j = 0; __j < shape::length; ++__j) copy(items.items[__j], waiting[__k]);
        return 0;
    }
    GRIDSTRIDE_INLINED int store(int, int) const { return 0; }
    GRIDSTRIDE_INLINED stored& in_place(int, int __y) const { return *reinterpret_cast<stored*>(this->at(0, __y)); }
};

// An input that lies along y.
template <class __operand, class __shape>
struct shifted<__operand, along_y, __shape> : shifted_place<__operand, __shape> {
    typedef shifted_place<__operand, __shape> base;
    typedef typename base::stored stored;
    typedef __shape shape;
    using base::source;
    using base::items;
    static constexpr int each = shape::each, at_once = shape::squares_at_once;
    static constexpr int apart = turning_threads / 32, squares = shape::lines / each;
    static constexpr bool is_even = squares % (apart * at_once) == 0;
    char* waiting;
    const char* here;

    GRIDSTRIDE_INLINED shifted(const __operand& __source) : base(__source) {}
    GRIDSTRIDE_INLINED int take_memory(char*& __shared, const plane_part<false>& __part) {
        waiting = __shared;
        __shared += shape::bytes(__part.height);
        return 0;
    }
    GRIDSTRIDE_INLINED int bring(const plane_part<false>& __part) const {
        // Words after those of the lines are theirs too, where the plane goes on.
        const bool __is_inside = __part.x > 0 && __part.to == shape::width && __part.y + shape::height < __part.y_side.length;
        if (__is_inside) bring_lines<true>(__part);
        else bring_lines<false>(__part);
        return 0;
    }
    // Lines that are a square apart begin at the same place of a word.
    template <bool __all>
    GRIDSTRIDE_INLINED void bring_lines(const plane_part<false>& __part) const {
        const unsigned __own = threadIdx.x;
        const int __lane = __own % 32, __first = __own / 32, __end = __part.height * base::size;
        if (__lane * 4 >= __end) return;
        const char* __from[each];
        int __past[each];
#pragma unroll
        for (int __l = 0; __l < each; ++__l) {
            const char* const __line = this->at(__first * each - shape::phases + __l, 0);
            __past[__l] = int(bytes_past<4>(__line));
            __from[__l] = __line - __past[__l] + __lane * 4;
        }
        char* __to = waiting + shape::row_at(__lane * each) + __first * 4;
        const long long __further = apart * each * source.step;
#pragma unroll 1
        for (int __square = __first; __square < squares; __square += apart * at_once) {
            unsigned __low[at_once][each], __high[at_once][each];
#pragma unroll
            for (int __k = 0; __k < at_once; ++__k)
#pragma unroll
                for (int __l = 0; __l < each; ++__l) {
                    const int __x = (__square + __k * apart) * each + __l - shape::phases, __begin = __lane * 4 - __past[__l];
                    const unsigned* const __words = reinterpret_cast<const unsigned*>(__from[__l] + __k * __further);
                    const bool __has = (is_even || __x < shape::width) && (__all || __part.has(__x));
                    if (__has && (__all || __begin < __end)) __low[__k][__l] = __words[0];
                    if (__has && (__all || __begin + 4 < __end)) __high[__k][__l] = __words[1];
                }
#pragma unroll
            for (int __k = 0; __k < at_once; ++__k) {
                if (!is_even && __square + __k * apart >= squares) break;
                unsigned __words[each];
#pragma unroll
                for (int __l = 0; __l < each; ++__l)
                    __words[__l] = __funnelshift_r(__low[__k][__l], __high[__k][__l], __past[__l] * 8);
                turn_words(__words);
#pragma unroll
                for (int __l = 0; __l < each; ++__l)
                    *reinterpret_cast<unsigned*>(__to + __l * shape::row_bytes + __k * apart * 4) = __words[__l];
            }
#pragma unroll
            for (int __l = 0; __l < each; ++__l) __from[__l] += at_once * __further;
            __to += at_once * apart * 4;
        }
    }
    GRIDSTRIDE_INLINED char* waiting_at(int __x, int __y) const {
        return waiting + shape::row_at(__y) + (__x + shape::phases) * base::size;
    }
    GRIDSTRIDE_INLINED int stand(int __x, int __y) {
        here = waiting_at(__x, __y);
        return 0;
    }
    GRIDSTRIDE_INLINED int go_on() {
        here += shape::row_at(shape::rows_at_once * shape::rows);
        return 0;
    }
    GRIDSTRIDE_INLINED int load(int, int) { return 0; }
    GRIDSTRIDE_INLINED int unpack(int __k, int __phase) {
        const char* const __at = here + shape::row_at(__k * shape::rows);
        // Back from a word by a phase.
        const int __bytes = __phase * base::size, __past = -__bytes & 3;
        const unsigned* const __from = reinterpret_cast<const unsigned*>(__at - (__bytes + __past));
        unsigned __words[5];
#pragma unroll
        for (int __k2 = 0; __k2 < 5; ++__k2) __words[__k2] = __from[__k2];
        shift_words<4>(__words, __past * 8);
        memcpy(&items, __words, 16);
        return 0;
    }
    GRIDSTRIDE_INLINED int store(int, int) const { return 0; }
    GRIDSTRIDE_INLINED stored& in_place(int __x, int __y) const { return *reinterpret_cast<stored*>(waiting_at(__x, __y)); }
};

template <class __shape, class __operation, int __axes, class... __shifted>
GRIDSTRIDE_INLINED void do_shifted(const __operation& __do, const element_space<__axes>& __space,
                                   const plane_part<false>& __part, int __k, int __first, int __y, int __phase, bool __is_whole,
                                   __shifted&... __all) {
    const numbering<__axes>& __numbers = __space.numbers;
    const long long __number = __part.number + (__part.x + __first) * __numbers.step + (__part.y + __y) * __numbers.strides[0];
    if (__is_whole) {
        swallow(__all.unpack(__k, __phase)...);
#pragma unroll
        for (int __j = 0; __j < __shape::length; ++__j)
            __do(__number + __j * __numbers.step, element<typename __shifted::operand>(__all.items.items[__j]).get()...);
        swallow(__all.store(__k, __phase)...);
        return;
    }
#pragma unroll 1
    for (int __j = 0; __j < __shape::length; ++__j)
        if (__part.has(__first + __j))
            __do(__number + __j * __numbers.step,
                 element<typename __shifted::operand>(__all.in_place(__first + __j, __y)).get()...);
}

template <class __shape, class __operation, int __axes, class... __shifted>
GRIDSTRIDE_INLINED void run_shifted(const __operation& __do, const element_space<__axes>& __space, char* __shared,
                                    __shifted&&... __all) {
    plane_part<false> __part(__space, __shape::width);
    enter_plane(__part, __space, __shape::height, __all...);
    swallow(__all.take_memory(__shared, __part)...);
    swallow(__all.bring(__part)...);
    __syncthreads();
    const int __x = threadIdx.x % __shape::packets * __shape::length;
    int __y = threadIdx.x / __shape::packets;
    if (__y >= __shape::rows) return;
    swallow(__all.stand(__x, __y)...);
#pragma unroll 1
    for (; __y < __part.height; __y += __shape::rows * __shape::rows_at_once) {
        int __phases[__shape::rows_at_once];
        bool __are_whole[__shape::rows_at_once];
#pragma unroll
        for (int __k = 0; __k < __shape::rows_at_once; ++__k) {
            __phases[__k] = last_of(__all...).phase(__y + __k * __shape::rows);
            __are_whole[__k] = __part.has(__x - __phases[__k], __shape::length) && __y + __k * __shape::rows < __part.height;
            if (__are_whole[__k]) swallow(__all.load(__k, __phases[__k])...);
        }
#pragma unroll
        for (int __k = 0; __k < __shape::rows_at_once; ++__k)
            if (__y + __k * __shape::rows < __part.height)
                do_shifted<__shape>(__do, __space, __part, __k, __x - __phases[__k], __y + __k * __shape::rows, __phases[__k],
                                    __are_whole[__k], __all...);
        swallow(__all.go_on()...);
    }
}

// Width: of tiles, in elements; kinds: how each operand lies.
template <int __width, int... __kinds, class __operation, int __axes, class... __operands>
GRIDSTRIDE_INLINED void shifted_tiles(const __operation& __do, const element_space<__axes>& __space, char* __shared,
                                      const __operands&... __all) {
    typedef shifted_shape<larger(int(sizeof(typename __operands::stored))...), __width> shape;
    run_shifted<shape>(__do, __space, __shared, shifted<__operands, __kinds, shape>(__all)...);
}

}

#endif
