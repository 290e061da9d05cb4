// Loops over elements in which threads take packets of the innermost axis: `long_rows`, in which a block has one piece
// of a row, and `rows`, in which it has neighboring packets of whichever rows.
//
// The operation is called as operation(number of the element, element of each operand...).
#ifndef GRIDSTRIDE_ROWS_H
#define GRIDSTRIDE_ROWS_H

#include <gridstride/packets.h>

namespace gridstride {

constexpr int block_threads = 256;

// What a thread holds of an operand: a packet of it and where its row starts. Where all operands are in order, no more
// is made for others: what is not in order takes many registers.
template <class __operand, int __length, bool __are_in_order>
struct staged {
    typedef __operand operand;
    typedef typename __operand::stored stored;

    const __operand& source;
    char* row;
    unsigned past;     // of the row, how many bytes it starts in a word
    bool is_repeated;  // the same row for all, which starts in a word
    arriving<__length, stored> words;
    packet<stored, __length> items;

    GRIDSTRIDE_INLINED staged(const __operand& __source)
        : source(__source), row(__source.data), past(0), is_repeated(false) {}
    // From one element to the next, which is known of outputs in order.
    GRIDSTRIDE_INLINED long long step() const {
        return __are_in_order && __operand::is_written ? static_cast<long long>(sizeof(stored)) : source.step;
    }
    // How many elements before the start of a row the packet starts that ends at a multiple of its size.
    GRIDSTRIDE_INLINED int phase() const {
        if (step() != sizeof(stored) || !is_one_word<stored, __length>::value) return 0;
        return int(reinterpret_cast<unsigned long long>(row) / sizeof(stored) % __length);
    }
    GRIDSTRIDE_INLINED bool is_same() const { return __operand::is_read && !__operand::is_written && source.step == 0; }
    GRIDSTRIDE_INLINED char* at(long long __element) const { return row + __element * step(); }
    GRIDSTRIDE_INLINED char* in_order(int __element) const { return row + static_cast<unsigned>(__element) * unsigned(sizeof(stored)); }
    GRIDSTRIDE_INLINED int move(long long __elements) {
        row += __elements * step();
        return 0;
    }
    // Know the row before its packets: where it starts, and the one element that is read for all of it.
    GRIDSTRIDE_INLINED int begin(bool __has_rows) {
        past = bytes_past<16>(row);
        GRIDSTRIDE_IF_KNOWN (__operand::is_read) {
            is_repeated = past && __has_rows && source.strides[1] == 0;
            if (is_same()) {
                packet<stored, __length> __repeated;
                load_repeated(__repeated, row);
                words.pack(__repeated);
            }
        }
        return 0;
    }
    GRIDSTRIDE_INLINED int load(int __element) {
        GRIDSTRIDE_IF_KNOWN (__operand::is_read) {
            if (is_same()) return 0;
            GRIDSTRIDE_IF_KNOWN (__are_in_order) {
                if (is_repeated) words.load_cached(in_order(__element), past);
                else words.load(in_order(__element), past);
            } else {
                packet<stored, __length> __gathered;
                load_packet<__length>(__gathered, at(__element), source.step, 0, __length);
                words.pack(__gathered);
            }
        }
        return 0;
    }
    GRIDSTRIDE_INLINED int join() {
        GRIDSTRIDE_IF_KNOWN (__operand::is_read && __are_in_order) {
            if (is_same()) return 0;
            if (is_repeated) words.join_cached(past);
            else words.join(past);
        }
        return 0;
    }
    GRIDSTRIDE_INLINED int unpack() {
        GRIDSTRIDE_IF_KNOWN (__operand::is_read) words.unpack(items);
        return 0;
    }
    GRIDSTRIDE_INLINED int store(int __element) const {
        GRIDSTRIDE_IF_KNOWN (__operand::is_written) {
            if (__are_in_order && past == 0 && is_one_word<stored, __length>::value) whole<__length, stored>::store(items, in_order(__element));
            else store_packet<__length>(items, at(__element), step(), 0, __length);
        }
        return 0;
    }
    // Of the last operand, by whose words packets are counted.
    GRIDSTRIDE_INLINED void store_last(int __element) const {
        constexpr bool __is_word = __are_in_order && is_one_word<stored, __length>::value && alignof(stored) == sizeof(stored);
        GRIDSTRIDE_IF_KNOWN (__is_word && __operand::is_written) whole<__length, stored>::store(items, in_order(__element));
        else store(__element);
    }
    GRIDSTRIDE_INLINED stored& in_memory(long long __element) const { return *reinterpret_cast<stored*>(at(__element)); }
};

// The phase of the last operand, an output where there is one.
GRIDSTRIDE_INLINED int last_phase() { return 0; }
template <class __only>
GRIDSTRIDE_INLINED int last_phase(const __only& __last) { return __last.phase(); }
template <class __first, class __second, class... __rest>
GRIDSTRIDE_INLINED int last_phase(const __first&, const __second& __next, const __rest&... __others) {
    return last_phase(__next, __others...);
}

GRIDSTRIDE_INLINED void store_all(int) {}
template <class __only>
GRIDSTRIDE_INLINED void store_all(int __element, const __only& __last) { __last.store_last(__element); }
template <class __first, class __second, class... __rest>
GRIDSTRIDE_INLINED void store_all(int __element, const __first& __one, const __second& __next, const __rest&... __others) {
    __one.store(__element);
    store_all(__element, __next, __others...);
}

// Large structures are seen where they are.
template <class... __staged>
__device__ constexpr bool are_large() { return larger(int(sizeof(typename __staged::stored))...) > largest_copy; }

// The numbers of elements along a row.
struct row_numbers {
    long long first, step;
    GRIDSTRIDE_INLINED long long of(long long __element) const { return first + __element * step; }
};

template <class __operation, class... __staged>
GRIDSTRIDE_INLINED void do_one(const __operation& __do, const row_numbers& __numbers, long long __element,
                               __staged&... __all) {
    __do(__numbers.of(__element), element<typename __staged::operand>(__all.in_memory(__element)).get()...);
}

// Do the packet that begins with an element. The words of all operands are loaded before one is taken apart: a load whose
// value is needed at once keeps the next from being issued.
template <int __length, class __operation, class... __staged>
GRIDSTRIDE_INLINED void do_packet(const __operation& __do, const row_numbers& __numbers, int __element,
                                  __staged&... __all) {
    swallow(__all.load(__element)...);
    swallow(__all.join()...);
    swallow(__all.unpack()...);
#pragma unroll
    for (int __j = 0; __j < __length; ++__j)
        __do(__numbers.of(__element + __j), element<typename __staged::operand>(__all.items.items[__j]).get()...);
    store_all(__element, __all...);
}

// Move to the row of an index along the axes after the first; return the number of its first element.
template <int __axes, class __index, class... __staged>
GRIDSTRIDE_INLINED long long enter_row(const element_space<__axes>& __space, __index __row, __staged&... __all) {
    const axes<__axes>& __outer = __space.outer;
    long long __number = 0;
#pragma unroll
    for (int __axis = 1; __axis < __axes; ++__axis) {
        if (__axis >= __outer.ndim) break;
        const __index __at = __axis + 1 < __outer.ndim ? remainder_of(__outer, __row, __axis) : __row;
        __number += static_cast<long long>(__at) * __space.numbers.strides[__axis];
        swallow((__all.row += static_cast<long long>(__at) * __all.source.strides[__axis])...);
    }
    return __number;
}

template <int __length, class __index, class __operation, int __axes, class... __staged>
GRIDSTRIDE_INLINED void run_rows(const __operation& __do, const element_space<__axes>& __space, __index __packet,
                                 __staged&&... __all) {
    const __index __within = __space.outer.ndim > 1 ? remainder_of(__space.outer, __packet, 0) : __packet;
    const long long __number = __space.outer.ndim > 1 ? enter_row(__space, __packet, __all...) : 0;
    const long long __first = static_cast<long long>(__within) * __length - last_phase(__all...);
    const long long __left = __space.row - __first;
    const row_numbers __numbers = {__number + __first * __space.numbers.step, __space.numbers.step};
    swallow(__all.move(__first)...);
    if (are_large<__staged...>() || __first < 0 || __left < __length) {  // the ends of a row, one by one
        const int __last = __left < __length ? int(__left) : __length;
#pragma unroll 1
        for (int __j = __first < 0 ? int(-__first) : 0; __j < __last; ++__j) do_one(__do, __numbers, __j, __all...);
        return;
    }
    swallow(__all.begin(__space.outer.ndim > 1)...);
    do_packet<__length>(__do, __numbers, 0, __all...);
}

// `__index` has room for the number of packets, of a length. In order: consecutive along rows, or one element for a whole row.
template <class __index, int __length, bool __are_in_order, class __operation, int __axes, class... __operands>
GRIDSTRIDE_INLINED void rows(const __operation& __do, const element_space<__axes>& __space,
                             const __operands&... __all) {
    const __index __packet = static_cast<__index>(blockIdx.x) * block_threads + threadIdx.x;
    if (__packet >= __space.outer.count) return;
    run_rows<__length>(__do, __space, __packet, staged<__operands, __length, __are_in_order>(__all)...);
}

// The elements of a row outside whole packets, fewer than two packets: those before `head` and those from `tail` on.
struct row_ends {
    int head, count;
    long long tail;

