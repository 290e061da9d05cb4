// Indices along several axes: division by their lengths.
#ifndef GRIDSTRIDE_INDICES_H
#define GRIDSTRIDE_INDICES_H

#include <gridstride/inlining.h>
#include <gridstride/operands.h>

namespace gridstride {

template <int __axes>
GRIDSTRIDE_INLINED long long divided(const axes<__axes>& __space, long long __index, int __axis) {
    if (__space.is_wide) return static_cast<unsigned long long>(__index) / __space.length[__axis];
    const unsigned __n = static_cast<unsigned>(__index);
    return (__umulhi(__n, __space.multiplier[__axis]) + __n) >> __space.shift[__axis];
}

// Divide an index by the length of an axis; return the remainder.
template <int __axes>
GRIDSTRIDE_INLINED unsigned remainder_of(const axes<__axes>& __space, unsigned& __index, int __axis) {
    const unsigned __quotient = (__umulhi(__index, __space.multiplier[__axis]) + __index) >> __space.shift[__axis];
    const unsigned __rest = __index - __quotient * static_cast<unsigned>(__space.length[__axis]);
    __index = __quotient;
    return __rest;
}
template <int __axes>
GRIDSTRIDE_INLINED unsigned long long remainder_of(const axes<__axes>& __space, unsigned long long& __index, int __axis) {
    const unsigned long long __quotient = __index / __space.length[__axis];
    const unsigned long long __rest = __index - __quotient * __space.length[__axis];
    __index = __quotient;
    return __rest;
}

template <int __axes>
GRIDSTRIDE_INLINED long long taken_off(const axes<__axes>& __space, long long& __index, int __axis) {
    const long long __quotient = divided(__space, __index, __axis);
    const long long __rest = __index - __quotient * __space.length[__axis];
    __index = __quotient;
    return __rest;
}

}

#endif
