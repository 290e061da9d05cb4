// Folds in which the innermost axis is folded: `shared_along`.
//
// A row is folded in chunks, which are joined in pairs. A chunk has blocks, each of which adds to every lane a few
// times; the sums of blocks are added up by lanes. So no number takes part in many more roundings than a pair would.
#ifndef GRIDSTRIDE_CPU_FOLDS_ALONG_H
#define GRIDSTRIDE_CPU_FOLDS_ALONG_H

#include <gridstride_cpu/folds_joined.h>
#include <gridstride_cpu/members.h>

namespace gridstride {

// Fetch what is `bytes_ahead`: a processor does not look so far where an element takes several instructions.
template <class __stored>
GRIDSTRIDE_INLINED int fetch_ahead(const __stored* __at, long long __count, int __ahead) {
    for (long long __k = 0; __k < __count * int(sizeof(__stored)); __k += 64)
        __builtin_prefetch(reinterpret_cast<const char*>(__at) + __ahead + __k);
    return 0;
}

// An input on its way along a row.
template <class __operand, int __buffered>
struct streamed_input {
    typedef __operand operand;
    typedef typename __operand::stored stored;

    const __operand& source;
    const char* base;
    const char* row;
    const stored* items;
    int ahead;
    alignas(64) char buffer[__buffered * sizeof(stored)];

    GRIDSTRIDE_INLINED streamed_input(const __operand& __source) : source(__source) {}
    // Fetch what follows on a row, unless that is mostly between rows.
    GRIDSTRIDE_INLINED int look_ahead(long long __row) {
        const long long __bytes = __row * source.step;
        ahead = __bytes >= 8 * bytes_ahead || __bytes == source.kept_strides[0] ? int(bytes_ahead) : 0;
        return 0;
    }
    GRIDSTRIDE_INLINED bool is_direct() const { return gridstride::is_direct<stored>(row, source.step); }
    GRIDSTRIDE_INLINED int begin(long long __element, int __count) {
        const char* const __at = row + __element * source.step;
        items = reinterpret_cast<const stored*>(__at);
        if (is_direct()) return 0;
        gather(reinterpret_cast<stored*>(buffer), __at, source.step, __count);
        items = reinterpret_cast<const stored*>(buffer);
        return 0;
    }
    // Go to a row that lies in order, and to a copy of it, which anything may follow.
    GRIDSTRIDE_INLINED int find_row(int __row) {
        items = reinterpret_cast<const stored*>(base + __row * source.kept_strides[0]);
        return 0;
    }
    GRIDSTRIDE_APART int bring(long long __count) {
        __builtin_memcpy(buffer, items, __count * sizeof(stored));
        items = reinterpret_cast<const stored*>(buffer);
        return 0;
    }
};

// Values are joined as the digits of a counter carry: in pairs of equally many.
template <class __type>
struct pairs {
    unsigned long count = 0;
    __type levels[48];

