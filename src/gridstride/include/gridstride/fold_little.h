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
    const char* at;
    packet<stored, __count> some;

    GRIDSTRIDE_INLINED little_input(const __operand& __source) : source(__source), base(__source.data), at(nullptr) {}
    GRIDSTRIDE_INLINED int load(int __k) {
        copy(some.items[__k], *reinterpret_cast<const stored*>(at));
        return 0;
    }
};

// An element as the user's text counts it.
struct little_place {
    long long number, position;
    template <int __axes, class... __inputs>
    GRIDSTRIDE_INLINED void move(const fold_space<__axes>& __space, unsigned __rest, __inputs&... __all) {
#pragma unroll
        for (int __axis = 0; __axis < __axes; ++__axis) {
            if (__axis >= __space.fold.ndim) break;
            const long long __own = __axis + 1 < __space.fold.ndim ? remainder_of(__space.fold, __rest, __axis) : __rest;
            number += __own * __space.fold_numbers.strides[__axis];
            position += __own * __space.position.strides[__axis];
            swallow((__all.at += __own * __all.source.strides[__axis])...);
        }
    }
};

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
    const long long __result = static_cast<long long>(blockIdx.x) * (__is_across ? __group : __height) + (__is_across ? __x : __y);
    const bool __is_inside = __result < __space.outputs;
    const long long __number = settle(__space, __is_inside ? __result : 0, 0, __all...);
    const int __begin = blockIdx.y * int(__space.part), __all_elements = int(__space.fold.count);
    int __end = __begin + int(__space.part);
    if (__end > __all_elements) __end = __all_elements;
    if (!__is_inside) __end = 0;
    __folding __sum = __start;
    for (int __first = __begin + __own; __first < __end; __first += __count * __sharing) {
        little_place __places[__count];
#pragma unroll
        for (int __k = 0; __k < __count; ++__k) {
            __places[__k].number = __number;
            __places[__k].position = 0;
            swallow((__all.at = __all.base)...);
            if (__first + __k * __sharing < __end) {
                __places[__k].move(__space, __first + __k * __sharing, __all...);
                swallow(__all.load(__k)...);
            }
        }
#pragma unroll
        for (int __k = 0; __k < __count; ++__k)
            if (__first + __k * __sharing < __end)
                __sum.add(__do, __do_map(__places[__k].number, __places[__k].position,
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

}

#endif
