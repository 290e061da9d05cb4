// `fold_columns`: folds along one axis across which threads take packets of neighboring columns, each of which is a
// result, or (`fold_stacked`) a few of which are folded too.
#ifndef GRIDSTRIDE_FOLD_COLUMNS_H
#define GRIDSTRIDE_FOLD_COLUMNS_H

#include <gridstride/columns.h>
#include <gridstride/value_pairs.h>
#include <gridstride/results.h>

namespace gridstride {

// Of the thread's row `__k` from where it is.
template <class __map, class __place, class __counter, class... __inputs>
GRIDSTRIDE_INLINED auto value_of_column(const __map& __do_map, const __place& __at, __counter __first, int __k, int __j,
                                        __inputs&... __all) {
    return __do_map(__at.number_of(__j, 1) + __k * __at.row_step, __at.place(__first, __k, __j, 1),
                    item_of<typename __inputs::operand>(__all.packets[__k], __j)...);
}

// The fold of a column of neighboring rows of a thread, in pairs.
template <int __rows, class __map, class __reduce, class __place, class... __inputs>
GRIDSTRIDE_INLINED auto fold_of_rows(const __map& __do_map, const __reduce& __do, const __place& __at, int __j, __inputs&... __all) {
    const auto __first = __at.first_place();
    return in_pairs<0, __rows>::fold(__do, [&](int __k) { return value_of_column(__do_map, __at, __first, __k, __j, __all...); });
}

// Add what has been loaded of several rows.
template <bool __are_costly>
struct loaded_rows {
    template <int __length, int __count, class __map, class __reduce, class __sums, class __place, class... __inputs>
    static GRIDSTRIDE_INLINED void add(const __map& __do_map, const __reduce& __do, __sums& __all_sums, const __place& __at,
                                       __inputs&... __all) {
#pragma unroll
        for (int __k = 0; __k < __count; ++__k) {
            swallow(__all.unpack(__k)...);
#pragma unroll
            for (int __j = 0; __j < __length; ++__j)
                __all_sums[__j].add(__do, value_of_column(__do_map, __at, __at.first_place(), __k, __j, __all...));
        }
    }
};
template <>
struct loaded_rows<true> {
    template <int __length, int __count, class __map, class __reduce, class __sums, class __place, class... __inputs>
    static GRIDSTRIDE_INLINED void add(const __map& __do_map, const __reduce& __do, __sums& __all_sums, const __place& __at,
                                       __inputs&... __all) {
#pragma unroll
        for (int __k = 0; __k < __count; ++__k) swallow(__all.unpack(__k)...);
#pragma unroll
        for (int __j = 0; __j < __length; ++__j)
            __all_sums[__j].add(__do, fold_of_rows<__count>(__do_map, __do, __at, __j, __all...));
    }
};

// Rows `__row`, that and `height`, and so on, before `__end`; the number of the first that is left.
template <int __length, int __count, class __folding, class __map, class __reduce, class __place, class... __inputs>
GRIDSTRIDE_INLINED int add_rows(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__length],
                                __place& __at, int __row, int __end, __inputs&... __all) {
    for (; __row + (__count - 1) * __at.height < __end; __row += __count * __at.height) {
#pragma unroll
        for (int __k = 0; __k < __count; ++__k) swallow(__all.load_word(__k, __at.height)...);
        loaded_rows<is_costly<__folding, __reduce>::value>::template add<__length, __count>(__do_map, __do, __sums, __at, __all...);
        __at.skip_rows(__count);
        swallow(__all.move(__count * __at.height)...);
    }
    return __row;
}

