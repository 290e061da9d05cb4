// Packets as words: consecutive elements of a row that a thread loads or stores with one instruction.
#ifndef GRIDSTRIDE_WORDS_H
#define GRIDSTRIDE_WORDS_H

#include <gridstride/packs.h>

namespace gridstride {

template <int __bytes> struct word { typedef void type; };
template <> struct word<1> { typedef unsigned char type; };
template <> struct word<2> { typedef unsigned short type; };
template <> struct word<4> { typedef unsigned int type; };
template <> struct word<8> { typedef uint2 type; };
template <> struct word<16> { typedef uint4 type; };

// 16 bytes of the largest element; 1 where that is no power of two.
template <class... __operands>
__device__ constexpr int packet_length() {
    return larger(int(sizeof(typename __operands::stored))...) > 16 ? 1
         : 16 % larger(int(sizeof(typename __operands::stored))...) ? 1
                                                                     : 16 / larger(int(sizeof(typename __operands::stored))...);
}

template <class __stored, int __length>
struct alignas(__length * sizeof(__stored) % 16 == 0 ? 16 : alignof(__stored)) packet { __stored items[__length]; };

template <class __stored, int __length>
struct is_one_word {
    static constexpr int bytes = sizeof(__stored) * __length;
    static constexpr bool value = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16;
};

// Elements in words. What was compared takes fewer instructions to add to a word than to shift into it.
template <class __stored, int __bytes>
struct as_words {
    static GRIDSTRIDE_INLINED void copy(void* __to, const __stored* __from) { memcpy(__to, __from, __bytes); }
};
template <int __bytes>
struct as_words<bool, __bytes> {
    static GRIDSTRIDE_INLINED void copy(void* __to, const bool* __from) {
        if (__bytes % 4) {
            memcpy(__to, __from, __bytes);
            return;
        }
        unsigned __bits[__bytes / 4 + 1] = {};
#pragma unroll
        for (int __k = 0; __k < __bytes / 4 * 4; ++__k)
            if (__from[__k]) __bits[__k / 4] += 1u << __k % 4 * 8;
        memcpy(__to, __bits, __bytes);
    }
};

template <int __length, class __stored, bool = is_one_word<__stored, __length>::value>
struct whole {
    typedef unsigned char type;
    static GRIDSTRIDE_INLINED bool fits(const char*) { return false; }
    static GRIDSTRIDE_INLINED void unpack(packet<__stored, __length>&, type) {}
    static GRIDSTRIDE_INLINED type packed(const packet<__stored, __length>&) { return 0; }
    static GRIDSTRIDE_INLINED void load(packet<__stored, __length>&, const char*) {}
    static GRIDSTRIDE_INLINED void store(const packet<__stored, __length>&, char*) {}
};
template <int __length, class __stored>
struct whole<__length, __stored, true> {
    typedef typename word<sizeof(__stored) * __length>::type type;
    static GRIDSTRIDE_INLINED bool fits(const char* __at) {
        return reinterpret_cast<unsigned long long>(__at) % sizeof(type) == 0;
    }
    static GRIDSTRIDE_INLINED void unpack(packet<__stored, __length>& __to, type __bits) {
        memcpy(&__to, &__bits, sizeof(type));
    }
    static GRIDSTRIDE_INLINED type packed(const packet<__stored, __length>& __from) {
        type __bits;
        as_words<__stored, sizeof(type)>::copy(&__bits, __from.items);
        return __bits;
    }
    static GRIDSTRIDE_INLINED void load(packet<__stored, __length>& __to, const char* __at) {
        unpack(__to, *reinterpret_cast<const type*>(__at));
    }
    static GRIDSTRIDE_INLINED void store(const packet<__stored, __length>& __from, char* __at) {
        *reinterpret_cast<type*>(__at) = packed(__from);
    }
};

// A word on its way. Loads of several operands are under way at once only where nothing looks at the first before the
// last is issued: so all are loaded as words, and taken apart afterwards.
template <class __stored, int __length>
struct word_of {
    typename whole<__length, __stored>::type bits;
    static GRIDSTRIDE_INLINED bool is_at(const char* __at, long long __step) {
        return __step == sizeof(__stored) && whole<__length, __stored>::fits(__at);
    }
    GRIDSTRIDE_INLINED int load(const char* __at) {
        bits = *reinterpret_cast<const typename whole<__length, __stored>::type*>(__at);
        return 0;
    }
    GRIDSTRIDE_INLINED void pack(const packet<__stored, __length>& __from) {
        bits = whole<__length, __stored>::packed(__from);
    }
    GRIDSTRIDE_INLINED int unpack(packet<__stored, __length>& __to) const {
        whole<__length, __stored>::unpack(__to, bits);
        return 0;
    }
};

// How many bytes an address is behind a multiple of so many.
template <int __multiple>
GRIDSTRIDE_INLINED unsigned bytes_past(const void* __at) {
    return static_cast<unsigned>(reinterpret_cast<unsigned long long>(__at)) % __multiple;
}

// So many bytes of a word, if any, as a mask.
GRIDSTRIDE_INLINED unsigned mask_of(int __bytes) { return __bytes >= 4 ? ~0u : __bytes <= 0 ? 0u : ~(~0u << __bytes * 8); }

// Words between words: each begins so many bits, modulo 32, into a given one. One more is given than is made.
template <int __count>
GRIDSTRIDE_INLINED void shift_words(unsigned* __bits, unsigned __shift) {
#pragma unroll
    for (int __k = 0; __k < __count; ++__k) __bits[__k] = __funnelshift_r(__bits[__k], __bits[__k + 1], __shift);
}

}

#endif
