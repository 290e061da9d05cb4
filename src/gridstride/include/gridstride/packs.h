// What is asked of all operands, or all numbers, of a pack.
#ifndef GRIDSTRIDE_PACKS_H
#define GRIDSTRIDE_PACKS_H

#include <gridstride/inlining.h>
#include <gridstride/operands.h>

namespace gridstride {

__device__ constexpr int larger() { return 1; }
__device__ constexpr int larger(int __a) { return __a; }
template <class... __rest>
__device__ constexpr int larger(int __a, int __b, __rest... __others) { return larger(__a > __b ? __a : __b, __others...); }
__device__ constexpr int sum_of() { return 0; }
template <class... __rest>
__device__ constexpr int sum_of(int __first, __rest... __others) { return __first + sum_of(__others...); }

GRIDSTRIDE_INLINED constexpr bool all_of() { return true; }
template <class... __rest>
GRIDSTRIDE_INLINED constexpr bool all_of(bool __first, __rest... __others) { return __first && all_of(__others...); }

// The last operand, an output where there is one.
template <class __only>
GRIDSTRIDE_INLINED const __only& last_of(const __only& __last) { return __last; }
template <class __first, class __second, class... __rest>
GRIDSTRIDE_INLINED const auto& last_of(const __first&, const __second& __next, const __rest&... __others) {
    return last_of(__next, __others...);
}

}

#endif