    template <class __reduce>
    GRIDSTRIDE_INLINED void push(const __reduce& __do, __type __value) {
        int __level = 0;
        for (unsigned long __rest = count++; __rest & 1; __rest >>= 1, ++__level)
            __value = __do(levels[__level], __value);
        levels[__level] = __value;
    }
    template <class __reduce>
    GRIDSTRIDE_INLINED __type whole(const __reduce& __do) const {
        int __level = __builtin_ctzl(count);
        __type __value = levels[__level];
        for (unsigned long __rest = count >> __level >> 1; ++__level, __rest; __rest >>= 1)
            if (__rest & 1) __value = __do(levels[__level], __value);
        return __value;
    }
};

constexpr int fold_chunk_bytes = 65536;  // of the largest input, as in writers.py
constexpr int neighbors_along = 256;      // results that are handed over at once

// How many values are folded side by side: as many as make whole vectors of everything; of large ones one.
template <class __type, class __brief, class... __operands>
struct lanes_of {
    static constexpr int largest = largest_stored<__operands...>();
    static constexpr int fitting = power_of_two_up_to(vector_bytes / smaller(int(sizeof(__brief)), smallest_stored<__operands...>()));
    static constexpr int count = sizeof(__type) > 16 || 8 * fitting * largest > buffer_bytes ? 1 : fitting;
    static constexpr int round = 8 * count;  // values that are folded in one turn
    // Elements of a block, which have room in a buffer.
    static constexpr int block = larger(buffer_bytes / (round * largest) * round, 1);
};

// The first lane of all, after halves have been folded with each other.
template <class __type, int __lanes>
struct halves {
    template <class __reduce, class __brief>
    GRIDSTRIDE_INLINED static __type join(const __reduce& __do, const __brief* __values) {
        __type __half[__lanes / 2];
        GRIDSTRIDE_LANES
        for (long long __lane = 0; __lane < __lanes / 2; ++__lane)
            __half[__lane] = __do(static_cast<__type>(__values[__lane]), static_cast<__type>(__values[__lane + __lanes / 2]));
        return halves<__type, __lanes / 2>::join(__do, __half);
    }
};
template <class __type>
struct halves<__type, 1> {
    template <class __reduce, class __brief>
    GRIDSTRIDE_INLINED static __type join(const __reduce&, const __brief* __values) { return static_cast<__type>(__values[0]); }
};

// What is folded of a chunk: most of it in lanes, what is too short for them apart.
template <class __type, int __lanes>
struct folded_chunk {
    // Vectors across lines of the cache would wait for each other.
    alignas(__lanes > 1 ? 64 : alignof(__type)) __type lanes[__lanes];
    __type apart;
    bool has_lanes = false, has_apart = false;

    template <class __reduce>
    GRIDSTRIDE_INLINED void add(const __reduce& __do, const __type& __value) {
        apart = has_apart ? __do(apart, __value) : __value;
        has_apart = true;
    }
    template <class __reduce, class __brief>
    GRIDSTRIDE_INLINED void add_lanes(const __reduce& __do, const __brief* __values) {
        if (has_lanes) {
            GRIDSTRIDE_LANES
            for (long long __lane = 0; __lane < __lanes; ++__lane)
                lanes[__lane] = __do(lanes[__lane], static_cast<__type>(__values[__lane]));
        } else {
            GRIDSTRIDE_LANES
            for (long long __lane = 0; __lane < __lanes; ++__lane) lanes[__lane] = static_cast<__type>(__values[__lane]);
        }
        has_lanes = true;
    }
    template <class __reduce>
    GRIDSTRIDE_INLINED __type whole(const __reduce& __do) {
        if (!has_lanes) return apart;
        const __type __most = halves<__type, __lanes>::join(__do, lanes);
        return has_apart ? __do(__most, apart) : __most;
    }
};

// Sums of integers in twice as many bytes: words of two elements are parted by a shift and a mask, since vectors of what
// they would be converted to take longer to make. Numbers with signs are counted from the least one.
template <class __type, class __reduce, class... __operands>
struct adds_words { static constexpr bool value = false; };
template <class __type, class __reduce, class __operand>
struct adds_words<__type, integer_sum<__reduce>, __operand> {
    static constexpr bool value = sizeof(__type) > sizeof(typename __operand::stored);
};
template <int __size> struct word_of { static constexpr bool exists = false; };
template <> struct word_of<1> { static constexpr bool exists = true; typedef unsigned char type; };
template <> struct word_of<2> { static constexpr bool exists = true; typedef unsigned short type; };
template <> struct word_of<4> { static constexpr bool exists = true; typedef unsigned type; };
template <> struct word_of<8> { static constexpr bool exists = true; typedef unsigned long long type; };

template <class __stored>
struct words_of_two {
    typedef typename word_of<2 * sizeof(__stored)>::type word;
    static constexpr int bits = 8 * sizeof(__stored);
    static constexpr word lower = word((word(1) << bits) - 1);
    static constexpr word least = __stored(-1) < __stored(0) ? word(word(1) << (bits - 1)) : word(0), flipped = word(least | least << bits);

