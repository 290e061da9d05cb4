// Folds in which the innermost axis is folded: `shared_along`.
//
// A row is folded in chunks, which are joined in pairs. A chunk has blocks, each of which adds to every lane a few
// times; the sums of blocks are added up by lanes. So no number takes part in many more roundings than a pair would.
#ifndef GRIDSTRIDE_CPU_FOLDS_ALONG_H
#define GRIDSTRIDE_CPU_FOLDS_ALONG_H

#include <gridstride_cpu/members.h>
#include <gridstride_cpu/short_rows.h>

namespace gridstride {

// Whether a reduction keeps an element that is looked for afterwards: `found_extremes.h`.
template <class __reduce> struct finds_places { static constexpr bool value = false; };

// Fold structures in many lanes: each operation waits for the one before it in its lane.
constexpr int turns_of_members = 16;
template <class __type, class __reduce>
struct member_lanes : split_structures<__type, lanes_of_members<__type>()> {
    static constexpr int count = lanes_of_members<__type>();
    // Of so many lanes: fold them with others, `__apart` ahead.
    static GRIDSTRIDE_APART void join(member_lanes& __to, const member_lanes& __from, int __apart, int __count, const __reduce& __do) {
        GRIDSTRIDE_INDEPENDENT
        for (long long __k = 0; __k < __count; ++__k) __to.set(__k, __do(__to.get(__k), __from.get(__k + __apart)));
    }
    // They go to the first one.
    GRIDSTRIDE_INLINED __type whole(const __reduce& __do) {
        for (int __half = count / 2; __half > 4; __half /= 2) join(*this, *this, __half, __half, __do);
        __type __value = this->get(0);
        for (int __k = 1; __k < 8; ++__k) __value = __do(__value, this->get(__k));
        return __value;
    }
};

// Fold elements of a row; `__number` and `__position` are those of its first one.
template <int __block, class __type, class __map, class __reduce, int __axes, class... __inputs>
GRIDSTRIDE_INLINED __type fold_chunk(places<1>, const __map& __do_map, const __reduce& __do, const fold_space<__axes>& __space,
                                     long long __number, long long __position, long long __from, long long __to,
                                     __inputs&... __all) {
    constexpr int __lanes = lanes_of_members<__type>();
    const long long __step = __space.fold_numbers.step, __position_step = __space.position.step;
    member_lanes<__type, __reduce> __sums, __some;
    const int __most = all_of(__all.is_direct()...) ? turns_of_members * __lanes : __block;
    for (long long __first = __from; __first < __to; __first += __most) {
        const int __count = int(__to - __first < __most ? __to - __first : __most);
        swallow(__all.begin(__first, __count)...);
        auto __values = [&](int __k) {
            const long long __element = __first + __k;
            return values_of<__type, __map, typename __inputs::operand...>(
                __do_map, __number + __element * __step, __step, __position + __element * __position_step, __position_step, (__all.items + __k)...);
        };
        auto __value_at = __values(0);
        if (__count < __lanes && __first == __from) {
            __type __value = __value_at(0);
            for (int __k = 1; __k < __count; ++__k) __value = __do(__value, __value_at(__k));
            return __value;
        }
        int __k = 0;
        if (__count >= __lanes) {
            GRIDSTRIDE_INDEPENDENT
            for (long long __lane = 0; __lane < __lanes; ++__lane) __some.set(__lane, __value_at(__lane));
            for (__k = __lanes; __k + __lanes <= __count; __k += __lanes) {
                swallow(fetch_ahead(__all.items + __k, __lanes, __all.ahead)...);
                auto __turn_at = __values(__k);
                GRIDSTRIDE_INDEPENDENT
                for (long long __lane = 0; __lane < __lanes; ++__lane) __some.set(__lane, __do(__some.get(__lane), __turn_at(__lane)));
            }
            if (__first == __from) __sums = __some;
            else member_lanes<__type, __reduce>::join(__sums, __some, 0, __lanes, __do);
        }
        auto __rest_at = __values(__k);
        GRIDSTRIDE_INDEPENDENT
        for (long long __lane = 0; __lane < __count - __k; ++__lane) __sums.set(__lane, __do(__sums.get(__lane), __rest_at(__lane)));
    }
    return __sums.whole(__do);
}

// How often blocks add to a lane; bytes that are folded of one of several rows before it is another's turn.
constexpr int rounds_of_block = 8, slice_bytes = 1024;

// Elements of a row on their way into the sums of a chunk; `number` and `position` are those of its first one.
template <int __block, class __type, class __map, class __reduce, int __axes, class... __inputs>
struct elements_of_row {
    typedef brief<__type, __reduce, typename __inputs::operand...> briefly;
    static constexpr int largest = largest_stored<typename __inputs::operand...>();
    static constexpr int lanes = lanes_of<__type, typename briefly::type, typename __inputs::operand...>::count;
    typedef folded_chunk<__type, lanes> chunk;
    typedef in_quarters<lanes> quarters;
    typedef side_by_side<lanes> beside;
    static constexpr int slice = larger(slice_bytes / (largest * beside::step), 1) * beside::step;
    const __map& do_map;
    const __reduce& reduce;
    const fold_space<__axes>& space;
    long long number, position;

