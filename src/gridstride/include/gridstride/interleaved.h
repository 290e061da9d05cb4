// `interleaved`: a loop over elements of short rows one after another, where inputs lie along the long side: a line for each
// element of a row. A warp takes words of lines, wherever words of these begin, and stores their elements in shared memory
// as the rows of the output lie in memory; threads take packets of the output from there.
#ifndef GRIDSTRIDE_INTERLEAVED_H
#define GRIDSTRIDE_INTERLEAVED_H

#include <gridstride/few_lines.h>
#include <gridstride/lines_in_planes.h>

namespace gridstride {

constexpr int packets_at_once = 2;

// A thread's words of a line, as far apart as the threads of a warp take words.
template <class __stored, int __words, bool = (sizeof(__stored) < 4)>
struct line_part {
    static constexpr int size = sizeof(__stored), length = 4 / size, words = __words, apart = 32 * length;
    unsigned low[words], high[words], past;
    // All: the line goes on behind the words.
    template <bool __all>
    GRIDSTRIDE_INLINED void load(const char* __place, int __x, int __end) {
        past = bytes_past<4>(__place);
        const unsigned* const __from = reinterpret_cast<const unsigned*>(__place - past);
#pragma unroll
        for (int __w = 0; __w < words; ++__w) {
            const int __begin = (__x + __w * apart) * size - int(past);
            if (__all || __begin < __end * size) low[__w] = __from[__w * 32];
            if (__all || __begin + 4 < __end * size) high[__w] = __from[__w * 32 + 1];
        }
    }
    // Store the elements of a word in rows, at bytes further on than these, as many as are left.
    template <bool __has_gaps>
    GRIDSTRIDE_INLINED void store(int __w, const row_memory<__stored, __has_gaps>& __rows, const int (&__bytes)[length],
                                  int __further, int __left) const {
        typedef typename word<size>::type bits;
        const unsigned __word = __funnelshift_r(low[__w], high[__w], past * 8);
        const unsigned __turned = __funnelshift_r(__word, __word, __rows.turn * size * 8);
#pragma unroll
        for (int __j = 0; __j < length; ++__j)
            if ((__j + __rows.turn) % length < __left)
                *reinterpret_cast<bits*>(__rows.at(__bytes[__j] + __further)) = static_cast<bits>(__turned >> __j * size * 8);
    }
};
template <class __stored, int __words>
struct line_part<__stored, __words, false> {
    static constexpr int size = sizeof(__stored), length = 1, words = __words, apart = 32;
    __stored items[words];
    template <bool __all>
    GRIDSTRIDE_INLINED void load(const char* __place, int __x, int __end) {
#pragma unroll
        for (int __w = 0; __w < words; ++__w)
            if (__all || __x + __w * apart < __end) copy(items[__w], reinterpret_cast<const __stored*>(__place)[__w * apart]);
    }
    template <bool __has_gaps>
    GRIDSTRIDE_INLINED void store(int __w, const row_memory<__stored, __has_gaps>& __rows, const int (&__bytes)[1],
                                  int __further, int) const {
        copy(*reinterpret_cast<__stored*>(__rows.at(__bytes[0] + __further)), items[__w]);
    }
};

// What threads take of any number of lines: words of so many at once.
template <class __stored, int __at_once, int __words>
struct many_lines {
    typedef line_part<__stored, __words> line;
    static constexpr bool in_words = false;  // whether words of rows are stored, or elements
    static constexpr int size = sizeof(__stored), length = line::length, at_once = __at_once, chunk = line::words * line::apart;

