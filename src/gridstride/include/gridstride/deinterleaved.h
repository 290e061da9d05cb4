// `deinterleaved`: a loop over elements of lines, where inputs lie as short rows one after another that have an element for
// each line. The rows of a block wait in shared memory as they lie in memory; a warp takes words of a line of the output,
// which begin at a sector of memory.
#ifndef GRIDSTRIDE_DEINTERLEAVED_H
#define GRIDSTRIDE_DEINTERLEAVED_H

#include <gridstride/picked_tiles.h>
#include <gridstride/row_memory.h>

namespace gridstride {

// A thread's words are `apart` from each other, along a line. Words begin so many elements before, their phase, that a warp
// writes whole sectors. If all lines begin at sectors there is one phase, and no row before a part is needed.
template <int __size, int __phases>
struct line_words {
    static constexpr int size = __size, word = __size < 4 ? 4 : __size, length = word / __size, words = 4, apart = 32 * length;
    static constexpr int phases = __phases, before = __phases > 1 ? __phases : 0, chunk = words * apart;
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
    GRIDSTRIDE_INLINED int settle(const plane_part<false>&) const { return 0; }
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
    // Load a word as the k-th of those under way.
    GRIDSTRIDE_INLINED int load(int __k, int __w, int __phase) { return packets.load(__k, at(__w, __phase)); }
    GRIDSTRIDE_INLINED int unpack(int __k, int __w, int __phase) { return packets.unpack(items, __k, at(__w, __phase)); }
    GRIDSTRIDE_INLINED int store(int __w, int __phase) const { return packets.store(items, at(__w, __phase)); }
    GRIDSTRIDE_INLINED stored& in_place(int __x, int __y) const {
        return *reinterpret_cast<stored*>(corner + __y * source.strides[0] + __x * size);
    }
};

// An input of rows, in order or backwards: those of the part and, as words may begin there, before it wait.
template <class __operand, class __shape>
struct deinterleaved_rows {
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

    GRIDSTRIDE_INLINED deinterleaved_rows(const __operand& __source) : source(__source), corner(__source.data) {}
    // Of which the first one begins so many bytes behind a word.
    GRIDSTRIDE_INLINED int take_rows(char*& __shared, int __past, const plane_part<false>& __part) {
        rows.begin(__shared, __past, __part.width + shape::before, source.step, __part);
        if (size != shape::size) rows.turn = 0;
        return 0;
    }
    GRIDSTRIDE_INLINED int settle(const plane_part<false>&) const { return 0; }
    static GRIDSTRIDE_INLINED int first_row(const plane_part<false>& __part) { return __part.x > 0 ? 0 : shape::before; }
    GRIDSTRIDE_INLINED int stand(int __x, int __y) {
        here = rows.byte(__x + shape::before, __y);
        return 0;
    }
    GRIDSTRIDE_INLINED int go_on(int __lines) {
        here += __lines * size;
        return 0;
    }
    GRIDSTRIDE_INLINED int load(int __k, int __w, int __phase) {
        const int __from = here + (__w * shape::apart - __phase) * rows.pitch;
        packet<typename word<size>::type, length> __picked;
#pragma unroll
        for (int __j = 0; __j < length; ++__j) {
            const int __row = size == shape::size ? rows.row_of(__j) : __j * rows.pitch;
            __picked.items[__j] = *reinterpret_cast<const typename word<size>::type*>(rows.at(__from + __row));
        }
        memcpy(&words[__k], &__picked, length * size);
        return 0;
    }
    GRIDSTRIDE_INLINED int unpack(int __k, int, int) {
        whole<length, stored>::unpack(items, turned(words[__k], rows.turn * size * 8));
        return 0;
    }
    static GRIDSTRIDE_INLINED unsigned turned(unsigned __word, int __bits) { return __funnelshift_l(__word, __word, __bits); }
    template <class __word>
    static GRIDSTRIDE_INLINED const __word& turned(const __word& __all, int) { return __all; }
    GRIDSTRIDE_INLINED int store(int, int) const { return 0; }
    GRIDSTRIDE_INLINED stored& in_place(int __x, int __y) const { return *reinterpret_cast<stored*>(rows.at(rows.byte(__x + shape::before, __y))); }
};

template <class __operand, class __shape>
struct deinterleaved_operand<__operand, other_side, __shape> : deinterleaved_rows<__operand, __shape> {
    typedef deinterleaved_rows<__operand, __shape> all;
    using all::all;
    using all::corner;
    using all::rows;

