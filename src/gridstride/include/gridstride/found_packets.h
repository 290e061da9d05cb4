// The largest or the smallest of elements that lie one after another, and its place: of a packet only the elements are
// compared, several by one instruction where they are small. A thread keeps the best of its packets, and looks for the
// place in it in the end.
#ifndef GRIDSTRIDE_FOUND_PACKETS_H
#define GRIDSTRIDE_FOUND_PACKETS_H

#include <gridstride/packets.h>
#include <gridstride/small_floats.h>

namespace gridstride {

// A reduction of structures of an element and its place that keeps the largest or the smallest one, of equal ones the
// first or the last.
template <class __reduce, bool __is_largest, bool __is_first, class __value, class __map>
struct found_extreme : __reduce {
    const __map& map;
    __host__ __device__ found_extreme(const __map& __do_map, const __reduce& __do) : __reduce(__do), map(__do_map) {}
    template <class __stored>
    GRIDSTRIDE_INLINED auto of(long long __place, const __stored& __item) const { return map(0, __place, static_cast<__value>(__item)); }
};
template <bool __is_largest, bool __is_first, class __value, class __map, class __reduce>
__host__ __device__ inline auto as_found_extreme(const __map& __do_map, const __reduce& __do) {
    return found_extreme<__reduce, __is_largest, __is_first, __value, __map>(__do_map, __do);
}

// ---- elements ----

// As what elements are compared, and which is worse than any, or like the worst.
template <class __stored>
struct compared {
    typedef __stored type;
    static constexpr bool is_float = __stored(0.5f) != __stored(0), has_sign = __stored(-1) < __stored(0);
    static GRIDSTRIDE_INLINED type from(const __stored& __element) { return __element; }
    static GRIDSTRIDE_INLINED __stored worst(bool __is_largest) {
        if (is_float) return static_cast<__stored>(__is_largest ? -__int_as_float(0x7f800000) : __int_as_float(0x7f800000));
        const unsigned long long __least = has_sign ? 1ull << (8 * sizeof(__stored) - 1) : 0;
        return static_cast<__stored>(__is_largest ? __least : ~__least);
    }
};
template <class __small>
struct compared_as_float {
    typedef float type;
    static GRIDSTRIDE_INLINED type from(const __small& __element) { return static_cast<float>(__element); }
    static GRIDSTRIDE_INLINED __small worst(bool __is_largest) { return __small(compared<float>::worst(__is_largest)); }
};
template <> struct compared<float16> : compared_as_float<float16> {};
template <> struct compared<bfloat16> : compared_as_float<bfloat16> {};

// What is not a number is not kept for one that is.
template <bool __is_largest, class __type>
GRIDSTRIDE_INLINED __type better_of(__type __a, __type __b) { return (__a < __b) == __is_largest ? __b : __a; }
template <bool __is_largest>
GRIDSTRIDE_INLINED float better_of(float __a, float __b) { return __is_largest ? fmaxf(__a, __b) : fminf(__a, __b); }
template <bool __is_largest>
GRIDSTRIDE_INLINED double better_of(double __a, double __b) { return __is_largest ? fmax(__a, __b) : fmin(__a, __b); }

// Both halves of words at once.
template <class __stored> struct halves { static constexpr bool are_compared = false; };
struct signed_halves {
    static constexpr bool are_compared = true;
    static GRIDSTRIDE_INLINED unsigned better_of(bool __is_largest, unsigned __a, unsigned __b) {
        return __is_largest ? __vmaxs2(__a, __b) : __vmins2(__a, __b);
    }
};
struct unsigned_halves {
    static constexpr bool are_compared = true;
    static GRIDSTRIDE_INLINED unsigned better_of(bool __is_largest, unsigned __a, unsigned __b) {
        return __is_largest ? __vmaxu2(__a, __b) : __vminu2(__a, __b);
    }
};
template <> struct halves<short> : signed_halves {};
template <> struct halves<signed char> : signed_halves {};
template <> struct halves<unsigned short> : unsigned_halves {};
template <> struct halves<unsigned char> : unsigned_halves {};
#if !defined(GRIDSTRIDE_CPU_ABI_VERSION) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define GRIDSTRIDE_HALVES(type, name)                                                                      \
    template <>                                                                                            \
    struct halves<type> {                                                                                  \
        static constexpr bool are_compared = true;                                                         \
        static GRIDSTRIDE_INLINED unsigned better_of(bool __is_largest, unsigned __a, unsigned __b) {      \
            unsigned __both;                                                                               \
            if (__is_largest) asm("max." name " %0, %1, %2;" : "=r"(__both) : "r"(__a), "r"(__b));         \
            else asm("min." name " %0, %1, %2;" : "=r"(__both) : "r"(__a), "r"(__b));                      \
            return __both;                                                                                 \
        }                                                                                                  \
    };
GRIDSTRIDE_HALVES(float16, "f16x2")
GRIDSTRIDE_HALVES(bfloat16, "bf16x2")
#undef GRIDSTRIDE_HALVES
#endif

// The better one of neighboring items.
template <bool __is_largest, bool, int __count>
struct better_of_items {
    template <class __stored>
    static GRIDSTRIDE_INLINED typename compared<__stored>::type of(const __stored* __items) {
        return better_of<__is_largest>(better_of_items<__is_largest, false, __count / 2>::of(__items),
                                       better_of_items<__is_largest, false, __count - __count / 2>::of(__items + __count / 2));
    }
};
template <bool __is_largest>
struct better_of_items<__is_largest, false, 1> {
    template <class __stored>
    static GRIDSTRIDE_INLINED typename compared<__stored>::type of(const __stored* __items) { return compared<__stored>::from(*__items); }
};
template <bool __is_largest, int __count>
struct better_of_items<__is_largest, true, __count> {
    template <class __stored>
    static GRIDSTRIDE_INLINED typename compared<__stored>::type of(const __stored* __items) {
        constexpr int __words = sizeof(__stored) * __count / 4;
        unsigned __bits[2 * __words];
        memcpy(__bits, __items, 4 * __words);
        // What lies below a byte in its half only decides between equal ones.
        if (sizeof(__stored) == 1)
#pragma unroll
            for (int __k = 0; __k < __words; ++__k) __bits[__words + __k] = __bits[__k] << 8;
#pragma unroll
        for (int __half = sizeof(__stored) == 1 ? __words : __words / 2; __half > 0; __half /= 2)
#pragma unroll
            for (int __k = 0; __k < __half; ++__k)
                __bits[__k] = halves<__stored>::better_of(__is_largest, __bits[__k], __bits[__k + __half]);
        __stored __both[4 / sizeof(__stored)];
        memcpy(__both, __bits, 4);
        return better_of<__is_largest>(compared<__stored>::from(__both[2 / sizeof(__stored) - 1]), compared<__stored>::from(__both[4 / sizeof(__stored) - 1]));
    }
};

// ---- packets ----

// A packet in words, if it is made of these: else halves of words would be in registers of their own.
template <class __stored, int __length, bool = sizeof(__stored) * __length % 4 == 0>
struct waiting {
    unsigned bits[sizeof(__stored) * __length / 4];
    GRIDSTRIDE_INLINED void pack(const packet<__stored, __length>& __from) { memcpy(bits, __from.items, sizeof(bits)); }
    GRIDSTRIDE_INLINED void unpack(packet<__stored, __length>& __to) const { memcpy(__to.items, bits, sizeof(bits)); }
};
template <class __stored, int __length>
struct waiting<__stored, __length, false> {
    packet<__stored, __length> items;
    GRIDSTRIDE_INLINED void pack(const packet<__stored, __length>& __from) { items = __from; }
    GRIDSTRIDE_INLINED void unpack(packet<__stored, __length>& __to) const { __to = items; }
};

// What a thread has found: a packet and where that is. `__in_order`: whether packets come in the order of their places.
template <class __stored, int __length, class __place, bool __is_largest, bool __is_first, bool __in_order>
struct found_packet {
    typedef compared<__stored> values;
    typedef typename values::type value;
    value best;
    waiting<__stored, __length> kept;
    __place place;
    bool any;

