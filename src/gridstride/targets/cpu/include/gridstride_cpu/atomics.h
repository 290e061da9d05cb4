// Atomic functions: real across the OS threads that run blocks; they return the value before.
//
// An atomic that leaves memory as it was is how code polls, so it lets other threads of the block run.
// `_block` and `_system` differ in scope on a GPU; one host coherence domain serves all three.
//
// Each function is one template, which costs nothing where it is not used; `gridstride_atomics` says which
// types it takes: those of the GPU, since one more here would compile what fails there.
#ifndef GRIDSTRIDE_CPU_ATOMICS_H
#define GRIDSTRIDE_CPU_ATOMICS_H

#include "bits.h"
#include "execution.h"
#include "later_types.h"
#include "math_functions.h"

// ---- which types ----

enum gridstride_atomic_family : unsigned {
    GRIDSTRIDE_ADD = 1, GRIDSTRIDE_SUBTRACT = 2, GRIDSTRIDE_EXCHANGE = 4, GRIDSTRIDE_COMPARE_AND_SWAP = 8,
    GRIDSTRIDE_EXTREMUM = 16, GRIDSTRIDE_COUNT = 32, GRIDSTRIDE_BITWISE = 64
};

// `families` that CUDA has for a type, and an integer `bits` of its size.
template <class __value, bool __is_wide> struct gridstride_atomics_by_size { static constexpr unsigned families = 0; };
template <class __value> struct gridstride_atomics_by_size<__value, true> {
    typedef unsigned __int128 bits;
    static constexpr unsigned families = GRIDSTRIDE_EXCHANGE | GRIDSTRIDE_COMPARE_AND_SWAP;
};
// Types of 16 bytes that are aligned to them are exchanged whole.
template <class __value>
struct gridstride_atomics
    : gridstride_atomics_by_size<
          __value, sizeof(__value) == 16 && alignof(__value) >= 16 && __is_trivially_copyable(__value)> {};

template <> struct gridstride_atomics<int> { typedef unsigned bits; static constexpr unsigned families = 127 & ~GRIDSTRIDE_COUNT; };
template <> struct gridstride_atomics<unsigned> { typedef unsigned bits; static constexpr unsigned families = 127; };
template <> struct gridstride_atomics<long long> {
    typedef unsigned long long bits;
    static constexpr unsigned families = GRIDSTRIDE_EXTREMUM;
};
template <> struct gridstride_atomics<unsigned long long> {
    typedef unsigned long long bits;
    static constexpr unsigned families =
        GRIDSTRIDE_ADD | GRIDSTRIDE_EXCHANGE | GRIDSTRIDE_COMPARE_AND_SWAP | GRIDSTRIDE_EXTREMUM | GRIDSTRIDE_BITWISE;
};
template <> struct gridstride_atomics<unsigned short> {
    typedef unsigned short bits;
    static constexpr unsigned families = GRIDSTRIDE_COMPARE_AND_SWAP;
};
template <> struct gridstride_atomics<float> {
    typedef unsigned bits;
    static constexpr unsigned families = GRIDSTRIDE_ADD | GRIDSTRIDE_EXCHANGE;
};
template <> struct gridstride_atomics<double> {
    typedef unsigned long long bits;
    static constexpr unsigned families = GRIDSTRIDE_ADD;
};

template <> struct gridstride_atomics<float2> { static constexpr unsigned families = GRIDSTRIDE_ADD; };
template <> struct gridstride_atomics<float4> {
    typedef unsigned __int128 bits;
    static constexpr unsigned families = GRIDSTRIDE_ADD | GRIDSTRIDE_EXCHANGE | GRIDSTRIDE_COMPARE_AND_SWAP;
};

// Of the types of cuda_fp16.h and cuda_bf16.h, here because users' macros cannot spoil it yet.
struct gridstride_atomics_of_half {
    typedef unsigned short bits;
    static constexpr unsigned families = GRIDSTRIDE_ADD;
};
struct gridstride_atomics_of_half_pair {
    typedef unsigned bits;
    static constexpr unsigned families = GRIDSTRIDE_ADD;
};
template <> struct gridstride_atomics<__half> : gridstride_atomics_of_half {};
template <> struct gridstride_atomics<__nv_bfloat16> : gridstride_atomics_of_half {};
template <> struct gridstride_atomics<__half2> : gridstride_atomics_of_half_pair {};
template <> struct gridstride_atomics<__nv_bfloat162> : gridstride_atomics_of_half_pair {};

