// The places of extremes in rows of several axes: their elements lie one after another, and are no fewer than those of a packet.
#ifndef GRIDSTRIDE_FOUND_IN_ROWS_H
#define GRIDSTRIDE_FOUND_IN_ROWS_H

#include <gridstride/fold_rows.h>
#include <gridstride/found_packets.h>

namespace gridstride {

// Packets of rows that may begin between words: all but those at the ends of a row are words, and these cover some elements
// once more, which makes no difference.
template <class __input, int __length, bool __are_words>
struct found_rows {
    typedef typename __input::stored stored;
    __input& one;
    int row;
    GRIDSTRIDE_INLINED found_rows(__input& __one, int __row) : one(__one), row(__row) {}
    // The element with which a packet of the row begins.
    GRIDSTRIDE_INLINED int first_of(int __packet) const {
        if (__are_words) return __packet * __length;
        int __element = __packet * __length - int(bytes_past<16>(one.row) / sizeof(stored));
        if (__element > row - __length) __element = row - __length;
        return __element < 0 ? 0 : __element;
    }
    GRIDSTRIDE_INLINED void load(int __k, int __element) {
        const char* const __at = one.at(__element);
        if (__are_words) one.words[__k].load(__at);
        else one.others[__k].load(__at, one.past[__k] = bytes_past<16>(__at));
    }
    GRIDSTRIDE_INLINED const packet<stored, __length>& unpacked(int __k) {
        if (__are_words) one.words[__k].unpack(one.packets[__k]);
        else {
            one.others[__k].join(one.past[__k]);
            one.others[__k].unpack(one.packets[__k]);
        }
        return one.packets[__k];
    }
};

template <int __length, int __count, bool __are_words, int __outer, int __sums_count, class __counter, class __folding, class __map, class __reduce, bool __is_largest, bool __is_first, class __value, class __own_map, int __axes, class __input>
GRIDSTRIDE_INLINED long long add_packets_of_rows(const __map&, const found_extreme<__reduce, __is_largest, __is_first, __value, __own_map>& __do,
                                                 __folding (&__sums)[__sums_count], const fold_space<__axes>& __space,
                                                 rows_place<__outer, __counter>& __at, long long __first, long long __end, __input& __one) {
    typedef typename __input::stored __stored;
    found_packet<__stored, __length, __counter, __is_largest, __is_first, false> __found;
    found_rows<__input, __length, __are_words> __rows(__one, int(__space.fold_row));
    const __counter __step = __counter(__space.position.step);
    for (; __first + (__count - 1) * __space.group < __end; __first += __count * __space.group) {
        __counter __positions[__count];
#pragma unroll
        for (int __k = 0; __k < __count; ++__k) {
            const int __element = __rows.first_of(__at.packet);
            __positions[__k] = __counter(__at.from.position) + __counter(__element) * __step;
            __rows.load(__k, __element);
            __at.step(__space, __one);
        }
#pragma unroll
        for (int __k = 0; __k < __count; ++__k) __found.add(__rows.unpacked(__k), __positions[__k]);
    }
    if (!__found.any) return __first;
    __stored __item;
    const int __j = __found.find((__step > 0) != __is_first, __item);
    __sums[0].add(__do, __do.of(__found.place + __j * __step, __item));
    return __first;
}

}

#endif
