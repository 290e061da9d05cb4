// What all folds by blocks of threads share: the threads of a group join what they have, and several results are
// stored at once.
#ifndef GRIDSTRIDE_FOLD_BLOCKS_H
#define GRIDSTRIDE_FOLD_BLOCKS_H

#include <gridstride/folding.h>
#include <gridstride/packets.h>

namespace gridstride {

constexpr int fold_threads = 256;

// The shared memory that folds are handed.
template <class __folding, class... __inputs>
__device__ constexpr int fold_bytes() { return fold_threads * int(sizeof(__folding)); }

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

// Join the threads of a group (a power of two, neighbors) in its first one.
template <class __folding, class __reduce>
GRIDSTRIDE_INLINED void join_group(const __reduce& __do, __folding& __mine, int __group, char* __shared) {
    const int __width = __group < 32 ? __group : 32;
    for (int __distance = __width / 2; __distance > 0; __distance /= 2) {
        const __folding __other = from_lane_below(__mine, __distance, __width);
        __mine.add(__do, __other);
    }
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

// ---- several results at once ----

template <class __operand, int __length>
struct placed_packet : placed<__operand> {
    typedef typename __operand::stored stored;
    packet<stored, __length> items;
    GRIDSTRIDE_INLINED placed_packet(const __operand& __source) : placed<__operand>(__source) {}
    GRIDSTRIDE_INLINED int load(long long __element, int __last) {
        if (__operand::is_read)
            load_packet<__length>(items, this->base + __element * this->source.step, this->source.step, 0, __last);
        return 0;
    }
    GRIDSTRIDE_INLINED int store(long long __element, int __last) const {
        store_packet<__length>(items, this->base + __element * this->source.step, this->source.step, 0, __last);
        return 0;
    }
};

template <int __length, class __post, class __folding, int __axes, class... __placed>
GRIDSTRIDE_INLINED void assign_packets(const __post& __do_post, const __folding (&__folded)[__length], int __last,
                                       const fold_space<__axes>& __space, long long __result, __placed&&... __outputs) {
    long long __within;
    const long long __row = find_result(__space, __result, __within, __outputs...);
    swallow(__outputs.load(__within, __last)...);
#pragma unroll
    for (int __j = 0; __j < __length; ++__j)
        if (__j < __last)
            __do_post(__row + (__within + __j) * __space.result.step, __folded[__j].value,
                      element<typename __placed::operand>(__outputs.items.items[__j]).get()...);
    swallow(__outputs.store(__within, __last)...);
}

template <int __length, class __post, class __folding, int __axes, class... __operands>
GRIDSTRIDE_INLINED void assign(const __post& __do_post, const __folding (&__folded)[__length], int __last,
                               const fold_space<__axes>& __space, long long __result, const __operands&... __outputs) {
    assign_packets(__do_post, __folded, __last, __space, __result, placed_packet<__operands, __length>(__outputs)...);
}

}

#endif
