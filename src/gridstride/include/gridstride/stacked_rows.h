// The loop over rows where inputs are neighbors of each other, as those of a stencil: a block takes the same elements of
// some rows, so that most of what it reads for one is in its cache for the next.
#ifndef GRIDSTRIDE_STACKED_ROWS_H
#define GRIDSTRIDE_STACKED_ROWS_H

#include <gridstride/striped_rows.h>

namespace gridstride {

template <int __count, class __operation, int __axes, class... __stripes>
GRIDSTRIDE_INLINED void run_stack(const __operation& __do, const element_space<__axes>& __space, __stripes&&... __all) {
    unsigned __stack = blockIdx.x, __piece = remainder_of(__space.outer, __stack, 0);
    const unsigned __element = __piece * blockDim.x + threadIdx.x;
    if (__element >= __space.row) return;
    unsigned __rest = __stack;
    const unsigned __part = __space.outer.ndim > 2 ? remainder_of(__space.outer, __rest, 1) : __stack;
    const numbering<__axes>& __numbers = __space.numbers;
    const long long __number = enter_row(__space, __stack, __all...) + __element * __numbers.strides[0];
    const long long __left = __space.column - static_cast<long long>(__part) * __count;
    swallow(__all.move(0, __element, 1)...);
    take_stripes<1, __count>(__do, row_numbers{__number, 0}, __numbers.step, 0, 1, __left < __count ? unsigned(__left) : __count,
                             false, __all...);
}

// There are `column` rows of `row` elements, which are `strides[0]` apart. Axis 0 counts the pieces of a row, of an element
// for each thread, axis 1 stacks of so many rows.
template <int __count, class __operation, int __axes, class... __operands>
GRIDSTRIDE_INLINED void stacked_rows(const __operation& __do, const element_space<__axes>& __space,
                                     const __operands&... __all) {
    run_stack<__count>(__do, __space, stripes<__operands, __count, 1>(__all)...);
}

}

#endif
