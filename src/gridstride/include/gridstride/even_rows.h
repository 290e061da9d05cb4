// `even_rows`: a loop over elements of rows that are whole packets, each of which is a word in memory: a thread takes the
// same packet of several rows, which are as far apart in all blocks.
//
// In `element_space`, `column` is the number of rows along axis 1, of which a block takes `width`, and `height` that along
// axis 2, of which a thread takes `__count`. `outer` has the packets of a row, the blocks along axes 1 and 2, and then the
// axes that are walked one by one; an operand's strides are those of the same axes, the first of which is left out.
#ifndef GRIDSTRIDE_EVEN_ROWS_H
#define GRIDSTRIDE_EVEN_ROWS_H

#include <gridstride/packets.h>

namespace gridstride {

template <class __operand, int __length, int __count>
struct evenly {
    typedef __operand operand;
    typedef typename __operand::stored stored;
    typedef whole<__length, stored> words;

    const __operand& source;
    char* place;
    typename words::type bits[__count];
    packet<stored, __length> items;

    GRIDSTRIDE_INLINED evenly(const __operand& __source) : source(__source), place(__source.data) {}
    GRIDSTRIDE_INLINED int move(int __axis, unsigned __index) {
        place += __index * source.strides[__axis];
        return 0;
    }
    GRIDSTRIDE_INLINED int move_packets(unsigned __packets) {
        place += __packets * int(sizeof(typename words::type));
        return 0;
    }
    GRIDSTRIDE_INLINED int load(int __k) {
        if (__operand::is_read)
            bits[__k] = *reinterpret_cast<const typename words::type*>(place + __k * source.strides[2]);
        return 0;
    }
    GRIDSTRIDE_INLINED int unpack(int __k) {
        if (__operand::is_read) words::unpack(items, bits[__k]);
        return 0;
    }
    GRIDSTRIDE_INLINED int store(int __k) const {
        if (__operand::is_written) words::store(items, place + __k * source.strides[2]);
        return 0;
    }
};

template <int __length, class __operation, int __axes, class... __evenly>
GRIDSTRIDE_INLINED void do_evenly(const __operation& __do, const element_space<__axes>& __space, long long __number, int __k,
                                  __evenly&... __all) {
    swallow(__all.unpack(__k)...);
#pragma unroll
    for (int __j = 0; __j < __length; ++__j)
        __do(__number + __k * __space.numbers.strides[2] + __j * __space.numbers.step,
             element<typename __evenly::operand>(__all.items.items[__j]).get()...);
    swallow(__all.store(__k)...);
}

template <int __length, int __count, class __operation, int __axes, class... __evenly>
GRIDSTRIDE_INLINED void run_evenly(const __operation& __do, const element_space<__axes>& __space, __evenly&&... __all) {
    const numbering<__axes>& __numbers = __space.numbers;
    unsigned __rest = blockIdx.x, __row = threadIdx.x;
    const unsigned __packet = remainder_of(__space.outer, __row, 0), __width = static_cast<unsigned>(__space.width);
    if (__row >= __width) return;
    __row += remainder_of(__space.outer, __rest, 1) * __width;
    if (__row >= __space.column) return;
    const unsigned __first = remainder_of(__space.outer, __rest, 2) * __count;
    long long __number = __packet * __length * __numbers.step + __row * __numbers.strides[1] + __first * __numbers.strides[2];
    swallow(__all.move_packets(__packet)...);
    swallow(__all.move(1, __row)...);
    swallow(__all.move(2, __first)...);
#pragma unroll
    for (int __axis = 3; __axis < __axes; ++__axis) {
        if (__axis >= __space.outer.ndim) break;
        const unsigned __at = remainder_of(__space.outer, __rest, __axis);
        __number += __at * __numbers.strides[__axis];
        swallow(__all.move(__axis, __at)...);
    }
    if (__first + __count <= __space.height) {
#pragma unroll
        for (int __k = 0; __k < __count; ++__k) swallow(__all.load(__k)...);
#pragma unroll
        for (int __k = 0; __k < __count; ++__k) do_evenly<__length>(__do, __space, __number, __k, __all...);
        return;
    }
#pragma unroll 1
    for (unsigned __k = __first; __k < __space.height; ++__k) {
        swallow(__all.load(0)...);
        do_evenly<__length>(__do, __space, __number, 0, __all...);
        __number += __numbers.strides[2];
        swallow(__all.move(2, 1)...);
    }
}

template <int __count, class __operation, int __axes, class... __operands>
GRIDSTRIDE_INLINED void even_rows(const __operation& __do, const element_space<__axes>& __space,
                                  const __operands&... __all) {
    constexpr int __length = packet_length<__operands...>();
    run_evenly<__length, __count>(__do, __space, evenly<__operands, __length, __count>(__all)...);
}

}

#endif