    GRIDSTRIDE_INLINED found_packet() : best(values::from(values::worst(__is_largest))), place(0), any(false) {}
    GRIDSTRIDE_INLINED bool is_better(const value& __one, __place __at) const {
        const bool __is_ahead = __is_largest ? __one > best : __one < best;
        if (__in_order) return __is_first ? __is_ahead : __is_ahead || __one == best;
        return __is_ahead || (__one == best && (__at < place) == __is_first);
    }
    GRIDSTRIDE_INLINED void add(const packet<__stored, __length>& __items, __place __at) {
        const value __one = better_of_items<__is_largest, halves<__stored>::are_compared && __length % 4 == 0, __length>::of(__items.items);
        if (is_better(__one, __at) || !any) kept.pack(__items), place = __at;
        best = better_of<__is_largest>(best, __one);
        any = true;
    }
    // Items from one to before another.
    GRIDSTRIDE_INLINED void add_some(packet<__stored, __length> __items, __place __at, int __from, int __end) {
#pragma unroll
        for (int __j = 0; __j < __length; ++__j)
            if (__j < __from || __j >= __end) __items.items[__j] = values::worst(__is_largest);
        add(__items, __at);
    }
    // Which item it is: the first of equal ones, or the last.
    GRIDSTRIDE_INLINED int find(bool __is_last, __stored& __item) const {
        packet<__stored, __length> __all;
        kept.unpack(__all);
        int __found = 0;
        __item = __all.items[0];
#pragma unroll
        for (int __k = 1; __k <= __length; ++__k) {
            const int __j = __is_last ? __k - 1 : __length - __k;
            if (values::from(__all.items[__j]) == best) __found = __j, __item = __all.items[__j];
        }
        return __found;
    }
    // What is like the worst may be an item that was not added, as where nothing is a number.
    GRIDSTRIDE_INLINED bool is_like_worst() const { return best == values::from(values::worst(__is_largest)); }
};

// Add what was found, item number `__place` of so many, or where that is before or after them, the closest one.
template <class __folding, class __reduce, class __found, class __stored, class __load>
GRIDSTRIDE_INLINED void add_found(const __reduce& __do, __folding& __sum, const __found& __what, long long __place,
                                  long long __elements, __stored __item, const __load& __item_at) {
    __place = __place < 0 ? 0 : __place < __elements ? __place : __elements - 1;
    if (__what.is_like_worst()) __item = __item_at(__place);
    __sum.add(__do, __do.of(__place, __item));
}

}

#endif
