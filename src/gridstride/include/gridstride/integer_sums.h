// Small integers that are added, or of which the largest or smallest is kept: several are folded by one instruction, in
// any order. Sums may be made in any width that holds them, because what does not fit is lost the same way.
#ifndef GRIDSTRIDE_INTEGER_SUMS_H
#define GRIDSTRIDE_INTEGER_SUMS_H

#include <gridstride/folding.h>
#include <gridstride/packets.h>

namespace gridstride {

// Add the integers in four bytes, of one or two bytes each, to a sum.
template <class __stored>
GRIDSTRIDE_INLINED int with_word(unsigned __word, int __sum) {
    constexpr bool __has_sign = __stored(-1) < __stored(0);
    if (sizeof(__stored) == 1)
        return __has_sign ? __dp4a(int(__word), 0x01010101, __sum) : int(__dp4a(__word, 0x01010101u, unsigned(__sum)));
    return __has_sign ? __dp2a_lo(int(__word), 0x0101, __sum) : int(__dp2a_lo(__word, 0x0101u, unsigned(__sum)));
}

// Sums of the bytes that stand at the same places of packets, two to a word: the caller adds at most `most` packets.
template <class __stored, int __length>
struct byte_columns {
    typedef int kept;
    static constexpr int most = 256, words = __length / 4;
    static constexpr unsigned bias = __stored(-1) < __stored(0) ? 0x80808080u : 0u;  // makes bytes non-negative
    unsigned even[words], odd[words];
    int packets;

    GRIDSTRIDE_INLINED byte_columns() : packets(0) {
#pragma unroll
        for (int __k = 0; __k < words; ++__k) even[__k] = odd[__k] = 0;
    }
    GRIDSTRIDE_INLINED void add(const packet<__stored, __length>& __items) {
        unsigned __bits[words];
        memcpy(__bits, &__items, 4 * words);
#pragma unroll
        for (int __k = 0; __k < words; ++__k) {
            const unsigned __bytes = __bits[__k] ^ bias;
            even[__k] += __bytes & 0x00ff00ffu;
            odd[__k] += __bytes >> 8 & 0x00ff00ffu;
        }
        ++packets;
    }
    // The last packet of a thread, of which there are so many bytes.
    GRIDSTRIDE_INLINED void add_last(packet<__stored, __length>& __items, int __last) {
#pragma unroll
        for (int __j = 0; __j < __length; ++__j)
            if (__j >= __last) __items.items[__j] = nothing();
        add(__items);
    }
    GRIDSTRIDE_INLINED static void add_one(int& __sum, __stored __item, int) { __sum += __item; }
    GRIDSTRIDE_INLINED static int nothing() { return 0; }
    // Of a column, of which the packets are rows `__first` and so many apart, for those that tell rows.
    GRIDSTRIDE_INLINED int value(int __j, int = 0, int = 0) const {
        const unsigned __pair = __j % 2 ? odd[__j / 4] : even[__j / 4];
        return int(__j % 4 / 2 ? __pair >> 16 : __pair & 0xffffu) - packets * int(bias & 0xff);
    }
};

// The largest or smallest of them: those of a word at odd places decide between its halves, whatever lies below them.
template <class __stored, int __length, bool __is_largest>
struct extreme_columns {
    typedef int kept;
    static constexpr int words = __length / 4;
    static constexpr bool has_sign = __stored(-1) < __stored(0);
    unsigned even[words], odd[words];

