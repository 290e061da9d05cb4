// `fold_small`: a fold along one axis of so few packets, all of them whole, that one block loads them at once. The order
// of the operations does not depend on whether packets are words in memory.
#ifndef GRIDSTRIDE_FOLD_SMALL_H
#define GRIDSTRIDE_FOLD_SMALL_H

#include <gridstride/fold_blocks.h>
#include <gridstride/line_packets.h>

namespace gridstride {

// Add a thread's packets, one for each turn of the block.
template <bool __are_words, int __length, int __count>
struct small_packets {
    template <int __sums_count, class __folding, class __map, class __reduce, class... __inputs>
    static GRIDSTRIDE_INLINED void add(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__sums_count],
                                       const counted_along<>& __from, int __packets, __inputs&... __all) {
#pragma unroll
        for (int __k = 0; __k < __count; ++__k) {
            const int __packet = __k * fold_threads + threadIdx.x;
            if (__packet < __packets) swallow(__all.load_word(__k, __packet)...);
        }
#pragma unroll
        for (int __k = 0; __k < __count; ++__k) {
            const int __packet = __k * fold_threads + threadIdx.x;
            if (__packet >= __packets) break;
            swallow(__all.unpack(__k)...);
            add_line<__length>(__do_map, __do, __sums, __from, __packet, __length, __k, __all...);
        }
    }
};
template <int __length, int __count>
struct small_packets<false, __length, __count> {
    template <int __sums_count, class __folding, class __map, class __reduce, class... __inputs>
    static GRIDSTRIDE_INLINED void add(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__sums_count],
                                       const counted_along<>& __from, int __packets, __inputs&... __all) {
#pragma unroll 1
        for (int __packet = threadIdx.x; __packet < __packets; __packet += fold_threads) {
            swallow(__all.load(0, __packet, __length)...);
            swallow(__all.unpack(0)...);
            add_line<__length>(__do_map, __do, __sums, __from, __packet, __length, 0, __all...);
        }
    }
};

template <bool __are_words, int __length, int __count, class __folding, class __map, class __reduce, class __finish, int __axes, class... __inputs>
GRIDSTRIDE_INLINED void fold_loaded(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                    const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                    __inputs&&... __all) {
    constexpr int __sums_count = __length < most_sums ? __length : most_sums;
    __folding __sums[__sums_count];
#pragma unroll
    for (int __j = 0; __j < __sums_count; ++__j) __sums[__j] = __start;
    small_packets<__are_words, __length, __count>::add(__do_map, __do, __sums, counted_along<>(__space, 0),
                                                       int(__space.fold.count), __all...);
    join_own(__do, __sums);
    join_group(__do, __sums[0], fold_threads, __shared);
    if (threadIdx.x == 0) __do_finish(only_result(), 0, __sums[0]);
}

template <bool __are_words, int __count, class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands>
GRIDSTRIDE_INLINED void fold_small(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                   const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                   const __operands&... __inputs) {
    constexpr int __length = packet_length<__operands...>();
    fold_loaded<__are_words, __length, __count>(__do_map, __do, __do_finish, __start, __space, __shared,
                                                line_input<__operands, __length, __count>(__inputs)...);
}

}

#endif