    template <bool __backwards, class __memory>
    static GRIDSTRIDE_INLINED void bring(const __memory& __memory_of_rows, const char* __corner, long long __step,
                                         const plane_part<false>& __part) {
        // Lines that go backwards are taken as they lie in memory, for rows of which the last comes first.
        const __memory __rows = __backwards ? __memory_of_rows.turned_over(__part.to) : __memory_of_rows;
        if (__backwards) __corner -= (__part.to - 1) * size;
        const bool __goes_on = __backwards ? __part.x > 0 : __part.x + __part.width < __part.x_side.length;
        const bool __is_inside = __part.to == __part.width && __goes_on;
        const int __chunks = __part.width / chunk;
        const warp_places __places(__chunks);
        const int __lines = (__part.height + __places.below - 1) / __places.below, __first = __places.row * __lines;
        const int __end = __first + __lines < __part.height ? __first + __lines : __part.height;
#pragma unroll 1
        for (int __c = __places.first; __c < __chunks; __c += __places.beside) {
            const int __x = __c * chunk + threadIdx.x % 32 * length;
            const char* __place = __corner + __x * size + __first * __step;
            int __to[line::words][length], __y = __first;
#pragma unroll
            for (int __w = 0; __w < line::words; ++__w)
#pragma unroll
                for (int __j = 0; __j < length; ++__j)
                    __to[__w][__j] = __rows.byte(__x + __w * line::apart, __first) + __rows.row_of(__j);
            if (__is_inside)
#pragma unroll 1
                for (; __y + at_once <= __end; __y += at_once)
                    bring_some<true, at_once>(__rows, __place, __step, __to, __x, __part.to);
#pragma unroll 1
            for (; __y < __end; ++__y) bring_some<false, 1>(__rows, __place, __step, __to, __x, __part.to);
        }
    }
    template <bool __backwards, class __memory, class __operand>
    static GRIDSTRIDE_INLINED void bring_planes(const __memory& __rows, const char* __corner, const __operand& __source,
                                                const plane_part<false>& __part) {
        lines_in_planes<__backwards>::bring(__rows, __source, __corner, __part);
    }
    // Bring so many lines, and go on to the next ones.
    template <bool __all, int __count, class __memory>
    static GRIDSTRIDE_INLINED void bring_some(const __memory& __rows, const char*& __place, long long __step,
                                              int (&__to)[line::words][length], int __x, int __end) {
        line __lines[__count];
#pragma unroll
        for (int __k = 0; __k < __count; ++__k) __lines[__k].template load<__all>(__place + __k * __step, __x, __end);
        __syncwarp();  // else the compiler waits for the first line before it loads the others
#pragma unroll
        for (int __k = 0; __k < __count; ++__k)
#pragma unroll
            for (int __w = 0; __w < line::words; ++__w)
                if (__all || __x + __w * line::apart < __end)
                    __lines[__k].store(__w, __rows, __to[__w], __k * size, __all ? length : __end - __x - __w * line::apart);
        __place += __count * __step;
#pragma unroll
        for (int __w = 0; __w < line::words; ++__w)
#pragma unroll
            for (int __j = 0; __j < length; ++__j) __to[__w][__j] += __count * size;
    }
};

// Lines: how many there are, where they are few; else 0.
template <class __stored, int __lines, int __at_once, int __words, bool = (__lines > 0 && sizeof(__stored) < 4)>
struct lines_of { typedef many_lines<__stored, __at_once, __words> type; };
template <class __stored, int __lines, int __at_once, int __words>
struct lines_of<__stored, __lines, __at_once, __words, true> { typedef few_lines<__stored, __lines, __words> type; };

// An operand that lies as the last one.
template <class __operand, int __length, int __kind, bool __has_gaps, int __lines, int __at_once, int __words,
          bool = (__kind >= other_side)>
struct interleaved_operand {
    typedef __operand operand;
    typedef typename __operand::stored stored;
    static constexpr int size = sizeof(stored), length = __length;

    const __operand& source;
    char* corner;  // of the part
    row_packets<__operand, length, __kind, packets_at_once> packets;
    packet<stored, length> items;

