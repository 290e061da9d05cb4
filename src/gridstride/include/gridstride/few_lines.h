// How `interleaved` brings few lines of elements of less than a word into rows: of a word of each line a thread makes as
// many words of rows in registers, which it stores in shared memory.
#ifndef GRIDSTRIDE_FEW_LINES_H
#define GRIDSTRIDE_FEW_LINES_H

#include <gridstride/row_memory.h>

namespace gridstride {

// Four bytes of a line, wherever words begin, from the two words that they touch.
struct line_word {
    unsigned low, high;
    GRIDSTRIDE_INLINED void load(const char* __from, int __second) {
        const unsigned* const __words = reinterpret_cast<const unsigned*>(__from);
        low = __words[0];
        high = __words[__second];
    }
    GRIDSTRIDE_INLINED unsigned joined(unsigned __past) const { return __funnelshift_r(low, high, __past * 8); }
};

// What threads take of as few lines as are known: words of all of them, which make as many words of rows.
template <class __stored, int __lines, int __words>
struct few_lines {
    static constexpr bool in_words = true;
    static constexpr int size = sizeof(__stored), length = 4 / size, apart = 32 * length, chunk = __words * apart;

    template <bool __backwards>
    static GRIDSTRIDE_INLINED unsigned in_order(unsigned __word) {
        return __backwards ? __byte_perm(__word, 0, size == 1 ? 0x0123 : 0x1032) : __word;
    }
    // The word at a byte of the rows, from a word of each line: bytes of two of these, then of one more in each round.
    static GRIDSTRIDE_INLINED unsigned turned(const unsigned (&__from)[__lines], int __byte) {
        unsigned __all = 0;
        int __done = 0;
#pragma unroll
        for (int __round = 0; __round < length - 1; ++__round) {
            int __line = -1, __other = -1;
            unsigned __which = 0;
#pragma unroll
            for (int __b = 0; __b < 4; ++__b) {
                const int __element = (__byte + __b) / size, __from_line = __element % __lines;
                const int __at = __element / __lines * size + __b % size;
                const bool __is_left = !(__done >> __b & 1);
                if (__is_left && __line < 0) __line = __from_line;
                else if (__is_left && __round == 0 && __other < 0 && __from_line != __line) __other = __from_line;
                const bool __is_taken = __is_left && (__from_line == __line || __from_line == __other);
                const int __second = __round > 0 || __from_line != __line ? 4 : 0;
                __which |= static_cast<unsigned>(__is_taken ? __second + __at : __b) << 4 * __b;
                __done |= int(__is_taken) << __b;
            }
            if (__round == 0) __all = __byte_perm(__from[__line], __from[__other < 0 ? __line : __other], __which);
            else if (__line >= 0) __all = __byte_perm(__all, __from[__line], __which);
        }
        return __all;
    }