    // So many elements are a quarter of a chunk where it is read in four places, or none.
    GRIDSTRIDE_INLINED static long long quarter_of(long long __count) {
        const long long __quarter = __count / (4 * quarters::step) * quarters::step;
        return lanes > 1 && fetches_by_itself && __quarter * largest >= far_apart ? __quarter : 0;
    }
    GRIDSTRIDE_INLINED void add_quarters(chunk& __sums, long long __from, long long __quarter, __inputs&... __all) const {
        constexpr int __most = rounds_of_block * quarters::step;
        for (long long __done = 0; __done < __quarter; __done += __most) {
            const int __count = int(__quarter - __done < __most ? __quarter - __done : __most);
            add_block(__sums, __from + __done, __count, quarters{__quarter}, __all...);
        }
    }
    GRIDSTRIDE_INLINED void add(chunk& __sums, long long __from, long long __to, __inputs&... __all) const {
        if (lanes > 1) {
            constexpr int __most = smaller(__block, rounds_of_block * beside::step);
            const long long __in_rounds = __from + (__to - __from) / beside::step * beside::step;
            for (; __from < __in_rounds; __from += __most) {
                const int __count = int(__in_rounds - __from < __most ? __in_rounds - __from : __most);
                add_block(__sums, __from, __count, beside(), __all...);
            }
            __from = __in_rounds;
        }
        for (; __from < __to; __from += __block) {
            const int __count = int(__to - __from < __block ? __to - __from : __block);
            swallow(__all.begin(__from, __count)...);
            fold_rest<typename briefly::type>(__sums, briefly::reduce(reduce), reduce, __count, values(__from, __all.items...));
        }
    }

private:
    GRIDSTRIDE_INLINED auto values(long long __element, const typename __inputs::stored* const... __items) const {
        const long long __step = space.fold_numbers.step, __position_step = space.position.step;
        return values_of<__type, __map, typename __inputs::operand...>(
            do_map, number + __element * __step, __step, position + __element * __position_step, __position_step, __items...);
    }
    template <class __places>
    GRIDSTRIDE_INLINED void add_block(chunk& __sums, long long __first, int __count, const __places& __its, __inputs&... __all) const {
        constexpr bool __in_trees = joins_in_trees<__type, typename __inputs::operand...>();
        typedef lanes_by<adds_words<__type, __reduce, typename __inputs::operand...>::value> __way;
        swallow(__all.begin(__first, __count)...);
        alignas(64) typename briefly::type __some[lanes];
        __way::template fold<typename briefly::type, lanes, __in_trees>(
            __some, briefly::reduce(reduce), __count, __its, values(__first, __all.items...), __all...);
        __sums.add_lanes(reduce, __some);
    }
};

template <int __block, class __type, class __map, class __reduce, int __axes, class... __inputs>
GRIDSTRIDE_INLINED __type fold_chunk(places<0>, const __map& __do_map, const __reduce& __do, const fold_space<__axes>& __space,
                                     long long __number, long long __position, long long __from, long long __to,
                                     __inputs&... __all) {
    typedef elements_of_row<__block, __type, __map, __reduce, __axes, __inputs...> __elements;
    const __elements __its{__do_map, __do, __space, __number, __position};
    typename __elements::chunk __sums;
    const long long __quarter = all_of(__all.is_direct()...) ? __elements::quarter_of(__to - __from) : 0;
    if (__quarter) __its.add_quarters(__sums, __from, __quarter, __all...);
    __its.add(__sums, __from + 4 * __quarter, __to, __all...);
    return __sums.whole(__do);
}

// Fold rows in slices, four at once where one of each quarter of them is read in turn, and return whether it was done: not where
// rows are read in quarters of themselves.
template <int __block, class __type, class __map, class __reduce, int __axes, class... __inputs>
GRIDSTRIDE_APART bool fold_in_slices(places<true>, row_of_values<__type> __values, int __rows, const __map& __do_map, const __reduce& __do,
                                   const fold_space<__axes>& __space, long long __number, __inputs&... __all) {
    typedef elements_of_row<__block, __type, __map, __reduce, __axes, __inputs...> __elements;
    const long long __length = __space.fold_row;
    if (__elements::quarter_of(__length) || !are_read_apart(__space, __all...)) return false;
    const int __quarter = quarter_of_rows(__space, __rows, __all...);
    for (int __k = 0; __k < __rows; __k = __k + 1 == __quarter ? 4 * __quarter : __k + 1) {
        const int __together = __k < __quarter ? 4 : 1;
        typename __elements::chunk __sums[4];
        for (long long __from = 0; __from < __length; __from += __elements::slice)
            for (int __q = 0; __q < __together; ++__q) {
                const long long __row = __k + __q * __quarter;
                swallow((__all.row = __all.base + __row * __all.source.kept_strides[0])...);
                const __elements __its{__do_map, __do, __space, __number + __row * __space.kept_numbers.strides[0], 0};
                __its.add(__sums[__q], __from, __length - __from < __elements::slice ? __length : __from + __elements::slice, __all...);
            }
        for (int __q = 0; __q < __together; ++__q) __values.set(__k + __q * __quarter, __sums[__q].whole(__do));
    }
    return true;
}
template <int __block, class __type, class... __others>
GRIDSTRIDE_INLINED bool fold_in_slices(places<false>, const row_of_values<__type>&, __others&&...) { return false; }

template <class __type, int __block>
constexpr bool is_by_members() { return lanes_of_members<__type>() > 1 && __block % lanes_of_members<__type>() == 0; }

// Fold the chunks from one index to another.
template <int __block, class __type, class __map, class __reduce, int __axes, class... __inputs>
GRIDSTRIDE_INLINED __type fold_chunks(const __map& __do_map, const __reduce& __do, const fold_space<__axes>& __space,
                                      long long __number, long long __begin, long long __end, __inputs&... __all) {
    constexpr int __most = fold_chunk_bytes / largest_stored<typename __inputs::operand...>(), __chunk = larger(__most, 1);
    pairs<__type> __joined;
    for (long long __q = __begin;;) {
        long long __rest = __q, __numbers = __number, __position = 0;
        // Axis 0 of the fold counts chunks of its row.
        const long long __from = digit_of(__space.fold, __rest, 0) * __chunk;
        step_into(__space, __rest, 1, __numbers, __position, __all...);
        const long long __to = __space.fold_row - __from < __chunk ? __space.fold_row : __from + __chunk;
        const __type __value = fold_chunk<__block, __type>(
            places<finds_places<__reduce>::value ? 2 : is_by_members<__type, __block>()>(), __do_map, __do, __space, __numbers, __position, __from, __to, __all...);
        if (__end - __begin == 1) return __value;
        __joined.push(__do, __value);
        if (++__q == __end) return __joined.whole(__do);
    }
}

template <int __block, class __folding, class __map, class __reduce, class __finish, int __axes, class... __inputs>
GRIDSTRIDE_INLINED void run_along(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                  const __folding& __start, const fold_space<__axes>& __space, __inputs&&... __all) {
    typedef typename __folding::type __type;
    typedef short_rows<__type, __map, __reduce, __inputs...> __short;
    typedef row_of_values<__type> __row;
    constexpr int __most = sizeof(__type) > 64 ? 1 : neighbors_along;
    alignas(__row::alignment) char __room[__row::bytes(__most)];
    __row __values(__room, __most);
    const share_of_pieces __share(__space.outputs * __space.parts);
    const long long __whole = __space.fold.count;
    constexpr bool __are_in_lanes = __short::lanes > 1 && !finds_places<__reduce>::value && !is_by_members<__type, __block>();
    constexpr bool __may_slice = fetches_by_itself && __are_in_lanes && largest_stored<typename __inputs::operand...>() >= 4;
    // One element in place of a row is repeated in a buffer, for all lanes and as far as a vector reaches.
    const bool __may_repeat = __short::may_repeat && __space.fold_row + 2 * __short::lanes + line_bytes <= __block;
    swallow(__all.look_ahead(__space.fold_row, __space.fold.count > 1 ? __all.source.strides[1] : __all.source.kept_strides[0])...);
    for (long long __piece = __share.first; __piece < __share.last;) {
        const long long __result = __piece / __space.parts, __part = __piece % __space.parts;
        long long __number = settle(__space, __result, 0, __all...);
        long long __count = 1;
        if (__space.parts == 1) {
            const long long __left = __space.kept_row - __result % __space.kept_row, __ours = __share.last - __piece;
            __count = __left < __ours ? __left : __ours;
            __count = __count < __most ? __count : __most;
        }
        const long long __begin = __part * __space.part;
        const long long __end = __begin + __space.part < __whole ? __begin + __space.part : __whole;
        const bool __is_one_row = __space.parts == 1 && __space.fold.count == 1;
        auto __are_direct = [&](bool __may_be_repeated) {
            return all_of((is_direct<typename __inputs::stored>(
                               __all.base, __may_be_repeated && __all.source.step == 0 ? sizeof(typename __inputs::stored) : __all.source.step) &&
                           __all.source.kept_strides[0] % long(alignof(typename __inputs::stored)) == 0)...);
        };
        if (__is_one_row && __space.fold_row >= __short::lanes && __space.fold_row <= __short::longest && __are_direct(__may_repeat)) {
            __short::fold(__values, int(__count), __space.kept_row - __result % __space.kept_row, __do_map, __do, __space, __number, __all...);
        } else if (!(__may_slice && __is_one_row && __are_direct(false) &&
                     fold_in_slices<__block, __type>(places<__may_slice>(), __values, int(__count), __do_map, __do, __space, __number, __all...))) {
            for (int __k = 0; __k < __count; ++__k) {
                __values.set(__k, __begin < __end ? fold_chunks<__block, __type>(__do_map, __do, __space, __number, __begin, __end, __all...)
                                                  : __start.value);
                __number += __space.kept_numbers.strides[0];
                swallow((__all.base += __all.source.kept_strides[0])...);
            }
        }
        __do_finish(__result, int(__part), neighbors<__folding, false, typename __row::shown_type>{__values.shown(), int(__count)});
        __piece += __count;
    }
}

template <class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands>
GRIDSTRIDE_INLINED void shared_along(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                     const __folding& __start, const fold_space<__axes>& __space,
                                     const __operands&... __all) {
    typedef typename __folding::type __type;
    typedef typename brief<__type, __reduce, __operands...>::type __brief;
    constexpr int __block = lanes_of<__type, __brief, __operands...>::block;
    run_along<__block>(__do_map, __do, __do_finish, __start, __space, streamed_input<__operands, __block>(__all)...);
}

}

#endif
