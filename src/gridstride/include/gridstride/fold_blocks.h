// What all folds by blocks of threads share: the threads of a group join what they have, and those that hold several
// results hand them over.
#ifndef GRIDSTRIDE_FOLD_BLOCKS_H
#define GRIDSTRIDE_FOLD_BLOCKS_H

#include <gridstride/folding.h>
#include <gridstride/packets.h>

namespace gridstride {

constexpr int fold_threads = 256;

// The shared memory that folds are handed: a value for each thread, with gaps that keep packets in other banks.
GRIDSTRIDE_INLINED constexpr int between_gaps(int __k) { return __k + __k / 32; }
// Larger ones are folded otherwise (fold_large.h), which is found out only when this text is compiled.
constexpr int largest_folding = 184;
template <class __folding, class... __inputs>
__device__ constexpr int fold_bytes() {
    return (fold_threads + fold_threads / 32) * (int(sizeof(__folding)) > largest_folding ? 1 : int(sizeof(__folding)));
}

template <class __type>
GRIDSTRIDE_INLINED __type from_lane_below(const __type& __value, int __distance, int __width) {
    constexpr int __words = (sizeof(__type) + 3) / 4;
    unsigned __bits[__words] = {};
    memcpy(__bits, &__value, sizeof(__type));
#pragma unroll
    for (int __k = 0; __k < __words; ++__k) __bits[__k] = __shfl_down_sync(~0u, __bits[__k], __distance, __width);
    __type __result;
    memcpy(&__result, __bits, sizeof(__type));
    return __result;
}

// Places in a fold. Where `__counter` is int, all are below 2^31, and the compiler knows that: so it compares and keeps
// half of each.
template <class __counter>
struct places {
    static GRIDSTRIDE_INLINED __counter first(long long __place) { return __place; }
    static GRIDSTRIDE_INLINED long long after(__counter __first, int __later) { return __first + __later; }
};
template <>
struct places<int> {
    static GRIDSTRIDE_INLINED int first(long long __place) {
        int __first = static_cast<int>(__place);
#ifndef GRIDSTRIDE_CPU_ABI_VERSION
        asm volatile("" : "+r"(__first));  // else places are added to as what they become, in twice the registers
        __builtin_assume(__first >= 0);
#endif
        return __first;
    }
    static GRIDSTRIDE_INLINED long long after(int __first, int __later) { return static_cast<unsigned>(__first + __later); }
};

// An element of a packet as the user's text sees it. Bytes that become integers are taken by the units that multiply,
// which have less to do than those that shift and compare.
template <class __operand, int __length,
          bool = __is_enum(typename __operand::value) && sizeof(typename __operand::stored) == 1 && __length % 4 == 0>
struct item {
    typedef packet<typename __operand::stored, __length> items;
    static GRIDSTRIDE_INLINED decltype(auto) get(items& __from, int __j) { return element<__operand>(__from.items[__j]).get(); }
};
template <class __operand, int __length>
struct item<__operand, __length, true> {
    typedef typename __operand::stored stored;
    typedef packet<stored, __length> items;
    static GRIDSTRIDE_INLINED typename __operand::value get(items& __from, int __j) {
        unsigned __word;
        memcpy(&__word, &__from.items[__j / 4 * 4], 4);
        const unsigned __place = 1u << __j % 4 * 8;
        return static_cast<typename __operand::value>(stored(-1) < stored(0) ? __dp4a(int(__word), int(__place), 0)
                                                                             : int(__dp4a(__word, __place, 0u)));
    }
};
template <class __operand, int __length>
GRIDSTRIDE_INLINED decltype(auto) item_of(packet<typename __operand::stored, __length>& __from, int __j) {
    return item<__operand, __length>::get(__from, __j);
}

// Join the threads of a group (a power of two, neighbors) in its first one. One has at most a warp's threads.
template <class __folding, class __reduce>
GRIDSTRIDE_INLINED void join_warp(const __reduce& __do, __folding& __mine, int __group) {
    for (int __distance = __group / 2; __distance > 0; __distance /= 2) {
        const __folding __other = from_lane_below(__mine, __distance, __group);
        __mine.add(__do, __other);
    }
}
template <class __folding, class __reduce>
GRIDSTRIDE_INLINED void join_group(const __reduce& __do, __folding& __mine, int __group, char* __shared) {
    join_warp(__do, __mine, __group < 32 ? __group : 32);
    if (__group <= 32) return;
    __folding* __warps = reinterpret_cast<__folding*>(__shared);
    __syncthreads();
    if (threadIdx.x % 32 == 0) __warps[threadIdx.x / 32] = __mine;
    __syncthreads();
    if (threadIdx.x % __group == 0)
        for (int __warp = 1; __warp < __group / 32; ++__warp) __mine.add(__do, __warps[threadIdx.x / 32 + __warp]);
}

// Join values in the first one, in pairs.
template <int __count, class __folding, class __reduce>
GRIDSTRIDE_INLINED void join_own(const __reduce& __do, __folding (&__values)[__count]) {
#pragma unroll
    for (int __apart = 1; __apart < __count; __apart *= 2)
#pragma unroll
        for (int __j = 0; __j + __apart < __count; __j += 2 * __apart) __values[__j].add(__do, __values[__j + __apart]);
}

// Join the rows of threads of a block, which hold sums for neighboring results, in the first row.
template <int __length, class __folding, class __reduce>
GRIDSTRIDE_INLINED void join_columns(const __reduce& __do, __folding (&__sums)[__length], int __group, int __y,
                                     int __height, char* __shared) {
    __folding* __columns = reinterpret_cast<__folding*>(__shared);
#pragma unroll
    for (int __j = 0; __j < __length; ++__j)
        for (int __half = __height / 2; __half > 0; __half /= 2) {
            __syncthreads();
            if (__y >= __half && __y < 2 * __half) __columns[threadIdx.x] = __sums[__j];
            __syncthreads();
            if (__y < __half) __sums[__j].add(__do, __columns[threadIdx.x + __half * __group]);
        }
}

// Add to the bases what the index of a result means; return the number of the first input element.
template <int __axes, class... __staged>
GRIDSTRIDE_INLINED long long settle(const fold_space<__axes>& __space, long long __index, int __from,
                                    __staged&... __inputs) {
    long long __number = 0;
#pragma unroll
    for (int __axis = 0; __axis < __axes; ++__axis) {
        if (__axis < __from) continue;
        if (__axis >= __space.kept.ndim) break;
        const long long __at = __axis + 1 < __space.kept.ndim ? taken_off(__space.kept, __index, __axis) : __index;
        __number += __at * __space.kept_numbers.strides[__axis];
        swallow((__inputs.base += __at * __inputs.source.kept_strides[__axis])...);
    }
    return __number;
}

// Hand over what the threads of a block's first row hold, packets of neighboring results, one thread for each result:
// so neighbors are stored together.
template <int __length, class __folding, class __finish, int __axes>
GRIDSTRIDE_INLINED void hand_over(const __finish& __do_finish, const __folding (&__sums)[__length],
                                  const fold_space<__axes>& __space, char* __shared) {
    __folding* __exchange = reinterpret_cast<__folding*>(__shared);
    const int __x = threadIdx.x, __results = __space.group * __length;
    for (int __begin = 0; __begin < __results; __begin += fold_threads) {
        const int __own = __x * __length - __begin;
        __syncthreads();
        if (__x < __space.group && __own >= 0 && __own < fold_threads)
#pragma unroll
            for (int __j = 0; __j < __length; ++__j) __exchange[between_gaps(__own + __j)] = __sums[__j];
        __syncthreads();
        const int __at = __begin + __x;
        long long __outer = static_cast<long long>(blockIdx.x) * __space.group + __at / __length, __within = __outer;
        if (__at >= __results || __outer >= __space.kept.count) continue;
        if (__space.kept.ndim > 1) __within = taken_off(__space.kept, __outer, 0);
        else __outer = 0;
        const long long __element = __within * __length + __at % __length;
        if (__element >= __space.kept_row) continue;
        __do_finish(__outer * __space.kept_row + __element, int(blockIdx.y), __exchange[between_gaps(__x)]);
    }
}

}

#endif
