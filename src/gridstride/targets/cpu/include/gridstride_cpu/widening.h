// Vectors of numbers, and of integers that become larger ones: compilers make halves of what a processor does at once.
#ifndef GRIDSTRIDE_CPU_WIDENING_H
#define GRIDSTRIDE_CPU_WIDENING_H

#include <gridstride_cpu/places.h>

namespace gridstride {

template <class __value, int __lanes>
struct vector_of {
    typedef __value type __attribute__((vector_size(__lanes * sizeof(__value))));
    GRIDSTRIDE_INLINED static type from(const __value* __values) {
        type __some;
        __builtin_memcpy(&__some, __values, sizeof(type));
        return __some;
    }
};

#if defined(__clang__) || !defined(__AVX2__)
constexpr int widened_bytes = 0;
#elif defined(__AVX512BW__)
constexpr int widened_bytes = 64;
#else
constexpr int widened_bytes = 32;
#endif

// By the bytes of what becomes an integer of twice as many.
template <int __size, bool __has_sign>
struct widening {
    template <class __to, class __from>
    GRIDSTRIDE_INLINED static __to run(const __from& __some) { return __builtin_convertvector(__some, __to); }
};
#define GRIDSTRIDE_WIDENING(size, has_sign, instruction) \
    template <> struct widening<size, has_sign> { \
        template <class __to, class __from> \
        GRIDSTRIDE_INLINED static __to run(const __from& __some) { \
            __to __wide; \
            asm(instruction " %1, %0" : "=v"(__wide) : "vm"(__some)); \
            return __wide; \
        } \
    };
#if defined(__AVX2__)
GRIDSTRIDE_WIDENING(1, true, "vpmovsxbw")
GRIDSTRIDE_WIDENING(1, false, "vpmovzxbw")
GRIDSTRIDE_WIDENING(2, true, "vpmovsxwd")
GRIDSTRIDE_WIDENING(2, false, "vpmovzxwd")
GRIDSTRIDE_WIDENING(4, true, "vpmovsxdq")
GRIDSTRIDE_WIDENING(4, false, "vpmovzxdq")
#endif
#undef GRIDSTRIDE_WIDENING

template <class __wide, int __lanes, class __stored>
GRIDSTRIDE_INLINED auto widened(const __stored* __items) {
    typedef typename vector_of<__wide, __lanes>::type __to;
    constexpr bool __is_one_instruction = sizeof(__wide) == 2 * sizeof(__stored) && sizeof(__to) <= widened_bytes;
    return widening<__is_one_instruction ? int(sizeof(__stored)) : 0, (__stored(-1) < __stored(0))>::template run<__to>(vector_of<__stored, __lanes>::from(__items));
}

}

#endif
