// Packets of `flat_rows` that cover several rows: how they are made of the words that their elements lie in.
#ifndef GRIDSTRIDE_FLAT_PACKETS_H
#define GRIDSTRIDE_FLAT_PACKETS_H

#include <gridstride/packets.h>

namespace gridstride {

// A packet of small elements that are consecutive in one row, and in the next from `__left` elements on: both from the words
// of four bytes that they touch. Nothing is read of other words.
template <int __length, class __stored, bool = sizeof(__stored) <= 2 && sizeof(__stored) * __length == 16>
struct of_two_rows {
    static constexpr bool is_made = false;
};
template <int __length, class __stored>
struct of_two_rows<__length, __stored, true> {
    static constexpr bool is_made = true;
    // The words of the bytes from one on to another, not included, of 16.
    static GRIDSTRIDE_INLINED void load_part(unsigned (&__bits)[5], const char* __at, int __from, int __to) {
        const int __past = int(bytes_past<4>(__at));
        const unsigned* __words = reinterpret_cast<const unsigned*>(__at - __past);
#pragma unroll
        for (int __k = 0; __k < 5; ++__k) {
            __bits[__k] = 0;
            if (4 * __k - __past < __to && 4 * __k + 4 - __past > __from) __bits[__k] = __words[__k];
        }
    }
    static GRIDSTRIDE_INLINED void load(unsigned (&__bits)[2][5], const char* __at, int __left, long long __gap) {
        const int __end = __left * int(sizeof(__stored));
        load_part(__bits[0], __at, 0, __end < 16 ? __end : 16);
#pragma unroll
        for (int __k = 0; __k < 5; ++__k) __bits[1][__k] = 0;
        if (__end < 16) load_part(__bits[1], __at + __gap, __end, 16);
    }
    static GRIDSTRIDE_INLINED uint4 joined(const unsigned (&__bits)[2][5], const char* __at, int __left, long long __gap) {
        unsigned __all[4];
#pragma unroll
        for (int __k = 0; __k < 4; ++__k) {
            const unsigned __own = __funnelshift_r(__bits[0][__k], __bits[0][__k + 1], bytes_past<4>(__at) * 8);
            const unsigned __next = __funnelshift_r(__bits[1][__k], __bits[1][__k + 1], bytes_past<4>(__at + __gap) * 8);
            const unsigned __mask = mask_of(__left * int(sizeof(__stored)) - 4 * __k);
            __all[__k] = (__own & __mask) | (__next & ~__mask);
        }
        const uint4 __whole = {__all[0], __all[1], __all[2], __all[3]};
        return __whole;
    }
};

// Two elements, of which each is there for one of two rows. Small ones wait as words: else what is loaded of the second one
// is looked at, to be put into one.
template <int __length, class __stored, bool = of_two_rows<__length, __stored>::is_made>
struct two_elements {
    __stored own, next;
    GRIDSTRIDE_INLINED void load(const char* __at, int __left, long long __gap) {
        copy(own, *reinterpret_cast<const __stored*>(__at));
        if (__left < __length) copy(next, *reinterpret_cast<const __stored*>(__at + __gap));
    }
    GRIDSTRIDE_INLINED void unpack(packet<__stored, __length>& __to, int __left) const {
#pragma unroll
        for (int __j = 0; __j < __length; ++__j) copy(__to.items[__j], __j < __left ? own : next);
    }
};
template <int __length, class __stored>
struct two_elements<__length, __stored, true> {
    typedef typename word<sizeof(__stored)>::type bits;
    unsigned own, next;
    GRIDSTRIDE_INLINED void load(const char* __at, int, long long __gap) {
        own = *reinterpret_cast<const bits*>(__at);
        next = *reinterpret_cast<const bits*>(__at + __gap);
    }
    GRIDSTRIDE_INLINED void unpack(packet<__stored, __length>& __to, int __left) const {
        constexpr unsigned __ones = sizeof(__stored) == 1 ? 0x1010101u : 0x10001u;
        unsigned __bits[4];
#pragma unroll
        for (int __k = 0; __k < 4; ++__k) {
            const unsigned __mask = mask_of(__left * int(sizeof(__stored)) - 4 * __k);
            __bits[__k] = (own * __ones & __mask) | (next * __ones & ~__mask);
        }
        memcpy(&__to, __bits, 16);
    }
};

// The elements of a column that a packet covers, of which each is there for a row: at most eight bytes.
template <int __length, class __stored>
struct bytes_of_column {
    static constexpr int size = sizeof(__stored), each = 4 / size;
    unsigned which[__length / each];  // bytes of eight make a word of the packet
    int past, end;                    // bytes before them in a word, and in it to their end

