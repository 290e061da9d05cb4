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
        ++row;
    }
    static GRIDSTRIDE_INLINED void add_one(kept& __kept, const __stored& __item, int __row) {
        if (is_better(values::from(__item), __kept.value)) __kept.value = values::from(__item), __kept.row = __row;
    }
    GRIDSTRIDE_INLINED kept value(int __j, int __first, int __apart) const {
        const kept __own = {best[__j], rows[__j] < 0 ? -1 : __first + rows[__j] * __apart};
        return __own;
    }
};

#if !defined(GRIDSTRIDE_CPU_ABI_VERSION) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
// Which halves of a word are better than those of another, as a mask.
template <class __stored> struct better_halves;
#define GRIDSTRIDE_BETTER_HALVES(type, name)                                                                            \
    template <>                                                                                                        \
    struct better_halves<type> {                                                                                       \
        static GRIDSTRIDE_INLINED unsigned of(bool __is_largest, bool __is_first, unsigned __a, unsigned __b) {        \
            unsigned __mask;                                                                                           \
            if (__is_largest && __is_first) asm("set.gt.u32." name " %0, %1, %2;" : "=r"(__mask) : "r"(__a), "r"(__b)); \
            else if (__is_largest) asm("set.ge.u32." name " %0, %1, %2;" : "=r"(__mask) : "r"(__a), "r"(__b));         \
            else if (__is_first) asm("set.lt.u32." name " %0, %1, %2;" : "=r"(__mask) : "r"(__a), "r"(__b));           \
            else asm("set.le.u32." name " %0, %1, %2;" : "=r"(__mask) : "r"(__a), "r"(__b));                           \
            return __mask;                                                                                             \
        }                                                                                                              \
    };
GRIDSTRIDE_BETTER_HALVES(float16, "f16x2")
GRIDSTRIDE_BETTER_HALVES(bfloat16, "bf16x2")
#undef GRIDSTRIDE_BETTER_HALVES

// The same of two columns at once, of which halves of words hold elements and rows.
template <class __stored, int __length, bool __is_largest, bool __is_first>
struct found_halves {
    typedef found_row<__stored> kept;
    typedef compared<__stored> values;
    static constexpr int words = __length / 2;
    static constexpr unsigned no_row = 0xffffu;
    unsigned best[words], rows[words], row;

    GRIDSTRIDE_INLINED found_halves() : row(0) {
        const __stored __worst[2] = {values::worst(__is_largest), values::worst(__is_largest)};
#pragma unroll
        for (int __k = 0; __k < words; ++__k) {
            memcpy(&best[__k], __worst, 4);
            rows[__k] = ~0u;
        }
    }
    GRIDSTRIDE_INLINED void take(int __k, unsigned __bits, unsigned __own) {
        const unsigned __mask = better_halves<__stored>::of(__is_largest, __is_first, __bits, best[__k]) & __own;
        best[__k] = (__bits & __mask) | (best[__k] & ~__mask);
        rows[__k] = (row & __mask) | (rows[__k] & ~__mask);
    }
    GRIDSTRIDE_INLINED void add(const packet<__stored, __length>& __items) {
        unsigned __bits[words];
        memcpy(__bits, &__items, 4 * words);
#pragma unroll
        for (int __k = 0; __k < words; ++__k) take(__k, __bits[__k], ~0u);
        row += 0x10001u;
    }
    GRIDSTRIDE_INLINED void add_last(const packet<__stored, __length>& __items, int __last) {
        unsigned __bits[words];
        memcpy(__bits, &__items, 4 * words);
#pragma unroll
        for (int __k = 0; __k < words; ++__k) take(__k, __bits[__k], mask_of(2 * __last - 4 * __k));
        row += 0x10001u;
    }
    GRIDSTRIDE_INLINED unsigned row_of(int __j) const { return rows[__j / 2] >> __j % 2 * 16 & 0xffffu; }
    GRIDSTRIDE_INLINED kept value(int __j, int __first, int __apart) const {
        __stored __both[2];
        memcpy(__both, &best[__j / 2], 4);
        const kept __own = {values::from(__both[__j % 2]), row_of(__j) == no_row ? -1 : __first + int(row_of(__j)) * __apart};
        return __own;
    }
};
template <class __reduce, bool __is_largest, bool __is_first, class __value, class __map, int __length>
struct columns_of_few<found_extreme<__reduce, __is_largest, __is_first, __value, __map>, float16, __length> {
    typedef found_halves<float16, __length, __is_largest, __is_first> type;
};
template <class __reduce, bool __is_largest, bool __is_first, class __value, class __map, int __length>
struct columns_of_few<found_extreme<__reduce, __is_largest, __is_first, __value, __map>, bfloat16, __length> {
    typedef found_halves<bfloat16, __length, __is_largest, __is_first> type;
};
template <class __stored, int __length, bool __is_largest, bool __is_first>
GRIDSTRIDE_INLINED void fill_columns(found_halves<__stored, __length, __is_largest, __is_first>& __columns, const char* __at, int __last) {
    typedef found_halves<__stored, __length, __is_largest, __is_first> columns;
#pragma unroll
    for (int __k = 0; __k < columns::words; ++__k) {
        const unsigned __none = __columns.rows[__k] & 0x80008000u;
        if (!__none) continue;
        unsigned __bits = 0;
#pragma unroll
        for (int __j = 0; __j < 2; ++__j)
            if (2 * __k + __j < __last) __bits |= unsigned(reinterpret_cast<const unsigned short*>(__at)[2 * __k + __j]) << 16 * __j;
        const unsigned __mask = ((__none & 0x8000u ? 0xffffu : 0u) | (__none >> 31 ? 0xffff0000u : 0u)) & mask_of(2 * __last - 4 * __k);
        __columns.best[__k] = (__bits & __mask) | (__columns.best[__k] & ~__mask);
        __columns.rows[__k] &= ~__mask;
    }
}
#endif

// Keep elements of the first row, of which there are so many, where none is better than the worst.
template <class __stored, int __length, bool __is_largest, bool __is_first>
GRIDSTRIDE_INLINED void fill_columns(found_columns<__stored, __length, __is_largest, __is_first>& __columns, const char* __at, int __last) {
    int __all = 0;
#pragma unroll
    for (int __j = 0; __j < __length; ++__j) __all |= __columns.rows[__j];
    if (__all >= 0) return;
#pragma unroll
    for (int __j = 0; __j < __length; ++__j)
        if (__columns.rows[__j] < 0 && __j < __last) {
            __columns.best[__j] = compared<__stored>::from(reinterpret_cast<const __stored*>(__at)[__j]);
            __columns.rows[__j] = 0;
        }
}

template <class __stored>
GRIDSTRIDE_INLINED found_row<__stored> with_any(found_row<__stored> __kept, const char* __at, int __row) {
    if (__kept.row < 0) {
        __kept.value = compared<__stored>::from(*reinterpret_cast<const __stored*>(__at));
        __kept.row = __row;
    }
    return __kept;
}

template <class __reduce, bool __is_largest, bool __is_first, class __value, class __map, class __stored>
GRIDSTRIDE_INLINED found_row<__stored> moved(const found_extreme<__reduce, __is_largest, __is_first, __value, __map>&,
                                             found_row<__stored> __kept, int __rows) {
    if (__kept.row >= 0) __kept.row += __rows;
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
