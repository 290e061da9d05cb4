// `fold_outer`: folds of a few elements of which some inputs have the same for all rows of results, or for all columns, as the
// distances of all pairs of points are.
//
// A thread has a word of neighboring columns of results, in each of many rows. It keeps what is folded of the inputs that
// lie along columns; what is folded of those that lie along rows waits in shared memory, since loads wait long where so much
// is stored. In `fold_space`, `group` threads lie next to each other, `width` rows of threads below each other, which take
// `part` rows of results together; `fold` has the numbers of columns and rows, and of columns at multiples of which threads
// begin, in memory: the strides of `position` say how many of these a row begins behind such a place, the first one and
// along each axis.
#ifndef GRIDSTRIDE_FOLD_OUTER_H
#define GRIDSTRIDE_FOLD_OUTER_H

#include <gridstride/fold_blocks.h>
#include <gridstride/outer_results.h>
#include <gridstride/value_pairs.h>

namespace gridstride {

// How an input lies.
constexpr int outer_columns = 0, outer_rows = 1, outer_both = 2;

// Elements that lie one after another, by words where they begin at some.
template <int __count, class __stored>
GRIDSTRIDE_INLINED void load_neighbors(__stored (&__to)[__count], const char* __at) {
    constexpr int __bytes = __count * int(sizeof(__stored)), __size = __bytes % 16 == 0 ? 16 : __bytes % 8 == 0 ? 8 : __bytes % 4 == 0 ? 4 : 1;
    typedef typename word<__size>::type piece;
    if (__size > int(sizeof(__stored)) && bytes_past<__size>(__at) == 0) {
        piece __words[__bytes / __size];
#pragma unroll
        for (int __k = 0; __k < __bytes / __size; ++__k) __words[__k] = reinterpret_cast<const piece*>(__at)[__k];
        memcpy(&__to, &__words, __bytes);
        return;
    }
#pragma unroll
    for (int __k = 0; __k < __count; ++__k) copy(__to[__k], reinterpret_cast<const __stored*>(__at)[__k]);
}

// What a block has of an input: elements of rows in shared memory, each row in a word if there are few.
__device__ constexpr int power_of_two_from(int __number) { return __number <= 1 ? 1 : 2 * power_of_two_from((__number + 1) / 2); }
__device__ constexpr int outer_pitch(int __size) { return __size <= 16 ? power_of_two_from(__size) : (__size + 15) / 16 * 16; }
template <class __operand, int __length, int __most_rows, int __how>
struct outer_block {
    typedef __operand operand;
    typedef typename __operand::stored stored;
    static constexpr int pitch = outer_pitch(__length * int(sizeof(stored)));
    static constexpr int bytes = __how == outer_rows ? (__most_rows * pitch + 15) / 16 * 16 : 0;
    const __operand& source;
    const char* base;
    char* waiting;
    GRIDSTRIDE_INLINED outer_block(const __operand& __source) : source(__source), base(__source.data) {}
    GRIDSTRIDE_INLINED int take_memory(char*& __shared) {
        waiting = __shared;
        __shared += bytes;
        return 0;
    }
    GRIDSTRIDE_INLINED int move(int __axis, long long __steps) {
        base += __steps * source.kept_strides[__axis];
        return 0;
    }
    // Bring rows from that on which `base` is at.
    GRIDSTRIDE_INLINED int bring(int __rows) const {
        if (__how == outer_rows)
#pragma unroll 1
            for (int __n = threadIdx.x; __n < __rows * __length; __n += fold_threads) {
                const int __row = __n / __length, __k = __n % __length;
                copy(*reinterpret_cast<stored*>(waiting + __row * pitch + __k * int(sizeof(stored))),
                     *reinterpret_cast<const stored*>(base + __row * source.kept_strides[1] + __k * source.step));
            }
        return 0;
    }
};

// What a thread has of an input: elements of its columns, for all rows.
template <class __operand, int __length, int __columns, int __how>
struct outer_input {
    typedef typename __operand::stored stored;
    typedef typename __operand::value value;
    value values[__columns][__length];
    template <class __block>
    GRIDSTRIDE_INLINED outer_input(const __block& __its, int __column, int) {
        const long long __step = __its.source.kept_strides[0];
        const char* const __at = __its.base + __column * __step;
        stored __all[__columns * __length];
        if (__its.source.step == sizeof(stored) && __step == __length * __its.source.step) {
            load_neighbors(__all, __at);
        } else {
#pragma unroll
            for (int __n = 0; __n < __columns * __length; ++__n)
                copy(__all[__n], *reinterpret_cast<const stored*>(__at + __n / __length * __step + __n % __length * __its.source.step));
        }
#pragma unroll
        for (int __n = 0; __n < __columns * __length; ++__n) values[__n / __length][__n % __length] = element<__operand>(__all[__n]).get();
    }
    GRIDSTRIDE_INLINED int take_row(int) { return 0; }
    GRIDSTRIDE_INLINED value of(int __column, int __k) const { return values[__column][__k]; }
};
// Elements of a row, for all columns.
template <class __operand, int __length, int __columns>
struct outer_input<__operand, __length, __columns, outer_rows> {
    typedef typename __operand::stored stored;
    typedef typename __operand::value value;
    static constexpr int pitch = outer_pitch(__length * int(sizeof(stored)));
    typedef typename word<(pitch < 16 ? pitch : 16)>::type piece;
    const char* at;
    value values[__length];
    template <class __block>
    GRIDSTRIDE_INLINED outer_input(const __block& __its, int, int __row) : at(__its.waiting + __row * pitch) {}
    GRIDSTRIDE_INLINED int take_row(int __rows) {
        piece __words[pitch / sizeof(piece)];
#pragma unroll
        for (int __k = 0; __k < int(pitch / sizeof(piece)); ++__k) __words[__k] = reinterpret_cast<const piece*>(at)[__k];
        stored __all[pitch / sizeof(stored)];
        memcpy(&__all, &__words, pitch);
#pragma unroll
        for (int __k = 0; __k < __length; ++__k) values[__k] = element<__operand>(__all[__k]).get();
        at += __rows * pitch;
        return 0;
    }
    GRIDSTRIDE_INLINED value of(int, int __k) const { return values[__k]; }
};
// Elements of the columns in a row.
template <class __operand, int __length, int __columns>
struct outer_input<__operand, __length, __columns, outer_both> {
    typedef typename __operand::stored stored;
    typedef typename __operand::value value;
    const __operand& source;
    const char* at;
    stored items[__columns * __length];
    template <class __block>
    GRIDSTRIDE_INLINED outer_input(const __block& __its, int __column, int __row)
        : source(__its.source), at(__its.base + __column * __its.source.kept_strides[0] + __row * __its.source.kept_strides[1]) {}
    GRIDSTRIDE_INLINED int take_row(int __rows) {
        const long long __step = source.kept_strides[0];
        if (source.step == sizeof(stored) && __step == __length * source.step) {
            load_neighbors(items, at);
        } else {
#pragma unroll
            for (int __k = 0; __k < __length; ++__k) {
                packet<stored, __columns> __some;
                load_packet<__columns>(__some, at + __k * source.step, __step, 0, __columns);
#pragma unroll
                for (int __j = 0; __j < __columns; ++__j) copy(items[__j * __length + __k], __some.items[__j]);
            }
        }
        at += __rows * source.kept_strides[1];
        return 0;
    }
    GRIDSTRIDE_INLINED value of(int __column, int __k) { return element<__operand>(items[__column * __length + __k]).get(); }
};

template <int __length, int __columns, bool __are_words, class __folding, class __map, class __reduce, class __finish, int __axes, class... __inputs>
GRIDSTRIDE_INLINED void fold_outer_rows(const __map& __do_map, const __reduce& __do, const __finish& __do_finish, const __folding& __start,
                                        const fold_space<__axes>& __space, const outer_place<__axes>& __place, int __rows, int __apart, __inputs&&... __all) {
    auto __make = [&](const auto& __do_post, auto&&... __outputs) {
        long long __number = 0, __result = move_to(__space, __place, __outputs...);
#pragma unroll
        for (int __axis = 0; __axis < __axes; ++__axis) {
            if (__axis >= __space.kept.ndim) break;
            __number += __place.at[__axis] * __space.kept_numbers.strides[__axis];
        }
        swallow(__outputs.begin_rows(__apart, __space.group >> 31)...);
#pragma unroll 1
        for (int __left = __rows; __left > 0; --__left) {
            swallow(__all.take_row(__apart)...);
            swallow(__outputs.take_row()...);
            __folding __folded[__columns];
#pragma unroll
            for (int __j = 0; __j < __columns; ++__j) {
                __folding __sum[1] = {__start};
                added_values<is_costly<__folding, __reduce>::value>::template to<__length>(__do, __sum, [&](int __k) {
                    return __do_map(__number + __j * __space.kept_numbers.step + __k * __space.fold_numbers.step, __k, __all.of(__j, __k)...);
                });
                __folded[__j] = __sum[0];
            }
            assign_outer<__are_words>(__do_post, __folded, __result, __space.result.step, __columns, __outputs...);
            __number += __apart * __space.kept_numbers.strides[1];
            __result += __apart * __space.result.strides[1];
        }
    };
    __do_finish(0, 0, outer_results<decltype(__make)>{__make});
}

// The first and last columns of so many rows, which are no word, a thread a row. A row begins so many columns behind a word.
template <int __length, int __columns, bool __are_words, class __folding, class __map, class __reduce, class __finish, int __axes, int __most_rows, class... __operands, int... __how>
GRIDSTRIDE_INLINED void fold_ends_of_rows(const __map& __do_map, const __reduce& __do, const __finish& __do_finish, const __folding& __start,
                                          const fold_space<__axes>& __space, outer_place<__axes>& __place, int __rows, long long __begin,
                                          long long __behind, int __columns_all, bool __is_first, bool __is_last,
                                          outer_block<__operands, __length, __most_rows, __how>&... __all) {
#pragma unroll 1
    for (int __row = threadIdx.x; __row < __rows; __row += fold_threads) {
        __place.at[1] = __begin + __row;
        const int __past = static_cast<int>((__behind + __row * __space.position.strides[1]) % __columns);
        const int __before = __is_first && __past ? __columns - __past : 0, __last = __is_last ? (__past + __columns_all) % __columns : 0;
#pragma unroll 1
        for (int __j = 0; __j < __before + __last; ++__j) {
            const int __one = __j < __before ? __j : __columns_all - __last + __j - __before;
            __place.at[0] = __one;
            fold_outer_rows<__length, 1, __are_words>(__do_map, __do, __do_finish, __start, __space, __place, 1, 1,
                                                      outer_input<__operands, __length, 1, __how>(__all, __one, __row)...);
        }
    }
}

template <int __length, int __columns, int __most_rows, bool __are_words, class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands, int... __how>
GRIDSTRIDE_INLINED void fold_outer_block(const __map& __do_map, const __reduce& __do, const __finish& __do_finish, const __folding& __start,
                                         const fold_space<__axes>& __space, char* __shared, outer_block<__operands, __length, __most_rows, __how>&&... __all) {
    unsigned __rest = blockIdx.x;
    const int __group = __space.group, __height = static_cast<int>(__space.width);
    const int __below = static_cast<unsigned>(threadIdx.x) / static_cast<unsigned>(__group), __beside = threadIdx.x - __below * __group;
    const int __columns_all = static_cast<int>(__space.fold.length[0]), __even = static_cast<int>(__space.fold.length[2]);
    const unsigned __tile = remainder_of(__space.kept, __rest, 0);
    const long long __begin = remainder_of(__space.kept, __rest, 1) * __space.part, __under = __space.fold.length[1] - __begin;
    const int __rows = static_cast<int>(__under < __space.part ? __under : __space.part);
    outer_place<__axes> __place;
    long long __behind = __space.position.strides[0] + __begin * __space.position.strides[1];
    swallow(__all.take_memory(__shared)...);
    swallow(__all.move(1, __begin)...);
#pragma unroll
    for (int __axis = 2; __axis < __axes; ++__axis) {
        __place.at[__axis] = 0;
        if (__axis >= __space.kept.ndim) continue;
        __place.at[__axis] = remainder_of(__space.kept, __rest, __axis);
        __behind += __place.at[__axis] * __space.position.strides[__axis];
        swallow(__all.move(__axis, __place.at[__axis])...);
    }
    swallow(__all.bring(__rows)...);
    __syncthreads();
    const long long __column = (static_cast<long long>(__tile) * __group + __beside) * __columns - ((__behind + __below * __space.position.strides[1]) & (__even - 1));
    __place.at[0] = __column;
    __place.at[1] = __begin + __below;
    if (__below < __height && __column >= 0 && __column + __columns <= __columns_all)
        fold_outer_rows<__length, __columns, __are_words>(__do_map, __do, __do_finish, __start, __space, __place, (__rows - __below + __height - 1) / __height, __height,
                                                          outer_input<__operands, __length, __columns, __how>(__all, int(__column), __below)...);
    const bool __is_first = __tile == 0, __is_last = __tile + 1 == __space.kept.length[0];
    if (__columns == 1 || !(__is_first || __is_last)) return;
    fold_ends_of_rows<__length, __columns, __are_words>(__do_map, __do, __do_finish, __start, __space, __place, __rows, __begin, __behind,
                                                        __columns_all, __is_first, __is_last, __all...);
}

// For so many rows of a block at most; `__are_words`: whether whole packets of all outputs are.
template <int __length, int __columns, int __most_rows, bool __are_words, int... __how>
struct fold_outer {
    template <class __folding, class... __operands>
    static __device__ constexpr int shared_bytes() { return 16 + sum_of(outer_block<__operands, __length, __most_rows, __how>::bytes...); }
    template <class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands>
    static GRIDSTRIDE_INLINED void fold(const __map& __do_map, const __reduce& __do, const __finish& __do_finish, const __folding& __start,
                                        const fold_space<__axes>& __space, char* __shared, const __operands&... __inputs) {
        fold_outer_block<__length, __columns, __most_rows, __are_words>(__do_map, __do, __do_finish, __start, __space, __shared,
                                                           outer_block<__operands, __length, __most_rows, __how>(__inputs)...);
    }
};

}

#endif
