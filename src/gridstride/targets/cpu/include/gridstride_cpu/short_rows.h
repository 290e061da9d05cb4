// `short_rows`: folds of neighboring rows, each of a few times as many elements as there are lanes.
#ifndef GRIDSTRIDE_CPU_SHORT_ROWS_H
#define GRIDSTRIDE_CPU_SHORT_ROWS_H

#include <gridstride_cpu/byte_rows.h>
#include <gridstride_cpu/members.h>

namespace gridstride {

// Of two vectors all lower halves of groups, or what is `__up` elements behind them.
template <int __half, int __up, class __vector, int... __k>
GRIDSTRIDE_INLINED __vector halves_of(__vector __first, __vector __second, places<__k...>) {
    constexpr int __length = sizeof...(__k);
#if defined(__clang__)
    return __builtin_shufflevector(__first, __second, (__k / __half % 2 * (__length - __half) + __k + __up)...);
#else
    return __builtin_shuffle(__first, __second, __vector{(__k / __half % 2 * (__length - __half) + __k + __up)...});
#endif
}

// As many rows as there are lanes become the lanes of the first one: halves of each are folded with each other, and
// next to those of another row, so that all lanes stay in use.
template <class __type, int __lanes, int __half = __lanes / 2>
struct rows_of_lanes {
    // Lanes make several vectors where values are larger than what is stored.
    static constexpr int length = smaller(__lanes, vector_bytes / int(sizeof(__type)));
    typedef typename word_of<sizeof(__type)>::type word;
    typedef word vector __attribute__((vector_size(length * sizeof(word))));

    template <class __reduce>
    GRIDSTRIDE_INLINED static void join(const __reduce& __do, __type* __rows) {
        GRIDSTRIDE_ROLLED
        for (int __row = 0; __row < __half; ++__row) {
            __type *const __first = __rows + __row * __lanes, *const __second = __first + __half * __lanes;
            for (int __from = 0; __from < __lanes; __from += length) {
                alignas(64) __type __lower[length], __upper[length];
                part(__lower, __upper, __first, __second, __from, places<(__half < length)>());
                GRIDSTRIDE_LANES
                for (long long __k = 0; __k < length; ++__k) __first[__from + __k] = __do(__lower[__k], __upper[__k]);
            }
        }
        rows_of_lanes<__type, __lanes, __half / 2>::join(__do, __rows);
    }