    GRIDSTRIDE_INLINED static word at(const __stored* __items, long long __number) {
        word __some;
        __builtin_memcpy(&__some, __items + 2 * __number, sizeof(__some));
        return word(__some ^ flipped);
    }
};

// How a block gets into lanes.
template <bool __in_words>
struct lanes_by {
    template <class __brief, int __lanes, bool __in_trees, class __reduce, class __value, class... __inputs>
    GRIDSTRIDE_INLINED static void fold(__brief* __some, const __reduce& __do, long long __count, const __value& __value_at,
                                        const __inputs&... __all) {
        typedef several<4, __in_trees> __four;
        alignas(64) __brief __others[__lanes];
        auto __turns = [&__value_at](long long __from) {
            return [&__value_at, __from](int __turn) { return __value_at(__from + __turn * __lanes); };
        };
        GRIDSTRIDE_LANES
        for (long long __lane = 0; __lane < __lanes; ++__lane)
            __some[__lane] = __four::template fold<__brief>(__do, __turns(__lane), 0);
        GRIDSTRIDE_LANES
        for (long long __lane = 0; __lane < __lanes; ++__lane)
            __others[__lane] = __four::template fold<__brief>(__do, __turns(__lane + 4 * __lanes), 0);
        for (long long __k = 8 * __lanes; __k < __count; __k += 8 * __lanes) {
            swallow(fetch_ahead(__all.items + __k, 8 * __lanes, __all.ahead)...);
            GRIDSTRIDE_LANES
            for (long long __lane = 0; __lane < __lanes; ++__lane)
                __some[__lane] = __four::join(__do, __some[__lane], __turns(__k + __lane), 0);
            GRIDSTRIDE_LANES
            for (long long __lane = 0; __lane < __lanes; ++__lane)
                __others[__lane] = __four::join(__do, __others[__lane], __turns(__k + 4 * __lanes + __lane), 0);
        }
        GRIDSTRIDE_LANES
        for (long long __lane = 0; __lane < __lanes; ++__lane) __some[__lane] = __do(__some[__lane], __others[__lane]);
    }
};
template <>
struct lanes_by<true> {
    template <class __brief, int __lanes, bool __in_trees, class __reduce, class __value, class __input>
    GRIDSTRIDE_INLINED static void fold(__brief* __some, const __reduce&, long long __count, const __value&, const __input& __its) {
        typedef words_of_two<typename __input::stored> __words;
        typedef typename __words::word __word;
        alignas(64) __word __low[__lanes / 2] = {}, __high[__lanes / 2] = {};
        GRIDSTRIDE_ROLLED
        for (long long __k = 0; __k < __count; __k += 2 * __lanes) {
            // A line at once.
            fetch_ahead(__its.items + __k, 2 * __lanes, __its.ahead);
            GRIDSTRIDE_LANES
            for (long long __lane = 0; __lane < __lanes / 2; ++__lane) {
                const __word __first = __words::at(__its.items + __k, __lane), __second = __words::at(__its.items + __k + __lanes, __lane);
                __low[__lane] = __word(__low[__lane] + ((__first & __words::lower) + (__second & __words::lower)));
                __high[__lane] = __word(__high[__lane] + ((__first >> __words::bits) + (__second >> __words::bits)));
            }
        }
        const __word __start = __word(__count / __lanes * __words::least);
        GRIDSTRIDE_LANES
        for (long long __lane = 0; __lane < __lanes / 2; ++__lane) {
            __some[__lane] = static_cast<__brief>(__low[__lane] - __start);
            __some[__lane + __lanes / 2] = static_cast<__brief>(__high[__lane] - __start);
        }
    }
};

// Fold what is too short for turns.
template <class __brief, int __lanes, class __type, class __brief_reduce, class __reduce, class __value>
GRIDSTRIDE_INLINED void fold_rest(folded_chunk<__type, __lanes>& __sums, const __brief_reduce& __do_briefly,
                                  const __reduce& __do, long long __count, const __value& __value_at) {
    long long __k = 0;
    if (__lanes > 1 && __count >= __lanes) {
        alignas(64) __brief __some[__lanes];
        GRIDSTRIDE_LANES
        for (long long __lane = 0; __lane < __lanes; ++__lane) __some[__lane] = __brief(__value_at(__lane));
        for (__k = __lanes; __k + __lanes <= __count; __k += __lanes) {
            GRIDSTRIDE_LANES
            for (long long __lane = 0; __lane < __lanes; ++__lane)
                __some[__lane] = __do_briefly(__some[__lane], __brief(__value_at(__k + __lane)));
        }
        __sums.add_lanes(__do, __some);
    }
    for (; __k < __count; ++__k) __sums.add(__do, __value_at(__k));
}

template <class __type, class __map, class... __operands>
GRIDSTRIDE_INLINED auto values_of(const __map& __do_map, long long __number, long long __step, long long __position,
                                  long long __position_step, const typename __operands::stored* const... __items) {
    return [&__do_map, __number, __step, __position, __position_step, __items...](long long __k) -> __type {
        return __do_map(__number + __k * __step, __position + __k * __position_step,
                        element<__operands>(const_cast<typename __operands::stored&>(__items[__k])).get()...);
    };
}

// ---- structures ----

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
GRIDSTRIDE_INLINED __type fold_chunk(places<true>, const __map& __do_map, const __reduce& __do, const fold_space<__axes>& __space,
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

template <int __block, class __type, class __map, class __reduce, int __axes, class... __inputs>
GRIDSTRIDE_INLINED __type fold_chunk(places<false>, const __map& __do_map, const __reduce& __do, const fold_space<__axes>& __space,
                                     long long __number, long long __position, long long __from, long long __to,
                                     __inputs&... __all) {
    typedef brief<__type, __reduce, typename __inputs::operand...> __briefly;
    constexpr int __lanes = lanes_of<__type, typename __briefly::type, typename __inputs::operand...>::count;
    constexpr bool __in_trees = joins_in_trees<__type, typename __inputs::operand...>();
    const long long __step = __space.fold_numbers.step, __position_step = __space.position.step;
    auto __values = [&](long long __element, const typename __inputs::stored* const... __items) {
        return values_of<__type, __map, typename __inputs::operand...>(
            __do_map, __number + __element * __step, __step, __position + __element * __position_step, __position_step, __items...);
    };
    folded_chunk<__type, __lanes> __sums;
    constexpr int __round = 8 * __lanes;
    const long long __in_rounds = __lanes > 1 ? __from + (__to - __from) / __round * __round : __from;
    for (long long __first = __from; __first < __in_rounds; __first += __block) {
        const int __count = int(__in_rounds - __first < __block ? __in_rounds - __first : __block);
        swallow(__all.begin(__first, __count)...);
        alignas(64) typename __briefly::type __some[__lanes];
        lanes_by<adds_words<__type, __reduce, typename __inputs::operand...>::value>::template fold<typename __briefly::type, __lanes, __in_trees>(
            __some, __briefly::reduce(__do), __count, __values(__first, __all.items...), __all...);
        __sums.add_lanes(__do, __some);
    }
    for (long long __first = __in_rounds; __first < __to; __first += __block) {
        const int __count = int(__to - __first < __block ? __to - __first : __block);
        swallow(__all.begin(__first, __count)...);
        fold_rest<typename __briefly::type>(__sums, __briefly::reduce(__do), __do, __count, __values(__first, __all.items...));
    }
    return __sums.whole(__do);
}

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
            places<(lanes_of_members<__type>() > 1 && __block % lanes_of_members<__type>() == 0)>(), __do_map, __do, __space, __numbers, __position, __from, __to, __all...);
        if (__end - __begin == 1) return __value;
        __joined.push(__do, __value);
        if (++__q == __end) return __joined.whole(__do);
    }
}

