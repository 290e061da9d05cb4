// The places of extremes across rows: a thread keeps the best element of each of its columns and the row that it is of.
#ifndef GRIDSTRIDE_FOUND_COLUMNS_H
#define GRIDSTRIDE_FOUND_COLUMNS_H

#include <gridstride/found_packets.h>
#include <gridstride/integer_sums.h>

namespace gridstride {

// An element of a column and its row, below 0 where none is better than the worst.
template <class __stored>
struct found_row {
    typename compared<__stored>::type value;
    int row;
};

template <class __stored, int __length, bool __is_largest, bool __is_first>
struct found_columns {
    typedef found_row<__stored> kept;
    typedef compared<__stored> values;
    typename values::type best[__length];
    int rows[__length], row;

    GRIDSTRIDE_INLINED found_columns() : row(0) {
#pragma unroll
        for (int __j = 0; __j < __length; ++__j) best[__j] = nothing().value, rows[__j] = -1;
    }
    static GRIDSTRIDE_INLINED kept nothing() {
        const kept __none = {values::from(values::worst(__is_largest)), -1};
        return __none;
    }
    // Rows come in order.
    template <class __type>
    static GRIDSTRIDE_INLINED bool is_better(const __type& __one, const __type& __best) {
        if (__is_first) return __is_largest ? __one > __best : __one < __best;
        return __is_largest ? __one >= __best : __one <= __best;
    }
    GRIDSTRIDE_INLINED void add(const packet<__stored, __length>& __items) {
#pragma unroll
        for (int __j = 0; __j < __length; ++__j) {
            const typename values::type __one = values::from(__items.items[__j]);
            if (is_better(__one, best[__j])) best[__j] = __one, rows[__j] = row;
        }
        ++row;
    }
    // The last packet of a thread, of which there are so many elements.
    GRIDSTRIDE_INLINED void add_last(packet<__stored, __length> __items, int __last) {
#pragma unroll
        for (int __j = 0; __j < __length; ++__j)
            if (__j < __last && is_better(values::from(__items.items[__j]), best[__j])) best[__j] = values::from(__items.items[__j]), rows[__j] = row;
    }
    static GRIDSTRIDE_INLINED void add_one(kept& __kept, const __stored& __item, int __row) {
        if (is_better(values::from(__item), __kept.value)) __kept.value = values::from(__item), __kept.row = __row;
    }
    GRIDSTRIDE_INLINED kept value(int __j, int __first, int __apart) const {
        const kept __own = {best[__j], rows[__j] < 0 ? -1 : __first + rows[__j] * __apart};
        return __own;
    }
};

template <class __stored>
GRIDSTRIDE_INLINED found_row<__stored> with_any(found_row<__stored> __kept, const char* __at, int __row) {
    if (__kept.row < 0) {
        __kept.value = compared<__stored>::from(*reinterpret_cast<const __stored*>(__at));
        __kept.row = __row;
    }
    return __kept;
}

template <class __reduce, bool __is_largest, bool __is_first, class __value, class __map, class __operand>
struct folds_bytes<found_extreme<__reduce, __is_largest, __is_first, __value, __map>, __operand> { static constexpr bool value = true; };
template <class __reduce, bool __is_largest, bool __is_first, class __value, class __map, class __stored, int __length>
struct columns_in_words<found_extreme<__reduce, __is_largest, __is_first, __value, __map>, __stored, __length> {
    typedef found_columns<__stored, __length, __is_largest, __is_first> type;
};
template <class __reduce, bool __is_largest, bool __is_first, class __value, class __map, class __stored>
GRIDSTRIDE_INLINED void joined(const found_extreme<__reduce, __is_largest, __is_first, __value, __map>&, found_row<__stored>& __kept,
                               const found_row<__stored>& __other) {
    const bool __is_ahead = __is_largest ? __other.value > __kept.value : __other.value < __kept.value;
    const bool __is_equal = __other.value == __kept.value && (__other.row < __kept.row) == __is_first;
    if (__other.row >= 0 && (__kept.row < 0 || __is_ahead || __is_equal)) __kept = __other;
}
template <class __folding, class __reduce, bool __is_largest, bool __is_first, class __value, class __map, class __stored>
GRIDSTRIDE_INLINED __folding of_column(const found_extreme<__reduce, __is_largest, __is_first, __value, __map>& __do, __folding __start,
                                       const found_row<__stored>& __kept, long long __first, long long __apart, long long __within) {
    __start.add(__do, __do.of((__first + __kept.row) * __apart + __within, __stored(__kept.value)));
    return __start;
}
template <class __folding, class __reduce, bool __is_largest, bool __is_first, class __value, class __map, class __stored>
GRIDSTRIDE_INLINED __folding as_folded(const found_extreme<__reduce, __is_largest, __is_first, __value, __map>& __do, const __folding& __start,
                                       const found_row<__stored>& __kept, long long __first) {
    return of_column(__do, __start, __kept, __first, 1, 0);
}

}

#endif