    template <bool __backwards, class __memory>
    static GRIDSTRIDE_INLINED void bring(const __memory& __rows, const char* __corner, long long __step,
                                         const plane_part<false>& __part) {
        constexpr int __direction = __backwards ? -1 : 1;
        // Words are taken whose line goes on behind them; elements where it ends.
        const long long __left = __part.x_side.length - __part.x;
        const int __end = __left > __part.width ? __part.width : int(__left - 1) / length * length;
        const int __chunks = __part.width / chunk;
        const warp_places __places(__chunks);
        if (__places.row == 0)
#pragma unroll 1
            for (int __c = __places.first; __c < __chunks; __c += __places.beside) {
                const int __x = __c * chunk + threadIdx.x % 32 * length;
                bring_words<__backwards>(__rows, __corner + (__backwards ? 1 - length - __x : __x) * size, __step, __x, __end);
            }
#pragma unroll 1
        for (int __k = threadIdx.x; __k < (__part.to - __end) * __lines; __k += turning_threads) {
            const int __y = __k % __lines, __x = __end + __k / __lines;
            copy(*reinterpret_cast<__stored*>(__rows.at(__rows.byte(__x, __y))),
                 *reinterpret_cast<const __stored*>(__corner + __direction * __x * size + __y * __step));
        }
    }
    // The same of lines in planes, of which a word's elements are in one, or come one by one.
    template <bool __backwards, class __memory, class __operand>
    static GRIDSTRIDE_INLINED void bring_planes(const __memory& __rows, const char* __corner, const __operand& __source,
                                                const plane_part<false>& __part) {
        constexpr int __step = __backwards ? -size : size;
#pragma unroll 1
        for (int __begin = threadIdx.x / 32 * chunk; __begin < __part.to; __begin += turning_threads / 32 * chunk) {
            const int __x = __begin + threadIdx.x % 32 * length;
            line_word __waiting[__lines][__words];
            unsigned __past[__lines][__words];
            bool __are_whole[__words];
#pragma unroll
            for (int __w = 0; __w < __words; ++__w) {
                const int __first = __x + __w * apart;
                const place_in_planes __at(__part.x_side, __part.x + __first);
                const char* const __from = __corner + __at.plane * __source.strides[1] + __at.within * __step -
                                           (__backwards ? (length - 1) * size : 0);
                __are_whole[__w] = __first + length <= __part.to && __at.within + length <= __part.x_side.inner;
#pragma unroll
                for (int __l = 0; __l < __lines; ++__l)
                    if (__are_whole[__w]) {
                        const char* const __line = __from + __l * __source.strides[0];
                        __past[__l][__w] = bytes_past<4>(__line);
                        // Nothing is read of words that have nothing of it.
                        __waiting[__l][__w].load(__line - __past[__l][__w], int(__past[__l][__w] + 3) / 4);
                    }
            }
            __syncwarp();  // else the compiler waits for the first line before it loads the others
#pragma unroll
            for (int __w = 0; __w < __words; ++__w) {
                const int __first = __x + __w * apart;
                if (__are_whole[__w]) {
                    unsigned __from[__lines];
#pragma unroll
                    for (int __l = 0; __l < __lines; ++__l)
                        __from[__l] = in_order<__backwards>(__waiting[__l][__w].joined(__past[__l][__w]));
#pragma unroll
                    for (int __m = 0; __m < __lines; ++__m)
                        *reinterpret_cast<unsigned*>(__rows.at(__rows.first + __first * __lines * size + 4 * __m)) = turned(__from, 4 * __m);
                    continue;
                }
#pragma unroll 1
                for (int __k = 0; __k < length * __lines && __first + __k / __lines < __part.to; ++__k) {
                    const int __own = __first + __k / __lines, __y = __k % __lines;
                    const place_in_planes __at(__part.x_side, __part.x + __own);
                    copy(*reinterpret_cast<__stored*>(__rows.at(__rows.byte(__own, __y))),
                         *reinterpret_cast<const __stored*>(__corner + __at.plane * __source.strides[1] + __at.within * __step +
                                                            __y * __source.strides[0]));
                }
            }
        }
    }
    template <bool __backwards, class __memory>
    static GRIDSTRIDE_INLINED void bring_words(const __memory& __rows, const char* __place, long long __step, int __x, int __end) {
        line_word __waiting[__lines][__words];
        unsigned __past[__lines];
#pragma unroll
        for (int __l = 0; __l < __lines; ++__l) {
            const char* const __from = __place + __l * __step;
            __past[__l] = bytes_past<4>(__from);
            // What lies behind words of lines that go backwards may be none of theirs.
            const int __second = __backwards && __past[__l] == 0 ? 0 : 1;
#pragma unroll
            for (int __w = 0; __w < __words; ++__w)
                if (__x + __w * apart < __end)
                    __waiting[__l][__w].load(__from - __past[__l] + (__backwards ? -__w : __w) * 128, __second);
        }
        __syncwarp();  // else the compiler waits for the first line before it loads the others
#pragma unroll
        for (int __w = 0; __w < __words; ++__w) {
            const int __row = __x + __w * apart;
            unsigned __from[__lines];
#pragma unroll
            for (int __l = 0; __l < __lines; ++__l)
                __from[__l] = in_order<__backwards>(__waiting[__l][__w].joined(__past[__l]));
#pragma unroll
            for (int __m = 0; __m < __lines; ++__m)
                if (__row < __end)
                    *reinterpret_cast<unsigned*>(__rows.at(__rows.first + __row * __lines * size + 4 * __m)) = turned(__from, 4 * __m);
        }
    }
};

}

#endif