    GRIDSTRIDE_INLINED interleaved_operand(const __operand& __source) : source(__source), corner(__source.data) {}
    GRIDSTRIDE_INLINED int enter(const plane_part<false>& __part) {
        corner += __part.x * source.step;
        return 0;
    }
    // How many elements before the part the packet begins that it begins in.
    GRIDSTRIDE_INLINED int phase() const {
        return int(static_cast<unsigned>(reinterpret_cast<unsigned long long>(corner)) / size % length);
    }
    GRIDSTRIDE_INLINED int take_memory(char*&, int, const plane_part<false>&) { return 0; }
    GRIDSTRIDE_INLINED int bring(const plane_part<false>&) const { return 0; }
    GRIDSTRIDE_INLINED int load(int __k, int __element) { return packets.load(__k, corner + __element * size); }
    GRIDSTRIDE_INLINED int unpack(int __k, int __element) { return packets.unpack(items, __k, corner + __element * size); }
    GRIDSTRIDE_INLINED int store(int __element) const { return packets.store(items, corner + __element * size); }
    GRIDSTRIDE_INLINED stored& in_place(int __x, int __y) const {
        return *reinterpret_cast<stored*>(corner + __x * source.step + __y * size);
    }
};

// An input of lines.
template <class __operand, int __length, int __kind, bool __has_gaps, int __lines, int __at_once, int __words>
struct interleaved_operand<__operand, __length, __kind, __has_gaps, __lines, __at_once, __words, true> {
    typedef __operand operand;
    typedef typename __operand::stored stored;
    typedef typename lines_of<stored, __lines, __at_once, __words>::type lines;
    static constexpr int size = sizeof(stored), bytes = __length * size, words = (bytes + 3) / 4;
    static constexpr bool are_words = bytes % 4 == 0;

    const __operand& source;
    char* corner;
    row_memory<stored, __has_gaps> rows;
    int before;  // bytes from where the words of shared memory are that those of the output come from
    unsigned packets[packets_at_once][words + 1];
    packet<stored, __length> items;

