// `fold_rows`: folds along several axes of which the innermost is long. A group of threads takes pieces of its rows, one
// after another: axis 0 of the fold counts the pieces of a row.
#ifndef GRIDSTRIDE_FOLD_ROWS_H
#define GRIDSTRIDE_FOLD_ROWS_H

#include <gridstride/fold_lines.h>

namespace gridstride {

template <int __length, int __count, class __folding, class __map, class __reduce, class __finish, int __axes, class... __inputs>
GRIDSTRIDE_INLINED void fold_pieces(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                    const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                    __inputs&&... __all) {
    constexpr int __sums_count = __length < most_sums ? __length : most_sums;
    const int __group = __space.group, __lane = threadIdx.x & (__group - 1);
    const long long __result = (static_cast<long long>(blockIdx.x) * fold_threads + threadIdx.x) >> (__ffs(__group) - 1);
    const bool __is_inside = __result < __space.outputs;
    const long long __number = settle(__space, __is_inside ? __result : 0, 0, __all...);
    const long long __packets = (__space.fold_row + __length - 1) / __length;
    const long long __piece = (__packets + __space.fold.length[0] - 1) / __space.fold.length[0];
    long long __end = (blockIdx.y + 1) * __space.part;
    if (__end > __space.fold.count) __end = __space.fold.count;
    if (!__is_inside) __end = 0;
    __folding __sums[__sums_count];
#pragma unroll
    for (int __j = 0; __j < __sums_count; ++__j) __sums[__j] = __start;
    for (long long __at_piece = blockIdx.y * __space.part; __at_piece < __end; ++__at_piece) {
        long long __rest = __at_piece;
        const long long __first = taken_off(__space.fold, __rest, 0) * __piece;
        counted_from __from(__space, __number);
        swallow(__all.leave_row()...);
#pragma unroll
        for (int __axis = 1; __axis < __axes; ++__axis) {
            if (__axis >= __space.fold.ndim) break;
            const long long __at = __axis + 1 < __space.fold.ndim ? taken_off(__space.fold, __rest, __axis) : __rest;
            __from.number += __at * __space.fold_numbers.strides[__axis];
            __from.position += __at * __space.position.strides[__axis];
            swallow((__all.base += __at * __all.source.strides[__axis])...);
        }
        const long long __last = __first + __piece < __packets ? __first + __piece : __packets;
        add_part_of_line<__length, __count>(__do_map, __do, __sums, __from, __first + __lane, __last, __group, __space.fold_row, __all...);
    }
    join_own(__do, __sums);
    join_group(__do, __sums[0], __group, __shared);
    if (__lane == 0 && __is_inside) __do_finish(__result, int(blockIdx.y), __sums[0]);
}

// An input of which several rows are folded, one after another.
template <class __operand, int __length, int __count>
struct rows_input : line_input<__operand, __length, __count> {
    const char* whole;  // where the elements of the result begin
    GRIDSTRIDE_INLINED rows_input(const __operand& __source)
        : line_input<__operand, __length, __count>(__source), whole(nullptr) {}
    GRIDSTRIDE_INLINED int leave_row() {
        if (whole == nullptr) whole = this->base;
        this->base = whole;
        return 0;
    }
};

template <int __count, class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands>
GRIDSTRIDE_INLINED void fold_rows(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                  const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                  const __operands&... __inputs) {
    constexpr int __length = packet_length<__operands...>();
    fold_pieces<__length, __count>(__do_map, __do, __do_finish, __start, __space, __shared,
                                   rows_input<__operands, __length, __count>(__inputs)...);
}

}

#endif
