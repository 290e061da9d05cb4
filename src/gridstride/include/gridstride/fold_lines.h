// `fold_lines`: folds along one axis, in which threads take packets. The order of the operations depends on the shape
// alone, not on where the elements lie.
#ifndef GRIDSTRIDE_FOLD_LINES_H
#define GRIDSTRIDE_FOLD_LINES_H

#include <gridstride/fold_parts.h>
#include <gridstride/line_packets.h>

namespace gridstride {

// A thread's packets of a tile: `apart` lies between two, so their addresses differ by a constant where that is one. All
// are loaded before the first is used.
struct line_tile {
    long long first, end;
    int apart;
    GRIDSTRIDE_INLINED long long at(int __k) const { return first + __k * apart; }
};

// The tiles that a thread takes one after another, which has number `__lane` of `__group`: each so many neighbors (`__lanes`,
// or all of the group) have one together.
template <int __count, int __lanes>
struct line_tiles : line_tile {
    int step;
    long long full;  // where the last tile of which there is all begins
    GRIDSTRIDE_INLINED line_tiles(long long __begin, long long __end, int __lane, int __group) : step(__group * __count) {
        apart = __lanes ? __lanes : __group;
        const int __own = __lane & (apart - 1);
        first = __begin + (__lane - __own) * __count + __own;
        end = __end;
        full = __end - apart * __count + __own;
    }
};

// The words in which a line lies, wherever it begins.
template <int __length>
struct words_of_line {
    int before;       // elements before the line in its first word
    long long words;  // up to the last one
    int after;        // elements of the line in that
    GRIDSTRIDE_INLINED words_of_line(int __before, long long __elements) {
        before = __before;
        words = (before + __elements) / __length;
        after = int(before + __elements - words * __length);
    }
};

template <int __length, int __count, loading __how, bool __are_all, int __sums_count, class __folding, class __map, class __reduce, class __counted, class... __inputs>
GRIDSTRIDE_INLINED void add_tile(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__sums_count],
                                 const __counted& __from, const line_tile& __tile, __inputs&... __all) {
    // Packets that take two words are fewer at once, beside values that take registers too.
    constexpr int __room = sizeof(__folding) > 24 ? 1 : sizeof(__folding) > 4 ? 2 : __count;
    constexpr int __at_once = __how == by_shifting && __count > __room ? __room : __count;
#pragma unroll 1
    for (int __begin = 0; __begin < __count; __begin += __at_once) {
#pragma unroll
        for (int __k = 0; __k < __at_once; ++__k)
            if (__are_all || __tile.at(__begin + __k) < __tile.end)
                swallow(__all.template load_as<__how>(__k, __tile.at(__begin + __k))...);
#pragma unroll
        for (int __k = 0; __k < __at_once; ++__k)
            if (__are_all || __tile.at(__begin + __k) < __tile.end) {
                swallow(__all.template unpack_as<__how>(__k)...);
                whole_line<is_costly<__folding, __reduce>::value>::template add<__length>(__do_map, __do, __sums, __from, __tile.at(__begin + __k), __k, __all...);
            }
    }
}

// Packets of a line, by `__group` threads of which this has number `__lane`.
template <int __length, int __count, int __lanes, int __sums_count, class __folding, class __map, class __reduce, class __counted, class... __inputs>
GRIDSTRIDE_INLINED void add_tiles(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__sums_count],
                                  const __counted& __from, long long __begin, long long __end, int __lane, int __group,
                                  __inputs&... __all) {
    line_tiles<__count, __lanes> __tile(__begin, __end, __lane, __group);
    // Where a fold is a long text it is there once for each way to load, for tiles of which there is not all.
    constexpr bool __is_short = !is_costly<__folding, __reduce>::value || sizeof(__folding) <= 8;
    const bool __have_pieces = all_of(__all.has_pieces()...);
    if (all_of(__all.has_words()...)) {
        for (; __tile.first <= __tile.full; __tile.first += __tile.step)
            add_tile<__length, __count, by_words, true>(__do_map, __do, __sums, __from, __tile, __all...);
    } else if (__is_short && __have_pieces) {
        for (; __tile.first <= __tile.full; __tile.first += __tile.step)
            add_tile<__length, __count, by_pieces, true>(__do_map, __do, __sums, __from, __tile, __all...);
    }
    if (__have_pieces) {
        for (; __tile.first < __end; __tile.first += __tile.step) {
            add_tile<__length, __count, by_pieces, false>(__do_map, __do, __sums, __from, __tile, __all...);
            if (__is_short) break;
        }
    } else if (all_of(__all.is_between()...)) {
        for (; __is_short && __tile.first <= __tile.full; __tile.first += __tile.step)
            add_tile<__length, __count, by_shifting, true>(__do_map, __do, __sums, __from, __tile, __all...);
        for (; __tile.first < __end; __tile.first += __tile.step) {
            add_tile<__length, __count, by_shifting, false>(__do_map, __do, __sums, __from, __tile, __all...);
            if (__is_short) break;
        }
    } else {
        for (; __tile.first < __end; __tile.first += __tile.step)
#pragma unroll 1
            for (int __k = 0; __k < __count && __tile.at(__k) < __end; ++__k) {
                swallow(__all.load(0, __tile.at(__k), __length)...);
                swallow(__all.unpack(0)...);
                whole_line<is_costly<__folding, __reduce>::value>::template add<__length>(__do_map, __do, __sums, __from, __tile.at(__k), 0, __all...);
            }
    }
}

