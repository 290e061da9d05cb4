// Loops over elements of rows whose outputs have gaps: what a warp writes at once lies in as few sectors as it can. In
// `striped_rows` these are between elements of long rows, of which neighboring threads take neighboring ones; in
// `rows_with_gaps` between rows of a few elements, of which neighboring threads take neighboring rows.
#ifndef GRIDSTRIDE_STRIPED_ROWS_H
#define GRIDSTRIDE_STRIPED_ROWS_H

#include <gridstride/elementwise.h>

namespace gridstride {

// The elements of the rows of a thread, which are its stripes.
template <class __operand, int __row, int __count>
struct rows_of_stripes {
    typedef __operand operand;
    typedef typename __operand::stored stored;

    const __operand& source;
    char* row;
    stored items[__operand::is_read ? __row * __count : 1];

    GRIDSTRIDE_INLINED rows_of_stripes(const __operand& __source) : source(__source), row(__source.data) {}
    GRIDSTRIDE_INLINED int move(long long __rows) {
        row += __rows * source.step;
        return 0;
    }
    GRIDSTRIDE_INLINED stored& in_memory(int __k, int __j) const {
        return *reinterpret_cast<stored*>(row + __k * block_threads * source.step + __j * source.strides[0]);
    }
    GRIDSTRIDE_INLINED int load(int __k) {
        if (__operand::is_read)
#pragma unroll
            for (int __j = 0; __j < __row; ++__j) copy(items[__k * __row + __j], in_memory(__k, __j));
        return 0;
    }
    GRIDSTRIDE_INLINED stored& loaded(int __k, int __j) { return __operand::is_read ? items[__k * __row + __j] : items[0]; }
    GRIDSTRIDE_INLINED int store(int __k, int __j) {
        if (__operand::is_written) copy(in_memory(__k, __j), loaded(__k, __j));
        return 0;
    }
};

template <int __row, int __count, class __operation, int __axes, class... __all_rows>
GRIDSTRIDE_INLINED void run_rows_with_gaps(const __operation& __do, const element_space<__axes>& __space, __all_rows&&... __all) {
    const numbering<__axes>& __numbers = __space.numbers;
    unsigned __outer = blockIdx.x;
    const unsigned __piece = __space.outer.ndim > 1 ? remainder_of(__space.outer, __outer, 0) : __outer;
    const long long __entered = __space.outer.ndim > 1 ? enter_row(__space, __outer, __all...) : 0;
    const long long __begin = static_cast<long long>(__piece) * (__count * block_threads) + threadIdx.x;
    const long long __number = __entered + __begin * __numbers.step, __left = __space.row - __begin;
    swallow(__all.move(__begin)...);
#pragma unroll
    for (int __k = 0; __k < __count; ++__k)
        if (__k * block_threads < __left) swallow(__all.load(__k)...);
#pragma unroll
    for (int __k = 0; __k < __count; ++__k) {
        if (__k * block_threads >= __left) break;
#pragma unroll
        for (int __j = 0; __j < __row; ++__j) {
            __do(__number + __k * block_threads * __numbers.step + __j * __numbers.strides[0],
                 element<typename __all_rows::operand>(__all.loaded(__k, __j)).get()...);
            swallow(__all.store(__k, __j)...);
        }
    }
}

// `row` is how many rows there are; a thread has `__count` rows of `__row` elements, which are `strides[0]` apart.
template <int __row, int __count, class __operation, int __axes, class... __operands>
GRIDSTRIDE_INLINED void rows_with_gaps(const __operation& __do, const element_space<__axes>& __space,
                                       const __operands&... __all) {
    run_rows_with_gaps<__row, __count>(__do, __space, rows_of_stripes<__operands, __row, __count>(__all)...);
}

// Axis 0 counts the pieces of a row, whose elements are rows of one; count: of elements of a thread.
template <int __count, class __operation, int __axes, class... __operands>
GRIDSTRIDE_INLINED void striped_rows(const __operation& __do, const element_space<__axes>& __space,
                                     const __operands&... __all) {
    rows_with_gaps<1, __count>(__do, __space, __all...);
}

}

#endif