// ---- short rows ----

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

// Elements of a row, in whole lanes.
template <int __lanes, class __brief, class __reduce, class __value, class... __inputs>
GRIDSTRIDE_INLINED void fold_lanes(__brief* __some, const __reduce& __do, long long __count, const __value& __value_at, const __inputs&... __all) {
    swallow(fetch_ahead(__all.items, __lanes, __all.ahead)...);
    GRIDSTRIDE_LANES
    for (long long __lane = 0; __lane < __lanes; ++__lane) __some[__lane] = __brief(__value_at(__lane));
    GRIDSTRIDE_ROLLED
    for (long long __from = __lanes; __from < __count; __from += __lanes) {
        swallow(fetch_ahead(__all.items + __from, __lanes, __all.ahead)...);
        GRIDSTRIDE_LANES
        for (long long __lane = 0; __lane < __lanes; ++__lane)
            __some[__lane] = __do(__some[__lane], __brief(__value_at(__from + __lane)));
    }
}

// The lanes of a row. What is left of it goes to the first ones; the others are shown what follows.
template <bool __in_words, class __type, int __lanes, class __map, class __reduce, class... __inputs>
struct lanes_of_row {
    typedef brief<__type, __reduce, typename __inputs::operand...> briefly;
    typedef typename briefly::type lane;
    static constexpr int count = __lanes;
    long long whole;
    alignas(64) typename word_of<sizeof(lane)>::type is_left[count];