    // A vector, since the processor would wait for two that are loaded as a larger one.
    GRIDSTRIDE_INLINED static void copy(__type* __to, const __type* __from) {
        *reinterpret_cast<vector*>(__to) = *reinterpret_cast<const vector*>(__from);
    }

private:
    // Halves are whole vectors, or less.
    GRIDSTRIDE_INLINED static void part(__type* __lower, __type* __upper, const __type* __first, const __type* __second, int __from, places<false>) {
        const __type* const __at = __from / __half % 2 ? __second + __from - __half : __first + __from;
        copy(__lower, __at);
        copy(__upper, __at + __half);
    }
    GRIDSTRIDE_INLINED static void part(__type* __lower, __type* __upper, const __type* __first, const __type* __second, int __from, places<true>) {
        vector __some, __others;
        __builtin_memcpy(&__some, __first + __from, sizeof(vector));
        __builtin_memcpy(&__others, __second + __from, sizeof(vector));
        const vector __low = halves_of<__half, 0>(__some, __others, typename places_up_to<length>::type());
        const vector __high = halves_of<__half, __half>(__some, __others, typename places_up_to<length>::type());
        __builtin_memcpy(__lower, &__low, sizeof(vector));
        __builtin_memcpy(__upper, &__high, sizeof(vector));
    }
};
template <class __type, int __lanes>
struct rows_of_lanes<__type, __lanes, 0> {
    template <class __reduce>
    GRIDSTRIDE_INLINED static void join(const __reduce&, __type*) {}
};

// Elements of a row, in whole lanes. Of many, halves become sums of their own: numbers take part in fewer roundings.
template <int __lanes, class __brief, class __reduce, class __value, class... __inputs>
GRIDSTRIDE_INLINED void fold_lanes(__brief* __some, const __reduce& __do, long long __count, const __value& __value_at, const __inputs&... __all) {
    typedef several<2, true> __two;
    const bool __are_many = __count > 16 * __lanes;
    alignas(64) __brief __others[__lanes];
    swallow(fetch_ahead(__all.items, __lanes, __all.ahead)...);
    GRIDSTRIDE_LANES
    for (long long __lane = 0; __lane < __lanes; ++__lane) __some[__lane] = __brief(__value_at(__lane));
    long long __from = __lanes;
    if (__are_many) {
        GRIDSTRIDE_LANES
        for (long long __lane = 0; __lane < __lanes; ++__lane) __others[__lane] = __brief(__value_at(__from + __lane));
        GRIDSTRIDE_ROLLED
        for (__from += __lanes; __from + 4 * __lanes <= __count; __from += 4 * __lanes) {
            swallow(fetch_ahead(__all.items + __from, 4 * __lanes, __all.ahead)...);
            GRIDSTRIDE_LANES
            for (long long __lane = 0; __lane < __lanes; ++__lane) {
                auto __lane_at = [&](int __k) { return __value_at(__from + __k * __lanes + __lane); };
                __some[__lane] = __two::join(__do, __some[__lane], __lane_at, 0);
                __others[__lane] = __two::join(__do, __others[__lane], __lane_at, 2);
            }
        }
    }
    GRIDSTRIDE_ROLLED
    for (; __from < __count; __from += __lanes) {
        swallow(fetch_ahead(__all.items + __from, __lanes, __all.ahead)...);
        GRIDSTRIDE_LANES
        for (long long __lane = 0; __lane < __lanes; ++__lane)
            __some[__lane] = __do(__some[__lane], __brief(__value_at(__from + __lane)));
    }
    if (__are_many) {
        GRIDSTRIDE_LANES
        for (long long __lane = 0; __lane < __lanes; ++__lane) __some[__lane] = __do(__some[__lane], __others[__lane]);
    }
}

// The lanes of a row. What is left of it goes to the first ones; the others are shown what follows.
enum class added { as_they_are, in_words, in_bytes };
template <added __how, class __type, int __lanes, class __map, class __reduce, class... __inputs>
struct lanes_of_row {
    typedef brief<__type, __reduce, typename __inputs::operand...> briefly;
    typedef typename briefly::type lane;
    static constexpr int count = __lanes;
    long long whole;
    alignas(64) typename word_of<sizeof(lane)>::type is_left[count];

    GRIDSTRIDE_INLINED lanes_of_row(long long __length) : whole(__length < 2 * __lanes ? __lanes : (__length - 1) / __lanes * __lanes) {
        for (int __k = 0; __k < count; ++__k) is_left[__k] = whole + __k < __length;
    }
    GRIDSTRIDE_INLINED static long long reach(long long) { return 1; }
    GRIDSTRIDE_INLINED static const auto& reduce(const __reduce& __do) { return briefly::reduce(__do); }
    GRIDSTRIDE_INLINED void fold(lane* __some, const __map& __do_map, const __reduce& __do, const __inputs&... __all) const {
        auto __value_at = values_of<__type, __map, typename __inputs::operand...>(__do_map, 0, 0, 0, 0, __all.items...);
        fold_lanes<__lanes>(__some, reduce(__do), whole, __value_at, __all...);
        GRIDSTRIDE_LANES
        for (long long __k = 0; __k < count; ++__k) {
            const lane __sum = reduce(__do)(__some[__k], lane(__value_at(whole + __k)));
            __some[__k] = is_left[__k] ? __sum : __some[__k];
        }
    }
    GRIDSTRIDE_INLINED __type result(lane __sum) const { return static_cast<__type>(__sum); }
};
template <class __type, int __lanes, class __map, class __reduce, class __input>
struct lanes_of_row<added::in_words, __type, __lanes, __map, __reduce, __input> {
    typedef words_of_two<typename __input::stored> words;
    typedef typename words::word lane;
    typedef typename brief<__type, __reduce, typename __input::operand>::type brief_type;
    static constexpr int count = __lanes / 2;
    long long whole;
    lane start;
    alignas(64) lane left[count];

