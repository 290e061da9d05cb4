// The places of the largest or smallest elements across rows: of each column the element that is kept of a batch of rows,
// and the row in which it came, in as many bytes. Structures are made of those.
#ifndef GRIDSTRIDE_CPU_FOUND_ACROSS_H
#define GRIDSTRIDE_CPU_FOUND_ACROSS_H

#include <gridstride_cpu/extreme_keys.h>
#include <gridstride_cpu/folds_across.h>

namespace gridstride {

// A row of elements and the turns in which they came.
template <class __operand, class __map>
struct row_of_places {
    typedef __operand operand;
    typedef typename __operand::stored stored;
    typedef typename key_of<stored>::kept kept;
    typedef typename word_of<sizeof(stored)>::type turn;
    struct start {
        const __map* map;
        long long position, stride;  // of rows
        int turns;
    };
    static constexpr int aligned = 64;
    start* at_start;
    long long column = 0;
    kept* elements;
    turn* turns;

    GRIDSTRIDE_INLINED static long long padded(long long __count) { return (__count * sizeof(stored) + aligned - 1) / aligned * aligned; }
    GRIDSTRIDE_INLINED static long long bytes(long long __count) { return aligned + 2 * padded(__count); }
    GRIDSTRIDE_INLINED row_of_places(char* __room, long long __count)
        : at_start(reinterpret_cast<start*>(__room)), elements(reinterpret_cast<kept*>(__room + aligned)),
          turns(reinterpret_cast<turn*>(__room + aligned + padded(__count))) {}
    GRIDSTRIDE_INLINED row_of_places from(long long __k) const {
        row_of_places __row = *this;
        __row.column += __k;
        __row.elements += __k;
        __row.turns += __k;
        return __row;
    }
    GRIDSTRIDE_INLINED auto get(long long __k) const {
        stored __element = key_of<stored>::element(elements[__k]);
        return (*at_start->map)(number_of_column * (column + __k), at_start->position + (long long)turns[__k] * at_start->stride, element<__operand>(__element).get());
    }
};

template <class __type, class __map, class __reduce, bool __is_largest, bool __is_first, class __operand>
struct batch_of_rows<__type, __map, found_extreme<__reduce, __is_largest, __is_first>, __operand> {
    typedef found_extreme<__reduce, __is_largest, __is_first> reduce_type;
    typedef row_of_places<__operand, __map> row;
    static constexpr bool is_one_run = true, is_largest = __is_largest, is_first = __is_first;
    static constexpr int size = sizeof(typename __operand::stored);
    // Elements and turns are in the nearest cache, places on the stack.
    static constexpr int rows = 256, width = size > 2 ? 8192 / size : 8192, together = 0;
    GRIDSTRIDE_INLINED static const reduce_type& reduce(const reduce_type& __do) { return __do; }
};

// Compare the elements of one row or of two with those that are kept of earlier ones.
template <int __rows, bool __is_largest, bool __is_first, class __stored, class __element, class __turn>
GRIDSTRIDE_APART void keep_rows(__element* __kept, __turn* __turns, const __stored* __items, const __stored* __next_items, int __count, int __now) {
    typedef key_of<__stored> __keys;
    auto __is_better = [](__element __later, __element __earlier) {
        const auto __new = __keys::from(__later), __old = __keys::from(__earlier);
        return keeping<__is_largest>::is_better(__new, __old) | (!__is_first & (__new == __old));
    };
    const __turn __turned = __turn(__now), __next_turn = __turn(__now + 1);
    GRIDSTRIDE_INDEPENDENT
    for (long long __k = 0; __k < __count; ++__k) {
        __element __best = __kept[__k];
        __turn __at = __turns[__k];
        const __element __next = __keys::kept_of(__items[__k]);
        const bool __is_next = __is_better(__next, __best);
        __best = __is_next ? __next : __best;
        __at = __is_next ? __turned : __at;
        if (__rows == 2) {
            const __element __last = __keys::kept_of(__next_items[__k]);
            const bool __is_last = __is_better(__last, __best);
            __best = __is_last ? __last : __best;
            __at = __is_last ? __next_turn : __at;
        }
        __kept[__k] = __best;
        __turns[__k] = __at;
    }
}
template <class __stored, class __element, class __turn>
GRIDSTRIDE_APART void start_row(__element* __kept, __turn* __turns, const __stored* __items, int __count) {
    GRIDSTRIDE_INDEPENDENT
    for (long long __k = 0; __k < __count; ++__k) {
        __kept[__k] = key_of<__stored>::kept_of(__items[__k]);
        __turns[__k] = 0;
    }
}

// Rows of one batch follow each other, in one call or several.
template <class __operand, class __map, class __reduce, bool __is_largest, bool __is_first, class __rows_at>
GRIDSTRIDE_INLINED void fold_some_rows(row_of_places<__operand, __map> __sums, bool __starts, const __map& __do_map,
                                       const found_extreme<__reduce, __is_largest, __is_first>&, long long, long long, long long,
                                       long long __position, long long __position_stride, int __count, int __rows, __rows_at __its) {
    __its.look_rows_ahead(__count);
    if (__starts) *__sums.at_start = {&__do_map, __position, __position_stride, 0};
    int __turn = __sums.at_start->turns;
    for (int __row = 0; __row < __rows;) {
        // More comparisons for each store: of small elements there is not enough memory to wait for.
        const int __done = __its.size >= 4 && __turn > 0 && __row + 1 < __rows ? 2 : 1;
        for (int __from = 0; __from < __count; __from += stretch_of_row / __its.size) {
            const int __some = smaller(stretch_of_row / __its.size, __count - __from);
            const auto __sum = __sums.from(__from);
            __its.fetch(__done, __from, __some);
            const auto *const __items = &__its.at(0, __from), *const __next = &__its.at(__done - 1, __from);
            if (__done == 2) keep_rows<2, __is_largest, __is_first>(__sum.elements, __sum.turns, __items, __next, __some, __turn);
            else if (__turn > 0) keep_rows<1, __is_largest, __is_first>(__sum.elements, __sum.turns, __items, __next, __some, __turn);
            else start_row(__sum.elements, __sum.turns, __items, __some);
        }
        __row += __done;
        __turn += __done;
        __its.items += __done * __its.stride;
    }
    __sums.at_start->turns = __turn;
}

}

#endif