// Keeps a parameter out of deduction: `atomicAdd(&counter, 1)` takes the counter's type.
template <class __value> struct gridstride_same { typedef __value type; };
template <class __value> using gridstride_operand = typename gridstride_same<__value>::type;

// ---- building blocks ----

GRIDSTRIDE_DEVICE void gridstride_yield_if_polling(bool __unchanged, const char* __file, unsigned __line) {
    if (__unchanged) gridstride_spin_hint(__file, __line);
}

// Replaces the value at the address by `function(value)`.
template <class __value, class __function>
GRIDSTRIDE_DEVICE __value gridstride_atomic_update(__value* __address, __function __next, const char* __file, unsigned __line) {
    typedef typename gridstride_atomics<__value>::bits __bits;
    __bits* __word = reinterpret_cast<__bits*>(__address);
    __bits __before = __atomic_load_n(__word, __ATOMIC_RELAXED);
    for (;;) {
        const __value __old = gridstride_bit_cast<__value>(__before);
        const __bits __after = gridstride_bit_cast<__bits>(static_cast<__value>(__next(__old)));
        if (__atomic_compare_exchange_n(__word, &__before, __after, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
            gridstride_yield_if_polling(__before == __after, __file, __line);
            return __old;
        }
    }
}

// Defines a function and its other scopes: `expression` of __address and __operand.
#define GRIDSTRIDE_ATOMIC(function, family, expression) \
    template <class __value> \
    GRIDSTRIDE_DEVICE __value function(__value* __address, gridstride_operand<__value> __operand, GRIDSTRIDE_SITE) { \
        static_assert(gridstride_atomics<__value>::families & (family), #function " does not take a pointer to this type"); \
        return expression; \
    } \
    GRIDSTRIDE_ATOMIC_AT_SCOPE(function, function##_block) \
    GRIDSTRIDE_ATOMIC_AT_SCOPE(function, function##_system)
#define GRIDSTRIDE_ATOMIC_AT_SCOPE(function, scoped) \
    template <class __value> \
    GRIDSTRIDE_DEVICE __value scoped(__value* __address, gridstride_operand<__value> __operand, GRIDSTRIDE_SITE) \
    { return function(__address, __operand, __file, __line); }

// The same by a loop: `expression` of __old and __operand is the new value.
#define GRIDSTRIDE_ATOMIC_LOOP(function, family, expression) \
    GRIDSTRIDE_ATOMIC(function, family, gridstride_atomic_update( \
        __address, [=](__value __old) -> __value { return expression; }, __file, __line))

// ---- add, subtract ----

template <class __integer>
GRIDSTRIDE_DEVICE __integer gridstride_atomic_add(__integer* __address, __integer __operand, const char* __file, unsigned __line) {
    gridstride_yield_if_polling(__operand == 0, __file, __line);
    return __atomic_fetch_add(__address, __operand, __ATOMIC_SEQ_CST);
}
GRIDSTRIDE_DEVICE float gridstride_atomic_add(float* __address, float __operand, const char* __file, unsigned __line) {
    return gridstride_atomic_update(__address, [=](float __old) { return __old + __operand; }, __file, __line);
}
GRIDSTRIDE_DEVICE double gridstride_atomic_add(double* __address, double __operand, const char* __file, unsigned __line) {
    return gridstride_atomic_update(__address, [=](double __old) { return __old + __operand; }, __file, __line);
}

// Component by component, each atomic by itself, as on the device.
GRIDSTRIDE_DEVICE float2 gridstride_atomic_add(float2* __address, float2 __operand, const char* __file, unsigned __line) {
    return float2{gridstride_atomic_add(&__address->x, __operand.x, __file, __line),
                  gridstride_atomic_add(&__address->y, __operand.y, __file, __line)};
}
GRIDSTRIDE_DEVICE float4 gridstride_atomic_add(float4* __address, float4 __operand, const char* __file, unsigned __line) {
    return float4{gridstride_atomic_add(&__address->x, __operand.x, __file, __line),
                  gridstride_atomic_add(&__address->y, __operand.y, __file, __line),
                  gridstride_atomic_add(&__address->z, __operand.z, __file, __line),
                  gridstride_atomic_add(&__address->w, __operand.w, __file, __line)};
}

GRIDSTRIDE_ATOMIC(atomicAdd, GRIDSTRIDE_ADD, gridstride_atomic_add(__address, __operand, __file, __line))
GRIDSTRIDE_ATOMIC(atomicSub, GRIDSTRIDE_SUBTRACT,
                  gridstride_atomic_add(__address, static_cast<__value>(0u - __operand), __file, __line))

// ---- minimum, maximum, increment and decrement with wrap-around ----

GRIDSTRIDE_ATOMIC_LOOP(atomicMin, GRIDSTRIDE_EXTREMUM, __operand < __old ? __operand : __old)
GRIDSTRIDE_ATOMIC_LOOP(atomicMax, GRIDSTRIDE_EXTREMUM, __operand > __old ? __operand : __old)
GRIDSTRIDE_ATOMIC_LOOP(atomicInc, GRIDSTRIDE_COUNT, __old >= __operand ? 0 : __old + 1)
GRIDSTRIDE_ATOMIC_LOOP(atomicDec, GRIDSTRIDE_COUNT, __old == 0 || __old > __operand ? __operand : __old - 1)

// ---- and, or, exclusive or ----

#define GRIDSTRIDE_ATOMIC_BITWISE(name, fetch, operation) \
    template <class __value> \
    GRIDSTRIDE_DEVICE __value name(__value* __address, __value __operand, const char* __file, unsigned __line) { \
        const __value __old = fetch(__address, __operand, __ATOMIC_SEQ_CST); \
        gridstride_yield_if_polling((__old operation __operand) == __old, __file, __line); \
        return __old; \
    }
GRIDSTRIDE_ATOMIC_BITWISE(gridstride_atomic_and, __atomic_fetch_and, &)
GRIDSTRIDE_ATOMIC_BITWISE(gridstride_atomic_or, __atomic_fetch_or, |)
GRIDSTRIDE_ATOMIC_BITWISE(gridstride_atomic_xor, __atomic_fetch_xor, ^)
#undef GRIDSTRIDE_ATOMIC_BITWISE

GRIDSTRIDE_ATOMIC(atomicAnd, GRIDSTRIDE_BITWISE, gridstride_atomic_and(__address, __operand, __file, __line))
GRIDSTRIDE_ATOMIC(atomicOr, GRIDSTRIDE_BITWISE, gridstride_atomic_or(__address, __operand, __file, __line))
GRIDSTRIDE_ATOMIC(atomicXor, GRIDSTRIDE_BITWISE, gridstride_atomic_xor(__address, __operand, __file, __line))

// ---- exchange, compare and swap ----

template <class __bits>
GRIDSTRIDE_DEVICE __bits gridstride_swap_bits(__bits* __word, __bits __new) {
    return __atomic_exchange_n(__word, __new, __ATOMIC_SEQ_CST);
}
template <class __bits>
GRIDSTRIDE_DEVICE __bits gridstride_compare_and_swap_bits(__bits* __word, __bits __expected, __bits __new) {
    __atomic_compare_exchange_n(__word, &__expected, __new, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return __expected;
}
#ifdef __GCC_HAVE_SYNC_COMPARE_AND_SWAP_16
// The other builtins call a library for 16 bytes.
GRIDSTRIDE_DEVICE unsigned __int128 gridstride_compare_and_swap_bits(
    unsigned __int128* __word, unsigned __int128 __expected, unsigned __int128 __new) {
    return __sync_val_compare_and_swap(__word, __expected, __new);
}
GRIDSTRIDE_DEVICE unsigned __int128 gridstride_swap_bits(unsigned __int128* __word, unsigned __int128 __new) {
    unsigned __int128 __seen = *__word;
    for (;;) {
        const unsigned __int128 __before = gridstride_compare_and_swap_bits(__word, __seen, __new);
        if (__before == __seen) return __before;
        __seen = __before;
    }
}
#endif

template <class __value>
GRIDSTRIDE_DEVICE __value gridstride_atomic_exchange(__value* __address, __value __new, const char* __file, unsigned __line) {
    typedef typename gridstride_atomics<__value>::bits __bits;
    gridstride_spin_hint(__file, __line);
    return gridstride_bit_cast<__value>(
        gridstride_swap_bits(reinterpret_cast<__bits*>(__address), gridstride_bit_cast<__bits>(__new)));
}
GRIDSTRIDE_ATOMIC(atomicExch, GRIDSTRIDE_EXCHANGE, gridstride_atomic_exchange(__address, __operand, __file, __line))

#define GRIDSTRIDE_ATOMIC_COMPARE_AND_SWAP(function) \
    template <class __value> \
    GRIDSTRIDE_DEVICE __value function(__value* __address, gridstride_operand<__value> __expected, \
                                       gridstride_operand<__value> __new, GRIDSTRIDE_SITE) { \
        static_assert(gridstride_atomics<__value>::families & GRIDSTRIDE_COMPARE_AND_SWAP, \
                      #function " does not take a pointer to this type"); \
        typedef typename gridstride_atomics<__value>::bits __bits; \
        gridstride_spin_hint(__file, __line); \
        return gridstride_bit_cast<__value>(gridstride_compare_and_swap_bits( \
            reinterpret_cast<__bits*>(__address), gridstride_bit_cast<__bits>(__expected), gridstride_bit_cast<__bits>(__new))); \
    }
GRIDSTRIDE_ATOMIC_COMPARE_AND_SWAP(atomicCAS)
GRIDSTRIDE_ATOMIC_COMPARE_AND_SWAP(atomicCAS_block)
GRIDSTRIDE_ATOMIC_COMPARE_AND_SWAP(atomicCAS_system)
#undef GRIDSTRIDE_ATOMIC_COMPARE_AND_SWAP

// ---- the compiler's own atomics: __nv_atomic_load_n(address, order, scope) ... ----

// Every order is at most this one, and every scope within this one.
#define __NV_ATOMIC_RELAXED 0
#define __NV_ATOMIC_CONSUME 1
#define __NV_ATOMIC_ACQUIRE 2
#define __NV_ATOMIC_RELEASE 3
#define __NV_ATOMIC_ACQ_REL 4
#define __NV_ATOMIC_SEQ_CST 5
#define __NV_THREAD_SCOPE_THREAD 0
#define __NV_THREAD_SCOPE_BLOCK 1
#define __NV_THREAD_SCOPE_CLUSTER 2
#define __NV_THREAD_SCOPE_DEVICE 3
#define __NV_THREAD_SCOPE_SYSTEM 4

template <class __value>
GRIDSTRIDE_DEVICE __value __nv_atomic_load_n(const __value* __address, int, int = __NV_THREAD_SCOPE_SYSTEM, GRIDSTRIDE_SITE) {
    gridstride_spin_hint(__file, __line);
    __value __result;
    __atomic_load(__address, &__result, __ATOMIC_SEQ_CST);
    return __result;
}
template <class __value>
GRIDSTRIDE_DEVICE void __nv_atomic_load(const __value* __address, __value* __result, int, int = __NV_THREAD_SCOPE_SYSTEM, GRIDSTRIDE_SITE) {
    *__result = __nv_atomic_load_n(__address, __NV_ATOMIC_SEQ_CST, __NV_THREAD_SCOPE_SYSTEM, __file, __line);
}
template <class __value>
GRIDSTRIDE_DEVICE void __nv_atomic_store_n(__value* __address, gridstride_operand<__value> __new, int, int = __NV_THREAD_SCOPE_SYSTEM) {
    __atomic_store(__address, &__new, __ATOMIC_SEQ_CST);
}
template <class __value>
GRIDSTRIDE_DEVICE void __nv_atomic_store(__value* __address, __value* __new, int, int = __NV_THREAD_SCOPE_SYSTEM) {
    __nv_atomic_store_n(__address, *__new, __NV_ATOMIC_SEQ_CST);
}
template <class __value>
GRIDSTRIDE_DEVICE __value __nv_atomic_exchange_n(__value* __address, gridstride_operand<__value> __new, int, int = __NV_THREAD_SCOPE_SYSTEM, GRIDSTRIDE_SITE) {
    gridstride_spin_hint(__file, __line);
    __value __old;
    __atomic_exchange(__address, &__new, &__old, __ATOMIC_SEQ_CST);
    return __old;
}
template <class __value>
GRIDSTRIDE_DEVICE void __nv_atomic_exchange(__value* __address, __value* __new, __value* __old, int, int = __NV_THREAD_SCOPE_SYSTEM, GRIDSTRIDE_SITE) {
    *__old = __nv_atomic_exchange_n(__address, *__new, __NV_ATOMIC_SEQ_CST, __NV_THREAD_SCOPE_SYSTEM, __file, __line);
}
template <class __value>
GRIDSTRIDE_DEVICE bool __nv_atomic_compare_exchange_n(
    __value* __address, __value* __expected, gridstride_operand<__value> __new, bool, int, int, int = __NV_THREAD_SCOPE_SYSTEM, GRIDSTRIDE_SITE) {
    gridstride_spin_hint(__file, __line);
    return __atomic_compare_exchange(__address, __expected, &__new, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
template <class __value>
GRIDSTRIDE_DEVICE bool __nv_atomic_compare_exchange(
    __value* __address, __value* __expected, __value* __new, bool, int, int, int = __NV_THREAD_SCOPE_SYSTEM, GRIDSTRIDE_SITE) {
    return __nv_atomic_compare_exchange_n(__address, __expected, *__new, false, __NV_ATOMIC_SEQ_CST, __NV_ATOMIC_SEQ_CST, __NV_THREAD_SCOPE_SYSTEM, __file, __line);
}

// `__nv_atomic_fetch_add` returns the value before, `__nv_atomic_add` nothing.
#define GRIDSTRIDE_NV_ATOMIC(operation, expression) \
    template <class __value> \
    GRIDSTRIDE_DEVICE __value __nv_atomic_fetch_##operation(__value* __address, gridstride_operand<__value> __operand, int, \
                                                            int = __NV_THREAD_SCOPE_SYSTEM, GRIDSTRIDE_SITE) { \
        gridstride_spin_hint(__file, __line); \
        __value __old; \
        __atomic_load(__address, &__old, __ATOMIC_RELAXED); \
        for (;;) { \
            __value __after = expression; \
            if (__atomic_compare_exchange(__address, &__old, &__after, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) return __old; \
        } \
    } \
    template <class __value> \
    GRIDSTRIDE_DEVICE void __nv_atomic_##operation(__value* __address, gridstride_operand<__value> __operand, int __order, \
                                                   int __scope = __NV_THREAD_SCOPE_SYSTEM, GRIDSTRIDE_SITE) \
    { __nv_atomic_fetch_##operation(__address, __operand, __order, __scope, __file, __line); }
GRIDSTRIDE_NV_ATOMIC(add, __old + __operand)
GRIDSTRIDE_NV_ATOMIC(sub, __old - __operand)
GRIDSTRIDE_NV_ATOMIC(and, __old & __operand)
GRIDSTRIDE_NV_ATOMIC(or, __old | __operand)
GRIDSTRIDE_NV_ATOMIC(xor, __old ^ __operand)
GRIDSTRIDE_NV_ATOMIC(min, __operand < __old ? __operand : __old)
GRIDSTRIDE_NV_ATOMIC(max, __operand > __old ? __operand : __old)
#undef GRIDSTRIDE_NV_ATOMIC
GRIDSTRIDE_DEVICE void __nv_atomic_thread_fence(int, int = __NV_THREAD_SCOPE_SYSTEM, GRIDSTRIDE_SITE) { __threadfence(__file, __line); }

#undef GRIDSTRIDE_ATOMIC
#undef GRIDSTRIDE_ATOMIC_AT_SCOPE
#undef GRIDSTRIDE_ATOMIC_LOOP

#endif
