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
    GRIDSTRIDE_INLINED int sum(int __j) const {
        const unsigned __pair = __j % 2 ? odd[__j / 4] : even[__j / 4];
        return int(__j % 4 / 2 ? __pair >> 16 : __pair & 0xffffu) - packets * int(bias & 0xff);
    }
};

// Whether what is folded are integers of one byte, which are added.
template <class __reduce, class... __operands>
struct adds_bytes { static constexpr bool value = false; };
template <class __reduce, class __operand>
struct adds_bytes<integer_sum<__reduce>, __operand> { static constexpr bool value = sizeof(typename __operand::stored) == 1; };

// Sums of theirs are joined as integers, and become values of the fold last.
template <class __folding, class __reduce>
GRIDSTRIDE_INLINED void joined(const __reduce& __do, __folding& __sum, const __folding& __other) { __sum.add(__do, __other); }
template <class __reduce>
GRIDSTRIDE_INLINED void joined(const __reduce&, int& __sum, const int& __other) { __sum += __other; }
template <class __folding, class __reduce>
GRIDSTRIDE_INLINED __folding as_folded(const __reduce&, const __folding&, const __folding& __sum) { return __sum; }
template <class __folding, class __reduce>
GRIDSTRIDE_INLINED __folding as_folded(const __reduce& __do, __folding __start, int __sum) {
    __start.add(__do, static_cast<typename __folding::type>(__sum));
    return __start;
}

}

#endif
