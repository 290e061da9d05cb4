// Atomic functions: real across the OS threads that run blocks; they return the value before.
//
// An atomic that leaves memory as it was is how code polls, so it lets other threads of the block run.
// `_block` and `_system` differ in scope on a GPU; one host coherence domain serves all three.
#ifndef GRIDSTRIDE_CPU_ATOMICS_H
#define GRIDSTRIDE_CPU_ATOMICS_H

#include "bits.h"
#include "math_functions.h"

// ---- building blocks ----

GRIDSTRIDE_DEVICE void gridstride_yield_if_polling(bool __unchanged) {
    if (__unchanged) gridstride_spin_hint();
}

// Replaces the bits at `address`, an integer of the value's size, by `next` of the value there.
template <class __bits, class __value, class __function>
GRIDSTRIDE_DEVICE __value gridstride_atomic_update(__value* __address, __function __next) {
    __bits* __word = reinterpret_cast<__bits*>(__address);
    __bits __before = __atomic_load_n(__word, __ATOMIC_RELAXED);
    for (;;) {
        const __value __old = gridstride_bit_cast<__value>(__before);
        const __bits __after = gridstride_bit_cast<__bits>(__value(__next(__old)));
        if (__atomic_compare_exchange_n(__word, &__before, __after, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
            gridstride_yield_if_polling(__before == __after);
            return __old;
        }
    }
}

template <class __integer>
GRIDSTRIDE_DEVICE __integer gridstride_atomic_compare_and_swap(__integer* __address, __integer __expected, __integer __desired) {
    __atomic_compare_exchange_n(__address, &__expected, __desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    gridstride_spin_hint();
    return __expected;
}

template <class __integer>
GRIDSTRIDE_DEVICE __integer gridstride_atomic_exchange(__integer* __address, __integer __desired) {
    const __integer __old = __atomic_exchange_n(__address, __desired, __ATOMIC_SEQ_CST);
    gridstride_spin_hint();
    return __old;
}

// Defines `function` at the three scopes. `parameters` and `arguments` are parenthesized lists.
#define GRIDSTRIDE_AT_EVERY_SCOPE(result, function, parameters, arguments) \
    GRIDSTRIDE_DEVICE result function##_block parameters { return function arguments; } \
    GRIDSTRIDE_DEVICE result function##_system parameters { return function arguments; }

// ---- add, subtract ----

#define GRIDSTRIDE_ATOMIC_FETCH(function, type, operation) \
    GRIDSTRIDE_DEVICE type function(type* __address, type __operand) { \
        const type __old = __atomic_fetch_##operation(__address, __operand, __ATOMIC_SEQ_CST); \
        gridstride_yield_if_polling(__operand == 0); \
        return __old; \
    } \
    GRIDSTRIDE_AT_EVERY_SCOPE(type, function, (type* __address, type __operand), (__address, __operand))

#define GRIDSTRIDE_ATOMIC_UPDATE(function, type, bits, expression) \
    GRIDSTRIDE_DEVICE type function(type* __address, type __operand) { \
        return gridstride_atomic_update<bits>(__address, [=](type __old) { return expression; }); \
    } \
    GRIDSTRIDE_AT_EVERY_SCOPE(type, function, (type* __address, type __operand), (__address, __operand))

GRIDSTRIDE_ATOMIC_FETCH(atomicAdd, int, add)
GRIDSTRIDE_ATOMIC_FETCH(atomicAdd, unsigned, add)
GRIDSTRIDE_ATOMIC_FETCH(atomicAdd, unsigned long long, add)
GRIDSTRIDE_ATOMIC_FETCH(atomicSub, int, sub)
GRIDSTRIDE_ATOMIC_FETCH(atomicSub, unsigned, sub)
GRIDSTRIDE_ATOMIC_UPDATE(atomicAdd, float, unsigned, __old + __operand)
GRIDSTRIDE_ATOMIC_UPDATE(atomicAdd, double, unsigned long long, __old + __operand)

// ---- minimum, maximum ----

GRIDSTRIDE_ATOMIC_UPDATE(atomicMin, int, unsigned, min(__old, __operand))
GRIDSTRIDE_ATOMIC_UPDATE(atomicMin, unsigned, unsigned, min(__old, __operand))
GRIDSTRIDE_ATOMIC_UPDATE(atomicMin, long long, unsigned long long, min(__old, __operand))
GRIDSTRIDE_ATOMIC_UPDATE(atomicMin, unsigned long long, unsigned long long, min(__old, __operand))
GRIDSTRIDE_ATOMIC_UPDATE(atomicMax, int, unsigned, max(__old, __operand))
GRIDSTRIDE_ATOMIC_UPDATE(atomicMax, unsigned, unsigned, max(__old, __operand))
GRIDSTRIDE_ATOMIC_UPDATE(atomicMax, long long, unsigned long long, max(__old, __operand))
GRIDSTRIDE_ATOMIC_UPDATE(atomicMax, unsigned long long, unsigned long long, max(__old, __operand))

// ---- increment and decrement with wrap-around ----

GRIDSTRIDE_ATOMIC_UPDATE(atomicInc, unsigned, unsigned, __old >= __operand ? 0 : __old + 1)
GRIDSTRIDE_ATOMIC_UPDATE(atomicDec, unsigned, unsigned, __old == 0 || __old > __operand ? __operand : __old - 1)

// ---- and, or, exclusive or ----

#define GRIDSTRIDE_ATOMIC_BITWISE(function, type, operation, symbol) \
    GRIDSTRIDE_DEVICE type function(type* __address, type __operand) { \
        const type __old = __atomic_fetch_##operation(__address, __operand, __ATOMIC_SEQ_CST); \
        gridstride_yield_if_polling((__old symbol __operand) == __old); \
        return __old; \
    } \
    GRIDSTRIDE_AT_EVERY_SCOPE(type, function, (type* __address, type __operand), (__address, __operand))

GRIDSTRIDE_ATOMIC_BITWISE(atomicAnd, int, and, &)
GRIDSTRIDE_ATOMIC_BITWISE(atomicAnd, unsigned, and, &)
GRIDSTRIDE_ATOMIC_BITWISE(atomicAnd, unsigned long long, and, &)
GRIDSTRIDE_ATOMIC_BITWISE(atomicOr, int, or, |)
GRIDSTRIDE_ATOMIC_BITWISE(atomicOr, unsigned, or, |)
GRIDSTRIDE_ATOMIC_BITWISE(atomicOr, unsigned long long, or, |)
GRIDSTRIDE_ATOMIC_BITWISE(atomicXor, int, xor, ^)
GRIDSTRIDE_ATOMIC_BITWISE(atomicXor, unsigned, xor, ^)
GRIDSTRIDE_ATOMIC_BITWISE(atomicXor, unsigned long long, xor, ^)

// ---- exchange, compare and swap ----

#define GRIDSTRIDE_ATOMIC_EXCHANGE(type) \
    GRIDSTRIDE_DEVICE type atomicExch(type* __address, type __desired) \
    { return gridstride_atomic_exchange(__address, __desired); } \
    GRIDSTRIDE_AT_EVERY_SCOPE(type, atomicExch, (type* __address, type __desired), (__address, __desired))

GRIDSTRIDE_ATOMIC_EXCHANGE(int)
GRIDSTRIDE_ATOMIC_EXCHANGE(unsigned)
GRIDSTRIDE_ATOMIC_EXCHANGE(unsigned long long)

GRIDSTRIDE_DEVICE float atomicExch(float* __address, float __desired) {
    return __int_as_float(gridstride_atomic_exchange(reinterpret_cast<int*>(__address), __float_as_int(__desired)));
}
GRIDSTRIDE_AT_EVERY_SCOPE(float, atomicExch, (float* __address, float __desired), (__address, __desired))

#define GRIDSTRIDE_ATOMIC_COMPARE_AND_SWAP(type) \
    GRIDSTRIDE_DEVICE type atomicCAS(type* __address, type __expected, type __desired) \
    { return gridstride_atomic_compare_and_swap(__address, __expected, __desired); } \
    GRIDSTRIDE_AT_EVERY_SCOPE(type, atomicCAS, (type* __address, type __expected, type __desired), \
                              (__address, __expected, __desired))

GRIDSTRIDE_ATOMIC_COMPARE_AND_SWAP(int)
GRIDSTRIDE_ATOMIC_COMPARE_AND_SWAP(unsigned)
GRIDSTRIDE_ATOMIC_COMPARE_AND_SWAP(unsigned long long)
GRIDSTRIDE_ATOMIC_COMPARE_AND_SWAP(unsigned short)

#undef GRIDSTRIDE_ATOMIC_COMPARE_AND_SWAP
#undef GRIDSTRIDE_ATOMIC_EXCHANGE
#undef GRIDSTRIDE_ATOMIC_BITWISE
#undef GRIDSTRIDE_ATOMIC_FETCH

#endif
