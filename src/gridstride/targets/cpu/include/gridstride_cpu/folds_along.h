// Folds in which the innermost axis is folded: `shared_along`.
//
// A row is folded in chunks, which are joined in pairs. A chunk has blocks, each of which adds to every lane a few
// times; the sums of blocks are added up by lanes. So no number takes part in many more roundings than a pair would.
#ifndef GRIDSTRIDE_CPU_FOLDS_ALONG_H
#define GRIDSTRIDE_CPU_FOLDS_ALONG_H

#include <gridstride_cpu/folds.h>

namespace gridstride {

// An input on its way along a row.
template <class __operand, int __buffered>
struct streamed_input {
    typedef __operand operand;
    typedef typename __operand::stored stored;

    const __operand& source;
    const char* base;
    const char* row;
    const stored *items, *others;
    alignas(64) char buffer[2 * __buffered * sizeof(stored)];

    GRIDSTRIDE_INLINED streamed_input(const __operand& __source) : source(__source) {}
    GRIDSTRIDE_INLINED const stored* found(char* __buffer, long long __element, int __count) const {
        const char* const __at = row + __element * source.step;
        if (is_direct<stored>(__at, source.step)) return reinterpret_cast<const stored*>(__at);
        gather(reinterpret_cast<stored*>(__buffer), __at, source.step, __count);
        return reinterpret_cast<const stored*>(__buffer);
    }
    GRIDSTRIDE_INLINED int begin(long long __element, int __count) {
        items = found(buffer, __element, __count);
        return 0;
    }
    // Two stretches of so many elements.
    GRIDSTRIDE_INLINED int begin(long long __element, long long __other, int __count) {
        items = found(buffer, __element, __count);
        others = found(buffer + __buffered * sizeof(stored), __other, __count);
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
    static constexpr int round = 4 * count;  // values of each stretch that are folded in one turn
    // Elements of a stretch in a block; both have room in a buffer.
    static constexpr int block = larger(buffer_bytes / 2 / (round * largest) * round, 1);
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

// Sums of integers of four bytes in eight: words of two are parted by a shift and a mask, since vectors of what they
// would be converted to take longer to make.
template <class __type, class __reduce, class... __operands>
struct adds_words { static constexpr bool value = false; };
template <class __type, class __reduce, class __operand>
struct adds_words<__type, integer_sum<__reduce>, __operand> {
    static constexpr bool value = sizeof(__type) == 8 && sizeof(typename __operand::stored) == 4;
};

// Add `__count` elements of one or two stretches, in whole lanes.
template <int __lanes, class __type, class __stored>
GRIDSTRIDE_INLINED void add_words(__type* __sums, long long __count, const __stored* __items, const __stored* __others) {
    typedef unsigned long long __word;
    constexpr bool __has_sign = __stored(-1) < __stored(0);
    constexpr __word __lower = 0xffffffffu, __flipped = __has_sign ? 0x8000000080000000u : 0;
    alignas(64) __word __low[__lanes / 2] = {}, __high[__lanes / 2] = {};
    auto __word_at = [](const __stored* __at, long long __word_number) {
        __word __some;
        __builtin_memcpy(&__some, __at + 2 * __word_number, sizeof(__some));
        return __some ^ __flipped;
    };
    GRIDSTRIDE_ROLLED
    for (long long __k = 0; __k < __count / 2; __k += __lanes / 2) {
        GRIDSTRIDE_LANES
        for (long long __lane = 0; __lane < __lanes / 2; ++__lane) {
            const __word __first = __word_at(__items, __k + __lane);
            const __word __second = __others ? __word_at(__others, __k + __lane) : 0;
            __low[__lane] += (__first & __lower) + (__second & __lower);
            __high[__lane] += (__first >> 32) + (__second >> 32);
        }
    }
    // Numbers with signs were counted from the least one.
    const __word __start = __has_sign ? __word(__others ? 2 * __count : __count) / __lanes << 31 : 0;
    GRIDSTRIDE_LANES
    for (long long __lane = 0; __lane < __lanes / 2; ++__lane) {
        __sums[__lane] = static_cast<__type>(__low[__lane] - __start);
        __sums[__lane + __lanes / 2] = static_cast<__type>(__high[__lane] - __start);
    }
}

// How a block of two stretches, and a row that is short, get into lanes.
template <bool __in_words>
struct lanes_by {
    template <class __brief, int __lanes, bool __in_trees, class __reduce, class __value, class... __stored>
    GRIDSTRIDE_INLINED static void fold(__brief* __some, const __reduce& __do, long long __count, const __value& __value_at,
                                        const __value& __other_at, const __stored* const...) {
        typedef several<4, __in_trees> __four;
        alignas(64) __brief __others[__lanes];
        auto __turns = [](const __value& __at, long long __from) {
            return [&__at, __from](int __turn) { return __at(__from + __turn * __lanes); };
        };
        GRIDSTRIDE_LANES
        for (long long __lane = 0; __lane < __lanes; ++__lane)
            __some[__lane] = __four::template fold<__brief>(__do, __turns(__value_at, __lane), 0);
        GRIDSTRIDE_LANES
        for (long long __lane = 0; __lane < __lanes; ++__lane)
            __others[__lane] = __four::template fold<__brief>(__do, __turns(__other_at, __lane), 0);
        for (long long __k = 4 * __lanes; __k < __count; __k += 4 * __lanes) {
            GRIDSTRIDE_LANES
            for (long long __lane = 0; __lane < __lanes; ++__lane)
                __some[__lane] = __four::join(__do, __some[__lane], __turns(__value_at, __k + __lane), 0);
            GRIDSTRIDE_LANES
            for (long long __lane = 0; __lane < __lanes; ++__lane)
                __others[__lane] = __four::join(__do, __others[__lane], __turns(__other_at, __k + __lane), 0);
        }
        GRIDSTRIDE_LANES
        for (long long __lane = 0; __lane < __lanes; ++__lane) __some[__lane] = __do(__some[__lane], __others[__lane]);
    }
    template <class __brief, int __lanes, class __reduce, class __value, class... __stored>
    GRIDSTRIDE_INLINED static void fold_row(__brief* __some, const __reduce& __do, long long __count,
                                            const __value& __value_at, const __stored* const...) {
        GRIDSTRIDE_LANES
        for (long long __lane = 0; __lane < __lanes; ++__lane) __some[__lane] = __brief(__value_at(__lane));
        GRIDSTRIDE_ROLLED
        for (long long __from = __lanes; __from < __count; __from += __lanes) {
            GRIDSTRIDE_LANES
            for (long long __lane = 0; __lane < __lanes; ++__lane)
                __some[__lane] = __do(__some[__lane], __brief(__value_at(__from + __lane)));
        }
    }
};
template <>
struct lanes_by<true> {
    template <class __brief, int __lanes, bool __in_trees, class __reduce, class __value, class __stored>
    GRIDSTRIDE_INLINED static void fold(__brief* __some, const __reduce&, long long __count, const __value&, const __value&,
                                        const __stored* __items, const __stored* __others) {
        add_words<__lanes>(__some, __count, __items, __others);
    }
    template <class __brief, int __lanes, class __reduce, class __value, class __stored>
    GRIDSTRIDE_INLINED static void fold_row(__brief* __some, const __reduce&, long long __count, const __value&,
                                            const __stored* __items) {
        add_words<__lanes>(__some, __count, __items, (const __stored*)nullptr);
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

// Fold elements of a row; `__number` and `__position` are those of its first one.
template <int __block, class __type, class __map, class __reduce, int __axes, class... __inputs>
GRIDSTRIDE_INLINED __type fold_chunk(const __map& __do_map, const __reduce& __do, const fold_space<__axes>& __space,
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
    const long long __half = __lanes > 1 ? (__to - __from) / (8 * __lanes) * (4 * __lanes) : 0;
    for (long long __done = 0; __done < __half; __done += __block) {
        const int __count = int(__half - __done < __block ? __half - __done : __block);
        const long long __first = __from + __done, __other = __first + __half;
        swallow(__all.begin(__first, __other, __count)...);
        // As many elements of both stretches, in whole turns: a core fetches both at once.
        alignas(64) typename __briefly::type __some[__lanes];
        lanes_by<adds_words<__type, __reduce, typename __inputs::operand...>::value>::template fold<typename __briefly::type, __lanes, __in_trees>(
            __some, __briefly::reduce(__do), __count, __values(__first, __all.items...), __values(__other, __all.others...),
            __all.items..., __all.others...);
        __sums.add_lanes(__do, __some);
    }
    for (long long __first = __from + 2 * __half; __first < __to; __first += 2 * __block) {
        const int __count = int(__to - __first < 2 * __block ? __to - __first : 2 * __block);
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
        const __type __value = fold_chunk<__block, __type>(__do_map, __do, __space, __numbers, __position, __from, __to, __all...);
        if (__end - __begin == 1) return __value;
        __joined.push(__do, __value);
        if (++__q == __end) return __joined.whole(__do);
    }
}

// Fold rows of a few times as many elements as there are lanes, which lie in order, one for each of neighboring results.
constexpr int short_row = 32;  // in lanes; sums of small integers have room for as many
template <int __lanes, class __type, class __map, class __reduce, int __axes, class... __inputs>
GRIDSTRIDE_INLINED void fold_short_rows(__type* __values, int __rows, const __map& __do_map, const __reduce& __do,
                                        const fold_space<__axes>& __space, long long __number, __inputs&... __all) {
    typedef brief<__type, __reduce, typename __inputs::operand...> __briefly;
    typedef typename __briefly::type __brief;
    const auto& __add = __briefly::reduce(__do);
    const long long __length = __space.fold_row, __whole = __length - __length % __lanes;
    const int __half = (__rows + 1) / 2;
    for (int __k = 0; __k < __rows; ++__k) {
        // Two rows side by side: a core fetches both at once.
        const int __row = __k / 2 + (__k % 2 ? __half : 0);
        auto __at = values_of<__type, __map, typename __inputs::operand...>(
            __do_map, __number + __row * __space.kept_numbers.strides[0], __space.fold_numbers.step, 0, __space.position.step,
            reinterpret_cast<const typename __inputs::stored*>(__all.base + __row * __all.source.kept_strides[0])...);
        alignas(64) __brief __some[__lanes];
        lanes_by<adds_words<__type, __reduce, typename __inputs::operand...>::value>::template fold_row<__brief, __lanes>(
            __some, __add, __whole, __at,
            reinterpret_cast<const typename __inputs::stored*>(__all.base + __row * __all.source.kept_strides[0])...);
        __type __value = halves<__type, __lanes>::join(__do, __some);
        GRIDSTRIDE_ROLLED
        for (long long __from = __whole; __from < __length; ++__from) __value = __do(__value, __at(__from));
        __values[__row] = __value;
    }
}

template <int __block, class __folding, class __map, class __reduce, class __finish, int __axes, class... __inputs>
GRIDSTRIDE_INLINED void run_along(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                  const __folding& __start, const fold_space<__axes>& __space, __inputs&&... __all) {
    typedef typename __folding::type __type;
    typedef brief<__type, __reduce, typename __inputs::operand...> __briefly;
    constexpr int __lanes = lanes_of<__type, typename __briefly::type, typename __inputs::operand...>::count;
    constexpr int __most = sizeof(__type) > 64 ? 1 : neighbors_along;
    const share_of_pieces __share(__space.outputs * __space.parts);
    const long long __whole = __space.fold.count;
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
        if (__count > 1 && __space.fold.count == 1 && __space.fold_row >= __lanes && __space.fold_row < short_row * __lanes &&
            all_of(is_direct<typename __inputs::stored>(__all.base, __all.source.step)...) &&
            all_of((__all.source.kept_strides[0] % long(alignof(typename __inputs::stored)) == 0)...))
            fold_short_rows<__lanes, __type>(__values, int(__count), __do_map, __do, __space, __number, __all...);
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
