// `flat_rows`: a loop over elements of rows that are short or begin between words, one after another in the outputs: a thread
// takes packets of them whatever rows they cover. Inputs are consecutive as well, or lie otherwise along each row.
//
// Rows are of one axis, or of several that outputs have one after another. In `element_space`, `row` is the length of all
// rows together, `column` that of each, `width` and `height` are its multiplier and shift; an operand's strides are
// `strides[0]` from one row to the next and `step` along the innermost axis. Of every so many rows packets cover the same
// elements: axis 0 counts these, axis 1 the times that a thread takes `__count` of them. Then come the axes of a row, if
// these are several, and the outer ones.
#ifndef GRIDSTRIDE_FLAT_ROWS_H
#define GRIDSTRIDE_FLAT_ROWS_H

#include <gridstride/rows.h>
#include <gridstride/flat_operands.h>

namespace gridstride {

template <int __length, class __operation, int __axes, class __place, class... __flat>
GRIDSTRIDE_INLINED void do_flat(const __operation& __do, const element_space<__axes>& __space, long long __number,
                                const __place& __at, int __row, int __k, __flat&... __all) {
    swallow(__all.unpack(__at.left, __k)...);
    long long __n = __number + __at.offset(__space.numbers);
    int __left = __at.left;
#pragma unroll
    for (int __j = 0; __j < __length; ++__j) {
        __do(__n, element<typename __flat::operand>(__all.items.items[__j]).get()...);
        __n += __space.numbers.step;
        if (--__left == 0) {
            __left = __row;
            __n += __at.gap(__space.numbers);
        }
    }
    store_all(__k, __all...);
}

// Move to an index of the axes outside of rows; return the number of its first element.
template <int __inner, int __axes, class __index, class... __flat>
GRIDSTRIDE_INLINED long long enter_flat(const element_space<__axes>& __space, __index __rest, __flat&... __all) {
    long long __number = 0;
#pragma unroll
    for (int __axis = __inner + 2; __axis < __axes; ++__axis) {
        if (__axis >= __space.outer.ndim) break;
        const long long __at = __axis + 1 < __space.outer.ndim ? remainder_of(__space.outer, __rest, __axis) : __rest;
        __number += __at * __space.numbers.strides[__axis];
        swallow((__all.row += __at * __all.source.strides[__axis])...);
    }
    return __number;
}

template <class __index, int __inner, int __length, int __count, int __rounds, class __operation, int __axes, class... __flat>
GRIDSTRIDE_INLINED void run_flat(const __operation& __do, const element_space<__axes>& __space, __index __packet,
                                 __flat&&... __all) {
    typedef flat_place<__inner> place;
    constexpr int __each = __count * __rounds;
    const numbering<__axes>& __numbers = __space.numbers;
    const __index __within = remainder_of(__space.outer, __packet, 0);
    const bool __is_all = __space.outer.ndim == __inner + 2;
    const __index __times = __is_all ? __packet : remainder_of(__space.outer, __packet, 1);
    // Elements from a packet to the next that covers the same ones, before which places are seen from.
    const long long __apart = __space.outer.length[0] * __length, __before = __each > 1 ? __apart : 0;
    long long __number = __is_all ? 0 : enter_flat<__inner>(__space, __packet, __all...);
    __number += __times * __numbers.strides[1];
    swallow((__all.row += __times * __all.source.strides[1])...);
    const long long __first = static_cast<long long>(__within) * __length - last_phase(__all...);
    const long long __numbers_apart = __each > 1 ? __numbers.strides[1] / __each : 0;
    const long long __begin = __first + static_cast<long long>(__times) * __each * __apart;
    const place __place(__space, static_cast<__index>(__first + __before < 0 ? 0 : __first + __before));
    const int __row = int(__inner == 0 ? __space.column : __space.outer.length[2]);
    const long long __last = __space.row - __length - __begin;
    const int __room = __last < __each * __apart ? int(__last) : int(__each * __apart);
    const auto __is_inside = [&](int __k) { return __k * int(__apart) <= __room && (__k > 0 || __begin >= 0); };
    __number -= __numbers_apart;
    swallow(__all.begin(__place, __row)...);
#pragma unroll 1
    for (int __done = 0; __done < __each; __done += __count) {
        const int __left = __room - __done * int(__apart);
        const bool __is_first = __done > 0 || __begin >= 0;
#pragma unroll
        for (int __k = 0; __k < __count; ++__k)
            if (__k * int(__apart) <= __left && (__k > 0 || __is_first)) swallow(__all.load(__place.left, __row, __k)...);
#pragma unroll
        for (int __k = 0; __k < __count; ++__k)
            if (__k * int(__apart) <= __left && (__k > 0 || __is_first))
                do_flat<__length>(__do, __space, __number + (__done + __k) * __numbers_apart, __place, __row, __k, __all...);
        swallow(__all.go_on()...);
    }
    if (__is_inside(0) && __is_inside(__each - 1)) return;
#pragma unroll 1
    for (int __k = 0; __k < __each; ++__k) {
        const long long __start = __begin + __k * __apart;
        if (__is_inside(__k) || __start >= __space.row) continue;
#pragma unroll 1
        for (int __l = __start < 0 ? int(-__start) : 0; __l < __length && __start + __l < __space.row; ++__l) {
            const place __at(__space, static_cast<__index>(__first + __l + __before));
            __do(__number + __k * __numbers_apart + __at.offset(__numbers),
                 element<typename __flat::operand>(__all.in_memory(__at, __k)).get()...);
        }
    }
}

// `__index` has room for the number of packets and of elements of a row. Count: of packets that a thread takes at once, and
// how many times. Inner: how
// many axes a row has, if these are several. Length: of packets. Kinds: how each operand lies.
template <class __index, int __count, int __rounds, int __inner, int __length, int... __kinds, class __operation, int __axes, class... __operands>
GRIDSTRIDE_INLINED void flat_rows(const __operation& __do, const element_space<__axes>& __space,
                                  const __operands&... __all) {
    const __index __packet = static_cast<__index>(blockIdx.x) * block_threads + threadIdx.x;
    if (__packet >= __space.outer.count) return;
    run_flat<__index, __inner, __length, __count, __rounds>(__do, __space, __packet, flat<__operands, __length, __count, __kinds>(__all, __count * __rounds)...);
}

}

#endif