    GRIDSTRIDE_INLINED void begin(const char* __at, int __left, int __row) {
        constexpr unsigned long long __ones = 0x1111111111111111ull;
        unsigned long long __all = size == 1 ? 0 : 0x1010101010101010ull;
        past = int(bytes_past<4>(__at));
        end = past + size;
#pragma unroll 1
        for (; __left < __length; __left += __row) {
            __all += __ones * size << 4 * size * __left;
            end += size;
        }
#pragma unroll
        for (int __k = 0; __k < __length / each; ++__k) which[__k] = static_cast<unsigned>(__all >> 16 * __k) & 0xffff;
    }
    GRIDSTRIDE_INLINED void load(unsigned (&__words)[3], const char* __at) const {
        const unsigned* const __from = reinterpret_cast<const unsigned*>(__at - past);
        __words[0] = __from[0];
        if (end > 4) __words[1] = __from[1];
        if (end > 8) __words[2] = __from[2];
    }
    GRIDSTRIDE_INLINED void unpack(packet<__stored, __length>& __to, const unsigned (&__words)[3]) const {
        const unsigned __low = __funnelshift_r(__words[0], __words[1], past * 8), __high = __funnelshift_r(__words[1], __words[2], past * 8);
        unsigned __all[__length / each];
#pragma unroll
        for (int __k = 0; __k < __length / each; ++__k) __all[__k] = __byte_perm(__low, __high, which[__k]);
        memcpy(&__to, __all, __length * size);
    }
};

// Four bytes that are close to each other: from three words.
struct close_bytes {
    unsigned first, second;  // which of two words, and of what they make and the third one
    int begin_at, end;       // of them

    template <class __each>
    GRIDSTRIDE_INLINED void begin(const char* __row, const __each& __offset) {
        int __at[4];
#pragma unroll
        for (int __j = 0; __j < 4; ++__j) __at[__j] = __offset(__j);
        begin_at = __at[0];
#pragma unroll
        for (int __j = 1; __j < 4; ++__j) begin_at = __at[__j] < begin_at ? __at[__j] : begin_at;
        begin_at -= int(bytes_past<4>(__row + begin_at));
        first = second = 0;
        end = 0;
#pragma unroll
        for (int __j = 0; __j < 4; ++__j) {
            const int __byte = __at[__j] - begin_at;
            end = __byte >= end ? __byte + 1 : end;
            first |= static_cast<unsigned>(__byte & 7) << 4 * __j;
            second |= static_cast<unsigned>(__byte < 8 ? __j : __byte - 4) << 4 * __j;
        }
    }
    GRIDSTRIDE_INLINED void load(unsigned (&__words)[3], const char* __at) const {
        const unsigned* const __from = reinterpret_cast<const unsigned*>(__at);
        __words[0] = __from[0];
        if (end > 4) __words[1] = __from[1];
        if (end > 8) __words[2] = __from[2];
    }
    GRIDSTRIDE_INLINED unsigned picked(const unsigned (&__words)[3]) const {
        return __byte_perm(__byte_perm(__words[0], __words[1], first), __words[2], second);
    }
};

}

#endif
