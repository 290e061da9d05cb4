// The loop over rows whose outputs have gaps, between elements or between short rows: neighboring threads take
// neighboring elements, of as many rows as a block has threads for, so that what a warp writes at once lies in as few
// sectors as it can.
//
// Memory has to fetch a sector of which a part is written, again for every write that comes late; where that begins
// before the first write the others find it there.
#ifndef GRIDSTRIDE_STRIPED_ROWS_H
#define GRIDSTRIDE_STRIPED_ROWS_H

#include <gridstride/rows.h>

namespace gridstride {

// Where outputs have gaps: between rows, or between elements.
constexpr int gaps_between = 1, gaps_within = 2;

GRIDSTRIDE_INLINED void fetch(const void* __at) {
#if defined(__CUDA_ARCH__) && !defined(GRIDSTRIDE_CPU_ABI_VERSION)
    asm volatile("prefetch.global.L2 [%0];" ::"l"(__at));
#endif
}

// The elements of a thread: `__width` neighbors of each of `__count` rows, which are as many apart as a block has at once.
template <class __operand, int __count, int __width>
struct stripes {
    typedef __operand operand;
    typedef typename __operand::stored stored;

    const __operand& source;
    char *row, *stored_to;
    long long apart;
    stored items[__operand::is_read ? __count * __width : 1];

    GRIDSTRIDE_INLINED stripes(const __operand& __source) : source(__source), row(__source.data) {}
    GRIDSTRIDE_INLINED int move(long long __row, unsigned __element, unsigned __rows) {
        row += __row * source.step + __element * source.strides[0];
        stored_to = row;
        apart = __rows * source.step;
        return 0;
    }
    GRIDSTRIDE_INLINED stored& in_memory(char* __row, int __j) const {
        return *reinterpret_cast<stored*>(__row + __j * source.strides[0]);
    }
    GRIDSTRIDE_INLINED stored& loaded(int __k, int __j) { return items[__operand::is_read ? __k * __width + __j : 0]; }
    GRIDSTRIDE_INLINED int load(int __k, bool __is_there) {
        if (__operand::is_read && __is_there)
#pragma unroll
            for (int __j = 0; __j < __width; ++__j) copy(loaded(__k, __j), in_memory(row, __j));
        row += apart;
        return 0;
    }
    GRIDSTRIDE_INLINED int fetch_gap(int __k) const {
        if (__operand::is_written) fetch(stored_to + __k * apart);
        return 0;
    }
    GRIDSTRIDE_INLINED int store(int __k, int __j) {
        if (__operand::is_written) copy(in_memory(stored_to, __j), loaded(__k, __j));
        return 0;
    }
    GRIDSTRIDE_INLINED int step() {
        stored_to += apart;
        return 0;
    }
};

// Take a thread's elements, of rows that begin with `__row` and are `__rows` apart, before `__last`. All are loaded before
// one is used.
template <int __width, int __count, class __operation, class... __stripes>
GRIDSTRIDE_INLINED void take_stripes(const __operation& __do, const row_numbers& __numbers, long long __next_number,
                                     unsigned __row, unsigned __rows, unsigned __last, bool __is_fetched, __stripes&... __all) {
#pragma unroll
    for (int __k = 0; __k < __count; ++__k) swallow(__all.load(__k, __row + __k * __rows < __last)...);
    if (__is_fetched)
#pragma unroll
        for (int __k = 0; __k < __count; ++__k)
            if (__row + __k * __rows < __last) swallow(__all.fetch_gap(__k)...);
#pragma unroll
    for (int __k = 0; __k < __count; ++__k) {
        if (__row + __k * __rows >= __last) break;
#pragma unroll
        for (int __j = 0; __j < __width; ++__j) {
            __do(__numbers.of(__j) + __k * __next_number,
                 element<typename __stripes::operand>(__all.loaded(__k, __j)).get()...);
            swallow(__all.store(__k, __j)...);
        }
        swallow(__all.step()...);
    }
}

template <int __width, int __count, int __gaps, class __operation, int __axes, class... __stripes>
GRIDSTRIDE_INLINED void run_stripes(const __operation& __do, const element_space<__axes>& __space, __stripes&&... __all) {
    const unsigned __length = unsigned(__space.column), __pieces = __length / __width, __rows = unsigned(__space.width);
    if (threadIdx.x >= __rows * __pieces) return;
    unsigned __outer = blockIdx.x;
    const unsigned __part = __space.outer.ndim > 1 ? remainder_of(__space.outer, __outer, 0) : __outer;
    const long long __entered = __space.outer.ndim > 1 ? enter_row(__space, __outer, __all...) : 0;
    const unsigned __row = threadIdx.x * unsigned(__space.height) >> 20, __element = (threadIdx.x - __row * __pieces) * __width;
    const long long __first = static_cast<long long>(__part) * (__count * __rows), __begin = __first + __row;
    const numbering<__axes>& __numbers = __space.numbers;
    const long long __number = __entered + __begin * __numbers.step + __element * __numbers.strides[0];
    const long long __left = __space.row - __first;
    const unsigned __last = __left < __count * __rows ? unsigned(__left) : __count * __rows;
    swallow(__all.move(__begin, __element, __rows)...);
    const bool __is_fetched = __gaps == gaps_within || (__gaps == gaps_between && (__element == 0 || __element + __width == __length));
    take_stripes<__width, __count>(__do, row_numbers{__number, __numbers.strides[0]}, __rows * __numbers.step, __row, __rows, __last,
                                   __is_fetched, __all...);
}

// There are `row` rows of `column` elements, which are `strides[0]` apart. A block takes `width` of them at once, and
// axis 0 counts the parts of so many rows as it takes; a thread's number, times `height`, shifted by 20, is its row.
template <int __width, int __count, int __gaps, class __operation, int __axes, class... __operands>
GRIDSTRIDE_INLINED void striped_rows(const __operation& __do, const element_space<__axes>& __space,
                                     const __operands&... __all) {
    run_stripes<__width, __count, __gaps>(__do, __space, stripes<__operands, __count, __width>(__all)...);
}

}

#endif
