// Rows in lanes: how elements come, and the sums into which they go.
#ifndef GRIDSTRIDE_CPU_ROW_LANES_H
#define GRIDSTRIDE_CPU_ROW_LANES_H

#include <gridstride_cpu/folds_joined.h>
#include <gridstride_cpu/pieces.h>

namespace gridstride {

// Fetch what is `bytes_ahead`: a processor does not look so far where an element takes several instructions.
template <class __stored>
GRIDSTRIDE_INLINED int fetch_ahead(const __stored* __at, long long __count, long long __ahead) {
    for (long long __k = 0; __k < __count * int(sizeof(__stored)); __k += 64)
        __builtin_prefetch(reinterpret_cast<const char*>(__at) + __ahead + __k);
    return 0;
}

// Rows of one input, and the one that is folded. One element in place of each row is repeated as often as lanes are shown.
template <class __operand, bool __may_repeat>
struct rows_in_order {
    typedef __operand operand;
    typedef typename __operand::stored stored;
    const char* base;
    long long stride, ahead;
    char* buffer;
    const stored* items;
    int repeated;  // so often, or 0

    GRIDSTRIDE_INLINED int find_row(int __row) {
        items = reinterpret_cast<const stored*>(base + __row * stride);
        if (!__may_repeat || !repeated) return 0;
        repeating<sizeof(stored)>::run(buffer, reinterpret_cast<const char*>(items), repeated);
        items = reinterpret_cast<const stored*>(buffer);
        return 0;
    }
    // Go to a copy, which anything may follow.
    GRIDSTRIDE_INLINED int bring(long long __count) {
        if (__may_repeat && repeated) return 0;
        if (stride) __builtin_memcpy(buffer, items, __count * sizeof(stored));
        items = reinterpret_cast<const stored*>(buffer);
        return 0;
    }
};

// An input on its way along a row.
template <class __operand, int __buffered>
struct streamed_input {
    typedef __operand operand;
    typedef typename __operand::stored stored;

    const __operand& source;
    const char* base;
    const char* row;
    const stored* items;
    long long ahead;
    alignas(64) char buffer[__buffered * sizeof(stored)];

    GRIDSTRIDE_INLINED streamed_input(const __operand& __source) : source(__source) {}
    // Fetch what follows on a row, or of short ones what is as far ahead in the rows that come after it.
    GRIDSTRIDE_INLINED int look_ahead(long long __row, long long __stride) {
        const long long __bytes = __row * source.step;
        const bool __is_long = __bytes >= 8 * bytes_ahead || __bytes == __stride;
        ahead = __is_long ? bytes_ahead : __bytes <= 0 ? 0 : (bytes_ahead + __bytes - 1) / __bytes * __stride;
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
    // Return where rows lie, of which lanes are shown so many elements; one that is the same for all results is copied once.
    GRIDSTRIDE_INLINED bool is_held() const { return source.kept_strides[0] == 0; }
    template <bool __may_repeat>
    GRIDSTRIDE_INLINED rows_in_order<__operand, __may_repeat> rows(long long __count, long long __shown) {
        if (__may_repeat && source.step == 0) return {base, source.kept_strides[0], 0, buffer, nullptr, int(__shown)};
        if (!is_held()) return {base, source.kept_strides[0], ahead, buffer, nullptr, 0};
        find_row(0);
        bring(__count);
        return {buffer, 0, 0, buffer, nullptr, 0};
    }
    GRIDSTRIDE_APART int bring(long long __count) {
        __builtin_memcpy(buffer, items, __count * sizeof(stored));
        items = reinterpret_cast<const stored*>(buffer);
        return 0;
    }
};

// Whether a processor fetches by itself what follows where elements of four bytes and more are folded: it is then slower for
// being told, and faster where it reads in several places. Measured without AVX-512; with that it waits at the end of a page.
#if defined(__AVX2__) && !defined(__AVX512F__)
constexpr bool fetches_by_itself = true;
#else
constexpr bool fetches_by_itself = false;
#endif
constexpr int far_apart = 4096;                    // bytes between such places
constexpr long long larger_than_caches = 1 << 24;  // bytes of rows: in caches they are read faster in order
// Bytes of rows from which on it is faster to read one of each quarter of them in turn, of one input or several.
constexpr int shortest_apart = 256, shortest_of_several = 1024;
constexpr int fold_chunk_bytes = 65536;  // of the largest input, as in writers.py
constexpr int neighbors_along = 256;      // results that are handed over at once

// How many values are folded side by side: as many as make whole vectors of everything; of large ones one.
template <class __type, class __brief, class... __operands>
struct lanes_of {
    static constexpr int largest = largest_stored<__operands...>(), bytes = buffer_bytes_of(sizeof...(__operands));
    static constexpr int fitting = power_of_two_up_to(vector_bytes / smaller(int(sizeof(__brief)), smallest_stored<__operands...>()));
    static constexpr int count = sizeof(__type) > 16 || 8 * fitting * largest > bytes ? 1 : fitting;
    static constexpr int round = 8 * count;  // values that are folded in one turn
    // Elements of a block, which have room in a buffer.
    static constexpr int block = larger(bytes / (round * largest) * round, 1);
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

// What is folded of a chunk: most of it in lanes, what is too short for them apart. Lanes of a few blocks are joined before
// they join those of others, so that sums take part in fewer roundings.
template <class __type, int __lanes>
struct folded_chunk {
    static constexpr int group = 8;
    // Vectors across lines of the cache would wait for each other.
    alignas(__lanes > 1 ? 64 : alignof(__type)) __type lanes[__lanes];
    alignas(__lanes > 1 ? 64 : alignof(__type)) __type groups[__lanes];
    __type apart;
    int blocks = 0;
    bool has_groups = false, has_apart = false;