    GRIDSTRIDE_INLINED extreme_columns() {
#pragma unroll
        for (int __k = 0; __k < words; ++__k) even[__k] = odd[__k] = unsigned(nothing() & 0xff) * 0x01000100u;
    }
    GRIDSTRIDE_INLINED static int nothing() { return has_sign ? (__is_largest ? -128 : 127) : (__is_largest ? 0 : 255); }
    static GRIDSTRIDE_INLINED unsigned of_halves(unsigned __a, unsigned __b) {
        if (__is_largest) return has_sign ? __vmaxs2(__a, __b) : __vmaxu2(__a, __b);
        return has_sign ? __vmins2(__a, __b) : __vminu2(__a, __b);
    }
    GRIDSTRIDE_INLINED void add(const packet<__stored, __length>& __items) {
        unsigned __bits[words];
        memcpy(__bits, &__items, 4 * words);
#pragma unroll
        for (int __k = 0; __k < words; ++__k) add_word(__k, __bits[__k]);
    }
    GRIDSTRIDE_INLINED void add_word(int __k, unsigned __word) {
        even[__k] = of_halves(even[__k], __word << 8);
        odd[__k] = of_halves(odd[__k], __word);
    }
    GRIDSTRIDE_INLINED void add_last(packet<__stored, __length>& __items, int __last) {
#pragma unroll
        for (int __j = 0; __j < __length; ++__j)
            if (__j >= __last) __items.items[__j] = nothing();
        add(__items);
    }
    GRIDSTRIDE_INLINED static void add_one(int& __value, __stored __item, int) {
        if (__is_largest ? __value < int(__item) : int(__item) < __value) __value = __item;
    }
    GRIDSTRIDE_INLINED int value(int __j, int = 0, int = 0) const {
        return __stored((__j % 2 ? odd[__j / 4] : even[__j / 4]) >> (__j % 4 / 2 ? 24 : 8) & 0xff);
    }
};

// What words of small integers are folded into, one after another.
template <class __reduce, class __stored>
struct word_fold;
template <class __reduce, class __stored>
struct word_fold<integer_sum<__reduce>, __stored> {
    int sum;
    GRIDSTRIDE_INLINED word_fold() : sum(0) {}
    static GRIDSTRIDE_INLINED unsigned only(unsigned __word, unsigned __mask) { return __word & __mask; }
    GRIDSTRIDE_INLINED void add(unsigned __word) { sum = with_word<__stored>(__word, sum); }
    GRIDSTRIDE_INLINED int value() const { return sum; }
};
template <class __reduce, bool __is_largest, class __stored>
struct word_fold<byte_extreme<__reduce, __is_largest>, __stored> {
    typedef extreme_columns<__stored, 4, __is_largest> extremes;
    extremes columns;
    static GRIDSTRIDE_INLINED unsigned only(unsigned __word, unsigned __mask) {
        return (__word & __mask) | (unsigned(extremes::nothing() & 0xff) * 0x01010101u & ~__mask);
    }
    GRIDSTRIDE_INLINED void add(unsigned __word) { columns.add_word(0, __word); }
    GRIDSTRIDE_INLINED int value() const {
        const unsigned __halves = extremes::of_halves(columns.even[0], columns.odd[0]);
        const int __low = __stored(__halves >> 8 & 0xff), __high = __stored(__halves >> 24);
        return (__low < __high) == __is_largest ? __high : __low;
    }
};

// Which of four bytes come after so many.
GRIDSTRIDE_INLINED unsigned bytes_from(int __byte) { return __byte <= 0 ? ~0u : __byte >= 4 ? 0u : ~0u << __byte * 8; }

// The fold of those elements that are in so many bytes from one on; words without any are left out where these are known.
template <class __reduce, class __stored, int __bytes, bool __are_known>
GRIDSTRIDE_INLINED int fold_of_some(const void* __items, int __from, int __end) {
    constexpr int __words = (__bytes + 3) / 4;
    unsigned __bits[__words] = {};
    memcpy(__bits, __items, __bytes);
    word_fold<__reduce, __stored> __fold;
#pragma unroll
    for (int __k = 0; __k < __words; ++__k) {
        const unsigned __own = bytes_from(__from - 4 * __k) & ~bytes_from(__end - 4 * __k);
        if (!__are_known || __own) __fold.add(__fold.only(__bits[__k], __own));
    }
    return __fold.value();
}

// Fold such elements of a packet, or of the word that it makes.
template <bool __are_known, class __folding, class __reduce, class __stored, int __length, template <class, int> class __words>
GRIDSTRIDE_INLINED void add_integers(const __reduce& __do, __folding& __sum, const __words<__stored, __length>& __items,
                                     int __from, int __end) {
    constexpr int __size = sizeof(__stored);
    __sum.add(__do, static_cast<typename __folding::type>(
                        fold_of_some<__reduce, __stored, __length * __size, __are_known>(&__items, __from * __size, __end * __size)));
}

// Whether what is folded are bytes that stand in words, and what holds their columns.
template <class __reduce, class... __operands>
struct folds_bytes { static constexpr bool value = false; };
template <class __reduce, class __operand>
struct folds_bytes<integer_sum<__reduce>, __operand> { static constexpr bool value = sizeof(typename __operand::stored) == 1; };
template <class __reduce, bool __is_largest, class __operand>
struct folds_bytes<byte_extreme<__reduce, __is_largest>, __operand> { static constexpr bool value = true; };
template <class __reduce, class __stored, int __length>
struct columns_in_words;
// The same of no more than 1 << 15 rows.
template <class __reduce, class __stored, int __length>
struct columns_of_few : columns_in_words<__reduce, __stored, __length> {};
// What a thread has of a column, of which an element of row `__row` is at `__at`.
GRIDSTRIDE_INLINED int with_any(int __kept, const char*, int) { return __kept; }
template <class __reduce, class __stored, int __length>
struct columns_in_words<integer_sum<__reduce>, __stored, __length> { typedef byte_columns<__stored, __length> type; };
template <class __reduce, bool __is_largest, class __stored, int __length>
struct columns_in_words<byte_extreme<__reduce, __is_largest>, __stored, __length> {
    typedef extreme_columns<__stored, __length, __is_largest> type;
};

// Their values are joined as integers, and become values of the fold last, given the first row's place.
template <class __folding, class __reduce>
GRIDSTRIDE_INLINED void joined(const __reduce& __do, __folding& __sum, const __folding& __other) { __sum.add(__do, __other); }
template <class __reduce>
GRIDSTRIDE_INLINED void joined(const __reduce&, int& __sum, const int& __other) { __sum += __other; }
template <class __reduce, bool __is_largest>
GRIDSTRIDE_INLINED void joined(const byte_extreme<__reduce, __is_largest>&, int& __value, const int& __other) {
    if (__is_largest ? __value < __other : __other < __value) __value = __other;
}
// The value of one of several columns that make a result, given the first row, the distance of places from row to row, and
// the place in a row.
template <class __folding, class __value, class __reduce>
GRIDSTRIDE_INLINED __value of_column(const __reduce&, const __folding&, const __value& __of, long long, long long, long long) { return __of; }
template <class __folding, class __reduce>
GRIDSTRIDE_INLINED __folding as_folded(const __reduce&, const __folding&, const __folding& __sum, long long) { return __sum; }
template <class __folding, class __reduce>
GRIDSTRIDE_INLINED __folding as_folded(const __reduce& __do, __folding __start, int __sum, long long) {
    __start.add(__do, static_cast<typename __folding::type>(__sum));
    return __start;
}

}

#endif
