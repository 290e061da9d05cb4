// What reductions and scans of cooperative groups share: the operations, and the fold in a GPU's order.
#ifndef GRIDSTRIDE_CPU_GROUP_OPERATIONS_H
#define GRIDSTRIDE_CPU_GROUP_OPERATIONS_H

#include <cooperative_groups.h>

namespace cooperative_groups {

#define GRIDSTRIDE_GROUP_OPERATION(name, expression) \
    template <class __t> \
    struct name { \
        __t operator()(__t __a, __t __b) const { return expression; } \
    };
GRIDSTRIDE_GROUP_OPERATION(plus, __a + __b)
GRIDSTRIDE_GROUP_OPERATION(less, __b < __a ? __b : __a)
GRIDSTRIDE_GROUP_OPERATION(greater, __a < __b ? __b : __a)
GRIDSTRIDE_GROUP_OPERATION(bit_and, __a & __b)
GRIDSTRIDE_GROUP_OPERATION(bit_xor, __a ^ __b)
GRIDSTRIDE_GROUP_OPERATION(bit_or, __a | __b)
#undef GRIDSTRIDE_GROUP_OPERATION

// What a thread of a tile of several warps shows the others, and what the first of them tells it.
template <class __t>
struct gridstride_shown_value {
    __t __value, __result;
};

// The first thread that is there folds the values in the order of ranks; `__with_total` says whether all get the total.
template <bool __with_total, unsigned __size, class __t, class __function>
__t gridstride_fold_large(
    const gridstride_large_tile<__size>& __tile, const __t& __value, __function& __fold, bool __is_exclusive, const char* __file, unsigned __line) {
    gridstride_shown_value<__t> __mine{__value, __t{}};
    unsigned __folding = 0;
    __tile.gridstride_look(__mine, __file, __line, [&](unsigned __there) {
        typedef gridstride_shown_value<__t> __shown;
        while (!__tile.template gridstride_shown<__shown>(__folding)) ++__folding;
        if (__folding != __tile.thread_rank()) return;
        __t __sum = __mine.__value;
        __mine.__result = __is_exclusive ? __t{} : __sum;
        for (unsigned __rank = __folding + 1; __rank < __there; ++__rank) {
            __shown* __other = __tile.template gridstride_shown<__shown>(__rank);
            if (!__other) continue;  // has exited
            const __t __before = __sum;
            __sum = __fold(__sum, __other->__value);
            __other->__result = __is_exclusive ? __before : __sum;
        }
        for (unsigned __rank = 0; __with_total && __rank < __there; ++__rank)
            if (__shown* __other = __tile.template gridstride_shown<__shown>(__rank)) __other->__result = __sum;
    });
    return __mine.__result;
}

// What the threads of a group brought, in the order of their ranks.
template <class __t>
struct gridstride_group_values {
    alignas(__t) char __bytes[32 * sizeof(__t)];
    unsigned __count;

    __t& operator[](unsigned __rank) { return reinterpret_cast<__t*>(__bytes)[__rank]; }

    gridstride_group_values(const gridstride_lane_group& __group, const __t& __value, const char* __file, unsigned __line)
        : __count(__group.num_threads()) {
        __group.gridstride_gather_all(__value, reinterpret_cast<__t*>(__bytes), __file, __line);
    }

    // Running totals: each step adds what stands twice as far away, as the shuffles of a GPU do.
    template <class __function>
    void accumulate(__function& __fold) {
        for (unsigned __distance = 1; __distance < __count; __distance *= 2)
            for (unsigned __rank = __count; __rank-- > __distance;)
                (*this)[__rank] = __fold((*this)[__rank], (*this)[__rank - __distance]);
    }
    // The total of a power of two of values, halving the distance.
    template <class __function>
    __t total(__function& __fold) {
        for (unsigned __distance = __count / 2; __distance > 0; __distance /= 2)
            for (unsigned __rank = 0; __rank < __distance; ++__rank)
                (*this)[__rank] = __fold((*this)[__rank], (*this)[__rank + __distance]);
        return (*this)[0];
    }
};

}

#endif
