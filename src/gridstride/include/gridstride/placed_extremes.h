// The largest or the smallest of bytes and its place: halves of words hold a byte and, below it, a rank that says when it
// came, so that one instruction compares two of both. Structures are made of what is left in the end.
#ifndef GRIDSTRIDE_PLACED_EXTREMES_H
#define GRIDSTRIDE_PLACED_EXTREMES_H

#include <gridstride/fold_lines.h>

namespace gridstride {

// Of the bytes that stand at each place of words, the largest or the smallest, of equal ones the first or the last, and in
// which turn it came, from 0 to 255.
template <class __stored, bool __is_largest, bool __is_first>
struct ranked_bytes {
    static constexpr bool is_largest = __is_largest, has_sign = __stored(-1) < __stored(0), is_falling = __is_largest == __is_first;
    static constexpr int worst = __is_largest ? (has_sign ? -128 : 0) : (has_sign ? 127 : 255);
    // No byte of turns 1 to 254 is like one of these, not even the worst.
    static constexpr unsigned no_bytes = unsigned(worst & 0xff) * 0x01010101u, no_ranks = __is_largest ? 0u : ~0u;
    static constexpr int none = worst * 256 + (__is_largest ? 0 : 255);
    unsigned even, odd;

    GRIDSTRIDE_INLINED ranked_bytes() : even(unsigned(none & 0xffff) * 0x10001u), odd(even) {}
    static GRIDSTRIDE_INLINED unsigned of_halves(unsigned __a, unsigned __b) {
        if (__is_largest) return has_sign ? __vmaxs2(__a, __b) : __vmaxu2(__a, __b);
        return has_sign ? __vmins2(__a, __b) : __vminu2(__a, __b);
    }
    static GRIDSTRIDE_INLINED int kept(int __a, int __b) { return (__a < __b) == __is_largest ? __b : __a; }
    static GRIDSTRIDE_INLINED int rank(int __turn, int __most) { return is_falling ? __most - __turn : __turn; }
    // Ranks of four bytes of one turn, and of the next one.
    static GRIDSTRIDE_INLINED unsigned ranks(int __turn) { return unsigned(rank(__turn, 255)) * 0x01010101u; }
    static GRIDSTRIDE_INLINED unsigned next(unsigned __ranks) { return is_falling ? __ranks - 0x01010101u : __ranks + 0x01010101u; }

