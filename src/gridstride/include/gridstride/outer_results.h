// Results of rows and columns: a thread finds where its own are stored, and then goes from row to row.
#ifndef GRIDSTRIDE_OUTER_RESULTS_H
#define GRIDSTRIDE_OUTER_RESULTS_H

#include <gridstride/folding.h>
#include <gridstride/packets.h>

namespace gridstride {

// Where a thread's results are: column, row, and places along the axes outside.
template <int __axes>
struct outer_place {
    long long at[__axes];
};

// An output, at a result.
template <class __operand>
struct outer_output {
    typedef __operand operand;
    const __operand& source;
    char* place;
    long long row_step;  // to the thread's next row
    GRIDSTRIDE_INLINED outer_output(const __operand& __output) : source(__output), place(__output.data) {}
    GRIDSTRIDE_INLINED int move(int __axis, long long __steps) {
        place += __steps * (__axis ? source.strides[__axis] : source.step);
        return 0;
    }
    // Go before the first of rows that are so many apart. The zero, which compilers don't know to be one, has them keep the
    // step: they would multiply again for each row, where multiplications are what the loop waits for.
    GRIDSTRIDE_INLINED int begin_rows(int __apart, int __zero) {
        row_step = (__apart * source.strides[1]) | __zero;
        place -= row_step;
        return 0;
    }
    GRIDSTRIDE_INLINED int take_row() {
        place += row_step;
        return 0;
    }
};
// A packet there, of which so many elements are results.
template <class __operand, int __columns, bool __are_words>
struct outer_packet {
    typedef __operand operand;
    typedef typename __operand::stored stored;
    const outer_output<__operand>& to;
    int last;
    packet<stored, __columns> items;
    GRIDSTRIDE_INLINED outer_packet(const outer_output<__operand>& __to, int __last) : to(__to), last(__last) {
        if (__operand::is_read) load_packet<__columns>(items, to.place, to.source.step, 0, last);
    }
    GRIDSTRIDE_INLINED int store() const {
        if (__are_words) whole<__columns, stored>::store(items, to.place);
        else store_packet<__columns>(items, to.place, to.source.step, 0, last);
        return 0;
    }
};

// What a text hands over instead of results: how they are made, given what assigns them.
template <class __making>
struct outer_results {
    const __making& make;
};
template <class __post, class __making, int __axes, class... __operands>
GRIDSTRIDE_INLINED void assign(const __post& __do_post, const outer_results<__making>& __all, const fold_space<__axes>&, long long,
                               const __operands&... __outputs) {
    __all.make(__do_post, outer_output<__operands>(__outputs)...);
}
// Nobody shares the fold of a few elements.
template <class __making, int __axes>
GRIDSTRIDE_INLINED void keep(const outer_results<__making>&, const fold_space<__axes>&, long long, int) {}

// Move outputs to a result; return its number.
template <int __axes, class... __outputs>
GRIDSTRIDE_INLINED long long move_to(const fold_space<__axes>& __space, const outer_place<__axes>& __place, __outputs&... __all) {
    long long __number = 0;
#pragma unroll
    for (int __axis = 0; __axis < __axes; ++__axis) {
        if (__axis >= 2 && __axis >= __space.kept.ndim) break;
        __number += __place.at[__axis] * (__axis ? __space.result.strides[__axis] : __space.result.step);
        swallow(__all.move(__axis, __place.at[__axis])...);
    }
    return __number;
}

template <class __folding, int __columns, class __post, class... __packets>
GRIDSTRIDE_INLINED void assign_packets(const __post& __do_post, const __folding (&__folded)[__columns], long long __number, long long __step,
                                       int __last, __packets&&... __all) {
#pragma unroll
    for (int __j = 0; __j < __columns; ++__j)
        if (__j < __last)
            __do_post(__number + __j * __step, __folded[__j].value, element<typename __packets::operand>(__all.items.items[__j]).get()...);
    swallow(__all.store()...);
}
// Assign neighboring results, of which the first has that number; `__are_words`: all of them, to a word.
template <bool __are_words, class __folding, int __columns, class __post, class... __operands>
GRIDSTRIDE_INLINED void assign_outer(const __post& __do_post, const __folding (&__folded)[__columns], long long __number, long long __step,
                                     int __last, const outer_output<__operands>&... __all) {
    assign_packets(__do_post, __folded, __number, __step, __last, outer_packet<__operands, __columns, __are_words>(__all, __last)...);
}

}

#endif
