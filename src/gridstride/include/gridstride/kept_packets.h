// Packets that stay in the cache longer than what else goes through it, where a device can be told so.
#ifndef GRIDSTRIDE_KEPT_PACKETS_H
#define GRIDSTRIDE_KEPT_PACKETS_H

#include <gridstride/packets.h>

namespace gridstride {

template <int __length, class __stored, bool = __length != 1 && sizeof(__stored) * __length == 16>
struct kept {
    static GRIDSTRIDE_INLINED void store(const packet<__stored, __length>& __from, char* __at) {
        store_packet<__length>(__from, __at, sizeof(__stored), 0, __length);
    }
};
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800 && !defined(GRIDSTRIDE_CPU_ABI_VERSION)
template <int __length, class __stored>
struct kept<__length, __stored, true> {
    static GRIDSTRIDE_INLINED void store(const packet<__stored, __length>& __from, char* __at) {
        if (bytes_past<16>(__at) != 0) return kept<__length, __stored, false>::store(__from, __at);
        const auto __whole = whole<__length, __stored>::packed(__from);
        uint4 __words;
        memcpy(&__words, &__whole, sizeof(__words));
        unsigned long long __policy;
        asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(__policy));
        asm volatile("st.global.L2::cache_hint.v4.b32 [%0], {%1, %2, %3, %4}, %5;" ::"l"(__at), "r"(__words.x), "r"(__words.y),
                     "r"(__words.z), "r"(__words.w), "l"(__policy)
                     : "memory");
    }
};
#endif

}

#endif
