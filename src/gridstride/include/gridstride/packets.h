// Packets: consecutive elements of a row that a thread loads or stores with one instruction where they allow it.
#ifndef GRIDSTRIDE_PACKETS_H
#define GRIDSTRIDE_PACKETS_H

#include <gridstride/between_words.h>
#include <gridstride/indices.h>

namespace gridstride {

// One element for all of a packet.
template <int __length, class __stored>
GRIDSTRIDE_INLINED void load_repeated(packet<__stored, __length>& __to, const char* __at) {
    copy(__to.items[0], *reinterpret_cast<const __stored*>(__at));
#pragma unroll
    for (int __k = 1; __k < __length; ++__k) __to.items[__k] = __to.items[0];
}

// Elements `__first` to `__last` of a packet whose element 0 is, or would be, at `__at`.
template <int __length, class __stored>
GRIDSTRIDE_INLINED void load_packet(packet<__stored, __length>& __to, const char* __at, long long __step, int __first,
                                    int __last) {
    if (__step == 0) {
        load_repeated(__to, __at);
    } else if (__step == sizeof(__stored) && __first == 0 && __last == __length &&
               whole<__length, __stored>::fits(__at)) {
        whole<__length, __stored>::load(__to, __at);
    } else if (__step == sizeof(__stored) && __first == 0 && __last == __length && between<__length, __stored>::load(__to, __at)) {
        return;
    } else if (__first == 0 && __last == __length && every_second<__length, __stored>::load(__to, __at, __step)) {
        return;
    } else if (__first == 0 && __last == __length && backwards<__length, __stored>::load(__to, __at, __step)) {
        return;
    } else {
#pragma unroll
        for (int __k = 0; __k < __length; ++__k)
            if (__k >= __first && __k < __last) copy(__to.items[__k], *reinterpret_cast<const __stored*>(__at + __k * __step));
    }
}

template <int __length, class __stored>
GRIDSTRIDE_INLINED void store_packet(const packet<__stored, __length>& __from, char* __at, long long __step, int __first,
                                     int __last) {
    if (__step == sizeof(__stored) && __first == 0 && __last == __length && whole<__length, __stored>::fits(__at)) {
        whole<__length, __stored>::store(__from, __at);
    } else {
#pragma unroll
        for (int __k = 0; __k < __length; ++__k)
            if (__k >= __first && __k < __last) *reinterpret_cast<__stored*>(__at + __k * __step) = __from.items[__k];
    }
}

}

#endif
