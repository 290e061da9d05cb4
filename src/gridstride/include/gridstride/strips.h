// `strips`: a loop over elements of planes whose side y is so short that an operand that lies along y lies along x as well:
// what a block needs of it is one stretch of memory.
#ifndef GRIDSTRIDE_STRIPS_H
#define GRIDSTRIDE_STRIPS_H

#include <gridstride/turning.h>

namespace gridstride {

// The stretch of memory of a turned operand as it is, with gaps between rows of banks, and where it begins in a word.
template <class __operand, int __length, bool __are_words>
struct strip_memory {
    typedef typename __operand::stored stored;
    typedef packet<stored, __length> items;
    static constexpr int size = sizeof(stored), gap = size < 4 ? 4 : size, at_once = __are_words ? 3 : 6, word = 16;

    char* base;
    char* from;   // the word in memory in which the stretch begins
    int x;        // of the first element
    unsigned first, pitch, end;  // bytes from there on: of that element, from one x to the next, behind the last one
    unsigned here;

    static GRIDSTRIDE_INLINED unsigned with_gaps(unsigned __bytes) { return __bytes + __bytes / (32 * gap) * gap; }

    template <class __turned, class __part>
    GRIDSTRIDE_INLINED int begin(char* __shared, const __part& __plane, const __turned& __all) {
        base = __shared;
        pitch = static_cast<unsigned>(__all.source.step);
        x = __plane.is_shifted && __plane.x > 0 ? -__length : 0;
        char* __at = __all.at(__plane, x, 0);
        first = static_cast<unsigned>(reinterpret_cast<unsigned long long>(__at) % word);
        from = __at - first;
        end = first + (__plane.to - x - 1) * pitch + __plane.height * size;
        return int((with_gaps((__plane.width + __length) * pitch + word) + 2 * word) / word * word);
    }
    GRIDSTRIDE_INLINED char* at(int __x, int __y) const {
        return base + with_gaps(byte(__x, __y));
    }
    GRIDSTRIDE_INLINED unsigned byte(int __x, int __y) const { return first + (__x - x) * pitch + __y * size; }
    GRIDSTRIDE_INLINED void stand(int __x, int __y) { here = byte(__x, __y); }
    GRIDSTRIDE_INLINED void descend(int) {}
    GRIDSTRIDE_INLINED void load(items& __to, int __phase) const {
        const unsigned __byte = here - __phase * pitch;
#pragma unroll
        for (int __k = 0; __k < __length; ++__k)
            copy(__to.items[__k], *reinterpret_cast<const stored*>(base + with_gaps(__byte + __k * pitch)));
    }
    GRIDSTRIDE_INLINED void store(const items& __from, int __phase) const {
        const unsigned __byte = here - __phase * pitch;
#pragma unroll
        for (int __k = 0; __k < __length; ++__k)
            copy(*reinterpret_cast<stored*>(base + with_gaps(__byte + __k * pitch)), __from.items[__k]);
    }

    template <class __turned, class __part>
    GRIDSTRIDE_INLINED void bring(const __turned&, const __part&) const {
#pragma unroll 1
        for (unsigned __at = threadIdx.x * word; __at < end; __at += turning_threads * word * at_once) {
            uint4 __words[at_once];
#pragma unroll
            for (int __k = 0; __k < at_once; ++__k)
                if (__at + __k * turning_threads * word < end)
                    __words[__k] = *reinterpret_cast<const uint4*>(from + __at + __k * turning_threads * word);
#pragma unroll
            for (int __k = 0; __k < at_once; ++__k) {
                if (__at + __k * turning_threads * word >= end) break;
                unsigned* __to = reinterpret_cast<unsigned*>(base + with_gaps(__at + __k * turning_threads * word));
                __to[0] = __words[__k].x;
                __to[1] = __words[__k].y;
                __to[2] = __words[__k].z;
                __to[3] = __words[__k].w;
            }
        }
    }
    template <class __turned, class __part>
    GRIDSTRIDE_INLINED void take_away(const __turned&, const __part&) const {
#pragma unroll 1
        for (unsigned __at = threadIdx.x * word; __at < end; __at += turning_threads * word) {
            const char* __waiting = base + with_gaps(__at);
            if (__at >= first && __at + word <= end) {
                const unsigned* __bits = reinterpret_cast<const unsigned*>(__waiting);
                const uint4 __whole = {__bits[0], __bits[1], __bits[2], __bits[3]};
                *reinterpret_cast<uint4*>(from + __at) = __whole;
                continue;
            }
#pragma unroll 1
            for (unsigned __k = __at < first ? first - __at : 0; __k < word && __at + __k < end; __k += size)
                copy(*reinterpret_cast<stored*>(from + __at + __k), *reinterpret_cast<const stored*>(__waiting + __k));
        }
    }
};

// A thread takes every so-many-th packet of all rows.
template <int __length>
struct way_along {
    int x, y;
    unsigned number, packets;
    template <class __part>
    GRIDSTRIDE_INLINED explicit way_along(const __part& __plane)
        : x(0), y(0), number(threadIdx.x), packets(__plane.is_shifted ? __plane.width / __length
                                                                      : (__plane.to + __length - 1) / __length) {}
    template <class __part, class... __turned>
    GRIDSTRIDE_INLINED bool stand(const __part& __plane, __turned&... __all) {
        if (number >= packets * __plane.height) return false;
        y = number / packets;
        x = (number - y * packets) * __length;
        swallow(__all.stand(__plane, x, y)...);
        return true;
    }
    template <class __part, class... __turned>
    GRIDSTRIDE_INLINED bool go_on(const __part& __plane, __turned&... __all) {
        number += turning_threads;
        return stand(__plane, __all...);
    }
};

template <bool __are_words, int __length, class __operation, int __axes, class... __turned>
GRIDSTRIDE_INLINED void run_strip(const __operation& __do, const element_space<__axes>& __space, char* __shared,
                                  __turned&&... __all) {
    plane_part<false> __part(__space, int(__space.width));
    enter_plane(__part, __space, __space.column, __all...);
    run_plane<__are_words, __length>(__do, __space, __part, way_along<__length>(__part), __shared, __all...);
}

// Are words: packets of a length of what is not turned are whole words, and x is whole packets.
template <bool __are_words, int __length, class __operation, int __axes, class... __operands>
GRIDSTRIDE_INLINED void strips(const __operation& __do, const element_space<__axes>& __space, char* __shared,
                               const __operands&... __all) {
    run_strip<__are_words, __length>(
        __do, __space, __shared,
        turned<__operands, __length, false, __are_words, strip_memory<__operands, __length, __are_words>>(__all)...);
}

}

#endif