    GRIDSTRIDE_INLINED void add(unsigned __word, unsigned __ranks) {
        even = of_halves(even, __byte_perm(__word, __ranks, 0x2604));
        odd = of_halves(odd, __byte_perm(__word, __ranks, 0x3715));
    }
    GRIDSTRIDE_INLINED void add_some(unsigned __word, unsigned __ranks, unsigned __own) {
        add((__word & __own) | (no_bytes & ~__own), (__ranks & __own) | (no_ranks & ~__own));
    }
    // What is kept of the bytes at a place.
    static GRIDSTRIDE_INLINED int number(unsigned __halves) { return has_sign ? int(static_cast<short>(__halves)) : int(__halves & 0xffff); }
    GRIDSTRIDE_INLINED int half(int __k) const { return number((__k % 2 ? odd : even) >> __k % 4 / 2 * 16); }
    static GRIDSTRIDE_INLINED int turn(int __half) { return rank(__half & 255, 255); }
    static GRIDSTRIDE_INLINED int byte(int __half) { return __half >> 8; }
    // What is kept of all places of words, and which place that has.
    template <int __words>
    static GRIDSTRIDE_INLINED int half_of(const ranked_bytes (&__all)[__words], int& __place) {
        int __key = none * 16 + rank(15, 15);
#pragma unroll
        for (int __k = 0; __k < 4 * __words; ++__k) __key = kept(__key, __all[__k / 4].half(__k % 4) * 16 + rank(__k, 15));
        __place = rank(__key & 15, 15);
        return __key >> 4;
    }
};

// A reduction of structures of a byte and its place, which keeps the same.
template <class __ranked, class __value, class __map, class __reduce>
struct placed_extreme : __reduce {
    const __map& map;
    __host__ __device__ placed_extreme(const __map& __do_map, const __reduce& __do) : __reduce(__do), map(__do_map) {}
    GRIDSTRIDE_INLINED auto of(long long __place, int __byte) const { return map(0, __place, static_cast<__value>(__byte)); }
};
template <class __ranked, class __value, class __map, class __reduce>
__host__ __device__ inline placed_extreme<__ranked, __value, __map, __reduce> as_placed_extreme(const __map& __do_map, const __reduce& __do) {
    return placed_extreme<__ranked, __value, __map, __reduce>(__do_map, __do);
}

// Add a packet, or those of its bytes from one to before another, in a turn.
template <class __ranked, int __words, class __items>
GRIDSTRIDE_INLINED void add_ranked(__ranked (&__columns)[__words], const __items& __packet, unsigned __ranks) {
    unsigned __bits[__words];
    memcpy(__bits, &__packet, 4 * __words);
#pragma unroll
    for (int __k = 0; __k < __words; ++__k) __columns[__k].add(__bits[__k], __ranks);
}
template <class __ranked, int __words, class __items>
GRIDSTRIDE_INLINED void add_some_ranked(__ranked (&__columns)[__words], const __items& __packet, unsigned __ranks, int __from, int __end) {
    unsigned __bits[__words];
    memcpy(__bits, &__packet, 4 * __words);
#pragma unroll
    for (int __k = 0; __k < __words; ++__k)
        __columns[__k].add_some(__bits[__k], __ranks, bytes_from(__from - 4 * __k) & ~bytes_from(__end - 4 * __k));
}

// ---- along lines, by the words in which they lie, wherever the line begins ----

// Add the packets of a tile, each in a turn of its own; `__are_all`: whether all are there.
template <int __count, bool __are_all, class __ranked, class __input>
GRIDSTRIDE_INLINED void add_ranked_tile(__ranked (&__columns)[4], const line_tile& __tile, unsigned& __ranks, __input& __one) {
#pragma unroll
    for (int __k = 0; __k < __count; ++__k)
        if (__are_all || __tile.at(__k) < __tile.end) __one.template load_as<by_words>(__k, __tile.at(__k));
#pragma unroll
    for (int __k = 0; __k < __count; ++__k) {
        if (__are_all || __tile.at(__k) < __tile.end) add_ranked(__columns, __one.words[__k], __ranks);
        __ranks = __ranked::next(__ranks);
    }
}

template <int __length, int __count, int __lanes, int __sums_count, class __folding, class __map, class __ranked, class __value, class __own_map, class __reduce, class __counted, class __input>
GRIDSTRIDE_INLINED void add_some_of_line(const __map&, const placed_extreme<__ranked, __value, __own_map, __reduce>& __do,
                                         __folding (&__sums)[__sums_count], const __counted&, long long __begin, long long __end,
                                         int __lane, int __group, long long __elements, __input& __one) {
    if (__begin >= __end) return;
    int __at;
    if (__one.source.step != 1) {
#pragma unroll 1
        for (long long __packet = __begin + __lane; __packet < __end; __packet += __group) {
            const long long __left = __elements - __packet * 16;
            const int __last = __left < 16 ? int(__left) : 16;
            __one.load(0, __packet, __last);
            __one.unpack(0);
            __ranked __columns[4];
            add_some_ranked(__columns, __one.packets[0], __ranked::ranks(1), 0, __last);
            const int __half = __ranked::half_of(__columns, __at);
            __sums[0].add(__do, __do.of(__packet * 16 + __at, __ranked::byte(__half)));
        }
        return;
    }
    typedef typename __input::stored __stored;
    const words_of_line<16> __line(int(__one.past_word()), __elements);
    const bool __is_last_part = __end * 16 >= __elements;
    const bool __takes_first = __line.before != 0 && __begin == 0 && __lane == 0;
    const bool __takes_last = __line.after != 0 && __is_last_part && __lane == __group - 1 && (__line.words > 0 || __line.before == 0);
    __one.base -= __line.before;
    word_of<__stored, 16> __first, __last;
    if (__takes_first) __first.load(__one.base);
    if (__takes_last) __last.load(__one.at(__line.words));
    if (__is_last_part) __end = __line.words;
    line_tiles<__count, __lanes> __tile(__begin + (__line.before != 0 && __begin == 0), __end, __lane, __group);
    // The ends of a line have turns 1 and 254.
    constexpr int __tiles = 252 / __count;
    __ranked __columns[4];
    if (__takes_first) add_some_ranked(__columns, __first, __ranked::ranks(1), __line.before, __line.words > 0 ? 16 : __line.after);
    for (bool __is_done = false; !__is_done;) {
        const long long __from = __tile.first;
        unsigned __ranks = __ranked::ranks(2);
#pragma unroll 1
        for (int __left = __tiles - 1; __left > 0 && __tile.first <= __tile.full; --__left) {
            add_ranked_tile<__count, true>(__columns, __tile, __ranks, __one);
            __tile.first += __tile.step;
        }
        __is_done = __tile.first > __tile.full;
        if (__is_done) {
            add_ranked_tile<__count, false>(__columns, __tile, __ranks, __one);
            if (__takes_last) add_some_ranked(__columns, __last, __ranked::ranks(254), 0, __line.after);
        }
        const int __half = __ranked::half_of(__columns, __at), __turn = __ranked::turn(__half) - 2;
        if (__half != __ranked::none) {
            const long long __packet = __turn < 0 ? 0 : __turn >= 252 ? __line.words : __from + __turn / __count * __tile.step + __turn % __count * __tile.apart;
            __sums[0].add(__do, __do.of(__packet * 16 + __at - __line.before, __ranked::byte(__half)));
        }
#pragma unroll
        for (int __k = 0; __k < 4; ++__k) __columns[__k] = __ranked();
    }
}

// ---- across rows ----

// Of the bytes at the same places of packets: the row of each, in keys that have 24 bits for it below the byte. Rows are
// counted from 1 there: so no byte of any, not even the worst, is like none.
template <class __ranked, class __stored, int __length>
struct placed_columns {
    typedef int kept;
    static constexpr int bias = __ranked::has_sign ? 0 : 128, most = (1 << 24) - 1;
    __ranked words[__length / 4];
    unsigned ranks;

