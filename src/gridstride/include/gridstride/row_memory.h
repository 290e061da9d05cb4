// Short rows one after another, as pixels are, in shared memory as they lie in memory: what `interleaved` and `deinterleaved`
// share. Side x of the plane is the long one, along which rows follow each other; y the short one, along rows.
#ifndef GRIDSTRIDE_ROW_MEMORY_H
#define GRIDSTRIDE_ROW_MEMORY_H

#include <gridstride/turning.h>

namespace gridstride {

// How an input lies that the output does not lie like; where its lines go backwards, `interleaved` is told. In planes: side x
// is two axes, of which only the output is consecutive along both.
constexpr int other_side = 3, other_side_backwards = 4, in_planes = 5, in_planes_backwards = 6, in_shifted_planes = 7;

// Where elements of inputs in planes are along side x.
struct place_in_planes {
    int plane, within;
    GRIDSTRIDE_INLINED place_in_planes(const plane_side<false>& __x, long long __index) {
        const unsigned __n = static_cast<unsigned>(__index);
        plane = int((__umulhi(__n, __x.multiplier) + __n) >> __x.shift);
        within = int(__n - static_cast<unsigned>(plane) * __x.inner);
    }
};

template <int __size>
struct row_word {
    static constexpr int size = __size, word = size < 4 ? 4 : size, length = word / size;
};

// Gaps: of a word after 32 words.
template <class __stored, bool __has_gaps>
struct row_memory {
    static constexpr int size = sizeof(__stored), word = row_word<size>::word, length = row_word<size>::length;

    char* waiting;
    int first;  // byte of the first row
    int pitch;  // from a row to the next one, which may lie before it
    int turn;   // see below

    // A step leads from a row to the next; where that lies before it, the first row is the last one in memory.
    GRIDSTRIDE_INLINED void begin(char*& __shared, int __first, int __rows, long long __step, const plane_part<false>& __part) {
        const int __row = __part.height * size;
        waiting = __shared;
        pitch = __step < 0 ? -__row : __row;
        first = __first + (__step < 0 ? ((__rows - 1) * __row + 15) / 16 * 16 : 0);
        turn = turn_of(__part.height);
        const int __bytes = __rows * __row + 32;
        __shared += (with_gaps(__bytes) + 15) / 16 * 16;
    }
    // Neighboring threads take elements of rows that are as many words apart as a row has elements. So if that is even, they
    // meet in banks: groups of threads that do not meet begin with different ones of a word's rows.
    static GRIDSTRIDE_INLINED int turn_of(int __row) {
        const int __even = __row & -__row, __group = int(threadIdx.x % 32) * __even / 32;
        return length == 1 || __even == 1 ? 0 : (length == 4 && __even == 2 ? 2 * __group : __group) % length;
    }
    static GRIDSTRIDE_INLINED int with_gaps(int __byte) {
        return __has_gaps ? __byte + int(static_cast<unsigned>(__byte) / (32 * word)) * word : __byte;
    }
    // So many rows, the last one first.
    GRIDSTRIDE_INLINED row_memory turned_over(int __rows) const {
        row_memory __all = *this;
        __all.first += (__rows - 1) * pitch;
        __all.pitch = -pitch;
        return __all;
    }
    GRIDSTRIDE_INLINED int byte(int __row, int __at) const { return first + __row * pitch + __at * size; }
    GRIDSTRIDE_INLINED char* at(int __byte) const { return waiting + with_gaps(__byte); }
    // Bytes from the first of a word's rows to the one that a thread takes as number `__j`.
    GRIDSTRIDE_INLINED int row_of(int __j) const { return (__j + turn) % length * pitch; }
};

// How the warps of a block take chunks along x: beside each other, as many as there are chunks, and below each other.
struct warp_places {
    int first, beside, row, below;
    GRIDSTRIDE_INLINED explicit warp_places(int __chunks) {
        constexpr int __warps = turning_threads / 32;
        const int __warp = threadIdx.x / 32;
        beside = __chunks < __warps ? __chunks : __warps;
        first = __warp % beside;
        row = __warp / beside;
        below = __warps / beside;
    }
};

}

#endif