    GRIDSTRIDE_INLINED row_ends(long long __row, int __length, int __phase)
        : head(__phase ? __length - __phase : 0), tail((__row + __phase) / __length * __length - __phase) {
        if (head > __row) head = int(__row);
        if (tail < head) tail = head;
        count = head + int(__row - tail);
    }
    GRIDSTRIDE_INLINED long long element(int __k) const { return __k < head ? __k : tail + (__k - head); }
};

template <int __length, class __operation, int __axes, class... __staged>
GRIDSTRIDE_INLINED void run_piece(const __operation& __do, const element_space<__axes>& __space, __staged&&... __all) {
    // Axis 0 counts the pieces of a row, of `width` packets each. Height: of how many rows such a piece comes before the
    // next, or 0.
    unsigned __row = blockIdx.x, __piece = __row;
    if (__space.height) {
        __piece /= static_cast<unsigned>(__space.height);
        __row -= __piece * static_cast<unsigned>(__space.height);
    } else if (__space.outer.ndim > 1) {
        __piece = remainder_of(__space.outer, __row, 0);
    }
    const row_numbers __of_row = {__space.outer.ndim > 1 ? enter_row(__space, __row, __all...) : 0, __space.numbers.step};
    const row_ends __ends(__space.row, __length, last_phase(__all...));
    if (__piece == 0 && threadIdx.x < __ends.count) do_one(__do, __of_row, __ends.element(threadIdx.x), __all...);
    const long long __width = __space.width * __length, __begin = __ends.head + __piece * __width;
    const int __end = int(__ends.tail - __begin < __width ? __ends.tail - __begin : __width);
    const row_numbers __numbers = {__of_row.of(__begin), __of_row.step};
    swallow(__all.move(__begin)...);
    swallow(__all.begin(__space.outer.ndim > 1)...);
#pragma unroll 1
    for (int __element = threadIdx.x * __length; __element < __end; __element += block_threads * __length) {
        if (are_large<__staged...>()) do_one(__do, __numbers, __element, __all...);
        else do_packet<__length>(__do, __numbers, __element, __all...);
    }
}

template <int __length, bool __are_in_order, class __operation, int __axes, class... __operands>
GRIDSTRIDE_INLINED void long_rows(const __operation& __do, const element_space<__axes>& __space,
                                  const __operands&... __all) {
    run_piece<__length>(__do, __space, staged<__operands, __length, __are_in_order>(__all)...);
}

}

#endif