    template <class __reduce>
    GRIDSTRIDE_INLINED void add(const __reduce& __do, const __type& __value) {
        apart = has_apart ? __do(apart, __value) : __value;
        has_apart = true;
    }
    template <class __reduce, class __brief>
    GRIDSTRIDE_INLINED void add_lanes(const __reduce& __do, const __brief* __values) {
        if (blocks == group) {
            join_values(groups, !has_groups, __do, __lanes, [&](long long __lane) -> const __type& { return lanes[__lane]; });
            has_groups = true;
            blocks = 0;
        }
        join_values(lanes, blocks++ == 0, __do, __lanes, [&](long long __lane) { return static_cast<__type>(__values[__lane]); });
    }
    template <class __reduce>
    GRIDSTRIDE_INLINED __type whole(const __reduce& __do) {
        if (!blocks) return apart;
        if (has_groups) {
            GRIDSTRIDE_LANES
            for (long long __lane = 0; __lane < __lanes; ++__lane) lanes[__lane] = __do(groups[__lane], lanes[__lane]);
        }
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

// Where the elements of a turn are that a lane takes at once: side by side, or in four places, since memory is read faster in
// several at once. `next`: how far those of the next sum are, of which a lane has so many, `step`: those of the next turn.
template <int __lanes>
struct side_by_side {
    static constexpr bool are_fetched = true;
    static constexpr int places = 1, sums = 2, next = 4 * __lanes, step = sums * next;
    GRIDSTRIDE_INLINED long long of(int __k) const { return __k * __lanes; }
};
// What follows in places so far apart is fetched without being told.
template <int __lanes>
struct in_quarters {
    static constexpr bool are_fetched = false;
    static constexpr int places = 4, sums = 4, next = __lanes, step = sums * next;
    long long quarter;
    GRIDSTRIDE_INLINED long long of(int __k) const { return __k * quarter; }
};

// How a block gets into lanes. Count: of its elements side by side, or of those in each quarter.
template <bool __in_words>
struct lanes_by {
    template <class __brief, int __lanes, bool __in_trees, class __reduce, class __places, class __value, class... __inputs>
    GRIDSTRIDE_INLINED static void fold(__brief* __some, const __reduce& __do, long long __count, const __places& __its,
                                        const __value& __value_at, const __inputs&... __all) {
        typedef several<4, __in_trees> __four;
        constexpr bool __are_fetched = __places::are_fetched && !(fetches_by_itself && largest_stored<typename __inputs::operand...>() >= 4);
        alignas(64) __brief __others[__lanes], __third[__lanes], __fourth[__lanes];
        auto __turns = [&__value_at, &__its](long long __from) {
            return [&__value_at, &__its, __from](int __turn) { return __value_at(__from + __its.of(__turn)); };
        };
        auto __begin = [&](__brief* __sums, long long __from) {
            GRIDSTRIDE_LANES
            for (long long __lane = 0; __lane < __lanes; ++__lane)
                __sums[__lane] = __four::template fold<__brief>(__do, __turns(__from + __lane), 0);
        };
        auto __join = [&](__brief* __sums, long long __from) {
            GRIDSTRIDE_LANES
            for (long long __lane = 0; __lane < __lanes; ++__lane)
                __sums[__lane] = __four::join(__do, __sums[__lane], __turns(__from + __lane), 0);
        };
        auto __join_sums = [&](__brief* __sums, const __brief* __more) {
            GRIDSTRIDE_LANES
            for (long long __lane = 0; __lane < __lanes; ++__lane) __sums[__lane] = __do(__sums[__lane], __more[__lane]);
        };
        __begin(__some, 0);
        __begin(__others, __places::next);
        if (__places::sums > 2) __begin(__third, 2 * __places::next), __begin(__fourth, 3 * __places::next);
        for (long long __k = __places::step; __k < __count; __k += __places::step) {
            if (__are_fetched) swallow(fetch_ahead(__all.items + __k, __places::step, __all.ahead)...);
            __join(__some, __k);
            __join(__others, __k + __places::next);
            if (__places::sums > 2) __join(__third, __k + 2 * __places::next), __join(__fourth, __k + 3 * __places::next);
        }
        __join_sums(__some, __others);
        if (__places::sums > 2) __join_sums(__third, __fourth), __join_sums(__some, __third);
    }
};
template <>
struct lanes_by<true> {
    template <class __brief, int __lanes, bool __in_trees, class __reduce, class __places, class __value, class __input>
    GRIDSTRIDE_INLINED static void fold(__brief* __some, const __reduce&, long long __count, const __places& __its,
                                        const __value&, const __input& __all) {
        typedef words_of_two<typename __input::stored> __words;
        typedef typename __words::word __word;
        alignas(64) __word __low[__lanes / 2] = {}, __high[__lanes / 2] = {};
        auto __add_two = [&](const typename __input::stored* __one, const typename __input::stored* __two) {
            GRIDSTRIDE_LANES
            for (long long __lane = 0; __lane < __lanes / 2; ++__lane) {
                const __word __first = __words::at(__one, __lane), __second = __words::at(__two, __lane);
                __low[__lane] = __word(__low[__lane] + ((__first & __words::lower) + (__second & __words::lower)));
                __high[__lane] = __word(__high[__lane] + ((__first >> __words::bits) + (__second >> __words::bits)));
            }
        };
        // A line at once.
        constexpr int __line = __places::places == 1 ? 2 * __lanes : __lanes;
        GRIDSTRIDE_ROLLED
        for (long long __k = 0; __k < __count; __k += __line) {
            const typename __input::stored* const __items = __all.items + __k;
            if (__places::are_fetched) fetch_ahead(__items, __line, __all.ahead);
            __add_two(__items, __items + __its.of(1));
            if (__places::places > 1) __add_two(__items + __its.of(2), __items + __its.of(3));
        }
        const __word __start = __word(__places::places * __count / __lanes * __words::least);
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
            alignas(64) __brief __more[__lanes];
            GRIDSTRIDE_LANES
            for (long long __lane = 0; __lane < __lanes; ++__lane) __more[__lane] = __brief(__value_at(__k + __lane));
            GRIDSTRIDE_LANES
            for (long long __lane = 0; __lane < __lanes; ++__lane) __some[__lane] = __do_briefly(__some[__lane], __more[__lane]);
        }
        __sums.add_lanes(__do, __some);
    }
    for (; __k < __count; ++__k) __sums.add(__do, __value_at(__k));
}

// Whether rows are long enough to be read in several places, and more than caches hold: for all rows of a fold or for none, so
// that no sum depends on which rows a thread has.
template <int __axes, class... __inputs>
GRIDSTRIDE_INLINED bool are_read_apart(const fold_space<__axes>& __space, const __inputs&... __all) {
    constexpr int __largest = largest_stored<typename __inputs::operand...>();
    constexpr int __shortest = sizeof...(__inputs) > 1 ? shortest_of_several : shortest_apart;
    if (!fetches_by_itself || __largest < 4 || __space.outputs * __space.fold_row * __largest < larger_than_caches) return false;
    return all_of((__all.is_held() || __all.source.step == 0 || __space.fold_row * __all.source.step >= __shortest)...);
}

// A quarter of so many rows, where one of each quarter in turn is read faster than one after another, else 0.
template <int __axes, class... __inputs>
GRIDSTRIDE_INLINED int quarter_of_rows(const fold_space<__axes>& __space, int __rows, const __inputs&... __all) {
    auto __is_far = [&](long long __stride) { return (__stride < 0 ? -__stride : __stride) * (__rows / 4) >= far_apart; };
    const bool __are_far = all_of((__all.is_held() || __all.source.step == 0 || __is_far(__all.source.kept_strides[0]))...);
    return __are_far && are_read_apart(__space, __all...) ? __rows / 4 : 0;
}

template <class __type, class __map, class... __operands>
GRIDSTRIDE_INLINED auto values_of(const __map& __do_map, long long __number, long long __step, long long __position,
                                  long long __position_step, const typename __operands::stored* const... __items) {
    return [&__do_map, __number, __step, __position, __position_step, __items...](long long __k) -> __type {
        return __do_map(__number + __k * __step, __position + __k * __position_step,
                        element<__operands>(const_cast<typename __operands::stored&>(__items[__k])).get()...);
    };
}

}

#endif
