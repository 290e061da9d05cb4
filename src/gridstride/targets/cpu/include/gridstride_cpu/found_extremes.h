// The largest or the smallest of the elements of a row and its place: the elements alone are folded, then it is looked
// for. A structure is made of what was found, whatever it is and holds.
#ifndef GRIDSTRIDE_CPU_FOUND_EXTREMES_H
#define GRIDSTRIDE_CPU_FOUND_EXTREMES_H

#include <gridstride_cpu/folds_along.h>
#include <gridstride_cpu/short_places.h>

namespace gridstride {

template <class __reduce, bool __is_largest, bool __is_first>
struct finds_places<found_extreme<__reduce, __is_largest, __is_first>> { static constexpr bool value = true; };

template <int __block, class __type, class __map, class __reduce, bool __is_largest, bool __is_first, int __axes, class __input>
GRIDSTRIDE_INLINED __type fold_chunk(places<2>, const __map& __do_map, const found_extreme<__reduce, __is_largest, __is_first>& __do,
                                     const fold_space<__axes>& __space, long long __number, long long __position, long long __from, long long __to,
                                     __input& __its) {
    typedef extreme_key<__is_largest, typename __input::stored> __extreme;
    typedef typename __extreme::key __key;
    auto __begin = [&](long long __first) {
        const int __count = int(__to - __first < __block ? __to - __first : __block);
        __its.begin(__first, __count);
        return __count;
    };
    __key __kept = worst_key<__is_largest, __key>();
    long long __found_in = __from;
    for (long long __first = __from; __first < __to; __first += __block) {
        const __key __one = __extreme::of(__its, __begin(__first));
        const bool __is_better = __is_first ? keeping<__is_largest>::is_better(__one, __kept) : !keeping<__is_largest>::is_better(__kept, __one);
        if (__is_better) __kept = __one, __found_in = __first;
    }
    auto __value_at = [&](long long __element, const typename __input::stored& __item) {
        return static_cast<__type>(__do_map(__number + __element * __space.fold_numbers.step, __position + __element * __space.position.step,
                                            element<typename __input::operand>(const_cast<typename __input::stored&>(__item)).get()));
    };
    const int __count = __begin(__found_in), __place = __extreme::template place<__is_first>(__its.items, __count, __kept);
    if (__place >= 0) return __value_at(__found_in + __place, __its.items[__place]);
    // There are only NaNs: which one is kept is not defined.
    return __value_at(__found_in, __its.items[0]);
}

}

#endif
