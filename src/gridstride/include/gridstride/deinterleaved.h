// `deinterleaved`: a loop over elements of lines, where inputs lie as short rows one after another that have an element for
// each line. The rows of a block wait in shared memory as they lie in memory; a warp takes words of a line of the output,
// which begin at a sector of memory.
#ifndef GRIDSTRIDE_DEINTERLEAVED_H
#define GRIDSTRIDE_DEINTERLEAVED_H

#include <gridstride/picked.h>
#include <gridstride/row_memory.h>

namespace gridstride {

// A thread's words are `apart` from each other, along a line. Words begin so many elements before, their phase, that a warp
// writes whole sectors.
template <int __size>
struct line_words {
    static constexpr int size = __size, word = __size < 4 ? 4 : __size, length = word / __size, words = 4, apart = 32 * length;
    static constexpr int phases = 32 / __size, chunk = words * apart;
};

// An operand that lies as the last one.
template <class __operand, int __kind, class __shape>
struct deinterleaved_operand {
    typedef __operand operand;
    typedef typename __operand::stored stored;
    typedef __shape shape;
    static constexpr int size = sizeof(stored), length = shape::length;

    const __operand& source;
    char* corner;  // of the part
    char* place;   // of the thread's first word in a line, were there no phase
    row_packets<__operand, length, __kind, shape::words> packets;
    packet<stored, length> items;

    GRIDSTRIDE_INLINED deinterleaved_operand(const __operand& __source)
        : source(__source), corner(__source.data), place(__source.data) {}
    GRIDSTRIDE_INLINED int enter(const plane_part<false>& __part) {
        corner += __part.x * source.step;
        return 0;
    }
    GRIDSTRIDE_INLINED int take_memory(char*&, const plane_part<false>&) { return 0; }
    GRIDSTRIDE_INLINED int bring(const plane_part<false>&) const { return 0; }
    GRIDSTRIDE_INLINED int stand(int __x, int __y) {
        place = corner + __y * source.strides[0] + __x * size;
        return 0;
    }
    GRIDSTRIDE_INLINED int go_on(int __lines) {
        place += __lines * source.strides[0];
        return 0;
    }
    // The phase of the line, seen from a place at `__x`.
    GRIDSTRIDE_INLINED int phase(int __x) const {
        return int((static_cast<unsigned>(reinterpret_cast<unsigned long long>(place)) / size - __x) % shape::phases);
    }
    GRIDSTRIDE_INLINED char* at(int __w, int __phase) const { return place + (__w * shape::apart - __phase) * size; }
    GRIDSTRIDE_INLINED int load(int __w, int __phase) { return packets.load(__w, at(__w, __phase)); }
    GRIDSTRIDE_INLINED int unpack(int __w, int __phase) { return packets.unpack(items, __w, at(__w, __phase)); }
    GRIDSTRIDE_INLINED int store(int __w, int __phase) const { return packets.store(items, at(__w, __phase)); }
    GRIDSTRIDE_INLINED stored& in_place(int __x, int __y) const {
        return *reinterpret_cast<stored*>(corner + __y * source.strides[0] + __x * size);
    }
};

// An input of rows, in order or backwards. Words may begin in rows before the part, so these wait too.
template <class __operand, class __shape>
struct deinterleaved_operand<__operand, other_side, __shape> {
    typedef __operand operand;
    typedef typename __operand::stored stored;
    typedef __shape shape;
    static constexpr int size = sizeof(stored), length = shape::length;

    const __operand& source;
    char* corner;
    row_memory<stored, false> rows;
    int here;
    typename word<length * size>::type words[shape::words];
    packet<stored, length> items;

