// Folds that keep the largest or the smallest element and its place: by which numbers elements are compared.
#ifndef GRIDSTRIDE_CPU_EXTREME_KEYS_H
#define GRIDSTRIDE_CPU_EXTREME_KEYS_H

#include <gridstride/small_floats.h>
#include <gridstride_cpu/inlining.h>

namespace gridstride {

// A reduction of structures of an element and its place that keeps the largest or the smallest one, of equal ones the
// first or the last.
template <class __reduce, bool __is_largest, bool __is_first>
struct found_extreme : __reduce {
    __host__ __device__ explicit found_extreme(const __reduce& __do) : __reduce(__do) {}
};
template <bool __is_largest, bool __is_first, class __value, class __map, class __reduce>
__host__ __device__ inline found_extreme<__reduce, __is_largest, __is_first> as_found_extreme(const __map&, const __reduce& __do) {
    return found_extreme<__reduce, __is_largest, __is_first>(__do);
}
// Numbers in the order of elements, and what is kept of elements. Floats of two bytes have a sign and a magnitude, so
// integers will do.
template <class __stored>
struct key_of {
    typedef __stored type;
    typedef __stored kept;
    GRIDSTRIDE_INLINED static type from(const __stored& __element) { return __element; }
    GRIDSTRIDE_INLINED static kept kept_of(const __stored& __element) { return __element; }
    GRIDSTRIDE_INLINED static __stored element(kept __element) { return __element; }
};
template <class __half>
struct key_of_half {
    typedef short type;
    typedef unsigned short kept;
    GRIDSTRIDE_INLINED static type from(kept __bits) {
        const short __sign = short(short(__bits) >> 15);
        return short((short(__bits & 0x7fff) ^ __sign) - __sign);
    }
    template <class __same> GRIDSTRIDE_INLINED static type from(const __same& __element) { return from(__element.__bits); }
    template <class __same> GRIDSTRIDE_INLINED static kept kept_of(const __same& __element) { return __element.__bits; }
    GRIDSTRIDE_INLINED static __half element(kept __bits) {
        __half __element;
        __builtin_memcpy(&__element, &__bits, sizeof(__bits));
        return __element;
    }
};
template <> struct key_of<float16> : key_of_half<float16> {};
template <> struct key_of<bfloat16> : key_of_half<bfloat16> {};

template <bool __is_largest>
struct keeping {
    // Of numbers or of vectors.
    template <class __key>
    GRIDSTRIDE_INLINED __key operator()(__key __kept, __key __other) const { return (__is_largest ? __other > __kept : __other < __kept) ? __other : __kept; }
    template <class __key>
    GRIDSTRIDE_INLINED static bool is_better(__key __first, __key __second) { return __is_largest ? __first > __second : __first < __second; }
};

// No number is kept for a worse one. (A NaN is not better than any.)
template <bool __is_largest, class __key>
GRIDSTRIDE_INLINED __key worst_key() {
    const bool __is_float = __key(0.5f) != __key(0);
    const __key __far = __is_float ? __key(__builtin_inff()) : __key(0);
    if (__is_float) return __is_largest ? __key(-__far) : __far;
    const bool __has_sign = __key(-1) < __key(0);
    const __key __least = __has_sign ? __key(1ull << (8 * sizeof(__key) - 1)) : __key(0);
    return __is_largest ? __least : __key(~0ull ^ (unsigned long long)__least);
}

}

#endif
