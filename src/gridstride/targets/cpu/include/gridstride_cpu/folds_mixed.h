// Folds of short rows, of which some axes are folded and others kept: `shared_mixed`. Blocks of such axes, whose elements
// follow each other, are folded as rows are across; what is left of each block is folded along its own axes.
#ifndef GRIDSTRIDE_CPU_FOLDS_MIXED_H
#define GRIDSTRIDE_CPU_FOLDS_MIXED_H

#include <gridstride_cpu/block_rows.h>
#include <gridstride_cpu/widening.h>

namespace gridstride {

// The axes of a block, innermost first. The first kept axes are in it, and those folded ones that `fold` does not count;
// several rows of the first one that it counts may be folded as one. Columns are those of the input whose number `width`
// has, which has all of these axes.
template <int __axes>
struct mixed_block {
    block_axis axis[2 * __axes + 1];
    int count = 0, kept_axes, together;
    long long columns = 1;  // of one row

    template <class... __operands>
    GRIDSTRIDE_INLINED mixed_block(const fold_space<__axes>& __space, const __operands&... __all)
        : kept_axes(int(__space.width >> 32 & 0xffff)), together(int(__space.width)) {
        const long long* const __kept[] = {__all.kept_strides...};
        const long long* const __folded[] = {__all.strides...};
        const long long __sizes[] = {sizeof(typename __operands::stored)...}, __its = __space.width >> 48, __size = __sizes[__its];
        for (int __k = 0; __k < kept_axes; ++__k)
            add({__k + 1 < kept_axes ? __space.kept.length[__k] : __space.group, __kept[__its][__k] / __size, __space.kept_numbers.strides[__k], 0, false, __k});
        for (int __k = __space.fold.ndim; __k < __axes; ++__k)
            if (__space.fold.length[__k] > 1)
                add({__space.fold.length[__k], __folded[__its][__k] / __size, __space.fold_numbers.strides[__k], __space.position.strides[__k], true, __k});
        if (together > 1) axis[count++] = {together, columns, __space.fold_numbers.strides[0], __space.position.strides[0], true, 0};
    }
    // Numbers and positions of columns, relative to the first one's.
    GRIDSTRIDE_INLINED void number(long long* __numbers, long long* __positions) const {
        __numbers[0] = __positions[0] = 0;
        long long __done = 1;
        for (int __k = 0; __k < count; ++__k)
            for (long long __at = 1, __from = __done; __at < axis[__k].length; ++__at, __done += __from)
                for (long long __column = 0; __column < __from; ++__column) {
                    __numbers[__done + __column] = __numbers[__column] + __at * axis[__k].number;
                    __positions[__done + __column] = __positions[__column] + __at * axis[__k].position;
                }
    }