// The first few rows start the fold, where nothing else does: so the rest need not ask whether there was a value.
template <int __rows, int __length, class __type, class __map, class __reduce, class __place, class... __inputs>
GRIDSTRIDE_INLINED int start_rows(const __map&, const __reduce&, folding<__type, true> (&)[__length], __place&, int __row, __inputs&...) {
    return __row;
}
template <int __rows, int __length, class __type, class __map, class __reduce, class __place, class... __inputs>
GRIDSTRIDE_INLINED int start_rows(const __map& __do_map, const __reduce& __do, folding<__type, false> (&__sums)[__length],
                                  __place& __at, int __row, __inputs&... __all) {
#pragma unroll
    for (int __k = 0; __k < __rows; ++__k) swallow(__all.load_word(__k, __at.height)...);
#pragma unroll
    for (int __k = 0; __k < __rows; ++__k) swallow(__all.unpack(__k)...);
#pragma unroll
    for (int __j = 0; __j < __length; ++__j)
        __sums[__j] = fold_of_rows<__rows>(__do_map, __do, __at, __j, __all...);
    __at.skip_rows(__rows);
    swallow(__all.move(__rows * __at.height)...);
    return __row + __rows * __at.height;
}

template <int __length, int __count, int __starting, class __folding, class __map, class __reduce, class __place, class... __inputs>
GRIDSTRIDE_INLINED void add_words(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__length],
                                  __place __at, int __row, int __end, __inputs&... __all) {
    if (__row + (__starting - 1) * __at.height < __end) {
        __row = start_rows<__starting>(__do_map, __do, __sums, __at, __row, __all...);
        __row = add_rows<__length, __count>(__do_map, __do, __sums, __at, __row, __end, __all...);
    }
    add_rows<__length, 1>(__do_map, __do, __sums, __at, __row, __end, __all...);
}

// The same for elements that make no words: of one column after another.
template <int __count, class __folding, class __map, class __reduce, class __place, class... __inputs>
GRIDSTRIDE_INLINED int add_elements(const __map& __do_map, const __reduce& __do, __folding& __sum, __place& __at,
                                    int __j, int __row, int __end, __inputs&... __all) {
    for (; __row + (__count - 1) * __at.height < __end; __row += __count * __at.height) {
#pragma unroll
        for (int __k = 0; __k < __count; ++__k) swallow(__all.load_element(__k, __at.height)...);
#pragma unroll
        for (int __k = 0; __k < __count; ++__k) {
            __sum.add(__do, __do_map(__at.number_of(__j, __at.apart), __at.place(__at.first_place(), 0, __j, __at.apart),
                                     element<typename __inputs::operand>(__all.packets[__k].items[0]).get()...));
            __at.skip_rows(1);
        }
        swallow(__all.move(__count * __at.height)...);
    }
    return __row;
}
template <int __count, class __folding, class __map, class __reduce, class __place, class... __inputs>
GRIDSTRIDE_INLINED void add_column_of_elements(const __map& __do_map, const __reduce& __do, __folding& __sum,
                                               __place __at, int __j, int __row, int __end, __inputs... __all) {
    swallow((__all.base += __j * (__at.apart * __all.source.step))...);
    __row = add_elements<__count>(__do_map, __do, __sum, __at, __j, __row, __end, __all...);
    add_elements<1>(__do_map, __do, __sum, __at, __j, __row, __end, __all...);
}

// Leave a thread's values of its columns in shared memory.
template <int __length, int __count, int __starting, class __folding, class __map, class __reduce, class __place, class... __inputs>
GRIDSTRIDE_INLINED void add_column(const __map& __do_map, const __reduce& __do, const __folding& __start, const __place& __at,
                                   bool __are_words, int __row, int __end, __folding* __table,
                                   __inputs&... __all) {
    if (!__are_words) {
#pragma unroll 1
        for (int __j = 0; __j < __length && __at.has(__j); ++__j) {
            __folding __sum = __start;
            add_column_of_elements<__count>(__do_map, __do, __sum, __at, __j, __row, __end, __all...);
            __table[__at.template slot<__length>(__at.y, __at.first + __j * __at.apart)] = __sum;
        }
        return;
    }
    __folding __sums[__length];
#pragma unroll
    for (int __j = 0; __j < __length; ++__j) __sums[__j] = __start;
    add_words<__length, __count, __starting>(__do_map, __do, __sums, __at, __row, __end, __all...);
#pragma unroll
    for (int __j = 0; __j < __length; ++__j)
        if (__at.has(__j)) __table[__at.template slot<__length>(__at.y, __at.first + __j)] = __sums[__j];
}

