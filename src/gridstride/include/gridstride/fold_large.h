// `fold_large`: folds of values for which shared memory has no room for one of each thread. Warps share a result, or
// threads have one each, and lanes hand their values on by shuffles; no thread has more than two.
#ifndef GRIDSTRIDE_FOLD_LARGE_H
#define GRIDSTRIDE_FOLD_LARGE_H

#include <gridstride/fold_blocks.h>

namespace gridstride {

// Not inlined, since NVRTC takes long for large structures: what is done with large values is compiled once, not once for every place.
template <class __folding, class __reduce, class __added>
__device__ __noinline__ void add_apart(const __reduce& __do, __folding& __sum, const __added& __next) {
    __sum.add(__do, __next);
}

// Without unrolling, which would make thousands of instructions.
template <class __type>
__device__ inline void from_lane_far_below(__type& __other, const __type& __value, int __distance, int __width) {
    constexpr int __words = (sizeof(__type) + 3) / 4;
    unsigned __bits[__words];
    memcpy(__bits, &__value, sizeof(__type));
#pragma unroll 1
    for (int __k = 0; __k < __words; ++__k) __bits[__k] = __shfl_down_sync(~0u, __bits[__k], __distance, __width);
    memcpy(&__other, __bits, sizeof(__type));
}

// Where the elements of a thread's result begin, and where the one at hand is.
template <class __operand>
struct placed_input {
    typedef __operand operand;
    typedef typename __operand::stored stored;
    const __operand& source;
    const char* base;
    const char* place;
    GRIDSTRIDE_INLINED placed_input(const __operand& __source) : source(__source), base(__source.data), place(nullptr) {}
    GRIDSTRIDE_INLINED stored& at() const { return *reinterpret_cast<stored*>(const_cast<char*>(place)); }
};

// Add an element of the fold, given its index.
template <class __folding, class __map, class __reduce, int __axes, class... __placed>
GRIDSTRIDE_INLINED void add_element(const __map& __do_map, const __reduce& __do, __folding& __sum,
                                    const fold_space<__axes>& __space, long long __number, long long __index,
                                    __placed&... __inputs) {
    long long __position = 0;
    swallow((__inputs.place = __inputs.base)...);
#pragma unroll 1
    for (int __axis = 0; __axis < __space.fold.ndim; ++__axis) {
        const long long __at = __axis + 1 < __space.fold.ndim ? taken_off(__space.fold, __index, __axis) : __index;
        const bool __is_first = __axis == 0;
        __number += __at * (__is_first ? __space.fold_numbers.step : __space.fold_numbers.strides[__axis]);
        __position += __at * (__is_first ? __space.position.step : __space.position.strides[__axis]);
        swallow((__inputs.place += __at * (__is_first ? __inputs.source.step : __inputs.source.strides[__axis]))...);
    }
    add_apart(__do, __sum, __folding(__do_map(__number, __position, element<typename __placed::operand>(__inputs.at()).get()...)));
}

template <class __folding, class __map, class __reduce, class __finish, int __axes, class... __placed>
GRIDSTRIDE_INLINED void fold_large_group(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                         const __folding& __start, const fold_space<__axes>& __space,
                                         __placed&&... __inputs) {
    const int __group = __space.group, __lane = threadIdx.x & (__group - 1);
    const long long __result = (static_cast<long long>(blockIdx.x) * fold_threads + threadIdx.x) / __group;
    const bool __is_inside = __result < __space.outputs;
    const long long __begin = blockIdx.y * __space.part;
    long long __end = __begin + __space.part;
    if (__end > __space.fold.count) __end = __space.fold.count;
    const long long __number = settle(__space, __is_inside ? __result : 0, 0, __inputs...);
    __folding __sum = __start;
    if (__is_inside)
#pragma unroll 1
        for (long long __q = __begin + __lane; __q < __end; __q += __group)
            add_element(__do_map, __do, __sum, __space, __number, __q, __inputs...);
#pragma unroll 1
    for (int __distance = __group / 2; __distance > 0; __distance /= 2) {
        __folding __other;
        from_lane_far_below(__other, __sum, __distance, __group);
        add_apart(__do, __sum, __other);
    }
    if (__lane == 0 && __is_inside) __do_finish(__result, int(blockIdx.y), __sum);
}

template <class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands>
GRIDSTRIDE_INLINED void fold_large(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                   const __folding& __start, const fold_space<__axes>& __space,
                                   const __operands&... __inputs) {
    fold_large_group(__do_map, __do, __do_finish, __start, __space, placed_input<__operands>(__inputs)...);
}

}

#endif