    GRIDSTRIDE_INLINED deinterleaved_operand(const __operand& __source) : source(__source), corner(__source.data) {}
    GRIDSTRIDE_INLINED int enter(const plane_part<false>& __part) {
        corner += __part.x * source.step;
        return 0;
    }
    GRIDSTRIDE_INLINED int take_memory(char*& __shared, const plane_part<false>& __part) {
        const char* const __at = corner - shape::phases * source.step;
        const int __past = int(bytes_past<16>(__at));
        rows.begin(__shared, __past, __part.width + shape::phases, source.step, __part);
        if (size != shape::size) rows.turn = 0;
        return 0;
    }
    GRIDSTRIDE_INLINED int bring(const plane_part<false>& __part) const {
        constexpr int __round = turning_threads * 16;
        const int __first = __part.x > 0 ? 0 : shape::phases, __last = shape::phases + __part.to;
        const bool __is_forward = rows.pitch > 0;
        const int __begin = rows.byte(__is_forward ? __first : __last - 1, 0);
        const int __end = rows.byte(__is_forward ? __last : __first - 1, 0);
        const char* const __from = corner - shape::phases * rows.pitch - rows.first;
#pragma unroll 4
        for (int __at = __begin / 16 * 16 + threadIdx.x * 16; __at < __end; __at += __round)
            bring_word<16>(rows.at(__at), __from + __at);
        return 0;
    }
    GRIDSTRIDE_INLINED int stand(int __x, int __y) {
        here = rows.byte(__x + shape::phases, __y);
        return 0;
    }
    GRIDSTRIDE_INLINED int go_on(int __lines) {
        here += __lines * size;
        return 0;
    }
    GRIDSTRIDE_INLINED int load(int __w, int __phase) {
        const int __from = here + (__w * shape::apart - __phase) * rows.pitch;
        packet<typename word<size>::type, length> __picked;
#pragma unroll
        for (int __j = 0; __j < length; ++__j) {
            const int __row = size == shape::size ? rows.row_of(__j) : __j * rows.pitch;
            __picked.items[__j] = *reinterpret_cast<const typename word<size>::type*>(rows.at(__from + __row));
        }
        memcpy(&words[__w], &__picked, length * size);
        return 0;
    }
    GRIDSTRIDE_INLINED int unpack(int __w, int) {
        whole<length, stored>::unpack(items, turned(words[__w], rows.turn * size * 8));
        return 0;
    }
    static GRIDSTRIDE_INLINED unsigned turned(unsigned __word, int __bits) { return __funnelshift_l(__word, __word, __bits); }
    template <class __word>
    static GRIDSTRIDE_INLINED const __word& turned(const __word& __all, int) { return __all; }
    GRIDSTRIDE_INLINED int store(int, int) const { return 0; }
    GRIDSTRIDE_INLINED stored& in_place(int __x, int __y) const { return *reinterpret_cast<stored*>(rows.at(rows.byte(__x + shape::phases, __y))); }
};

// An input of rows in planes, of which those that the part touches wait, each plane as far from the next as keeps words whole.
template <class __operand, class __shape>
struct deinterleaved_operand<__operand, in_planes, __shape> {
    typedef __operand operand;
    typedef typename __operand::stored stored;
    typedef __shape shape;
    typedef row_memory<stored, false> memory;
    static constexpr int size = sizeof(stored), length = shape::length;

    const __operand& source;
    char* corner;  // of the first plane
    plane_side<false> side;
    char* waiting;
    long long begin;   // of the part
    int first, planes; // of the planes that wait; how many
    int row, pitch;    // bytes of a row, and to the next one, which may lie before it
    int apart, gap;    // from a plane to the next, and from where a plane's last row would go on to the next one's first
    int lead, turn;    // bytes to the first row
    int x, y;          // where the thread stands; bytes along rows
    int phase;         // for which it knows where its words come from, and how many rows of each lie in one plane
    int from[shape::words], left[shape::words];
    typename word<length * size>::type words[shape::words];
    packet<stored, length> items;