template <int __count, class __columns_type, class __place, class __input>
GRIDSTRIDE_INLINED int add_bytes(__columns_type& __columns, const __place& __at, int __row, int __end,
                                 __input& __one) {
    for (; __row + (__count - 1) * __at.height < __end; __row += __count * __at.height) {
#pragma unroll
        for (int __k = 0; __k < __count; ++__k) __one.load_word(__k, __at.height);
#pragma unroll
        for (int __k = 0; __k < __count; ++__k) {
            __one.unpack(__k);
            __columns.add(__one.packets[__k]);
        }
        __one.move(__count * __at.height);
    }
    return __row;
}

// Bytes that are folded in words, which have room for the rows of a part.
template <class __columns_type, int __length, int __count, class __place, class __input>
GRIDSTRIDE_INLINED void add_byte_column(const __place& __at, bool __are_words, int __row, int __end,
                                        typename __columns_type::kept* __table, __input& __one) {
    typedef typename __input::stored __stored;
    const int __first = __row;
    if (!__are_words) {
#pragma unroll 1
        for (int __j = 0; __j < __length && __at.has(__j); ++__j) {
            const char* __from = __one.base + __j * (__at.apart * __one.source.step);
            const char* const __begin = __from;
            typename __columns_type::kept __sum = __columns_type::nothing();
#pragma unroll 8
            for (int __k = __row; __k < __end; __k += __at.height) {
                __columns_type::add_one(__sum, *reinterpret_cast<const __stored*>(__from), __k);
                __from += __at.height * __one.source.strides[0];
            }
            __table[__at.template slot<__length>(__at.y, __at.first + __j * __at.apart)] =
                __row < __end ? with_any(__sum, __begin, __first) : __sum;
        }
        return;
    }
    __columns_type __columns;
    const char* const __begin = __one.base;
    __row = add_bytes<__count>(__columns, __at, __row, __end, __one);
    add_bytes<1>(__columns, __at, __row, __end, __one);
#pragma unroll
    for (int __j = 0; __j < __length; ++__j)
        if (__at.has(__j)) {
            const auto __kept = __columns.value(__j, __at.y, __at.height);
            __table[__at.template slot<__length>(__at.y, __at.first + __j)] =
                __first < __end ? with_any(__kept, __begin + __j * sizeof(__stored), __first) : __kept;
        }
}

// Join what rows of threads hold of each column, and the columns of each result; hand over the results.
template <int __length, bool __is_stacked, int __wide, class __counter, class __folding, class __value, class __reduce, class __finish>
GRIDSTRIDE_INLINED void join_table(const __reduce& __do, const __finish& __do_finish, const __folding& __start,
                                   const column_place<__is_stacked, __wide, __counter>& __at, long long __result, long long __first_row,
                                   __value* __table) {
    const int __x = threadIdx.x;
    __syncthreads();
    for (int __column = __x; __column < __at.width; __column += fold_threads) {
        __value __sum = __table[__at.template slot<__length>(0, __column)];
        for (int __y = 1; __y < __at.height; ++__y) joined(__do, __sum, __table[__at.template slot<__length>(__y, __column)]);
        if (__is_stacked) __table[__at.template slot<__length>(0, __column)] = __sum;
        else __do_finish(__result + __column, int(blockIdx.y), one_result(as_folded(__do, __start, __sum, __first_row)));
    }
    if (!__is_stacked) return;
    __syncthreads();
    // A warp joins many columns of a result, a thread few.
    const int __results = __at.width / __at.inner, __group = __at.inner < 32 ? 1 : 32, __lane = __x & (__group - 1);
    for (int __own = __x / __group; __own < __results; __own += fold_threads / __group) {
        const auto __of = [&](int __k) {
            return of_column(__do, __start, __table[__at.template slot<__length>(0, __own * __at.inner + __k)], __first_row,
                             __at.row_position / __at.height, __k * __at.inner_position);
        };
        auto __sum = __of(__lane);
        for (int __k = __lane + __group; __k < __at.inner; __k += __group) joined(__do, __sum, __of(__k));
        for (int __distance = __group / 2; __distance > 0; __distance /= 2)
            joined(__do, __sum, from_lane_below(__sum, __distance, 32));
        if (__lane == 0) __do_finish(__result + __own, int(blockIdx.y), one_result(as_folded(__do, __start, __sum, __first_row)));
    }
}