    GRIDSTRIDE_INLINED placed_columns() : ranks(__ranked::ranks(1)) {}
    GRIDSTRIDE_INLINED void add(const packet<__stored, __length>& __items) {
        add_ranked(words, __items, ranks);
        ranks = __ranked::next(ranks);
    }
    // The last packet of a thread, of which there are so many bytes.
    GRIDSTRIDE_INLINED void add_last(const packet<__stored, __length>& __items, int __last) {
        add_some_ranked(words, __items, ranks, 0, __last);
        ranks = __ranked::next(ranks);
    }
    static GRIDSTRIDE_INLINED int nothing() { return __ranked::is_largest ? -most * 128 - 128 : most * 128 + 127; }
    static GRIDSTRIDE_INLINED int key(int __byte, int __row) { return (__byte - bias) * (most + 1) + __ranked::rank(__row + 1, most); }
    static GRIDSTRIDE_INLINED int byte(int __key) { return (__key >> 24) + bias; }
    static GRIDSTRIDE_INLINED int row(int __key) { return __ranked::rank(__key & most, most) - 1; }
    static GRIDSTRIDE_INLINED void add_one(int& __key, __stored __item, int __row) { __key = __ranked::kept(__key, key(__item, __row)); }
    GRIDSTRIDE_INLINED int value(int __j, int __first, int __apart) const {
        const int __half = words[__j / 4].half(__j % 4);
        if (__half == __ranked::none) return nothing();
        return key(__ranked::byte(__half), __first + (__ranked::turn(__half) - 1) * __apart);
    }
};

template <class __ranked, class __value, class __map, class __reduce, class __operand>
struct folds_bytes<placed_extreme<__ranked, __value, __map, __reduce>, __operand> { static constexpr bool value = true; };
template <class __ranked, class __value, class __map, class __reduce, class __stored, int __length>
struct columns_in_words<placed_extreme<__ranked, __value, __map, __reduce>, __stored, __length> {
    typedef placed_columns<__ranked, __stored, __length> type;
};
template <class __ranked, class __value, class __map, class __reduce>
GRIDSTRIDE_INLINED void joined(const placed_extreme<__ranked, __value, __map, __reduce>&, int& __key, const int& __other) {
    __key = __ranked::kept(__key, __other);
}
template <class __ranked, class __value, class __map, class __reduce>
GRIDSTRIDE_INLINED int moved(const placed_extreme<__ranked, __value, __map, __reduce>&, int __key, int __rows) {
    if (__key == placed_columns<__ranked, char, 4>::nothing()) return __key;
    return __ranked::is_falling ? __key - __rows : __key + __rows;
}
template <class __folding, class __ranked, class __value, class __map, class __reduce>
GRIDSTRIDE_INLINED __folding as_folded(const placed_extreme<__ranked, __value, __map, __reduce>& __do, __folding __start, int __key,
                                       long long __first) {
    typedef placed_columns<__ranked, char, 4> columns;
    __start.add(__do, __do.of(__first + columns::row(__key), columns::byte(__key)));
    return __start;
}

// Columns of a result have different places of the same rows.
template <class __folding, class __ranked, class __value, class __map, class __reduce>
GRIDSTRIDE_INLINED __folding of_column(const placed_extreme<__ranked, __value, __map, __reduce>& __do, __folding __start, const int& __key,
                                       long long __first, long long __apart, long long __within) {
    typedef placed_columns<__ranked, char, 4> columns;
    __start.add(__do, __do.of((__first + columns::row(__key)) * __apart + __within, columns::byte(__key)));
    return __start;
}

// ---- short rows ----

// The elements of a few words, whose ranks tell their places.
template <int __row, class __folding, class __map, class __ranked, class __value, class __own_map, class __reduce, class __input>
GRIDSTRIDE_INLINED __folding fold_of_few(const __map&, const placed_extreme<__ranked, __value, __own_map, __reduce>& __do, __folding __sum,
                                         const counted_along<>&, int __first, __input& __one) {
    constexpr int __bytes = sizeof(__one.packets[0].items), __words = (__bytes + 3) / 4;
    unsigned __bits[__words] = {};
    memcpy(__bits, &__one.packets[0], __bytes);
    __ranked __columns;
#pragma unroll
    for (int __k = 0; __k < __words; ++__k) {
        const unsigned __own = bytes_from(__first - 4 * __k) & ~bytes_from(__first + __row - 4 * __k);
        unsigned __ranks = 0;
#pragma unroll
        for (int __j = 0; __j < 4; ++__j) __ranks |= unsigned(__ranked::rank(4 * __k + __j - __first + 1, 255) & 255) << 8 * __j;
        if (__own) __columns.add_some(__bits[__k], __ranks, __own);
    }
    const unsigned __halves = __ranked::of_halves(__columns.even, __columns.odd);
    const int __half = __ranked::kept(__ranked::number(__halves), __ranked::number(__halves >> 16));
    __sum.add(__do, __do.of(__ranked::turn(__half) - 1, __ranked::byte(__half)));
    return __sum;
}

// Words that are `__apart` from one to the next; those at the ends of a row have bytes of others too.
template <int __sums_count, class __folding, class __map, class __ranked, class __value, class __own_map, class __reduce, class __counted, class __input>
GRIDSTRIDE_INLINED void add_short_row(const __map&, const placed_extreme<__ranked, __value, __own_map, __reduce>& __do,
                                      __folding (&__sums)[__sums_count], const __counted&, int __begin, int __first, int __end,
                                      int __apart, int, __input& __one) {
    const int __byte = __one.shift + __begin, __before = __byte % 4, __last = __end > 0 ? (__before + __end - 1) / 4 : -1;
    const auto __word = [&](int __w) { return __one.four_bytes(__byte - __before + 4 * __w); };
    const unsigned __before_end = ~bytes_from(__before + __end - 4 * __last);
    __ranked __columns[1];
    unsigned __ranks = __ranked::ranks(1);
    int __w = __first;
    if (__w == 0 && __last >= 0) {
        __columns[0].add_some(__word(0), __ranks, bytes_from(__before) & (__last == 0 ? __before_end : ~0u));
        __ranks = __ranked::next(__ranks);
        __w += __apart;
    }
#pragma unroll 4
    for (; __w < __last; __w += __apart) {
        __columns[0].add(__word(__w), __ranks);
        __ranks = __ranked::next(__ranks);
    }
    if (__w == __last) __columns[0].add_some(__word(__last), __ranks, __before_end);
    int __at;
    const int __half = __ranked::half_of(__columns, __at);
    if (__half != __ranked::none)
        __sums[0].add(__do, __do.of(4 * (__first + (__ranked::turn(__half) - 1) * __apart) + __at - __before, __ranked::byte(__half)));
}

}

#endif
