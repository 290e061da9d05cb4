// The edges of a row: its elements outside whole packets, before the first and after the last one. A block takes those of
// all its rows together, an element a thread: few threads of a warp would have some where each did those beside its packets.
#ifndef GRIDSTRIDE_PACKET_EDGES_H
#define GRIDSTRIDE_PACKET_EDGES_H

#include <gridstride/inlining.h>

namespace gridstride {

// Those in the part of a row that begins with a packet at `__begin` and is `__width` long; the row is from `__from` to
// `__to`. Fewer than a packet of them come before the row's first packet, and fewer after its last.
template <int __length>
struct packet_edges {
    static constexpr int most = 2 * __length;  // elements
    int head, head_end, tail, tail_end;

    GRIDSTRIDE_INLINED packet_edges(int __begin, int __width, int __from, int __to) : head(__from), tail_end(__to) {
        const int __before = __from - __begin, __all = __to - __begin;
        head_end = __before > 0 ? __begin + (__before + __length - 1) / __length * __length : __from;
        tail = __to - (__all > 0 && __all < __width ? __all % __length : 0);
        if (tail < head_end) tail = __to < head_end ? __to : head_end;
        if (__to < head_end) head_end = __to;
    }
    // The element that a thread has, of as many threads as there may be elements; and whether there is one.
    GRIDSTRIDE_INLINED int element(int __k) const { return __k < __length ? head + __k : tail + __k - __length; }
    GRIDSTRIDE_INLINED bool has(int __k) const { return element(__k) < (__k < __length ? head_end : tail_end); }
};

}

#endif
