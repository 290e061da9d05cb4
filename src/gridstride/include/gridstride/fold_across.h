// `fold_across`: folds along any axes, in which threads take packets of the innermost axis that is kept.
#ifndef GRIDSTRIDE_FOLD_ACROSS_H
#define GRIDSTRIDE_FOLD_ACROSS_H

#include <gridstride/staged_fold.h>

namespace gridstride {

// Packets of several rows, so many rows apart, which are before an end.
template <int __length, int __count, class __folding, class __map, class __reduce, int __axes, class... __staged>
GRIDSTRIDE_INLINED void add_packets_of_rows(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__length],
                                            const fold_space<__axes>& __space, long long __number, long long __begin,
                                            long long __end, int __stride, int __last, __staged&... __inputs) {
    long long __numbers[__count], __positions[__count];
#pragma unroll
    for (int __k = 0; __k < __count; ++__k) {
        long long __row = __begin + static_cast<long long>(__k) * __stride;
        if (__row >= __end) __row = __begin;
        __numbers[__k] = __number;
        __positions[__k] = 0;
        swallow((__inputs.places[__k] = __inputs.base)...);
        go_along_fold<0>(__space, __numbers, __positions, __k, __row, __inputs...);
    }
    bool __are_words = __last == __length && __begin + static_cast<long long>(__count - 1) * __stride < __end;
#pragma unroll
    for (int __k = 0; __k < __count; ++__k) __are_words = __are_words && all_of(__inputs.is_word(__k)...);
    if (__are_words) {
        add_word_packets(__do_map, __do, __sums, __numbers, __positions, __space.kept_numbers.step, 0, __inputs...);
        return;
    }
#pragma unroll
    for (int __k = 0; __k < __count; ++__k)
        swallow(__inputs.load(__k, __last)...);
#pragma unroll
    for (int __k = 0; __k < __count; ++__k) {
        if (__begin + static_cast<long long>(__k) * __stride >= __end) break;
        // Beyond the end of a row there are values of nothing, whose sums nobody asks for.
        add_some_of_packet(__do_map, __do, __sums, __numbers, __positions, __space.kept_numbers.step, 0, __k, __length, __inputs...);
    }
}

template <int __length, int __count, class __folding, class __map, class __reduce, class __finish, int __axes, class... __staged>
GRIDSTRIDE_INLINED void fold_block(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                   const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                   __staged&&... __inputs) {
    // `group` threads lie next to each other along the packets of results, the others of the block share the fold.
    const int __group = __space.group, __x = threadIdx.x & (__group - 1), __y = threadIdx.x >> (__ffs(__group) - 1);
    const int __height = fold_threads >> (__ffs(__group) - 1);
    const long long __packet = static_cast<long long>(blockIdx.x) * __group + __x;
    const bool __is_inside = __packet < __space.kept.count;
    long long __row = __is_inside ? __packet : 0, __within = __row;
    if (__space.kept.ndim > 1) __within = taken_off(__space.kept, __row, 0);
    else __row = 0;
    const long long __element = __within * __length, __left = __space.kept_row - __element;
    const int __last = __left < __length ? int(__left) : __length;
    long long __number = settle(__space, __row, 1, __inputs...);
    __number += __element * __space.kept_numbers.step;
    swallow((__inputs.base += __element * __inputs.source.step)...);
    const long long __part_begin = blockIdx.y * __space.part;
    long long __part_end = __part_begin + __space.part;
    if (__part_end > __space.fold.count) __part_end = __space.fold.count;
    __folding __sums[__length];
#pragma unroll
    for (int __j = 0; __j < __length; ++__j) __sums[__j] = __start;
    if (__is_inside)
        for (long long __f = __part_begin + __y; __f < __part_end; __f += static_cast<long long>(__height) * __count)
            add_packets_of_rows<__length, __count>(__do_map, __do, __sums, __space, __number, __f, __part_end, __height, __last,
                                            __inputs...);
    join_columns(__do, __sums, __group, __y, __height, __shared);
    hand_over(__do_finish, __sums, __space, __shared);
}

template <int __count, class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands>
GRIDSTRIDE_INLINED void fold_across(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                    const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                    const __operands&... __inputs) {
    constexpr int __length = packet_length<__operands...>();
    fold_block<__length, __count>(__do_map, __do, __do_finish, __start, __space, __shared,
                                  staged_fold<__operands, __length, __count>(__inputs)...);
}

}

#endif
