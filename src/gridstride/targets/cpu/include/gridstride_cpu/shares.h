// What loops and folds on a processor have in common: numbers that the compiler knows, and shares of the work.
#ifndef GRIDSTRIDE_CPU_SHARES_H
#define GRIDSTRIDE_CPU_SHARES_H

#include <gridstride/operands.h>
#include <gridstride_cpu/inlining.h>

namespace gridstride {

constexpr int line_bytes = 64;             // of a cache
constexpr int buffer_bytes = 4096;         // of the buffer of an operand
constexpr int all_buffers_bytes = 65536;   // of the buffers of all, which lie on the stack
// Bytes of the elements of a row that are handled at once. A processor looks a few hundred instructions ahead: where
// these are few it reads the next ones while it stores some.
constexpr int chunk_bytes = 1024;
constexpr long long bytes_ahead = 8192;    // that are fetched before they are needed

// The largest of numbers and 1, or 0, and the smallest. Each call takes one number away: two calls in each would be
// twice as many for every operand.
constexpr int larger() { return 1; }
constexpr int larger(int __only) { return __only > 1 ? __only : 1; }
template <class... __rest>
constexpr int larger(int __first, int __second, __rest... __others) {
    return larger(__first > __second ? __first : __second, __others...);
}
constexpr int largest() { return 0; }
constexpr int largest(int __only) { return __only > 0 ? __only : 0; }
template <class... __rest>
constexpr int largest(int __first, int __second, __rest... __others) {
    return largest(__first > __second ? __first : __second, __others...);
}
constexpr int smaller(int __only) { return __only; }
constexpr int smaller(int __first, int __second) { return __first < __second ? __first : __second; }
template <class... __rest>
constexpr int smaller(int __first, int __second, __rest... __others) {
    return smaller(smaller(__first, __second), __others...);
}
// Of each operand of so many.
constexpr int buffer_bytes_of(int __operands) { return smaller(buffer_bytes, all_buffers_bytes / larger(__operands)); }
constexpr int sum_of() { return 0; }
template <class... __rest>
constexpr int sum_of(int __first, __rest... __others) { return __first + sum_of(__others...); }

GRIDSTRIDE_INLINED constexpr bool all_of() { return true; }
template <class... __rest>
GRIDSTRIDE_INLINED constexpr bool all_of(bool __first, __rest... __others) { return __first && all_of(__others...); }

template <int __axes>
GRIDSTRIDE_INLINED long long taken_off(const axes<__axes>& __space, long long& __index, int __axis) {
    const long long __length = __space.length[__axis], __quotient = __index / __length;
    const long long __rest = __index - __quotient * __length;
    __index = __quotient;
    return __rest;
}

// What this block has of so many pieces: as many as any other, but one.
struct share_of_pieces {
    long long first, last;
    GRIDSTRIDE_INLINED share_of_pieces(long long __pieces) {
        const long long __blocks = gridDim.x, __block = blockIdx.x, __share = __pieces / __blocks;
        const long long __more = __pieces % __blocks;
        first = __block * __share + (__block < __more ? __block : __more);
        last = first + __share + (__block < __more);
    }
};

}

#endif
