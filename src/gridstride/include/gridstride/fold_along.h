// `fold_along`: folds along any axes, in which threads take packets of the innermost one.
#ifndef GRIDSTRIDE_FOLD_ALONG_H
#define GRIDSTRIDE_FOLD_ALONG_H

#include <gridstride/staged_fold.h>

namespace gridstride {

// Packets of a result, so many threads apart, which are before an end.
template <int __length, int __count, class __folding, class __map, class __reduce, int __axes, class... __staged>
GRIDSTRIDE_INLINED void fold_packets(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__length],
                                     const fold_space<__axes>& __space, long long __number, long long __begin,
                                     long long __end, __staged&... __inputs) {
    long long __numbers[__count], __positions[__count];
    int __last[__count];
#pragma unroll
    for (int __k = 0; __k < __count; ++__k) {
        const long long __packet = __begin + __k * __space.group;
        long long __rest = __packet, __within = __packet;
        __numbers[__k] = __number;
        __positions[__k] = 0;
        swallow((__inputs.places[__k] = __inputs.base)...);
        if (__space.fold.ndim > 1) {
            __within = taken_off(__space.fold, __rest, 0);
            go_along_fold<1>(__space, __numbers, __positions, __k, __rest, __inputs...);
        }
        const long long __element = __within * __length, __left = __space.fold_row - __element;
        __numbers[__k] += __element * __space.fold_numbers.step;
        __positions[__k] += __element * __space.position.step;
        swallow((__inputs.places[__k] += __element * __inputs.source.step)...);
        __last[__k] = __packet >= __end ? 0 : __left < __length ? int(__left) : __length;
    }
    bool __are_words = true;
#pragma unroll
    for (int __k = 0; __k < __count; ++__k)
        __are_words = __are_words && __last[__k] == __length && all_of(__inputs.is_word(__k)...);
    if (__are_words) {
        add_word_packets(__do_map, __do, __sums, __numbers, __positions, __space.fold_numbers.step, __space.position.step, __inputs...);
        return;
    }
#pragma unroll
    for (int __k = 0; __k < __count; ++__k)
        swallow(__inputs.load(__k, __last[__k])...);
#pragma unroll
    for (int __k = 0; __k < __count; ++__k) {
        if (__last[__k] == __length)  // without a question for each element
            add_some_of_packet(__do_map, __do, __sums, __numbers, __positions, __space.fold_numbers.step, __space.position.step, __k, __length, __inputs...);
        else
            add_some_of_packet(__do_map, __do, __sums, __numbers, __positions, __space.fold_numbers.step, __space.position.step, __k, __last[__k], __inputs...);
    }
}

// `__finish(result, part, folding)` is called by one thread for each part of each result.
template <int __length, int __count, class __folding, class __map, class __reduce, class __finish, int __axes, class... __staged>
GRIDSTRIDE_INLINED void fold_group(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                   const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                   __staged&&... __inputs) {
    const int __group = __space.group, __lane = threadIdx.x & (__group - 1);
    const long long __result = (static_cast<long long>(blockIdx.x) * fold_threads + threadIdx.x) >> (__ffs(__group) - 1);
    const long long __part_begin = blockIdx.y * __space.part;
    long long __part_end = __part_begin + __space.part;
    if (__part_end > __space.fold.count) __part_end = __space.fold.count;
    if (__result >= __space.outputs) __part_end = 0;
    const long long __number = settle(__space, __result < __space.outputs ? __result : 0, 0, __inputs...);
    __folding __sums[__length];
#pragma unroll
    for (int __j = 0; __j < __length; ++__j) __sums[__j] = __start;
    for (long long __q = __part_begin + __lane; __q < __part_end; __q += __group * __count)
        fold_packets<__length, __count>(__do_map, __do, __sums, __space, __number, __q, __part_end, __inputs...);
    join_own(__do, __sums);
    join_group(__do, __sums[0], __group, __shared);
    if (__lane == 0 && __result < __space.outputs) __do_finish(__result, int(blockIdx.y), __sums[0]);
}

template <int __count, class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands>
GRIDSTRIDE_INLINED void fold_along(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                   const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                   const __operands&... __inputs) {
    constexpr int __length = packet_length<__operands...>();
    fold_group<__length, __count>(__do_map, __do, __do_finish, __start, __space, __shared,
                                  staged_fold<__operands, __length, __count>(__inputs)...);
}

}

#endif