    GRIDSTRIDE_INLINED lanes_of_row(long long __length) : whole(__length < 2 * __lanes ? __lanes : (__length - 1) / __lanes * __lanes) {
        for (int __k = 0; __k < count; ++__k) is_left[__k] = whole + __k < __length;
    }
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
struct lanes_of_row<true, __type, __lanes, __map, __reduce, __input> {
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

// Fold rows of a few times as many elements as there are lanes, which lie in order, one for each of neighboring results.
template <class __type, class __map, class __reduce, class... __inputs>
struct short_rows {
    typedef brief<__type, __reduce, typename __inputs::operand...> briefly;
    typedef typename briefly::type brief_type;
    static constexpr int lanes = lanes_of<__type, brief_type, typename __inputs::operand...>::count;
    // Elements that are not told their numbers may be looked at although they belong to another row.
    static constexpr bool are_turned = !asks_for_numbers<__map>::value && lanes > 1 && !__is_class(brief_type) && word_of<sizeof(brief_type)>::exists;

    static constexpr int longest = lanes_of_members<__type>() > 1 ? 0 : smaller((are_turned ? 32 : 16) * lanes, briefly::most);
    // After so many rows there are no others.
    template <int __axes>
    static GRIDSTRIDE_APART void fold(__type* __values, int __rows, long long __followed, const __map& __do_map, const __reduce& __do,
                                      const fold_space<__axes>& __space, long long __number, __inputs&... __all) {
        fold(places<are_turned>(), __values, __rows, __followed, __do_map, __do, __space, __number, __all...);
    }

private:
    // Lanes become one result, and what is left of the row joins it.
    template <int __axes>
    GRIDSTRIDE_INLINED static void fold(places<false>, __type* __values, int __rows, long long, const __map& __do_map, const __reduce& __do,
                                        const fold_space<__axes>& __space, long long __number, __inputs&... __all) {
        const long long __whole = __space.fold_row - __space.fold_row % lanes;
        for (int __k = 0; __k < __rows; ++__k) {
            swallow(__all.find_row(__k)...);
            auto __at = values_of<__type, __map, typename __inputs::operand...>(
                __do_map, __number + __k * __space.kept_numbers.strides[0], __space.fold_numbers.step, 0, __space.position.step, __all.items...);
            alignas(64) brief_type __some[lanes];
            fold_lanes<lanes>(__some, briefly::reduce(__do), __whole, __at, __all...);
            __type __value = halves<__type, lanes>::join(__do, __some);
            GRIDSTRIDE_ROLLED
            for (long long __from = __whole; __from < __space.fold_row; ++__from) __value = __do(__value, __at(__from));
            __values[__k] = __value;
        }
    }
    // The lanes of several rows become as many results.
    template <int __axes>
    GRIDSTRIDE_INLINED static void fold(places<true>, __type* __values, int __rows, long long __followed, const __map& __do_map, const __reduce& __do,
                                        const fold_space<__axes>& __space, long long, __inputs&... __all) {
        typedef lanes_of_row<adds_words<__type, __reduce, typename __inputs::operand...>::value, __type, lanes, __map, __reduce, __inputs...> __row;
        typedef rows_of_lanes<typename __row::lane, __row::count> __turned;
        if (!all_of((__all.source.kept_strides[0] >= __space.fold_row * __all.source.step)...)) __followed = 0;
        const __row __folded(__space.fold_row);
        alignas(64) typename __row::lane __rows_of_lanes[__row::count * __row::count] = {};
        for (int __first = 0; __first < __rows; __first += __row::count) {
            for (int __k = __first; __k < __rows && __k < __first + __row::count; ++__k) {
                swallow(__all.find_row(__k)...);
                if (__k + 1 >= __followed) swallow(__all.bring(__space.fold_row)...);
                alignas(64) typename __row::lane __some[__row::count];
                __folded.fold(__some, __do_map, __do, __all...);
                for (int __from = 0; __from < __row::count; __from += __turned::length)
                    __turned::copy(__rows_of_lanes + (__k - __first) * __row::count + __from, __some + __from);
            }
            __turned::join(__row::reduce(__do), __rows_of_lanes);
            for (int __from = 0; __from < __row::count; __from += __turned::length) {
                __type* const __to = __values + __first + __from;
                GRIDSTRIDE_LANES
                for (long long __k = 0; __k < __turned::length; ++__k) __to[__k] = __folded.result(__rows_of_lanes[__from + __k]);
            }
        }
    }
};

template <int __block, class __folding, class __map, class __reduce, class __finish, int __axes, class... __inputs>
GRIDSTRIDE_INLINED void run_along(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                  const __folding& __start, const fold_space<__axes>& __space, __inputs&&... __all) {
    typedef typename __folding::type __type;
    typedef short_rows<__type, __map, __reduce, __inputs...> __short;
    constexpr int __most = sizeof(__type) > 64 ? 1 : neighbors_along;
    const share_of_pieces __share(__space.outputs * __space.parts);
    const long long __whole = __space.fold.count;
    swallow(__all.look_ahead(__space.fold_row)...);
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
        __type __values[__most];
        if (__space.parts == 1 && __space.fold.count == 1 && __space.fold_row >= __short::lanes && __space.fold_row <= __short::longest &&
            all_of(is_direct<typename __inputs::stored>(__all.base, __all.source.step)...) &&
            all_of((__all.source.kept_strides[0] % long(alignof(typename __inputs::stored)) == 0)...))
            __short::fold(__values, int(__count), __space.kept_row - __result % __space.kept_row, __do_map, __do, __space, __number, __all...);
        else for (int __k = 0; __k < __count; ++__k) {
            __values[__k] = __begin < __end ? fold_chunks<__block, __type>(__do_map, __do, __space, __number, __begin, __end, __all...)
                                            : __start.value;
            __number += __space.kept_numbers.strides[0];
            swallow((__all.base += __all.source.kept_strides[0])...);
        }
        __do_finish(__result, int(__part), neighbors<__folding, false>{__values, int(__count)});
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