    GRIDSTRIDE_INLINED interleaved_operand(const __operand& __source) : source(__source), corner(__source.data) {}
    GRIDSTRIDE_INLINED int enter(const plane_part<false>& __part) {
        if (__kind < in_planes) corner += __part.x * source.step;
        return 0;
    }
    GRIDSTRIDE_INLINED int phase() const { return 0; }
    GRIDSTRIDE_INLINED int take_memory(char*& __shared, int __phase, const plane_part<false>& __part) {
        const int __first = __phase * size, __at = lines::in_words ? (__first + 3) / 4 * 4 : __first;
        rows.begin(__shared, __at, __part.width, 1, __part);
        before = __at - __first;
        return 0;
    }
    GRIDSTRIDE_INLINED int bring(const plane_part<false>& __part) const {
        if (__kind < in_planes) lines::template bring<__kind == other_side_backwards>(rows, corner, source.strides[0], __part);
        else lines::template bring_planes<__kind == in_planes_backwards>(rows, corner, source, __part);
        return 0;
    }
    // No gap is within a packet.
    GRIDSTRIDE_INLINED int load(int __k, int __element) {
        constexpr int __each = !are_words ? size : __has_gaps ? 4 : bytes, __count = bytes / __each;
        typedef typename word<__each>::type each;
        const int __byte = rows.first + __element * size - (are_words ? before : 0);
        const each* const __from = reinterpret_cast<const each*>(rows.at(__byte));
        each __all[__count];
#pragma unroll
        for (int __w = 0; __w < __count; ++__w) __all[__w] = __from[__w];
        memcpy(packets[__k], __all, bytes);
        if (is_shifted()) packets[__k][words] = *reinterpret_cast<const unsigned*>(rows.at(__byte + bytes));
        return 0;
    }
    GRIDSTRIDE_INLINED bool is_shifted() const { return lines::in_words && are_words && before > 0; }
    GRIDSTRIDE_INLINED int unpack(int __k, int) {
        if (is_shifted())
#pragma unroll
            for (int __w = 0; __w < words; ++__w)
                packets[__k][__w] = __funnelshift_r(packets[__k][__w], packets[__k][__w + 1], before * 8);
        memcpy(&items, packets[__k], bytes);
        return 0;
    }
    GRIDSTRIDE_INLINED int store(int) const { return 0; }
    GRIDSTRIDE_INLINED stored& in_place(int __x, int __y) const { return *reinterpret_cast<stored*>(rows.at(rows.byte(__x, __y))); }
};

template <int __length, class __operation, int __axes, class... __all_operands>
GRIDSTRIDE_INLINED void do_row_packet(const __operation& __do, const element_space<__axes>& __space,
                                    const plane_part<false>& __part, int __k, int __element, __all_operands&... __all) {
    swallow(__all.unpack(__k, __element)...);
#pragma unroll
    for (int __j = 0; __j < __length; ++__j) {
        unsigned __x = static_cast<unsigned>(__element + __j);
        const unsigned __y = remainder_of(__space.outer, __x, 3);
        __do(__part.number + (__part.x + __x) * __space.numbers.step + __y * __space.numbers.strides[0],
             element<typename __all_operands::operand>(__all.items.items[__j]).get()...);
    }
    swallow(__all.store(__element)...);
}

template <int __length, class __operation, int __axes, class... __all_operands>
GRIDSTRIDE_INLINED void run_interleaved(const __operation& __do, const element_space<__axes>& __space, char* __shared,
                                        __all_operands&&... __all) {
    constexpr int __at_once = packets_at_once;
    plane_part<false> __part(__space, int(__space.width));
    enter_plane(__part, __space, __space.column, __all...);
    const int __phase = last_of(__all...).phase();
    swallow(__all.take_memory(__shared, __phase, __part)...);
    swallow(__all.bring(__part)...);
    __syncthreads();
    const int __elements = __part.to * __part.height, __head = (__length - __phase) % __length;
    const int __packets = __elements > __head ? (__elements - __head) / __length : 0;
#pragma unroll 1
    for (int __packet = threadIdx.x; __packet < __packets; __packet += turning_threads * __at_once) {
#pragma unroll
        for (int __k = 0; __k < __at_once; ++__k)
            if (__packet + __k * turning_threads < __packets)
                swallow(__all.load(__k, __head + (__packet + __k * turning_threads) * __length)...);
#pragma unroll
        for (int __k = 0; __k < __at_once; ++__k)
            if (__packet + __k * turning_threads < __packets)
                do_row_packet<__length>(__do, __space, __part, __k, __head + (__packet + __k * turning_threads) * __length, __all...);
    }
    // The elements before and after whole packets.
    const int __own = threadIdx.x, __element = __own < __head ? __own : __packets * __length + __own;
    if (__own >= 2 * __length || __element >= __elements) return;
    unsigned __x = static_cast<unsigned>(__element);
    const unsigned __y = remainder_of(__space.outer, __x, 3);
    __do(__part.number + (__part.x + __x) * __space.numbers.step + __y * __space.numbers.strides[0],
         element<typename __all_operands::operand>(__all.in_place(__x, __y)).get()...);
}

// Gaps: see `row_memory`; lines: see `lines_of`; at once: the lines or squares of which a thread loads words; words: of each;
// kinds: how each operand lies.
template <bool __has_gaps, int __lines, int __at_once, int __words, int... __kinds, class __operation, int __axes, class... __operands>
GRIDSTRIDE_INLINED void interleaved(const __operation& __do, const element_space<__axes>& __space, char* __shared,
                                    const __operands&... __all) {
    constexpr int __length = packet_length<__operands...>();
    run_interleaved<__length>(
        __do, __space, __shared, interleaved_operand<__operands, __length, __kinds, __has_gaps, __lines, __at_once, __words>(__all)...);
}

}

#endif