    GRIDSTRIDE_INLINED deinterleaved_operand(const __operand& __source)
        : source(__source), corner(__source.data) {}
    GRIDSTRIDE_INLINED int enter(const plane_part<false>&) { return 0; }
    GRIDSTRIDE_INLINED const char* lowest(int __plane) const {
        return corner + __plane * source.strides[1] + (pitch < 0 ? (side.inner - 1) * source.step : 0);
    }
    GRIDSTRIDE_INLINED int take_memory(char*& __shared, const plane_part<false>& __part) {
        side = __part.x_side;
        begin = __part.x;
        row = __part.height * size;
        pitch = source.step < 0 ? -row : row;
        first = place_in_planes(side, begin < shape::phases ? 0 : begin - shape::phases).plane;
        planes = place_in_planes(side, begin + __part.to - 1).plane - first + 1;
        const int __bytes = side.inner * row;
        apart = (__bytes + 47) / 16 * 16 + int(static_cast<unsigned long long>(source.strides[1]) % 16);
        gap = apart - side.inner * pitch;
        lead = int(bytes_past<16>(lowest(first))) + (pitch < 0 ? __bytes - row : 0);
        turn = size == shape::size ? memory::turn_of(__part.height) : 0;
        waiting = __shared;
        __shared += (((__part.width + shape::phases) / side.inner + 2) * apart + 47) / 16 * 16;
        return 0;
    }
    GRIDSTRIDE_INLINED int bring(const plane_part<false>&) const {
        int __beside = 1;
        while (__beside < planes && __beside < turning_threads / 32) __beside *= 2;
        const int __threads = turning_threads / __beside, __bytes = side.inner * row;
#pragma unroll 1
        for (int __plane = threadIdx.x / __threads; __plane < planes; __plane += __beside) {
            const char* __from = lowest(first + __plane);
            const int __past = int(bytes_past<16>(__from));
            char* const __to = waiting + (lead - (pitch < 0 ? __bytes - row : 0) + __plane * apart - __past);
            __from -= __past;
#pragma unroll 2
            for (int __at = threadIdx.x % __threads * 16; __at < __past + __bytes; __at += __threads * 16)
                bring_word<16>(__to + __at, __from + __at);
        }
        return 0;
    }
    GRIDSTRIDE_INLINED int byte(const place_in_planes& __at) const {
        return lead + (__at.plane - first) * apart + __at.within * pitch;
    }
    GRIDSTRIDE_INLINED int stand(int __x, int __y) {
        x = __x;
        y = __y * size;
        phase = -1;
        return 0;
    }
    GRIDSTRIDE_INLINED void find(int __phase) {
        phase = __phase;
#pragma unroll
        for (int __w = 0; __w < shape::words; ++__w) {
            const place_in_planes __at(side, begin + x + __w * shape::apart - __phase);
            from[__w] = byte(__at);
            left[__w] = side.inner - __at.within;
        }
    }
    GRIDSTRIDE_INLINED int go_on(int __lines) {
        y += __lines * size;
        return 0;
    }
    GRIDSTRIDE_INLINED int load(int __w, int __phase) {
        if (phase != __phase) find(__phase);
        const char* const __from = waiting + from[__w] + y;
        const int __left = left[__w];
        packet<typename word<size>::type, length> __picked;
        if (__left >= length) {
#pragma unroll
            for (int __j = 0; __j < length; ++__j)
                __picked.items[__j] = *reinterpret_cast<const typename word<size>::type*>(__from + (__j + turn) % length * pitch);
        } else {
#pragma unroll
            for (int __j = 0; __j < length; ++__j) {
                const int __row = (__j + turn) % length;
                __picked.items[__j] = *reinterpret_cast<const typename word<size>::type*>(__from + __row * pitch + (__row < __left ? 0 : gap));
            }
        }
        memcpy(&words[__w], &__picked, length * size);
        return 0;
    }
    GRIDSTRIDE_INLINED int unpack(int __w, int) {
        whole<length, stored>::unpack(items, turned(words[__w], turn * size * 8));
        return 0;
    }
    static GRIDSTRIDE_INLINED unsigned turned(unsigned __word, int __bits) { return __funnelshift_l(__word, __word, __bits); }
    template <class __word>
    static GRIDSTRIDE_INLINED const __word& turned(const __word& __all, int) { return __all; }
    GRIDSTRIDE_INLINED int store(int, int) const { return 0; }
    GRIDSTRIDE_INLINED stored& in_place(int __x, int __y) const {
        return *reinterpret_cast<stored*>(waiting + byte(place_in_planes(side, begin + __x)) + __y * size);
    }
};

// Do the thread's words of a line, which would begin at `__x` without a phase.
template <class __shape, class __operation, int __axes, class... __all_operands>
GRIDSTRIDE_INLINED void do_line_words(const __operation& __do, const element_space<__axes>& __space,
                                      const plane_part<false>& __part, int __x, int __y, int __phase, bool __is_inside,
                                      __all_operands&... __all) {
    const long long __step = __space.numbers.step, __number = __part.number + __part.x * __step + __y * __space.numbers.strides[0];
    bool __are_whole[__shape::words];
#pragma unroll
    for (int __w = 0; __w < __shape::words; ++__w) {
        __are_whole[__w] = __is_inside || __part.has(__x + __w * __shape::apart - __phase, __shape::length);
        if (__are_whole[__w]) swallow(__all.load(__w, __phase)...);
    }
#pragma unroll
    for (int __w = 0; __w < __shape::words; ++__w) {
        const int __first = __x + __w * __shape::apart - __phase;
        if (__are_whole[__w]) {
            swallow(__all.unpack(__w, __phase)...);
#pragma unroll
            for (int __j = 0; __j < __shape::length; ++__j)
                __do(__number + (__first + __j) * __step,
                     element<typename __all_operands::operand>(__all.items.items[__j]).get()...);
            swallow(__all.store(__w, __phase)...);
            continue;
        }
#pragma unroll 1
        for (int __j = __first; __j < __first + __shape::length; ++__j)
            if (__part.has(__j))
                __do(__number + __j * __step, element<typename __all_operands::operand>(__all.in_place(__j, __y)).get()...);
    }
}

template <class __shape, class __operation, int __axes, class... __all_operands>
GRIDSTRIDE_INLINED void run_deinterleaved(const __operation& __do, const element_space<__axes>& __space, char* __shared,
                                          __all_operands&&... __all) {
    plane_part<false> __part(__space, int(__space.width));
    enter_plane(__part, __space, __space.column, __all...);
    swallow(__all.take_memory(__shared, __part)...);
    swallow(__all.bring(__part)...);
    await_words();
    const int __chunks = __part.width / __shape::chunk;
    const warp_places __places(__chunks);
    const bool __is_inside = __part.x > 0 && __part.to == __part.width;
#pragma unroll 1
    for (int __c = __places.first; __c < __chunks; __c += __places.beside) {
        const int __x = __c * __shape::chunk + threadIdx.x % 32 * __shape::length;
        swallow(__all.stand(__x, __places.row)...);
#pragma unroll 1
        for (int __y = __places.row; __y < __part.height; __y += __places.below) {
            do_line_words<__shape>(__do, __space, __part, __x, __y, last_of(__all...).phase(__x), __is_inside, __all...);
            swallow(__all.go_on(__places.below)...);
        }
    }
}

template <class __first, class... __rest>
struct last_type { typedef typename last_type<__rest...>::type type; };
template <class __only>
struct last_type<__only> { typedef __only type; };

// Kinds: how each operand lies.
template <int... __kinds, class __operation, int __axes, class... __operands>
GRIDSTRIDE_INLINED void deinterleaved(const __operation& __do, const element_space<__axes>& __space, char* __shared,
                                      const __operands&... __all) {
    typedef line_words<sizeof(typename last_type<__operands...>::type::stored)> shape;
    run_deinterleaved<shape>(__do, __space, __shared, deinterleaved_operand<__operands, __kinds, shape>(__all)...);
}

}

#endif