    GRIDSTRIDE_INLINED int enter(const plane_part<false>& __part) {
        corner += __part.x * all::source.step;
        return 0;
    }
    GRIDSTRIDE_INLINED int take_memory(char*& __shared, const plane_part<false>& __part) {
        return all::take_rows(__shared, int(bytes_past<16>(corner - __shape::before * all::source.step)), __part);
    }
    GRIDSTRIDE_INLINED int bring(const plane_part<false>& __part) const {
        constexpr int __round = turning_threads * 16;
        const int __first = all::first_row(__part), __last = __shape::before + __part.to;
        const bool __is_forward = rows.pitch > 0;
        const int __begin = rows.byte(__is_forward ? __first : __last - 1, 0);
        const int __end = rows.byte(__is_forward ? __last : __first - 1, 0);
        const char* const __from = corner - __shape::before * rows.pitch - rows.first;
#pragma unroll 4
        for (int __at = __begin / 16 * 16 + threadIdx.x * 16; __at < __end; __at += __round)
            bring_word<16>(rows.at(__at), __from + __at);
        return 0;
    }
};

// Rows in planes wait as if they lay one after another. Shifted: where these do not lie in words as they did in memory, planes
// wait as they lie first.
template <class __operand, class __shape, bool __are_shifted>
struct deinterleaved_planes : deinterleaved_rows<__operand, __shape> {
    typedef deinterleaved_rows<__operand, __shape> all;
    typedef typename word<all::size>::type element;
    static constexpr int size = all::size, word_bytes = size < 4 ? 4 : size;
    using all::all;
    using all::corner;
    using all::rows;
    using all::source;

    static constexpr int room_beside = 48;  // by which planes lie farther from each other than they wait

    char* lying;

