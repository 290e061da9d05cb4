// Values that are folded in pairs where adding one takes more than an instruction.
#ifndef GRIDSTRIDE_VALUE_PAIRS_H
#define GRIDSTRIDE_VALUE_PAIRS_H

#include <gridstride/integer_sums.h>

namespace gridstride {

// The fold of neighbors in pairs: `__value_of(number)` is one of them. A loop would be unrolled only after the compiler has
// compared what it knows of the places of two neighbors.
template <int __first, int __count>
struct in_pairs {
    template <class __reduce, class __value>
    static GRIDSTRIDE_INLINED auto fold(const __reduce& __do, const __value& __value_of) {
        return __do(in_pairs<__first, __count / 2>::fold(__do, __value_of),
                    in_pairs<__first + __count / 2, __count - __count / 2>::fold(__do, __value_of));
    }
};
template <int __first>
struct in_pairs<__first, 1> {
    template <class __reduce, class __value>
    static GRIDSTRIDE_INLINED auto fold(const __reduce&, const __value& __value_of) { return __value_of(__first); }
};

// Values that take more than an instruction to add to: elements of a packet are folded among themselves first.
template <class __folding, class __reduce> struct is_costly;
template <class __type, bool __has_identity, class __reduce>
struct is_costly<folding<__type, __has_identity>, __reduce> {
    static constexpr bool value = !__has_identity || sizeof(__type) > 8;
};
template <class __type, bool __has_identity, class __reduce>
struct is_costly<folding<__type, __has_identity>, integer_sum<__reduce>> { static constexpr bool value = false; };
template <class __type, bool __has_identity, class __reduce, bool __is_largest>
struct is_costly<folding<__type, __has_identity>, byte_extreme<__reduce, __is_largest>> { static constexpr bool value = false; };

// Add a few values, `__value_of(number)`, to sums in turn, or their fold in pairs to the only one.
template <bool __are_costly>
struct added_values {
    template <int __count, int __sums_count, class __folding, class __reduce, class __value>
    static GRIDSTRIDE_INLINED void to(const __reduce& __do, __folding (&__sums)[__sums_count], const __value& __value_of) {
#pragma unroll
        for (int __j = 0; __j < __count; ++__j) __sums[__j % __sums_count].add(__do, __value_of(__j));
    }
};
template <>
struct added_values<true> {
    template <int __count, class __folding, class __reduce, class __value>
    static GRIDSTRIDE_INLINED void to(const __reduce& __do, __folding (&__sums)[1], const __value& __value_of) {
        __sums[0].add(__do, in_pairs<0, __count>::fold(__do, __value_of));
    }
};

// In which places are counted: others need not be known so well.
template <class __counter, bool __is_costly> struct counter_of { typedef long long type; };
template <class __counter> struct counter_of<__counter, true> { typedef __counter type; };

}

#endif