// Fold a block's stretch of columns. `__always_words`: whether there are words wherever a row begins. `__do_add(place, whether there are words, first row, end, table, inputs...)`
template <int __length, bool __is_stacked, bool __always_words, int __wide, class __counter, class __value, class __folding, class __reduce, class __finish, int __axes, class __add, class... __inputs>
GRIDSTRIDE_INLINED void fold_stretch(const __reduce& __do, const __finish& __do_finish, const __folding& __start,
                                     const fold_space<__axes>& __space, int __group, __value* __table, const __add& __do_add,
                                     __inputs&... __all) {
    long long __outer = blockIdx.x, __stretch = __outer;
    if (__space.kept.ndim > 1) __stretch = taken_off(__space.kept, __outer, 0);
    else __outer = 0;
    column_place<__is_stacked, __wide, __counter> __at(__space, __group, __stretch);
    const long long __first = __stretch * __space.width, __result = __outer * __space.kept_row + __first;
    __at.number = settle(__space, __outer, 1, __all...) + __first * __at.step;
    swallow((__all.base += __first * __at.inner * __all.source.step)...);
    const long long __begin = blockIdx.y * __space.part, __rest = __space.fold.count - __begin;
    const int __end = int(__rest < __space.part ? __rest : __space.part);
    __at.number += (__begin + __at.y) * __space.fold_numbers.strides[__is_stacked];
    __at.position = static_cast<__counter>(__is_stacked ? (__begin + __at.y) * __space.position.strides[1] : __begin + __at.y);
    swallow(__all.move(__begin + __at.y)...);
    const int __past = in_common(__all.past_word(__at.height)...);
    const bool __are_words = __always_words || __past == 0 || (__past > 0 && __past + __at.width <= __at.group * __length);
    __at.first = __are_words ? __at.x * __length - __past : __at.x;
    __at.apart = __are_words ? 1 : __at.group;
    swallow((__all.base += __at.first * __all.source.step)...);
    if (__at.first < __at.width) __do_add(__at, __are_words, __at.y, __end);
    join_table<__length>(__do, __do_finish, __start, __at, __result, __begin, __table);
}

// Blocks take stretches of packets of `__full` columns; threads, `__length` of them.
template <int __full, int __length, int __count, bool __is_stacked, bool __always_words, int __wide, class __counter, class __folding, class __map, class __reduce, class __finish, int __axes, class... __inputs>
GRIDSTRIDE_INLINED void fold_stretch_of_values(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                               const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                               __inputs&&... __all) {
    __folding* __table = reinterpret_cast<__folding*>(__shared);
    constexpr bool __are_costly = is_costly<__folding, __reduce>::value;
    fold_stretch<__length, __is_stacked, __always_words, __are_costly ? __wide*(__full / __length) : 0, typename counter_of<__counter, __are_costly>::type>(
        __do, __do_finish, __start, __space, __space.group * (__full / __length), __table,
        [&](const auto& __at, bool __are_words, int __row, int __end) {
            add_column<__length, __count, __full / __length>(__do_map, __do, __start, __at, __are_words, __row, __end, __table, __all...);
        },
        __all...);
}

