// Packets that are no word: they begin between two, go backwards, or have every second element.
#ifndef GRIDSTRIDE_BETWEEN_WORDS_H
#define GRIDSTRIDE_BETWEEN_WORDS_H

#include <gridstride/words.h>

namespace gridstride {

// A packet of consecutive elements between two words, from the words that it touches: of 16 bytes, or of four.
template <int __length, class __stored>
struct kind_between {
    static constexpr int bytes = sizeof(__stored) * __length;
    static constexpr int value = bytes == 16 ? 16 : bytes % 4 == 0 && sizeof(__stored) <= 2 ? 4 : 0;
};
template <int __length, class __stored, int = kind_between<__length, __stored>::value>
struct between {
    static GRIDSTRIDE_INLINED bool load(packet<__stored, __length>&, const char*) { return false; }
};
template <int __length, class __stored>
struct between<__length, __stored, 4> {
    static GRIDSTRIDE_INLINED bool load(packet<__stored, __length>& __to, const char* __at) {
        constexpr int __words = sizeof(__stored) * __length / 4;
        const unsigned __shift = bytes_past<4>(__at) * 8;
        const unsigned* __from = reinterpret_cast<const unsigned*>(__at - __shift / 8);
        unsigned __bits[__words + 1];
#pragma unroll
        for (int __k = 0; __k < __words; ++__k) __bits[__k] = __from[__k];
        __bits[__words] = __shift ? __from[__words] : 0;
        shift_words<__words>(__bits, __shift);
        memcpy(&__to, __bits, 4 * __words);
        return true;
    }
};
template <int __length, class __stored>
struct between<__length, __stored, 16> {
    static GRIDSTRIDE_INLINED unsigned past_word(const char* __at) { return bytes_past<16>(__at); }
    // The 16 bytes that begin `__off` bytes, not 0, into two words.
    static GRIDSTRIDE_INLINED uint4 joined(uint4 __low, uint4 __high, unsigned __off) {
        unsigned __bits[8] = {__low.x, __low.y, __low.z, __low.w, __high.x, __high.y, __high.z, __high.w};
        if (__off & 8)
#pragma unroll
            for (int __k = 0; __k < 6; ++__k) __bits[__k] = __bits[__k + 2];
        if (alignof(__stored) < 8 && __off & 4)
#pragma unroll
            for (int __k = 0; __k < 5; ++__k) __bits[__k] = __bits[__k + 1];
        if (sizeof(__stored) < 4) shift_words<4>(__bits, __off % 4 * 8);
        uint4 __whole = {__bits[0], __bits[1], __bits[2], __bits[3]};
        return __whole;
    }
    static GRIDSTRIDE_INLINED bool load(packet<__stored, __length>& __to, const char* __at) {
        const unsigned __off = past_word(__at);
        const uint4* __from = reinterpret_cast<const uint4*>(__at - __off);
        whole<__length, __stored>::unpack(__to, joined(__from[0], __from[1], __off));
        return true;
    }
};

// Consecutive elements on their way: the words that they touch, which are joined when those of all operands are under
// way. Packets of other sizes than 16 bytes arrive at once.
template <int __length, class __stored, bool = sizeof(__stored) * __length == 16>
struct arriving {
    packet<__stored, __length> items;
    GRIDSTRIDE_INLINED void load(const char* __at) {
        if (whole<__length, __stored>::fits(__at)) whole<__length, __stored>::load(items, __at);
        else if (!between<__length, __stored>::load(items, __at))
#pragma unroll
            for (int __k = 0; __k < __length; ++__k)
                copy(items.items[__k], reinterpret_cast<const __stored*>(__at)[__k]);
    }
    GRIDSTRIDE_INLINED void load(const char* __at, unsigned) { load(__at); }
    GRIDSTRIDE_INLINED void load_cached(const char* __at, unsigned) { load(__at); }
    GRIDSTRIDE_INLINED void load_word(const char* __at) { whole<__length, __stored>::load(items, __at); }
    GRIDSTRIDE_INLINED void join(const char*) {}
    GRIDSTRIDE_INLINED void join(unsigned) {}
    GRIDSTRIDE_INLINED void join_cached(unsigned) {}
    GRIDSTRIDE_INLINED void pack(const packet<__stored, __length>& __from) { items = __from; }
    GRIDSTRIDE_INLINED void unpack(packet<__stored, __length>& __to) const { __to = items; }
};
template <int __length, class __stored>
struct arriving<__length, __stored, true> {
    typedef between<__length, __stored> joining;
    uint4 low, high;
    GRIDSTRIDE_INLINED void load(const char* __at) { load(__at, joining::past_word(__at)); }
    GRIDSTRIDE_INLINED void join(const char* __at) { join(joining::past_word(__at)); }
    // The same for elements that begin so many bytes into a word.
    GRIDSTRIDE_INLINED void load(const char* __at, unsigned __past) {
        const uint4* __from = reinterpret_cast<const uint4*>(__at - __past);
        low = __from[0];
        if (__past) high = __from[1];
    }
    GRIDSTRIDE_INLINED void join(unsigned __past) {
        if (__past) low = joining::joined(low, high, __past);
    }
    // The same by words of four or eight bytes: fewer instructions, and more requests, which a cache must serve.
    GRIDSTRIDE_INLINED void load_cached(const char* __at, unsigned __past) {
        if (sizeof(__stored) >= 8) {
            const uint2* __pairs = reinterpret_cast<const uint2*>(__at);
            const uint4 __both = {__pairs[0].x, __pairs[0].y, __pairs[1].x, __pairs[1].y};
            low = __both;
            return;
        }
        const unsigned* __from = reinterpret_cast<const unsigned*>(__at - __past % 4);
        const uint4 __four = {__from[0], __from[1], __from[2], __from[3]};
        low = __four;
        if (sizeof(__stored) < 4 && __past % 4) high.x = __from[4];
    }
    GRIDSTRIDE_INLINED void join_cached(unsigned __past) {
        if (sizeof(__stored) >= 4 || __past % 4 == 0) return;
        const unsigned __shift = __past % 4 * 8;
        const uint4 __joined = {__funnelshift_r(low.x, low.y, __shift), __funnelshift_r(low.y, low.z, __shift),
                                __funnelshift_r(low.z, low.w, __shift), __funnelshift_r(low.w, high.x, __shift)};
        low = __joined;
    }
    GRIDSTRIDE_INLINED void load_word(const char* __at) { low = *reinterpret_cast<const uint4*>(__at); }
    GRIDSTRIDE_INLINED void pack(const packet<__stored, __length>& __from) { low = whole<__length, __stored>::packed(__from); }
    GRIDSTRIDE_INLINED void unpack(packet<__stored, __length>& __to) const { whole<__length, __stored>::unpack(__to, low); }
};

// The same where each packet begins at another place of a word, which it remembers; by smaller words, if that is said.
template <class __stored, int __length, bool __is_cached>
struct arriving_anywhere {
    arriving<__length, __stored> words;
    unsigned past;
    GRIDSTRIDE_INLINED void load(const char* __at) {
        past = bytes_past<16>(__at);
        if (__is_cached) words.load_cached(__at, past);
        else words.load(__at, past);
    }
    GRIDSTRIDE_INLINED void unpack(packet<__stored, __length>& __to) {
        if (__is_cached) words.join_cached(past);
        else words.join(past);
        words.unpack(__to);
    }
};

// Consecutive elements backwards, from the words of 16 bytes that they touch.
template <int __length, class __stored, bool = kind_between<__length, __stored>::value == 16>
struct backwards {
    static GRIDSTRIDE_INLINED bool load(packet<__stored, __length>&, const char*, long long) { return false; }
};
template <int __length, class __stored>
struct backwards<__length, __stored, true> {
    static GRIDSTRIDE_INLINED unsigned turned(unsigned __word) {
        return sizeof(__stored) == 1 ? __byte_perm(__word, 0, 0x0123) : sizeof(__stored) == 2 ? __byte_perm(__word, 0, 0x1032) : __word;
    }
    static GRIDSTRIDE_INLINED uint4 turned(const uint4& __word) {
        const uint4 __pairs = {__word.z, __word.w, __word.x, __word.y};
        const uint4 __all = {turned(__word.w), turned(__word.z), turned(__word.y), turned(__word.x)};
        return sizeof(__stored) == 8 ? __pairs : __all;
    }
    static GRIDSTRIDE_INLINED bool load(packet<__stored, __length>& __to, const char* __at, long long __step) {
        if (__step != -static_cast<long long>(sizeof(__stored))) return false;
        const char* const __first = __at - (__length - 1) * sizeof(__stored);
        arriving<__length, __stored> __words;
        __words.load(__first);
        __words.join(__first);
        whole<__length, __stored>::unpack(__to, sizeof(__stored) == 16 ? __words.low : turned(__words.low));
        return true;
    }
};

// Every second of neighboring elements of one or two bytes, from the words of 16 bytes that they touch; backwards too.
template <int __length, class __stored, bool = sizeof(__stored) <= 2 && sizeof(__stored) * __length == 16>
struct every_second {
    static GRIDSTRIDE_INLINED bool load(packet<__stored, __length>&, const char*, long long) { return false; }
};
template <int __length, class __stored>
struct every_second<__length, __stored, true> {
    typedef between<__length, __stored> joining;
    static GRIDSTRIDE_INLINED uint4 loaded(const char* __at) {
        const unsigned __past = joining::past_word(__at);
        const uint4* __from = reinterpret_cast<const uint4*>(__at - __past);
        uint4 __low = __from[0], __high = __from[1];
        if (__past) {
            uint4 __last = __high;
            if (__past > sizeof(__stored)) __last = __from[2];
            __low = joining::joined(__low, __high, __past);
            __high = joining::joined(__high, __last, __past);
        }
        constexpr unsigned __which = sizeof(__stored) == 1 ? 0x6420 : 0x5410;
        const uint4 __bits = {__byte_perm(__low.x, __low.y, __which), __byte_perm(__low.z, __low.w, __which),
                              __byte_perm(__high.x, __high.y, __which), __byte_perm(__high.z, __high.w, __which)};
        return __bits;
    }
    static GRIDSTRIDE_INLINED bool load(packet<__stored, __length>& __to, const char* __at, long long __step) {
        constexpr long long __two = 2 * sizeof(__stored);
        if (__step != __two && __step != -__two) return false;
        const uint4 __all = loaded(__step > 0 ? __at : __at - (__length - 1) * __two);
        whole<__length, __stored>::unpack(__to, __step > 0 ? __all : backwards<__length, __stored>::turned(__all));
        return true;
    }
};

}

#endif