    GRIDSTRIDE_INLINED lanes_of_row(long long __length) : whole((__length - 1) / __lanes * __lanes), start(lane(__length * words::least)) {
        for (int __k = 0; __k < count; ++__k) {
            const long long __at = whole + 2 * __k;
            left[__k] = lane((__at < __length ? words::lower : 0) | (__at + 1 < __length ? words::lower << words::bits : 0));
        }
    }
    GRIDSTRIDE_INLINED static long long reach(long long) { return 1; }
    GRIDSTRIDE_INLINED static adding reduce(const __reduce&) { return adding(); }
    GRIDSTRIDE_INLINED void fold(lane* __some, const __map&, const __reduce&, const __input& __its) const {
        GRIDSTRIDE_LANES
        for (long long __k = 0; __k < count; ++__k) __some[__k] = 0;
        GRIDSTRIDE_ROLLED
        for (long long __from = 0; __from < whole; __from += __lanes) {
            fetch_ahead(__its.items + __from, __lanes, __its.ahead);
            GRIDSTRIDE_LANES
            for (long long __k = 0; __k < count; ++__k) {
                const lane __two = words::at(__its.items + __from, __k);
                __some[__k] = lane(__some[__k] + ((__two & words::lower) + (__two >> words::bits)));
            }
        }
        fetch_ahead(__its.items + whole, __lanes, __its.ahead);
        GRIDSTRIDE_LANES
        for (long long __k = 0; __k < count; ++__k) {
            const lane __two = lane(words::at(__its.items + whole, __k) & left[__k]);
            __some[__k] = lane(__some[__k] + ((__two & words::lower) + (__two >> words::bits)));
        }
    }
    GRIDSTRIDE_INLINED __type result(lane __sum) const { return static_cast<__type>(static_cast<brief_type>(lane(__sum - start))); }
};

#if defined(__AVX2__)
template <class __type, int __lanes, class __map, class __reduce, class __input>
struct lanes_of_row<added::in_bytes, __type, __lanes, __map, __reduce, __input> : lanes_of_bytes<__type, __input> {
    using lanes_of_bytes<__type, __input>::lanes_of_bytes;
};
#endif

// In what order rows are visited: one of each quarter of them in turn, or one after another.
struct visits {
    int quarter;  // so many rows, or 0

    GRIDSTRIDE_INLINED int row(int __visit) const { return __visit < 4 * quarter ? __visit % 4 * quarter + __visit / 4 : __visit; }
};

// Fold rows of a few times as many elements as there are lanes, which lie in order, one for each of neighboring results.
template <class __type, class __map, class __reduce, class... __inputs>
struct short_rows {
    typedef brief<__type, __reduce, typename __inputs::operand...> briefly;
    typedef typename briefly::type brief_type;
    static constexpr int lanes = lanes_of<__type, brief_type, typename __inputs::operand...>::count;
    // Elements that are not told their numbers may be looked at although they belong to another row.
    static constexpr bool are_turned = !asks_for_numbers<__map>::value && lanes > 1 && !__is_class(brief_type) && word_of<sizeof(brief_type)>::exists;

    static constexpr bool adds = adds_words<__type, __reduce, typename __inputs::operand...>::value;
    static constexpr bool are_bytes = bytes_at_once > 0 && largest_stored<typename __inputs::operand...>() == 1;
    static constexpr added how = !adds ? added::as_they_are : are_bytes ? added::in_bytes : added::in_words;

    // One element may be in place of each row of an input.
    static constexpr bool may_repeat = are_turned && sizeof...(__inputs) > 1;

