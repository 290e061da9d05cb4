// `repeated_rows`: a loop over elements of long rows that begin between words, where some input is the same row again and
// again: a thread takes packets of several rows that begin at the same place of a word, and those of that input once.
#ifndef GRIDSTRIDE_REPEATED_ROWS_H
#define GRIDSTRIDE_REPEATED_ROWS_H

#include <gridstride/rows.h>
#include <gridstride/turning.h>

namespace gridstride {

constexpr int one_row = 3;  // how an input lies that is the same row for all

template <class __operand, int __kind, int __length, int __rows>
struct of_rows {
    typedef __operand operand;
    typedef typename __operand::stored stored;
    static constexpr int size = sizeof(stored);
    static constexpr bool is_own = __kind == between_words || __kind == in_words;

    const __operand& source;
    char* row;          // of the first of the rows
    long long further;  // from one of the rows to the next
    row_words<__length, stored, __kind == in_words> words[is_own ? __rows : 1];
    stored elements[__kind == one_for_a_row ? __rows : 1];
    packet<stored, __length> items;

    GRIDSTRIDE_INLINED of_rows(const __operand& __source) : source(__source), row(__source.data), further(0) {}

    GRIDSTRIDE_INLINED int enter(unsigned __row, unsigned __apart) {
        row += __row * source.strides[1];
        further = __apart * source.strides[1];
        return 0;
    }
    GRIDSTRIDE_INLINED int phase() const { return int(reinterpret_cast<unsigned long long>(row) / size % __length); }
    GRIDSTRIDE_INLINED int begin(int __count) {
        if (__kind == one_for_a_row)
#pragma unroll
            for (int __k = 0; __k < __rows; ++__k)
                if (__k < __count) copy(elements[__k], *reinterpret_cast<const stored*>(row + __k * further));
        return 0;
    }
    GRIDSTRIDE_INLINED int move(long long __elements) {
        if (__kind != one_for_a_row) row += __elements * size;
        return 0;
    }
    GRIDSTRIDE_INLINED char* at(int __element, int __k) const { return row + __k * further + __element * size; }
    GRIDSTRIDE_INLINED int load(int __element, int __k) {
        if (!__operand::is_read || __kind == one_for_a_row || (__kind == one_row && __k > 0)) return 0;
        words[__k].load(at(__element, __k));
        return 0;
    }
    GRIDSTRIDE_INLINED int join(int __element, int __k) {
        if (__operand::is_read && (is_own || (__kind == one_row && __k == 0))) words[__k].join(at(__element, __k));
        return 0;
    }
    GRIDSTRIDE_INLINED int unpack(int __k) {
        if (!__operand::is_read) return 0;
        if (__kind == one_for_a_row) {
#pragma unroll
            for (int __j = 0; __j < __length; ++__j) copy(items.items[__j], elements[__k]);
        } else {
            words[is_own ? __k : 0].unpack(items);
        }
        return 0;
    }
    GRIDSTRIDE_INLINED int store(int __element, int __k) const {
        if (!__operand::is_written) return 0;
        if (__kind == in_words) whole<__length, stored>::store(items, at(__element, __k));
        else store_packet<__length>(items, at(__element, __k), size, 0, __length);
        return 0;
    }
    GRIDSTRIDE_INLINED stored& in_memory(long long __element, int __k) const {
        return *reinterpret_cast<stored*>(row + __k * further + (__kind == one_for_a_row ? 0 : __element * size));
    }
};

template <int __length, int __rows, class __operation, int __axes, class... __all_rows>
GRIDSTRIDE_INLINED void run_repeated(const __operation& __do, const element_space<__axes>& __space, __all_rows&&... __all) {
    // Axis 0 counts the pieces of a row, of `width` packets each, axis 1 the rows until one begins at the same place again.
    unsigned __rest = blockIdx.x;
    const unsigned __piece = remainder_of(__space.outer, __rest, 0), __first = remainder_of(__space.outer, __rest, 1);
    const unsigned __apart = static_cast<unsigned>(__space.outer.length[1]), __row = __rest * __apart * __rows + __first;
    const int __left = int((__space.column - __row + __apart - 1) / __apart), __count = __left < __rows ? __left : __rows;
    if (__row >= __space.column) return;
    swallow(__all.enter(__row, __apart)...);
    const long long __step = __space.numbers.step, __number = __row * __space.numbers.strides[1],
                    __further = __apart * __space.numbers.strides[1];
    const row_ends __ends(__space.row, __length, last_phase(__all...));
    if (__piece == 0)
#pragma unroll 1
        for (int __k = threadIdx.x; __k < __ends.count * __count; __k += block_threads) {
            const long long __element = __ends.element(__k % __ends.count);
            const int __of = __k / __ends.count;
            __do(__number + __of * __further + __element * __step,
                 element<typename __all_rows::operand>(__all.in_memory(__element, __of)).get()...);
        }
    const long long __width = __space.width * __length, __begin = __ends.head + __piece * __width;
    const int __end = int(__ends.tail - __begin < __width ? __ends.tail - __begin : __width);
    swallow(__all.move(__begin)...);
    swallow(__all.begin(__count)...);
#pragma unroll 1
    for (int __element = threadIdx.x * __length; __element < __end; __element += block_threads * __length) {
#pragma unroll
        for (int __k = 0; __k < __rows; ++__k)
            if (__k < __count) swallow(__all.load(__element, __k)...);
#pragma unroll
        for (int __k = 0; __k < __rows; ++__k) {
            if (__k >= __count) break;
            swallow(__all.join(__element, __k)...);
            swallow(__all.unpack(__k)...);
#pragma unroll
            for (int __j = 0; __j < __length; ++__j)
                __do(__number + __k * __further + (__begin + __element + __j) * __step,
                     element<typename __all_rows::operand>(__all.items.items[__j]).get()...);
            swallow(__all.store(__element, __k)...);
        }
    }
}

// Rows: how many a thread takes; kinds: how each operand lies.
template <int __rows, int... __kinds, class __operation, int __axes, class... __operands>
GRIDSTRIDE_INLINED void repeated_rows(const __operation& __do, const element_space<__axes>& __space,
                                      const __operands&... __all) {
    constexpr int __length = packet_length<__operands...>();
    run_repeated<__length, __rows>(__do, __space, of_rows<__operands, __kinds, __length, __rows>(__all)...);
}

}

#endif
