// Results that lie next to each other, stored as packets, and parts of results that lie next to each other.
#ifndef GRIDSTRIDE_RESULTS_H
#define GRIDSTRIDE_RESULTS_H

#include <gridstride/folding.h>
#include <gridstride/packets.h>

namespace gridstride {

// Results that lie next to each other: those from `first` to before `last`.
template <class __folding, int __length>
struct packet_of_results {
    __folding values[__length];
    int last, first = 0;
};

// Where a packet of results is stored.
template <class __operand, int __length>
struct placed_packet : placed<__operand> {
    packet<typename __operand::stored, __length> items;
    GRIDSTRIDE_INLINED placed_packet(const __operand& __source) : placed<__operand>(__source) {}
    GRIDSTRIDE_INLINED char* place(long long __within) const { return this->base + __within * this->source.step; }
    GRIDSTRIDE_INLINED int load(long long __within, int __first, int __last) {
        if (__operand::is_read) load_packet<__length>(items, place(__within), this->source.step, __first, __last);
        return 0;
    }
    GRIDSTRIDE_INLINED int store(long long __within, int __first, int __last) {
        store_packet<__length>(items, place(__within), this->source.step, __first, __last);
        return 0;
    }
};

template <class __post, class __folding, int __length, int __axes, class... __placed>
GRIDSTRIDE_INLINED void assign_packet(const __post& __do_post, const packet_of_results<__folding, __length>& __folded,
                                      const fold_space<__axes>& __space, long long __result, __placed&&... __outputs) {
    long long __within;
    const long long __row = find_result(__space, __result, __within, __outputs...);
    swallow(__outputs.load(__within, __folded.first, __folded.last)...);
#pragma unroll
    for (int __j = 0; __j < __length; ++__j)
        if (__j >= __folded.first && __j < __folded.last)
            __do_post(__row + (__within + __j) * __space.result.step, __folded.values[__j].value,
                      element<typename __placed::operand>(__outputs.items.items[__j]).get()...);
    swallow(__outputs.store(__within, __folded.first, __folded.last)...);
}
template <class __post, class __folding, int __length, int __axes, class... __operands>
GRIDSTRIDE_INLINED void assign(const __post& __do_post, const packet_of_results<__folding, __length>& __folded,
                               const fold_space<__axes>& __space, long long __result, const __operands&... __outputs) {
    assign_packet(__do_post, __folded, __space, __result, placed_packet<__operands, __length>(__outputs)...);
}
// Parts of neighboring results lie next to each other.
template <class __folding, int __length, int __axes>
GRIDSTRIDE_INLINED void keep(const packet_of_results<__folding, __length>& __folded, const fold_space<__axes>& __space,
                             long long __result, int __part) {
    __folding* __kept = reinterpret_cast<__folding*>(__space.workspace) + __part * __space.outputs + __result;
#pragma unroll
    for (int __j = 0; __j < __length; ++__j)
        if (__j >= __folded.first && __j < __folded.last) __kept[__j] = __folded.values[__j];
}
template <class __folding>
GRIDSTRIDE_INLINED packet_of_results<__folding, 1> one_result(const __folding& __folded) {
    packet_of_results<__folding, 1> __packet;
    __packet.values[0] = __folded;
    __packet.last = 1;
    return __packet;
}

}

#endif