// The same where all packets are words.
template <int __length, int __count, int __lanes, int __sums_count, class __folding, class __map, class __reduce, class __counted, class __input>
GRIDSTRIDE_INLINED void add_words_of_line(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__sums_count],
                                          const __counted& __from, long long __begin, long long __end, int __lane, int __group,
                                          __input& __one) {
    line_tiles<__count, __lanes> __tile(__begin, __end, __lane, __group);
    for (; __tile.first <= __tile.full; __tile.first += __tile.step)
        add_tile<__length, __count, by_words, true>(__do_map, __do, __sums, __from, __tile, __one);
    if (__tile.first < __end) add_tile<__length, __count, by_words, false>(__do_map, __do, __sums, __from, __tile, __one);
}

// Packets from `__begin` to before `__end` of a line of so many elements.
template <int __length, int __count, int __lanes, int __sums_count, class __folding, class __map, class __reduce, class __counted, class... __inputs>
GRIDSTRIDE_INLINED void add_some_of_line(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__sums_count],
                                         const __counted& __from, long long __begin, long long __end, int __lane, int __group,
                                         long long __elements, __inputs&... __all) {
    const long long __whole = __elements / __length;
    add_tiles<__length, __count, __lanes>(__do_map, __do, __sums, __from, __begin, __end < __whole ? __end : __whole, __lane, __group, __all...);
    if (__lane == 0 && __whole < __end) {
        const int __last = int(__elements - __whole * __length);
        swallow(__all.load(0, __whole, __last)...);
        swallow(__all.unpack(0)...);
        add_line<__length>(__do_map, __do, __sums, __from, __whole, __last, 0, __all...);
    }
}

// Of small integers, which are folded in whichever order: by the words in which they lie, wherever the line begins.
template <int __length, int __count, int __lanes, int __sums_count, class __folding, class __map, class __reduce, class __counted, class __input>
GRIDSTRIDE_INLINED void add_integers_of_line(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__sums_count],
                                             const __counted& __from, long long __begin, long long __end, int __lane,
                                             int __group, long long __elements, __input& __one) {
    typedef typename __input::stored __stored;
    if (__begin >= __end) return;
    if (__one.source.step != sizeof(__stored) || __one.past_word() % sizeof(__stored) != 0) {
#pragma unroll 1
        for (long long __packet = __begin + __lane; __packet < __end; __packet += __group) {
            const long long __left = __elements - __packet * __length;
            const int __last = __left < __length ? int(__left) : __length;
            __one.load(0, __packet, __last);
            __one.unpack(0);
            add_line<__length>(__do_map, __do, __sums, __from, __packet, __last, 0, __one);
        }
        return;
    }
    // Words of which all elements are the line's, and those at its ends.
    const words_of_line<__length> __line(int(__one.past_word() / sizeof(__stored)), __elements);
    const bool __has_first = __line.before != 0 && __begin == 0, __has_last = __line.after != 0 && __end * __length >= __elements;
    __one.base -= __line.before * int(sizeof(__stored));
    word_of<__stored, __length> __first, __last;
    const bool __takes_first = __has_first && __lane == 0;
    const bool __takes_last = __has_last && __lane == __group - 1 && (__line.words > 0 || __line.before == 0);
    if (__takes_first) __first.load(__one.base);
    if (__takes_last) __last.load(__one.at(__line.words));
    add_words_of_line<__length, __count, __lanes>(__do_map, __do, __sums, __from, __begin + __has_first,
                                                  __end * __length >= __elements ? __line.words : __end, __lane, __group, __one);
    if (__takes_first) add_integers<false>(__do, __sums[0], __first, __line.before, __line.words > 0 ? __length : __line.after);
    if (__takes_last) add_integers<false>(__do, __sums[0], __last, 0, __line.after);
}
template <int __length, int __count, int __lanes, int __sums_count, class __folding, class __map, class __reduce, class __counted, class __input>
GRIDSTRIDE_INLINED void add_some_of_line(const __map& __do_map, const integer_sum<__reduce>& __do, __folding (&__sums)[__sums_count],
                                         const __counted& __from, long long __begin, long long __end, int __lane, int __group,
                                         long long __elements, __input& __one) {
    add_integers_of_line<__length, __count, __lanes>(__do_map, __do, __sums, __from, __begin, __end, __lane, __group, __elements, __one);
}
template <int __length, int __count, int __lanes, int __sums_count, class __folding, class __map, class __reduce, bool __is_largest, class __counted, class __input>
GRIDSTRIDE_INLINED void add_some_of_line(const __map& __do_map, const byte_extreme<__reduce, __is_largest>& __do, __folding (&__sums)[__sums_count],
                                         const __counted& __from, long long __begin, long long __end, int __lane, int __group,
                                         long long __elements, __input& __one) {
    add_integers_of_line<__length, __count, __lanes>(__do_map, __do, __sums, __from, __begin, __end, __lane, __group, __elements, __one);
}

