// Loops over elements in which threads take packets of the innermost axis: `long_rows`, in which a block has one piece
// of a row, and `rows`, in which it has neighboring packets of whichever rows.
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
    stored same;  // of a row that is one element
    word_of<stored, __length> whole_word;
    packet<stored, __length> items;

    GRIDSTRIDE_INLINED staged(const __operand& __source) : source(__source), row(__source.data) {}
    // How many elements before the start of a row the packet starts that ends at a multiple of its size.
    GRIDSTRIDE_INLINED int phase() const {
        if (source.step != sizeof(stored) || !is_one_word<stored, __length>::value) return 0;
        return reinterpret_cast<unsigned long long>(row) / sizeof(stored) % __length;
    }
    GRIDSTRIDE_INLINED bool is_same() const { return __operand::is_read && !__operand::is_written && source.step == 0; }
    GRIDSTRIDE_INLINED char* at(long long __element) const {
        return row + __element * static_cast<long long>(sizeof(stored));
    }
    GRIDSTRIDE_INLINED bool is_word(long long __element) const {
        return is_same() || word_of<stored, __length>::is_at(at(__element), source.step);
    }
    GRIDSTRIDE_INLINED int load_word(long long __element) {
        if (is_same()) same = *reinterpret_cast<const stored*>(row);
        else if (__operand::is_read) whole_word.load(at(__element));
        return 0;
    }
    GRIDSTRIDE_INLINED int repeat_same() {
        if (is_same()) {
            packet<stored, __length> __repeated;
#pragma unroll
            for (int __j = 0; __j < __length; ++__j) __repeated.items[__j] = same;
            whole_word.pack(__repeated);
        }
        return 0;
    }
    // Elements wait as one word where they make one, whichever way they came: so they are taken apart in one place.
    GRIDSTRIDE_INLINED int unpack() {
        if (__operand::is_read && is_one_word<stored, __length>::value) whole_word.unpack(items);
        return 0;
    }
    GRIDSTRIDE_INLINED int store_word(long long __element) const {
        if (__operand::is_written) whole<__length, stored>::store(items, at(__element));
        return 0;
    }
    GRIDSTRIDE_INLINED int load(long long __element) {
        if (__operand::is_read)
            load_packet<__length>(items, row + __element * source.step, source.step, 0, __length);
        if (__operand::is_read && is_one_word<stored, __length>::value) whole_word.pack(items);
        return 0;
    }
    GRIDSTRIDE_INLINED int store(long long __element) const {
        if (__operand::is_written)
            store_packet<__length>(items, row + __element * source.step, source.step, 0, __length);
        return 0;
    }
    GRIDSTRIDE_INLINED stored& in_memory(long long __element) const {
        return *reinterpret_cast<stored*>(row + __element * source.step);
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

// Do the elements of a packet that begins with number `__element` of a row.
template <int __length, class __operation, int __axes, class... __staged>
GRIDSTRIDE_INLINED void run_packet(const __operation& __do, const element_space<__axes>& __space, long long __number,
                                   long long __element, bool __are_words, __staged&... __all) {
    const long long __step = __space.numbers.step, __left = __space.row - __element;
    __number += __element * __step;
    constexpr bool __are_large = larger(int(sizeof(typename __staged::stored))...) > largest_copy;
    if (__are_large || __element < 0 || __left < __length) {  // the ends of a row, one by one
        const int __last = __left < __length ? int(__left) : __length;
#pragma unroll 1
        for (int __j = __element < 0 ? int(-__element) : 0; __j < __last; ++__j)
            __do(__number + __j * __step, element<typename __staged::operand>(__all.in_memory(__element + __j)).get()...);
        return;
    }
    if (__are_words) {
        swallow(__all.load_word(__element)...);
        swallow(__all.repeat_same()...);
    } else {
        swallow(__all.load(__element)...);
    }
    swallow(__all.unpack()...);
#pragma unroll
    for (int __j = 0; __j < __length; ++__j)
        __do(__number + __j * __step, element<typename __staged::operand>(__all.items.items[__j]).get()...);
    if (__are_words) swallow(__all.store_word(__element)...);
    else swallow(__all.store(__element)...);
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
    const long long __element = static_cast<long long>(__within) * __length - last_phase(__all...);
    run_packet<__length>(__do, __space, __number, __element, all_of(__all.is_word(__element)...), __all...);
}

// `__index` has room for the number of packets.
template <class __index, class __operation, int __axes, class... __operands>
GRIDSTRIDE_INLINED void rows(const __operation& __do, const element_space<__axes>& __space,
                             const __operands&... __all) {
    constexpr int __length = packet_length<__operands...>();
    const __index __packet = static_cast<__index>(blockIdx.x) * block_threads + threadIdx.x;
    if (__packet < __space.outer.count) run_rows<__length>(__do, __space, __packet, staged<__operands, __length>(__all)...);
}

template <int __length, class __operation, int __axes, class... __staged>
GRIDSTRIDE_INLINED void run_piece(const __operation& __do, const element_space<__axes>& __space, __staged&&... __all) {
    // Axis 0 counts the pieces of a row, of `width` packets each; a row has `height` packets.
    unsigned __row = blockIdx.x;
    const unsigned __piece = __space.outer.ndim > 1 ? remainder_of(__space.outer, __row, 0) : __row;
    const long long __number = __space.outer.ndim > 1 ? enter_row(__space, __row, __all...) : 0;
    const int __phase = last_phase(__all...);
    const long long __first = __piece * __space.width, __packets = __space.height - __first;
    const int __end = int(__packets < __space.width ? __packets : __space.width);
    const bool __are_words = all_of(__all.is_word(-__phase)...);
#pragma unroll 1
    for (int __packet = threadIdx.x; __packet < __end; __packet += block_threads)
        run_packet<__length>(__do, __space, __number, (__first + __packet) * __length - __phase, __are_words, __all...);
}

template <class __operation, int __axes, class... __operands>
GRIDSTRIDE_INLINED void long_rows(const __operation& __do, const element_space<__axes>& __space,
                                  const __operands&... __all) {
    constexpr int __length = packet_length<__operands...>();
    run_piece<__length>(__do, __space, staged<__operands, __length>(__all)...);
}

}

#endif