    // Results of the kept axes that a block holds whole, without the last one.
    GRIDSTRIDE_INLINED long long results_each(const fold_space<__axes>& __space) const {
        long long __results = 1;
        for (int __k = 0; __k + 1 < kept_axes; ++__k) __results *= __space.kept.length[__k];
        return __results;
    }

private:
    GRIDSTRIDE_INLINED void add(const block_axis& __next) {
        int __at = count++;
        for (; __at > 0 && axis[__at - 1].columns > __next.columns; --__at) axis[__at] = axis[__at - 1];
        axis[__at] = __next;
        columns *= __next.length;
    }
};

// A map for elements whose numbers say in which column they are.
template <class __map>
struct column_map {
    const __map& map;
    const long long *numbers, *positions;
    template <class... __elements>
    GRIDSTRIDE_INLINED auto operator()(long long __number, long long __position, const __elements&... __all) const {
        const long long __column = __number / number_of_column;
        return map(__number % number_of_column + numbers[__column], __position + positions[__column], __all...);
    }
};
template <class __map>
GRIDSTRIDE_INLINED column_map<__map> in_columns(const __map& __do_map, const long long* __numbers, const long long* __positions) {
    return {__do_map, __numbers, __positions};
}
template <class __map>
GRIDSTRIDE_INLINED const numberless<__map>& in_columns(const numberless<__map>& __do_map, const long long*, const long long*) { return __do_map; }

constexpr int most_sums_on_stack = 114688;  // bytes
constexpr int folded_at_once = 16;    // values one after another
constexpr int fetched_at_once = 128;  // elements that are mapped before

// Elements of a block that are mapped where they lie.
template <class __value, class __fetch>
struct mapped_row {
    __value value;
    __fetch fetching;
    long long first;
    GRIDSTRIDE_INLINED mapped_row from(long long __k) const { return {value, fetching, first + __k}; }
    GRIDSTRIDE_INLINED auto get(long long __k) const { return value(first + __k); }
};
template <class __value, class __fetch>
GRIDSTRIDE_INLINED mapped_row<__value, __fetch> mapped(const __value& __value_at, const __fetch& __fetch_at) { return {__value_at, __fetch_at, 0}; }

// Fetch what is far behind so many elements.
template <class __row>
GRIDSTRIDE_INLINED void fetch_from(const __row&, long long, long long) {}
template <class __value, class __fetch>
GRIDSTRIDE_INLINED void fetch_from(const mapped_row<__value, __fetch>& __row, long long __k, long long __count) { __row.fetching(__row.first + __k, __count); }

// What takes vectors too is given these, since compilers make none of few lanes that are of several sizes.
template <class __reduce> struct takes_vectors { static constexpr int value = 0; };
template <> struct takes_vectors<adding> { static constexpr int value = 1; };

template <int __lanes, class __value>
GRIDSTRIDE_INLINED auto lanes_at(const row_of_values<__value, false>& __row) { return vector_of<__value, __lanes>::from(__row.values); }

// Elements that become larger integers.
template <class __stored, class __value>
struct widened_row {
    const __stored* items;
    GRIDSTRIDE_INLINED widened_row from(long long __k) const { return {items + __k}; }
};
template <int __lanes, class __stored, class __value>
GRIDSTRIDE_INLINED auto lanes_at(const widened_row<__stored, __value>& __row) { return widened<__value, __lanes>(__row.items); }
template <class __stored, class __value>
GRIDSTRIDE_INLINED void fetch_from(const widened_row<__stored, __value>& __row, long long __k, long long __count) {
    fetch_far(reinterpret_cast<const char*>(__row.items + __k), __count * sizeof(__stored));
}

// Lanes that make whole vectors, two where compilers make these, and those of groups that are not worth as many. Vectors
// that are given are no larger than the processor's: compilers take others apart, and hand the parts over in memory.
template <class __row, class __reduce>
struct lanes_of_block {
    static constexpr bool are_given = takes_vectors<__reduce>::value;
    typedef places<are_given> how;
    static constexpr int size = sizeof(static_cast<__row*>(nullptr)->get(0)), least = larger(8, 32 / size);
    static constexpr int most = (are_given ? int(sizeof(longest_vector)) : 128) / size;
    static constexpr int few = are_given ? smaller(least, most) : least, many = smaller(larger(few, most), spare_values);
};

// Fold lanes with those that follow, each so many values behind the one before.
template <int __lanes, class __row, class __source, class __reduce>
GRIDSTRIDE_INLINED void fold_lanes_of_block(places<0>, __row __to, __source __from, long long __length, long long __inner, const __reduce& __do) {
    typedef decltype(__do(__from.get(0), __from.get(0))) __value;
    alignas(64) char __room[__row::bytes(__lanes)];
    __row __some(__room, __lanes);
    GRIDSTRIDE_LANES
    for (long long __lane = 0; __lane < __lanes; ++__lane) __some.set(__lane, __from.get(__lane));
    // Where they have no members values join each other first, in shorter chains: sums take part in fewer roundings.
    constexpr int __several = lanes_of_members<__value>() > 1 ? 0 : 4;
    long long __k = 1;
    GRIDSTRIDE_ROLLED
    for (; __several > 0 && __k + __several < __length; __k += __several) {
        const __source __next = __from.from(__k * __inner);
        GRIDSTRIDE_LANES
        for (long long __lane = 0; __lane < __lanes; ++__lane) {
            auto __value_at = [&](int __turn) { return __next.get(__turn * __inner + __lane); };
            __some.set(__lane, several<larger(__several), true>::join(__do, __value(__some.get(__lane)), __value_at, 0));
        }
    }
    GRIDSTRIDE_ROLLED
    for (; __k < __length - 1; ++__k) {
        const __source __next = __from.from(__k * __inner);
        GRIDSTRIDE_LANES
        for (long long __lane = 0; __lane < __lanes; ++__lane) __some.set(__lane, __do(__some.get(__lane), __next.get(__lane)));
    }
    // Lanes are stored as they are loaded, since processors wait for vectors that are stored as smaller ones.
    const __source __last = __from.from((__length - 1) * __inner);
    GRIDSTRIDE_LANES
    for (long long __lane = 0; __lane < __lanes; ++__lane) __to.set(__lane, __do(__some.get(__lane), __last.get(__lane)));
}
template <int __lanes, class __row, class __source, class __reduce>
GRIDSTRIDE_INLINED void fold_lanes_of_block(places<1>, __row __to, __source __from, long long __length, long long __inner, const __reduce& __do) {
    auto __some = lanes_at<__lanes>(__from);
    GRIDSTRIDE_ROLLED
    for (long long __k = 1; __k < __length; ++__k) __some = __do(__some, lanes_at<__lanes>(__from.from(__k * __inner)));
    __builtin_memcpy(__to.values, &__some, sizeof(__some));
}

// Fold the middle axis of groups of at least as many values as lanes; the results follow each other. What lies behind a
// row is folded too, and overwritten by the next one.
template <class __row, class __source, class __reduce>
GRIDSTRIDE_APART void fold_groups(__row __to, __source __from, long long __groups, long long __length, long long __inner, const __reduce& __do) {
    typedef lanes_of_block<__row, __reduce> __lanes;
    constexpr typename __lanes::how __how;
    const __source __its = __from;
    for (long long __group = 0; __group < __groups; ++__group) {
        const long long __first = __group * __inner, __first_from = __first * __length;
        fetch_from(__its, __first_from, __length * __inner);
        long long __k = 0;
        for (; __k + __lanes::few < __inner; __k += __lanes::many)
            fold_lanes_of_block<__lanes::many>(__how, __to.from(__first + __k), __its.from(__first_from + __k), __length, __inner, __do);
        if (__k < __inner) fold_lanes_of_block<__lanes::few>(__how, __to.from(__first + __k), __its.from(__first_from + __k), __length, __inner, __do);
    }
}

// Of smaller groups fold what follows each value as though a group began there.
template <class __row, class __source, class __reduce>
GRIDSTRIDE_APART void fold_windows(__row __values, __source __source_row, long long __groups, long long __length, long long __inner, const __reduce& __do) {
    typedef lanes_of_block<__row, __reduce> __lanes;
    constexpr int __few = 4;
    const long long __last = (__groups * __length - __length + 1) * __inner, __stride = __length * __inner;
    for (long long __from = 0; __from < __last; __from += __lanes::many) {
        fetch_from(__source_row, __from, __lanes::many);
        fold_lanes_of_block<__lanes::many>(typename __lanes::how(), __values.from(__from), __source_row.from(__from), __length, __inner, __do);
    }
    const bool __are_few = 1 < __inner && __inner <= __few;
    __row __from = __values.from(__stride), __to = __values.from(__inner);
    for (long long __group = 1; __are_few && __group < __groups; ++__group, __from = __from.from(__stride), __to = __to.from(__inner)) {
        GRIDSTRIDE_LANES
        for (long long __lane = 0; __lane < __few; ++__lane) __to.set(__lane, __from.get(__lane));
    }
    for (long long __group = 1; !__are_few && __group < __groups; ++__group, __from = __from.from(__stride), __to = __to.from(__inner)) {
        GRIDSTRIDE_ROLLED
        for (long long __k = 0; __k < __inner; ++__k) __to.set(__k, __from.get(__k));
    }
}

// How many of so many values are folded one after another: as many as divide them.
GRIDSTRIDE_INLINED long long folded_of(long long __length) {
    for (long long __some = folded_at_once; __length > folded_at_once && __some > 3; --__some)
        if (__length % __some == 0) return __some;
    return __length;
}

template <class __row, class __source, class __reduce>
GRIDSTRIDE_INLINED void fold_some(__row __to, __source __from, long long __groups, long long __length, long long __inner, const __reduce& __do) {
    if (__inner == 1 || __length * __inner < lanes_of_block<__row, __reduce>::many) fold_windows(__to, __from, __groups, __length, __inner, __do);
    else fold_groups(__to, __from, __groups, __length, __inner, __do);
}

// Fold the middle axis of groups of `__length` times `__inner` values; the results follow each other. Sums of many take
// part in few roundings.
template <class __row, class __source, class __reduce>
GRIDSTRIDE_APART void fold_middle(__row __to, __source __from, long long __groups, long long __length, long long __inner, const __reduce& __do) {
    const long long __some = folded_of(__length);
    __length /= __some;
    fold_some(__to, __from, __groups, __some, __length * __inner, __do);
    if (__length > 1) fold_middle(__to, __to, __groups, __length, __inner, __do);
}

// Fold the axes of a block of so many columns; return how many results there are.
template <int __axes, class __row, class __source, class __reduce>
GRIDSTRIDE_INLINED int fold_block(const mixed_block<__axes>& __block, __row __values, __source __from, long long __columns, const __reduce& __do) {
    bool __is_first = true;
    for (int __k = __block.count - 1 - (__block.together > 1); __k >= 0; --__k) {
        const block_axis& __axis = __block.axis[__k];
        if (!__axis.is_folded) continue;
        const long long __groups = __columns / (__axis.length * __axis.columns);
        if (__is_first) fold_middle(__values, __from, __groups, __axis.length, __axis.columns, __do);
        else fold_middle(__values, __values, __groups, __axis.length, __axis.columns, __do);
        __is_first = false;
        __columns /= __axis.length;
    }
    return int(__columns);
}
// Lanes may look at values of any reduction.
template <class __row>
GRIDSTRIDE_INLINED void repeat_last(__row __values, long long __columns) {
    for (int __k = 0; __k < spare_values; ++__k) __values.set(__columns + __k, __values.get(__columns - 1));
}

// Of a reduction what folds vectors too.
template <class __reduce>
GRIDSTRIDE_INLINED const __reduce& by_lanes(const __reduce& __do) { return __do; }
template <class __reduce>
GRIDSTRIDE_INLINED adding by_lanes(const integer_sum<__reduce>&) { return adding(); }

// Maps that ask for numbers are shown no elements but those of the block, all at once; so are those of elements that become
// much larger, of which compilers make whole vectors only where there are many, or take long to become numbers.
template <int __axes, class __row, class __value, class __fetch, class __reduce>
GRIDSTRIDE_INLINED int fold_mapped(places<1>, const mixed_block<__axes>& __block, __row __values, const __value& __value_at, const __fetch& __fetch_at,
                                   long long __columns, const __reduce& __do) {
    for (long long __from = 0; __from < __columns; __from += fetched_at_once) {
        const long long __to = __columns - __from < fetched_at_once ? __columns : __from + fetched_at_once;
        __fetch_at(__from, __to - __from);
        GRIDSTRIDE_INDEPENDENT
        for (long long __k = __from; __k < __to; ++__k) __values.set(__k, __value_at(__k));
    }
    repeat_last(__values, __columns);
    return fold_block(__block, __values, __values, __columns, __do);
}
template <int __axes, class __row, class __value, class __fetch, class __reduce>
GRIDSTRIDE_INLINED int fold_mapped(places<0>, const mixed_block<__axes>& __block, __row __values, const __value& __value_at, const __fetch& __fetch_at,
                                   long long __columns, const __reduce& __do) {
    return fold_block(__block, __values, mapped(__value_at, __fetch_at), __columns, __do);
}
template <class __map, int __axes, class __row, class __value, class __reduce, class... __stored>
GRIDSTRIDE_INLINED int fold_elements(const __map&, const mixed_block<__axes>& __block, __row __values, const __value& __value_at, long long __columns,
                                     const __reduce& __do, const __stored* const... __items) {
    auto __fetch = [=](long long __k, long long __count) {
        swallow((fetch_far(reinterpret_cast<const char*>(__items + __k), __count * sizeof(__stored)), 0)...);
    };
    constexpr bool __are_mapped_before = asks_for_numbers<__map>::value || 2 * smaller(64, int(sizeof(__stored))...) < __row::smallest ||
                                         !all_of(!is_same<float16, __stored>::value...);
    return fold_mapped(places<__are_mapped_before>(), __block, __values, __value_at, __fetch, __columns, __do);
}
template <class __map, int __axes, class __type, class __value, class __stored>
GRIDSTRIDE_INLINED int fold_elements(const numberless<__map>&, const mixed_block<__axes>& __block, row_of_values<__type, false> __values, const __value&,
                                     long long __columns, const adding& __do, const __stored* __items) {
    return fold_block(__block, __values, widened_row<__stored, __type>{__items}, __columns, __do);
}

// Where whole folds are in a block, they are folded as they lie, or where they are brought to, and handed over.
template <class __folding, class __batches, bool __finds_places = __batches::is_one_run>
struct whole_folds {
    template <class __map>
    GRIDSTRIDE_INLINED whole_folds(const __map&, char*, long long) {}
    static constexpr int bytes(long long) { return 0; }
    template <class... __operands, class __finish, class __map, class __reduce, int __axes, class __sums>
    GRIDSTRIDE_INLINED void run(const __finish& __do_finish, const __map& __do_map, const __reduce& __do, const mixed_block<__axes>& __block, __sums& __its,
                                long long __result, int __part, long long __columns, long long __number, long long __step,
                                const typename __operands::stored* const... __items) const {
        auto __value_at = [=, &__do_map](long long __k) {
            return static_cast<typename __batches::value>(static_cast<typename __folding::type>(
                __do_map(__number + __k * __step, 0, element<__operands>(const_cast<typename __operands::stored&>(__items[__k])).get()...)));
        };
        const int __count = fold_elements(__do_map, __block, __its.batched, __value_at, __columns, by_lanes(__batches::reduce(__do)), __items...);
        finish_row<__folding>(__do_finish, __do, __result, __part, __count, false, __its.joined, __its.batched);
    }
};

template <class __inputs_brought, class __folding, class __map, class __reduce, class __finish, int __axes, class... __inputs>
GRIDSTRIDE_INLINED void run_mixed(const __map& __do_map, const mixed_block<__axes>& __block, const __reduce& __do,
                                  const __finish& __do_finish, const __folding&, const fold_space<__axes>& __space,
                                  __inputs&&... __all) {
    // The last kept axis of a block, `fold_row` long, is cut into pieces of `group`; the axes before it are not counted.
    typedef typename __folding::type __type;
    typedef batch_of_rows<__type, __map, __reduce, typename __inputs::operand...> __batches;
    typedef sums_of_rows<__type, typename __batches::row> __rows_of_sums;
    constexpr long long __batch = __batches::rows;
    const long long __columns = __block.columns, __width = __columns * __block.together, __whole = __space.fold.count;
    const long long __run = __space.fold.length[0], __each = __block.results_each(__space);
    const int __last_kept = __block.kept_axes - 1;
    const bool __has_whole = __batches::is_one_run || __space.part > __batch * (__rows_of_sums::batch - 1);
    const long long __sums_bytes = __rows_of_sums::bytes(__width + spare_values, true, __has_whole);
    const block_memory __many_sums(__sums_bytes > most_sums_on_stack ? __sums_bytes : 0);
    char* const __room = __many_sums.bytes ? __many_sums.bytes : static_cast<char*>(__builtin_alloca(__sums_bytes));
    typedef whole_folds<__folding, __batches> __whole_type;
    const __whole_type __whole_folds(__do_map, static_cast<char*>(__builtin_alloca(__whole_type::bytes(__width))), __width);
    const long long __room_of[] = {__all.plan(__block, __space.fold.ndim > 0)...};
    long long __bytes = 0, __input = 0;
    for (long long __each : __room_of) __bytes += __each;
    const block_memory __memory(__bytes);
    char* __left = __memory.bytes;
    const int __taken[] = {__all.take(__left, __room_of[__input++])...};  // in this order
    (void)__taken;
    const share_of_pieces __share(__space.kept.count * __space.parts);
    for (long long __piece = __share.first; __piece < __share.last; ++__piece) {
        const long long __part = __piece % __space.parts;
        long long __outer = __piece / __space.parts;
        const long long __first = digit_of(__space.kept, __outer, __last_kept) * __space.group, __left = __space.fold_row - __first;
        const long long __some = __columns / __space.group * (__left < __space.group ? __left : __space.group);
        const long long __corner = settle(__space, __outer, __last_kept + 1, __all...) + __first * __space.kept_numbers.strides[__last_kept];
        swallow((__all.base += __first * __all.source.kept_strides[__last_kept])...);
        const long long __result = (__outer * __space.fold_row + __first) * __each;
        const long long __begin = __part * __space.part, __end = __begin + __space.part < __whole ? __begin + __space.part : __whole;
        const int __together = __end - __begin < __block.together ? 1 : __block.together;
        const long long __end_of_together = __end - (__end - __begin) % __together;
        __rows_of_sums __sums(__room, __width + spare_values);
        // Return where the next batch begins.
        auto __fold = [&](long long __from, long long __last, int __as_one) __attribute__((noinline)) {
            const long long __in_run = __run - __from % __run, __most = __batch * __as_one;
            const long long __ahead = __from + (__batches::is_one_run && __in_run < __most ? __in_run : __most);
            const long long __to = __ahead < __last ? __ahead : __last;
            fold_batch<__inputs_brought>(__sums.batched, __do_map, __batches::reduce(__do), __space, __corner, 0, int(__some), __from, __to,
                                         __as_one, __all...);
            return __to;
        };
        if (__whole == 1) {
            // Blocks follow each other.
            const bool __is_followed = (__left - __space.group) * (__columns / __space.group) >= spare_values;
            __whole_folds.template run<typename __inputs::operand...>(
                __do_finish, __do_map, __do, __block, __sums, __result, int(__part), __some, __corner, __space.kept_numbers.step,
                __all.whole_block(__some, __is_followed)...);
            continue;
        }
        for (long long __from = __begin; __from < __end_of_together;) {
            __from = __fold(__from, __end_of_together, __together);
            __sums.join(__do, int(__some) * __together);
        }
        const auto __values = __sums.of_batches(__do, int(__some) * __together);
        for (long long __rows = __together; __rows > 1; __rows -= __rows / 2)
            __rows_of_sums::add(__do, __values, __values.from((__rows - __rows / 2) * __some), false, int(__rows / 2 * __some));
        for (long long __from = __end_of_together; __from < __end;) {
            __from = __fold(__from, __end, 1);
            __rows_of_sums::add(__do, __values, __sums.batched, false, int(__some));
        }
        repeat_last(__values, __some);
        const int __count = fold_block(__block, __values, __values, __some, __do);
        finish_row<__folding>(__do_finish, __do, __result, int(__part), __count, true, __values, __sums.batched);
    }
}

template <class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands>
GRIDSTRIDE_INLINED void shared_mixed(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                     const __folding& __start, const fold_space<__axes>& __space, const __operands&... __all) {
    typedef brought<__operands...> __brought;
    const mixed_block<__axes> __block(__space, __all...);
    const long long __numbered = asks_for_numbers<__map>::value ? __block.columns * __block.together : 0;
    const block_memory __memory(2 * __numbered * sizeof(long long));
    long long* const __numbers = reinterpret_cast<long long*>(__memory.bytes);
    if (__numbered) __block.number(__numbers, __numbers + __numbered);
    run_mixed<__brought>(in_columns(__do_map, __numbers, __numbers + __numbered), __block, __do, __do_finish, __start, __space,
                         block_rows<__operands, __brought::rows, __brought::width, (sizeof...(__operands) > 1)>(__all)...);
}

}

#endif
