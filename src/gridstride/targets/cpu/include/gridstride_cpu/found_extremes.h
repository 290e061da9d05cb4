// The largest or the smallest of the elements of a row and its place: the elements alone are folded, then it is looked
// for. A structure is made of what was found, whatever it is and holds.
#ifndef GRIDSTRIDE_CPU_FOUND_EXTREMES_H
#define GRIDSTRIDE_CPU_FOUND_EXTREMES_H

#include <gridstride_cpu/extreme_keys.h>
#include <gridstride_cpu/folds_along.h>
#include <gridstride_cpu/short_places.h>

namespace gridstride {

template <class __reduce, bool __is_largest, bool __is_first>
struct finds_places<found_extreme<__reduce, __is_largest, __is_first>> { static constexpr bool value = true; };

template <bool __is_largest, class __stored>
struct extreme_key {
    typedef key_of<__stored> keys;
    typedef typename keys::type key;
    static constexpr int lanes = 128 / sizeof(key);

    GRIDSTRIDE_INLINED static void add(key* __best, const __stored* __items) {
        GRIDSTRIDE_LANES
        for (long long __lane = 0; __lane < lanes; ++__lane) __best[__lane] = keeping<__is_largest>()(__best[__lane], keys::from(__items[__lane]));
    }
    // Of so many elements.
    template <class __input>
    GRIDSTRIDE_INLINED static key of(const __input& __its, int __count) {
        key __kept = worst_key<__is_largest, key>();
        if (__count < lanes) {
            GRIDSTRIDE_ROLLED
            for (int __k = 0; __k < __count; ++__k) __kept = keeping<__is_largest>()(__kept, keys::from(__its.items[__k]));
            return __kept;
        }
        alignas(64) key __best[lanes];
        GRIDSTRIDE_LANES
        for (long long __lane = 0; __lane < lanes; ++__lane) __best[__lane] = __kept;
        GRIDSTRIDE_ROLLED
        for (int __k = 0; __k + lanes < __count; __k += lanes) {
            fetch_ahead(__its.items + __k, lanes, __its.ahead);
            add(__best, __its.items + __k);
        }
        // Some come twice, which makes no difference.
        fetch_ahead(__its.items + __count - lanes, lanes, __its.ahead);
        add(__best, __its.items + __count - lanes);
        return halves<key, lanes>::join(keeping<__is_largest>(), __best);
    }
    // The first or the last of so many elements that has a key; none before the first one.
    template <bool __is_first>
    static GRIDSTRIDE_APART int place(const __stored* __items, int __count, key __key) {
        int __from = __is_first ? 0 : __count - lanes;
        auto __has_key = [&] {
            char __any = 0;
            GRIDSTRIDE_INDEPENDENT
            for (long long __lane = 0; __lane < lanes; ++__lane) __any |= keys::from(__items[__from + __lane]) == __key;
            return __any != 0;
        };
        const int __step = __is_first ? lanes : -lanes;
        while (0 <= __from && __from + lanes <= __count && !__has_key()) __from += __step;
        int __k = __is_first ? __from : __from + lanes - 1;
        while (0 <= __k && __k < __count && keys::from(__items[__k]) != __key) __k += __is_first ? 1 : -1;
        return __k < __count ? __k : -1;
    }
};

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