template <int __length, int __count, int __lanes, class __counter, class __folding, class __map, class __reduce, class __finish, int __axes, class... __inputs>
GRIDSTRIDE_INLINED void fold_line(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                  const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                  __inputs&&... __all) {
    constexpr int __sums_count = is_costly<__folding, __reduce>::value ? 1 : __length < most_sums ? __length : most_sums;
    const int __group = __space.group, __lane = threadIdx.x & (__group - 1);
    // Blocks that run at the same time take parts of one result after another: other results may lie in the same banks.
    unsigned __block = blockIdx.x, __part = 0;
    if (__space.parts > 1) {
        const unsigned __number = blockIdx.y * gridDim.x + blockIdx.x;
        __block = __number / __space.parts;
        __part = __number - __block * __space.parts;
    }
    const long long __result = (static_cast<long long>(__block) * fold_threads + threadIdx.x) >> (__ffs(__group) - 1);
    const bool __is_inside = __result < __space.outputs;
    const counted_along<typename counter_of<__counter, is_costly<__folding, __reduce>::value>::type> __from(__space, settle(__space, __is_inside ? __result : 0, 0, __all...));
    const long long __begin = __part * __space.part;
    long long __end = __begin + __space.part;
    if (__end > __space.fold.count) __end = __space.fold.count;
    if (!__is_inside) __end = 0;
    __folding __sums[__sums_count];
#pragma unroll
    for (int __j = 0; __j < __sums_count; ++__j) __sums[__j] = __start;
    add_some_of_line<__length, __count, __lanes>(__do_map, __do, __sums, __from, __begin, __end, __lane, __group, __space.fold_row, __all...);
    join_own(__do, __sums);
    join_group(__do, __sums[0], __group, __shared);
    if (__lane == 0 && __is_inside) __do_finish(__result, int(__part), __sums[0]);
}

// For results that a warp or more share, which have the more to load at once. `__are_words`: whether all packets are words.
template <int __count, class __counter, bool __are_words, class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands>
GRIDSTRIDE_INLINED void fold_long_lines(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                        const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                        const __operands&... __inputs) {
    constexpr int __length = packet_length<__operands...>();
    fold_line<__length, __count, 32, __counter>(__do_map, __do, __do_finish, __start, __space, __shared,
                                     line_input<__operands, __length, __count, __are_words>(__inputs)...);
}

template <int __count, class __counter, bool __are_words, class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands>
GRIDSTRIDE_INLINED void fold_lines(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                   const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                   const __operands&... __inputs) {
    constexpr int __length = packet_length<__operands...>();
    fold_line<__length, __count, 0, __counter>(__do_map, __do, __do_finish, __start, __space, __shared,
                                    line_input<__operands, __length, __count, __are_words>(__inputs)...);
}

}

#endif
