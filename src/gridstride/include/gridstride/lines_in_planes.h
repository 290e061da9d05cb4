// How `interleaved` brings lines that are in planes into rows, forwards or backwards: a warp takes words that lie in one plane,
// and elements where a word would go on in the next one.
#ifndef GRIDSTRIDE_LINES_IN_PLANES_H
#define GRIDSTRIDE_LINES_IN_PLANES_H

#include <gridstride/row_memory.h>

namespace gridstride {

// The elements that a thread takes as one word.
template <class __stored, bool = (sizeof(__stored) < 4)>
struct taken_word {
    static constexpr int size = sizeof(__stored), length = 4 / size;
    unsigned low, high, past;
    GRIDSTRIDE_INLINED void load(const char* __from) {
        past = bytes_past<4>(__from);
        const unsigned* const __words = reinterpret_cast<const unsigned*>(__from - past);
        low = __words[0];
        high = __words[(past + 3) / 4];  // nothing is read of other words
    }
    template <bool __backwards>
    GRIDSTRIDE_INLINED typename word<size>::type item(int __j) const {
        const unsigned __all = __funnelshift_r(low, high, past * 8);
        return static_cast<typename word<size>::type>(__all >> (__backwards ? length - 1 - __j : __j) * size * 8);
    }
};
template <class __stored>
struct taken_word<__stored, false> {
    static constexpr int size = sizeof(__stored), length = 1;
    typename word<size>::type all;
    GRIDSTRIDE_INLINED void load(const char* __from) { all = *reinterpret_cast<const typename word<size>::type*>(__from); }
    template <bool>
    GRIDSTRIDE_INLINED typename word<size>::type item(int) const { return all; }
};

template <bool __backwards>
struct lines_in_planes {
    template <class __operand, class __memory>
    static GRIDSTRIDE_INLINED void bring(const __memory& __rows, const __operand& __source, const char* __corner, const plane_part<false>& __part) {
        typedef typename __operand::stored stored;
        typedef taken_word<stored> taken;
        typedef typename word<taken::size>::type bits;
        constexpr int __words = 4, __length = taken::length, __apart = 32 * __length, __chunk = __words * __apart;
        const long long __step = __backwards ? -taken::size : taken::size;
#pragma unroll 1
        for (int __begin = threadIdx.x / 32 * __chunk; __begin < __part.to; __begin += turning_threads / 32 * __chunk) {
            const int __x = __begin + threadIdx.x % 32 * __length;
            const char* __from[__words];
            bool __are_whole[__words];
#pragma unroll
            for (int __w = 0; __w < __words; ++__w) {
                const int __first = __x + __w * __apart;
                const place_in_planes __at(__part.x_side, __part.x + __first);
                __from[__w] = __corner + __at.plane * __source.strides[1] + __at.within * __step;
                __are_whole[__w] = __first + __length <= __part.to && __at.within + __length <= __part.x_side.inner;
            }
#pragma unroll 1
            for (int __y = 0; __y < __part.height; ++__y) {
                taken __all[__words];
#pragma unroll
                for (int __w = 0; __w < __words; ++__w)
                    if (__are_whole[__w]) __all[__w].load(__from[__w] - (__backwards ? (__length - 1) * taken::size : 0));
                __syncwarp();  // else the compiler waits for the first word before it loads the others
#pragma unroll
                for (int __w = 0; __w < __words; ++__w) {
                    const int __first = __x + __w * __apart, __to = __rows.byte(__first, __y);
                    if (__are_whole[__w]) {
#pragma unroll
                        for (int __j = 0; __j < __length; ++__j)
                            *reinterpret_cast<bits*>(__rows.at(__to + __j * __rows.pitch)) = __all[__w].template item<__backwards>(__j);
                    } else if (__length > 1) {
#pragma unroll 1
                        for (int __j = 0; __j < __length && __first + __j < __part.to; ++__j) {
                            const place_in_planes __at(__part.x_side, __part.x + __first + __j);
                            *reinterpret_cast<bits*>(__rows.at(__to + __j * __rows.pitch)) = *reinterpret_cast<const bits*>(
                                __corner + __at.plane * __source.strides[1] + __at.within * __step + __y * __source.strides[0]);
                        }
                    }
                    __from[__w] += __source.strides[0];
                }
            }
        }
    }
};

}

#endif
