// Packets of elements that wait in shared memory, wherever they begin.
#ifndef GRIDSTRIDE_WAITING_PACKETS_H
#define GRIDSTRIDE_WAITING_PACKETS_H

#include <gridstride/packets.h>

namespace gridstride {

template <int __length, class __stored, bool = sizeof(__stored) < 4 && __length * sizeof(__stored) % 4 == 0>
struct waiting_packet {
    typedef typename whole<__length, __stored>::type type;
    static GRIDSTRIDE_INLINED type load(const char* __at) {
        packet<__stored, __length> __items;
#pragma unroll
        for (int __j = 0; __j < __length; ++__j) copy(__items.items[__j], reinterpret_cast<const __stored*>(__at)[__j]);
        return whole<__length, __stored>::packed(__items);
    }
    static GRIDSTRIDE_INLINED type load(const char* __at, unsigned __shift) { return load(__at + __shift / 8 % 4); }
};
template <int __length, class __stored>
struct waiting_packet<__length, __stored, true> {
    typedef typename whole<__length, __stored>::type type;
    static constexpr int words = sizeof(__stored) * __length / 4;
    static GRIDSTRIDE_INLINED type load(const char* __at) {
        const unsigned __place = static_cast<unsigned>(reinterpret_cast<unsigned long long>(__at));
        return load(__at - __place % 4, __place * 8);
    }
    // A packet that begins so many bits into a word, or whole words on.
    static GRIDSTRIDE_INLINED type load(const char* __at, unsigned __shift) {
        const unsigned* __from = reinterpret_cast<const unsigned*>(__at);
        unsigned __bits[words + 1];
#pragma unroll
        for (int __k = 0; __k <= words; ++__k) __bits[__k] = __from[__k];
        shift_words<words>(__bits, __shift);
        type __whole;
        memcpy(&__whole, __bits, 4 * words);
        return __whole;
    }
};

}

#endif