// The same for bytes that are folded in words.
template <int __count, bool __is_stacked, bool __always_words, class __folding, class __reduce, class __finish, int __axes, class __operand>
GRIDSTRIDE_INLINED void fold_stretch_of_bytes(const __reduce& __do, const __finish& __do_finish, const __folding& __start,
                                              const fold_space<__axes>& __space, char* __shared, const __operand& __input) {
    constexpr int __length = packet_length<__operand>();
    typedef typename columns_in_words<__reduce, typename __operand::stored, __length>::type __columns_type;
    typename __columns_type::kept* __table = reinterpret_cast<typename __columns_type::kept*>(__shared);
    column_input<__operand, __length, __count> __one(__input);
    fold_stretch<__length, __is_stacked, __always_words, 0, long long>(
        __do, __do_finish, __start, __space, __space.group, __table,
        [&](const auto& __at, bool __are_words, int __row, int __end) {
            add_byte_column<__columns_type, __length, __count>(__at, __are_words, __row, __end, __table, __one);
        },
        __one);
}

template <bool>
struct columns_of {
    template <int __count, bool __is_stacked, bool __always_words, int __wide, bool __may_repeat, class __counter, class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands>
    static GRIDSTRIDE_INLINED void fold(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                        const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                        const __operands&... __inputs) {
        constexpr int __full = packet_length<__operands...>(), __length = column_length<__folding, __operands...>();
        constexpr int __packets = __count * __full / __length < 16 ? __count * __full / __length : 16;
        fold_stretch_of_values<__full, __length, __packets, __is_stacked, __always_words, __wide, __counter>(
            __do_map, __do, __do_finish, __start, __space, __shared, column_input<__operands, __length, __packets, __may_repeat>(__inputs)...);
    }
};
template <>
struct columns_of<true> {
    template <int __count, bool __is_stacked, bool __always_words, int __wide, bool __may_repeat, class __counter, class __folding, class __map, class __reduce, class __finish, int __axes, class __operand>
    static GRIDSTRIDE_INLINED void fold(const __map&, const __reduce& __do, const __finish& __do_finish, const __folding& __start,
                                        const fold_space<__axes>& __space, char* __shared, const __operand& __input) {
        fold_stretch_of_bytes<__count, __is_stacked, __always_words>(__do, __do_finish, __start, __space, __shared, __input);
    }
};

// `__always_words`: whether there are words wherever a row begins; `__may_repeat`: whether an input may have one element
// for a row.
template <int __count, bool __always_words, int __wide, class __counter, bool __may_repeat, class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands>
GRIDSTRIDE_INLINED void fold_columns(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                     const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                     const __operands&... __inputs) {
    columns_of<folds_bytes<__reduce, __operands...>::value>::template fold<__count, false, __always_words, __wide, __may_repeat, __counter>(
        __do_map, __do, __do_finish, __start, __space, __shared, __inputs...);
}

// The innermost folded axis is short and lies closest, the columns of a result next to each other; axis 0 of `fold`
// is the other one, which the numberings know as axis 1.
template <int __count, class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands>
GRIDSTRIDE_INLINED void fold_stacked(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                     const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                     const __operands&... __inputs) {
    columns_of<folds_bytes<__reduce, __operands...>::value>::template fold<__count, true, false, 0, false, long long>(
        __do_map, __do, __do_finish, __start, __space, __shared, __inputs...);
}

// The parts of results, neighboring ones next to each other.
template <class __folding>
__device__ constexpr int parts_bytes() { return fold_threads * int(sizeof(__folding)); }
template <int __count, class __folding, class __map, class __reduce, class __finish, int __axes, class __operand>
GRIDSTRIDE_INLINED void fold_rows_of_parts(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                   const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                   const __operand& __parts) {
    fold_stretch_of_values<1, 1, __count, false, false, 0, long long>(__do_map, __do, __do_finish, __start, __space, __shared,
                                                 column_input<__operand, 1, __count>(__parts));
}

}

#endif