    GRIDSTRIDE_INLINED int enter(const plane_part<false>&) { return 0; }
    GRIDSTRIDE_INLINED const char* row_at(int __plane, int __within) const {
        return corner + __plane * source.strides[1] + __within * source.step;
    }
    GRIDSTRIDE_INLINED int take_memory(char*& __shared, const plane_part<false>& __part) {
        const place_in_planes __at(__part.x_side, __part.x);
        all::take_rows(__shared, int(bytes_past<16>(row_at(__at.plane, __at.within) - __shape::before * source.step)), __part);
        lying = __shared;
        if (__are_shifted)
            __shared = rows.waiting + 2 * (__shared - rows.waiting) + ((__part.width + __shape::before) / __part.x_side.inner + 2) * room_beside;
        return 0;
    }
    // Do something with what is needed of each plane: where it waits, comes from and lies, how long it is, and the thread's
    // share.
    template <class __run>
    GRIDSTRIDE_INLINED void each_plane(const plane_part<false>& __part, const __run& __do) const {
        const int __inner = __part.x_side.inner, __before = __shape::before - all::first_row(__part);
        const place_in_planes __first(__part.x_side, __part.x - __before), __last(__part.x_side, __part.x + __part.to - 1);
        const int __planes = __last.plane - __first.plane + 1;
        constexpr int __most = turning_threads / 16;
        const int __rounds = (__planes + __most - 1) / __most, __beside = (__planes + __rounds - 1) / __rounds;
        const int __threads = turning_threads / __beside, __begins = int(threadIdx.x) / __threads;
        const int __own = int(threadIdx.x) - __begins * __threads;
#pragma unroll 1
        for (int __k = __begins < __beside ? __begins : __planes; __k < __planes; __k += __beside) {
            const int __begin = __k == 0 ? __first.within : 0, __end = __k + 1 == __planes ? __last.within + 1 : __inner;
            const int __lowest = rows.pitch > 0 ? __begin : __end - 1;
            const int __row = all::first_row(__part) + __k * __inner - __first.within + __lowest;
            const int __at = rows.byte(__row, 0), __lower = rows.pitch > 0 ? __k : __planes - 1 - __k;
            __do(rows.at(__at), row_at(__first.plane + __k, __lowest), lying + __at / 16 * 16 + __lower * room_beside,
                 (__end - __begin) * (rows.pitch > 0 ? rows.pitch : -rows.pitch), __own, __threads);
        }
    }
    GRIDSTRIDE_INLINED int bring(const plane_part<false>& __part) const {
        each_plane(__part, [&](char* __to, const char* __from, char* __lying, int __bytes, int __own, int __threads) {
            if (!__are_shifted) return bring_run(__to, __from, __bytes, __own, __threads);
            const int __past = int(bytes_past<16>(__from));
#pragma unroll 2
            for (int __at = __own * 16; __at < __past + __bytes; __at += __threads * 16)
                bring_word<16>(__lying + __at, __from - __past + __at);
        });
        return 0;
    }
    // Bring so many bytes, of which a thread has words: those that are whole in shared memory, and of others the elements.
    static GRIDSTRIDE_INLINED void bring_run(char* __to, const char* __from, int __bytes, int __own, int __threads) {
        const int __mask = size < 4 || bytes_past<16>(__to) == bytes_past<16>(__from) ? 15 : word_bytes - 1;
        const int __begin = copy_ends(__to, __from, __bytes, __mask, __own), __end = __begin + ((__bytes - __begin) & ~__mask);
        if (__mask == 15) {
#pragma unroll 2
            for (int __at = __begin + __own * 16; __at < __end; __at += __threads * 16) bring_word<16>(__to + __at, __from + __at);
        } else {
#pragma unroll 4
            for (int __at = __begin + __own * word_bytes; __at < __end; __at += __threads * word_bytes)
                bring_word<word_bytes>(__to + __at, __from + __at);
        }
    }
    // Copy the elements before and behind words that are whole, and return where these begin.
    static GRIDSTRIDE_INLINED int copy_ends(char* __to, const char* __from, int __bytes, int __mask, int __own) {
        const int __skipped = -int(bytes_past<16>(__to)) & __mask, __begin = __skipped < __bytes ? __skipped : __bytes;
        const int __head = __own * size, __tail = __begin + ((__bytes - __begin) & ~__mask) + __own * size;
        if (__head < __begin) *reinterpret_cast<element*>(__to + __head) = *reinterpret_cast<const element*>(__from + __head);
        if (__tail < __bytes) *reinterpret_cast<element*>(__to + __tail) = *reinterpret_cast<const element*>(__from + __tail);
        return __begin;
    }
    // Go on when all words are there.
    GRIDSTRIDE_INLINED int settle(const plane_part<false>& __part) const {
        if (!__are_shifted) return 0;
        each_plane(__part, [&](char* __to, const char* __from, const char* __lying, int __bytes, int __own, int __threads) {
            __lying += bytes_past<16>(__from);
            const int __begin = copy_ends(__to, __lying, __bytes, 3, __own), __past = int(bytes_past<4>(__lying + __begin));
#pragma unroll 4
            for (int __at = __begin + __own * 4; __at + 4 <= __bytes; __at += __threads * 4) {
                const unsigned* const __words = reinterpret_cast<const unsigned*>(__lying + __at - __past);
                *reinterpret_cast<unsigned*>(__to + __at) = __funnelshift_r(__words[0], __words[1], __past * 8);
            }
        });
        __syncthreads();
        return 0;
    }
};
template <class __operand, class __shape>
struct deinterleaved_operand<__operand, in_planes, __shape> : deinterleaved_planes<__operand, __shape, false> {
    using deinterleaved_planes<__operand, __shape, false>::deinterleaved_planes;
};
template <class __operand, class __shape>
struct deinterleaved_operand<__operand, in_shifted_planes, __shape> : deinterleaved_planes<__operand, __shape, true> {
    using deinterleaved_planes<__operand, __shape, true>::deinterleaved_planes;
};

// Do some of the thread's words of a line, which would begin at `__x` without a phase, from one on.
template <class __shape, int __count, class __operation, int __axes, class... __all_operands>
GRIDSTRIDE_INLINED void do_line_words(const __operation& __do, const element_space<__axes>& __space,
                                      const plane_part<false>& __part, int __x, int __y, int __phase, int __w,
                                      __all_operands&... __all) {
    const long long __step = __space.numbers.step, __number = __part.number + __part.x * __step + __y * __space.numbers.strides[0];
#pragma unroll
    for (int __k = 0; __k < __count; ++__k) swallow(__all.load(__k, __w + __k, __phase)...);
#pragma unroll
    for (int __k = 0; __k < __count; ++__k) {
        const int __first = __x + (__w + __k) * __shape::apart - __phase;
        swallow(__all.unpack(__k, __w + __k, __phase)...);
#pragma unroll
        for (int __j = 0; __j < __shape::length; ++__j)
            __do(__number + (__first + __j) * __step,
                 element<typename __all_operands::operand>(__all.items.items[__j]).get()...);
        swallow(__all.store(__w + __k, __phase)...);
    }
}
// The same of all of which not all are in the part: one after another, or their elements.
template <class __shape, class __operation, int __axes, class... __all_operands>
GRIDSTRIDE_INLINED void do_end_of_line(const __operation& __do, const element_space<__axes>& __space,
                                       const plane_part<false>& __part, int __x, int __y, int __phase, __all_operands&... __all) {
    const long long __step = __space.numbers.step, __number = __part.number + __part.x * __step + __y * __space.numbers.strides[0];
#pragma unroll 1
    for (int __w = 0; __w < __shape::words; ++__w) {
        const int __first = __x + __w * __shape::apart - __phase;
        if (__part.has(__first, __shape::length)) {
            do_line_words<__shape, 1>(__do, __space, __part, __x, __y, __phase, __w, __all...);
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
    swallow(__all.settle(__part)...);
    const int __chunks = (__part.width + __shape::chunk - 1) / __shape::chunk;
    const warp_places __places(__chunks);
#pragma unroll 1
    for (int __c = __places.first; __c < __chunks; __c += __places.beside) {
        const int __x = __c * __shape::chunk + threadIdx.x % 32 * __shape::length;
        const bool __are_whole = __part.has(__c * __shape::chunk - __shape::before, __shape::chunk + __shape::before);
        swallow(__all.stand(__x, __places.row)...);
#pragma unroll 1
        for (int __y = __places.row; __y < __part.height; __y += __places.below) {
            const int __phase = last_of(__all...).phase(__x);
            if (__are_whole) do_line_words<__shape, __shape::words>(__do, __space, __part, __x, __y, __phase, 0, __all...);
            else do_end_of_line<__shape>(__do, __space, __part, __x, __y, __phase, __all...);
            swallow(__all.go_on(__places.below)...);
        }
    }
}

template <class __first, class... __rest>
struct last_type { typedef typename last_type<__rest...>::type type; };
template <class __only>
struct last_type<__only> { typedef __only type; };

// Phases: of lines of the last operand in sectors of memory. Kinds: how each operand lies.
template <int __phases, int... __kinds, class __operation, int __axes, class... __operands>
GRIDSTRIDE_INLINED void deinterleaved(const __operation& __do, const element_space<__axes>& __space, char* __shared,
                                      const __operands&... __all) {
    typedef line_words<sizeof(typename last_type<__operands...>::type::stored), __phases> shape;
    run_deinterleaved<shape>(__do, __space, __shared, deinterleaved_operand<__operands, __kinds, shape>(__all)...);
}

}

#endif