    static constexpr int longest = lanes_of_members<__type>() > 1 ? 0 : how == added::in_bytes ? buffer_bytes / 2
                                                                      : smaller((are_turned ? 32 : 16) * lanes, briefly::most);
    // After so many rows there are no others.
    template <int __axes>
    static GRIDSTRIDE_APART void fold(row_of_values<__type> __values, int __rows, long long __followed, const __map& __do_map, const __reduce& __do,
                                      const fold_space<__axes>& __space, long long __number, __inputs&... __all) {
        fold(places<are_turned>(), __values, __rows, __followed, __do_map, __do, __space, __number, __all...);
    }

private:
    // Lanes become one result, and what is left of the row joins it.
    template <int __axes>
    GRIDSTRIDE_INLINED static void fold(places<false>, row_of_values<__type> __values, int __rows, long long, const __map& __do_map, const __reduce& __do,
                                        const fold_space<__axes>& __space, long long __number, __inputs&... __all) {
        const long long __whole = __space.fold_row - __space.fold_row % lanes;
        const visits __visits{quarter_of_rows(__space, __rows, __all...)};
        for (int __visit = 0; __visit < __rows; ++__visit) {
            const int __k = __visits.row(__visit);
            swallow(__all.find_row(__k)...);
            auto __at = values_of<__type, __map, typename __inputs::operand...>(
                __do_map, __number + __k * __space.kept_numbers.strides[0], __space.fold_numbers.step, 0, __space.position.step, __all.items...);
            alignas(64) brief_type __some[lanes];
            fold_lanes<lanes>(__some, briefly::reduce(__do), __whole, __at, __all...);
            __type __value = halves<__type, lanes>::join(__do, __some);
            GRIDSTRIDE_ROLLED
            for (long long __from = __whole; __from < __space.fold_row; ++__from) __value = __do(__value, __at(__from));
            __values.set(__k, __value);
        }
    }
    // The lanes of several rows become as many results.
    template <int __axes>
    GRIDSTRIDE_INLINED static void fold(places<true>, row_of_values<__type> __values, int __rows, long long __followed, const __map& __do_map, const __reduce& __do,
                                        const fold_space<__axes>& __space, long long, __inputs&... __all) {
        if (!all_of((__all.is_held() || __all.source.kept_strides[0] >= __space.fold_row * __all.source.step)...)) __followed = 0;
        fold_lanes_of_rows(__values, __rows, visits{quarter_of_rows(__space, __rows, __all...)}, __followed, __do_map, __do, __space.fold_row,
                           __all.template rows<may_repeat>(__space.fold_row, __space.fold_row + 2 * lanes)...);
    }
    template <class... __in_order>
    GRIDSTRIDE_INLINED static void fold_lanes_of_rows(row_of_values<__type> __values, int __rows, const visits& __visits, long long __followed,
                                                      const __map& __do_map, const __reduce& __do, long long __length, __in_order... __all) {
        typedef lanes_of_row<how, __type, lanes, __map, __reduce, __in_order...> __row;
        typedef rows_of_lanes<typename __row::lane, __row::count> __turned;
        const long long __seen = __followed - __row::reach(__length);  // rows behind which are enough others
        const __row __folded(__length);
        alignas(64) typename __row::lane __rows_of_lanes[__row::count * __row::count] = {};
        if (__visits.quarter) swallow((__all.ahead = 0)...);
        for (int __first = 0; __first < __rows; __first += __row::count) {
            const int __some_rows = smaller(__row::count, __rows - __first);
            for (int __k = 0; __k < __some_rows; ++__k) {
                const int __number = __visits.row(__first + __k);
                swallow(__all.find_row(__number)...);
                if (__number >= __seen) swallow(__all.bring(__length)...);
                alignas(64) typename __row::lane __some[__row::count];
                __folded.fold(__some, __do_map, __do, __all...);
                for (int __from = 0; __from < __row::count; __from += __turned::length)
                    __turned::copy(__rows_of_lanes + __k * __row::count + __from, __some + __from);
            }
            __turned::join(__row::reduce(__do), __rows_of_lanes);
            if (__visits.quarter) {
                for (int __k = 0; __k < __some_rows; ++__k) __values.set(__visits.row(__first + __k), __folded.result(__rows_of_lanes[__k]));
            } else for (int __from = 0; __from < __row::count; __from += __turned::length) {
                const row_of_values<__type> __to = __values.from(__first + __from);
                GRIDSTRIDE_LANES
                for (long long __k = 0; __k < __turned::length; ++__k) __to.set(__k, __folded.result(__rows_of_lanes[__from + __k]));
            }
        }
    }
};

}

#endif
