// Sums of small integers: several are added by one instruction. Integers that are added may be added in any order and
// in any width that holds the sum, because what does not fit is lost the same way.
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

template <class __stored, int __length>
GRIDSTRIDE_INLINED int sum_of(const packet<__stored, __length>& __items) {
    constexpr int __words = __length * sizeof(__stored) / 4;
    int __sum = 0;
    if (__words > 0) {
        unsigned __bits[__words > 0 ? __words : 1];
        memcpy(__bits, &__items, 4 * __words);
#pragma unroll
        for (int __k = 0; __k < __words; ++__k) __sum = with_word<__stored>(__bits[__k], __sum);
    }
#pragma unroll
    for (int __k = __words * 4 / int(sizeof(__stored)); __k < __length; ++__k) __sum += __items.items[__k];
    return __sum;
}

// Which of four bytes come after so many.
GRIDSTRIDE_INLINED unsigned bytes_from(int __byte) { return __byte <= 0 ? ~0u : __byte >= 4 ? 0u : ~0u << __byte * 8; }

// Of a word's elements from `__from` to before `__end`.
template <class __stored, int __length>
GRIDSTRIDE_INLINED int sum_of_some(const word_of<__stored, __length>& __word, int __from, int __end) {
    constexpr int __words = __length * sizeof(__stored) / 4;
    unsigned __bits[__words];
    memcpy(__bits, &__word.bits, 4 * __words);
    int __sum = 0;
#pragma unroll
    for (int __k = 0; __k < __words; ++__k)
        __sum = with_word<__stored>(__bits[__k] & bytes_from(__from * int(sizeof(__stored)) - 4 * __k) &
                                        ~bytes_from(__end * int(sizeof(__stored)) - 4 * __k), __sum);
    return __sum;
}

// Sums of the bytes that stand at the same places of packets, two to a word: the caller adds at most `most` packets.
template <class __stored, int __length>
struct byte_columns {
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
    GRIDSTRIDE_INLINED static void add_one(int& __sum, __stored __item) { __sum += __item; }
    GRIDSTRIDE_INLINED static int nothing() { return 0; }
    GRIDSTRIDE_INLINED int value(int __j) const {
        const unsigned __pair = __j % 2 ? odd[__j / 4] : even[__j / 4];
        return int(__j % 4 / 2 ? __pair >> 16 : __pair & 0xffffu) - packets * int(bias & 0xff);
    }
};

// The largest or smallest of them: those of a word at odd places decide between its halves, whatever lies below them.
template <class __stored, int __length, bool __is_largest>
struct extreme_columns {
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
        for (int __k = 0; __k < words; ++__k) {
            even[__k] = of_halves(even[__k], __bits[__k] << 8);
            odd[__k] = of_halves(odd[__k], __bits[__k]);
        }
    }
    // Of all elements of a packet.
    template <int __all>
    GRIDSTRIDE_INLINED static int of(const packet<__stored, __all>& __items) {
        unsigned __bits[__all / 4], __even = 0, __odd = 0;
        memcpy(__bits, &__items, __all);
#pragma unroll
        for (int __k = 0; __k < __all / 4; ++__k) {
            __even = __k ? of_halves(__even, __bits[__k] << 8) : __bits[0] << 8;
            __odd = __k ? of_halves(__odd, __bits[__k]) : __bits[0];
        }
        const unsigned __halves = of_halves(__even, __odd);
        const int __low = __stored(__halves >> 8), __high = __stored(__halves >> 24);
        return (__low < __high) == __is_largest ? __high : __low;
    }
    GRIDSTRIDE_INLINED static void add_one(int& __value, __stored __item) {
        if (__is_largest ? __value < int(__item) : int(__item) < __value) __value = __item;
    }
    GRIDSTRIDE_INLINED int value(int __j) const {
        return __stored((__j % 2 ? odd[__j / 4] : even[__j / 4]) >> (__j % 4 / 2 ? 24 : 8));
    }
};

// Whether what is folded are bytes that stand in words, and what holds their columns.
template <class __reduce, class... __operands>
struct folds_bytes { static constexpr bool value = false; };
template <class __reduce, class __operand>
struct folds_bytes<integer_sum<__reduce>, __operand> { static constexpr bool value = sizeof(typename __operand::stored) == 1; };
template <class __reduce, bool __is_largest, class __operand>
struct folds_bytes<byte_extreme<__reduce, __is_largest>, __operand> { static constexpr bool value = true; };
template <class __reduce, class __stored, int __length>
struct columns_in_words;
template <class __reduce, class __stored, int __length>
struct columns_in_words<integer_sum<__reduce>, __stored, __length> { typedef byte_columns<__stored, __length> type; };
template <class __reduce, bool __is_largest, class __stored, int __length>
struct columns_in_words<byte_extreme<__reduce, __is_largest>, __stored, __length> {
    typedef extreme_columns<__stored, __length, __is_largest> type;
};

// Their values are joined as integers, and become values of the fold last.
template <class __folding, class __reduce>
GRIDSTRIDE_INLINED void joined(const __reduce& __do, __folding& __sum, const __folding& __other) { __sum.add(__do, __other); }
template <class __reduce>
GRIDSTRIDE_INLINED void joined(const __reduce&, int& __sum, const int& __other) { __sum += __other; }
template <class __reduce, bool __is_largest>
GRIDSTRIDE_INLINED void joined(const byte_extreme<__reduce, __is_largest>&, int& __value, const int& __other) {
    if (__is_largest ? __value < __other : __other < __value) __value = __other;
}
template <class __folding, class __reduce>
GRIDSTRIDE_INLINED __folding as_folded(const __reduce&, const __folding&, const __folding& __sum) { return __sum; }
template <class __folding, class __reduce>
GRIDSTRIDE_INLINED __folding as_folded(const __reduce& __do, __folding __start, int __sum) {
    __start.add(__do, static_cast<typename __folding::type>(__sum));
    return __start;
}

}

#endif
