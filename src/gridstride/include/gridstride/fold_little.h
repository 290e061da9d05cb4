// `fold_little`: any fold of few elements, wherever they lie. A thread takes single elements, several at once.
#ifndef GRIDSTRIDE_FOLD_LITTLE_H
#define GRIDSTRIDE_FOLD_LITTLE_H

#include <gridstride/fold_parts.h>

namespace gridstride {

// What a thread holds of an input: some of its elements, and where those of its result begin.
template <class __operand, int __count>
struct little_input {
    typedef __operand operand;
    typedef typename __operand::stored stored;

    const __operand& source;
    const char* base;
    const char* at[__count];
    packet<stored, __count> some;

    GRIDSTRIDE_INLINED little_input(const __operand& __source) : source(__source), base(__source.data) {}
    GRIDSTRIDE_INLINED int load(int __k) {
        copy(some.items[__k], *reinterpret_cast<const stored*>(at[__k]));
        return 0;
    }
};

// Some elements of a fold as the user's text counts them. Their index counts steps along the first axis. What is left of
// it, divided by the lengths of axes one after another, counts by how much a step along the next axis is more than one
// along all of the last: so strides are told, and no remainder is asked for.
template <int __count>
struct little_places {
    long long numbers[__count], positions[__count];
    template <int __axes, class... __inputs>
    GRIDSTRIDE_INLINED void find(const fold_space<__axes>& __space, long long __number, unsigned __first, int __apart, __inputs&... __all) {
        unsigned __rest[__count];
#pragma unroll
        for (int __k = 0; __k < __count; ++__k) {
            __rest[__k] = __first + __k * __apart;
            numbers[__k] = __number + __rest[__k] * __space.fold_numbers.strides[0];
            positions[__k] = __rest[__k] * __space.position.strides[0];
            swallow((__all.at[__k] = __all.base + __rest[__k] * __all.source.strides[0])...);
        }
#pragma unroll
        for (int __axis = 1; __axis < __axes; ++__axis) {
            if (__axis >= __space.fold.ndim) break;
            const unsigned __multiplier = __space.fold.multiplier[__axis - 1], __shift = __space.fold.shift[__axis - 1];
#pragma unroll
            for (int __k = 0; __k < __count; ++__k) {
                __rest[__k] = (__umulhi(__rest[__k], __multiplier) + __rest[__k]) >> __shift;
                numbers[__k] += __rest[__k] * __space.fold_numbers.strides[__axis];
                positions[__k] += __rest[__k] * __space.position.strides[__axis];
                swallow((__all.at[__k] += __rest[__k] * __all.source.strides[__axis])...);
            }
        }
    }
};

// Results are few too, so 32 bits count them: divisions by 64 would be half of the text to compile. Tell the index along
// each axis.
template <int __axes, class __step>
GRIDSTRIDE_INLINED void take_apart(const axes<__axes>& __space, unsigned __index, const __step& __do_step) {
#pragma unroll
    for (int __axis = 0; __axis < __axes; ++__axis) {
        if (__axis >= __space.ndim) break;
        __do_step(__axis, __axis + 1 < __space.ndim ? remainder_of(__space, __index, __axis) : __index);
    }
}
template <int __axes, class... __inputs>
GRIDSTRIDE_INLINED long long settle_little(const fold_space<__axes>& __space, unsigned __result, __inputs&... __all) {
    long long __number = 0;
    take_apart(__space.kept, __result, [&](int __axis, long long __at) {
        __number += __at * __space.kept_numbers.strides[__axis];
        swallow((__all.base += __at * __all.source.kept_strides[__axis])...);
    });
    return __number;
}
template <class __post, class __folding, int __axes, class... __placed>
GRIDSTRIDE_INLINED void assign_little(const __post& __do_post, const __folding& __folded, const fold_space<__axes>& __space,
                                      unsigned __result, __placed&&... __outputs) {
    long long __number = 0;
    take_apart(__space.kept, __result, [&](int __axis, long long __at) {
        __number += __at * (__axis == 0 ? __space.result.step : __space.result.strides[__axis]);
        swallow((__outputs.base += __at * (__axis == 0 ? __outputs.source.step : __outputs.source.strides[__axis]))...);
    });
    __do_post(__number, __folded.value, element<typename __placed::operand>(__outputs.at(0)).get()...);
}
template <class __post, class __folding, int __axes, class... __operands>
GRIDSTRIDE_INLINED void assign(const __post& __do_post, const __folding& __folded, const fold_space<__axes>& __space,
                               unsigned __result, const __operands&... __outputs) {
    assign_little(__do_post, __folded, __space, __result, placed<__operands>(__outputs)...);
}

// Of a block's threads `group` are neighbors, which share a result; where results lie closest, which `width` says, each
// of them has another one, and it is the others of the block that share them.
template <int __count, class __folding, class __map, class __reduce, class __finish, int __axes, class... __inputs>
GRIDSTRIDE_INLINED void fold_elements(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                      const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                      __inputs&&... __all) {
    const int __group = __space.group, __height = fold_threads >> (__ffs(__group) - 1);
    const int __x = threadIdx.x & (__group - 1), __y = threadIdx.x >> (__ffs(__group) - 1);
    const bool __is_across = __space.width != 0;
    const int __own = __is_across ? __y : __x, __sharing = __is_across ? __height : __group, __apart = __is_across ? __group : 1;
    const unsigned __result = blockIdx.x * (__is_across ? __group : __height) + (__is_across ? __x : __y);
    const bool __is_inside = __result < unsigned(__space.outputs);
    const long long __number = settle_little(__space, __is_inside ? __result : 0, __all...);
    const int __begin = blockIdx.y * int(__space.part), __all_elements = int(__space.fold.count);
    int __end = __begin + int(__space.part);
    if (__end > __all_elements) __end = __all_elements;
    if (!__is_inside) __end = 0;
    __folding __sum = __start;
    for (int __first = __begin + __own; __first < __end; __first += __count * __sharing) {
        little_places<__count> __places;
        __places.find(__space, __number, __first, __sharing, __all...);
#pragma unroll
        for (int __k = 0; __k < __count; ++__k)
            if (__first + __k * __sharing < __end) swallow(__all.load(__k)...);
#pragma unroll
        for (int __k = 0; __k < __count; ++__k)
            if (__first + __k * __sharing < __end)
                __sum.add(__do, __do_map(__places.numbers[__k], __places.positions[__k],
                                         element<typename __inputs::operand>(__all.some.items[__k]).get()...));
    }
    __folding* __table = reinterpret_cast<__folding*>(__shared);
    const bool __is_in_warp = !__is_across && __sharing <= 32;
    const auto __wait = [&] {
        if (__is_in_warp) __syncwarp();
        else __syncthreads();
    };
    for (int __half = __sharing / 2; __half > 0; __half /= 2) {
        __wait();
        if (__own >= __half && __own < 2 * __half) __table[threadIdx.x] = __sum;
        __wait();
        if (__own < __half) __sum.add(__do, __table[threadIdx.x + __half * __apart]);
    }
    if (__own == 0 && __is_inside) __do_finish(__result, int(blockIdx.y), __sum);
}

template <int __count, class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands>
GRIDSTRIDE_INLINED void fold_little(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                    const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                    const __operands&... __inputs) {
    fold_elements<__count>(__do_map, __do, __do_finish, __start, __space, __shared, little_input<__operands, __count>(__inputs)...);
}

// The parts of results that are few.
template <class __folding, class __map, class __reduce, class __finish, int __axes, class __operand>
GRIDSTRIDE_INLINED void fold_little_parts(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                          const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                          const __operand& __parts) {
    const auto __finish_little = [&](long long __result, int __part, const __folding& __folded) {
        __do_finish(unsigned(__result), __part, __folded);
    };
    fold_parts(__do_map, __do, __finish_little, __start, __space, __shared, __parts);
}

}

#endif
