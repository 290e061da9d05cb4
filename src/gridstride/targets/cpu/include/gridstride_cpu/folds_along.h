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
    const stored* items;
    alignas(64) char buffer[__buffered * sizeof(stored)];

    GRIDSTRIDE_INLINED streamed_input(const __operand& __source) : source(__source) {}
    GRIDSTRIDE_INLINED int begin(long long __element, int __count) {
        const char* __at = row + __element * source.step;
        if (is_direct<stored>(__at, source.step)) {
            items = reinterpret_cast<const stored*>(__at);
            return 0;
        }
        items = reinterpret_cast<const stored*>(buffer);
        gather(reinterpret_cast<stored*>(buffer), __at, source.step, __count);
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

constexpr int fold_chunk_bytes = 16384;  // of the largest input, as in writers.py

// How many values are folded side by side: as many as make whole vectors of everything; of large ones one.
template <class __type, class __brief, class... __operands>
struct lanes_of {
    static constexpr int largest = largest_stored<__operands...>();
    static constexpr int fitting = power_of_two_up_to(vector_bytes / smaller(int(sizeof(__brief)), smallest_stored<__operands...>()));
    static constexpr int count = sizeof(__type) > 16 || 8 * fitting * largest > buffer_bytes ? 1 : fitting;
    static constexpr int round = 8 * count;  // values that are folded in one turn
    static constexpr int fitting_rounds = buffer_bytes / (round * largest);
    // Elements of a block, which have room in a buffer.
    static constexpr int block = larger(fitting_rounds < 8 ? fitting_rounds * round : 8 * round, 1);
};

// The first lane of all, after halves have been folded with each other.
template <int __lanes>
struct halves {
    template <class __reduce, class __type>
    GRIDSTRIDE_INLINED static __type join(const __reduce& __do, const __type* __values) {
        __type __half[__lanes / 2];
        GRIDSTRIDE_LANES
        for (long long __lane = 0; __lane < __lanes / 2; ++__lane)
            __half[__lane] = __do(__values[__lane], __values[__lane + __lanes / 2]);
        return halves<__lanes / 2>::join(__do, __half);
    }
};
template <>
struct halves<1> {
    template <class __reduce, class __type>
    GRIDSTRIDE_INLINED static __type join(const __reduce&, const __type* __values) { return __values[0]; }
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
        const __type __most = halves<__lanes>::join(__do, lanes);
        return has_apart ? __do(__most, apart) : __most;
    }
};

// Fold a block of elements, of which `__value(k)` is one, into a chunk.
template <class __brief, int __lanes, bool __in_trees, class __type, class __brief_reduce, class __reduce, class __value>
GRIDSTRIDE_INLINED void fold_block(folded_chunk<__type, __lanes>& __sums, const __brief_reduce& __do_briefly,
                                   const __reduce& __do, long long __count, const __value& __value_at) {
    typedef several<4, __in_trees> __four;
    long long __k = 0;
    if (__lanes > 1 && __count >= __lanes) {
        alignas(64) __brief __some[__lanes], __others[__lanes];
        auto __at = [&](long long __from) { return [&__value_at, __from](int __turn) { return __value_at(__from + __turn * __lanes); }; };
        if (__count >= 8 * __lanes) {
            GRIDSTRIDE_LANES
            for (long long __lane = 0; __lane < __lanes; ++__lane)
                __some[__lane] = __four::template fold<__brief>(__do_briefly, __at(__lane), 0);
            GRIDSTRIDE_LANES
            for (long long __lane = 0; __lane < __lanes; ++__lane)
                __others[__lane] = __four::template fold<__brief>(__do_briefly, __at(__lane), 4);
            for (__k = 8 * __lanes; __k + 8 * __lanes <= __count; __k += 8 * __lanes) {
                GRIDSTRIDE_LANES
                for (long long __lane = 0; __lane < __lanes; ++__lane)
                    __some[__lane] = __four::join(__do_briefly, __some[__lane], __at(__k + __lane), 0);
                GRIDSTRIDE_LANES
                for (long long __lane = 0; __lane < __lanes; ++__lane)
                    __others[__lane] = __four::join(__do_briefly, __others[__lane], __at(__k + __lane), 4);
            }
            GRIDSTRIDE_LANES
            for (long long __lane = 0; __lane < __lanes; ++__lane)
                __some[__lane] = __do_briefly(__some[__lane], __others[__lane]);
        } else {
            GRIDSTRIDE_LANES
            for (long long __lane = 0; __lane < __lanes; ++__lane) __some[__lane] = __brief(__value_at(__lane));
            __k = __lanes;
        }
        for (; __k + __lanes <= __count; __k += __lanes) {
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

template <int __block, class __folding, class __map, class __reduce, class __finish, int __axes, class... __inputs>
GRIDSTRIDE_INLINED void run_along(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                  const __folding& __start, const fold_space<__axes>& __space, __inputs&&... __all) {
    typedef typename __folding::type __type;
    typedef brief<__type, __reduce, typename __inputs::operand...> __briefly;
    typedef lanes_of<__type, typename __briefly::type, typename __inputs::operand...> __lanes;
    constexpr int __most = fold_chunk_bytes / __lanes::largest, __chunk = __most < 1 ? 1 : __most;
    // Axis 0 of the fold counts chunks of its row.
    const share_of_pieces __share(__space.outputs * __space.parts);
    const long long __whole = __space.fold.count;
    long long __result = __share.first / __space.parts, __part = __share.first % __space.parts;
    for (long long __piece = __share.first; __piece < __share.last; ++__piece) {
        const long long __number = settle(__space, __result, 0, __all...);
        const long long __begin = __part * __space.part;
        const long long __end = __begin + __space.part < __whole ? __begin + __space.part : __whole;
        pairs<__type> __joined;
        for (long long __q = __begin; __q < __end; ++__q) {
            long long __rest = __q, __numbers = __number, __position = 0;
            const long long __from = digit_of(__space.fold, __rest, 0) * __chunk;
            step_into(__space, __rest, 1, __numbers, __position, __all...);
            const long long __to = __space.fold_row - __from < __chunk ? __space.fold_row : __from + __chunk;
            folded_chunk<__type, __lanes::count> __sums;
            for (long long __element = __from; __element < __to; __element += __block) {
                const int __count = int(__to - __element < __block ? __to - __element : __block);
                swallow(__all.begin(__element, __count)...);
                fold_block<typename __briefly::type, __lanes::count, joins_in_trees<__type, typename __inputs::operand...>()>(
                    __sums, __briefly::reduce(__do), __do, __count,
                    values_of<__type, __map, typename __inputs::operand...>(
                        __do_map, __numbers + __element * __space.fold_numbers.step, __space.fold_numbers.step,
                        __position + __element * __space.position.step, __space.position.step, __all.items...));
            }
            __joined.push(__do, __sums.whole(__do));
        }
        __do_finish(__result, int(__part), __joined.count ? __folding(__joined.whole(__do)) : __start);
        if (++__part == __space.parts) __part = 0, ++__result;
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
