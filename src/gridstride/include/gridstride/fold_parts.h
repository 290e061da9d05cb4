// `fold_parts`: results from their parts, which lie one after another.
#ifndef GRIDSTRIDE_FOLD_PARTS_H
#define GRIDSTRIDE_FOLD_PARTS_H

#include <gridstride/fold_blocks.h>

namespace gridstride {

// Take a value from memory, by words where it is made of them.
template <class __type, bool = sizeof(__type) % 4 == 0 && alignof(__type) % 4 == 0>
struct part_of {
    static GRIDSTRIDE_INLINED void take(__type& __to, const __type& __from) { copy(__to, __from); }
};
template <class __type>
struct part_of<__type, true> {
    static GRIDSTRIDE_INLINED void take(__type& __to, const __type& __from) {
        unsigned __bits[sizeof(__type) / 4];
#pragma unroll
        for (int __k = 0; __k < int(sizeof(__type) / 4); ++__k) __bits[__k] = reinterpret_cast<const unsigned*>(&__from)[__k];
        memcpy(&__to, __bits, sizeof(__type));
    }
};

// The parts of each result, which lie one after another.
template <class __folding, class __map, class __reduce, class __finish, int __axes, class __operand>
GRIDSTRIDE_INLINED void fold_parts(const __map&, const __reduce& __do, const __finish& __do_finish,
                                   const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                   const __operand& __parts) {
    constexpr int __count = 4;
    const int __group = __space.group, __lane = threadIdx.x & (__group - 1), __row = int(__space.fold_row);
    const long long __result = (static_cast<long long>(blockIdx.x) * fold_threads + threadIdx.x) >> (__ffs(__group) - 1);
    const __folding* __from = reinterpret_cast<const __folding*>(__parts.data) + __result * __row;
    __folding __sum = __start;
    for (int __part = __result < __space.outputs ? __lane : __row; __part < __row; __part += __count * __group) {
        __folding __some[__count];
#pragma unroll
        for (int __k = 0; __k < __count; ++__k)
            if (__part + __k * __group < __row) part_of<__folding>::take(__some[__k], __from[__part + __k * __group]);
#pragma unroll
        for (int __k = 0; __k < __count; ++__k)
            if (__part + __k * __group < __row) __sum.add(__do, __some[__k]);
    }
    join_group(__do, __sum, __group, __shared);
    if (__lane == 0 && __result < __space.outputs) __do_finish(__result, 0, __sum);
}

}

#endif
