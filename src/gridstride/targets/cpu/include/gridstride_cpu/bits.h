// Reinterpreting the bits of numbers: __float_as_int and its relatives.
#ifndef GRIDSTRIDE_CPU_BITS_H
#define GRIDSTRIDE_CPU_BITS_H

#include "qualifiers.h"

// The bytes of `from` as a `To`; both have the same size.
template <class __to, class __from>
GRIDSTRIDE_DEVICE __to gridstride_bit_cast(__from __value) {
    static_assert(sizeof(__to) == sizeof(__from), "a bit cast keeps the size");
    __to __result;
    __builtin_memcpy(static_cast<void*>(&__result), &__value, sizeof __result);
    return __result;
}

GRIDSTRIDE_DEVICE int __float_as_int(float __x) { return gridstride_bit_cast<int>(__x); }
GRIDSTRIDE_DEVICE unsigned __float_as_uint(float __x) { return gridstride_bit_cast<unsigned>(__x); }
GRIDSTRIDE_DEVICE float __int_as_float(int __x) { return gridstride_bit_cast<float>(__x); }
GRIDSTRIDE_DEVICE float __uint_as_float(unsigned __x) { return gridstride_bit_cast<float>(__x); }
GRIDSTRIDE_DEVICE long long __double_as_longlong(double __x) { return gridstride_bit_cast<long long>(__x); }
GRIDSTRIDE_DEVICE double __longlong_as_double(long long __x) { return gridstride_bit_cast<double>(__x); }

GRIDSTRIDE_DEVICE int __double2hiint(double __x) { return static_cast<int>(__double_as_longlong(__x) >> 32); }
GRIDSTRIDE_DEVICE int __double2loint(double __x) { return static_cast<int>(__double_as_longlong(__x)); }
GRIDSTRIDE_DEVICE double __hiloint2double(int __high, int __low) {
    const unsigned long long __high_bits = static_cast<unsigned>(__high);
    return gridstride_bit_cast<double>(__high_bits << 32 | static_cast<unsigned>(__low));
}

#endif
